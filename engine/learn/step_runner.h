// SPDX-License-Identifier: GPL-3.0-or-later
// The head: the trainer's own copy of the LoRA tensors with its optimiser. Torch-free interface; learn_torch has the real
// one. Used by one thread at a time (the trainer's). Serving never sees a tensor of it, only the files it saves.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "learn/settings.h"
#include "learn/train_batch.h"

namespace sluice {

struct StepStats {
  bool skipped = false;          // a gradient was not finite: nothing moved
  std::string skipped_tensors;   // which ones
  double loss = 0;
  double kl_base = 0;            // nats per token from the reference (LossSettings::kl_reference), sum m w d / sum m w
  double entropy = 0;            // mean per response token
  double clip_fraction = 0;      // share of trained tokens
  double truncated_fraction = 0;
  double grad_norm = 0;          // before clipping
  double lr = 0;                 // used
  double effective_share = 0;    // (sum w)^2 / (n sum w^2) over trained tokens
  double lp_advantage_cov = 0;   // Cov(lp, A): predicts the change of entropy
  std::vector<std::int64_t> too_far;  // samples that added nothing
  // Over samples of age 0 only; what brakes read.
  std::int64_t fresh_tokens = 0;
  std::int64_t fresh_outside = 0;  // ratio outside [0.5, 2]
  double fresh_abs_kl = 0;         // mean |lp_cur - lp_ref|
  double fresh_entropy = 0;
  std::int64_t tokens = 0;         // prompt and response tokens that went through
  double seconds = 0;
  // Of them: the pass of the base for KL, forward, backward, optimiser.
  double reference_seconds = 0, forward_seconds = 0, backward_seconds = 0, update_seconds = 0;
};

// A head kept in memory to come back to; opaque.
class HeadSnapshot {
 public:
  virtual ~HeadSnapshot() = default;
};

struct SavedAdapter {
  std::string content_hash;  // SHA-256, hex, of adapter_model.safetensors
  std::int64_t bytes = 0;    // of that file
  int rank = 0;
};

// Names and values that travel in a checkpoint beside the tensors (baseline sums, batch marks, settings hash ...).
using CheckpointNotes = std::map<std::string, std::string>;

class StepRunner {
 public:
  virtual ~StepRunner() = default;

  // A fresh adapter on the base: A from the seed, B = 0, no moments, step count 0.
  virtual Status reset_to_base(std::uint64_t seed) = 0;
  // Reads a folder that save() wrote, or a plain PEFT folder (then moments and count are 0 and the notes empty).
  virtual Result<CheckpointNotes> load(const std::string& folder) = 0;
  // Writes adapter, config, provenance and trainer.safetensors into the existing folder and syncs each file.
  virtual Result<SavedAdapter> save(const std::string& folder, const CheckpointNotes& notes) = 0;

  // The tensors go to origin + share (head - origin), 0 <= share <= 1; moments and count stay. `origin` is a folder, "" = the
  // base. From the base exactly that share of every weight's change; from an adapter, factor by factor, to second order in
  // the difference. kConflict: the adapter there has other shapes.
  virtual Status shrink(const std::string& origin, double share) = 0;

  virtual Result<std::unique_ptr<HeadSnapshot>> snapshot() = 0;
  virtual Status restore(const HeadSnapshot& snapshot) = 0;

  // Forward, loss, backward, one optimiser update. On failure the head is as it was.
  virtual Result<StepStats> step(const TrainBatch& batch, const LearnSettings& settings) = 0;
  // log softmax(z / tau) of the response tokens under the head, [M]; no update. What a probe of serving is compared with.
  virtual Result<std::vector<float>> log_probs(const TrainBatch& batch) = 0;
};

}  // namespace sluice
