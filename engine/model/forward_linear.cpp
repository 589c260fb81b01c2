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

// hidden = A x for tasks [begin, end) of: every output, integer row and half of the rank.
void ForwardPass::lora_down_tasks(int layer, const ActivationBlocks& activations, std::span<const Output> outputs,
                                  std::int64_t begin, std::int64_t end) {
  for (std::int64_t task = begin; task < end; ++task) {
    const std::int64_t half = task % 2, r = task / 2 % integer_rows_, o = task / 2 / integer_rows_;
    const LoraAdapter* adapter = rows_[size(r)].adapter;
    const LoraAdapter::Module* m = adapter == nullptr ? nullptr : adapter->module(layer, outputs[size(o)].linear);
    if (m == nullptr) continue;
    const std::int64_t middle = m->rank / 2;
    const std::int64_t first = half == 0 ? 0 : middle, n = half == 0 ? middle : m->rank - middle;
    lora_down(activations.floats(r), m->a.data() + first * activations.cols(), activations.cols(), n,
              lora_hidden_.data() + (o * integer_rows_ + r) * lora_rank_ + first);
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
  std::int64_t tasks = 0, down_piece = 1, downs = 0;
  if (lora_rank_ > 0) {
    const std::int64_t count = static_cast<std::int64_t>(outputs.size());
    grow(lora_hidden_, count * integer_rows_ * lora_rank_);
    tasks = count * integer_rows_ * 2;
    down_piece = pool_.piece_of(tasks, 1);
    downs = (tasks + down_piece - 1) / down_piece;
  }
  downs_left_.store(downs, std::memory_order_relaxed);
  pool_.run_finely(downs + pieces, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      if (i < downs) {
        lora_down_tasks(layer, activations, outputs, i * down_piece, std::min((i + 1) * down_piece, tasks));
        downs_left_.fetch_sub(1, std::memory_order_release);
      } else {
        integer_rows(layer, activations, outputs, (i - downs) * piece, std::min((i - downs + 1) * piece, total));
      }
    }
  });
}

// Rows [begin, end) of the outputs, taken one behind the other.
void ForwardPass::integer_rows(int layer, const ActivationBlocks& activations, std::span<const Output> outputs,
                               std::int64_t begin, std::int64_t end) {
  const LayerWeights& weights = weights_->layers[size(layer)];
  std::int64_t base = 0;
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const WeightMatrix& w = weights.linear(outputs[o].linear);
    const std::int64_t first = std::max(begin, base) - base, last = std::min(end, base + w.rows) - base;
    base += w.rows;
    if (first >= last) continue;
    float* y = outputs[o].y;
    const auto each_module = [&](const auto& fn) {
      for (std::int64_t r = 0; lora_rank_ > 0 && r < integer_rows_; ++r) {
        const LoraAdapter* adapter = rows_[size(r)].adapter;
        const LoraAdapter::Module* m = adapter == nullptr ? nullptr : adapter->module(layer, outputs[o].linear);
        if (m != nullptr) fn(r, *m);
      }
    };
    each_module([&](std::int64_t, const LoraAdapter::Module& m) { lora_prefetch_up(m.b_t.data(), w.rows, m.rank, first, last); });
    matvec_rows(w.type, w.data, first, last, activations, y, w.rows);
    for (std::int64_t r = 0; w.bias != nullptr && r < integer_rows_; ++r) {
      add_in_place(w.bias + first, last - first, y + r * w.rows + first);
    }
    if (lora_rank_ > 0) WorkPool::wait_for_zero(downs_left_);
    each_module([&](std::int64_t r, const LoraAdapter::Module& m) {
      lora_up(lora_hidden_.data() + (static_cast<std::int64_t>(o) * integer_rows_ + r) * lora_rank_, m.b_t.data(), w.rows,
              m.rank, m.scale, first, last, y + r * w.rows);
    });
  }
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
  pool_.run((c.count + kAdapterTile - 1) / kAdapterTile, 1, [&](std::int64_t begin, std::int64_t end, int) {
    const c10::InferenceMode inference;
    if (at::get_num_threads() != 1) at::set_num_threads(1);
    for (std::int64_t tile = begin; tile < end; ++tile) {
      const std::int64_t row = c.first_row + tile * kAdapterTile, n = std::min(kAdapterTile, c.first_row + c.count - row);
      for (const Output& o : outputs) {
        const LoraAdapter::Module* m = c.adapter->module(layer, o.linear);
        if (m == nullptr) continue;
        const std::int64_t cols = config_.linear_cols(o.linear), rows = config_.linear_rows(o.linear);
        const std::int64_t in_floats = m->rank * cols, out_floats = m->rank * rows;
        auto* a = reinterpret_cast<float*>(thread_scratch(size(in_floats + out_floats) * sizeof(float)));
        lora_to_floats(m->a.data(), in_floats, a);
        lora_to_floats(m->b_t.data(), out_floats, a + in_floats);
        const at::Tensor low = at::mm(view(in + row * cols, n, cols), view(a, m->rank, cols).t());
        view(o.y + row * rows, n, rows).addmm_(low, view(a + in_floats, m->rank, rows), 1, m->scale);
      }
    }
  });
}

}  // namespace sluice
