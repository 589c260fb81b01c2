// SPDX-License-Identifier: GPL-3.0-or-later
#include "learn/train_batch.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace sluice {
namespace {

const char kStateKey[] = "\"state\":\"";

struct Scored {
  const LabelledRecord* labelled = nullptr;
  std::vector<SourceReward> rewards;
  std::string segment;
  int age = 0;
  double length = 0;     // L of learning.md §2.4
  double reward = 0;     // weighted over sources
  double advantage = 0;
};

double weighted_reward(const std::vector<SourceReward>& rewards) {
  double sum = 0, weights = 0;
  for (const SourceReward& r : rewards) {
    sum += r.weight * r.value;
    weights += r.weight;
  }
  return sum / weights;
}

double advantage_of(const Scored& sample, const Baseline& baseline) {
  double sum = 0, weights = 0;
  for (const SourceReward& r : sample.rewards) {
    sum += r.weight * (r.value - baseline.read(r.source, sample.segment));
    weights += r.weight;
  }
  const double a = sum / weights;
  assert(std::abs(a) <= 2 + 1e-9);
  return a;
}

bool only_a_judge(const std::vector<SourceReward>& rewards) {
  return std::all_of(rewards.begin(), rewards.end(),
                     [](const SourceReward& r) { return r.source == FeedbackSource::kJudge; });
}

double length_bias(const std::vector<Scored>& samples) {
  double net = 0, gross = 0;
  for (const Scored& s : samples) {
    const double n = static_cast<double>(visible_tokens(s.labelled->record, s.labelled->feedback));
    net += s.advantage * n;
    gross += std::abs(s.advantage) * n;
  }
  return gross > 0 ? net / gross : 0;
}

void write_rows(const std::vector<Scored>& samples, const Baseline& before, FormedBatch& out) {
  for (const Scored& s : samples) {
    out.records.push_back(s.labelled->record.id);
    out.rewards.push_back(s.reward);
    out.advantages.push_back(s.advantage);
    out.weights.push_back(1);
    for (const SourceReward& r : s.rewards) {
      RewardRow row;
      row.record = s.labelled->record.id;
      row.value = r.value;
      row.source = r.source;
      row.baseline = before.read(r.source, s.segment);
      row.advantage = s.advantage;
      row.reason = r.reason;
      out.reward_rows.push_back(std::move(row));
    }
  }
}

}  // namespace

std::size_t visible_tokens(const RecordRow& record, const std::vector<FeedbackRow>& feedback) {
  const std::size_t all = record.token_ids.size();
  const FeedbackRow* newest = nullptr;
  for (const FeedbackRow& row : feedback) {
    if (row.by_text && row.shown_tokens >= 0 && (newest == nullptr || row.id > newest->id)) newest = &row;
  }
  return newest == nullptr ? all : std::min(all, static_cast<std::size_t>(newest->shown_tokens));
}

Result<TrainBatch> pack(const std::vector<PackItem>& items) {
  TrainBatch out;
  out.seq_start.push_back(0);
  out.resp_start.push_back(0);
  for (const PackItem& item : items) {
    const RecordRow& r = *item.record;
    const std::size_t p = r.prompt_ids.size(), n = r.token_ids.size();
    const std::string named = "record " + r.id.text;
    if (p == 0 || n == 0) return invalid_argument(named + " has an empty prompt or answer: it cannot be trained on");
    if (r.lp_full.size() != n) {
      return invalid_argument(named + " has " + std::to_string(n) + " tokens but " + std::to_string(r.lp_full.size()) +
                              " log-probs: it cannot be trained on");
    }
    if (!(r.temperature > 0)) return invalid_argument(named + " was sampled greedily: it has no ratio to train by");
    const auto first = static_cast<std::int64_t>(out.ids.size());
    out.ids.insert(out.ids.end(), r.prompt_ids.begin(), r.prompt_ids.end());
    out.ids.insert(out.ids.end(), r.token_ids.begin(), r.token_ids.end());
    for (std::size_t t = 0; t < p + n; ++t) out.pos.push_back(static_cast<std::int32_t>(t));
    for (std::size_t t = 0; t < n; ++t) {
      out.resp_index.push_back(first + static_cast<std::int64_t>(p - 1 + t));
      out.target.push_back(r.token_ids[t]);
      out.lp_full.push_back(r.lp_full[t]);
      out.mask.push_back(t < item.visible ? 1 : 0);
      out.advantage.push_back(static_cast<float>(item.advantage));
    }
    out.seq_start.push_back(static_cast<std::int64_t>(out.ids.size()));
    out.resp_start.push_back(static_cast<std::int64_t>(out.target.size()));
    out.tau.push_back(r.temperature);
    out.weight.push_back(static_cast<float>(item.weight));
    out.from_base.push_back(r.version == kBaseVersion);
    out.age.push_back(item.age);
  }
  return out;
}

std::string drop_reason(const LabelledRecord& labelled, const std::vector<SourceReward>& rewards, std::optional<int> age,
                        const LearnSettings& settings) {
  const RecordRow& r = labelled.record;
  if (rewards.empty()) {
    const bool late = std::any_of(labelled.feedback.begin(), labelled.feedback.end(),
                                  [](const FeedbackRow& f) { return f.state == "late"; });
    return late ? "late" : "no_event";
  }
  if (visible_tokens(r, labelled.feedback) == 0 || r.prompt_ids.empty()) return "empty_mask";
  const auto finite = [](float x) { return std::isfinite(x); };
  if (r.lp_full.size() != r.token_ids.size() || !std::all_of(r.lp_full.begin(), r.lp_full.end(), finite)) return "no_logprobs";
  if (!(r.temperature > 0)) return "greedy";
  if (r.finish_reason == "length" && only_a_judge(rewards)) return "cut";
  if (!age) return "imported";
  if (*age > settings.max_age) return "too_old";
  return "";
}

Result<FormedBatch> form_batch(const std::vector<LabelledRecord>& labelled, const AgeOf& age_of,
                               const LearnSettings& settings, Baseline& baseline) {
  FormedBatch out;
  std::vector<Scored> samples;
  const auto wanted = static_cast<std::size_t>(settings.batch_size);
  for (const LabelledRecord& one : labelled) {
    if (samples.size() == wanted) break;
    Scored s;
    s.rewards = rewards_of(one, settings.reward);
    const std::optional<int> age = age_of(one.record.version);
    if (std::string reason = drop_reason(one, s.rewards, age, settings); !reason.empty()) {
      out.dropped.emplace_back(one.record.id, std::move(reason));
      continue;
    }
    s.labelled = &one;
    s.segment = segment_of(one.record);
    s.age = *age;
    s.length = settings.loss.aggregation == Aggregation::kSeqMean ? 1 : static_cast<double>(visible_tokens(one.record, one.feedback));
    s.reward = weighted_reward(s.rewards);
    s.advantage = advantage_of(s, baseline);
    samples.push_back(std::move(s));
  }
  out.enough = samples.size() == wanted;
  if (!out.enough) return out;

  const auto same = [&](const Scored& s) { return s.reward == samples.front().reward; };
  out.equal = settings.skip_equal_rewards && std::all_of(samples.begin(), samples.end(), same);
  if (out.equal) {
    for (const Scored& s : samples) out.dropped.emplace_back(s.labelled->record.id, "no_spread");
    return out;
  }
  std::vector<PackItem> items;
  for (const Scored& s : samples) {
    const RecordRow& record = s.labelled->record;
    items.push_back({&record, s.advantage, 1, s.age, visible_tokens(record, s.labelled->feedback)});
  }
  SLUICE_ASSIGN_OR_RETURN(out.tensors, pack(items));
  out.length_bias = length_bias(samples);
  write_rows(samples, baseline, out);

  const std::string before = baseline.to_json();
  for (const Scored& s : samples) {
    for (const SourceReward& r : s.rewards) baseline.add(r.source, s.segment, s.length, r.value, settings.baseline_half_life);
  }
  out.baseline_json =
      "{\"before\":" + before + ",\"after\":" + baseline.to_json() + "," + kStateKey + baseline.serialise() + "\"}";
  return out;
}

Result<Baseline> baseline_after(const BatchRow& batch) {
  const std::size_t key = batch.baseline_json.find(kStateKey);
  const std::size_t begin = key + sizeof kStateKey - 1;
  const std::size_t end = key == std::string::npos ? key : batch.baseline_json.find('"', begin);
  if (end == std::string::npos) {
    return corrupt("batch " + std::to_string(batch.id.value) + " holds no baseline sums: its row is damaged");
  }
  return Baseline::parse(batch.baseline_json.substr(begin, end - begin));
}

}  // namespace sluice
