// SPDX-License-Identifier: GPL-3.0-or-later
#include "http/completions.h"

#include <algorithm>
#include <cmath>

#include "base/sha256.h"
#include "http/openai.h"

namespace sluice {
namespace {

using Steady = std::chrono::steady_clock;
constexpr auto kPoll = std::chrono::milliseconds(200);       // how often a silent exchange looks at its client
constexpr auto kKeepAlive = std::chrono::seconds(15);        // of silence, then a comment

double seconds_since(Steady::time_point start) { return std::chrono::duration<double>(Steady::now() - start).count(); }

ApiError bad_request(const std::string& param, const std::string& message) {
  ApiError error;
  error.status = 400;
  error.code = "invalid_value";
  error.param = param;
  error.message = message;
  return error;
}

// The version asked for by number: model "name@17", X-Sluice-Pin, sluice.pin. They must agree.
std::optional<ApiError> find_pin(const OpenAiCall& call, const HttpRequest& request, std::string* name) {
  *name = call.model;
  for (const std::string& pin : {std::string(request.header("X-Sluice-Pin")), call.pin}) {
    if (pin.empty()) continue;
    if (name->find('@') != std::string::npos && *name != pin) {
      return bad_request("sluice.pin", "Two versions are asked for, " + *name + " and " + pin + ": ask for one");
    }
    *name = pin;
  }
  return std::nullopt;
}

// What must not stand on both sides of the split: the conversation, else the prompt itself.
std::string group_key(const std::string& conversation, const CompletionRequest& r) {
  if (!conversation.empty()) return "c:" + conversation;
  Sha256 hash;
  if (r.messages) hash.update(r.prompt_json);
  if (r.prompt) hash.update(*r.prompt);
  if (r.prompt_ids) hash.update(std::as_bytes(std::span(*r.prompt_ids)));
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
  Job(Completions& owner, OpenAiCall parsed) : call(std::move(parsed)), owner_(owner), started(Steady::now()) {}
  ~Job() {
    exchanges.clear();  // commits what is unfinished before its receipt stops being "open"
    MutexLock lock(owner_.mu_);
    for (const std::string& id : open_ids_) owner_.open_.erase(id);
    if (placed_) --owner_.running_;
  }

  bool take_place() {
    MutexLock lock(owner_.mu_);
    placed_ = owner_.running_ < owner_.max_exchanges_;
    if (placed_) ++owner_.running_;
    return placed_;
  }
  void add(std::unique_ptr<Exchange> exchange) {
    open_ids_.push_back(exchange->record_id().text);
    exchanges.push_back(std::move(exchange));
    MutexLock lock(owner_.mu_);
    owner_.open_.insert(open_ids_.back());
  }

  // Counts the answer's end once; measures it.
  void finished(const std::string& reason) {
    owner_.metrics_.count_request(call.chat ? "chat" : "completions", reason);
    owner_.metrics_.observe_whole(seconds_since(started));
  }
  void note_event() {
    const auto now = Steady::now();
    const double seconds = std::chrono::duration<double>(now - (any_event_ ? last_event_ : started)).count();
    any_event_ ? owner_.metrics_.observe_gap(seconds) : owner_.metrics_.observe_first_token(seconds);
    any_event_ = true;
    last_event_ = now;
  }

  CompletionUsage usage() const {
    CompletionUsage sum;
    for (const auto& e : exchanges) {
      const CompletionUsage one = e->usage();
      sum.prompt_tokens += one.prompt_tokens;
      sum.completion_tokens += one.completion_tokens;
      sum.cached_tokens += one.cached_tokens;
    }
    return sum;
  }
  HeaderList receipt_headers() const {
    const Exchange& first = *exchanges.front();
    return {{"X-Sluice-Record-Id", first.record_id().text},
            {"X-Sluice-Adapter", first.adapter_name()},
            {"x-reef-agent-record-id", first.record_id().text}};
  }

  OpenAiCall call;
  AnswerFacts facts;
  SessionId session;
  std::vector<std::unique_ptr<Exchange>> exchanges;

 private:
  Completions& owner_;
  std::vector<std::string> open_ids_;
  bool placed_ = false;
  bool any_event_ = false;
  Steady::time_point last_event_;

 public:
  const Steady::time_point started;
};

Completions::Completions(CompletionService& service, Control& control, Metrics& metrics, const std::atomic<bool>& stopping,
                         int max_exchanges)
    : service_(service), control_(control), metrics_(metrics), stopping_(stopping), max_exchanges_(max_exchanges) {}

void Completions::add_routes(RouteTable& table) {
  using Parts = RouteTable::Parts;
  table.add(Scope::kClient, "POST", "/v1/chat/completions",
            [this](const HttpRequest& r, const Parts&) { return handle(r, true); });
  table.add(Scope::kClient, "POST", "/v1/completions",
            [this](const HttpRequest& r, const Parts&) { return handle(r, false); });
}

bool Completions::is_open(const std::string& record_id) const {
  MutexLock lock(mu_);
  return open_.count(record_id) > 0;
}

int Completions::retry_after() const {
  return static_cast<int>(std::clamp(std::ceil(metrics_.mean_request_seconds()), 1.0, 60.0));
}

std::optional<ApiError> Completions::start(Job& job, const HttpRequest& request) {
  std::string name;
  if (auto error = find_pin(job.call, request, &name)) return error;
  const Result<AdapterChoice> adapter = control_.resolve_model(name);
  if (!adapter.ok()) return completion_error(adapter.status(), service_.context_length());
  const std::string_view header = request.header("X-Session-Id");
  const std::string conversation = header.empty() ? job.call.conversation : std::string(header.substr(0, 256));
  const auto gone = [this, &request] { return stopping_.load() || request.gone(); };
  for (CompletionRequest& r : job.call.requests) {
    r.adapter = *adapter;
    r.conversation = conversation;
    r.group_key = group_key(conversation, r);
    const LiveContext live = control_.live_context(r.group_key);
    r.session = job.session = live.session;
    r.split = live.split;
    Result<std::unique_ptr<Exchange>> exchange = service_.start(r, gone);
    if (!exchange.ok()) {
      ApiError error = completion_error(exchange.status(), service_.context_length());
      if (error.status == 429) error.retry_after_s = retry_after();
      if (error.status == 400 && error.param.empty()) error.param = job.call.chat ? "messages" : "prompt";
      return error;
    }
    job.add(std::move(exchange).value());
  }
  const Exchange& first = *job.exchanges.front();
  job.facts.id = (job.call.chat ? "chatcmpl-" : "cmpl-") + first.record_id().text.substr(4);
  job.facts.created_s = std::chrono::duration_cast<std::chrono::seconds>(
                            std::chrono::system_clock::now().time_since_epoch()).count();
  job.facts.model = job.call.model;
  if (job.facts.model.empty()) {
    const std::vector<ServedModel> models = control_.models();
    job.facts.model = models.empty() ? first.adapter_name() : models.front().id;
  }
  job.facts.fingerprint = "sl-" + control_.base_digest().substr(0, 8) + "-" + first.adapter_name();
  job.facts.conversation = conversation;
  return std::nullopt;
}

HttpReply Completions::handle(const HttpRequest& request, bool chat) {
  const auto fail = [&](const ApiError& error) {
    const bool left = error.code == "shutting_down" && !stopping_.load();
    metrics_.count_request(chat ? "chat" : "completions", left ? "cancelled" : "error");
    return error_reply(error);
  };
  if (auto error = not_ready(stopping_.load() ? ServingPhase::kStopping : control_.phase())) return fail(*error);
  OpenAiCall call;
  if (auto error = parse_openai_call(request, chat, service_.tokenizer(), &call)) return fail(*error);
  auto job = std::make_shared<Job>(*this, std::move(call));
  if (!job->take_place()) {
    ApiError error;
    error.status = 429;
    error.code = "queue_full";
    error.message = "Too many requests are waiting: try again later";
    error.retry_after_s = retry_after();
    return fail(error);
  }
  if (auto error = start(*job, request)) return fail(*error);
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
  std::vector<std::string> choices;
  std::string reason;
  const auto fail = [&](const ApiError& error, const char* counted) {
    job.finished(counted);
    HttpReply reply = error_reply(error);
    for (auto& header : job.receipt_headers()) reply.headers.push_back(std::move(header));
    return reply;
  };
  for (std::size_t i = 0; i < job.exchanges.size(); ++i) {
    Exchange& exchange = *job.exchanges[i];
    AnswerWriter writer(job.call, job.facts, exchange, static_cast<int>(i) * job.call.requests[i].n);
    while (!exchange.done()) {
      const std::optional<TextEvent> event = exchange.next(Steady::now() + kPoll);
      if (stopping_.load()) exchange.cancel();
      if (request.gone()) return fail(*not_ready(ServingPhase::kStopping), "cancelled");  // nobody reads it
      if (!event) continue;
      job.note_event();
      writer.collect(*event);
      if (event->kind != TextEvent::Kind::kFinish) continue;
      if (event->finish == FinishReason::kError) {
        return fail(completion_error(event->error, service_.context_length()), "error");
      }
      if (event->finish == FinishReason::kCancelled) return fail(*not_ready(ServingPhase::kStopping), "cancelled");
      if (reason.empty()) reason = finish_reason_name(event->finish);
    }
    choices.push_back(writer.choices_json());
  }
  std::vector<const Exchange*> all;
  for (const auto& e : job.exchanges) all.push_back(e.get());
  job.finished(reason);
  HttpReply reply;
  reply.headers = job.receipt_headers();
  reply.body = answer_json(job.call, job.facts, choices, job.usage(), receipt_json(all, job.session));
  return reply;
}

void Completions::stream(Job& job, StreamSink& sink) {
  std::string reason;
  auto last_write = Steady::now();
  const auto send = [&](const std::string& bytes) {
    last_write = Steady::now();
    return sink.write(bytes);
  };
  for (std::size_t i = 0; i < job.exchanges.size(); ++i) {
    Exchange& exchange = *job.exchanges[i];
    AnswerWriter writer(job.call, job.facts, exchange, static_cast<int>(i) * job.call.requests[i].n);
    while (!exchange.done()) {
      const std::optional<TextEvent> event = exchange.next(Steady::now() + kPoll);
      if (stopping_.load()) {
        send(sse(error_json(*not_ready(ServingPhase::kStopping))));
        return job.finished("cancelled");
      }
      if (!sink.alive()) return job.finished("cancelled");
      if (!event) {
        if (Steady::now() - last_write >= kKeepAlive && !send(": keep-alive\n\n")) return job.finished("cancelled");
        continue;
      }
      job.note_event();
      if (event->kind == TextEvent::Kind::kFinish) {
        if (event->finish == FinishReason::kError) {
          send(sse(error_json(completion_error(event->error, service_.context_length()))));
          return job.finished("error");
        }
        if (event->finish == FinishReason::kCancelled) {
          send(sse(error_json(*not_ready(ServingPhase::kStopping))));
          return job.finished("cancelled");
        }
        if (reason.empty()) reason = finish_reason_name(event->finish);
      } else if (event->text.empty() && job.call.logprobs < 0) {
        continue;
      }
      if (!send(sse(writer.chunk(*event)))) return job.finished("cancelled");
    }
  }
  if (job.call.include_usage) send(sse(usage_chunk(job.call, job.facts, job.usage())));
  send("data: [DONE]\n\n");
  job.finished(reason);
}

}  // namespace sluice
