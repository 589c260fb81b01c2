// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/forward_pass.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "model/forward_work.h"
#include "model/kernels/dequant.h"
#include "model/kernels/vector_math.h"

namespace sluice {

static_assert(kKvBlock == kAttentionBlock);

namespace {

// Rows of a piece that attend together: their queries and sums, and one block of keys and values, stay in the first cache.
constexpr int kTileRows = 4;

}  // namespace

ForwardPass::ForwardPass(std::shared_ptr<const TransformerWeights> weights, KvCache& cache, WorkPool& pool)
    : weights_(std::move(weights)),
      config_(weights_->config),
      cache_(cache),
      pool_(pool),
      ahead_(static_cast<std::size_t>(pool.threads())),
      attention_(static_cast<std::size_t>(pool.threads())) {}

template <class Fn>
void ForwardPass::each_row(std::int64_t work_per_row, const Fn& fn) {
  const std::int64_t grain = std::max<std::int64_t>(1, kTaskWork / std::max<std::int64_t>(work_per_row, 1));
  pool_.run(static_cast<std::int64_t>(rows_.size()), grain, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t r = begin; r < end; ++r) fn(r);
  });
}

void ForwardPass::plan(std::span<const PassPiece> pieces) {
  rows_.clear();
  tiles_.clear();
  chunks_.clear();
  first_row_.assign(pieces.size(), 0);
  adapters_.clear();
  lora_stride_ = 0;
  for (const bool integer : {true, false}) {
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const PassPiece& p = pieces[i];
      if ((p.count <= kIntegerRows) != integer) continue;
      first_row_[i] = static_cast<int>(rows_.size());
      if (!integer) chunks_.push_back({first_row_[i], p.count, p.adapter});
      for (int t = 0; t < p.count; t += kTileRows) tiles_.push_back({first_row_[i] + t, std::min(kTileRows, p.count - t)});
      for (int t = 0; t < p.count; ++t) rows_.push_back({p.first_position + t, p.blocks, p.adapter});
      if (!integer || p.adapter == nullptr || std::find(adapters_.begin(), adapters_.end(), p.adapter) != adapters_.end()) continue;
      adapters_.push_back(p.adapter);
      lora_stride_ = std::max<std::int64_t>(lora_stride_, p.adapter->stack_rank());
    }
    if (integer) integer_rows_ = static_cast<int>(rows_.size());
  }
}

void ForwardPass::run(std::span<const PassPiece> pieces) {
  plan(pieces);
  const std::int64_t n = static_cast<std::int64_t>(rows_.size());
  const std::int64_t hidden = config_.hidden, head_dim = config_.head_dim, half = head_dim / 2;
  grow(x_, n * hidden);
  grow(normed_, n * hidden);
  grow(projected_, n * hidden);
  grow(q_, n * config_.q_size());
  grow(attended_, n * config_.q_size());
  grow(k_, n * config_.kv_size());
  grow(v_, n * config_.kv_size());
  grow(gate_, n * config_.ffn);
  grow(up_, n * config_.ffn);
  grow(cos_sin_, n * head_dim);

  const WeightMatrix& embedding = weights_->embedding;
  const std::size_t stride = size(row_bytes(embedding.type, embedding.cols));
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    for (int t = 0; t < pieces[i].count; ++t) {
      dequantize_row(embedding.type, embedding.data + size(pieces[i].tokens[t]) * stride, hidden,
                     x_.data() + (first_row_[i] + t) * hidden);
    }
  }
  // Angle = position * inverse frequency, in f32 as the models were trained.
  each_row(half * 64, [&](std::int64_t r) {
    float* out = cos_sin_.data() + r * head_dim;
    const float position = static_cast<float>(rows_[size(r)].position);
    for (std::int64_t i = 0; i < half; ++i) {
      const float angle = position * weights_->rope.inverse[size(i)];
      out[i] = std::cos(angle) * weights_->rope.magnitude;
      out[half + i] = std::sin(angle) * weights_->rope.magnitude;
    }
  });
  for (int i = 0; i < config_.layers; ++i) layer(i);
}

void ForwardPass::layer(int index) {
  const LayerWeights& w = weights_->layers[size(index)];
  const std::int64_t hidden = config_.hidden, ffn = config_.ffn;
  norm_rows(w.attention_norm);
  apply(index, normed_.data(), hidden_blocks_,
        std::array{Output{Linear::kQ, q_.data()}, Output{Linear::kK, k_.data()}, Output{Linear::kV, v_.data()}});
  rotate_and_store(index);
  attend(index);
  apply(index, attended_.data(), attention_blocks_, std::array{Output{Linear::kO, projected_.data()}});
  each_row(hidden, [&](std::int64_t r) { add_in_place(projected_.data() + r * hidden, hidden, x_.data() + r * hidden); });

  norm_rows(w.ffn_norm);
  apply(index, normed_.data(), hidden_blocks_, std::array{Output{Linear::kGate, gate_.data()}, Output{Linear::kUp, up_.data()}});
  each_row(ffn * 8, [&](std::int64_t r) {
    silu_mul(gate_.data() + r * ffn, up_.data() + r * ffn, ffn, gate_.data() + r * ffn);
  });
  apply(index, gate_.data(), ffn_blocks_, std::array{Output{Linear::kDown, projected_.data()}});
  each_row(hidden, [&](std::int64_t r) { add_in_place(projected_.data() + r * hidden, hidden, x_.data() + r * hidden); });
}

void ForwardPass::norm_rows(const float* weight) {
  const std::int64_t hidden = config_.hidden;
  each_row(hidden * 2, [&](std::int64_t r) {
    rms_norm(x_.data() + r * hidden, weight, hidden, config_.rms_eps, normed_.data() + r * hidden);
  });
}

void ForwardPass::rotate_and_store(int layer) {
  const LayerWeights& w = weights_->layers[size(layer)];
  const std::int64_t head_dim = config_.head_dim;
  each_row((config_.q_size() + config_.kv_size()) * 2, [&](std::int64_t r) {
    const Row& row = rows_[size(r)];
    const float* cos_sin = cos_sin_.data() + r * head_dim;
    float* q = q_.data() + r * config_.q_size();
    for (int h = 0; h < config_.heads; ++h, q += head_dim) {
      if (w.q_norm != nullptr) rms_norm(q, w.q_norm, head_dim, config_.rms_eps, q);
      rotary_split(q, cos_sin, head_dim);
    }
    const int block = (*row.blocks)[size(row.position / kKvBlock)];
    const std::int64_t place = row.position % kKvBlock;
    float* k = k_.data() + r * config_.kv_size();
    const float* v = v_.data() + r * config_.kv_size();
    for (int h = 0; h < config_.kv_heads; ++h, k += head_dim, v += head_dim) {
      if (w.k_norm != nullptr) rms_norm(k, w.k_norm, head_dim, config_.rms_eps, k);
      rotary_split(k, cos_sin, head_dim);
      float* key = cache_.keys(block, layer, h) + place;
      for (std::int64_t c = 0; c < head_dim; ++c) key[c * kKvBlock] = k[c];
      std::copy_n(v, head_dim, cache_.values(block, layer, h) + place * head_dim);
    }
  });
}

void ForwardPass::attend(int layer) {
  const std::int64_t head_dim = config_.head_dim, kv_heads = config_.kv_heads, group = config_.heads / kv_heads;
  const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
  const std::int64_t tasks = static_cast<std::int64_t>(tiles_.size()) * kv_heads;
  pool_.run(tasks, 1, [&](std::int64_t begin, std::int64_t end, int worker) {
    AttentionState& state = attention_[size(worker)];
    for (std::int64_t task = begin; task < end; ++task) {
      const Tile& tile = tiles_[size(task / kv_heads)];
      const int h = static_cast<int>(task % kv_heads);
      const Row& row = rows_[size(tile.first_row)];
      const int last_position = row.position + tile.count - 1;
      const std::int64_t first_head = tile.first_row * config_.q_size() + h * group * head_dim;
      state.begin(q_.data() + first_head, tile.count, config_.q_size(), group, head_dim, scale);
      for (int position = 0, b = 0; position <= last_position; position += kKvBlock, ++b) {
        const int block = (*row.blocks)[size(b)];
        state.add_block(cache_.keys(block, layer, h), cache_.values(block, layer, h), row.position + 1 - position);
      }
      state.finish(attended_.data() + first_head, config_.q_size());
    }
  });
}

void ForwardPass::gather_normed(std::span<const RowRef> rows) {
  const std::int64_t hidden = config_.hidden;
  grow(head_in_, static_cast<std::int64_t>(rows.size()) * hidden);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rms_norm(x_.data() + row_of(rows[i]) * hidden, weights_->final_norm, hidden, config_.rms_eps,
             head_in_.data() + static_cast<std::int64_t>(i) * hidden);
  }
}

const float* ForwardPass::logits(std::span<const RowRef> rows) {
  const WeightMatrix& head = weights_->head;
  const std::int64_t n = static_cast<std::int64_t>(rows.size());
  gather_normed(rows);
  grow(logits_, n * head.rows);
  quantize_activations(head_in_.data(), n, head.cols, head.cols, head_blocks_);
  pool_.run(head.rows, kOutputGrain, [&](std::int64_t begin, std::int64_t end, int) {
    matvec_rows(head.type, head.data, begin, end, head_blocks_, logits_.data(), head.rows);
    if (head.bias == nullptr) return;
    for (std::int64_t r = 0; r < n; ++r) add_in_place(head.bias + begin, end - begin, logits_.data() + r * head.rows + begin);
  });
  return logits_.data();
}

const float* ForwardPass::score_logits(std::span<const RowRef> rows) {
  if (static_cast<int>(rows.size()) <= kIntegerRows) return logits(rows);
  const WeightMatrix& head = weights_->head;
  const std::int64_t n = static_cast<std::int64_t>(rows.size());
  gather_normed(rows);
  grow(logits_, n * head.rows);
  const Product product{&head, logits_.data()};
  if (has_integer_kernel(head.type)) {
    multiply_integers(head_in_.data(), n, std::span(&product, 1));
  } else {
    multiply_floats(head_in_.data(), n, product);
  }
  return logits_.data();
}

}  // namespace sluice
