// SPDX-License-Identifier: GPL-3.0-or-later
#include "chat/exchange.h"

#include <algorithm>
#include <cassert>

namespace sluice {

LocalExchange::Choice::Choice(ResponseHandle s, const PreparedExchange& facts)
    : stream(std::move(s)),
      decoder(facts.tokenizer, facts.request.skip_special_tokens),
      stops(facts.request.stop) {}

LocalExchange::LocalExchange(PreparedExchange prepared, std::vector<ResponseHandle> streams, const StartInfo& start,
                             std::string adapter_name, std::shared_ptr<Wakeup> wakeup)
    : facts_(std::move(prepared)),
      version_(start.version),
      adapter_name_(std::move(adapter_name)),
      cached_tokens_(start.cached_tokens),
      wakeup_(std::move(wakeup)),
      finishes_left_(facts_.request.n) {
  assert(streams.size() == 1 || static_cast<int>(streams.size()) == facts_.request.n);
  for (ResponseHandle& stream : streams) choices_.emplace_back(std::move(stream), facts_);
  if (facts_.request.prompt_logprobs >= 0) fill_prompt_logprobs(start);
  if (facts_.echo_text.empty()) return;
  for (std::size_t i = 0; i < choices_.size(); ++i) announce(i, {TextEvent::Kind::kText, 0, facts_.echo_text, {}, {}, {}, {}});
}

LocalExchange::~LocalExchange() {
  if (committed_) return;
  for (Choice& c : choices_) c.stream->cancel();
  // Nobody is left to tell of a failed commit, and nothing was acknowledged.
  (void)commit(false);
}

void LocalExchange::fill_prompt_logprobs(const StartInfo& start) {
  const std::vector<TokenId>& ids = facts_.prompt_ids;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i == 0 || i > start.prompt_scores.size()) {
      prompt_logprobs_.push_back(logprob_of(ids[i], 0, {}));
    } else {
      const bool tops = i <= start.prompt_tops.size();
      prompt_logprobs_.push_back(
          logprob_of(ids[i], start.prompt_scores[i - 1], tops ? start.prompt_tops[i - 1] : std::vector<TopLogprob>()));
    }
  }
}

std::optional<TextEvent> LocalExchange::next(SteadyTime deadline) {
  while (finishes_left_ > 0) {
    const std::uint64_t seen = wakeup_->count();
    if (!ready_.empty()) {
      TextEvent event = std::move(ready_.front());
      ready_.pop_front();
      if (event.kind != TextEvent::Kind::kFinish || --finishes_left_ > 0) return event;
      // The last end is told only when the record is safe.
      const Status kept = commit(true);
      if (!kept.ok() && event.error.ok()) {
        event.finish = FinishReason::kError;
        event.error = unavailable("store unavailable: " + kept.message());
      }
      return event;
    }
    bool news = false;
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      if (choices_[i].ended) continue;
      if (std::optional<TokenEvent> event = choices_[i].stream->try_next()) {
        take(i, std::move(*event));
        news = true;
      }
    }
    if (!news && !wakeup_->wait_past(seen, deadline)) return std::nullopt;
  }
  return std::nullopt;
}

void LocalExchange::cancel() {
  cancelled_ = true;
  for (Choice& c : choices_) c.stream->cancel();
}

CompletionUsage LocalExchange::usage() const {
  CompletionUsage usage;
  usage.prompt_tokens = static_cast<int>(facts_.prompt_ids.size());
  usage.cached_tokens = cached_tokens_;
  for (int i = 0; i < facts_.request.n; ++i) usage.completion_tokens += static_cast<int>(choice(i).token_ids.size());
  return usage;
}

const ChoiceResult& LocalExchange::choice(int index) const {
  assert(index >= 0 && index < facts_.request.n);
  return choices_[choices_.size() == 1 ? 0 : static_cast<std::size_t>(index)].result;
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
    finish(index, FinishReason::kStop, c.stops.match(), {});
    return;
  }
  emit(index, tail + c.stops.flush());
  const bool by_id = event.finish == FinishReason::kStop && !c.result.token_ids.empty();
  finish(index, event.finish, by_id ? stop_reason_of(c.result.token_ids.back()) : std::string(), event.error);
}

void LocalExchange::take_token(std::size_t index, const SampledToken& token) {
  Choice& c = choices_[index];
  const CompletionRequest& request = facts_.request;
  c.result.token_ids.push_back(token.token);
  c.result.lp_full.push_back(token.lp_full);
  c.result.lp_mu.push_back(token.lp_mu);
  if (request.want_logprobs) c.logprobs.push_back(logprob_of(token.token, token.lp_raw, token.top));
  // The id that ends an answer is no part of its text.
  if (std::find(facts_.stop_ids.begin(), facts_.stop_ids.end(), token.token) != facts_.stop_ids.end()) return;
  std::string text = c.decoder.push(token.token);
  if (text.empty()) return;
  if (static_cast<int>(c.result.token_ids.size()) > request.sampling.min_tokens) text = c.stops.push(text);
  if (!c.stops.matched()) {
    if (!text.empty()) emit(index, std::move(text));
    return;
  }
  c.stream->cancel();  // what the engine draws beyond the stop string is nobody's
  emit(index, std::move(text));
  finish(index, FinishReason::kStop, c.stops.match(), {});
}

void LocalExchange::emit(std::size_t index, std::string text) {
  Choice& c = choices_[index];
  if (text.empty() && c.logprobs.empty()) return;
  c.result.text += text;
  announce(index, {TextEvent::Kind::kText, 0, std::move(text), std::exchange(c.logprobs, {}), {}, {}, {}});
}

void LocalExchange::finish(std::size_t index, FinishReason reason, std::string stop_reason, const Status& error) {
  Choice& c = choices_[index];
  c.ended = true;
  // Who cancelled has gone and did not get the whole answer, even if its last token was drawn at that moment.
  if (cancelled_ && reason != FinishReason::kError) reason = FinishReason::kCancelled;
  c.result.finish = reason;
  c.result.stop_reason = reason == FinishReason::kStop ? stop_reason : std::string();
  announce(index, {TextEvent::Kind::kFinish, 0, {}, {}, reason, c.result.stop_reason, error});
}

void LocalExchange::announce(std::size_t index, TextEvent event) {
  event.choice = static_cast<int>(index);
  const int copies = choices_.size() == 1 ? facts_.request.n : 1;
  for (int i = 1; i < copies; ++i) {
    ready_.push_back(event);
    ++event.choice;
  }
  ready_.push_back(std::move(event));
}

std::string LocalExchange::stop_reason_of(TokenId token) const {
  for (const auto& [id, reason] : facts_.stop_reasons) {
    if (id == token) return reason;
  }
  return {};
}

TokenLogprob LocalExchange::logprob_of(TokenId token, float logprob, const std::vector<TopLogprob>& top) const {
  TokenLogprob out{token, std::string(facts_.tokenizer->piece(token)), logprob, {}};
  for (const TopLogprob& t : top) out.top.emplace_back(std::string(facts_.tokenizer->piece(t.token)), t.logprob);
  return out;
}

Status LocalExchange::commit(bool complete) {
  committed_ = true;
  if (!facts_.store) return {};
  std::vector<ChoiceResult> results;
  for (int i = 0; i < facts_.request.n; ++i) {
    results.push_back(choice(i));
    complete = complete && (results.back().finish == FinishReason::kStop || results.back().finish == FinishReason::kLength);
  }
  if (!complete && results.front().finish != FinishReason::kError) results.front().finish = FinishReason::kCancelled;
  RecordFacts facts;
  facts.request = &facts_.request;
  facts.id = facts_.id;
  facts.version = version_;
  facts.adapter_name = adapter_name_;
  facts.prompt_text = facts_.prompt_text;
  facts.prompt_ids = &facts_.prompt_ids;
  facts.choices = &results;
  facts.max_tokens = facts_.max_tokens;
  facts.complete = complete;
  facts.received_us = facts_.received_us;
  facts.timings = choices_.front().timings;
  const Result<RecordRow> kept = facts_.store->add_record(make_record(facts));
  return kept.ok() ? Status() : kept.status();
}

}  // namespace sluice
