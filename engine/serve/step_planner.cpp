// SPDX-License-Identifier: GPL-3.0-or-later
#include "serve/step_planner.h"

#include <algorithm>

namespace sluice {
namespace {

constexpr int kForTheShortest = 8;  // what half of a step's prompt tokens is short of for the oldest

}  // namespace

const StepPlan& StepPlanner::plan(const std::vector<std::unique_ptr<Sequence>>& running, const PrefillBudget& budget, int exact_rows) {
  plan_.input.items.clear();
  plan_.sequences.clear();
  plan_.prefill_tokens = 0;
  for (const auto& sequence : running) {
    if (sequence->prefilled() && !sequence->stream->full()) add_decode(*sequence);
  }
  int prefill_budget = budget.tokens(static_cast<int>(plan_.sequences.size()));
  for (const Priority priority : {Priority::kLive, Priority::kGate, Priority::kBackground}) {
    prefill_budget = share_out(priority, running, prefill_budget, exact_rows);
  }
  return plan_;
}

int StepPlanner::share_out(Priority priority, const std::vector<std::unique_ptr<Sequence>>& running, int budget, int exact_rows) {
  shares_.clear();
  for (const auto& s : running) {
    if (s->prefilled() || s->request.priority != priority) continue;
    const int left = static_cast<int>(s->known().size()) - s->fed;
    shares_.push_back({s.get(), s->exact ? std::min(left, exact_rows) : left, 0});
  }
  if (shares_.empty() || budget <= 0) return budget;
  const auto give = [&budget](Share& share, int most) {
    const int n = std::min({share.left - share.given, most, budget});
    share.given += n;
    budget -= n;
    return n;
  };
  const auto older = [](const Share& a, const Share& b) { return a.sequence->ticket < b.sequence->ticket; };
  std::sort(shares_.begin(), shares_.end(), older);
  // A small budget leaves the shortest three quarters: a prompt of 40 tokens beside a long one takes two steps of 32.
  int for_the_oldest = std::max((budget + 3) / 4, budget / 2 - kForTheShortest);
  for (Share& share : shares_) for_the_oldest -= give(share, for_the_oldest);
  std::sort(shares_.begin(), shares_.end(), [](const Share& a, const Share& b) {
    return a.left != b.left ? a.left < b.left : a.sequence->ticket < b.sequence->ticket;
  });
  for (Share& share : shares_) give(share, budget);
  std::sort(shares_.begin(), shares_.end(), older);
  for (const Share& share : shares_) {
    if (share.given > 0) add_prefill(*share.sequence, share.given);
  }
  return budget;
}

void StepPlanner::add_decode(Sequence& sequence) {
  StepItem item;
  item.sequence = sequence.handle;
  item.tokens = &sequence.generated.back();
  item.count = 1;
  item.sample = true;
  item.sampling = &sequence.request.sampling;
  item.generated = &sequence.generated;
  item.prompt = &sequence.request.prompt;
  plan_.input.items.push_back(item);
  plan_.sequences.push_back(&sequence);
}

void StepPlanner::add_prefill(Sequence& sequence, int count) {
  const Request& request = sequence.request;
  StepItem item;
  item.sequence = sequence.handle;
  item.tokens = sequence.known().data() + sequence.fed;
  item.count = count;
  if (sequence.fed + count == static_cast<int>(sequence.known().size()) && request.max_tokens > 0) {
    item.sample = true;
    item.sampling = &request.sampling;
    item.generated = &sequence.generated;
    item.prompt = &request.prompt;
  }
  if (sequence.scores()) {
    item.score = true;
    item.score_targets = sequence.score_targets.data() + sequence.fed;
    item.score_temperature = request.score_temperature;
    item.score_top = request.score_top;
  }
  plan_.input.items.push_back(item);
  plan_.sequences.push_back(&sequence);
  plan_.prefill_tokens += count;
}

}  // namespace sluice
