// SPDX-License-Identifier: GPL-3.0-or-later
// ForwardPass: the linear layers, with their adapters.
#include <ATen/Parallel.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <array>

#include "model/forward_pass.h"
#include "model/forward_work.h"
#include "model/frozen_linear_at.h"
#include "model/kernels/gemm.h"
#include "model/kernels/lora.h"
#include "model/kernels/scratch.h"
#include "model/kernels/vector_math.h"

namespace sluice {
namespace {

// Rows of a chunk whose adapter part is computed at once.
constexpr std::int64_t kAdapterTile = 128;

// More adapters than these aren't asked for ahead: they would drive each other out of a core's cache.
constexpr std::size_t kPrefetchedAdapters = 16;

at::Tensor view(float* data, std::int64_t rows, std::int64_t cols) { return at::from_blob(data, {rows, cols}, at::kFloat); }
at::Tensor view(const float* data, std::int64_t rows, std::int64_t cols) {
  return view(const_cast<float*>(data), rows, cols);  // from_blob takes no const; nothing writes it
}

}  // namespace

void ForwardPass::apply(int layer, const float* in, ActivationBlocks& activations, std::span<const Output> outputs) {
  if (integer_rows_ > 0) {
    const std::int64_t cols = config_.linear_cols(outputs[0].linear);
    activations.resize(integer_rows_, cols);
    pool_.run(integer_rows_, std::max<std::int64_t>(1, kTaskWork / cols), [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t r = begin; r < end; ++r) activations.set_row(r, in + r * cols);
    });
    apply_integer(layer, activations, outputs);
  }
  if (!chunks_.empty()) apply_chunks(layer, in, outputs);
}

// Groups of the largest stack that a row's adapter has here.
std::int64_t ForwardPass::lora_groups(int layer, int input) const {
  std::int64_t rank = 0;
  for (const LoraAdapter* a : adapters_) rank = std::max<std::int64_t>(rank, a->stack(layer, input).rank);
  return (rank + kLoraGroup - 1) / kLoraGroup;
}

// hidden = A x for tasks [begin, end) of: every integer row and group of its stack.
void ForwardPass::lora_down_tasks(int layer, int input, const ActivationBlocks& activations, std::int64_t groups,
                                  std::int64_t begin, std::int64_t end) {
  for (std::int64_t task = begin; task < end; ++task) {
    const std::int64_t r = task / groups, group = task % groups;
    const LoraAdapter* adapter = rows_[size(r)].adapter;
    if (adapter == nullptr) continue;
    const LoraAdapter::Stack& stack = adapter->stack(layer, input);
    if (group * kLoraGroup >= stack.rank) continue;
    lora_down(activations.floats(r), stack.a, activations.cols(), stack.rank, group, lora_hidden_.data() + r * lora_stride_);
  }
}

// One section for all outputs and the adapters: its first pieces are A x, which is small; whoever has computed rows of
// W x waits for them (they were taken before) and adds B (A x).
void ForwardPass::apply_integer(int layer, const ActivationBlocks& activations, std::span<const Output> outputs) {
  std::int64_t total = 0;
  for (const Output& o : outputs) total += config_.linear_rows(o.linear);
  const std::int64_t work = activations.cols() * integer_rows_;
  const std::int64_t grain = std::max(kOutputGrain, kTaskWork * 2 / std::max<std::int64_t>(work, 1));
  const std::int64_t piece = pool_.piece_of(total, grain), pieces = (total + piece - 1) / piece;
  const int input = lora_input(outputs[0].linear);
  const std::int64_t groups = lora_groups(layer, input), tasks = groups * integer_rows_;
  const std::int64_t down_piece = pool_.piece_of(tasks, 1), downs = (tasks + down_piece - 1) / down_piece;
  grow(lora_hidden_, integer_rows_ * lora_stride_);
  downs_left_.store(downs, std::memory_order_relaxed);
  pool_.run_finely(downs + pieces, [&](std::int64_t begin, std::int64_t end, int worker) {
    for (std::int64_t i = begin; i < end; ++i) {
      if (i < downs) {
        lora_down_tasks(layer, input, activations, groups, i * down_piece, std::min((i + 1) * down_piece, tasks));
        downs_left_.fetch_sub(1, std::memory_order_release);
      } else {
        integer_rows(layer, activations, outputs, (i - downs) * piece, std::min((i - downs + 1) * piece, total), worker);
      }
    }
  });
}

// Rows [begin, end) of the outputs, taken one behind the other.
void ForwardPass::integer_rows(int layer, const ActivationBlocks& activations, std::span<const Output> outputs,
                               std::int64_t begin, std::int64_t end, int worker) {
  const LayerWeights& weights = weights_->layers[size(layer)];
  std::int64_t base = 0;
  for (const Output& o : outputs) {
    const WeightMatrix& w = weights.linear(o.linear);
    const std::int64_t first = std::max(begin, base) - base, last = std::min(end, base + w.rows) - base;
    base += w.rows;
    if (first >= last) continue;
    matvec_rows(w.type, w.data, first, last, activations, o.y, w.rows, lora_ahead(layer, o.linear, first, last, worker));
    for (std::int64_t r = 0; w.bias != nullptr && r < integer_rows_; ++r) {
      add_in_place(w.bias + first, last - first, o.y + r * w.rows + first);
    }
    if (!adapters_.empty()) add_adapters(layer, o.linear, first, last, o.y);
  }
}

void ForwardPass::add_adapters(int layer, Linear linear, std::int64_t first, std::int64_t last, float* y) {
  WorkPool::wait_for_zero(downs_left_);
  for (std::int64_t r = 0; r < integer_rows_; ++r) {
    const LoraAdapter* adapter = rows_[size(r)].adapter;
    const LoraAdapter::Module* m = adapter == nullptr ? nullptr : adapter->module(layer, linear);
    if (m == nullptr) continue;
    lora_up(lora_hidden_.data() + r * lora_stride_ + m->first, m->b, m->rank, m->scale, first, last,
            y + r * config_.linear_rows(linear));
  }
}

// What the step reads of its adapters after these rows of W x: B for the same rows, and as large a part of the A of the
// next input as these rows are of the section.
PrefetchStream* ForwardPass::lora_ahead(int layer, Linear linear, std::int64_t first, std::int64_t last, int worker) {
  if (adapters_.empty()) return nullptr;
  PrefetchStream& ahead = ahead_[size(worker)];
  ahead.clear();
  const std::span<const LoraAdapter* const> some(adapters_.data(), std::min(adapters_.size(), kPrefetchedAdapters));
  const std::int64_t panel = first / kLoraPanel * kLoraPanel;
  for (const LoraAdapter* a : some) {
    const LoraAdapter::Module* m = a->module(layer, linear);
    if (m != nullptr) ahead.add(m->b + panel * m->rank, (lora_padded(last) - panel) * m->rank);
  }
  const int input = (lora_input(linear) + 1) % kLoraInputs, next = input == 0 ? layer + 1 : layer;
  std::int64_t before = 0, total = 0;
  for (const Linear l : kAllLinears) {
    if (lora_input(l) != lora_input(linear)) continue;
    if (l < linear) before += config_.linear_rows(l);
    total += config_.linear_rows(l);
  }
  for (const LoraAdapter* a : some) {
    if (next == config_.layers) break;
    const LoraAdapter::Stack& stack = a->stack(next, input);
    const std::int64_t from = stack.words * (before + first) / total, to = stack.words * (before + last) / total;
    ahead.add(stack.a + from, to - from);
  }
  ahead.spread(last - first);
  return &ahead;
}

void ForwardPass::apply_chunks(int layer, const float* in, std::span<const Output> outputs) {
  const LayerWeights& weights = weights_->layers[size(layer)];
  const std::int64_t cols = config_.linear_cols(outputs[0].linear);
  const std::int64_t first = integer_rows_, n = static_cast<std::int64_t>(rows_.size()) - first;
  std::array<Product, 3> products;
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const WeightMatrix& w = weights.linear(outputs[o].linear);
    products[o] = {&w, outputs[o].y + first * w.rows};
  }
  multiply_integers(in + first * cols, n, std::span(products).first(outputs.size()));
  for (const Chunk& c : chunks_) {
    for (const Output& o : outputs) {
      const WeightMatrix& w = weights.linear(o.linear);
      if (!has_integer_kernel(w.type)) multiply_floats(in + c.first_row * cols, c.count, {&w, o.y + c.first_row * w.rows});
    }
    if (c.adapter != nullptr) adapt_chunk(layer, c, in, outputs);
  }
}

// y = W x for many rows and matrices with the same columns, those with an integer kernel.
void ForwardPass::multiply_integers(const float* in, std::int64_t n, std::span<const Product> products) {
  const auto strips_of = [](const Product& p) {
    return has_integer_kernel(p.w->type) ? (p.w->rows + kGemmStrip - 1) / kGemmStrip : 0;
  };
  std::int64_t strips = 0;
  for (const Product& p : products) strips += strips_of(p);
  if (strips == 0) return;
  const std::int64_t cols = products[0].w->cols;
  many_blocks_.resize(n, cols);
  pool_.run(n, std::max<std::int64_t>(1, kTaskWork / cols), [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t r = begin; r < end; ++r) many_blocks_.set_row(r, in + r * cols);
  });
  pool_.run_finely(strips, [&](std::int64_t begin, std::int64_t end, int) {
    for (const Product& p : products) {
      const std::int64_t count = strips_of(p);
      const std::int64_t first = std::max<std::int64_t>(begin, 0), last = std::min(end, count);
      if (first < last) multiply_strips(p, first * kGemmStrip, std::min(last * kGemmStrip, p.w->rows));
      begin -= count, end -= count;
    }
  });
}

// The same in f32 on dequantised panels, for one piece by itself: the shape of a product must not depend on batch mates.
void ForwardPass::multiply_floats(const float* in, std::int64_t n, const Product& p) {
  const at::Tensor x = view(in, n, p.w->cols), y = view(p.y, n, p.w->rows);
  const std::int64_t rows = serving_piece_rows(*p.w);
  // Over the pool's threads, each with one torch core: torch's own threads end every product in a barrier.
  pool_.run((p.w->rows + rows - 1) / rows, 1, [&](std::int64_t begin, std::int64_t end, int) {
    const c10::InferenceMode inference;
    if (at::get_num_threads() != 1) at::set_num_threads(1);
    for (std::int64_t i = begin; i < end; ++i) {
      frozen_linear_piece(*p.w, i * rows, std::min((i + 1) * rows, p.w->rows), x, y);
    }
  });
}

void ForwardPass::multiply_strips(const Product& p, std::int64_t begin, std::int64_t end) {
  gemm_rows(p.w->type, p.w->data, begin, end, many_blocks_, p.y, p.w->rows);
  if (p.w->bias == nullptr) return;
  for (std::int64_t r = 0; r < many_blocks_.rows(); ++r) add_in_place(p.w->bias + begin, end - begin, p.y + r * p.w->rows + begin);
}

// The adapter's part for the rows of a chunk, in tiles that are cut from its own first row.
void ForwardPass::adapt_chunk(int layer, const Chunk& c, const float* in, std::span<const Output> outputs) {
  const std::int64_t cols = config_.linear_cols(outputs[0].linear);
  const LoraAdapter::Stack& stack = c.adapter->stack(layer, lora_input(outputs[0].linear));
  if (stack.rank == 0) return;
  pool_.run((c.count + kAdapterTile - 1) / kAdapterTile, 1, [&](std::int64_t begin, std::int64_t end, int) {
    const c10::InferenceMode inference;
    if (at::get_num_threads() != 1) at::set_num_threads(1);
    for (std::int64_t tile = begin; tile < end; ++tile) {
      const std::int64_t row = c.first_row + tile * kAdapterTile, n = std::min(kAdapterTile, c.first_row + c.count - row);
      auto* a = reinterpret_cast<float*>(thread_scratch(size(stack.rank * cols) * sizeof(float)));
      lora_unpack_a(stack.a, cols, stack.rank, a);
      const at::Tensor low = at::mm(view(in + row * cols, n, cols), view(a, stack.rank, cols).t());
      for (const Output& o : outputs) {
        const LoraAdapter::Module* m = c.adapter->module(layer, o.linear);
        if (m == nullptr) continue;
        const std::int64_t rows = config_.linear_rows(o.linear);
        auto* b = reinterpret_cast<float*>(thread_scratch(size(m->rank * rows) * sizeof(float)));
        lora_unpack_b(m->b, rows, m->rank, b);
        view(o.y + row * rows, n, rows).addmm_(low.narrow(1, m->first, m->rank), view(b, m->rank, rows), 1, m->scale);
      }
    }
  });
}

}  // namespace sluice
