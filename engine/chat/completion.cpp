// SPDX-License-Identifier: GPL-3.0-or-later
#include "chat/completion.h"

#include <algorithm>

#include "chat/exchange.h"

namespace sluice {
namespace {

constexpr int kMaxChoices = 16;
constexpr std::size_t kMaxStops = 16;
constexpr std::size_t kMaxStopIds = 64;
constexpr std::size_t kMaxStopChars = 256;
constexpr auto kPoll = std::chrono::milliseconds(50);  // how often a waiting caller asks whether its client is gone

// Far enough that nobody waits it out, near enough that clocks can add to it.
SteadyTime no_deadline() { return std::chrono::steady_clock::now() + std::chrono::hours(24 * 365); }

std::size_t code_points(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

Status check(const CompletionRequest& request) {
  const int prompts = int{request.messages.has_value()} + int{request.prompt.has_value()} + int{request.prompt_ids.has_value()};
  if (prompts != 1) return invalid_argument("a request needs exactly one of messages, prompt and prompt ids");
  if (request.messages && request.messages->empty()) return invalid_argument("messages is empty: it must hold at least one");
  if (request.n < 1 || request.n > kMaxChoices) {
    return invalid_argument("n is " + std::to_string(request.n) + ", must be 1 to " + std::to_string(kMaxChoices));
  }
  if (request.max_tokens < -1) return invalid_argument("max_tokens is negative");
  if (request.stop.size() > kMaxStops) {
    return invalid_argument("stop has " + std::to_string(request.stop.size()) + " strings, at most " +
                            std::to_string(kMaxStops) + " are allowed");
  }
  for (const std::string& stop : request.stop) {
    if (stop.empty()) return invalid_argument("stop holds an empty string");
    if (code_points(stop) > kMaxStopChars) {
      return invalid_argument("stop holds a string of more than " + std::to_string(kMaxStopChars) + " characters");
    }
  }
  if (request.stop_token_ids.size() > kMaxStopIds) {
    return invalid_argument("stop_token_ids has " + std::to_string(request.stop_token_ids.size()) + " ids, at most " +
                            std::to_string(kMaxStopIds) + " are allowed");
  }
  return {};
}

Status fill_prompt(const ChatTemplate* chat_template, const Tokenizer& tokenizer, PreparedExchange& p) {
  const CompletionRequest& request = p.request;
  std::string whole;
  if (request.messages) {
    if (!chat_template) return invalid_argument("this model has no chat template: send a prompt instead of messages");
    SLUICE_ASSIGN_OR_RETURN(const std::vector<Segment> segments, chat_template->render(*request.messages, request.render));
    SLUICE_ASSIGN_OR_RETURN(p.prompt_ids, encode_segments(tokenizer, segments));
    p.prompt_text = prompt_text_of(*request.messages);
    if (request.echo) whole = join_segments(segments);
  } else if (request.prompt) {
    SLUICE_ASSIGN_OR_RETURN(p.prompt_ids, tokenizer.encode(*request.prompt, {request.parse_special, request.add_special}));
    p.prompt_text = whole = *request.prompt;
  } else {
    p.prompt_ids = *request.prompt_ids;
    for (const TokenId id : p.prompt_ids) {
      if (id >= 0 && id < tokenizer.size()) continue;
      return invalid_argument("prompt holds token id " + std::to_string(id) + "; the vocabulary has ids 0 to " +
                              std::to_string(tokenizer.size() - 1));
    }
    p.prompt_text = whole = tokenizer.decode(p.prompt_ids, request.skip_special_tokens);
  }
  if (request.echo) p.echo_text = std::move(whole);
  if (p.prompt_ids.empty()) return invalid_argument("the prompt is empty, and this model adds no token in front of it: send some text");
  return {};
}

Status fill_max_tokens(int context_length, PreparedExchange& p) {
  const auto length = static_cast<int>(std::min<std::size_t>(p.prompt_ids.size(), static_cast<std::size_t>(context_length)));
  if (length >= context_length) {
    return invalid_argument("This model's maximum context length is " + std::to_string(context_length) +
                            " tokens, but the prompt has " + std::to_string(p.prompt_ids.size()) +
                            " tokens. Shorten the prompt so that room is left for an answer.");
  }
  const int left = context_length - length;
  p.max_tokens = p.request.max_tokens < 0 ? left : std::min(p.request.max_tokens, left);
  return {};
}

// EOS unless ignored, the ids asked for, and stop strings that are one special token's text.
void fill_stops(const Tokenizer& tokenizer, PreparedExchange& p) {
  for (const TokenId id : p.request.stop_token_ids) p.stop_reasons.emplace_back(id, std::to_string(id));
  for (const std::string& stop : p.request.stop) {
    if (const auto id = tokenizer.special_id(stop)) p.stop_reasons.emplace_back(*id, stop);
  }
  for (const auto& [id, reason] : p.stop_reasons) p.stop_ids.push_back(id);
  if (!p.request.ignore_eos) {
    const auto& ends = tokenizer.end_of_generation();
    p.stop_ids.insert(p.stop_ids.end(), ends.begin(), ends.end());
  }
  SamplingParams& sampling = p.request.sampling;
  if (sampling.min_tokens <= 0) return;
  sampling.suppress_tokens.insert(sampling.suppress_tokens.end(), p.stop_ids.begin(), p.stop_ids.end());
}

Request engine_request(const PreparedExchange& p, std::shared_ptr<Wakeup> wakeup) {
  Request r;
  r.prompt = p.prompt_ids;
  r.adapter = p.request.adapter;
  r.priority = p.request.priority;
  r.sampling = p.request.sampling;
  r.max_tokens = p.max_tokens;
  r.stop_ids = p.stop_ids;
  r.score_prompt = p.request.prompt_logprobs >= 0;
  r.score_top = p.request.prompt_logprobs;
  r.wakeup = std::move(wakeup);
  return r;
}

Result<StartInfo> wait_started(ResponseHandle& stream, const std::function<bool()>& gone) {
  if (!gone) return stream->wait_started(no_deadline());
  while (true) {
    Result<StartInfo> start = stream->wait_started(std::chrono::steady_clock::now() + kPoll);
    if (start.code() != Code::kDeadline) return start;
    if (gone()) return cancelled("the client went away while its request waited");
  }
}

}  // namespace

CompletionService::CompletionService(Generator& generator, std::shared_ptr<const Tokenizer> tokenizer,
                                     std::shared_ptr<const ChatTemplate> chat_template, Store* store, NameOf name_of,
                                     const Clock& clock)
    : generator_(generator),
      tokenizer_(std::move(tokenizer)),
      chat_template_(std::move(chat_template)),
      store_(store),
      name_of_(std::move(name_of)),
      clock_(clock) {}

Result<std::unique_ptr<Exchange>> CompletionService::start(CompletionRequest request, const std::function<bool()>& gone) {
  SLUICE_RETURN_IF_ERROR(check(request));
  PreparedExchange p;
  p.id = RecordId::make();
  p.received_us = clock_.wall_us();
  p.tokenizer = tokenizer_;
  p.store = request.store_record ? store_ : nullptr;
  p.request = std::move(request);
  SLUICE_RETURN_IF_ERROR(fill_prompt(chat_template_.get(), *tokenizer_, p));
  SLUICE_RETURN_IF_ERROR(fill_max_tokens(generator_.context_length(), p));
  fill_stops(*tokenizer_, p);

  const auto wakeup = std::make_shared<Wakeup>();
  Request base = engine_request(p, wakeup);
  std::vector<ResponseHandle> streams;
  SLUICE_ASSIGN_OR_RETURN(ResponseHandle first, generator_.submit(base));
  SLUICE_ASSIGN_OR_RETURN(const StartInfo started, wait_started(first, gone));
  base.adapter = first->same_version();  // a swap between two choices must not split the exchange
  base.score_prompt = false;
  streams.push_back(std::move(first));
  const int more = p.request.sampling.temperature == 0 ? 0 : p.request.n - 1;  // greedy choices are equal: one is computed
  for (int i = 1; i <= more; ++i) {
    base.sampling.seed = p.request.sampling.seed + static_cast<std::uint64_t>(i);
    SLUICE_ASSIGN_OR_RETURN(ResponseHandle stream, generator_.submit(base));
    streams.push_back(std::move(stream));
  }
  return std::unique_ptr<Exchange>(
      std::make_unique<LocalExchange>(std::move(p), std::move(streams), started, name_of_(started.version), wakeup));
}

Result<Completion> CompletionService::complete(CompletionRequest request, const std::atomic<bool>* cancel) {
  const std::function<bool()> gone = [cancel] { return cancel->load(); };
  SLUICE_ASSIGN_OR_RETURN(const std::unique_ptr<Exchange> exchange,
                          start(std::move(request), cancel ? gone : std::function<bool()>()));
  Completion out;
  Status error;
  bool cancelled_here = false;
  while (!exchange->done()) {
    const auto event = exchange->next(cancel ? std::chrono::steady_clock::now() + kPoll : no_deadline());
    if (cancel && !cancelled_here && cancel->load()) {
      exchange->cancel();
      cancelled_here = true;
    }
    if (!event) continue;
    if (event->kind == TextEvent::Kind::kText) {
      if (event->choice == 0) out.text += event->text;
      continue;
    }
    if (event->choice == 0) out.finish = event->finish;
    if (error.ok() && event->finish == FinishReason::kError) error = event->error;
    if (error.ok() && event->finish == FinishReason::kCancelled) error = cancelled("the completion was cancelled");
  }
  if (!error.ok()) return error;
  out.record = exchange->record_id();
  out.version = exchange->version();
  out.adapter_name = exchange->adapter_name();
  out.seed = exchange->seed();
  out.prompt_ids = exchange->prompt_ids();
  out.token_ids = exchange->choice(0).token_ids;
  out.lp_full = exchange->choice(0).lp_full;
  out.usage = exchange->usage();
  return out;
}

Result<std::vector<float>> CompletionService::score(const std::vector<TokenId>& ids, int prompt_len, float temperature,
                                                    AdapterChoice adapter) {
  if (prompt_len < 1 || static_cast<std::size_t>(prompt_len) > ids.size()) {
    return invalid_argument("prompt_len is " + std::to_string(prompt_len) + ", must be 1 to the number of ids (" +
                            std::to_string(ids.size()) + ")");
  }
  Request r;
  r.prompt = ids;
  r.adapter = std::move(adapter);
  r.priority = Priority::kGate;
  r.max_tokens = 0;
  r.score_prompt = true;
  r.score_temperature = temperature;
  SLUICE_ASSIGN_OR_RETURN(ResponseHandle stream, generator_.submit(std::move(r)));
  SLUICE_ASSIGN_OR_RETURN(StartInfo started, stream->wait_started(no_deadline()));
  std::vector<float>& scores = started.prompt_scores;
  scores.erase(scores.begin(), scores.begin() + (prompt_len - 1));
  return std::move(scores);
}

}  // namespace sluice
