// SPDX-License-Identifier: GPL-3.0-or-later
#include "release/invariants.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <set>
#include <string_view>

namespace sluice {
namespace {

bool blank(std::string_view text) { return text.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos; }

double share(int part, int whole) { return whole == 0 ? 0.0 : static_cast<double>(part) / whole; }

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Builds the list; a check whose numbers are missing is kept but not applicable, so that the panel can say so.
class Checks {
 public:
  void at_most(const char* name, const char* text, const char* unit, bool applicable, double value, double limit) {
    add(name, text, unit, applicable, value, limit, false);
  }
  void at_least(const char* name, const char* text, const char* unit, bool applicable, double value, double limit) {
    add(name, text, unit, applicable, value, limit, true);
  }
  void ratio_within(const char* name, const char* text, double value, double reference, double lo, double hi) {
    const bool applicable = reference > 0;
    const double ratio = applicable ? value / reference : 0;
    if (ratio < lo) {
      at_least(name, text, "times", applicable, ratio, lo);
    } else {
      at_most(name, text, "times", applicable, ratio, hi);
    }
  }
  std::vector<InvariantCheck> take() { return std::move(list_); }

 private:
  void add(const char* name, const char* text, const char* unit, bool applicable, double value, double limit, bool least) {
    InvariantCheck check{name, text, unit, value, limit, least, applicable, true};
    // NaN fails: neither comparison holds for it.
    if (applicable) check.passed = least ? value >= limit : value <= limit;
    list_.push_back(std::move(check));
  }

  std::vector<InvariantCheck> list_;
};

}  // namespace

ProbeArm summarise(std::span<const ProbeAnswer> answers) {
  ProbeArm arm;
  arm.answers = static_cast<int>(answers.size());
  if (answers.empty()) return arm;
  int finished = 0, empty = 0, duplicates = 0;
  double tokens = 0;
  std::size_t grams = 0;
  std::set<std::array<std::int32_t, 3>> distinct;
  std::set<std::string_view> texts;
  std::vector<double> speeds;
  for (const ProbeAnswer& answer : answers) {
    finished += answer.finished;
    empty += blank(answer.text);
    duplicates += !texts.insert(answer.text).second;
    tokens += static_cast<double>(answer.token_ids.size());
    for (std::size_t i = 2; i < answer.token_ids.size(); ++i, ++grams) {
      distinct.insert({answer.token_ids[i - 2], answer.token_ids[i - 1], answer.token_ids[i]});
    }
    if (answer.us_per_token > 0) speeds.push_back(answer.us_per_token);
  }
  arm.eos_share = share(finished, arm.answers);
  arm.cut_share = share(arm.answers - finished, arm.answers);
  arm.empty_share = share(empty, arm.answers);
  arm.duplicate_share = share(duplicates, arm.answers);
  arm.mean_length = tokens / arm.answers;
  arm.distinct3 = grams == 0 ? 1.0 : static_cast<double>(distinct.size()) / static_cast<double>(grams);
  arm.us_per_token = median(std::move(speeds));
  return arm;
}

int count_differing(std::span<const ProbeAnswer> a, std::span<const ProbeAnswer> b) {
  int differing = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) differing += a[i].token_ids != b[i].token_ids;
  return differing;
}

double mean_kl(std::span<const ProbeAnswer> answers, std::span<const std::vector<float>> other) {
  assert(answers.size() == other.size());
  double sum = 0;
  std::size_t tokens = 0;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    assert(answers[i].lp_full.size() == other[i].size());
    for (std::size_t t = 0; t < other[i].size(); ++t, ++tokens) {
      sum += static_cast<double>(answers[i].lp_full[t]) - static_cast<double>(other[i][t]);
    }
  }
  return tokens == 0 ? 0.0 : sum / static_cast<double>(tokens);
}

std::vector<InvariantCheck> check_invariants(const ProbeEvidence& probe, const InvariantLimits& limits,
                                             bool only_required) {
  Checks checks;
  const bool usable = probe.broken.empty();
  checks.at_least("unusable", "a usable adapter", "", true, usable ? 1 : 0, 1);
  checks.at_least("no_change", "answers that differ from the incumbent's", "probes", usable && probe.candidate.answers > 0,
                  probe.same_bytes ? 0 : probe.differing, 1);
  if (!only_required) {
    const ProbeArm& now = probe.candidate;
    const ProbeArm& was = probe.incumbent;
    const bool both = usable && now.answers > 0 && was.answers > 0;
    const bool base = usable && now.answers > 0 && probe.base.answers > 0;
    checks.at_most("probe_mismatch", "the gap between the server's and the trainer's log-probs", "nats per token",
                   usable && probe.mismatch.has_value(), probe.mismatch.value_or(0), limits.probe_mismatch);
    checks.at_most("kl_incumbent", "KL to the incumbent", "nats per token", both, probe.kl_incumbent, limits.kl_incumbent);
    checks.at_most("kl_base", "KL to the base", "nats per token", base, probe.kl_base, limits.kl_base);
    checks.at_least("eos_share", "the share of finished answers against the incumbent's", "points", both,
                    now.eos_share - was.eos_share, -limits.eos_drop);
    checks.at_most("cut_share", "the share of cut answers against the incumbent's", "points", both,
                   now.cut_share - was.cut_share, limits.cut_rise);
    checks.at_most("empty_share", "the share of empty answers against the incumbent's", "points", both,
                   now.empty_share - was.empty_share, limits.empty_rise);
    checks.ratio_within("length_incumbent", "mean length against the incumbent's", now.mean_length,
                        both ? was.mean_length : 0, limits.length_ratio_lo, limits.length_ratio_hi);
    checks.ratio_within("length_base", "mean length against the base's", now.mean_length,
                        base ? probe.base.mean_length : 0, limits.length_ratio_lo, limits.length_ratio_hi);
    checks.at_least("distinct3", "distinct 3-grams against the incumbent's", "times", both && was.distinct3 > 0,
                    was.distinct3 > 0 ? now.distinct3 / was.distinct3 : 0, limits.distinct3_ratio);
    checks.at_most("duplicates", "the share of duplicate answers", "points", both, now.duplicate_share,
                   limits.duplicate_ratio * was.duplicate_share + limits.duplicate_rise);
    const bool timed = both && now.us_per_token > 0 && was.us_per_token > 0;
    checks.at_most("latency", "the time between tokens against the incumbent's", "times", timed,
                   timed ? now.us_per_token / was.us_per_token : 0, limits.latency_ratio);
  }
  return checks.take();
}

}  // namespace sluice
