// SPDX-License-Identifier: GPL-3.0-or-later
// The engine's thread: what runs next.
#include <algorithm>

#include "serve/engine_impl.h"

namespace sluice {
namespace {

// Positions a sequence is promised beyond its prompt at first, and with each growth.
constexpr int kHeadroom = 64;

// How long a round that could run nothing waits before it looks for cancelled requests and readers again.
constexpr auto kRest = std::chrono::milliseconds(20);

}  // namespace

void Engine::Impl::run() {
  make_context();
  while (take_requests()) {
    const Status done = guarded("The engine", [this]() -> Status {
      run_commands();
      SLUICE_RETURN_IF_ERROR(made_);
      drop_gone();
      if (context_) {
        admit();
        make_room();
      }
      update_stats();
      rested_ = !context_ || !step();
      return {};
    });
    if (!done.ok()) {
      if (made_.ok()) log_.error("serve", done.message());
      end_now(scheduler_.take_if([](const Sequence&) { return true; }), FinishReason::kError, done);
    }
  }
  end_now(scheduler_.take_if([](const Sequence&) { return true; }), FinishReason::kCancelled, {});
  context_.reset();
}

void Engine::Impl::make_context() {
  made_ = guarded("Making the model's context", [this]() -> Status {
    context_ = model_->make_context(options_.context);
    return {};
  });
  if (!made_.ok()) log_.error("serve", made_.message());
}

bool Engine::Impl::take_requests() {
  Sequences fresh;
  bool go_on = true;
  {
    MutexLock lock(mu_);
    const auto news = [this]() SLUICE_REQUIRES(mu_) {
      return !inbox_.empty() || !commands_.empty() || state_ == ServeState::kStopping;
    };
    while (!news() && scheduler_.idle()) work_.wait(mu_);
    if (!news() && rested_) work_.wait_until(mu_, std::chrono::steady_clock::now() + kRest);
    fresh.swap(inbox_);
    go_on = state_ != ServeState::kStopping;
  }
  for (auto& sequence : fresh) scheduler_.enqueue(std::move(sequence));
  if (!go_on) run_commands();
  return go_on;
}

void Engine::Impl::run_commands() {
  std::vector<std::shared_ptr<Command>> commands;
  {
    MutexLock lock(mu_);
    if (commands_.empty()) return;
    commands.swap(commands_);
  }
  for (const auto& command : commands) {
    Status result = guarded("A command to the engine", command->work);
    MutexLock lock(mu_);
    command->result = std::move(result);
    command->done = true;
    command_done_.notify_all();
  }
}

// Cancelled ones, and those whose answer nobody reads.
void Engine::Impl::drop_gone() {
  std::uint64_t through = 0;
  {
    MutexLock lock(mu_);
    through = cancel_through_;
  }
  const SteadyTime stale = now() - options_.slow_reader;
  auto gone = scheduler_.take_if([&](const Sequence& s) {
    if (s.ticket <= through || s.stream->cancelled()) return true;
    if (!s.stream->unread_since(stale)) return false;
    ++counted_.slow_readers;
    log_.warning("serve", "a request was cancelled: nobody read its answer for " +
                              std::to_string(options_.slow_reader.count()) + " s");
    return true;
  });
  if (!gone.empty()) end_now(std::move(gone), FinishReason::kCancelled, {});
}

void Engine::Impl::admit() {
  {
    MutexLock lock(mu_);
    if (state_ != ServeState::kReady) return;
  }
  scheduler_.begin_round();
  while (Sequence* next = scheduler_.next_to_admit()) {
    if (!admit_one(*next)) return;
  }
}

bool Engine::Impl::admit_one(Sequence& next) {
  Result<AdapterSlots::Resolved> version =
      next.started ? AdapterSlots::Resolved{next.start.version, next.start.adapter} : slots_.resolve(next.request.adapter);
  if (!version.ok()) {
    refuse(next, version.status());
    return true;
  }
  // Its prefix is being computed: it takes that when it is there instead of computing it again.
  if (options_.context.prefix_cache && !next.scores() && scheduler_.has_leader(next, version->version)) {
    next.follows = next.followed = true;
    return true;
  }
  const Priority priority = next.request.priority;
  while (!scheduler_.has_place(priority)) {
    Sequence* victim = scheduler_.victim_below(priority);
    if (!victim) return false;
    preempt(*victim, true);
  }
  Status opened = guarded("Opening a sequence", [&] { return open(next, *version); });
  while (opened.code() == Code::kBusy) {
    Sequence* victim = scheduler_.victim_below(priority);
    if (!victim) break;
    preempt(*victim, true);
    opened = guarded("Opening a sequence", [&] { return open(next, *version); });
  }
  if (opened.code() == Code::kBusy && !scheduler_.running().empty()) return false;  // waits until one of them ends
  if (!opened.ok()) {
    refuse(next, opened.code() != Code::kBusy ? opened
                     : invalid_argument("the prompt of " + std::to_string(next.request.prompt.size()) +
                                        " tokens is longer than the KV cache can hold: shorten it"));
    return true;
  }
  scheduler_.admit(next);
  if (next.generated.empty() && !next.scores() && next.request.max_tokens == 0) {
    end_now(scheduler_.take_if([&next](const Sequence& s) { return &s == &next; }), FinishReason::kLength, {});
  }
  return true;
}

void Engine::Impl::refuse(const Sequence& waiting, const Status& error) {
  Sequences failed;
  failed.push_back(scheduler_.take_waiting(waiting));
  end_now(std::move(failed), FinishReason::kError, error);
}

// Takes room in the KV cache for the prompt and a first part of the answer; the rest is asked for as it grows.
Status Engine::Impl::open(Sequence& s, AdapterSlots::Resolved version) {
  const std::vector<TokenId>& tokens = s.known();
  const int left = s.request.max_tokens - static_cast<int>(s.generated.size());
  const int reserve = static_cast<int>(tokens.size()) + std::min(left, kHeadroom);
  // A cached position yields no score, so a scored prompt is opened by its first token alone, which is never cached.
  const std::vector<TokenId> first(tokens.begin(), tokens.begin() + 1);
  SLUICE_ASSIGN_OR_RETURN(const OpenedSequence opened,
                          context_->open(version.adapter, s.scores() ? first : tokens, {reserve, s.exact}));
  s.handle = opened.handle;
  s.fed = s.held = opened.cached_tokens;
  s.reserved = reserve;
  ++counted_.prefix_queries;
  if (s.held > 0) ++counted_.prefix_hits;
  if (!s.started) begin(s, std::move(version), opened.cached_tokens);
  return {};
}

// Fixes the version for the sequence's life.
void Engine::Impl::begin(Sequence& s, AdapterSlots::Resolved version, int cached) {
  s.started = true;
  s.start.version = version.version;
  s.start.adapter = std::move(version.adapter);
  s.start.cached_tokens = cached;
  s.pin = PinnedVersion();
  s.request.adapter = AdapterChoice();
  s.admitted = now();
  const std::vector<TokenId>& prompt = s.request.prompt;
  s.generated.reserve(static_cast<std::size_t>(std::min(s.request.max_tokens, 1024)));
  counted_.prompt_tokens += static_cast<std::int64_t>(prompt.size());
  counted_.cached_tokens += cached;
  if (s.request.score_prompt) {  // begins with its scores
    s.score_targets.assign(prompt.begin() + 1, prompt.end());
    s.score_targets.push_back(prompt.front());
  } else {
    s.stream->start(s.start, s.timings(s.admitted));
  }
}

// Room in the KV cache for the token that each sequence feeds next. Where there is none, the youngest of the lowest
// priority gives up its place.
void Engine::Impl::make_room() {
  growing_.clear();
  for (const auto& s : scheduler_.running()) {
    if (s->prefilled() && s->held >= s->reserved) growing_.push_back(s.get());
  }
  for (Sequence* s : growing_) {
    if (s->handle.valid()) grow(*s);  // else it gave up its place for one before it
  }
  if (growing_.empty()) return;
  auto full = scheduler_.take_if([](const Sequence& s) { return s.ends; });
  if (!full.empty()) end_now(std::move(full), FinishReason::kLength, {});
}

void Engine::Impl::grow(Sequence& s) {
  while (true) {
    Status room;
    for (const int wanted : {std::min(s.held + kHeadroom, s.most_positions()), s.held + 1}) {
      room = context_->reserve(s.handle, wanted);
      if (!room.ok()) continue;
      s.reserved = wanted;
      return;
    }
    s.ends = room.code() != Code::kBusy || scheduler_.running().size() == 1;  // more than the cache ever holds
    if (s.ends) return;
    Sequence* victim = scheduler_.victim();
    preempt(*victim, true);
    if (victim == &s) return;
  }
}

void Engine::Impl::preempt(Sequence& s, bool keep_prefix) {
  leave_context(s, "Taking a sequence's place", keep_prefix);
  s.rewind();
  scheduler_.preempt(s);
  ++counted_.preemptions;
}

}  // namespace sluice
