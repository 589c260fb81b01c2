// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/weight_source.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace sluice {
namespace {

constexpr std::string_view kModel = "model.", kLayers = "model.layers.";

struct Spelling {
  std::string_view ours, gguf;
};
constexpr Spelling kWhole[] = {{"model.embed_tokens.weight", "token_embd.weight"},
                               {"model.norm.weight", "output_norm.weight"},
                               {"lm_head.weight", "output.weight"},
                               {"lm_head.bias", "output.bias"}};
constexpr Spelling kModules[] = {{"self_attn.q_proj", "attn_q"},      {"self_attn.k_proj", "attn_k"},
                                 {"self_attn.v_proj", "attn_v"},      {"self_attn.o_proj", "attn_output"},
                                 {"mlp.gate_proj", "ffn_gate"},       {"mlp.up_proj", "ffn_up"},
                                 {"mlp.down_proj", "ffn_down"},       {"input_layernorm", "attn_norm"},
                                 {"post_attention_layernorm", "ffn_norm"}, {"self_attn.q_norm", "attn_q_norm"},
                                 {"self_attn.k_norm", "attn_k_norm"}};

std::optional<BlockType> block_type(SafeDtype dtype) {
  switch (dtype) {
    case SafeDtype::kF32: return BlockType::kF32;
    case SafeDtype::kF16: return BlockType::kF16;
    case SafeDtype::kBF16: return BlockType::kBF16;
    default: return std::nullopt;
  }
}

}  // namespace

std::string gguf_tensor_name(const std::string& name) {
  for (const Spelling& s : kWhole) {
    if (name == s.ours) return std::string(s.gguf);
  }
  if (!name.starts_with(kLayers)) return name;
  const std::size_t layer_end = name.find('.', kLayers.size()), kind = name.rfind('.');
  if (layer_end == std::string::npos || kind <= layer_end) return name;
  const std::string_view module = std::string_view(name).substr(layer_end + 1, kind - layer_end - 1);
  for (const Spelling& s : kModules) {
    if (module != s.ours) continue;
    return "blk." + name.substr(kLayers.size(), layer_end - kLayers.size()) + "." + std::string(s.gguf) + name.substr(kind);
  }
  return name;
}

std::int64_t StoredTensor::elements() const {
  std::int64_t n = 1;
  for (const std::int64_t length : shape) n *= length;
  return n;
}

void WeightSource::add(StoredTensor tensor) {
  index_.emplace(tensor.name, tensors_.size());
  tensors_.push_back(std::move(tensor));
}

WeightSource::WeightSource(const GgufFile& file) : path_(file.path()), gguf_(true) {
  for (const GgufTensor& t : file.tensors()) add({t.name, t.type, {t.shape.rbegin(), t.shape.rend()}, t.bytes});
}

Result<WeightSource> WeightSource::create(const SafetensorsFolder& folder) {
  WeightSource source;
  source.path_ = folder.path();
  source.bare_ = true;
  for (const SafeTensor* t : folder.tensors()) {
    if (t->name.starts_with(kModel)) source.bare_ = false;
    const std::optional<BlockType> type = block_type(t->dtype);
    if (!type) {
      return invalid_argument("'" + folder.path() + "': tensor '" + t->name + "' is stored as " + safe_dtype_name(t->dtype) +
                              "; Sluice reads weights in F32, F16 and BF16");
    }
    source.add({t->name, *type, t->shape, t->bytes});
  }
  return source;
}

std::string WeightSource::spelling(const std::string& name) const {
  if (gguf_) return gguf_tensor_name(name);
  return bare_ && name.starts_with(kModel) ? name.substr(kModel.size()) : name;
}

const StoredTensor* WeightSource::find(const std::string& name) const {
  const auto at = index_.find(spelling(name));
  return at == index_.end() ? nullptr : &tensors_[at->second];
}

Result<const StoredTensor*> WeightSource::tensor(const std::string& name) const {
  if (const StoredTensor* found = find(name)) return found;
  return not_found("'" + path_ + "' has no tensor '" + spelling(name) + "'");
}

}  // namespace sluice
