// SPDX-License-Identifier: GPL-3.0-or-later
// read_gguf_adapter: LoRA files as llama.cpp's convert_lora_to_gguf.py writes them.
#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include "base/sha256.h"
#include "model/format/gguf.h"
#include "model/kernels/dequant.h"
#include "model/kernels/finite.h"
#include "model/peft_config.h"
#include "model/peft_folder.h"
#include "model/weight_source.h"

namespace sluice {
namespace {

// The file's row 2j + p of a head is Hugging Face's row p * head_dim/2 + j, as in the base's GGUF file.
void restore_rows(std::vector<float>& b, std::int64_t rank, std::int64_t head_dim) {
  const std::vector<float> stored = b;
  const std::int64_t rows = static_cast<std::int64_t>(b.size()) / rank, half = head_dim / 2;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t in_head = r % head_dim, source = r - in_head + 2 * (in_head % half) + in_head / half;
    std::copy_n(stored.begin() + source * rank, rank, b.begin() + r * rank);
  }
}

class GgufBinder {
 public:
  GgufBinder(const GgufFile& file, const ModelConfig& model) : file_(file), model_(model) {}

  Result<LoraData> run() {
    SLUICE_RETURN_IF_ERROR(read_header());
    for (int layer = 0; layer < model_.layers; ++layer) {
      for (const Linear linear : kAllLinears) bind(layer, linear);
    }
    for (const GgufTensor& t : file_.tensors()) {
      if (!known_.contains(t.name)) complain(t.name + " belongs to no module that the model has");
    }
    if (data_.modules.empty()) complain("no module is adapted");
    if (!complaints_.empty()) return invalid_argument(file_.path() + " does not fit the model:" + complaints_);
    return std::move(data_);
  }

 private:
  void complain(const std::string& what) { complaints_ += "\n  " + what; }

  Status read_header() {
    SLUICE_ASSIGN_OR_RETURN(const std::string type, file_.get_string_or("general.type", "model"));
    SLUICE_ASSIGN_OR_RETURN(const std::string kind, file_.get_string_or("adapter.type", ""));
    if (type != "adapter" || kind != "lora") {
      return invalid_argument(file_.path() + " is no LoRA adapter (general.type is \"" + type + "\", adapter.type \"" + kind + "\")");
    }
    SLUICE_ASSIGN_OR_RETURN(const std::string architecture, file_.get_string("general.architecture"));
    if (architecture != model_.architecture) {
      return invalid_argument(file_.path() + " was made for a " + architecture + " model; the loaded one is " + model_.architecture);
    }
    SLUICE_ASSIGN_OR_RETURN(const float alpha, file_.get_f32("adapter.lora.alpha"));
    if (!std::isfinite(alpha) || alpha == 0) {
      return invalid_argument(file_.path() + ": adapter.lora.alpha is " + std::to_string(alpha) + "; it must be a number other than 0");
    }
    data_.config.alpha = static_cast<double>(alpha);
    data_.config.targets.clear();
    return {};
  }

  void bind(int layer, Linear linear) {
    const std::string name = gguf_tensor_name(module_path(layer, linear) + ".weight");
    const GgufTensor *a = file_.find_tensor(name + ".lora_a"), *b = file_.find_tensor(name + ".lora_b");
    if (a == nullptr && b == nullptr) return;
    for (const GgufTensor* t : {a, b}) {
      if (t != nullptr) known_.insert(t->name);
    }
    if (a == nullptr || b == nullptr) return complain(name + " has no lora_" + (a == nullptr ? "a" : "b"));
    const std::int64_t rank = a->rows();
    if (rank > kMaxLoraRank) {
      return complain(name + " has rank " + std::to_string(rank) + "; Sluice takes ranks up to " + std::to_string(kMaxLoraRank));
    }
    LoraFactors f;
    f.layer = layer;
    f.linear = linear;
    f.rank = static_cast<int>(rank);
    f.alpha = data_.config.alpha;
    f.scale = static_cast<float>(lora_scale(f.rank, f.alpha, /*rslora=*/false));
    const bool good_a = values(*a, rank, model_.linear_cols(linear), f.a), good_b = values(*b, model_.linear_rows(linear), rank, f.b);
    if (!good_a || !good_b) return;
    if (model_.family == ModelFamily::kLlama && (linear == Linear::kQ || linear == Linear::kK)) restore_rows(f.b, rank, model_.head_dim);
    auto& targets = data_.config.targets;
    if (std::find(targets.begin(), targets.end(), linear) == targets.end()) targets.push_back(linear);
    data_.config.rank = std::max(data_.modules.empty() ? 0 : data_.config.rank, f.rank);
    data_.modules.push_back(std::move(f));
  }

  bool values(const GgufTensor& t, std::int64_t rows, std::int64_t cols, std::vector<float>& out) {
    if (t.shape != std::vector<std::int64_t>{cols, rows}) {
      complain(t.name + " is " + std::to_string(t.rows()) + " x " + std::to_string(t.cols()) + " instead of " +
               std::to_string(rows) + " x " + std::to_string(cols));
      return false;
    }
    out.resize(static_cast<std::size_t>(rows * cols));
    dequantize_row(t.type, t.bytes.data(), rows * cols, out.data());
    if (all_finite(BlockType::kF32, std::as_bytes(std::span(out)).data(), rows * cols)) return true;
    complain(t.name + " holds a number that is not finite");
    return false;
  }

  const GgufFile& file_;
  const ModelConfig& model_;
  LoraData data_;
  std::set<std::string> known_;
  std::string complaints_;
};

}  // namespace

Result<LoraData> read_gguf_adapter(const std::string& path, const ModelConfig& config) {
  SLUICE_ASSIGN_OR_RETURN(const std::shared_ptr<const GgufFile> file, GgufFile::open(path));
  SLUICE_ASSIGN_OR_RETURN(LoraData data, GgufBinder(*file, config).run());
  SLUICE_ASSIGN_OR_RETURN(data.content_hash, sha256_file(path));
  return data;
}

}  // namespace sluice
