// SPDX-License-Identifier: GPL-3.0-or-later
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "model/lora_at.h"
#include "model/sampler.h"

namespace sluice {
namespace {

void fill_a(LoraFactors& f, std::int64_t in, bool gaussian, std::uint64_t seed, std::uint64_t& draw) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(in)), sd = 1.0 / f.rank;
  for (float& x : f.a) {
    const double u = counter_uniform(seed, draw++);
    if (!gaussian) {
      x = static_cast<float>((2 * u - 1) * bound);
      continue;
    }
    const double v = counter_uniform(seed, draw++);  // Box-Muller; 1 - u is above 0
    x = static_cast<float>(sd * std::sqrt(-2 * std::log(1 - u)) * std::cos(2 * std::numbers::pi * v));
  }
}

// A leaf over part of the flat buffer, whose gradient is the same part of the flat gradient.
at::Tensor leaf(const at::Tensor& flat, const at::Tensor& grad, std::int64_t at, std::int64_t rows, std::int64_t cols) {
  at::Tensor t = flat.narrow(0, at, rows * cols).view({rows, cols}).detach();
  t.set_requires_grad(true);
  t.mutable_grad() = grad.narrow(0, at, rows * cols).view({rows, cols}).detach();
  return t;
}

}  // namespace

const LoraModule* LoraTensors::find(int layer, Linear linear) const {
  const std::size_t key = static_cast<std::size_t>(layer * kLinearsPerLayer + static_cast<int>(linear));
  if (key >= index_.size() || index_[key] < 0) return nullptr;
  return &modules[static_cast<std::size_t>(index_[key])];
}

Result<LoraTensors> init_lora(const ModelConfig& config, const LoraConfig& lora, std::uint64_t seed) {
  if (lora.rank < 1 || lora.rank > 4096) return invalid_argument("LoRA rank " + std::to_string(lora.rank) + " must be from 1 to 4096");
  if (!std::isfinite(lora.alpha) || lora.alpha == 0) return invalid_argument("LoRA alpha must be a finite number other than 0");
  if (lora.targets.empty()) return invalid_argument("LoRA needs at least one target module");
  for (const int l : lora.layers) {
    if (l < 0 || l >= config.layers) {
      return invalid_argument("LoRA layer " + std::to_string(l) + " is not one of the model's " + std::to_string(config.layers));
    }
  }
  LoraData data;
  data.config = lora;
  std::uint64_t draw = 0;
  for (int layer = 0; layer < config.layers; ++layer) {
    if (!lora.layers.empty() && std::find(lora.layers.begin(), lora.layers.end(), layer) == lora.layers.end()) continue;
    for (const Linear linear : kAllLinears) {
      if (std::find(lora.targets.begin(), lora.targets.end(), linear) == lora.targets.end()) continue;
      LoraFactors f;
      f.layer = layer;
      f.linear = linear;
      f.rank = lora.rank;
      f.alpha = lora.alpha;
      f.scale = static_cast<float>(lora_scale(lora.rank, lora.alpha, lora.rslora));
      f.a.resize(static_cast<std::size_t>(lora.rank * config.linear_cols(linear)));
      f.b.assign(static_cast<std::size_t>(lora.rank * config.linear_rows(linear)), 0.0f);
      fill_a(f, config.linear_cols(linear), lora.gaussian, seed, draw);
      data.modules.push_back(std::move(f));
    }
  }
  return lora_from_data(data, config);
}

LoraTensors lora_from_data(const LoraData& data, const ModelConfig& config) {
  std::int64_t total = 0;
  for (const LoraFactors& f : data.modules) total += static_cast<std::int64_t>(f.a.size() + f.b.size());
  LoraTensors out;
  out.config = data.config;
  out.flat = at::empty({total}, at::kFloat);
  out.flat_grad = at::zeros({total}, at::kFloat);
  out.index_.assign(static_cast<std::size_t>(config.layers * kLinearsPerLayer), -1);
  float* flat = out.flat.mutable_data_ptr<float>();
  std::int64_t at = 0;
  for (const LoraFactors& f : data.modules) {
    LoraModule m;
    m.layer = f.layer;
    m.linear = f.linear;
    m.rank = f.rank;
    m.alpha = f.alpha;
    m.scale = f.scale;
    m.name = module_path(f.layer, f.linear);
    std::copy(f.a.begin(), f.a.end(), flat + at);
    m.a = leaf(out.flat, out.flat_grad, at, f.rank, config.linear_cols(f.linear));
    at += static_cast<std::int64_t>(f.a.size());
    std::copy(f.b.begin(), f.b.end(), flat + at);
    m.b = leaf(out.flat, out.flat_grad, at, config.linear_rows(f.linear), f.rank);
    at += static_cast<std::int64_t>(f.b.size());
    out.index_[static_cast<std::size_t>(f.layer * kLinearsPerLayer + static_cast<int>(f.linear))] =
        static_cast<int>(out.modules.size());
    out.modules.push_back(std::move(m));
  }
  return out;
}

LoraData lora_to_data(const LoraTensors& lora) {
  LoraData data;
  data.config = lora.config;
  for (const LoraModule& m : lora.modules) {
    LoraFactors f;
    f.layer = m.layer;
    f.linear = m.linear;
    f.rank = m.rank;
    f.alpha = m.alpha;
    f.scale = m.scale;
    const float *a = m.a.const_data_ptr<float>(), *b = m.b.const_data_ptr<float>();
    f.a.assign(a, a + m.a.numel());
    f.b.assign(b, b + m.b.numel());
    data.modules.push_back(std::move(f));
  }
  return data;
}

LoraTensors clone_lora(const LoraTensors& lora, const ModelConfig& config) { return lora_from_data(lora_to_data(lora), config); }

}  // namespace sluice
