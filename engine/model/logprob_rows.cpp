// SPDX-License-Identifier: GPL-3.0-or-later
#include <ATen/Parallel.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <limits>

#include "model/frozen_linear_at.h"
#include "model/functions_at.h"
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
constexpr std::int64_t kTileRows = 256;
constexpr std::int64_t kTileVocab = 8192;

struct Tile {
  std::int64_t row, rows, entry, entries;
  at::Tensor logits;  // [rows, entries]
  at::Tensor panel;   // [entries, hidden]
};

// Calls fn for each tile, vocabulary outermost, so that each panel of the head is dequantised once.
template <class Fn>
void each_tile(const WeightMatrix& head, const at::Tensor& hidden, const Fn& fn) {
  thread_local at::Tensor scratch;
  const std::int64_t step = std::min(kTileVocab, panel_rows(head)), m = hidden.size(0);
  if (!scratch.defined()) scratch = at::empty({kTileRows * kTileVocab}, at::kFloat);
  for (std::int64_t entry = 0; entry < head.rows; entry += step) {
    const std::int64_t entries = std::min(step, head.rows - entry);
    const at::Tensor panel = dequantised_panel(head, entry, entry + entries);
    for (std::int64_t row = 0; row < m; row += kTileRows) {
      const std::int64_t rows = std::min(kTileRows, m - row);
      at::Tensor logits = scratch.narrow(0, 0, rows * entries).view({rows, entries});
      at::mm_out(logits, hidden.narrow(0, row, rows), panel.t());
      if (head.bias != nullptr) logits.add_(at::from_blob(const_cast<float*>(head.bias + entry), {entries}, at::kFloat));
      fn(Tile{row, rows, entry, entries, logits, panel});
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
      float* logits = tile.logits.mutable_data_ptr<float>();
      each_row(tile.rows, tile.entries * 8, [&](std::int64_t i) {
        const std::int64_t r = tile.row + i;
        Running& run = all[static_cast<std::size_t>(r)];
        float* z = logits + i * tile.entries;
        const std::int64_t best = arg_max(z, tile.entries);
        if (z[best] > run.best) run.best = z[best], run.best_entry = tile.entry + best;
        const float inverse = 1.0f / t[r];
        if (target[r] >= tile.entry && target[r] < tile.entry + tile.entries) {
          run.target = static_cast<double>(z[target[r] - tile.entry]) / static_cast<double>(t[r]);
        }
        const double part = static_cast<double>(log_sum_exp(z, tile.entries, inverse));
        const double log_z_new = std::max(run.log_z, part) + std::log1p(std::exp(-std::abs(run.log_z - part)));
        const double mean = scaled_mean(z, tile.entries, inverse);
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
        const double part = static_cast<double>(log_sum_exp(z, tile.entries, inverse));
        const float share = static_cast<float>(std::exp(part - log_z[r]));
        for (std::int64_t v = 0; v < tile.entries; ++v) z[v] *= inverse;
        const float lp_grad = gl == nullptr ? 0.0f : gl[r] * inverse, h_grad = gh == nullptr ? 0.0f : gh[r] * inverse;
        if (h_grad == 0) {
          softmax(z, tile.entries);
          const float factor = -lp_grad * share;
          for (std::int64_t v = 0; v < tile.entries; ++v) z[v] *= factor;
        } else {
          thread_local std::vector<float> p;
          p.assign(z, z + tile.entries);
          softmax(p.data(), tile.entries);
          const float offset = static_cast<float>(static_cast<double>(entropy[r]) - log_z[r]);
          for (std::int64_t v = 0; v < tile.entries; ++v) {
            z[v] = -p[static_cast<std::size_t>(v)] * share * (lp_grad + h_grad * (z[v] + offset));
          }
        }
        if (target[r] >= tile.entry && target[r] < tile.entry + tile.entries) z[target[r] - tile.entry] += lp_grad;
      });
      dh.narrow(0, tile.row, tile.rows).addmm_(tile.logits, tile.panel);
    });
    return {dh, at::Tensor(), at::Tensor(), at::Tensor()};
  }

 private:
  // Mean of z * scale under softmax(z * scale); z is scratch afterwards.
  static double scaled_mean(float* z, std::int64_t n, float scale) {
    thread_local std::vector<float> p;
    p.resize(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) p[static_cast<std::size_t>(i)] = z[i] *= scale;
    softmax(p.data(), n);
    // Relative to the largest, so that the products stay small and the f32 sum precise.
    const float best = z[arg_max(z, n)];
    for (std::int64_t i = 0; i < n; ++i) z[i] -= best;
    return static_cast<double>(best) + static_cast<double>(dot(p.data(), z, n));
  }
};

}  // namespace

LogprobTensors logprob_rows(const WeightMatrix& head, const at::Tensor& hidden, const at::Tensor& targets,
                            const at::Tensor& tau) {
  variable_list out = LogprobRows::apply(hidden, targets, tau, static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(&head)));
  return {out[0], out[1], out[2]};
}

}  // namespace sluice
