// SPDX-License-Identifier: GPL-3.0-or-later
// The conditions of a run, written beside every curve. Pure function.
#pragma once

#include <string>

#include "model_api/model.h"
#include "runtime/runtime.h"

namespace sluice {

std::string conditions_json(const ModelInfo& model, const RuntimeOptions& options, int half_cores);
// "0.1.0"
const char* program_version();

}  // namespace sluice
