// SPDX-License-Identifier: GPL-3.0-or-later
#include "http/completions.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/excerpt.h"
#include "base/plain_name.h"
#include "base/sha256.h"
#include "http/client_context.h"
#include "http/openai.h"

namespace sluice {
namespace {

using Steady = std::chrono::steady_clock;
constexpr auto kPoll = std::chrono::milliseconds(200);       // how often a silent exchange looks at its client
constexpr auto kKeepAlive = std::chrono::seconds(15);        // of silence, then a comment

double seconds_since(Steady::time_point start) { return std::chrono::duration<double>(Steady::now() - start).count(); }

// "name@17": the adapter's name; nothing where `pin` has another shape.
std::optional<std::string> adapter_of(const std::string& pin) {
  const std::size_t at = pin.rfind('@');
  if (at == std::string::npos || !is_plain_name(std::string_view(pin).substr(0, at))) return std::nullopt;
  const auto number = parse_number(std::string_view(pin).substr(at + 1));
  return number && *number >= 0 ? std::optional(pin.substr(0, at)) : std::nullopt;
}

// The version asked for by number: model "name@17", X-Sluice-Pin, sluice.pin; "" for none. They must agree.
std::optional<ApiError> find_pin(const OpenAiCall& call, const HttpRequest& request, std::string* found) {
  if (adapter_of(call.model)) *found = call.model;
  for (const std::string& pin : {std::string(request.header("X-Sluice-Pin")), call.pin}) {
    if (pin.empty()) continue;
    if (pin != "base" && !adapter_of(pin)) {
      return bad_value("sluice.pin", "The pin " + excerpt(pin) + " names no version: write it as name@17, or base");
    }
    if (!found->empty() && *found != pin) {
      return bad_value("sluice.pin",
                       "Two versions are asked for, " + excerpt(*found) + " and " + excerpt(pin) + ": ask for one");
    }
    *found = pin;
  }
  return std::nullopt;
}

// A pin says which version of `model` is meant, so the two must be of one adapter. Version 0, the base, is every adapter's.
bool pin_fits(const std::string& pin, const std::string& model, const AdapterChoice& named, const Control& control) {
  if (pin == "base") return true;
  if (named.kind() == AdapterChoice::Kind::kBase) return false;
  if (adapter_of(pin) == model) return true;
  const std::vector<ServedModel> models = control.models();
  return std::any_of(models.begin(), models.end(), [&](const ServedModel& m) { return m.alias && m.id == model; });
}

// What is to answer, and its name for the answer where the request has no `model`.
std::optional<ApiError> choose_adapter(const OpenAiCall& call, const HttpRequest& request, const Control& control,
                                       int context_length, AdapterChoice* adapter, std::string* pin) {
  if (auto error = find_pin(call, request, pin)) return error;
  const Result<AdapterChoice> named = control.resolve_model(call.model);
  if (!named.ok()) return completion_error(named.status(), context_length);
  *adapter = *named;
  if (pin->empty() || *pin == call.model) return std::nullopt;
  if (!call.model.empty() && !pin_fits(*pin, call.model, *named, control)) {
    return bad_value("sluice.pin", "The pin " + excerpt(*pin) + " is no version of the model " + excerpt(call.model) +
                                       ": ask for one of the two");
  }
  const Result<AdapterChoice> pinned = control.resolve_model(*pin);
  if (!pinned.ok()) return completion_error(pinned.status(), context_length);
  *adapter = *pinned;
  return std::nullopt;
}

// What must not stand on both sides of the split: the conversation, else the prompt itself.
std::string group_key(const std::string& conversation, const CompletionRequest& r) {
  if (!conversation.empty()) return "c:" + conversation;
  Sha256 hash;
  const auto add_ids = [&hash](const std::vector<TokenId>& ids) { hash.update(std::as_bytes(std::span(ids))); };
  if (r.messages) hash.update(r.prompt_json);
  if (r.prompt) hash.update(*r.prompt);
  if (r.prompt_ids) add_ids(*r.prompt_ids);
  for (const auto& more : r.more_prompts) {
    const auto* text = std::get_if<std::string>(&more);
    text ? hash.update(*text) : add_ids(std::get<std::vector<TokenId>>(more));
  }
  if (r.suffix) hash.update(*r.suffix);
  return "p:" + to_hex(hash.digest()).substr(0, 32);
}

std::string sse(const std::string& data) { return "data: " + data + "\n\n"; }

}  // namespace

std::optional<ApiError> not_ready(ServingPhase phase) {
  ApiError error;
  error.status = 503;
  error.retry_after_s = 2;
  switch (phase) {
    case ServingPhase::kReady: return std::nullopt;
    case ServingPhase::kLoading: error.code = "model_loading", error.message = "The model is being loaded"; break;
    case ServingPhase::kPaused: error.code = "engine_paused", error.message = "The engine is paused"; break;
    case ServingPhase::kAsleep: error.code = "engine_asleep", error.message = "The engine is asleep"; break;
    case ServingPhase::kStopping: error.code = "shutting_down", error.message = "The server is stopping"; break;
  }
  return error;
}

// One request from its place among the running ones to the last byte of its answer.
class Completions::Job {
 public:
  // The service, and with it the model, is held to the end of the answer.
  Job(Completions& owner, OpenAiCall parsed, std::shared_ptr<CompletionService> model)
      : call(std::move(parsed)), service(std::move(model)), owner_(owner), started_(Steady::now()) {}
  ~Job() {
    const std::string id = exchange ? exchange->record_id().text : "";
    exchange.reset();  // commits what is unfinished before its receipt stops being "open"
    service.reset();   // before the job counts as ended
    MutexLock lock(owner_.mu_);
    owner_.open_.erase(id);
    if (owner_.running_.erase(this) > 0 && owner_.running_.empty()) owner_.idle_.notify_all();
  }

  bool take_place(std::function<void()> hang_up) {
    hang_up_ = std::move(hang_up);
    MutexLock lock(owner_.mu_);
    if (static_cast<int>(owner_.running_.size()) >= owner_.max_exchanges_) return false;
    owner_.running_.insert(this);
    return true;
  }
  void hang_up() const { hang_up_(); }
  void begin(std::unique_ptr<Exchange> begun) {
    exchange = std::move(begun);
    MutexLock lock(owner_.mu_);
    owner_.open_.insert(exchange->record_id().text);
  }

  // Counts the answer's end once; measures it.
  void finished(const std::string& reason) {
    owner_.metrics_.count_request(openai_route_name(call.route), reason);
    owner_.metrics_.observe_whole(seconds_since(started_));
  }
  // Measures the wait for the first text that was generated, and the gaps between those of one choice. An echo and an end
  // bring none.
  void note_event(const TextEvent& event) {
    if (event.echo || event.kind == TextEvent::Kind::kFinish) return;
    const auto now = Steady::now();
    const auto seconds = [now](Steady::time_point since) { return std::chrono::duration<double>(now - since).count(); };
    if (last_text_.empty()) owner_.metrics_.observe_first_token(seconds(started_));
    const auto [last, first_of_choice] = last_text_.try_emplace(event.choice, now);
    if (!first_of_choice) owner_.metrics_.observe_gap(seconds(last->second));
    last->second = now;
  }
  HeaderList receipt_headers() const {
    return {{"X-Sluice-Record-Id", exchange->record_id().text},
            {"X-Sluice-Adapter", exchange->adapter_name()},
            {"x-reef-agent-record-id", exchange->record_id().text}};
  }

  OpenAiCall call;
  AnswerFacts facts;
  std::shared_ptr<CompletionService> service;
  std::unique_ptr<Exchange> exchange;
  bool left = false;  // the client went away while its request waited
  bool reef = false;  // the client is to hear the record's id once more, before the end

 private:
  Completions& owner_;
  std::function<void()> hang_up_;
  const Steady::time_point started_;
  std::map<int, Steady::time_point> last_text_;  // by choice
};

Completions::Completions(Control& control, Metrics& metrics, const std::atomic<bool>& stopping, int max_exchanges,
                         const Clock& clock)
    : control_(control),
      metrics_(metrics),
      stopping_(stopping),
      max_exchanges_(max_exchanges),
      clock_(clock) {}

void Completions::add_routes(RouteTable& table) {
  const auto add = [&](const char* path, OpenAiRoute route) {
    table.add(Scope::kClient, "POST", path,
              [this, route](const HttpRequest& r, const RouteTable::Parts&) { return handle(r, route); });
  };
  add("/v1/chat/completions", OpenAiRoute::kChat);
  add("/v1/completions", OpenAiRoute::kText);
  add("/v1/fim/completions", OpenAiRoute::kFim);
}

bool Completions::is_open(const std::string& record_id) const {
  MutexLock lock(mu_);
  return open_.count(record_id) > 0;
}

bool Completions::wait_idle(SteadyTime deadline) const {
  MutexLock lock(mu_);
  while (!running_.empty()) {
    if (!idle_.wait_until(mu_, deadline) && !running_.empty()) return false;
  }
  return true;
}

void Completions::hang_up() {
  MutexLock lock(mu_);
  for (const Job* job : running_) job->hang_up();
}

int Completions::retry_after() const {
  return static_cast<int>(std::clamp(std::ceil(control_.counters().generator.retry_after_s), 1.0, 60.0));
}

// Its model went to make room for another, or the whole server stops.
ApiError Completions::cut_short() const {
  const ServingPhase phase = stopping_.load() ? ServingPhase::kStopping : control_.phase();
  return *not_ready(phase == ServingPhase::kReady ? ServingPhase::kStopping : phase);
}

std::optional<ApiError> Completions::start(Job& job, const HttpRequest& request) {
  OpenAiCall& call = job.call;
  CompletionRequest& r = call.request;
  std::string pin;
  const int context_length = job.service->context_length();
  if (auto error = choose_adapter(call, request, control_, context_length, &r.adapter, &pin)) return error;
  r.conversation = call.conversation;
  if (auto error = read_client_context(request, &r)) return error;
  r.group_key = group_key(r.conversation, r);
  const LiveContext live = control_.live_context(r);
  r.session = live.session;
  r.split = live.split;
  const auto gone = [this, &request] { return stopping_.load() || request.gone(); };
  Result<std::unique_ptr<Exchange>> exchange = job.service->start(r, gone);
  if (!exchange.ok()) {
    job.left = exchange.code() == Code::kCancelled && !stopping_.load();
    if (exchange.code() == Code::kCancelled || exchange.status().reason() == Reason::kStopping) return cut_short();
    ApiError error = completion_error(exchange.status(), context_length);
    if (error.status == 429) error.retry_after_s = retry_after();
    if (error.status == 400 && error.param.empty()) error.param = r.messages ? "messages" : "prompt";
    return error;
  }
  job.begin(std::move(exchange).value());
  job.reef = !request.header("x-reef-scenario").empty();
  const Exchange& begun = *job.exchange;
  job.facts.id = (call.chat_shape() ? "chatcmpl-" : "cmpl-") + begun.record_id().text.substr(4);
  job.facts.created_s = clock_.wall_us() / 1'000'000;
  job.facts.model = call.model.empty() ? pin : call.model;
  if (job.facts.model.empty()) {
    const std::vector<ServedModel> models = control_.models();
    job.facts.model = models.empty() ? begun.adapter_name() : models.front().id;
  }
  job.facts.fingerprint = "sl-" + control_.base_digest().substr(0, 8) + "-" + begun.adapter_name();
  job.facts.conversation = r.conversation;
  return std::nullopt;
}

HttpReply Completions::handle(const HttpRequest& request, OpenAiRoute route) {
  const auto fail = [&](const ApiError& error, const char* counted = "error") {
    metrics_.count_request(openai_route_name(route), counted);
    return error_reply(error);
  };
  if (auto error = not_ready(stopping_.load() ? ServingPhase::kStopping : control_.phase())) return fail(*error);
  auto service = control_.service();
  if (!service) return fail(*not_ready(ServingPhase::kLoading));
  OpenAiCall call;
  const OpenAiModel model{service->tokenizer(), service->chat_template(), control_.fim_markers(),
                          request.from_editor ? control_.sampling_defaults() : std::nullopt};
  if (auto error = parse_openai_call(request, route, model, &call)) return fail(*error);
  auto job = std::make_shared<Job>(*this, std::move(call), std::move(service));
  if (!job->take_place(request.hang_up)) {
    ApiError error = make_error(429, "queue_full", "Too many requests are waiting: try again later");
    error.retry_after_s = retry_after();
    return fail(error);
  }
  if (auto error = start(*job, request)) return fail(*error, job->left ? "cancelled" : "error");
  if (!job->call.stream) return collect(*job, request);
  HttpReply reply;
  reply.content_type = "text/event-stream";
  reply.headers = job->receipt_headers();
  reply.headers.emplace_back("Cache-Control", "no-cache");
  reply.headers.emplace_back("X-Accel-Buffering", "no");
  reply.stream = [this, job](StreamSink& sink) { stream(*job, sink); };
  return reply;
}

HttpReply Completions::collect(Job& job, const HttpRequest& request) {
  Exchange& exchange = *job.exchange;
  AnswerWriter writer(job.call, job.facts, exchange);
  std::string reason;
  const auto fail = [&](const ApiError& error, const char* counted) {
    job.finished(counted);
    HttpReply reply = error_reply(error);
    for (auto& header : job.receipt_headers()) reply.headers.push_back(std::move(header));
    return reply;
  };
  while (!exchange.done()) {
    const std::optional<TextEvent> event = exchange.next(Steady::now() + kPoll);
    if (stopping_.load()) exchange.cancel();
    if (request.gone()) return fail(*not_ready(ServingPhase::kStopping), "cancelled");  // nobody reads it
    if (!event) continue;
    job.note_event(*event);
    writer.collect(*event);
    if (event->kind != TextEvent::Kind::kFinish) continue;
    if (event->finish == FinishReason::kError) {
      return fail(completion_error(event->error, job.service->context_length()), "error");
    }
    if (event->finish == FinishReason::kCancelled) return fail(cut_short(), "cancelled");
    if (reason.empty()) reason = writer.finish_reason(event->choice);
  }
  job.finished(reason);
  HttpReply reply;
  reply.headers = job.receipt_headers();
  reply.body = writer.body();
  return reply;
}

void Completions::stream(Job& job, StreamSink& sink) {
  Exchange& exchange = *job.exchange;
  AnswerWriter writer(job.call, job.facts, exchange);
  std::string reason;
  SteadyTime last_write = clock_.steady();
  const auto send = [&](const std::string& bytes) {
    last_write = clock_.steady();
    return sink.write(bytes);
  };
  const auto fail = [&](const ApiError& error, const char* counted) {
    metrics_.count_error(error.code);
    send(sse(error_json(error)));
    job.finished(counted);
  };
  while (!exchange.done()) {
    const std::optional<TextEvent> event = exchange.next(Steady::now() + kPoll);
    if (stopping_.load()) return fail(*not_ready(ServingPhase::kStopping), "cancelled");
    if (!sink.alive()) return job.finished("cancelled");
    std::string bytes;
    if (event) {
      job.note_event(*event);
      if (event->finish == FinishReason::kError) {
        return fail(completion_error(event->error, job.service->context_length()), "error");
      }
      if (event->finish == FinishReason::kCancelled) return fail(cut_short(), "cancelled");
      for (const std::string& data : writer.chunks(*event)) bytes += sse(data);
      if (event->kind == TextEvent::Kind::kFinish && reason.empty()) reason = writer.finish_reason(event->choice);
    }
    // Text may be held back while tokens come, so silence is measured by what was written.
    if (bytes.empty() && clock_.steady() - last_write >= kKeepAlive) bytes = ": keep-alive\n\n";
    if (!bytes.empty() && !send(bytes)) return job.finished("cancelled");
  }
  if (job.call.include_usage) send(sse(writer.usage_chunk()));
  if (job.reef) send(sse(writer.reef_chunk()));
  send("data: [DONE]\n\n");
  job.finished(reason);
}

}  // namespace sluice
