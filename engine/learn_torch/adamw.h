// SPDX-License-Identifier: GPL-3.0-or-later
// AdamW (Loshchilov & Hutter 2019, decoupled weight decay) as one loop over one flat f32 buffer, with clipping by the global
// norm (learning.md §8). A value; one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "learn/settings.h"

namespace sluice {

struct AdamWReport {
  bool skipped = false;   // the norm was not finite: nothing moved
  double grad_norm = 0;   // before clipping
  double lr = 0;          // used: lr min(1, t / warmup)
};

struct AdamW {
  std::int64_t t = 0;     // updates done
  std::vector<float> m;   // first moments
  std::vector<float> v;   // second moments

  explicit AdamW(std::size_t parameters = 0) : m(parameters, 0), v(parameters, 0) {}

  // m <- b1 m + (1-b1) g, v <- b2 v + (1-b2) g^2, theta <- theta - lr_t (mhat / (sqrt(vhat) + eps) + wd theta).
  // theta and grad hold m.size() values.
  AdamWReport step(std::span<float> theta, std::span<const float> grad, const OptimiserSettings& settings);
};

// Global norm in f64: squares of f32 gradients may leave the range of f32.
double global_norm(std::span<const float> grad);

}  // namespace sluice
