// SPDX-License-Identifier: GPL-3.0-or-later
#include "learn_torch/probe_score.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>

#include <numeric>

#include "learn_torch/guarded_at.h"
#include "model/lora_at.h"
#include "model/peft_folder.h"
#include "model/train_forward_at.h"
#include "model/transformer.h"

namespace sluice {

Result<std::vector<float>> score_as_training(const Model& model, const std::string& folder, const ProbeText& text, int threads) {
  return guarded("Scoring a probe", [&]() -> Result<std::vector<float>> {
    const std::shared_ptr<const TransformerWeights> weights = model_weights(model);
    if (weights == nullptr) return invalid_argument("the model \"" + model.info().name + "\" has no weights to train on");
    if (text.prompt.empty() || text.answer.empty()) return invalid_argument("a probe needs a prompt and an answer");
    SLUICE_ASSIGN_OR_RETURN(const LoraData data, read_adapter_for(folder, *weights));

    at::set_num_threads(threads);
    at::NoGradGuard no_grad;
    const LoraTensors lora = lora_from_data(data, weights->config);
    std::vector<TokenId> ids(text.prompt.begin(), text.prompt.end());
    ids.insert(ids.end(), text.answer.begin(), text.answer.end() - 1);  // the last token is only predicted
    std::vector<std::int32_t> positions(ids.size());
    std::iota(positions.begin(), positions.end(), 0);
    const std::vector<std::int32_t> starts = {0, static_cast<std::int32_t>(ids.size())};
    SLUICE_ASSIGN_OR_RETURN(const at::Tensor hidden, train_forward(*weights, &lora, {ids, positions, starts}));
    std::vector<std::int64_t> targets(text.answer.begin(), text.answer.end());
    const auto n = static_cast<std::int64_t>(targets.size());
    SLUICE_ASSIGN_OR_RETURN(const LogprobOutput scored,
                            chunked_logprob(*weights, hidden.narrow(0, static_cast<std::int64_t>(text.prompt.size()) - 1, n),
                                            at::from_blob(targets.data(), {n}, at::kLong), at::full({n}, text.temperature)));
    const at::Tensor lp = scored.lp.contiguous();
    return std::vector<float>(lp.const_data_ptr<float>(), lp.const_data_ptr<float>() + n);
  });
}

}  // namespace sluice
