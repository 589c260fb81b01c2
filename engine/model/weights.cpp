// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "base/sha256.h"
#include "model/kernels/dequant.h"

namespace sluice {
namespace {

const char* gguf_name(Linear linear) {
  switch (linear) {
    case Linear::kQ: return "attn_q";
    case Linear::kK: return "attn_k";
    case Linear::kV: return "attn_v";
    case Linear::kO: return "attn_output";
    case Linear::kGate: return "ffn_gate";
    case Linear::kUp: return "ffn_up";
    case Linear::kDown: return "ffn_down";
  }
  return "unknown";
}

std::string shape_text(std::int64_t rows, std::int64_t cols) {
  return std::to_string(rows) + " x " + std::to_string(cols);
}

class Loader {
 public:
  explicit Loader(std::shared_ptr<const GgufFile> file) : file_(*file), w_(std::make_shared<TransformerWeights>()) {
    w_->file = std::move(file);
  }

  Result<std::shared_ptr<const TransformerWeights>> run() {
    SLUICE_ASSIGN_OR_RETURN(w_->config, config_from_gguf(file_));
    const ModelConfig& c = w_->config;
    SLUICE_ASSIGN_OR_RETURN(w_->embedding, matrix("token_embd.weight", c.vocab, c.hidden));
    w_->head = w_->embedding;
    if (file_.find_tensor("output.weight") != nullptr) {
      SLUICE_ASSIGN_OR_RETURN(w_->head, matrix("output.weight", c.vocab, c.hidden));
    }
    SLUICE_ASSIGN_OR_RETURN(w_->final_norm, vector("output_norm.weight", c.hidden));
    w_->layers.resize(static_cast<std::size_t>(c.layers));
    for (int i = 0; i < c.layers; ++i) SLUICE_RETURN_IF_ERROR(read_layer(i));
    SLUICE_RETURN_IF_ERROR(read_rope());
    SLUICE_RETURN_IF_ERROR(refuse_unused());
    summarise();
    SLUICE_ASSIGN_OR_RETURN(w_->content_hash, sha256_file(file_.path()));
    return std::shared_ptr<const TransformerWeights>(std::move(w_));
  }

 private:
  Status bad(const std::string& tensor, const std::string& what) const {
    return invalid_argument(file_.path() + ": tensor " + tensor + " " + what);
  }

  Result<WeightMatrix> matrix(const std::string& name, std::int64_t rows, std::int64_t cols) {
    SLUICE_ASSIGN_OR_RETURN(const GgufTensor* t, file_.tensor(name));
    if (t->shape.size() != 2 || t->rows() != rows || t->cols() != cols) {
      return bad(name, "is " + shape_text(t->rows(), t->cols()) + "; the metadata ask for " + shape_text(rows, cols));
    }
    used_.push_back(name);
    WeightMatrix m;
    m.type = t->type;
    m.data = t->bytes.data();
    m.rows = rows;
    m.cols = cols;
    return m;
  }

  // A vector in f32; borrowed where the file has it so.
  Result<const float*> vector(const std::string& name, std::int64_t n) {
    SLUICE_ASSIGN_OR_RETURN(const GgufTensor* t, file_.tensor(name));
    if (t->rows() != 1 || t->cols() != n) {
      return bad(name, "is " + shape_text(t->rows(), t->cols()) + "; the metadata ask for " + std::to_string(n) + " values");
    }
    used_.push_back(name);
    if (t->type == BlockType::kF32) return reinterpret_cast<const float*>(t->bytes.data());
    float* out = own(static_cast<std::size_t>(n));
    dequantize_row(t->type, t->bytes.data(), n, out);
    return out;
  }

  float* own(std::size_t floats) {
    w_->owned.emplace_back(floats * sizeof(float));
    return reinterpret_cast<float*>(w_->owned.back().data());
  }

  Status read_layer(int i) {
    LayerWeights& layer = w_->layers[static_cast<std::size_t>(i)];
    const ModelConfig& c = w_->config;
    const std::string prefix = "blk." + std::to_string(i) + ".";
    for (const Linear l : kAllLinears) {
      WeightMatrix& m = layer.linears[static_cast<std::size_t>(l)];
      const std::string name = prefix + gguf_name(l);
      SLUICE_ASSIGN_OR_RETURN(m, matrix(name + ".weight", c.linear_rows(l), c.linear_cols(l)));
      if (file_.find_tensor(name + ".bias") != nullptr) {
        SLUICE_ASSIGN_OR_RETURN(m.bias, vector(name + ".bias", m.rows));
      }
      if (c.family == ModelFamily::kLlama && (l == Linear::kQ || l == Linear::kK)) restore_rows(m);
    }
    SLUICE_ASSIGN_OR_RETURN(layer.attention_norm, vector(prefix + "attn_norm.weight", c.hidden));
    SLUICE_ASSIGN_OR_RETURN(layer.ffn_norm, vector(prefix + "ffn_norm.weight", c.hidden));
    if (c.qk_norm()) {
      SLUICE_ASSIGN_OR_RETURN(layer.q_norm, vector(prefix + "attn_q_norm.weight", c.head_dim));
      SLUICE_ASSIGN_OR_RETURN(layer.k_norm, vector(prefix + "attn_k_norm.weight", c.head_dim));
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
    if (file_.find_tensor("rope_freqs.weight") != nullptr) {
      const int half = w_->config.head_dim / 2;
      SLUICE_ASSIGN_OR_RETURN(const float* values, vector("rope_freqs.weight", half));
      factors.assign(values, values + half);
      for (const float f : factors) {
        if (!std::isfinite(f) || f <= 0) return bad("rope_freqs.weight", "holds a factor that is not above 0");
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
    for (const GgufTensor& t : file_.tensors()) {
      if (std::binary_search(sorted.begin(), sorted.end(), t.name)) continue;
      if (t.name.find(".rope_freqs") != std::string::npos || t.name.find("rotary_emb") != std::string::npos) continue;
      unused += (unused.empty() ? "" : ", ") + t.name;
      if (unused.size() > 400) break;
    }
    if (unused.empty()) return {};
    return invalid_argument(file_.path() + ": tensors that a " + w_->config.architecture +
                            " model does not have: " + unused + "; this variant is not supported");
  }

  void summarise() {
    std::map<BlockType, std::int64_t> share;
    for (const GgufTensor& t : file_.tensors()) {
      w_->parameters += t.rows() * t.cols();
      w_->bytes += static_cast<std::int64_t>(t.bytes.size());
      if (t.shape.size() == 2 && t.name.starts_with("blk.")) share[t.type] += t.rows() * t.cols();
    }
    BlockType most = w_->embedding.type;
    for (const auto& [type, n] : share) {
      if (n > share[most]) most = type;
    }
    w_->quantisation = block_type_name(most);
  }

  const GgufFile& file_;
  std::shared_ptr<TransformerWeights> w_;
  std::vector<std::string> used_;
};

}  // namespace

Result<std::shared_ptr<const TransformerWeights>> load_weights(std::shared_ptr<const GgufFile> file) {
  return Loader(std::move(file)).run();
}

}  // namespace sluice
