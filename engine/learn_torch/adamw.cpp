// SPDX-License-Identifier: GPL-3.0-or-later
#include "learn_torch/adamw.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace sluice {

double global_norm(std::span<const float> grad) {
  double sum = 0;
  for (float g : grad) sum += static_cast<double>(g) * g;
  return std::sqrt(sum);
}

AdamWReport AdamW::step(std::span<float> theta, std::span<const float> grad, const OptimiserSettings& s) {
  assert(theta.size() == m.size() && grad.size() == m.size());
  AdamWReport out;
  out.grad_norm = global_norm(grad);
  if (!std::isfinite(out.grad_norm)) {
    out.skipped = true;
    return out;
  }
  ++t;
  // The 1e-6 is what torch.nn.utils.clip_grad_norm_ adds; results are compared with it.
  const auto clip = static_cast<float>(std::min(1.0, s.max_norm / (out.grad_norm + 1e-6)));
  out.lr = s.warmup_steps > 0 ? s.lr * std::min(1.0, static_cast<double>(t) / s.warmup_steps) : s.lr;
  const double correct1 = 1 - std::pow(s.beta1, static_cast<double>(t));
  const double correct2 = std::sqrt(1 - std::pow(s.beta2, static_cast<double>(t)));
  const auto b1 = static_cast<float>(s.beta1), b2 = static_cast<float>(s.beta2);
  const auto decay = static_cast<float>(1 - out.lr * s.weight_decay);
  for (std::size_t i = 0; i < m.size(); ++i) {
    const float g = grad[i] * clip;
    m[i] = b1 * m[i] + (1 - b1) * g;
    v[i] = b2 * v[i] + (1 - b2) * g * g;
    const double denominator = std::sqrt(static_cast<double>(v[i])) / correct2 + s.eps;
    theta[i] = theta[i] * decay - static_cast<float>(out.lr * (m[i] / correct1) / denominator);
  }
  return out;
}

}  // namespace sluice
