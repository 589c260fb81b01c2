// SPDX-License-Identifier: GPL-3.0-or-later
// The stored tensors of a model under one set of names, Hugging Face's, whether they lie in a GGUF file or in a folder of
// safetensors files. Borrows from the open files, which outlive it. Immutable; any thread may read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/block_type.h"
#include "base/result.h"
#include "model/format/gguf.h"
#include "model/format/safetensors_folder.h"

namespace sluice {

struct StoredTensor {
  std::string name;  // as the file spells it
  BlockType type = BlockType::kF32;
  std::vector<std::int64_t> shape;   // outermost first
  std::span<const std::byte> bytes;  // of a safetensors file: at any address
  std::int64_t elements() const;
};

// "model.layers.3.mlp.up_proj.weight" -> "blk.3.ffn_up.weight"; what has no GGUF name stays as it is.
std::string gguf_tensor_name(const std::string& name);

class WeightSource {
 public:
  explicit WeightSource(const GgufFile& file);
  // kInvalidArgument names a tensor of a type that weights don't have.
  static Result<WeightSource> create(const SafetensorsFolder& folder);

  const std::string& path() const { return path_; }
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  // By Hugging Face's name ("model.layers.0.mlp.up_proj.weight"); nullptr: no such tensor.
  const StoredTensor* find(const std::string& name) const;
  // kNotFound names the tensor as this file would spell it.
  Result<const StoredTensor*> tensor(const std::string& name) const;
  // GGUF files of the llama family keep the two halves of a head's q and k rows interleaved.
  bool is_gguf() const { return gguf_; }

 private:
  WeightSource() = default;
  void add(StoredTensor tensor);
  std::string spelling(const std::string& name) const;

  std::string path_;
  bool gguf_ = false;
  bool bare_ = false;  // saved from the model without its head: names lack "model."
  std::vector<StoredTensor> tensors_;
  std::unordered_map<std::string, std::size_t> index_;
};

}  // namespace sluice
