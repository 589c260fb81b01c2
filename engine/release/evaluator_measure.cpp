// SPDX-License-Identifier: GPL-3.0-or-later
// Stage 1 (probes) and stage 3 (pairs) of gate.md: asking, waiting, scoring, committing evidence.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/seeds.h"
#include "release/evaluation.h"
#include "release/evaluator.h"
#include "release/sentence.h"

namespace sluice {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(100);  // how often a waiting gate looks whether it should stand still

// The version's own fault: its logits are no numbers. Everything else is infrastructure (gate.md §2, voids).
bool own_fault(const Status& status) {
  return status.reason() == Reason::kNotFinite;
}

std::vector<ProbeAnswer> as_probes(const std::vector<ShadowAnswer>& answers) {
  std::vector<ProbeAnswer> out;
  for (const ShadowAnswer& a : answers) out.push_back({a.text, a.token_ids, a.lp_full, a.finished, a.us_per_token});
  return out;
}

// Lists of equal length, not empty.
double mean_gap(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
  return sum / static_cast<double>(a.size());
}

}  // namespace

std::optional<Result<ShadowAnswer>> Evaluator::wait_for(PendingAnswer& answer) {
  while (!interrupted()) {
    std::optional<Result<ShadowAnswer>> result = answer.wait(std::chrono::steady_clock::now() + kPoll);
    if (result) return result;
  }
  return std::nullopt;
}

std::pair<double, double> Evaluator::score(const TaskPrompt& prompt, const ShadowAnswer& answer) const {
  const Reply reply{answer.text, answer.finished, &prompt.names};
  return {score_rule_set(options_.main, reply), score_rule_set(options_.protected_metric, reply)};
}

// Answers to probe prompts (pass, index into the probes), a window of them in flight. kCancelled: interrupted. A version
// whose own answer fails is named in `at_fault`.
Result<std::vector<ShadowAnswer>> Evaluator::answer_all(const std::vector<std::pair<VersionPass, std::size_t>>& jobs,
                                                        VersionId& at_fault) {
  const std::size_t most = static_cast<std::size_t>(std::max(1, 2 * options_.prompts_in_flight));
  std::deque<std::unique_ptr<PendingAnswer>> window;
  std::vector<ShadowAnswer> out;
  std::size_t next = 0;
  while (out.size() < jobs.size()) {
    while (window.size() < most && next < jobs.size()) {
      const auto& [pass, index] = jobs[next++];
      const TaskPrompt& prompt = options_.probes[index];
      SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<PendingAnswer> pending,
                              answers_.start(pass, prompt, prompt_seed(options_.seed, prompt.id), Purpose::kProbe,
                                             [this] { return interrupted(); }));
      window.push_back(std::move(pending));
    }
    std::optional<Result<ShadowAnswer>> answer = wait_for(*window.front());
    if (!answer) return cancelled("the gate stands still");
    if (!answer->ok()) {
      if (own_fault(answer->status())) at_fault = jobs[out.size()].first.version();
      return answer->status();
    }
    out.push_back(std::move(*answer).value());
    window.pop_front();
  }
  return out;
}

Evaluator::Step Evaluator::measure_probes(Evaluation& e) {
  show(EvaluatorState::Phase::kProbes, &e, {});
  std::vector<std::size_t> order = seeded_permutation(options_.probes.size(), options_.seed);
  order.resize(std::min(order.size(), static_cast<std::size_t>(e.start.probes)));
  std::erase_if(probe_cache_, [&](const auto& kept) { return kept.first != e.memo.incumbent && kept.first != kBaseVersion; });

  // Arms whose answers are not known yet run side by side with the candidate: the same steps, so speeds compare.
  const auto base_pass = registry_.make_pass(kBaseVersion);
  if (!base_pass.ok()) return Step::kTryLater;
  std::vector<std::pair<VersionId, VersionPass>> arms = {{e.version.id, *e.candidate}};
  for (const auto& [id, pass] : {std::pair(e.memo.incumbent, *e.incumbent), std::pair(kBaseVersion, *base_pass)}) {
    const bool known = probe_cache_.contains(id) && probe_cache_[id].size() == order.size();
    if (!known && id != arms.back().first) arms.emplace_back(id, pass);
  }
  std::vector<std::pair<VersionPass, std::size_t>> jobs;
  for (const std::size_t prompt : order) {
    for (const auto& arm : arms) jobs.emplace_back(arm.second, prompt);
  }
  VersionId at_fault;
  Result<std::vector<ShadowAnswer>> answers = answer_all(jobs, at_fault);
  if (!answers.ok()) {
    if (interrupted()) return Step::kInterrupted;
    if (at_fault != e.version.id) {
      log(LogLevel::kWarning, "probe answers can't be made now: " + answers.status().message());
      return Step::kTryLater;
    }
    e.memo.probe.measured = true;
    e.memo.probe.broken = "its answers fail: " + answers.status().message();
    return write_memo(e).ok() ? Step::kGoOn : Step::kTryLater;
  }
  std::vector<ShadowAnswer> candidate;
  const bool fresh_incumbent = arms.size() > 1 && arms[1].first == e.memo.incumbent;
  for (std::size_t a = 1; a < arms.size(); ++a) probe_cache_[arms[a].first].clear();
  for (std::size_t i = 0; i < answers->size(); ++i) {
    ShadowAnswer& answer = (*answers)[i];
    e.memo.tokens += static_cast<std::int64_t>(answer.token_ids.size());
    const std::size_t arm = i % arms.size();
    (arm == 0 ? candidate : probe_cache_[arms[arm].first]).push_back(std::move(answer));
  }
  const std::vector<ShadowAnswer>& incumbent = probe_cache_[e.memo.incumbent];
  ProbeEvidence& probe = e.memo.probe;
  probe.candidate = summarise(as_probes(candidate));
  probe.incumbent = summarise(as_probes(incumbent));
  probe.base = summarise(as_probes(probe_cache_[kBaseVersion]));
  if (!fresh_incumbent) probe.incumbent.us_per_token = 0;  // measured at another time: it says nothing about this one
  probe.differing = count_differing(as_probes(candidate), as_probes(incumbent));
  const auto serving_row = store_.version(e.memo.incumbent);
  probe.same_bytes = serving_row && !e.version.content_hash.empty() && serving_row->content_hash == e.version.content_hash;
  return probe_kl(e, candidate);
}

Evaluator::Step Evaluator::probe_kl(Evaluation& e, const std::vector<ShadowAnswer>& answers) {
  const auto base_pass = registry_.make_pass(kBaseVersion);
  if (!base_pass.ok()) return Step::kTryLater;
  std::vector<std::vector<float>> under_incumbent, under_base;
  for (const ShadowAnswer& answer : answers) {
    if (interrupted()) return Step::kInterrupted;
    Result<std::vector<float>> incumbent = answers_.score(*e.incumbent, answer);
    Result<std::vector<float>> base = e.memo.incumbent == kBaseVersion ? incumbent : answers_.score(*base_pass, answer);
    if (!incumbent.ok() || !base.ok()) {
      log(LogLevel::kWarning, "probe answers can't be scored now: " + (incumbent.ok() ? base : incumbent).status().message());
      return interrupted() ? Step::kInterrupted : Step::kTryLater;
    }
    if (incumbent->size() != answer.lp_full.size() || base->size() != answer.lp_full.size()) return Step::kTryLater;
    under_incumbent.push_back(*std::move(incumbent));
    under_base.push_back(*std::move(base));
  }
  ProbeEvidence& probe = e.memo.probe;
  probe.kl_incumbent = mean_kl(as_probes(answers), under_incumbent);
  probe.kl_base = mean_kl(as_probes(answers), under_base);
  const Step compared = probe_trainer(e, answers);
  if (compared != Step::kGoOn) return compared;
  probe.measured = true;
  return write_memo(e).ok() ? Step::kGoOn : Step::kTryLater;
}

// Serving and training are two implementations of one model: where they part, training moves another policy than the one that
// answered. The longest probe answer is compared. Not comparing is no pass.
Evaluator::Step Evaluator::probe_trainer(Evaluation& e, const std::vector<ShadowAnswer>& answers) {
  const auto shorter = [](const ShadowAnswer& a, const ShadowAnswer& b) { return a.token_ids.size() < b.token_ids.size(); };
  const auto longest = std::max_element(answers.begin(), answers.end(), shorter);
  if (!options_.trainer_score || longest == answers.end() || longest->token_ids.empty()) return Step::kGoOn;
  const Result<std::vector<float>> trainer = options_.trainer_score(e.version.id, *longest);
  ProbeEvidence& probe = e.memo.probe;
  if (!trainer.ok() && at_fault(trainer.status())) {
    probe.broken = trainer.status().message();
  } else if (!trainer.ok() || trainer->size() != longest->lp_full.size()) {
    log(LogLevel::kWarning, "the trainer can't score a probe now: " +
                                (trainer.ok() ? std::to_string(trainer->size()) + " log-probs for " +
                                                    std::to_string(longest->lp_full.size()) + " tokens"
                                              : trainer.status().message()));
    return Step::kTryLater;
  } else if (const double gap = mean_gap(*trainer, longest->lp_full); std::isfinite(gap)) {
    probe.mismatch = gap;
  } else {
    probe.broken = "training finds no finite log-probs for its answers";
  }
  return Step::kGoOn;
}

void Evaluator::launch(Evaluation& e, Flight& flight) {
  const TaskPrompt& prompt = options_.pool[e.plan[flight.place]];
  const std::uint64_t seed = prompt_seed(options_.seed, prompt.id);
  const auto start = [&](const VersionPass& pass) {
    Result<std::unique_ptr<PendingAnswer>> pending =
        answers_.start(pass, prompt, seed, Purpose::kGate, [this] { return interrupted(); });
    Flight::Arm arm;
    if (pending.ok()) {
      arm.pending = std::move(pending).value();
    } else {
      arm.failed = pending.status();
    }
    return arm;
  };
  flight.candidate = start(*e.candidate);
  flight.incumbent = start(*e.incumbent);
  if (e.anchor_applies && !anchor_scores_.contains(prompt.id)) flight.anchor = start(*e.anchor);
}

Evaluator::Step Evaluator::measure_pairs(Evaluation& e) {
  if (anchor_of_scores_ != e.memo.anchor) anchor_scores_.clear();
  anchor_of_scores_ = e.memo.anchor;
  std::deque<Flight> window;
  std::size_t launched = e.next;
  const std::size_t most = static_cast<std::size_t>(std::max(1, options_.prompts_in_flight));
  for (;;) {
    if (interrupted()) return Step::kInterrupted;
    if (outdated(e)) return Step::kDropped;
    for (; window.size() < most && launched < e.plan.size(); ++launched) {
      window.emplace_back();
      window.back().place = launched;
      launch(e, window.back());
    }
    if (window.empty()) {
      const Step step = verdict_of(e, true);
      return step == Step::kGoOn ? Step::kTryLater : step;
    }
    Step step = take_pair(e, window.front());
    window.pop_front();
    if (step == Step::kGoOn) step = verdict_of(e, false);
    if (step != Step::kGoOn) return step;
  }
}

// Waits for one prompt's answers, commits them as a row, then lets the fold see it.
Evaluator::Step Evaluator::take_pair(Evaluation& e, Flight& flight) {
  const TaskPrompt& prompt = options_.pool[e.plan[flight.place]];
  EvidenceRow row;
  row.candidate = e.version.id;
  row.incumbent = e.memo.incumbent;
  row.anchor = e.memo.anchor;
  row.attempt = e.memo.attempt;
  row.index = static_cast<std::int64_t>(flight.place);
  row.prompt_id = prompt.id;
  row.group = prompt.group;
  row.seed = prompt_seed(options_.seed, prompt.id);
  bool equal = false;
  if (!fill(e, flight, row, equal)) return Step::kInterrupted;
  if (interrupted() && !row.void_reason.empty()) return Step::kInterrupted;  // our own cancelling is no evidence
  if (const Status stored = store_.add_evidence({row}); !stored.ok()) {
    log(LogLevel::kWarning, "evidence can't be stored: " + stored.message());
    return Step::kTryLater;
  }
  e.pairs.push_back(pair_of(row));
  e.pairs.back().equal_answers = equal && row.void_reason.empty();
  e.next = flight.place + 1;
  return Step::kGoOn;
}

// False: interrupted before all arms had answered.
bool Evaluator::fill(Evaluation& e, Flight& flight, EvidenceRow& row, bool& equal) {
  const TaskPrompt& prompt = options_.pool[e.plan[flight.place]];
  const auto settle = [&](Flight::Arm& arm) -> std::optional<Result<ShadowAnswer>> {
    if (!arm.pending) return Result<ShadowAnswer>(arm.failed);
    return wait_for(*arm.pending);
  };
  const auto note = [&](const char* arm, const Status& why) {
    if (row.void_reason.empty()) row.void_reason = std::string(arm) + ": " + why.message();
  };
  const std::optional<Result<ShadowAnswer>> candidate = settle(flight.candidate);
  if (!candidate) return false;
  const std::optional<Result<ShadowAnswer>> incumbent = settle(flight.incumbent);
  if (!incumbent) return false;
  if (candidate->ok()) {
    std::tie(row.candidate_score, row.candidate_protected) = score(prompt, **candidate);
    row.candidate_record = (*candidate)->record;
    e.memo.tokens += static_cast<std::int64_t>((*candidate)->token_ids.size());
  } else if (!own_fault(candidate->status())) {
    note("candidate", candidate->status());  // its own fault would be the lowest score, 0, instead
  }
  if (incumbent->ok()) {
    std::tie(row.incumbent_score, row.incumbent_protected) = score(prompt, **incumbent);
    row.incumbent_record = (*incumbent)->record;
    e.memo.tokens += static_cast<std::int64_t>((*incumbent)->token_ids.size());
    // Only an answer of the anchor itself may stand for it later.
    if (e.memo.incumbent == e.memo.anchor) anchor_scores_[prompt.id] = {row.incumbent_score, row.incumbent_protected};
  } else {
    note("incumbent", incumbent->status());
  }
  equal = candidate->ok() && incumbent->ok() && (*candidate)->token_ids == (*incumbent)->token_ids;
  if (!e.anchor_applies) return true;
  if (flight.anchor) {
    const std::optional<Result<ShadowAnswer>> anchor = settle(*flight.anchor);
    if (!anchor) return false;
    if (anchor->ok()) {
      anchor_scores_[prompt.id] = score(prompt, **anchor);
      row.anchor_record = (*anchor)->record;
      e.memo.tokens += static_cast<std::int64_t>((*anchor)->token_ids.size());
    } else {
      note("anchor", anchor->status());
      return true;
    }
  }
  std::tie(row.anchor_score, row.anchor_protected) = anchor_scores_[prompt.id];
  return true;
}

}  // namespace sluice
