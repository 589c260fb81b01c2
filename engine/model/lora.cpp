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
    : version_(version), content_hash_(data.content_hash), shapes_(shapes_of(config)), layers_(static_cast<std::size_t>(config.layers)) {
  for (const LoraFactors& f : data.modules) {
    Layer& layer = layers_[static_cast<std::size_t>(f.layer)];
    layer.modules[static_cast<std::size_t>(f.linear)].rank = f.rank;
    rank_ = std::max(rank_, f.rank);
  }
  words_ = place(config, nullptr);
  memory_ = LargeBlock(static_cast<std::size_t>(bytes()));
  place(config, static_cast<std::int16_t*>(memory_.data()));
  for (const LoraFactors& f : data.modules) fill(config, f);
}

LoraAdapter::Shapes LoraAdapter::shapes_of(const ModelConfig& config) {
  Shapes shapes{config.layers};
  for (const Linear l : kAllLinears) {
    shapes.push_back(config.linear_rows(l));
    shapes.push_back(config.linear_cols(l));
  }
  return shapes;
}

// Lays everything out behind `begin` and returns the words that takes. A null `begin` only counts them.
std::int64_t LoraAdapter::place(const ModelConfig& config, std::int16_t* begin) {
  std::int64_t words = 0;
  for (Layer& layer : layers_) {
    for (int input = 0; input < kLoraInputs; ++input) {
      Stack& stack = layer.stacks[static_cast<std::size_t>(input)];
      stack = {};
      if (begin != nullptr) stack.a = begin + words;
      for (const Linear l : kAllLinears) {
        Module& m = layer.modules[static_cast<std::size_t>(l)];
        if (lora_input(l) != input || m.rank == 0) continue;
        m.first = stack.rank;
        stack.rank += m.rank;
        stack.words = stack.rank * lora_padded(config.linear_cols(l));
      }
      stack_rank_ = std::max(stack_rank_, stack.rank);
      words += stack.words;
      for (const Linear l : kAllLinears) {
        Module& m = layer.modules[static_cast<std::size_t>(l)];
        if (lora_input(l) != input || m.rank == 0) continue;
        if (begin != nullptr) m.b = begin + words;
        words += m.rank * lora_padded(config.linear_rows(l));
      }
    }
  }
  return words;
}

void LoraAdapter::fill(const ModelConfig& config, const LoraFactors& f) {
  Layer& layer = layers_[static_cast<std::size_t>(f.layer)];
  Module& m = layer.modules[static_cast<std::size_t>(f.linear)];
  const Stack& stack = layer.stacks[static_cast<std::size_t>(lora_input(f.linear))];
  auto* const memory = static_cast<std::int16_t*>(memory_.data());
  std::vector<std::int16_t> words(std::max(f.a.size(), f.b.size()));
  const float a_scale = lora_to_words(f.a.data(), static_cast<std::int64_t>(f.a.size()), words.data());
  lora_pack_a(words.data(), config.linear_cols(f.linear), f.rank, stack.rank, m.first, memory + (stack.a - memory));
  const float b_scale = lora_to_words(f.b.data(), static_cast<std::int64_t>(f.b.size()), words.data());
  lora_pack_b(words.data(), config.linear_rows(f.linear), f.rank, memory + (m.b - memory));
  m.scale = f.scale * a_scale * b_scale;
}

}  // namespace sluice
