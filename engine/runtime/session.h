// SPDX-License-Identifier: GPL-3.0-or-later
// One run of the loop under one recipe: stream driver, trainer, gate. Owns their threads; the parts below (store, registry,
// serving) belong to Runtime and outlive it. Thread-safe; stop() joins everything and must not be called from a callback.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/guarded.h"
#include "base/log.h"
#include "base/result.h"
#include "chat/completion.h"
#include "learn/trainer.h"
#include "release/answers.h"
#include "release/evaluator.h"
#include "release/registry.h"
#include "runtime/recipe.h"
#include "runtime/snapshot.h"
#include "store/store.h"
#include "tasks/driver.h"

namespace sluice {

struct SessionParts {
  Store* store = nullptr;
  Registry* registry = nullptr;
  CompletionService* service = nullptr;
  std::shared_ptr<const Model> model;
  const Log* log = nullptr;
  std::string server_url;      // where the driver sends its requests
  std::string api_key;
  int trainer_threads = 1;
  std::function<void(bool works)> on_training;  // a training step begins, or has ended; from the trainer's thread
  // At max_ahead with nothing proven and nothing left to measure: back to the version in service by itself, where nobody
  // is there to ask (learning.md §8).
  bool discard_at_bound = false;
};

struct SessionCallbacks {
  std::function<void(const DriverEvent&)> on_request;   // one after another, from driver threads
  std::function<void(const std::string& text, const std::string& link)> on_notice;
};

// k of n accepted on held-out prompts, by the user's rule and by the protected metric.
struct HeldOutScore {
  std::int64_t n = 0, accepted = 0, protected_ok = 0;
  bool has_protected = false;
};

// Requests of a session that got a whole answer.
std::int64_t answered_requests(const StoreCounts& counts);

class Session {
 public:
  // A new session's row must be committed already; one that ran before goes on where its rows say.
  static Result<std::unique_ptr<Session>> open(SessionParts parts, Recipe recipe, SessionRow row, std::int64_t max_requests,
                                               SessionCallbacks callbacks);
  // Would open() take a new session of this row? Nothing is written, so that a refused one leaves no trace.
  static Status check_start(const SessionParts& parts, const Recipe& recipe, const SessionRow& row);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const SessionRow& row() const { return row_; }
  const Recipe& recipe() const { return recipe_; }

  void start(bool paused);
  void pause();    // stream, trainer and gate stand still; serving goes on
  void resume();
  void stop();     // idempotent
  // Learning stands still until resume_learning(), whatever resume() says. It follows the registry's freezing by itself;
  // called by hand it is there before the decision's row is.
  void freeze_learning();
  void resume_learning();

  // Where training waits for an answer: `steps` more (returned) before it asks again, or the head goes back to the version in
  // service. kConflict where it does not wait.
  Result<int> train_on();
  Status discard_training();

  void on_store_event(const StoreEvent& event);   // writer thread: quick
  void on_decision(const DecisionRow& row);       // every committed decision

  StreamProgress stream_progress() const;
  TrainProgress train_progress() const;
  GateProgress gate_progress() const;

  // The simulated user's requests are answered, trainer and gate have nothing left to do, and the deliberately bad
  // candidate, where the recipe has one, was judged. Never for a live-only session.
  bool finished() const { return finished_.load(); }
  bool wait_finished(SteadyTime deadline);

  // Answers `n` held-out prompts (0: as many as the recipe says) with a version, at live settings, and scores them. Blocks;
  // `cancel` ends it early.
  Result<HeldOutScore> measure_held_out(VersionId version, int n, const std::atomic<bool>* cancel = nullptr);

 private:
  Session(SessionParts parts, Recipe recipe, SessionRow row, SessionCallbacks callbacks);
  Status open_trainer();
  void open_gate();
  Status open_driver(std::int64_t max_requests);
  void mind();                        // the minding thread: plateaus, and how the session ends
  bool stream_through();
  void leave_plateau();
  // The head, where it is a candidate held for its harm and nobody is asked; whether it was.
  bool retry_at_half_strength();
  Status check_asks() const;
  bool held_for_harm(VersionId version) const;
  void notice(const std::string& text);
  void finish();
  bool bad_candidate_made() const;
  bool wait_all_idle();

  const SessionParts parts_;
  const Recipe recipe_;
  const SessionRow row_;
  const SessionCallbacks callbacks_;
  std::int64_t max_requests_ = 0;

  std::unique_ptr<StepRunner> runner_;
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<ChatAnswers> answers_;
  std::unique_ptr<Evaluator> evaluator_;
  std::unique_ptr<Driver> driver_;    // null when live only

  std::thread minder_;
  std::atomic<bool> asks_{false};  // a plateau was told, and a person is to say how to go on
  std::atomic<bool> stopping_{false};
  std::atomic<bool> stopped_{false};
  std::atomic<bool> finished_{false};
  mutable Mutex mu_;
  CondVar changed_;
  bool paused_ SLUICE_GUARDED_BY(mu_) = false;
  bool learning_frozen_ SLUICE_GUARDED_BY(mu_) = false;
};

}  // namespace sluice
