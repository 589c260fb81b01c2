// SPDX-License-Identifier: GPL-3.0-or-later
#include <ATen/Parallel.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <limits>
#include <optional>

#include "model/frozen_linear_at.h"
#include "model/functions_at.h"
#include "model/kernels/vector_math.h"

namespace sluice {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

std::int64_t to_saved(const void* p) { return static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(p)); }
template <class T>
const T* from_saved(const c10::IValue& v) {
  return reinterpret_cast<const T*>(static_cast<std::intptr_t>(v.toInt()));
}

template <class Fn>
void each_row(std::int64_t rows, std::int64_t work, const Fn& fn) {
  at::parallel_for(0, rows, std::max<std::int64_t>(1, 16384 / work), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) fn(r);
  });
}

// Inputs: x, then A and B of each adapted layer. `scales` are per layer, 0 = no adapter.
class LoraLinears : public Function<LoraLinears> {
 public:
  static variable_list forward(AutogradContext* ctx, const at::Tensor& x, at::TensorList factors,
                               const std::vector<std::int64_t>& weights, const std::vector<double>& scales) {
    const PackedRows packed = packed_rows(x);
    variable_list saved{x}, ys;
    std::size_t next = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const auto& w = *reinterpret_cast<const WeightMatrix*>(static_cast<std::intptr_t>(weights[i]));
      at::Tensor y = at::empty({x.size(0), w.rows}, x.options());
      AdapterPart adapter;
      if (scales[i] != 0) {
        const at::Tensor &a = factors[next], &b = factors[next + 1];
        next += 2;
        const at::Tensor low = at::mm(x, a.t()).mul_(scales[i]);
        adapter = {packed_rows(low), b, a.size(0)};
        saved.insert(saved.end(), {a, b, low});
      }
      frozen_linear_out(w, 0, w.rows, packed, y, adapter);
      ys.push_back(std::move(y));
    }
    ctx->save_for_backward(std::move(saved));
    ctx->saved_data["weights"] = weights;
    ctx->saved_data["scales"] = scales;
    ctx->set_materialize_grads(false);
    return ys;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& dys) {
    const variable_list saved = ctx->get_saved_variables();
    const std::vector<std::int64_t> weights = ctx->saved_data["weights"].toIntVector();
    const std::vector<double> scales = ctx->saved_data["scales"].toDoubleVector();
    const at::Tensor& x = saved[0];
    const bool need_x = ctx->needs_input_grad(0);
    at::Tensor dx = need_x ? at::empty_like(x) : at::Tensor();
    bool started = false;
    variable_list grads{at::Tensor()};
    std::size_t next = 1;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const bool adapted = scales[i] != 0;
      if (!dys[i].defined()) {
        if (adapted) grads.insert(grads.end(), 2, at::Tensor());
        next += adapted ? 3 : 0;
        continue;
      }
      const at::Tensor dy = dys[i].contiguous();
      AdapterPart adapter;
      if (adapted) {
        const at::Tensor &a = saved[next], &b = saved[next + 1], &low = saved[next + 2];  // low = scale x A^T
        next += 3;
        const at::Tensor dlow = at::mm(dy, b).mul_(scales[i]);
        grads.push_back(at::mm(dlow.t(), x));
        grads.push_back(at::mm(dy.t(), low));
        if (need_x) adapter = {packed_rows(dlow), a, a.size(0)};
      }
      if (!need_x) continue;
      const auto& w = *reinterpret_cast<const WeightMatrix*>(static_cast<std::intptr_t>(weights[i]));
      frozen_linear_backward_out(w, 0, w.rows, packed_rows(dy), dx, started, adapter);
      started = true;
    }
    if (need_x && started) grads[0] = dx;
    grads.insert(grads.end(), 2, at::Tensor());  // weights, scales
    return grads;
  }
};

class RmsNorm : public Function<RmsNorm> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, std::int64_t weight, double eps) {
    const auto* w = reinterpret_cast<const float*>(static_cast<std::intptr_t>(weight));
    const std::int64_t n = x.size(1);
    at::Tensor y = at::empty_like(x);
    const float* in = x.const_data_ptr<float>();
    float* out = y.mutable_data_ptr<float>();
    each_row(x.size(0), n, [&](std::int64_t r) { rms_norm(in + r * n, w, n, static_cast<float>(eps), out + r * n); });
    ctx->save_for_backward({x});
    ctx->saved_data["weight"] = weight;
    ctx->saved_data["eps"] = eps;
    return y;
  }

  // With s = 1 / rms: dx = s (g - x s^2 mean(g x)), g = dy * weight.
  static variable_list backward(AutogradContext* ctx, const variable_list& dys) {
    const at::Tensor x = ctx->get_saved_variables()[0], dy = dys[0].contiguous();
    const auto* w = from_saved<float>(ctx->saved_data["weight"]);
    const double eps = ctx->saved_data["eps"].toDouble();
    const std::int64_t n = x.size(1);
    at::Tensor dx = at::empty_like(x);
    const float *xs = x.const_data_ptr<float>(), *gs = dy.const_data_ptr<float>();
    float* out = dx.mutable_data_ptr<float>();
    each_row(x.size(0), 4 * n, [&](std::int64_t r) {
      const float *xr = xs + r * n, *gr = gs + r * n;
      float* o = out + r * n;
      for (std::int64_t i = 0; i < n; ++i) o[i] = gr[i] * w[i];
      const double mean_square = static_cast<double>(dot(xr, xr, n)) / static_cast<double>(n);
      const double s = 1.0 / std::sqrt(mean_square + eps);
      const double along = static_cast<double>(dot(o, xr, n)) / static_cast<double>(n);
      const float scale = static_cast<float>(s), back = static_cast<float>(s * s * s * along);
      for (std::int64_t i = 0; i < n; ++i) o[i] = o[i] * scale - xr[i] * back;
    });
    return {dx, at::Tensor(), at::Tensor()};
  }
};

// A rotation by `sign` times the angles.
at::Tensor rotated(const at::Tensor& x, const at::Tensor& cos_sin, bool back) {
  const std::int64_t head_dim = cos_sin.size(1), half = head_dim / 2, width = x.size(1);
  at::Tensor y = at::empty_like(x);
  const float *in = x.const_data_ptr<float>(), *angles = cos_sin.const_data_ptr<float>();
  float* out = y.mutable_data_ptr<float>();
  const float sign = back ? -1.0f : 1.0f;
  each_row(x.size(0), 2 * width, [&](std::int64_t r) {
    const float *c = angles + r * head_dim, *s = c + half;
    for (std::int64_t h = 0; h < width; h += head_dim) {
      const float *low = in + r * width + h, *high = low + half;
      float* o = out + r * width + h;
      for (std::int64_t i = 0; i < half; ++i) {
        o[i] = low[i] * c[i] - sign * (high[i] * s[i]);
        o[half + i] = high[i] * c[i] + sign * (low[i] * s[i]);
      }
    }
  });
  return y;
}

class Rotate : public Function<Rotate> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& cos_sin) {
    ctx->save_for_backward({cos_sin});
    return rotated(x, cos_sin, false);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& dys) {
    // The magnitude of cos and sin is that of the forward map, whose transpose this is.
    return {rotated(dys[0].contiguous(), ctx->get_saved_variables()[0], true), at::Tensor()};
  }
};

class SiluGate : public Function<SiluGate> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& gate, const at::Tensor& up) {
    const std::int64_t n = gate.size(1);
    at::Tensor y = at::empty_like(gate);
    const float *g = gate.const_data_ptr<float>(), *u = up.const_data_ptr<float>();
    float* out = y.mutable_data_ptr<float>();
    each_row(gate.size(0), 8 * n, [&](std::int64_t r) { silu_mul(g + r * n, u + r * n, n, out + r * n); });
    ctx->save_for_backward({gate, up});
    return y;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& dys) {
    const variable_list saved = ctx->get_saved_variables();
    at::Tensor dup = at::silu(saved[0]).mul_(dys[0]);
    at::Tensor dgate = at::silu_backward(at::mul(dys[0], saved[1]), saved[0]);
    return {dgate, dup};
  }
};

// [n, heads * head_dim] rows of one sequence as [1, heads, n, head_dim].
at::Tensor heads_first(const at::Tensor& x, std::int64_t heads) {
  return x.view({x.size(0), heads, -1}).transpose(0, 1).unsqueeze(0);
}

// Rows of one sequence, or of the shared prefix and a sequence after it.
struct Part {
  std::int64_t begin, rows, prefix;

  at::Tensor own(const at::Tensor& x) const { return x.narrow(0, begin, rows); }
  // A key or value head for every query head, [1, heads, prefix + rows, head_dim].
  at::Tensor keys(const at::Tensor& x, std::int64_t kv_heads, std::int64_t group) const {
    const at::Tensor all = prefix == 0 ? own(x) : at::cat({x.narrow(0, 0, prefix), own(x)});
    const std::int64_t n = all.size(0), head_dim = all.size(1) / kv_heads;
    const at::Tensor wide = all.view({n, kv_heads, 1, head_dim}).expand({n, kv_heads, group, head_dim});
    return heads_first(wide.reshape({n, kv_heads * group * head_dim}), kv_heads * group);
  }
  // Gradients of those heads -> added up per key head into the rows they came from. The prefix, a part of its own, comes
  // first and sets its rows.
  void add_keys(const at::Tensor& gradient, at::Tensor& into, std::int64_t kv_heads) const {
    const std::int64_t n = prefix + rows, head_dim = into.size(1) / kv_heads;
    const at::Tensor sum = gradient.contiguous().view({kv_heads, -1, n, head_dim}).sum(1).transpose(0, 1);  // [n, kv_heads, head_dim]
    own(into).view({rows, kv_heads, head_dim}).copy_(sum.narrow(0, prefix, rows));
    if (prefix > 0) into.narrow(0, 0, prefix).view({prefix, kv_heads, head_dim}).add_(sum.narrow(0, 0, prefix));
  }
};

Part part_of(const std::vector<std::int64_t>& starts, std::size_t s, std::int64_t prefix) {
  return {starts[s], starts[s + 1] - starts[s], s == 0 ? 0 : prefix};
}

class PackedAttention : public Function<PackedAttention> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            at::TensorList masks, const std::vector<std::int64_t>& starts, std::int64_t prefix,
                            std::int64_t heads, std::int64_t kv_heads) {
    at::Tensor out = at::empty_like(q);
    variable_list saved{q, k, v, out};
    saved.insert(saved.end(), masks.begin(), masks.end());
    for (std::size_t s = 0; s + 1 < starts.size(); ++s) {
      const Part part = part_of(starts, s, prefix);
      const std::optional<at::Tensor> mask = part.prefix == 0 ? std::nullopt : std::optional<at::Tensor>(masks[s - 1]);
      auto [o, lse] = at::_scaled_dot_product_flash_attention_for_cpu(
          heads_first(part.own(q), heads), part.keys(k, kv_heads, heads / kv_heads), part.keys(v, kv_heads, heads / kv_heads), 0.0,
          /*is_causal=*/!mask.has_value(), mask);
      part.own(out).view({-1, heads, q.size(1) / heads}).copy_(o.squeeze(0).transpose(0, 1));
      saved.push_back(lse);
    }
    ctx->save_for_backward(std::move(saved));
    ctx->saved_data["starts"] = starts;
    ctx->saved_data["prefix"] = prefix;
    ctx->saved_data["heads"] = heads;
    ctx->saved_data["kv_heads"] = kv_heads;
    return out;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& dys) {
    const variable_list saved = ctx->get_saved_variables();
    const std::vector<std::int64_t> starts = ctx->saved_data["starts"].toIntVector();
    const std::int64_t prefix = ctx->saved_data["prefix"].toInt();
    const std::int64_t heads = ctx->saved_data["heads"].toInt(), kv_heads = ctx->saved_data["kv_heads"].toInt();
    const std::size_t parts = starts.size() - 1, masks = prefix > 0 ? parts - 1 : 0;
    const at::Tensor dout = dys[0].contiguous();
    at::Tensor dq = at::empty_like(saved[0]), dk = at::empty_like(saved[1]), dv = at::empty_like(saved[2]);
    for (std::size_t s = 0; s < parts; ++s) {
      const Part part = part_of(starts, s, prefix);
      const std::optional<at::Tensor> mask = part.prefix == 0 ? std::nullopt : std::optional<at::Tensor>(saved[3 + s]);
      auto [gq, gk, gv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
          heads_first(part.own(dout), heads), heads_first(part.own(saved[0]), heads),
          part.keys(saved[1], kv_heads, heads / kv_heads), part.keys(saved[2], kv_heads, heads / kv_heads),
          heads_first(part.own(saved[3]), heads), saved[4 + masks + s], 0.0, /*is_causal=*/!mask.has_value(), mask);
      part.own(dq).view({-1, heads, dq.size(1) / heads}).copy_(gq.squeeze(0).transpose(0, 1));
      part.add_keys(gk, dk, kv_heads);
      part.add_keys(gv, dv, kv_heads);
    }
    variable_list grads{dq, dk, dv};
    grads.resize(3 + masks + 4);  // masks, starts, prefix, heads, kv_heads
    return grads;
  }
};

using BlockFunction = std::function<at::Tensor(const at::Tensor&)>;

// Lets the graph own the function.
struct HeldFunction : torch::CustomClassHolder {
  explicit HeldFunction(BlockFunction f) : fn(std::move(f)) {}
  BlockFunction fn;
};

class Checkpoint : public Function<Checkpoint> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, at::TensorList leaves,
                            const c10::intrusive_ptr<HeldFunction>& held) {
    variable_list saved{x};
    saved.insert(saved.end(), leaves.begin(), leaves.end());
    ctx->save_for_backward(std::move(saved));
    ctx->saved_data["fn"] = c10::IValue::make_capsule(held);
    return held->fn(x);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& dys) {
    const variable_list saved = ctx->get_saved_variables();
    const auto held = c10::static_intrusive_pointer_cast<HeldFunction>(ctx->saved_data["fn"].toCapsule());
    const at::AutoGradMode with_grad(true);
    variable_list inputs(saved.begin(), saved.end());
    // The block's input asks for a gradient even where the graph before it does not: LoRA factors of every block count.
    inputs[0] = saved[0].detach().requires_grad_(true);
    const at::Tensor y = held->fn(inputs[0]);
    variable_list grads = torch::autograd::grad({y}, inputs, {dys[0]}, false, false, /*allow_unused=*/true);
    if (!ctx->needs_input_grad(0)) grads[0] = at::Tensor();
    grads.emplace_back();  // fn
    return grads;
  }
};

}  // namespace

std::vector<at::Tensor> lora_linears(std::span<const LinearPair> layers, const at::Tensor& x) {
  std::vector<at::Tensor> factors;
  std::vector<std::int64_t> weights;
  std::vector<double> scales;
  for (const LinearPair& l : layers) {
    weights.push_back(to_saved(l.weight));
    const bool adapted = l.lora != nullptr && l.lora->scale != 0;
    scales.push_back(adapted ? static_cast<double>(l.lora->scale) : 0.0);
    if (adapted) factors.insert(factors.end(), {l.lora->a, l.lora->b});
  }
  return LoraLinears::apply(x, at::TensorList(factors), weights, scales);
}

at::Tensor rms_norm_rows(const at::Tensor& x, const float* weight, double eps) {
  return RmsNorm::apply(x, to_saved(weight), eps);
}

at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos_sin) { return Rotate::apply(x, cos_sin); }

at::Tensor silu_gate(const at::Tensor& gate, const at::Tensor& up) { return SiluGate::apply(gate, up); }

AttentionPlan::AttentionPlan(std::vector<std::int64_t> rows, std::int64_t shared) : starts(std::move(rows)), prefix(shared) {
  for (std::size_t s = 1; prefix > 0 && s + 1 < starts.size(); ++s) {
    const std::int64_t n = starts[s + 1] - starts[s];
    masks.push_back(at::full({n, prefix + n}, -std::numeric_limits<double>::infinity(), at::kFloat).triu_(prefix + 1));
  }
}

at::Tensor packed_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionPlan& plan, int heads,
                            int kv_heads) {
  return PackedAttention::apply(q, k, v, at::TensorList(plan.masks), plan.starts, plan.prefix, std::int64_t{heads},
                                std::int64_t{kv_heads});
}

at::Tensor checkpointed(std::function<at::Tensor(const at::Tensor&)> fn, const at::Tensor& x,
                        const std::vector<at::Tensor>& leaves) {
  return Checkpoint::apply(x, at::TensorList(leaves), c10::make_intrusive<HeldFunction>(std::move(fn)));
}

}  // namespace sluice
