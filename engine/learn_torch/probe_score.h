// SPDX-License-Identifier: GPL-3.0-or-later
// The trainer's side of a probe (gate.md §3.1): what training computes for an answer that serving gave. It reads a stored
// adapter and the weights that serving and training share, and touches no head, so it may run beside a training step; torch-free
// header.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model_api/model.h"

namespace sluice {

struct ProbeText {
  std::span<const std::int32_t> prompt, answer;  // neither empty
  float temperature = 1;                         // above 0
};

// log softmax(z / T) of each token of the answer, [answer]: the adapter of `folder` in f32, no graph, no optimiser. Sets the
// calling thread's cores to `threads`. kInvalidArgument: not one of load_model()'s models, an empty text, a token or
// temperature that can't be; kCorrupt, kNotFound: the folder.
Result<std::vector<float>> score_as_training(const Model& model, const std::string& folder, const ProbeText& text, int threads);

}  // namespace sluice
