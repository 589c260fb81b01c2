// SPDX-License-Identifier: GPL-3.0-or-later
#include "serve/engine.h"

#include <algorithm>
#include <cmath>

#include "serve/engine_impl.h"

namespace sluice {
namespace {

Status is_stopping() { return unavailable("the engine is stopping").with(Reason::kStopping); }

}  // namespace

Engine::Impl::Impl(std::shared_ptr<const Model> model, AdapterSlots& slots, const EngineOptions& options, const Log& log)
    : model_(std::move(model)),
      slots_(slots),
      options_(options),
      log_(log),
      context_length_(static_cast<int>(std::min<std::int64_t>(model_->info().context_length, options.context.kv_tokens))),
      scheduler_(options.max_running, options.reserved_for_live),
      budget_(options.prefill_chunk, std::chrono::duration<double>(options.step_target).count()),
      thread_limit_(options.context.threads),
      rate_(now()),
      ends_(now()),
      thread_([this] { run(); }) {}

Status Engine::Impl::check_open() const {
  switch (state_) {
    case ServeState::kReady: break;
    case ServeState::kPaused: return unavailable("the engine is paused and takes no requests: resume it, or try again later").with(Reason::kPaused);
    case ServeState::kAsleep: return unavailable("the engine is asleep and takes no requests: wake it, or try again later").with(Reason::kAsleep);
    case ServeState::kStopping: return is_stopping();
  }
  if (waiting_ >= options_.queue_capacity) {
    return busy("the queue is full: " + std::to_string(waiting_) + " requests wait already; try again in " +
                std::to_string(static_cast<int>(retry_after(waiting_, now()))) + " s");
  }
  return {};
}

// A version asked for by number or pass is loaded here, on the caller's thread, so that the engine never loads.
Result<PinnedVersion> Engine::Impl::pin(const AdapterChoice& choice) {
  const bool by_number = choice.kind() == AdapterChoice::Kind::kVersion;
  if (!by_number && choice.kind() != AdapterChoice::Kind::kPass) return PinnedVersion();
  if (by_number && !slots_.pinnable(choice.version())) {
    const Result<AdapterSlots::Resolved> refused = slots_.resolve(choice);
    if (!refused.ok()) return refused.status();
  }
  SLUICE_RETURN_IF_ERROR(slots_.prepare(choice.version(), ""));
  return PinnedVersion(slots_, choice.version());
}

Result<ResponseHandle> Engine::Impl::submit(Request request) {
  SLUICE_RETURN_IF_ERROR(check_request(request, model_->info(), context_length_));
  {
    MutexLock lock(mu_);
    SLUICE_RETURN_IF_ERROR(check_open());
  }
  auto sequence = std::make_unique<Sequence>();
  SLUICE_ASSIGN_OR_RETURN(sequence->pin, pin(request.adapter));
  request.max_tokens = std::min(request.max_tokens, context_length_ - static_cast<int>(request.prompt.size()));
  auto stream = std::make_shared<ResponseStream>(request.wakeup, *options_.clock);
  sequence->exact = options_.deterministic || request.priority == Priority::kGate;
  sequence->request = std::move(request);
  sequence->submitted = now();
  MutexLock lock(mu_);
  SLUICE_RETURN_IF_ERROR(check_open());
  sequence->stream = stream;
  sequence->ticket = ++last_ticket_;
  inbox_.push_back(std::move(sequence));
  ++waiting_;
  work_.notify_one();
  return ResponseHandle(std::move(stream));
}

GeneratorStats Engine::Impl::stats() const {
  MutexLock lock(mu_);
  GeneratorStats out = stats_;
  out.state = state_;
  out.waiting = static_cast<std::int64_t>(waiting_);
  out.tokens_per_s = rate_.per_second(now());
  out.retry_after_s = retry_after(waiting_, now());
  return out;
}

double Engine::Impl::retry_after(std::size_t waiting, SteadyTime at) const {
  const double per_second = ends_.per_second(at);
  if (waiting == 0) return 1;
  return per_second > 0 ? std::clamp(std::ceil(static_cast<double>(waiting) / per_second), 1.0, 60.0) : 60;
}

Status Engine::Impl::on_engine(std::function<Status()> work) {
  const auto command = std::make_shared<Command>();
  command->work = std::move(work);
  MutexLock lock(mu_);
  if (state_ == ServeState::kStopping) return is_stopping();
  commands_.push_back(command);
  work_.notify_one();
  while (!command->done) command_done_.wait(mu_);
  return command->result;
}

Status Engine::Impl::set_paused(bool paused) {
  MutexLock control(control_mu_);
  MutexLock lock(mu_);
  if (state_ == ServeState::kStopping) return is_stopping();
  if (state_ == ServeState::kAsleep) return conflict("the engine is asleep: wake it first");
  state_ = paused ? ServeState::kPaused : ServeState::kReady;
  work_.notify_one();
  return {};
}

Status Engine::Impl::pause() { return set_paused(true); }
Status Engine::Impl::resume() { return set_paused(false); }

Status Engine::Impl::flush() {
  MutexLock control(control_mu_);
  return on_engine([this]() -> Status {
    if (context_) context_->flush();
    return {};
  });
}

Status Engine::Impl::sleep(bool weights) {
  MutexLock control(control_mu_);
  {
    MutexLock lock(mu_);
    if (state_ == ServeState::kStopping) return is_stopping();
    state_ = ServeState::kAsleep;
  }
  return on_engine([this, weights]() -> Status {
    while (Sequence* running = scheduler_.victim()) preempt(*running, false);
    context_.reset();
    update_stats();
    return weights ? model_->release_memory() : Status();
  });
}

Status Engine::Impl::wake() {
  MutexLock control(control_mu_);
  {
    MutexLock lock(mu_);
    if (state_ != ServeState::kAsleep && state_ != ServeState::kStopping) return {};
  }
  SLUICE_RETURN_IF_ERROR(on_engine([this]() -> Status {
    make_context();
    return made_;
  }));
  MutexLock lock(mu_);
  if (state_ == ServeState::kAsleep) state_ = ServeState::kReady;
  work_.notify_one();
  return {};
}

ServeState Engine::Impl::state() const {
  MutexLock lock(mu_);
  return state_;
}

void Engine::Impl::cancel_all() {
  MutexLock lock(mu_);
  cancel_through_ = last_ticket_;
  work_.notify_one();
}

void Engine::Impl::stop() {
  {
    MutexLock lock(mu_);
    state_ = ServeState::kStopping;
    cancel_through_ = last_ticket_;
    work_.notify_one();
  }
  MutexLock lock(stop_mu_);
  if (thread_.joinable()) thread_.join();
}

Engine::Engine(std::shared_ptr<const Model> model, AdapterSlots& slots, const EngineOptions& options, const Log& log)
    : impl_(std::make_unique<Impl>(std::move(model), slots, options, log)) {}
Engine::~Engine() = default;

Result<ResponseHandle> Engine::submit(Request request) { return impl_->submit(std::move(request)); }
int Engine::context_length() const { return impl_->context_length(); }
GeneratorStats Engine::stats() const { return impl_->stats(); }
Status Engine::pause() { return impl_->pause(); }
Status Engine::resume() { return impl_->resume(); }
Status Engine::flush() { return impl_->flush(); }
Status Engine::sleep(bool weights) { return impl_->sleep(weights); }
Status Engine::wake() { return impl_->wake(); }
ServeState Engine::state() const { return impl_->state(); }
bool Engine::deterministic() const { return impl_->deterministic(); }
void Engine::limit_threads(int threads) { impl_->limit_threads(threads); }
void Engine::cancel_all() { impl_->cancel_all(); }
void Engine::stop() { impl_->stop(); }

}  // namespace sluice
