// SPDX-License-Identifier: GPL-3.0-or-later
// The trainer: one thread that waits for labelled records behind the watermark, forms batches, steps the head, writes
// candidates durably, and follows gate decisions (learning.md §2, §3, §8). It never touches what serves.
//
// Every method may be called from any thread and only queues; the trainer's own thread acts between two steps. Callbacks
// come on that thread, without a lock held.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/guarded.h"
#include "base/log.h"
#include "learn/settings.h"
#include "learn/step_runner.h"
#include "store/store.h"

namespace sluice {

enum class TrainerState {
  kWaiting,   // for labels
  kTraining,
  kAtBound,   // max_ahead steps before the serving version: waits for the gate or the operator
  kPaused,
  kBraked,    // a brake tripped; resume() goes on
  kFailed,    // the status line says why; resume() tries again
  kStopped,
};
const char* trainer_state_name(TrainerState state);

struct TrainerStatus {
  TrainerState state = TrainerState::kPaused;
  std::string message;            // of the last brake or failure
  std::int64_t head_step = 0;     // optimiser steps behind the head along its line
  VersionId head_version;         // newest checkpoint of the head's line; 0 = base
  std::int64_t steps = 0;         // done since the trainer started
  double tokens_per_s = 0;        // of the last step
  int step_samples_waiting = 0;   // usable labelled records seen at the last look, at most batch_size
};

struct TrainerCallbacks {
  std::function<void(VersionId)> on_candidate;            // bytes and row are durable
  std::function<void(const std::string& text, const std::string& link)> on_notice;  // for people: brakes, failures
  std::function<void()> on_bound;                         // reached max_ahead, once per arrival
  std::function<void(bool works)> on_step;                // a step begins (true), or has ended: cores are wanted, or free
};

struct TrainerOptions {
  SessionId session;
  std::string adapter_name;       // versions are written as <name>@<id>
  LearnSettings settings;
  const Log* log = nullptr;
  const Clock* clock = nullptr;   // null = system
};

inline constexpr const char* kHalfStrength = "half strength";
inline constexpr double kBacktrackShare = 0.5;

class TrainerCore;

class Trainer {
 public:
  // Restores the head from rows and files (a session that ran before goes on where it was; a new one starts from the version
  // in service). The store and the runner outlive the trainer.
  static Result<std::unique_ptr<Trainer>> open(Store& store, StepRunner& runner, TrainerOptions options,
                                               TrainerCallbacks callbacks);
  ~Trainer();  // stops
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Starts the thread, paused or not.
  void start(bool paused);
  // Something in the store changed: feedback, records, decisions. Cheap; call it from the store's listener.
  void notify();
  void pause();    // takes effect after the step in hand
  void resume();   // also after a brake or a failure
  void stop();     // joins; the step in hand is finished

  // promote: the head goes on when it descends from the version, else it moves there. reject: when the head descends from
  // the version it returns to `incumbent`; else nothing. hold: nothing.
  void on_decision(VersionId version, Verdict verdict, VersionId incumbent);
  void rollback(VersionId target);  // the head moves to the target's checkpoint
  // At the bound: allow `steps` more, or go back to the version in service.
  void extend(int steps);
  void discard();
  // At the bound, after the gate held `candidate` for the harm it does beside its gain: half way between the version in
  // service and the candidate becomes the head and a candidate of its own, labelled kHalfStrength. Nothing where the head
  // does not descend from the candidate any more.
  void backtrack(VersionId candidate);
  // Trains a copy of the version in service on inverted rewards of records that were used before, at the normal rate,
  // writes it as a candidate with this label and leaves the head alone.
  void train_inverted_candidate(std::string label);

  TrainerStatus status() const;
  // Waits until everything queued is done and no step is possible; false at the deadline.
  bool wait_idle(SteadyTime deadline);

 private:
  struct Command {
    enum class Kind { kDecision, kRollback, kExtend, kDiscard, kBacktrack, kInverted } kind;
    VersionId version;
    Verdict verdict = Verdict::kHold;
    VersionId incumbent;
    int steps = 0;
    std::string label;
  };
  explicit Trainer(std::unique_ptr<TrainerCore> core, const Clock& clock);
  void run();
  void post(Command command);
  bool wait_for_work(std::optional<Command>& command, bool& retry);
  Status act(const Command& command);
  Status train_once(bool retry);
  void fail(const Status& status);
  void set_state(TrainerState state, const std::string& message);

  std::unique_ptr<TrainerCore> core_;  // the thread's own once started
  const Clock& clock_;
  std::thread thread_;
  std::optional<TrainerState> halted_;  // kBraked or kFailed until resume(); the thread's own

  mutable Mutex mu_;
  CondVar wake_;    // for the thread
  CondVar idle_cv_;  // for wait_idle
  std::deque<Command> commands_ SLUICE_GUARDED_BY(mu_);
  bool dirty_ SLUICE_GUARDED_BY(mu_) = true;
  bool paused_ SLUICE_GUARDED_BY(mu_) = false;
  bool retry_ SLUICE_GUARDED_BY(mu_) = false;  // resume() was called
  bool stopping_ SLUICE_GUARDED_BY(mu_) = false;
  bool idle_ SLUICE_GUARDED_BY(mu_) = false;
  TrainerStatus status_ SLUICE_GUARDED_BY(mu_);
};

}  // namespace sluice
