// SPDX-License-Identifier: GPL-3.0-or-later
#include "learn_torch/micro_batch.h"

#include <algorithm>
#include <numeric>

namespace sluice {
namespace {

std::int64_t length(const TrainBatch& batch, std::int64_t sample) {
  return batch.seq_start[static_cast<std::size_t>(sample) + 1] - batch.seq_start[static_cast<std::size_t>(sample)];
}

void append(MicroBatch& out, const TrainBatch& batch, std::int64_t sample) {
  const auto i = static_cast<std::size_t>(sample);
  const std::int64_t begin = batch.seq_start[i], end = batch.seq_start[i + 1];
  const auto shift = static_cast<std::int64_t>(out.ids.size()) - begin;
  if (out.seq_start.empty()) out.seq_start.push_back(0);
  out.samples.push_back(sample);
  out.ids.insert(out.ids.end(), batch.ids.begin() + begin, batch.ids.begin() + end);
  out.pos.insert(out.pos.end(), batch.pos.begin() + begin, batch.pos.begin() + end);
  out.seq_start.push_back(static_cast<std::int32_t>(out.ids.size()));
  for (std::int64_t j = batch.resp_start[i]; j < batch.resp_start[i + 1]; ++j) {
    out.resp_index.push_back(batch.resp_index[static_cast<std::size_t>(j)] + shift);
    out.target.push_back(batch.target[static_cast<std::size_t>(j)]);
    out.token.push_back(j);
    out.tau.push_back(batch.tau[i]);
  }
}

}  // namespace

std::vector<MicroBatch> cut(const TrainBatch& batch, std::int64_t max_tokens) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(batch.samples()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return length(batch, a) > length(batch, b); });
  std::vector<MicroBatch> out;
  for (std::int64_t sample : order) {
    const auto used = out.empty() ? max_tokens : static_cast<std::int64_t>(out.back().ids.size());
    if (used + length(batch, sample) > max_tokens) out.emplace_back();
    append(out.back(), batch, sample);
  }
  return out;
}

}  // namespace sluice
