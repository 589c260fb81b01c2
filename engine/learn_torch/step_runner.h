// SPDX-License-Identifier: GPL-3.0-or-later
// The real head: LoRA tensors, optimiser and training forward over the weights that also serve. Torch-free header. Like
// every StepRunner it belongs to one thread at a time; it sets that thread's core count itself.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "learn/step_runner.h"
#include "model_api/model.h"

namespace sluice {

struct StepRunnerOptions {
  LoraSettings lora;
  int threads = 1;  // cores of a step
};

// Starts as a fresh adapter on the base, seed 0. kInvalidArgument: the model is not one of load_model()'s, or no LoRA of this
// rank fits it.
Result<std::unique_ptr<StepRunner>> make_step_runner(std::shared_ptr<const Model> model, const StepRunnerOptions& options);

}  // namespace sluice
