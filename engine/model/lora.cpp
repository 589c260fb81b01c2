// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/lora.h"

#include <algorithm>
#include <cmath>

#include "model/kernels/lora.h"

namespace sluice {

double lora_scale(int rank, double alpha, bool rslora) {
  return rslora ? alpha / std::sqrt(static_cast<double>(rank)) : alpha / rank;
}

LoraAdapter::LoraAdapter(const ModelConfig& config, const LoraData& data, VersionId version)
    : version_(version), content_hash_(data.content_hash), modules_(static_cast<std::size_t>(config.layers)) {
  for (const LoraFactors& f : data.modules) {
    Module& m = modules_[static_cast<std::size_t>(f.layer)][static_cast<std::size_t>(f.linear)];
    m.rank = f.rank;
    m.a.resize(f.a.size());
    m.b_t.resize(f.b.size());
    std::vector<float> b_t(f.b.size());
    lora_transpose_b(f.b.data(), config.linear_rows(f.linear), f.rank, b_t.data());
    const float a_scale = lora_to_words(f.a.data(), static_cast<std::int64_t>(f.a.size()), m.a.data());
    const float b_scale = lora_to_words(b_t.data(), static_cast<std::int64_t>(b_t.size()), m.b_t.data());
    m.scale = f.scale * a_scale * b_scale;
    rank_ = std::max(rank_, f.rank);
    bytes_ += static_cast<std::int64_t>((f.a.size() + f.b.size()) * sizeof(std::int16_t));
  }
}

bool LoraAdapter::fits(const ModelConfig& config) const {
  if (modules_.size() != static_cast<std::size_t>(config.layers)) return false;
  for (const auto& layer : modules_) {
    for (const Linear l : kAllLinears) {
      const Module& m = layer[static_cast<std::size_t>(l)];
      const auto rank = static_cast<std::size_t>(m.rank);
      if (m.a.size() != rank * static_cast<std::size_t>(config.linear_cols(l)) ||
          m.b_t.size() != rank * static_cast<std::size_t>(config.linear_rows(l))) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace sluice
