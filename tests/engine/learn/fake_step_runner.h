// SPDX-License-Identifier: GPL-3.0-or-later
// A StepRunner of four numbers: every step moves them by a formula of the batch that depends on what the head is, so that
// a batch left out, repeated or trained on another head shows in the result. Saves real folders.
#pragma once

#include <array>
#include <cmath>
#include <fstream>
#include <functional>
#include <sstream>

#include "learn/step_runner.h"

namespace sluice::testing {

class FakeStepRunner final : public StepRunner {
 public:
  struct Head : HeadSnapshot {
    std::array<double, 4> theta{};
    std::int64_t t = 0;
  };

  Head head;
  int steps = 0;                                      // done by this object
  std::vector<TrainBatch> batches;                    // as handed in
  std::function<Status(int step)> before_step;        // a failed status fails the step
  std::function<void(int step, StepStats&)> on_stats;  // may change what is reported

  Status reset_to_base(std::uint64_t seed) override {
    head = {};
    head.theta[0] = static_cast<double>(seed);
    return Status::ok_status();
  }

  Result<CheckpointNotes> load(const std::string& folder) override {
    std::ifstream in(folder + "/adapter_model.safetensors"), notes_in(folder + "/trainer.safetensors");
    Head read;
    if (!in) return not_found("there is no adapter in " + folder);
    for (double& x : read.theta) {
      std::string text;
      if (!(in >> text)) return corrupt("the adapter in " + folder + " is damaged");
      x = std::strtod(text.c_str(), nullptr);
    }
    CheckpointNotes notes;
    std::string line;
    if (std::getline(notes_in, line)) read.t = std::stoll(line);
    while (std::getline(notes_in, line)) notes[line.substr(0, line.find('='))] = line.substr(line.find('=') + 1);
    head = read;
    return notes;
  }

  Result<SavedAdapter> save(const std::string& folder, const CheckpointNotes& notes) override {
    std::ofstream out(folder + "/adapter_model.safetensors"), notes_out(folder + "/trainer.safetensors");
    for (double x : head.theta) out << std::hexfloat << x << "\n";
    notes_out << head.t << "\n";
    for (const auto& [name, value] : notes) notes_out << name << "=" << value << "\n";
    out.flush();
    notes_out.flush();
    if (!out || !notes_out) return unavailable("cannot write to " + folder);
    return SavedAdapter{"hash" + std::to_string(head.t), 100, 8};
  }

  Status shrink(const std::string& origin, double share) override {
    const Head far = head;
    if (origin.empty()) {
      head.theta = {};
    } else if (auto read = load(origin); !read.ok()) {
      return read.status();
    }
    for (std::size_t i = 0; i < 4; ++i) head.theta[i] += share * (far.theta[i] - head.theta[i]);
    head.t = far.t;
    return Status::ok_status();
  }

  Result<std::unique_ptr<HeadSnapshot>> snapshot() override { return std::unique_ptr<HeadSnapshot>(new Head(head)); }
  Status restore(const HeadSnapshot& snapshot) override {
    head = static_cast<const Head&>(snapshot);
    return Status::ok_status();
  }

  Result<StepStats> step(const TrainBatch& batch, const LearnSettings& settings) override {
    if (before_step) {
      if (Status s = before_step(steps); !s.ok()) return s;
    }
    batches.push_back(batch);
    StepStats stats;
    stats.tokens = batch.tokens();
    stats.seconds = 0.5;
    if (on_stats) on_stats(steps, stats);
    ++steps;
    if (stats.skipped) return stats;
    ++head.t;
    for (std::int64_t j = 0; j < batch.response_tokens(); ++j) {
      double& x = head.theta[static_cast<std::size_t>(batch.target[j] % 4)];
      x += settings.optimiser.lr * batch.advantage[j] * (1 + 0.1 * std::sin(x));
    }
    return stats;
  }

  Result<std::vector<float>> log_probs(const TrainBatch& batch) override {
    return std::vector<float>(static_cast<std::size_t>(batch.response_tokens()), static_cast<float>(head.theta[0]));
  }
};

}  // namespace sluice::testing
