// SPDX-License-Identifier: GPL-3.0-or-later
// Swaps under load: every promotion goes through a committed decision and happens in the middle of a step that has streams
// in flight. Each text must be the one of the version on its receipt, none may fail, and what begins after a swap must run
// on the new version. SLUICE_SWAPS sets the number of swaps (tests/acceptance/swap_10000.sh).
#include <atomic>
#include <cstdlib>
#include <thread>

#include "engine/chat/chat_fixture.h"

namespace sluice::testing {
namespace {

constexpr int kDefaultSwaps = 1000;
constexpr int kClients = 4;

int swaps() {
  const char* text = std::getenv("SLUICE_SWAPS");
  const int wanted = text ? std::atoi(text) : kDefaultSwaps;
  EXPECT_GE(wanted, 1) << "SLUICE_SWAPS must be a number above 0";
  return wanted;
}

// Lets the swapper hold the model inside a step that has at least one sequence.
class StepHolder {
 public:
  Status on_step(const FakeStep& step) {
    MutexLock lock(mu_);
    const bool mixed = std::any_of(step.versions.begin(), step.versions.end(), [&](VersionId v) { return v != step.versions[0]; });
    if (mixed) ++mixed_steps_;
    const int mine = held_;
    if (let_go_ == mine) return {};
    in_flight_ = static_cast<int>(step.versions.size());
    changed_.notify_all();
    while (let_go_ < mine) changed_.wait(mu_);
    return {};
  }
  // Returns the number of sequences in the step that is now held.
  int hold() {
    MutexLock lock(mu_);
    ++held_;
    in_flight_ = 0;
    while (in_flight_ == 0) changed_.wait(mu_);
    return in_flight_;
  }
  void let_go() {
    MutexLock lock(mu_);
    let_go_ = held_;
    changed_.notify_all();
  }
  int mixed_steps() const {
    MutexLock lock(mu_);
    return mixed_steps_;
  }

 private:
  mutable Mutex mu_;
  CondVar changed_;
  int held_ SLUICE_GUARDED_BY(mu_) = 0;    // holds asked for, counted: a step waits for the end of its own
  int let_go_ SLUICE_GUARDED_BY(mu_) = 0;
  int in_flight_ SLUICE_GUARDED_BY(mu_) = 0;
  int mixed_steps_ SLUICE_GUARDED_BY(mu_) = 0;
};

struct Tally {
  std::atomic<std::int64_t> answers{0}, failed{0}, wrong{0}, stale{0};
};

// Sends one request after the other until told to end; every third streams several choices.
void client(ChatUnderTest& t, int number, const std::atomic<bool>& end, Tally& tally) {
  for (int i = 0; !end; ++i) {
    const std::string prompt = "client " + std::to_string(number) + " asks " + std::to_string(i);
    CompletionRequest r = text_request(prompt, 16 + i % 11);
    r.sampling.temperature = 1;
    r.sampling.seed = static_cast<std::uint64_t>(i);
    r.n = i % 3 == 0 ? 2 : 1;
    const int budget = r.max_tokens, choices = r.n;
    const VersionId serving_before = t.slots.serving();
    auto exchange = t.chat.start(std::move(r));
    if (!exchange.ok()) {
      ++tally.failed;
      continue;
    }
    // Versions are numbered in order of promotion here: nothing older than what served at submission may be used.
    if ((*exchange)->version() < serving_before) ++tally.stale;
    const Told told = drain(**exchange);
    const auto row = t.store->record((*exchange)->record_id());
    for (int c = 0; c < choices; ++c) {
      const auto finish = told.finish.find(c);
      if (finish == told.finish.end() || finish->second.finish != FinishReason::kLength) {
        ++tally.failed;
        continue;
      }
      const std::vector<TokenId> due = fake_answer((*exchange)->version(), fake_tokens(prompt), budget, 1,
                                                   static_cast<std::uint64_t>(i + c));
      if (told.text.at(c) != fake_text(due)) ++tally.wrong;
    }
    if (!row || row->version != (*exchange)->version() || row->adapter_name != TestStore::name_of(row->version) ||
        fake_version_of(row->completion_text) != row->version) {
      ++tally.wrong;
    }
    ++tally.answers;
  }
}

TEST(Swap, UnderLoadEveryTextIsOfTheVersionOnItsReceipt) {
  const int count = swaps();
  StepHolder holder;
  FakeModelOptions options;
  options.on_step = [&holder](const FakeStep& step) { return holder.on_step(step); };
  ChatUnderTest t(options);
  std::atomic<bool> end = false;
  Tally tally;
  std::vector<std::thread> clients;
  for (int i = 0; i < kClients; ++i) clients.emplace_back([&, i] { client(t, i, end, tally); });
  int without_streams = 0;
  std::int64_t slowest_us = 0;
  for (int i = 0; i < count; ++i) {
    const CommittedDecision decision = t.store.promote(t.store.new_version());
    if (holder.hold() < 1) ++without_streams;
    const Result<std::int64_t> micros = t.slots.publish(decision);
    holder.let_go();
    EXPECT_TRUE(micros.ok()) << micros.status().message();
    if (!micros.ok()) break;
    slowest_us = std::max(slowest_us, *micros);
    // A request from now on runs on it: asked with the load still on.
    if (i % 50 == 0) {
      const auto done = t.chat.complete(text_request("after swap " + std::to_string(i), 9));
      EXPECT_TRUE(done.ok()) << done.status().message();
      if (!done.ok()) break;
      EXPECT_EQ(done->version, decision.version());
      EXPECT_EQ(fake_version_of(done->text), decision.version());
    }
  }
  end = true;
  for (std::thread& c : clients) c.join();
  EXPECT_EQ(without_streams, 0);
  EXPECT_EQ(tally.failed, 0);
  EXPECT_EQ(tally.wrong, 0);
  EXPECT_EQ(tally.stale, 0);
  EXPECT_GT(tally.answers, 0);
  EXPECT_GT(holder.mixed_steps(), 0) << "versions never met in one step: the load was too light";
  EXPECT_LE(t.model->live_adapters(), 5) << "replaced versions must leave memory";
  EXPECT_EQ(t.engine.stats().kv.tokens_used, 0);
  const std::vector<std::string> problems = t.store->verify();
  EXPECT_TRUE(problems.empty()) << problems.front();
  std::printf("%d swaps, %lld answers, %d steps with several versions, slowest publish %lld us\n", count,
              static_cast<long long>(tally.answers), holder.mixed_steps(), static_cast<long long>(slowest_us));
}

}  // namespace
}  // namespace sluice::testing
