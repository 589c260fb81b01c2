// SPDX-License-Identifier: GPL-3.0-or-later
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <limits>

#include "model/frozen_linear_at.h"
#include "model/functions_at.h"
#include "model/kernels/gemm_float.h"
#include "model/kernels/vector_math.h"

namespace sluice {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

template <class Fn>
void each_row(std::int64_t rows, std::int64_t work, const Fn& fn) {
  at::parallel_for(0, rows, std::max<std::int64_t>(1, 16384 / work), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) fn(r);
  });
}

// Tiles of rows x vocabulary; z / tau of each is made here and nowhere kept.
constexpr std::int64_t kTileRows = 21 * kFloatTile;
constexpr std::int64_t kTileVocab = 32 * kFloatStrip;

struct Tile {
  std::int64_t row, rows, entry, entries;
  at::Tensor logits;  // [rows, entries]
};

// Calls fn for each tile, rows outermost.
template <class Fn>
void each_tile(const WeightMatrix& head, const at::Tensor& hidden, const Fn& fn) {
  thread_local at::Tensor scratch;
  const std::int64_t m = hidden.size(0);
  if (!scratch.defined()) scratch = at::empty({kTileRows * kTileVocab}, at::kFloat);
  for (std::int64_t row = 0; row < m; row += kTileRows) {
    const std::int64_t rows = std::min(kTileRows, m - row);
    const PackedRows packed = packed_rows(hidden.narrow(0, row, rows));
    for (std::int64_t entry = 0; entry < head.rows; entry += kTileVocab) {
      const std::int64_t entries = std::min(kTileVocab, head.rows - entry);
      at::Tensor logits = scratch.narrow(0, 0, rows * entries).view({rows, entries});
      frozen_linear_out(head, entry, entry + entries, packed, logits);
      fn(Tile{row, rows, entry, entries, logits});
    }
  }
}

class LogprobRows : public Function<LogprobRows> {
 public:
  static variable_list forward(AutogradContext* ctx, const at::Tensor& hidden, const at::Tensor& targets, const at::Tensor& tau,
                               std::int64_t head_address) {
    const auto& head = *reinterpret_cast<const WeightMatrix*>(static_cast<std::intptr_t>(head_address));
    const std::int64_t m = hidden.size(0);
    at::Tensor lp = at::empty({m}, at::kFloat), entropy = at::empty({m}, at::kFloat), top1 = at::empty({m}, at::kLong);
    at::Tensor log_z = at::empty({m}, at::kDouble);
    const auto* target = targets.const_data_ptr<std::int64_t>();
    const float* t = tau.const_data_ptr<float>();
    struct Running {
      double log_z = -std::numeric_limits<double>::infinity();
      double mean = 0;  // of z / tau under the softmax of what was seen
      double target = 0;
      float best = -std::numeric_limits<float>::infinity();
      std::int64_t best_entry = 0;
    };
    std::vector<Running> all(static_cast<std::size_t>(m));
    each_tile(head, hidden, [&](const Tile& tile) {
      const float* logits = tile.logits.const_data_ptr<float>();
      each_row(tile.rows, tile.entries * 8, [&](std::int64_t i) {
        const std::int64_t r = tile.row + i;
        Running& run = all[static_cast<std::size_t>(r)];
        const float* z = logits + i * tile.entries;
        const float inverse = 1.0f / t[r];
        if (target[r] >= tile.entry && target[r] < tile.entry + tile.entries) {
          run.target = static_cast<double>(z[target[r] - tile.entry]) / static_cast<double>(t[r]);
        }
        const ExpSums sums = exp_sums(z, tile.entries, inverse);
        if (sums.largest > run.best) run.best = sums.largest, run.best_entry = tile.entry + arg_max(z, tile.entries);
        const double shift = static_cast<double>(sums.largest) * static_cast<double>(inverse);
        const double part = shift + std::log(sums.sum), mean = shift + sums.weighted / sums.sum;
        const double log_z_new = std::max(run.log_z, part) + std::log1p(std::exp(-std::abs(run.log_z - part)));
        run.mean = run.mean * std::exp(run.log_z - log_z_new) + mean * std::exp(part - log_z_new);
        run.log_z = log_z_new;
      });
    });
    for (std::int64_t r = 0; r < m; ++r) {
      const Running& run = all[static_cast<std::size_t>(r)];
      lp.mutable_data_ptr<float>()[r] = static_cast<float>(run.target - run.log_z);
      entropy.mutable_data_ptr<float>()[r] = static_cast<float>(run.log_z - run.mean);
      top1.mutable_data_ptr<std::int64_t>()[r] = run.best_entry;
      log_z.mutable_data_ptr<double>()[r] = run.log_z;
    }
    ctx->save_for_backward({hidden, targets, tau, log_z, entropy});
    ctx->saved_data["head"] = head_address;
    ctx->mark_non_differentiable({top1});
    ctx->set_materialize_grads(false);
    return {lp, entropy, top1};
  }

  // dz = (g_lp (onehot - p) - g_H p (log p + H)) / tau; dh = dz W.
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const auto& head = *reinterpret_cast<const WeightMatrix*>(static_cast<std::intptr_t>(ctx->saved_data["head"].toInt()));
    const at::Tensor& hidden = saved[0];
    if (!grads[0].defined() && !grads[1].defined()) return {at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor()};
    const auto* target = saved[1].const_data_ptr<std::int64_t>();
    const float* t = saved[2].const_data_ptr<float>();
    const double* log_z = saved[3].const_data_ptr<double>();
    const float* entropy = saved[4].const_data_ptr<float>();
    const at::Tensor g_lp = grads[0].defined() ? grads[0].contiguous() : at::Tensor();
    const at::Tensor g_h = grads[1].defined() ? grads[1].contiguous() : at::Tensor();
    const float* gl = g_lp.defined() ? g_lp.const_data_ptr<float>() : nullptr;
    const float* gh = g_h.defined() ? g_h.const_data_ptr<float>() : nullptr;
    at::Tensor dh = at::empty_like(hidden).zero_();
    each_tile(head, hidden, [&](const Tile& tile) {
      float* logits = tile.logits.mutable_data_ptr<float>();
      each_row(tile.rows, tile.entries * 8, [&](std::int64_t i) {
        const std::int64_t r = tile.row + i;
        float* z = logits + i * tile.entries;
        const float inverse = 1.0f / t[r];
        const float lp_grad = gl == nullptr ? 0.0f : gl[r] * inverse, h_grad = gh == nullptr ? 0.0f : gh[r] * inverse;
        const float offset = static_cast<float>(static_cast<double>(entropy[r]) - log_z[r]);
        exp_gradient({inverse, static_cast<float>(log_z[r]), lp_grad, h_grad, offset}, tile.entries, z);
        if (target[r] >= tile.entry && target[r] < tile.entry + tile.entries) z[target[r] - tile.entry] += lp_grad;
      });
      frozen_linear_backward_out(head, tile.entry, tile.entry + tile.entries, packed_rows(tile.logits),
                                 dh.narrow(0, tile.row, tile.rows), true);
    });
    return {dh, at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

LogprobTensors logprob_rows(const WeightMatrix& head, const at::Tensor& hidden, const at::Tensor& targets,
                            const at::Tensor& tau) {
  variable_list out = LogprobRows::apply(hidden, targets, tau, static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(&head)));
  return {out[0], out[1], out[2]};
}

}  // namespace sluice
