// SPDX-License-Identifier: GPL-3.0-or-later
// What the trainer's thread does, one piece of work a call, without the thread: restoring the head, batches, steps,
// candidates, decisions. Trainer owns one; tests and replay drive it directly. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "learn/baseline.h"
#include "learn/brakes.h"
#include "learn/lineage.h"
#include "learn/trainer.h"

namespace sluice {

enum class Work {
  kNothing,  // not enough labels
  kDone,     // a step, or records dropped: ask again
  kAtBound,  // max_ahead steps before the version in service
  kBraked,   // message() says why; the step before it is durable
};

class TrainerCore {
 public:
  TrainerCore(Store& store, StepRunner& runner, TrainerOptions options, TrainerCallbacks callbacks);

  // The head of this session from rows and files: newest checkpoint, then every batch since, repeated from its row. A new
  // session starts from the version in service.
  Status restore();
  // Forms one batch and trains on it, if there is one.
  Result<Work> work();

  // Word of decisions may come in another order than they were made in: what serves now says which was the last, and word of an
  // older one is passed over.
  Status decision(VersionId version, Verdict verdict, VersionId incumbent);
  Status rolled_back(VersionId target);
  Status move_head(VersionId target);  // tensors, moments, count and baseline of its checkpoint
  Status discard() { return move_head(store_.serving_version()); }
  void extend(int steps) { extension_ += steps; }
  Status train_inverted(const std::string& label);
  Status backtrack(VersionId candidate);  // trainer_backtrack.cpp
  void release_brakes() { brakes_.reset(); }

  // state is left to the thread.
  const TrainerStatus& status() const { return status_; }
  const TrainerCallbacks& callbacks() const { return callbacks_; }
  const Log& log() const { return *log_; }

 private:
  struct HeadMark {
    VersionId version;
    std::int64_t after_batch = 0;  // the head holds every batch of its line up to this one
  };
  struct Outcome {
    StepRow row;
    StepStats stats;
    double length_bias = 0;
  };

  // ---- the head (trainer_head.cpp) ----
  std::string mark_name() const;
  std::optional<HeadMark> read_mark() const;
  Status write_mark(const HeadMark& mark);
  Status load_head(VersionId version);
  Status register_written();
  Status advance_mark(HeadMark& mark);
  bool line_was_left(VersionId head) const;
  Status give_up_line(VersionId head, VersionId target);
  // A record that a batch names; nothing where it was redacted or deleted since.
  std::optional<RecordRow> remembered(const RecordId& id) const;
  Result<std::optional<TrainBatch>> tensors_of(const BatchRow& batch);
  Status repeat_batches();
  std::int64_t newest_batch() const;
  Result<Baseline> newest_baseline(const std::string& at_checkpoint) const;
  void refresh_lineage() { lineage_ = Lineage(store_.versions()); }
  CheckpointNotes notes_for(VersionId version, StepId step) const;
  Status write_candidate(VersionId version, StepId step, const std::string& label = "");
  Status write_version(const VersionRow& row, const CheckpointNotes& notes);

  // ---- steps (trainer_core.cpp) ----
  std::int64_t steps_ahead() const;
  // visible_tokens() of a record that trained: by the labels that it trained on.
  std::size_t visible_when_used(const RecordRow& record) const;
  Result<Work> drop(FormedBatch& formed, int seen);  // `seen` labelled records wait
  Result<StepStats> run_step(const TrainBatch& tensors, const LearnSettings& settings);
  Result<Outcome> train(const BatchRow& batch, const TrainBatch& tensors, double length_bias);
  Status finish(Outcome& outcome, const BatchRow& batch);
  Status maybe_candidate(StepId step, VersionId reserved);
  std::vector<MetricRow> metrics_of(const Outcome& outcome) const;
  std::optional<std::string> read_brakes(const Outcome& outcome);
  double base_length();
  void notice(const std::string& text, const std::string& link) const;

  // ---- the deliberately bad candidate (trainer_inverted.cpp) ----
  struct Used {
    RecordId id;
    double reward = 0;
  };
  std::vector<Used> used_records() const;
  Status train_inverted_from(VersionId parent, const std::string& label);
  Result<StepId> inverted_step(const std::vector<Used>& picked, VersionId parent, std::int64_t number);

  Store& store_;
  StepRunner& runner_;
  const TrainerOptions options_;
  const TrainerCallbacks callbacks_;
  const Log silent_;
  const Log* log_;

  Lineage lineage_;
  HeadMark head_;                     // newest checkpoint of the head's line
  std::int64_t head_step_ = 0;        // optimiser steps along the line
  std::int64_t checkpoint_step_ = 0;  // of head_.version
  std::int64_t last_batch_ = 0;       // newest batch in the head
  Baseline baseline_;
  Brakes brakes_;
  int extension_ = 0;                 // steps beyond max_ahead the operator allowed
  bool bound_announced_ = false;
  double base_length_ = 0;
  TrainerStatus status_;
};

}  // namespace sluice
