// SPDX-License-Identifier: GPL-3.0-or-later
#include "chat/exchange.h"

#include <algorithm>
#include <cassert>

#include "chat/token_offsets.h"
#include "text/utf8.h"

namespace sluice {
namespace {

constexpr std::size_t kMostAtOnce = 32;                      // sequences of one exchange in the engine
constexpr auto kTryAgain = std::chrono::milliseconds(50);    // when none was taken and nothing of ours runs

SteadyTime now() { return std::chrono::steady_clock::now(); }

}  // namespace

Request PreparedExchange::engine_request(std::size_t prompt, int choice) const {
  Request r;
  r.prompt = prompts[prompt].ids;
  r.adapter = request.adapter;
  r.priority = request.priority;
  r.sampling = request.sampling;
  r.sampling.seed += static_cast<std::uint64_t>(choice);
  r.max_tokens = prompts[prompt].max_tokens;
  r.stop_ids = stop_ids;
  r.score_prompt = choice == 0 && request.prompt_logprobs >= 0;
  r.score_top = request.prompt_logprobs;
  return r;
}

LocalExchange::Choice::Choice(const PreparedExchange& facts)
    : decoder(facts.tokenizer, facts.request.skip_special_tokens), stops(facts.request.stop) {}

LocalExchange::LocalExchange(PreparedExchange prepared, Generator& generator, ResponseHandle first, const StartInfo& start,
                             std::string adapter_name, std::shared_ptr<Wakeup> wakeup)
    : facts_(std::move(prepared)),
      generator_(generator),
      per_prompt_(facts_.request.sampling.temperature == 0 ? 1 : index_of(facts_.request.n)),
      version_(start.version),
      adapter_name_(std::move(adapter_name)),
      wakeup_(std::move(wakeup)),
      prompts_(facts_.prompts.size()),
      finishes_left_(static_cast<int>(facts_.prompts.size()) * facts_.request.n) {
  facts_.request.adapter = first->same_version();  // a swap between two choices must not split the exchange
  for (std::size_t i = 0; i < prompts_.size() * per_prompt_; ++i) choices_.emplace_back(facts_);
  choices_.front().stream = std::move(first);
  begin_prompt(0, start);
  submit_more();
}

LocalExchange::~LocalExchange() {
  if (committed_) return;
  for (Choice& c : choices_) {
    if (c.stream) c.stream->cancel();
  }
  // Nobody is left to tell of a failed commit, and nothing was acknowledged.
  (void)commit(false);
}

void LocalExchange::submit_more() {
  while (submitted_ < choices_.size() && submitted_ - ended_ < kMostAtOnce) {
    if (cancelled_) {
      finish(submitted_++, FinishReason::kCancelled, {}, -1, {});
      continue;
    }
    Request request = facts_.engine_request(prompt_of(submitted_), static_cast<int>(submitted_ % per_prompt_));
    request.wakeup = wakeup_;
    Result<ResponseHandle> stream = generator_.submit(std::move(request));
    // The queue is full, or the engine paused or asleep, which those that are answered go through: when one of ours has
    // ended, or a little later.
    const Reason why = stream.ok() ? Reason::kNone : stream.status().reason();
    if (stream.code() == Code::kBusy || why == Reason::kPaused || why == Reason::kAsleep) return;
    if (stream.ok()) {
      choices_[submitted_++].stream = std::move(stream).value();
    } else {
      finish(submitted_++, FinishReason::kError, {}, -1, stream.status());
    }
  }
}

// Nothing of a prompt is told before its scores are known.
bool LocalExchange::prompt_begun(std::size_t prompt) {
  if (prompts_[prompt].begun) return true;
  const ResponseHandle& first = choices_[prompt * per_prompt_].stream;
  if (!first) return false;
  const Result<StartInfo> start = first->wait_started(now());
  if (start.code() == Code::kDeadline) return false;
  begin_prompt(prompt, start.ok() ? *start : StartInfo());  // a failure before the start is told by the stream's end
  return true;
}

void LocalExchange::begin_prompt(std::size_t prompt, const StartInfo& start) {
  Prompt& p = prompts_[prompt];
  p.begun = true;
  p.cached_tokens = start.cached_tokens;
  const std::vector<TokenId>& ids = facts_.prompts[prompt].ids;
  const std::string& echo = facts_.prompts[prompt].echo;
  const std::vector<std::size_t> offsets = token_offsets(*facts_.tokenizer, ids, echo);
  for (std::size_t i = 0; facts_.request.prompt_logprobs >= 0 && i < ids.size(); ++i) {
    const bool known = i > 0 && i <= start.prompt_scores.size();
    const bool tops = known && i <= start.prompt_tops.size();
    p.logprobs.push_back(logprob_of(ids[i], known ? start.prompt_scores[i - 1] : 0, offsets[i],
                                    tops ? start.prompt_tops[i - 1] : std::vector<TopLogprob>()));
  }
  for (std::size_t i = 0; !echo.empty() && i < per_prompt_; ++i) {
    TextEvent event;
    event.text = echo;
    event.echo = true;
    announce(prompt * per_prompt_ + i, std::move(event), ready_);
  }
}

std::optional<TextEvent> LocalExchange::next(SteadyTime deadline) {
  while (finishes_left_ > 0) {
    const std::uint64_t seen = wakeup_->count();
    if (!ready_.empty()) {
      TextEvent event = std::move(ready_.front());
      ready_.pop_front();
      if (event.kind == TextEvent::Kind::kFinish) --finishes_left_;
      return event;
    }
    if (ended_ == choices_.size()) {
      release_ends();
      continue;
    }
    submit_more();
    if (take_news() || !ready_.empty()) continue;
    const bool none_runs = ended_ == submitted_;  // nothing of ours runs, so nothing of ours will wake us
    const SteadyTime limit = none_runs ? std::min(deadline, now() + kTryAgain) : deadline;
    if (!wakeup_->wait_past(seen, limit) && limit == deadline) return std::nullopt;
  }
  return std::nullopt;
}

// An end is told only when the record is safe, and the record waits for the last of them. Where one failed or was cancelled
// there is no whole answer: that is told before the ends of the others.
void LocalExchange::release_ends() {
  const Status kept = commit(true);
  std::stable_partition(ends_.begin(), ends_.end(), [](const TextEvent& end) {
    return end.finish == FinishReason::kError || end.finish == FinishReason::kCancelled;
  });
  for (TextEvent& end : ends_) {
    if (!kept.ok() && end.error.ok()) {
      end.finish = FinishReason::kError;
      end.error = unavailable("store unavailable: " + kept.message());
    }
    ready_.push_back(std::move(end));
  }
  ends_.clear();
}

bool LocalExchange::take_news() {
  bool news = false;
  for (std::size_t i = 0; i < submitted_; ++i) {
    if (choices_[i].ended || !prompt_begun(prompt_of(i))) continue;
    if (std::optional<TokenEvent> event = choices_[i].stream->try_next()) {
      take(i, std::move(*event));
      news = true;
    }
  }
  return news;
}

void LocalExchange::cancel() {
  cancelled_ = true;
  for (Choice& c : choices_) {
    if (c.stream) c.stream->cancel();
  }
}

CompletionUsage LocalExchange::usage() const {
  CompletionUsage usage;
  for (std::size_t p = 0; p < prompts_.size(); ++p) {
    usage.prompt_tokens += static_cast<int>(facts_.prompts[p].ids.size());
    usage.cached_tokens += prompts_[p].cached_tokens;
  }
  const int all = static_cast<int>(prompts_.size()) * facts_.request.n;
  for (int i = 0; i < all; ++i) usage.completion_tokens += static_cast<int>(choice(i).token_ids.size());
  return usage;
}

const ChoiceResult& LocalExchange::choice(int index) const {
  const auto i = index_of(index), n = index_of(facts_.request.n);
  assert(i < prompts_.size() * n);
  return choices_[i / n * per_prompt_ + (per_prompt_ == 1 ? 0 : i % n)].result;
}

void LocalExchange::take(std::size_t index, TokenEvent event) {
  Choice& c = choices_[index];
  c.timings = c.stream->timings();
  if (event.kind == TokenEvent::Kind::kToken) {
    take_token(index, event.token);
    return;
  }
  // The end: what waits for more bytes or for the rest of a stop string goes out now.
  std::string tail = c.stops.push(c.decoder.flush());
  if (c.stops.matched()) {
    emit(index, std::move(tail));
    finish(index, FinishReason::kStop, c.stops.match(), -1, {});
    return;
  }
  emit(index, tail + c.stops.flush());
  std::pair<std::string, TokenId> reason("", -1);
  if (event.finish == FinishReason::kStop && !c.result.token_ids.empty()) reason = stop_reason_of(c.result.token_ids.back());
  finish(index, event.finish, reason.first, reason.second, event.error);
}

void LocalExchange::take_token(std::size_t index, const SampledToken& token) {
  Choice& c = choices_[index];
  const CompletionRequest& request = facts_.request;
  c.result.token_ids.push_back(token.token);
  c.result.lp_full.push_back(token.lp_full);
  c.result.lp_mu.push_back(token.lp_mu);
  if (request.want_logprobs) {
    c.logprobs.push_back(logprob_of(token.token, token.lp_raw, c.decoded + (c.decoder.pending() ? 1 : 0), token.top));
  }
  // The id that ends an answer is no part of its text.
  if (std::find(facts_.stop_ids.begin(), facts_.stop_ids.end(), token.token) != facts_.stop_ids.end()) return;
  std::string text = c.decoder.push(token.token);
  if (text.empty()) return;
  c.decoded += count_code_points(text);
  if (static_cast<int>(c.result.token_ids.size()) > request.sampling.min_tokens) text = c.stops.push(text);
  const bool ends = c.stops.matched();
  if (ends) c.stream->cancel();  // what the engine draws beyond the stop string is nobody's
  emit(index, std::move(text));
  if (ends) finish(index, FinishReason::kStop, c.stops.match(), -1, {});
}

void LocalExchange::emit(std::size_t index, std::string text) {
  if (text.empty()) return;
  Choice& c = choices_[index];
  c.result.text += text;
  TextEvent event;
  event.text = std::move(text);
  event.logprobs = std::exchange(c.logprobs, {});
  announce(index, std::move(event), ready_);
}

void LocalExchange::finish(std::size_t index, FinishReason reason, const std::string& stop_reason, TokenId stop_id,
                           const Status& error) {
  Choice& c = choices_[index];
  c.ended = true;
  ++ended_;
  // Who cancelled has gone and did not get the whole answer, even if its last token was drawn at that moment.
  if (cancelled_ && reason != FinishReason::kError) reason = FinishReason::kCancelled;
  c.result.finish = reason;
  if (reason == FinishReason::kStop) {
    c.result.stop_reason = stop_reason;
    c.result.stop_id = stop_id;
  }
  TextEvent event;
  event.kind = TextEvent::Kind::kFinish;
  event.logprobs = std::exchange(c.logprobs, {});
  event.finish = reason;
  event.stop_reason = c.result.stop_reason;
  event.stop_id = c.result.stop_id;
  event.error = error;
  // A failure promises nothing, so it need not wait for the others.
  const bool at_once = reason == FinishReason::kError && ended_ < choices_.size();
  announce(index, std::move(event), at_once ? ready_ : ends_);
}

void LocalExchange::announce(std::size_t index, TextEvent event, std::deque<TextEvent>& queue) const {
  const int n = facts_.request.n;
  event.choice = static_cast<int>(prompt_of(index)) * n + static_cast<int>(index % per_prompt_);
  const int copies = per_prompt_ == 1 ? n : 1;
  for (int i = 1; i < copies; ++i) {
    queue.push_back(event);
    ++event.choice;
  }
  queue.push_back(std::move(event));
}

// What to tell of the id that ended an answer: "" for EOS.
std::pair<std::string, TokenId> LocalExchange::stop_reason_of(TokenId token) const {
  for (const auto& [id, text] : facts_.stop_reasons) {
    if (id != token) continue;
    if (text.empty()) return {std::to_string(id), id};
    return {text, -1};
  }
  return {"", -1};
}

TokenLogprob LocalExchange::logprob_of(TokenId token, float logprob, std::size_t offset,
                                       const std::vector<TopLogprob>& top) const {
  TokenLogprob out{token, std::string(facts_.tokenizer->piece(token)), logprob, offset, {}};
  for (const TopLogprob& t : top) out.top.emplace_back(std::string(facts_.tokenizer->piece(t.token)), t.logprob);
  return out;
}

Status LocalExchange::commit(bool complete) {
  committed_ = true;
  if (!facts_.store) return {};
  std::vector<ChoiceResult> results;
  const int all = static_cast<int>(prompts_.size()) * facts_.request.n;
  for (int i = 0; i < all; ++i) {
    results.push_back(choice(i));
    complete = complete && (results.back().finish == FinishReason::kStop || results.back().finish == FinishReason::kLength);
  }
  if (!complete && results.front().finish != FinishReason::kError) results.front().finish = FinishReason::kCancelled;
  RecordFacts facts;
  facts.request = &facts_.request;
  facts.id = facts_.id;
  facts.version = version_;
  facts.adapter_name = adapter_name_;
  for (const PreparedPrompt& p : facts_.prompts) facts.prompts.push_back({p.text, &p.ids, p.max_tokens});
  facts.choices = &results;
  facts.complete = complete;
  facts.received_us = facts_.received_us;
  facts.timings = choices_.front().timings;
  const Result<RecordRow> kept = facts_.store->add_record(make_record(facts));
  return kept.ok() ? Status() : kept.status();
}

}  // namespace sluice
