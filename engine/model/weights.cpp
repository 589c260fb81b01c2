// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "model/kernels/dequant.h"
#include "model/kernels/finite.h"
#include "model/weight_source.h"

namespace sluice {
namespace {

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t length : shape) text += (text.empty() ? "" : " x ") + std::to_string(length);
  return text.empty() ? "a single number" : text;
}

class Loader {
 public:
  Loader(const ModelFile& file, WeightSource source) : file_(file), source_(std::move(source)), w_(std::make_shared<TransformerWeights>()) {
    w_->config = file.config;
    w_->file = file.gguf;
    w_->folder = file.folder;
  }

  Result<std::shared_ptr<const TransformerWeights>> run() {
    const ModelConfig& c = w_->config;
    if (static_cast<std::size_t>(c.layers) > source_.tensors().size()) {
      return invalid_argument("'" + source_.path() + "' is said to have " + std::to_string(c.layers) + " layers, but holds only " +
                              std::to_string(source_.tensors().size()) + " tensors");
    }
    SLUICE_ASSIGN_OR_RETURN(w_->embedding, matrix("model.embed_tokens.weight", c.vocab, c.hidden));
    SLUICE_RETURN_IF_ERROR(read_head());
    SLUICE_ASSIGN_OR_RETURN(w_->final_norm, vector("model.norm.weight", c.hidden));
    w_->layers.resize(static_cast<std::size_t>(c.layers));
    for (int i = 0; i < c.layers; ++i) SLUICE_RETURN_IF_ERROR(read_layer(i));
    SLUICE_RETURN_IF_ERROR(read_rope());
    SLUICE_RETURN_IF_ERROR(refuse_unused());
    summarise();
    SLUICE_ASSIGN_OR_RETURN(w_->content_hash, file_.content_hash());
    return std::shared_ptr<const TransformerWeights>(std::move(w_));
  }

 private:
  Status bad(const StoredTensor& tensor, const std::string& what) const {
    return invalid_argument("'" + source_.path() + "': tensor '" + tensor.name + "' " + what);
  }

  // A tensor of exactly this shape whose numbers are finite.
  Result<const StoredTensor*> take(const std::string& name, const std::vector<std::int64_t>& shape) {
    SLUICE_ASSIGN_OR_RETURN(const StoredTensor* t, source_.tensor(name));
    if (t->shape != shape) return bad(*t, "is " + shape_text(t->shape) + "; the model's settings ask for " + shape_text(shape));
    if (t->elements() % block_values(t->type) != 0 || !all_finite(t->type, t->bytes.data(), t->elements())) {
      return bad(*t, "holds numbers that are not finite: the file is damaged, or the model was saved while broken");
    }
    used_.push_back(t->name);
    return t;
  }

  Result<WeightMatrix> matrix(const std::string& name, std::int64_t rows, std::int64_t cols) {
    SLUICE_ASSIGN_OR_RETURN(const StoredTensor* t, take(name, {rows, cols}));
    WeightMatrix m;
    m.type = t->type;
    m.data = t->bytes.data();
    m.rows = rows;
    m.cols = cols;
    return m;
  }

  // A vector in f32; borrowed where the file has it so.
  Result<const float*> vector(const std::string& name, std::int64_t n) {
    SLUICE_ASSIGN_OR_RETURN(const StoredTensor* t, take(name, {n}));
    const bool aligned = reinterpret_cast<std::uintptr_t>(t->bytes.data()) % alignof(float) == 0;
    if (t->type == BlockType::kF32 && aligned) return reinterpret_cast<const float*>(t->bytes.data());
    float* out = own(static_cast<std::size_t>(n));
    dequantize_row(t->type, t->bytes.data(), n, out);
    return out;
  }

  float* own(std::size_t floats) {
    w_->owned.emplace_back(floats * sizeof(float));
    return reinterpret_cast<float*>(w_->owned.back().data());
  }

  // The stored head; the embedding where the model ties them and none is stored.
  Status read_head() {
    const ModelConfig& c = w_->config;
    w_->head = w_->embedding;
    if (source_.find("lm_head.weight") != nullptr || !c.tied.value_or(true)) {
      SLUICE_ASSIGN_OR_RETURN(w_->head, matrix("lm_head.weight", c.vocab, c.hidden));
    }
    if (source_.find("lm_head.bias") != nullptr) {
      SLUICE_ASSIGN_OR_RETURN(w_->head.bias, vector("lm_head.bias", c.vocab));
    }
    return {};
  }

  Status read_layer(int i) {
    LayerWeights& layer = w_->layers[static_cast<std::size_t>(i)];
    const ModelConfig& c = w_->config;
    const std::string prefix = "model.layers." + std::to_string(i) + ".";
    for (const Linear l : kAllLinears) {
      WeightMatrix& m = layer.linears[static_cast<std::size_t>(l)];
      const std::string name = module_path(i, l);
      SLUICE_ASSIGN_OR_RETURN(m, matrix(name + ".weight", c.linear_rows(l), c.linear_cols(l)));
      const bool stored = source_.find(name + ".bias") != nullptr;
      if (c.biases[static_cast<std::size_t>(l)].value_or(stored)) {
        SLUICE_ASSIGN_OR_RETURN(m.bias, vector(name + ".bias", m.rows));
      }
      if (source_.is_gguf() && c.family == ModelFamily::kLlama && (l == Linear::kQ || l == Linear::kK)) restore_rows(m);
    }
    SLUICE_ASSIGN_OR_RETURN(layer.attention_norm, vector(prefix + "input_layernorm.weight", c.hidden));
    SLUICE_ASSIGN_OR_RETURN(layer.ffn_norm, vector(prefix + "post_attention_layernorm.weight", c.hidden));
    if (c.qk_norm()) {
      SLUICE_ASSIGN_OR_RETURN(layer.q_norm, vector(prefix + "self_attn.q_norm.weight", c.head_dim));
      SLUICE_ASSIGN_OR_RETURN(layer.k_norm, vector(prefix + "self_attn.k_norm.weight", c.head_dim));
    }
    return {};
  }

  // The file's row 2j + p of a head is Hugging Face's row p * head_dim/2 + j. Whole rows move, blocks stay intact.
  void restore_rows(WeightMatrix& m) {
    const std::int64_t head_dim = w_->config.head_dim, half = head_dim / 2;
    const auto source_row = [&](std::int64_t r) {
      const std::int64_t in_head = r % head_dim;
      return r - in_head + 2 * (in_head % half) + in_head / half;
    };
    const auto stride = static_cast<std::size_t>(row_bytes(m.type, m.cols));
    w_->owned.emplace_back(static_cast<std::size_t>(m.rows) * stride);
    std::byte* out = w_->owned.back().data();
    for (std::int64_t r = 0; r < m.rows; ++r) {
      std::memcpy(out + static_cast<std::size_t>(r) * stride, m.data + static_cast<std::size_t>(source_row(r)) * stride, stride);
    }
    m.data = out;
    if (m.bias == nullptr) return;
    float* bias = own(static_cast<std::size_t>(m.rows));
    for (std::int64_t r = 0; r < m.rows; ++r) bias[r] = m.bias[source_row(r)];
    m.bias = bias;
  }

  Status read_rope() {
    std::vector<float> factors;
    if (const StoredTensor* stored = source_.find("rope_freqs.weight")) {
      const int half = w_->config.head_dim / 2;
      SLUICE_ASSIGN_OR_RETURN(const float* values, vector("rope_freqs.weight", half));
      factors.assign(values, values + half);
      for (const float f : factors) {
        if (!std::isfinite(f) || f <= 0) return bad(*stored, "holds a factor that is not above 0");
      }
    }
    w_->rope = rope_frequencies(w_->config, factors);
    return {};
  }

  // A tensor that nothing reads would change the result in the program that wrote it.
  Status refuse_unused() const {
    std::vector<std::string> sorted = used_;
    std::sort(sorted.begin(), sorted.end());
    std::string unused;
    for (const StoredTensor& t : source_.tensors()) {
      if (std::binary_search(sorted.begin(), sorted.end(), t.name)) continue;
      if (t.name.find(".rope_freqs") != std::string::npos || t.name.find("rotary_emb") != std::string::npos) continue;
      unused += (unused.empty() ? "" : ", ") + t.name;
      if (unused.size() > 400) break;
    }
    if (unused.empty()) return {};
    return invalid_argument("'" + source_.path() + "': tensors that this " + w_->config.architecture +
                            " model does not have: " + unused + "; this variant is not supported");
  }

  void summarise() {
    std::map<BlockType, std::int64_t> share;
    for (const StoredTensor& t : source_.tensors()) {
      w_->parameters += t.elements();
      w_->bytes += static_cast<std::int64_t>(t.bytes.size());
    }
    for (const LayerWeights& layer : w_->layers) {
      for (const WeightMatrix& m : layer.linears) share[m.type] += m.rows * m.cols;
    }
    BlockType most = w_->embedding.type;
    for (const auto& [type, n] : share) {
      if (n > share[most]) most = type;
    }
    w_->quantisation = block_type_name(most);
  }

  const ModelFile& file_;
  const WeightSource source_;
  std::shared_ptr<TransformerWeights> w_;
  std::vector<std::string> used_;
};

}  // namespace

Result<std::shared_ptr<const TransformerWeights>> load_weights(const ModelFile& file) {
  SLUICE_ASSIGN_OR_RETURN(WeightSource source, file.weights());
  return Loader(file, std::move(source)).run();
}

}  // namespace sluice
