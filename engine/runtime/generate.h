// SPDX-License-Identifier: GPL-3.0-or-later
// One answer without a workspace: the `generate` verb. Blocks; own model context.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/load.h"

namespace sluice {

struct GenerateOptions {
  std::string model_path;      // "" = the bundled model
  std::string adapter_folder;  // "" = the base
  std::string prompt;
  bool raw = false;            // no chat template; markers in the text become their tokens
  int max_tokens = 128;
  float temperature = 0;
  std::uint64_t seed = 0;
  int threads = 0;             // 0 = all cores
};

struct Generated {
  std::vector<TokenId> prompt_ids, token_ids;
  std::vector<float> logprobs;  // of the unmodified logits, one per token
  std::string text;
  std::string finish_reason;    // "stop" or "length"
  std::string adapter;          // "base" or the folder
  double seconds = 0;           // prompt and answer, without loading
};

Result<Generated> generate_once(const GenerateOptions& options);

}  // namespace sluice
