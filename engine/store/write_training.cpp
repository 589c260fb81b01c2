// SPDX-License-Identifier: GPL-3.0-or-later
// Writes of the trainer: batches, steps, curves, small values.
#include "base/fault.h"
#include "store/store_impl.h"

namespace sluice {
namespace {

Status check_batch(const BatchRow& batch) {
  const std::size_t n = batch.records.size();
  if (n == 0) return invalid_argument("A batch needs at least one record");
  if (batch.rewards.size() != n || batch.advantages.size() != n || batch.weights.size() != n) {
    return invalid_argument("A batch needs one reward, advantage and weight per record");
  }
  return Status();
}

// Each record trains at most once: it must still wait.
Status take_record(Tx& tx, const RecordId& id) {
  auto record = query_row<RecordRow>(tx.db, "WHERE id = ?", id);
  if (!record) return not_found("There is no record " + id.text);
  if (record->purpose != Purpose::kLive || record->split != Split::kTrain) {
    return invalid_argument("Record " + id.text + " is not live training traffic and must never be trained on");
  }
  if (record->fate != "waiting") {
    return conflict("Record " + id.text + " can't join a batch: it is " +
                    (record->fate.empty() ? "not labelled" : record->fate));
  }
  run(tx.db, "UPDATE record SET fate = 'batched' WHERE seq = ?", record->seq);
  run(tx.db, "UPDATE feedback SET state = 'used' WHERE record = ? AND state = 'waiting' AND retracted = 0", id);
  tx.announce(EventKind::kRecord, record->seq, id.text);
  return Status();
}

// An inverted batch goes over records that trained before and leaves them as they are.
Status borrow_record(Tx& tx, const RecordId& id) {
  auto record = query_row<RecordRow>(tx.db, "WHERE id = ?", id);
  if (!record) return not_found("There is no record " + id.text);
  if (record->fate == "trained") return Status();
  return conflict("Record " + id.text + " can't join an inverted batch: only records that trained before can");
}

Status drop_record(Tx& tx, const RecordId& id, const std::string& reason) {
  auto record = query_row<RecordRow>(tx.db, "WHERE id = ?", id);
  if (!record) return not_found("There is no record " + id.text);
  if (record->fate == "batched" || record->fate == "trained") {
    return conflict("Record " + id.text + " can't be dropped: it is " + record->fate);
  }
  run(tx.db, "UPDATE record SET fate = ? WHERE seq = ?", reason, record->seq);
  tx.announce(EventKind::kRecord, record->seq, id.text);
  return Status();
}

void set_value(Tx& tx, const std::string& name, const std::string& value) {
  run(tx.db, "INSERT INTO value VALUES (?, ?) ON CONFLICT(name) DO UPDATE SET value = excluded.value", "user." + name, value);
}

}  // namespace

Result<BatchId> Store::add_batch(BatchRow batch, std::vector<RewardRow> rewards,
                                 std::vector<std::pair<RecordId, std::string>> dropped) {
  // A batch of nothing is how records are dropped when none is left to train on.
  const bool only_drops = batch.records.empty() && !dropped.empty();
  if (!only_drops) SLUICE_RETURN_IF_ERROR(check_batch(batch));
  batch.id = BatchId();
  if (batch.state.empty()) batch.state = only_drops ? "discarded" : "formed";
  SLUICE_RETURN_IF_ERROR(impl_->write([&](Tx& tx) -> Status {
    batch.time_us = tx.now_us;
    batch.id = BatchId(insert(tx.db, batch));
    for (const RecordId& id : batch.records) {
      SLUICE_RETURN_IF_ERROR(batch.inverted ? borrow_record(tx, id) : take_record(tx, id));
    }
    for (const auto& [id, reason] : dropped) SLUICE_RETURN_IF_ERROR(drop_record(tx, id, reason));
    for (const RewardRow& reward : rewards) insert(tx.db, reward);
    tx.announce(EventKind::kBatch, batch.id.value);
    return Status();
  }));
  return batch.id;
}

Result<StepId> Store::add_step(StepRow step, std::vector<MetricRow> metrics) {
  step.id = StepId();
  SLUICE_RETURN_IF_ERROR(impl_->write([&](Tx& tx) -> Status {
    auto batch = query_row<BatchRow>(tx.db, "WHERE id = ?", step.batch);
    if (!batch) return not_found("There is no batch " + std::to_string(step.batch.value));
    if (batch->state != "formed") {
      return conflict("Batch " + std::to_string(step.batch.value) + " is " + batch->state + " already");
    }
    step.time_us = tx.now_us;
    step.id = StepId(insert(tx.db, step));
    run(tx.db, "UPDATE batch SET state = 'trained' WHERE id = ?", step.batch);
    for (const RecordId& id : batch->inverted ? std::vector<RecordId>() : batch->records) {
      const auto seq = query_value(
          tx.db, std::int64_t{0}, "UPDATE record SET fate = 'trained', used_in_step = ? WHERE id = ? RETURNING seq", step.id, id);
      tx.announce(EventKind::kRecord, seq, id.text);
    }
    for (MetricRow& metric : metrics) {
      metric.seq = 0;
      if (metric.time_us == 0) metric.time_us = tx.now_us;
      tx.announce(EventKind::kMetric, insert(tx.db, metric));
    }
    tx.announce(EventKind::kStep, step.id.value);
    tx.announce(EventKind::kBatch, step.batch.value);
    return Status();
  }));
  return step.id;
}

Status Store::add_metrics(std::vector<MetricRow> metrics, const std::optional<std::pair<std::string, std::string>>& value) {
  return impl_->write([&](Tx& tx) {
    for (MetricRow& metric : metrics) {
      metric.seq = 0;
      if (metric.time_us == 0) metric.time_us = tx.now_us;
      tx.announce(EventKind::kMetric, insert(tx.db, metric));
    }
    fault_point("metrics_inserted");
    if (value) set_value(tx, value->first, value->second);
    return Status();
  });
}

Status Store::put_value(const std::string& name, const std::string& value) {
  return impl_->write([&](Tx& tx) {
    set_value(tx, name, value);
    return Status();
  });
}

}  // namespace sluice
