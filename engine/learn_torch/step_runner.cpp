// SPDX-License-Identifier: GPL-3.0-or-later
#include "learn_torch/step_runner.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>

#include "learn/reference_loss.h"
#include "learn_torch/adamw.h"
#include "learn_torch/checkpoint.h"
#include "learn_torch/guarded_at.h"
#include "learn_torch/micro_batch.h"
#include "learn_torch/objective_at.h"
#include "learn_torch/step_stats.h"
#include "model/lora_at.h"
#include "model/peft_folder.h"
#include "model/train_forward_at.h"

namespace sluice {
namespace {

const char kTrainerFile[] = "/trainer.safetensors";

at::Tensor view_of(std::vector<float>& values) {
  return at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, at::TensorOptions().dtype(at::kFloat));
}

at::Tensor view_of(std::vector<std::int64_t>& values) {
  return at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, at::TensorOptions().dtype(at::kLong));
}

at::Tensor view_of(std::vector<std::int32_t>& values) {
  return at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, at::TensorOptions().dtype(at::kInt));
}

std::vector<float> floats(const at::Tensor& t) {
  const at::Tensor c = t.detach().contiguous();
  return {c.const_data_ptr<float>(), c.const_data_ptr<float>() + c.numel()};
}

std::vector<std::uint8_t> flags(const at::Tensor& t) {
  const at::Tensor c = t.contiguous();
  return {c.const_data_ptr<bool>(), c.const_data_ptr<bool>() + c.numel()};
}

// Bytes the system could give without swapping; 0 where it does not say.
std::int64_t available_memory() {
  std::ifstream in("/proc/meminfo");
  std::string name;
  std::int64_t kib = 0;
  while (in >> name >> kib) {
    if (name == "MemAvailable:") return kib * 1024;
    std::getline(in, name);
  }
  return 0;
}

struct Snapshot : HeadSnapshot {
  LoraTensors lora;
  AdamW optimiser;
};

// The per-token constants of a piece, beside what the graph computes.
struct PieceVectors {
  std::vector<float> lp_full, advantage, factor, kl_factor;
  std::vector<std::int32_t> age;
};

class TorchStepRunner final : public StepRunner {
 public:
  TorchStepRunner(std::shared_ptr<const Model> model, std::shared_ptr<const TransformerWeights> weights,
                  const StepRunnerOptions& options)
      : model_(std::move(model)), weights_(std::move(weights)), options_(options) {}

  Status reset_to_base(std::uint64_t seed) override;
  Result<CheckpointNotes> load(const std::string& folder) override;
  Result<SavedAdapter> save(const std::string& folder, const CheckpointNotes& notes) override;
  Status shrink(const std::string& origin, double share) override;
  Result<std::unique_ptr<HeadSnapshot>> snapshot() override;
  Status restore(const HeadSnapshot& snapshot) override;
  Result<StepStats> step(const TrainBatch& batch, const LearnSettings& settings) override;
  Result<std::vector<float>> log_probs(const TrainBatch& batch) override;

 private:
  void set_head(LoraTensors lora, AdamW optimiser);
  Result<LogprobOutput> forward(MicroBatch& piece, const LoraTensors* lora) const;
  // is_base: a reference is needed and the head still adds nothing, so its own pass is the reference's.
  Status train_piece(const TrainBatch& batch, MicroBatch& piece, const LearnSettings& settings, bool is_base,
                     const std::vector<double>& scale, StatSums& sums, StepStats& stats);
  std::string modules_with_bad_gradients() const;

  std::shared_ptr<const Model> model_;
  std::shared_ptr<const TransformerWeights> weights_;
  const StepRunnerOptions options_;
  LoraTensors lora_;
  AdamW optimiser_;
};

// Adds the time since it was made, or since the last lap, to a sum.
class Laps {
 public:
  void lap(double& sum) {
    const auto now = std::chrono::steady_clock::now();
    sum += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

void TorchStepRunner::set_head(LoraTensors lora, AdamW optimiser) {
  lora_ = std::move(lora);
  optimiser_ = std::move(optimiser);
}

Status TorchStepRunner::reset_to_base(std::uint64_t seed) {
  return guarded("Making a new adapter", [&]() -> Status {
    LoraConfig config;
    config.rank = options_.lora.rank;
    config.alpha = options_.lora.alpha;
    SLUICE_ASSIGN_OR_RETURN(LoraTensors lora, init_lora(weights_->config, config, seed));
    const auto parameters = static_cast<std::size_t>(lora.parameters());
    set_head(std::move(lora), AdamW(parameters));
    return Status::ok_status();
  });
}

Result<CheckpointNotes> TorchStepRunner::load(const std::string& folder) {
  return guarded("Loading an adapter", [&]() -> Result<CheckpointNotes> {
    SLUICE_ASSIGN_OR_RETURN(const LoraData data, read_adapter_for(folder, *weights_));
    LoraTensors lora = lora_from_data(data, weights_->config);
    const auto parameters = static_cast<std::size_t>(lora.parameters());
    TrainerFile file{AdamW(parameters), {}};
    if (std::filesystem::exists(folder + kTrainerFile)) {
      SLUICE_ASSIGN_OR_RETURN(file, read_trainer_file(folder + kTrainerFile, parameters));
    }
    set_head(std::move(lora), std::move(file.optimiser));
    return file.notes;
  });
}

Result<SavedAdapter> TorchStepRunner::save(const std::string& folder, const CheckpointNotes& notes) {
  return guarded("Saving an adapter", [&]() -> Result<SavedAdapter> {
    const LoraData data = lora_to_data(lora_);
    SavedAdapter out;
    SLUICE_ASSIGN_OR_RETURN(out.content_hash, write_peft_folder(folder, data, weights_->config, model_->info().name));
    std::map<std::string, std::string> facts;
    for (const char* name : {"parent", "head_step", "step", "session", "label"}) {
      if (auto it = notes.find(name); it != notes.end()) facts[name] = it->second;
    }
    SLUICE_RETURN_IF_ERROR(write_provenance(folder, weights_->content_hash, facts));
    SLUICE_RETURN_IF_ERROR(write_trainer_file(folder + kTrainerFile, optimiser_, notes));
    out.bytes = static_cast<std::int64_t>(std::filesystem::file_size(folder + "/adapter_model.safetensors"));
    for (const LoraModule& module : lora_.modules) out.rank = std::max(out.rank, module.rank);
    return out;
  });
}

Status TorchStepRunner::shrink(const std::string& origin, double share) {
  return guarded("Shrinking an adapter", [&]() -> Status {
    at::NoGradGuard no_grad;
    if (origin.empty()) {
      for (LoraModule& module : lora_.modules) module.b.mul_(share);
      return Status::ok_status();
    }
    SLUICE_ASSIGN_OR_RETURN(const LoraData data, read_peft_folder(origin, weights_->config));
    const LoraTensors from = lora_from_data(data, weights_->config);
    const auto same = [](const LoraModule& x, const LoraModule& y) {
      return x.name == y.name && x.rank == y.rank && x.alpha == y.alpha;
    };
    if (!std::equal(lora_.modules.begin(), lora_.modules.end(), from.modules.begin(), from.modules.end(), same)) {
      return conflict("the adapter in " + origin + " has other layers, rank or alpha than the one being trained");
    }
    lora_.flat.lerp_(from.flat, 1 - share);
    return Status::ok_status();
  });
}

Result<std::unique_ptr<HeadSnapshot>> TorchStepRunner::snapshot() {
  return guarded("Keeping the head", [&]() -> Result<std::unique_ptr<HeadSnapshot>> {
    auto out = std::make_unique<Snapshot>();
    out->lora = clone_lora(lora_, weights_->config);
    out->optimiser = optimiser_;
    return std::unique_ptr<HeadSnapshot>(std::move(out));
  });
}

Status TorchStepRunner::restore(const HeadSnapshot& snapshot) {
  return guarded("Going back to the head", [&]() -> Status {
    const auto& kept = static_cast<const Snapshot&>(snapshot);
    set_head(clone_lora(kept.lora, weights_->config), kept.optimiser);
    return Status::ok_status();
  });
}

// Log-probs of the piece's response tokens; only rows that predict one enter the output head.
Result<LogprobOutput> TorchStepRunner::forward(MicroBatch& piece, const LoraTensors* lora) const {
  const PackedSequences packed{piece.ids, piece.pos, piece.seq_start};
  TrainForwardOptions options;
  if (lora != nullptr && at::GradMode::is_enabled()) {
    const auto tokens = static_cast<std::int64_t>(piece.ids.size());
    const std::int64_t free = available_memory();
    options.checkpoint = free > 0 && activation_bytes(weights_->config, lora->config, tokens, false) > free / 4;
  }
  SLUICE_ASSIGN_OR_RETURN(const at::Tensor hidden, train_forward(*weights_, lora, packed, options));
  return chunked_logprob(*weights_, hidden.index_select(0, view_of(piece.resp_index)), view_of(piece.target),
                         view_of(piece.tau));
}

// exp(mean(lp_cur - lp_full)) of a stale sample outside its bounds (learning.md §3.2).
std::vector<bool> find_too_far(const TrainBatch& batch, const MicroBatch& piece, const std::vector<float>& lp_cur,
                               const LossSettings& s) {
  std::vector<bool> out(static_cast<std::size_t>(batch.samples()), false);
  std::size_t j = 0;
  for (std::int64_t sample : piece.samples) {
    const auto i = static_cast<std::size_t>(sample);
    double sum = 0, n = 0;
    for (std::int64_t t = batch.resp_start[i]; t < batch.resp_start[i + 1]; ++t, ++j) {
      if (batch.mask[static_cast<std::size_t>(t)] == 0) continue;
      sum += lp_cur[j] - batch.lp_full[static_cast<std::size_t>(t)];
      n += 1;
    }
    if (batch.age[i] < 1 || n == 0) continue;
    const double ratio = std::exp(std::clamp(sum / n, -20.0, 20.0));
    out[i] = ratio < s.too_far_low || ratio > s.too_far_high;
  }
  return out;
}

PieceVectors piece_vectors(const TrainBatch& batch, const MicroBatch& piece, const std::vector<double>& scale,
                           const std::vector<bool>& too_far) {
  PieceVectors out;
  for (std::int64_t sample : piece.samples) {
    const auto i = static_cast<std::size_t>(sample);
    for (std::int64_t t = batch.resp_start[i]; t < batch.resp_start[i + 1]; ++t) {
      const auto token = static_cast<std::size_t>(t);
      const double factor = too_far[i] ? 0 : scale[i] * batch.mask[token];
      out.lp_full.push_back(batch.lp_full[token]);
      out.advantage.push_back(batch.advantage[token]);
      out.kl_factor.push_back(static_cast<float>(factor));
      out.factor.push_back(static_cast<float>(factor * batch.weight[i]));
      out.age.push_back(batch.age[i]);
    }
  }
  return out;
}

// Log-probabilities of the reference where the records have them: all samples of the piece came from it. Else empty.
std::vector<float> recorded_reference(const TrainBatch& batch, const MicroBatch& piece, KlReference reference) {
  std::vector<float> out;
  for (std::int64_t sample : piece.samples) {
    if (reference == KlReference::kBase && batch.from_base[static_cast<std::size_t>(sample)] == 0) return {};
  }
  for (std::int64_t token : piece.token) out.push_back(batch.lp_full[static_cast<std::size_t>(token)]);
  return out;
}

// B = 0, as in a new adapter: the head is the base to the bit.
bool adds_nothing(const LoraTensors& lora) {
  return std::none_of(lora.modules.begin(), lora.modules.end(), [](const LoraModule& m) { return m.b.any().item<bool>(); });
}

Status TorchStepRunner::train_piece(const TrainBatch& batch, MicroBatch& piece, const LearnSettings& settings, bool is_base,
                                    const std::vector<double>& scale, StatSums& sums, StepStats& stats) {
  Laps laps;
  std::vector<float> ref;
  const bool needs_base = settings.loss.kl_beta != 0 && !is_base;
  if (needs_base) ref = recorded_reference(batch, piece, settings.loss.kl_reference);
  if (needs_base && ref.empty()) {
    at::NoGradGuard no_grad;
    SLUICE_ASSIGN_OR_RETURN(const LogprobOutput base, forward(piece, nullptr));
    ref = floats(base.lp);
    laps.lap(stats.reference_seconds);
  }
  SLUICE_ASSIGN_OR_RETURN(const LogprobOutput out, forward(piece, &lora_));
  const std::vector<float> lp_cur = floats(out.lp), entropy = floats(out.entropy);
  if (is_base) ref = lp_cur;
  const std::vector<bool> too_far = find_too_far(batch, piece, lp_cur, settings.loss);
  PieceVectors v = piece_vectors(batch, piece, scale, too_far);
  ObjectiveInput in{out.lp,           view_of(v.lp_full), ref.empty() ? at::Tensor() : view_of(ref), view_of(v.advantage),
                    view_of(v.factor), view_of(v.kl_factor), view_of(v.age)};
  const ObjectiveOutput loss = objective(in, settings.loss);
  laps.lap(stats.forward_seconds);
  loss.loss.backward();
  laps.lap(stats.backward_seconds);
  stats.loss += loss.loss.item<double>();
  for (std::int64_t sample : piece.samples) {
    if (too_far[static_cast<std::size_t>(sample)]) stats.too_far.push_back(sample);
  }
  const std::vector<float> weight = floats(loss.weight);
  const std::vector<std::uint8_t> clipped = flags(loss.clipped), truncated = flags(loss.truncated);
  sums.add(batch, piece, {lp_cur, ref, entropy, weight, clipped, truncated}, too_far);
  return Status::ok_status();
}

std::string TorchStepRunner::modules_with_bad_gradients() const {
  std::string out;
  for (const LoraModule& module : lora_.modules) {
    if (module.a.grad().isfinite().all().item<bool>() && module.b.grad().isfinite().all().item<bool>()) continue;
    out += (out.empty() ? "" : ", ") + module.name;
  }
  return out;
}

Result<StepStats> TorchStepRunner::step(const TrainBatch& batch, const LearnSettings& settings) {
  return guarded("A training step", [&]() -> Result<StepStats> {
    const auto begin = std::chrono::steady_clock::now();
    at::set_num_threads(options_.threads);
    const std::vector<double> mask(batch.mask.begin(), batch.mask.end());
    const std::vector<double> scale = token_scale(batch.resp_start, mask, settings.loss.aggregation, settings.max_tokens);
    StepStats stats;
    StatSums sums;
    lora_.flat_grad.zero_();
    const bool is_base = settings.loss.kl_beta != 0 && settings.loss.kl_reference == KlReference::kBase && adds_nothing(lora_);
    std::vector<MicroBatch> pieces = cut(batch, settings.micro_batch_tokens);
    for (MicroBatch& piece : pieces) {
      SLUICE_RETURN_IF_ERROR(train_piece(batch, piece, settings, is_base, scale, sums, stats));
    }
    sums.write(stats);
    Laps laps;
    const auto n = static_cast<std::size_t>(lora_.parameters());
    const AdamWReport report = optimiser_.step({lora_.flat.data_ptr<float>(), n},
                                               {lora_.flat_grad.const_data_ptr<float>(), n}, settings.optimiser);
    laps.lap(stats.update_seconds);
    stats.skipped = report.skipped;
    stats.grad_norm = report.grad_norm;
    stats.lr = report.lr;
    if (report.skipped) stats.skipped_tensors = modules_with_bad_gradients();
    stats.tokens = batch.tokens();
    stats.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return stats;
  });
}

Result<std::vector<float>> TorchStepRunner::log_probs(const TrainBatch& batch) {
  return guarded("Scoring a probe", [&]() -> Result<std::vector<float>> {
    at::set_num_threads(options_.threads);
    at::NoGradGuard no_grad;
    std::vector<float> out(static_cast<std::size_t>(batch.response_tokens()));
    std::vector<MicroBatch> pieces = cut(batch, LearnSettings().micro_batch_tokens);
    for (MicroBatch& piece : pieces) {
      SLUICE_ASSIGN_OR_RETURN(const LogprobOutput scored, forward(piece, &lora_));
      const std::vector<float> lp = floats(scored.lp);
      for (std::size_t j = 0; j < lp.size(); ++j) out[static_cast<std::size_t>(piece.token[j])] = lp[j];
    }
    return out;
  });
}

}  // namespace

Result<std::unique_ptr<StepRunner>> make_step_runner(std::shared_ptr<const Model> model, const StepRunnerOptions& options) {
  std::shared_ptr<const TransformerWeights> weights = model_weights(*model);
  if (weights == nullptr) {
    return invalid_argument("the model \"" + model->info().name + "\" has no weights to train on: only a model file that this "
                            "program loaded itself can learn");
  }
  auto runner = std::make_unique<TorchStepRunner>(std::move(model), std::move(weights), options);
  SLUICE_RETURN_IF_ERROR(runner->reset_to_base(0));
  return std::unique_ptr<StepRunner>(std::move(runner));
}

}  // namespace sluice
