// SPDX-License-Identifier: GPL-3.0-or-later
#include "learn/trainer.h"

#include <exception>

#include "learn/trainer_core.h"

namespace sluice {
namespace {

// Label windows also end by the clock alone, which no event tells of.
constexpr std::chrono::seconds kLookAgain{2};

}  // namespace

const char* trainer_state_name(TrainerState state) {
  switch (state) {
    case TrainerState::kWaiting: return "waiting";
    case TrainerState::kTraining: return "training";
    case TrainerState::kAtBound: return "at_bound";
    case TrainerState::kPaused: return "paused";
    case TrainerState::kBraked: return "braked";
    case TrainerState::kFailed: return "failed";
    case TrainerState::kStopped: return "stopped";
  }
  return "unknown";
}

Result<std::unique_ptr<Trainer>> Trainer::open(Store& store, StepRunner& runner, TrainerOptions options,
                                               TrainerCallbacks callbacks) {
  SLUICE_RETURN_IF_ERROR(check(options.settings));
  const Clock& clock = options.clock != nullptr ? *options.clock : Clock::system();
  auto core = std::make_unique<TrainerCore>(store, runner, std::move(options), std::move(callbacks));
  SLUICE_RETURN_IF_ERROR(core->restore());
  return std::unique_ptr<Trainer>(new Trainer(std::move(core), clock));
}

Trainer::Trainer(std::unique_ptr<TrainerCore> core, const Clock& clock) : core_(std::move(core)), clock_(clock) {
  MutexLock lock(mu_);
  status_ = core_->status();
}

Trainer::~Trainer() { stop(); }

void Trainer::start(bool paused) {
  {
    MutexLock lock(mu_);
    paused_ = paused;
    status_.state = paused ? TrainerState::kPaused : TrainerState::kWaiting;
  }
  thread_ = std::thread([this] { run(); });
}

void Trainer::notify() {
  MutexLock lock(mu_);
  dirty_ = true;
  wake_.notify_all();
}

void Trainer::pause() {
  MutexLock lock(mu_);
  paused_ = true;
  wake_.notify_all();
}

void Trainer::resume() {
  MutexLock lock(mu_);
  paused_ = false;
  retry_ = true;
  dirty_ = true;
  idle_ = false;
  wake_.notify_all();
}

void Trainer::stop() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
    wake_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Trainer::post(Command command) {
  MutexLock lock(mu_);
  commands_.push_back(std::move(command));
  idle_ = false;
  wake_.notify_all();
}

void Trainer::on_decision(VersionId version, Verdict verdict, VersionId incumbent) {
  Command c;
  c.kind = Command::Kind::kDecision;
  c.version = version;
  c.verdict = verdict;
  c.incumbent = incumbent;
  post(std::move(c));
}

void Trainer::rollback(VersionId target) {
  Command c;
  c.kind = Command::Kind::kRollback;
  c.version = target;
  post(std::move(c));
}

void Trainer::extend(int steps) {
  Command c;
  c.kind = Command::Kind::kExtend;
  c.steps = steps;
  post(std::move(c));
}

void Trainer::discard() {
  Command c;
  c.kind = Command::Kind::kDiscard;
  post(std::move(c));
}

void Trainer::backtrack(VersionId candidate) {
  Command c;
  c.kind = Command::Kind::kBacktrack;
  c.version = candidate;
  post(std::move(c));
}

void Trainer::train_inverted_candidate(std::string label) {
  Command c;
  c.kind = Command::Kind::kInverted;
  c.label = std::move(label);
  post(std::move(c));
}

TrainerStatus Trainer::status() const {
  MutexLock lock(mu_);
  return status_;
}

bool Trainer::wait_idle(SteadyTime deadline) {
  MutexLock lock(mu_);
  while (!(idle_ && commands_.empty() && (paused_ || !dirty_))) {
    if (stopping_ || !idle_cv_.wait_until(mu_, deadline)) return idle_ && commands_.empty();
  }
  return true;
}

void Trainer::set_state(TrainerState state, const std::string& message) {
  MutexLock lock(mu_);
  status_ = core_->status();
  status_.state = state;
  if (!message.empty()) status_.message = message;
}

Status Trainer::act(const Command& command) {
  switch (command.kind) {
    case Command::Kind::kDecision: return core_->decision(command.version, command.verdict, command.incumbent);
    case Command::Kind::kRollback: return core_->rolled_back(command.version);
    case Command::Kind::kExtend: core_->extend(command.steps); return Status::ok_status();
    case Command::Kind::kDiscard: return core_->discard();
    case Command::Kind::kBacktrack: return core_->backtrack(command.version);
    case Command::Kind::kInverted: {
      const Status done = core_->train_inverted(command.label);
      // Nothing to invert yet is an answer, not a failure of the trainer.
      if (done.code() == Code::kUnavailable && core_->callbacks().on_notice) core_->callbacks().on_notice(done.message(), "");
      return done.code() == Code::kUnavailable ? Status::ok_status() : done;
    }
  }
  return Status::ok_status();
}

// Waits for something to do. False: the trainer stops.
bool Trainer::wait_for_work(std::optional<Command>& command, bool& retry) {
  MutexLock lock(mu_);
  while (true) {
    if (stopping_) return false;
    // A pause stands still whatever arrives, except that the head follows decisions.
    const bool command_may_run =
        !commands_.empty() && (!paused_ || commands_.front().kind != Command::Kind::kInverted);
    if (command_may_run) {
      command = std::move(commands_.front());
      commands_.pop_front();
      dirty_ = true;
      return true;
    }
    if (!paused_ && dirty_) {
      dirty_ = false;
      retry = retry_;
      retry_ = false;
      return true;
    }
    if (paused_ && status_.state != TrainerState::kFailed && status_.state != TrainerState::kBraked) {
      status_.state = TrainerState::kPaused;
    }
    idle_ = true;
    idle_cv_.notify_all();
    if (paused_) {
      wake_.wait(mu_);
    } else if (!wake_.wait_until(mu_, clock_.steady() + kLookAgain)) {
      dirty_ = true;
    }
    idle_ = false;
  }
}

// One look at the rows, and a step when there is a batch.
Status Trainer::train_once(bool retry) {
  if (retry && halted_ == TrainerState::kFailed) SLUICE_RETURN_IF_ERROR(core_->restore());
  if (retry && halted_ == TrainerState::kBraked) core_->release_brakes();
  if (retry) halted_.reset();
  if (halted_) return Status::ok_status();
  set_state(TrainerState::kTraining, "");
  SLUICE_ASSIGN_OR_RETURN(const Work work, core_->work());
  switch (work) {
    case Work::kDone: {
      set_state(TrainerState::kTraining, "");
      MutexLock lock(mu_);
      dirty_ = true;
      break;
    }
    case Work::kNothing: set_state(TrainerState::kWaiting, ""); break;
    case Work::kAtBound: set_state(TrainerState::kAtBound, ""); break;
    case Work::kBraked:
      halted_ = TrainerState::kBraked;
      set_state(TrainerState::kBraked, "");
      break;
  }
  return Status::ok_status();
}

void Trainer::fail(const Status& status) {
  const std::string text = "Learning stopped: " + status.message();
  halted_ = TrainerState::kFailed;
  set_state(TrainerState::kFailed, text);
  core_->log().error("train", text);
  if (core_->callbacks().on_notice) core_->callbacks().on_notice(text, "");
}

void Trainer::run() {
  while (true) {
    std::optional<Command> command;
    bool retry = false;
    if (!wait_for_work(command, retry)) break;
    Status done;
    try {
      if (command) {
        const TrainerState before = status().state;
        if (command->kind == Command::Kind::kInverted) set_state(TrainerState::kTraining, "");
        done = act(*command);
        if (done.ok()) set_state(before, before == TrainerState::kFailed ? status().message : "");
      } else {
        done = train_once(retry);
      }
    } catch (const std::exception& e) {
      done = internal_error(std::string("an unexpected fault in the trainer: ") + e.what());
    }
    if (!done.ok()) fail(done);
  }
  set_state(TrainerState::kStopped, "");
  MutexLock lock(mu_);
  idle_cv_.notify_all();
}

}  // namespace sluice
