// SPDX-License-Identifier: GPL-3.0-or-later
#include "serve/request.h"

#include <cmath>

namespace sluice {
namespace {

constexpr std::size_t kMaxBiases = 1024;
constexpr int kMaxTop = 20;

std::string number(float value) {
  std::string text = std::to_string(value);
  while (text.size() > 1 && text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

// NaN fails both comparisons, so it is refused too.
Status check_range(const char* field, float value, float least, float most) {
  if (value >= least && value <= most) return {};
  return invalid_argument(std::string(field) + " is " + number(value) + ", must be " + number(least) + " to " + number(most));
}

Status check_token(const std::string& field, TokenId token, int vocab_size) {
  if (token >= 0 && token < vocab_size) return {};
  return invalid_argument(field + " holds token id " + std::to_string(token) + "; the vocabulary has ids 0 to " +
                          std::to_string(vocab_size - 1));
}

Status check_tokens(const char* field, const std::vector<TokenId>& tokens, int vocab_size) {
  for (const TokenId token : tokens) SLUICE_RETURN_IF_ERROR(check_token(field, token, vocab_size));
  return {};
}

Status check_top(const char* field, int value) {
  if (value >= -1 && value <= kMaxTop) return {};
  return invalid_argument(std::string(field) + " is " + std::to_string(value) + ", must be 0 to " + std::to_string(kMaxTop));
}

Status check_sampling(const SamplingParams& s, int vocab_size) {
  SLUICE_RETURN_IF_ERROR(check_range("temperature", s.temperature, 0, 2));
  SLUICE_RETURN_IF_ERROR(check_range("top_p", s.top_p, 0, 1));
  SLUICE_RETURN_IF_ERROR(check_range("min_p", s.min_p, 0, 1));
  SLUICE_RETURN_IF_ERROR(check_range("presence_penalty", s.presence_penalty, -2, 2));
  SLUICE_RETURN_IF_ERROR(check_range("frequency_penalty", s.frequency_penalty, -2, 2));
  SLUICE_RETURN_IF_ERROR(check_range("repetition_penalty", s.repetition_penalty, 0, 10));
  if (s.repetition_penalty == 0) return invalid_argument("repetition_penalty is 0, must be above 0");
  if (s.logit_bias.size() > kMaxBiases) {
    return invalid_argument("logit_bias has " + std::to_string(s.logit_bias.size()) + " entries, at most " +
                            std::to_string(kMaxBiases) + " are allowed");
  }
  for (const auto& [token, bias] : s.logit_bias) {
    SLUICE_RETURN_IF_ERROR(check_token("logit_bias", token, vocab_size));
    SLUICE_RETURN_IF_ERROR(check_range("logit_bias", bias, -100, 100));
  }
  if (s.min_tokens < 0) return invalid_argument("min_tokens is negative");
  SLUICE_RETURN_IF_ERROR(check_tokens("suppress_tokens", s.suppress_tokens, vocab_size));
  return check_top("top_logprobs", s.top_logprobs);
}

}  // namespace

const char* finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop: return "stop";
    case FinishReason::kLength: return "length";
    case FinishReason::kCancelled: return "cancelled";
    case FinishReason::kError: return "error";
  }
  return "error";
}

void Wakeup::signal() {
  MutexLock lock(mu_);
  ++count_;
  changed_.notify_all();
}

std::uint64_t Wakeup::count() const {
  MutexLock lock(mu_);
  return count_;
}

bool Wakeup::wait_past(std::uint64_t seen, SteadyTime deadline) {
  MutexLock lock(mu_);
  while (count_ <= seen) {
    if (!changed_.wait_until(mu_, deadline)) return count_ > seen;
  }
  return true;
}

Status check_request(const Request& request, const ModelInfo& model, int context_length) {
  if (request.prompt.empty()) return invalid_argument("the prompt is empty: it must hold at least one token");
  if (request.prompt.size() >= static_cast<std::size_t>(context_length)) {
    return invalid_argument("the prompt has " + std::to_string(request.prompt.size()) +
                            " tokens, but the maximum context length is " + std::to_string(context_length) +
                            " tokens, the answer included: shorten the prompt")
        .with(Reason::kContextLength, static_cast<std::int64_t>(request.prompt.size()));
  }
  SLUICE_RETURN_IF_ERROR(check_tokens("prompt", request.prompt, model.vocab_size));
  SLUICE_RETURN_IF_ERROR(check_tokens("stop_token_ids", request.stop_ids, model.vocab_size));
  SLUICE_RETURN_IF_ERROR(check_sampling(request.sampling, model.vocab_size));
  if (request.max_tokens < 0) return invalid_argument("max_tokens is negative");
  if (!(request.score_temperature > 0) || !std::isfinite(request.score_temperature)) {
    return invalid_argument("the temperature to score at must be a number above 0");
  }
  return check_top("prompt_logprobs", request.score_top);
}

}  // namespace sluice
