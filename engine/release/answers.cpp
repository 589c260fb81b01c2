// SPDX-License-Identifier: GPL-3.0-or-later
#include "release/answers.h"

#include "model_api/temperature.h"

namespace sluice {
namespace {

class PendingChat final : public PendingAnswer {
 public:
  PendingChat(std::unique_ptr<Exchange> exchange, const Store& store, bool want_speed)
      : exchange_(std::move(exchange)), store_(store), want_speed_(want_speed) {}

  std::optional<Result<ShadowAnswer>> wait(SteadyTime deadline) override {
    while (!exchange_->done()) {
      const std::optional<TextEvent> event = exchange_->next(deadline);
      if (!event) return std::nullopt;
      if (event->kind != TextEvent::Kind::kFinish) continue;
      if (!event->error.ok()) return Result<ShadowAnswer>(event->error);
      if (event->finish == FinishReason::kCancelled) return Result<ShadowAnswer>(cancelled("the answer was cancelled"));
    }
    return whole();
  }

 private:
  Result<ShadowAnswer> whole() const {
    const ChoiceResult& choice = exchange_->choice(0);
    ShadowAnswer out;
    out.record = exchange_->record_id();
    out.text = choice.text;
    out.prompt_ids = exchange_->prompt_ids();
    out.token_ids = choice.token_ids;
    out.lp_full = choice.lp_full;
    out.finished = choice.finish == FinishReason::kStop;
    if (want_speed_ && choice.token_ids.size() > 1) {
      if (const auto row = store_.record(out.record)) {
        out.us_per_token = static_cast<double>(row->decode_us) / static_cast<double>(choice.token_ids.size() - 1);
      }
    }
    return out;
  }

  std::unique_ptr<Exchange> exchange_;
  const Store& store_;
  const bool want_speed_;
};

ChatMessage message(const char* role, const std::string& text) {
  ChatMessage out;
  out.role = role;
  out.content = text;
  return out;
}

}  // namespace

ChatAnswers::ChatAnswers(CompletionService& service, const Store& store, const TaskRecipe& recipe, SessionId session)
    : service_(service), store_(store), recipe_(recipe), session_(session) {}

Result<std::unique_ptr<PendingAnswer>> ChatAnswers::start(const VersionPass& pass, const TaskPrompt& prompt,
                                                          std::uint64_t seed, Purpose purpose,
                                                          const std::function<bool()>& gone) {
  CompletionRequest request;
  request.messages.emplace();
  if (!recipe_.system_prompt.empty()) request.messages->push_back(message("system", recipe_.system_prompt));
  request.messages->push_back(message("user", prompt.text));
  request.sampling.temperature = static_cast<float>(recipe_.sampling.temperature);
  request.sampling.top_p = static_cast<float>(recipe_.sampling.top_p);
  request.sampling.seed = seed;
  request.max_tokens = recipe_.sampling.max_tokens;
  request.adapter = AdapterChoice::with(pass);
  request.priority = Priority::kGate;
  request.purpose = purpose;
  request.split = Split::kHeldOut;
  request.session = session_;
  request.group_key = prompt.group;
  request.route = "gate";
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<Exchange> exchange, service_.start(std::move(request), gone));
  return std::unique_ptr<PendingAnswer>(
      std::make_unique<PendingChat>(std::move(exchange), store_, purpose == Purpose::kProbe));
}

Result<std::vector<float>> ChatAnswers::score(const VersionPass& pass, const ShadowAnswer& answer) {
  std::vector<TokenId> ids = answer.prompt_ids;
  ids.insert(ids.end(), answer.token_ids.begin(), answer.token_ids.end());
  return service_.score(ids, static_cast<int>(answer.prompt_ids.size()),
                        recorded_temperature(static_cast<float>(recipe_.sampling.temperature)), AdapterChoice::with(pass));
}

}  // namespace sluice
