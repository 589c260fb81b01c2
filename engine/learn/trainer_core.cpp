// SPDX-License-Identifier: GPL-3.0-or-later
#include "learn/trainer_core.h"

#include <cmath>
#include <numeric>

#include "base/fault.h"
#include "base/json_object.h"
#include "learn/train_batch.h"

namespace sluice {
namespace {

double mean(const std::vector<double>& values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::string stats_json(const StepStats& s, double length_bias) {
  return JsonObject()
      .add("skipped", s.skipped)
      .add("lr", s.lr)
      .add("effective_share", s.effective_share)
      .add("lp_advantage_cov", s.lp_advantage_cov)
      .add("length_bias", length_bias)
      .add("fresh_tokens", s.fresh_tokens)
      .add("fresh_outside", s.fresh_outside)
      .add("fresh_abs_kl", s.fresh_abs_kl)
      .add("fresh_entropy", s.fresh_entropy)
      .add("too_far", s.too_far)
      .text();
}

// A label was taken back, or its record forgotten, between the look at the store and the batch: it is looked at again.
bool changed_meanwhile(const Result<BatchId>& added) { return added.code() == Code::kConflict || added.code() == Code::kNotFound; }

}  // namespace

TrainerCore::TrainerCore(Store& store, StepRunner& runner, TrainerOptions options, TrainerCallbacks callbacks)
    : store_(store),
      runner_(runner),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      log_(options_.log != nullptr ? options_.log : &silent_),
      lineage_({}),
      brakes_(options_.settings.brakes) {}

void TrainerCore::notice(const std::string& text, const std::string& link) const {
  log_->warning("train", text);
  if (callbacks_.on_notice) callbacks_.on_notice(text, link);
}

std::int64_t TrainerCore::steps_ahead() const {
  const VersionRow* meet = lineage_.find(lineage_.common_ancestor(head_.version, store_.serving_version()));
  return head_step_ - (meet == nullptr ? 0 : meet->head_step);
}

std::size_t TrainerCore::visible_when_used(const RecordRow& record) const {
  std::vector<FeedbackRow> used = store_.feedback_of(record.id);
  std::erase_if(used, [](const FeedbackRow& row) { return row.state != "used"; });
  return visible_tokens(record, used);
}

Result<Work> TrainerCore::work() {
  const LearnSettings& settings = options_.settings;
  refresh_lineage();
  if (steps_ahead() >= settings.max_ahead + extension_) {
    if (!bound_announced_ && callbacks_.on_bound) callbacks_.on_bound();
    bound_announced_ = true;
    return Work::kAtBound;
  }
  bound_announced_ = false;

  const AgeOf age_of = [this](VersionId v) { return lineage_.age(v, head_.version, head_step_); };
  FormedBatch formed;
  Baseline moved;
  int seen = 0;
  // Records to drop stand between usable ones: look further while there are more.
  for (int limit = settings.batch_size;; limit *= 2) {
    const std::vector<LabelledRecord> labelled = store_.trainable(options_.session, limit);
    moved = baseline_;
    SLUICE_ASSIGN_OR_RETURN(formed, form_batch(labelled, age_of, settings, moved));
    seen = static_cast<int>(labelled.size());
    status_.step_samples_waiting = formed.enough ? settings.batch_size : seen - static_cast<int>(formed.dropped.size());
    if (formed.enough || seen < limit) break;
  }
  if (!formed.enough || formed.equal) return drop(formed, seen);

  BatchRow batch;
  batch.session = options_.session;
  batch.records = formed.records;
  batch.rewards = formed.rewards;
  batch.advantages = formed.advantages;
  batch.weights = formed.weights;
  batch.baseline_json = formed.baseline_json;
  batch.head_step = head_step_ + 1;
  batch.seed = settings.seed;
  batch.state = "formed";
  const Result<BatchId> added = store_.add_batch(batch, std::move(formed.reward_rows), std::move(formed.dropped));
  if (changed_meanwhile(added)) return Work::kDone;
  SLUICE_ASSIGN_OR_RETURN(batch.id, added);
  fault_point("batch_formed");
  SLUICE_ASSIGN_OR_RETURN(Outcome outcome, train(batch, formed.tensors, formed.length_bias));
  SLUICE_RETURN_IF_ERROR(finish(outcome, batch));
  if (auto tripped = read_brakes(outcome)) {
    status_.message = *tripped;
    notice(*tripped, "step:" + std::to_string(outcome.row.id.value));
    return Work::kBraked;
  }
  return Work::kDone;
}

Result<Work> TrainerCore::drop(FormedBatch& formed, int seen) {
  // A few stragglers ride along with the next batch. Not where a batch's worth waits: a stream gives no more until that is used.
  if (!formed.equal && (formed.dropped.empty() || seen < options_.settings.batch_size)) return Work::kNothing;
  BatchRow none;
  none.session = options_.session;
  none.head_step = head_step_;
  none.state = "discarded";
  const Result<BatchId> added = store_.add_batch(none, {}, std::move(formed.dropped));
  if (changed_meanwhile(added)) return Work::kDone;
  SLUICE_ASSIGN_OR_RETURN(const BatchId id, added);
  log_->info("train", formed.equal ? "Batch " + std::to_string(id.value) + " dropped: all rewards are equal"
                                   : "Batch " + std::to_string(id.value) + " holds only records that cannot train");
  return Work::kDone;
}

Result<StepStats> TrainerCore::run_step(const TrainBatch& tensors, const LearnSettings& settings) {
  if (callbacks_.on_step) callbacks_.on_step(true);
  auto stats = runner_.step(tensors, settings);
  if (callbacks_.on_step) callbacks_.on_step(false);
  return stats;
}

Result<TrainerCore::Outcome> TrainerCore::train(const BatchRow& batch, const TrainBatch& tensors, double length_bias) {
  Outcome out;
  SLUICE_ASSIGN_OR_RETURN(out.stats, run_step(tensors, options_.settings));
  fault_point("step_done");
  if (!out.stats.skipped) ++head_step_;
  last_batch_ = batch.id.value;
  SLUICE_ASSIGN_OR_RETURN(baseline_, baseline_after(batch));
  out.length_bias = length_bias;
  StepRow& row = out.row;
  row.session = options_.session;
  row.batch = batch.id;
  row.number = head_step_;
  row.loss = out.stats.loss;
  row.kl_base = out.stats.kl_base;
  row.entropy = out.stats.entropy;
  row.clip_fraction = out.stats.clip_fraction;
  row.truncated_fraction = out.stats.truncated_fraction;
  row.reward_mean = mean(batch.rewards);
  row.grad_norm = std::isfinite(out.stats.grad_norm) ? out.stats.grad_norm : 0;
  row.mean_length = static_cast<double>(tensors.response_tokens()) / static_cast<double>(tensors.samples());
  row.mean_age = std::accumulate(tensors.age.begin(), tensors.age.end(), 0.0) / static_cast<double>(tensors.samples());
  row.tokens = out.stats.tokens;
  row.seconds = out.stats.seconds;
  row.stats_json = stats_json(out.stats, length_bias);
  status_.head_step = head_step_;
  status_.steps += 1;
  status_.tokens_per_s = row.seconds > 0 ? static_cast<double>(row.tokens) / row.seconds : 0;
  return out;
}

Status TrainerCore::finish(Outcome& outcome, const BatchRow& batch) {
  if (outcome.stats.skipped) {
    notice("Step on batch " + std::to_string(batch.id.value) + " was skipped: gradients that are not finite in " +
               outcome.stats.skipped_tensors,
           "batch:" + std::to_string(batch.id.value));
  }
  VersionId reserved;
  if (head_step_ - checkpoint_step_ >= options_.settings.candidate_every) {
    SLUICE_ASSIGN_OR_RETURN(reserved, store_.reserve_version());
  }
  outcome.row.candidate = reserved;
  SLUICE_ASSIGN_OR_RETURN(outcome.row.id, store_.add_step(outcome.row, metrics_of(outcome)));
  fault_point("step_stored");
  return maybe_candidate(outcome.row.id, reserved);
}

Status TrainerCore::maybe_candidate(StepId step, VersionId reserved) {
  if (head_step_ - checkpoint_step_ < options_.settings.candidate_every) return Status::ok_status();
  if (!reserved.valid()) {
    SLUICE_ASSIGN_OR_RETURN(reserved, store_.reserve_version());
  }
  return write_candidate(reserved, step);
}

std::vector<MetricRow> TrainerCore::metrics_of(const Outcome& outcome) const {
  const StepRow& row = outcome.row;
  if (outcome.stats.skipped) return {};
  const std::pair<const char*, double> points[] = {
      {"loss", row.loss},
      {"kl_base", row.kl_base},
      {"reward_mean", row.reward_mean},
      {"entropy", row.entropy},
      {"clip_fraction", row.clip_fraction},
      {"truncated_fraction", row.truncated_fraction},
      {"length", row.mean_length},
      {"grad_norm", row.grad_norm},
      {"train_tokens_per_s", row.seconds > 0 ? static_cast<double>(row.tokens) / row.seconds : 0},
  };
  const auto x = static_cast<double>(store_.counts(options_.session).live_records);
  std::vector<MetricRow> out;
  for (const auto& [name, value] : points) {
    if (!std::isfinite(value)) continue;
    MetricRow metric;
    metric.session = options_.session;
    metric.name = name;
    metric.x = x;
    metric.value = value;
    out.push_back(std::move(metric));
  }
  return out;
}

double TrainerCore::base_length() {
  if (base_length_ > 0) return base_length_;
  RecordFilter filter;
  filter.session = options_.session;
  filter.version = kBaseVersion;
  filter.purpose = Purpose::kLive;
  const std::vector<RecordRow> records = store_.records(filter, 0, 64);
  if (records.size() < 16) return 0;
  double tokens = 0;
  for (const RecordRow& r : records) tokens += static_cast<double>(r.token_ids.size());
  return base_length_ = tokens / static_cast<double>(records.size());
}

std::optional<std::string> TrainerCore::read_brakes(const Outcome& outcome) {
  BrakeReading reading;
  reading.stats = outcome.stats;
  reading.length_bias = outcome.length_bias;
  reading.mean_length = outcome.row.mean_length;
  reading.base_length = base_length();
  return brakes_.read(reading);
}

Status TrainerCore::rolled_back(VersionId target) {
  return target == store_.serving_version() ? move_head(target) : Status::ok_status();
}

Status TrainerCore::decision(VersionId version, Verdict verdict, VersionId incumbent) {
  refresh_lineage();
  const bool descends = lineage_.descends(head_.version, version);
  if (verdict == Verdict::kPromote) {
    if (version != store_.serving_version()) return Status::ok_status();
    extension_ = 0;
    return descends ? Status::ok_status() : move_head(version);
  }
  if (verdict == Verdict::kReject && descends) return move_head(incumbent);
  return Status::ok_status();
}

}  // namespace sluice
