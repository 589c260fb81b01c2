// SPDX-License-Identifier: GPL-3.0-or-later
// trainer.safetensors: everything of a checkpoint but the adapter itself (learning.md §8). Functions over files.
#pragma once

#include <string>

#include "base/result.h"
#include "learn/step_runner.h"
#include "learn_torch/adamw.h"

namespace sluice {

struct TrainerFile {
  AdamW optimiser;
  CheckpointNotes notes;
};

// Writes and syncs the file; equal input gives equal bytes.
Status write_trainer_file(const std::string& path, const AdamW& optimiser, const CheckpointNotes& notes);
// kNotFound: no such file. kCorrupt names what does not fit, `parameters` values per moment included.
Result<TrainerFile> read_trainer_file(const std::string& path, std::size_t parameters);

}  // namespace sluice
