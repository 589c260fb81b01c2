// SPDX-License-Identifier: GPL-3.0-or-later
// The frozen weights of a model: named matrices that stay as they are in the mapped files, used by serving
// (kernels/matvec.h) and by training (frozen_linear_at.h) alike. Immutable after load; any thread may read them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/block_type.h"
#include "base/result.h"
#include "model/config.h"
#include "model/model_file.h"

namespace sluice {

class Model;

// y = W x with W [rows, cols], row-major blocks. Borrowed from TransformerWeights.
struct WeightMatrix {
  BlockType type = BlockType::kF32;
  const std::byte* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  const float* bias = nullptr;  // [rows], or none

  std::int64_t bytes() const { return rows * row_bytes(type, cols); }
};

struct LayerWeights {
  std::array<WeightMatrix, kLinearsPerLayer> linears;
  const float* attention_norm = nullptr;  // [hidden]
  const float* ffn_norm = nullptr;        // [hidden]
  const float* q_norm = nullptr;          // [head_dim], Qwen3 only
  const float* k_norm = nullptr;

  const WeightMatrix& linear(Linear l) const { return linears[static_cast<std::size_t>(l)]; }
};

struct TransformerWeights {
  ModelConfig config;
  WeightMatrix embedding;  // [vocab, hidden]
  WeightMatrix head;       // [vocab, hidden]; the embedding itself where the model ties them
  const float* final_norm = nullptr;
  std::vector<LayerWeights> layers;
  RopeFrequencies rope;
  std::int64_t parameters = 0;
  std::int64_t bytes = 0;        // of all tensors
  std::string quantisation;      // block type of most linear weights
  std::string content_hash;      // ModelFile::content_hash
  std::shared_ptr<const GgufFile> file;              // one of the two keeps the mapping
  std::shared_ptr<const SafetensorsFolder> folder;
  std::vector<std::vector<std::byte>> owned;  // what could not be borrowed: reordered q and k rows, norms not in f32
};

// q and k rows of `llama` GGUF files are stored pair-interleaved; they come back in Hugging Face order, so that adapters mean
// the same on every base and the rotary embedding is always the split one. Errors name the tensor and what is wrong,
// a number that is not finite included.
Result<std::shared_ptr<const TransformerWeights>> load_weights(const ModelFile& file);

// The weights behind a Model that load_model() made; null for any other implementation.
std::shared_ptr<const TransformerWeights> model_weights(const Model& model);

}  // namespace sluice
