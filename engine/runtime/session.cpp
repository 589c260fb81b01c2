// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/session.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <exception>
#include <utility>

#include "base/seeds.h"
#include "learn_torch/probe_score.h"
#include "learn_torch/step_runner.h"
#include "model_api/temperature.h"
#include "release/evidence.h"
#include "tasks/verifier.h"

namespace sluice {
namespace {

constexpr const char* kBadLabel = "deliberately bad";
constexpr auto kLook = std::chrono::milliseconds(200);  // how soon a waiting thread sees stop()

StepRunnerOptions runner_options(const SessionParts& parts, const Recipe& recipe) {
  StepRunnerOptions options;
  options.lora = recipe.learn.lora;
  options.threads = parts.trainer_threads;
  return options;
}

DriverOptions driver_options(const SessionParts& parts, const Recipe& recipe, const SessionRow& row) {
  DriverOptions options;
  options.base_url = parts.server_url;
  options.api_key = parts.api_key;
  options.model = recipe.task.name;
  options.seed = row.seed;
  options.concurrency = recipe.demo.concurrency;
  return options;
}

SteadyTime soon() { return Clock::system().steady() + kLook; }

}  // namespace

Session::Session(SessionParts parts, Recipe recipe, SessionRow row, SessionCallbacks callbacks)
    : parts_(std::move(parts)), recipe_(std::move(recipe)), row_(std::move(row)), callbacks_(std::move(callbacks)) {}

Session::~Session() { stop(); }

Result<std::unique_ptr<Session>> Session::open(SessionParts parts, Recipe recipe, SessionRow row, std::int64_t max_requests,
                                               SessionCallbacks callbacks) {
  const std::int64_t last = row.live_only ? 0 : max_requests;
  // The demo comes to its end by itself: it does not stand still at a plateau until somebody answers.
  if (last > 0) parts.discard_at_bound = true;
  std::unique_ptr<Session> session(new Session(std::move(parts), std::move(recipe), std::move(row), std::move(callbacks)));
  session->max_requests_ = last;
  SLUICE_RETURN_IF_ERROR(session->open_trainer());
  session->open_gate();
  if (!session->row_.live_only) SLUICE_RETURN_IF_ERROR(session->open_driver(max_requests));
  return session;
}

Status Session::check_start(const SessionParts& parts, const Recipe& recipe, const SessionRow& row) {
  SLUICE_ASSIGN_OR_RETURN(const auto runner, make_step_runner(parts.model, runner_options(parts, recipe)));
  // A new session's head starts from the version in service.
  const VersionId serving = parts.store->serving_version();
  if (serving != kBaseVersion) {
    if (const auto loaded = runner->load(parts.store->adapter_folder(serving)); !loaded.ok()) return loaded.status();
  }
  if (row.live_only) return {};
  const auto driver = Driver::create(recipe.task, driver_options(parts, recipe, row));
  return driver.ok() ? Status() : driver.status();
}

Status Session::open_trainer() {
  SLUICE_ASSIGN_OR_RETURN(runner_, make_step_runner(parts_.model, runner_options(parts_, recipe_)));
  TrainerOptions trainer;
  trainer.session = row_.id;
  trainer.adapter_name = recipe_.task.name;
  trainer.settings = recipe_.learn;
  trainer.settings.seed = row_.seed;
  // A simulated user's batch of equal verdicts carries nothing new; sixteen accepts of a person are a wish.
  if (row_.live_only) trainer.settings.skip_equal_rewards = false;
  trainer.log = parts_.log;
  TrainerCallbacks callbacks;
  callbacks.on_candidate = [this](VersionId) {
    if (evaluator_) evaluator_->notify();
  };
  callbacks.on_notice = callbacks_.on_notice;
  callbacks.on_step = parts_.on_training;
  callbacks.on_bound = [this] {  // common while a candidate is measured
    parts_.log->info("session", "The head is " + std::to_string(recipe_.learn.max_ahead) +
                                    " steps ahead of the version in service: training waits for the gate.");
  };
  SLUICE_ASSIGN_OR_RETURN(trainer_, Trainer::open(*parts_.store, *runner_, trainer, callbacks));
  return {};
}

void Session::open_gate() {
  answers_ = std::make_unique<ChatAnswers>(*parts_.service, *parts_.store, recipe_.task, row_.id);
  EvaluatorOptions options;
  options.session = row_.id;
  options.seed = row_.seed;
  options.pool = recipe_.task.held_out;
  options.probes = recipe_.task.probes;
  options.main = recipe_.task.user;
  options.protected_metric = recipe_.task.protected_metric;
  // A reader of stored adapters, beside the trainer's own head: a step in progress is neither waited for nor touched.
  options.trainer_score = [model = parts_.model, store = parts_.store, threads = parts_.trainer_threads,
                           temperature = recorded_temperature(static_cast<float>(recipe_.task.sampling.temperature))](
                              VersionId version, const ShadowAnswer& answer) {
    return score_as_training(*model, store->adapter_folder(version), {answer.prompt_ids, answer.token_ids, temperature}, threads);
  };
  options.log = parts_.log;
  evaluator_ = std::make_unique<Evaluator>(*parts_.store, *parts_.registry, *answers_, options);
}

Status Session::open_driver(std::int64_t max_requests) {
  DriverOptions options = driver_options(parts_, recipe_, row_);
  options.max_requests = max_requests;
  options.already_sent = answered_requests(parts_.store->counts(row_.id));
  // One batch waits behind the one being trained, and none is added while training waits for the gate: more answers would come from
  // a version that is about to be replaced, and be old when their turn comes.
  const std::int64_t batch = recipe_.learn.batch_size;
  options.waiting = [this, batch] {
    const bool at_bound = trainer_->status().state == TrainerState::kAtBound;
    return parts_.store->counts(row_.id).waiting + (at_bound ? batch : 0);
  };
  options.max_waiting = batch;
  options.on_event = callbacks_.on_request;
  options.log = parts_.log;
  SLUICE_ASSIGN_OR_RETURN(driver_, Driver::create(recipe_.task, options));
  return {};
}

void Session::start(bool paused) {
  const bool frozen = parts_.registry->frozen();
  {
    MutexLock lock(mu_);
    paused_ = paused;
    learning_frozen_ = frozen;
  }
  trainer_->start(paused || frozen);
  evaluator_->start(paused);
  if (driver_) driver_->start(paused);
  minder_ = std::thread([this] { mind(); });
}

void Session::pause() {
  {
    MutexLock lock(mu_);
    paused_ = true;
  }
  if (driver_) driver_->pause();
  trainer_->pause();
  evaluator_->pause();
}

void Session::resume() {
  bool learn = false;
  {
    MutexLock lock(mu_);
    paused_ = false;
    learn = !learning_frozen_;
    changed_.notify_all();
  }
  evaluator_->resume();
  if (learn) trainer_->resume();
  if (driver_) driver_->resume();
}

void Session::freeze_learning() {
  {
    MutexLock lock(mu_);
    learning_frozen_ = true;
  }
  trainer_->pause();
}

void Session::resume_learning() {
  bool go = false;
  {
    MutexLock lock(mu_);
    learning_frozen_ = false;
    go = !paused_;
  }
  if (go) trainer_->resume();
}

void Session::stop() {
  if (stopped_.exchange(true)) return;
  stopping_ = true;
  {
    MutexLock lock(mu_);
    changed_.notify_all();
  }
  if (minder_.joinable()) minder_.join();
  if (driver_) driver_->stop();
  evaluator_->stop();
  trainer_->stop();
}

void Session::on_store_event(const StoreEvent& event) {
  switch (event.kind) {
    case EventKind::kFeedback:
    case EventKind::kRecord:
      trainer_->notify();
      break;
    case EventKind::kStep:
      if (driver_) driver_->notify();
      break;
    case EventKind::kVersion:
    case EventKind::kSettings:
      evaluator_->notify();
      break;
    default:
      break;
  }
}

void Session::on_decision(const DecisionRow& row) {
  if (row.kind == "rollback") {
    trainer_->rollback(row.version);
  } else if (row.kind == "gate" || (row.kind == "manual" && row.version.valid())) {
    if (row.reason_code == manual_action_name(ManualAction::kFreeze)) freeze_learning();
    if (row.reason_code == manual_action_name(ManualAction::kUnfreeze)) resume_learning();
    trainer_->on_decision(row.version, row.verdict, row.incumbent);
  }
  evaluator_->notify();
  MutexLock lock(mu_);
  changed_.notify_all();
}

bool Session::wait_all_idle() {
  // Two looks in a row at which nothing was left to do and nothing was decided. Both are told to look: what the store announces
  // of its last commits may still be on its way. The gate looks behind the trainer, for its candidates.
  for (int quiet = 0; quiet < 2;) {
    if (stopping_) return false;
    const DecisionId decided = parts_.store->last_decision_id();
    trainer_->notify();
    bool idle = trainer_->wait_idle(soon());
    evaluator_->notify();
    idle = evaluator_->wait_idle(soon()) && idle;
    quiet = idle && parts_.store->last_decision_id() == decided ? quiet + 1 : 0;
    MutexLock lock(mu_);
    while (paused_ && !stopping_) changed_.wait(mu_);
  }
  return true;
}

bool Session::bad_candidate_made() const {
  const auto versions = parts_.store->versions();
  return std::any_of(versions.begin(), versions.end(),
                     [this](const VersionRow& v) { return v.session == row_.id && v.label == kBadLabel; });
}

void Session::mind() {
  try {
    while (!stream_through()) {
      if (stopping_) return;
      leave_plateau();
    }
    finish();
  } catch (const std::exception& e) {
    notice(std::string("The session can't come to its end by itself: ") + e.what());
  }
}

bool Session::stream_through() {
  if (driver_ && max_requests_ > 0) return driver_->wait_done(soon());
  MutexLock lock(mu_);
  if (!stopping_) changed_.wait_until(mu_, soon());
  return false;
}

void Session::notice(const std::string& text) {
  if (callbacks_.on_notice) callbacks_.on_notice(text, "");
}

void Session::finish() {
  do {
    if (stopping_ || !wait_all_idle()) return;
  } while (retry_at_half_strength());
  if (recipe_.demo.bad_candidate && !bad_candidate_made()) {
    notice("The stream is through. One more candidate is trained on inverted rewards, to show what the gate does with it.");
    trainer_->train_inverted_candidate(kBadLabel);
    if (!wait_all_idle()) return;
  }
  finished_ = true;
  MutexLock lock(mu_);
  changed_.notify_all();
}

bool Session::wait_finished(SteadyTime deadline) {
  MutexLock lock(mu_);
  while (!finished_ && !stopping_) {
    if (!changed_.wait_until(mu_, deadline)) break;
  }
  return finished_;
}

Result<HeldOutScore> Session::measure_held_out(VersionId version, int n, const std::atomic<bool>* cancel) {
  SLUICE_ASSIGN_OR_RETURN(const VersionPass pass, parts_.registry->make_pass(version));
  ChatAnswers answers(*parts_.service, *parts_.store, recipe_.task, row_.id);
  HeldOutScore score;
  score.has_protected = !recipe_.task.protected_metric.rules.empty();
  const auto& pool = recipe_.task.held_out;
  const auto order = seeded_permutation(pool.size(), row_.seed ^ 0x9e3779b97f4a7c15ULL);
  const std::size_t total = std::min(order.size(), static_cast<std::size_t>(n > 0 ? n : recipe_.demo.heldout));
  std::deque<std::pair<const TaskPrompt*, std::unique_ptr<PendingAnswer>>> flight;
  std::size_t next = 0;
  const auto gone = [this, cancel] { return stopping_ || (cancel && *cancel); };
  while (next < total || !flight.empty()) {
    while (next < total && flight.size() < static_cast<std::size_t>(recipe_.demo.concurrency)) {
      const TaskPrompt& prompt = pool[order[next++]];
      SLUICE_ASSIGN_OR_RETURN(auto pending, answers.start(pass, prompt, prompt_seed(row_.seed, prompt.id), Purpose::kProbe, gone));
      flight.emplace_back(&prompt, std::move(pending));
    }
    if (gone()) return cancelled("the measurement was stopped");
    auto answer = flight.front().second->wait(soon());
    if (!answer) continue;
    if (!answer->ok()) return answer->status();
    const Reply reply{(*answer)->text, (*answer)->finished, &flight.front().first->names};
    ++score.n;
    score.accepted += check_rule_set(recipe_.task.user, reply).empty();
    if (score.has_protected) score.protected_ok += check_rule_set(recipe_.task.protected_metric, reply).empty();
    flight.pop_front();
  }
  return score;
}

}  // namespace sluice
