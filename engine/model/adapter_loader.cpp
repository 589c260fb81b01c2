// SPDX-License-Identifier: GPL-3.0-or-later
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <future>
#include <map>
#include <nlohmann/json.hpp>
#include <span>

#include "base/durable_file.h"
#include "base/json_limits.h"
#include "base/sha256.h"
#include "model/format/safetensors.h"
#include "model/format/safetensors_folder.h"
#include "model/kernels/dequant.h"
#include "model/kernels/finite.h"
#include "model/peft_config.h"
#include "model/peft_folder.h"

namespace sluice {
namespace {

constexpr const char* kConfigFile = "adapter_config.json";
constexpr const char* kTensorFile = "adapter_model.safetensors";
constexpr const char* kProvenanceFile = "sluice_provenance.json";
constexpr const char* kPrefix = "base_model.model.";

Status write_text(const std::string& path, const std::string& text) {
  const std::span<const std::byte> part = std::as_bytes(std::span(text));
  return write_and_sync(path, std::span(&part, 1));
}

// What sluice_provenance.json says; empty where there is no such file.
class Provenance {
 public:
  static Result<Provenance> read(const std::string& folder);

  Status check_base(const std::string& base_hash) const {
    if (!exists_ || base_ == base_hash) return {};
    return invalid_argument(folder_ + " was trained on a base model with SHA-256 " + base_ + "; the loaded one has " + base_hash);
  }
  Status check_file(const char* name, const std::string& hash) const {
    const auto written = files_.find(name);
    if (written == files_.end() || written->second == hash) return {};
    return corrupt(folder_ + "/" + name + " is not the file that was written: its SHA-256 differs");
  }

 private:
  std::string folder_, base_;
  bool exists_ = false;
  std::map<std::string, std::string> files_;
};

Result<Provenance> Provenance::read(const std::string& folder) {
  Provenance out;
  out.folder_ = folder;
  const std::string path = folder + "/" + kProvenanceFile;
  const Result<std::string> text = read_model_text(path);
  if (!text.ok()) return text.code() == Code::kNotFound ? Result<Provenance>(std::move(out)) : Result<Provenance>(text.status());
  SLUICE_RETURN_IF_ERROR(check_json_limits(*text, path));
  const nlohmann::json j = nlohmann::json::parse(*text, nullptr, false);
  if (j.is_discarded() || !j.is_object() || !j.contains("base_sha256") || !j["base_sha256"].is_string()) {
    return corrupt(path + " is not a provenance file");
  }
  const auto files = j.find("files");
  if (files == j.end() || !files->is_object()) return corrupt(path + " names no files");
  out.exists_ = true;
  out.base_ = j["base_sha256"].get<std::string>();
  for (const auto& [name, hash] : files->items()) {
    if (!hash.is_string()) return corrupt(path + " has no hash for " + name);
    out.files_[name] = hash.get<std::string>();
  }
  return out;
}

std::string tensor_name(int layer, Linear linear, char half) {
  return kPrefix + module_path(layer, linear) + ".lora_" + half + ".weight";
}

// Files need not align their tensors; where they do, nothing is zeroed first.
void copy_floats(std::span<const std::byte> bytes, std::vector<float>& out) {
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(float) == 0) {
    const auto* first = reinterpret_cast<const float*>(bytes.data());
    out.assign(first, first + bytes.size() / sizeof(float));
    return;
  }
  out.resize(bytes.size() / sizeof(float));
  std::memcpy(out.data(), bytes.data(), bytes.size());
}

// Binds the tensors of a file to the modules the configuration adapts; collects every complaint before it gives up.
class Binder {
 public:
  Binder(const SafetensorsFile& file, const PeftConfig& config, const ModelConfig& model)
      : file_(file), config_(config), model_(model) {}

  Result<LoraData> run() {
    data_.config.rank = config_.rank;
    data_.config.alpha = config_.alpha;
    data_.config.rslora = config_.rslora;
    data_.config.gaussian = config_.gaussian;
    data_.config.targets.clear();
    data_.warnings = config_.warnings;
    for (int layer = 0; layer < model_.layers; ++layer) {
      for (const Linear linear : kAllLinears) SLUICE_RETURN_IF_ERROR(bind(layer, linear));
    }
    for (const SafeTensor& t : file_.tensors()) {
      if (!known_.contains(t.name)) complain(t.name + " belongs to no module that the configuration and the model have");
    }
    if (data_.modules.empty()) complain("no module is adapted");
    if (complaints_.empty()) return std::move(data_);
    std::string list;
    for (const std::string& c : complaints_) list += "\n  " + c;
    return invalid_argument(file_.path() + " does not fit the model:" + list);
  }

 private:
  void complain(std::string what) { complaints_.push_back(std::move(what)); }

  Status bind(int layer, Linear linear) {
    SLUICE_ASSIGN_OR_RETURN(const std::optional<ModuleSettings> settings, module_settings(config_, layer, linear));
    if (!settings.has_value()) return {};
    const std::string path = module_path(layer, linear);
    const SafeTensor* a = file_.find(tensor_name(layer, linear, 'A'));
    const SafeTensor* b = file_.find(tensor_name(layer, linear, 'B'));
    if (a == nullptr && b == nullptr) {
      data_.warnings.push_back(path + " is a target but has no tensors; it stays as in the base");
      return {};
    }
    if (a != nullptr) known_[a->name] = true;
    if (b != nullptr) known_[b->name] = true;
    if (a == nullptr || b == nullptr) {
      complain(path + " has no lora_" + (a == nullptr ? "A" : "B"));
      return {};
    }
    LoraFactors f;
    f.layer = layer;
    f.linear = linear;
    f.rank = settings->rank;
    f.alpha = settings->alpha;
    f.scale = static_cast<float>(lora_scale(f.rank, f.alpha, config_.rslora));
    const bool good_a = values(*a, f.rank, model_.linear_cols(linear), f.a);
    const bool good_b = values(*b, model_.linear_rows(linear), f.rank, f.b);
    if (!good_a || !good_b) return {};
    auto& targets = data_.config.targets;
    if (std::find(targets.begin(), targets.end(), linear) == targets.end()) targets.push_back(linear);
    data_.modules.push_back(std::move(f));
    return {};
  }

  bool values(const SafeTensor& t, std::int64_t rows, std::int64_t cols, std::vector<float>& out) {
    if (t.shape != std::vector<std::int64_t>{rows, cols}) {
      std::string shape;
      for (const std::int64_t d : t.shape) shape += (shape.empty() ? "" : " x ") + std::to_string(d);
      complain(t.name + " is " + shape + " instead of " + std::to_string(rows) + " x " + std::to_string(cols));
      return false;
    }
    if (t.dtype == SafeDtype::kF32) {
      copy_floats(t.bytes, out);
    } else if (t.dtype == SafeDtype::kF16 || t.dtype == SafeDtype::kBF16) {
      const std::vector<std::byte> aligned(t.bytes.begin(), t.bytes.end());
      out.resize(static_cast<std::size_t>(rows * cols));
      dequantize_row(t.dtype == SafeDtype::kF16 ? BlockType::kF16 : BlockType::kBF16, aligned.data(), rows * cols, out.data());
    } else {
      complain(t.name + " is stored as " + safe_dtype_name(t.dtype) + "; Sluice reads F32, F16 and BF16");
      return false;
    }
    if (all_finite(BlockType::kF32, std::as_bytes(std::span(out)).data(), rows * cols)) return true;
    complain(t.name + " holds a number that is not finite");
    return false;
  }

  const SafetensorsFile& file_;
  const PeftConfig& config_;
  const ModelConfig& model_;
  LoraData data_;
  std::map<std::string, bool> known_;
  std::vector<std::string> complaints_;
};

// Each file is read once for its hash and its content. `base_hash` null: whatever model it was made for, unchanged or not.
Result<LoraData> read_peft(const std::string& folder, const ModelConfig& config, const std::string* base_hash) {
  Provenance provenance;
  if (base_hash != nullptr) {
    SLUICE_ASSIGN_OR_RETURN(provenance, Provenance::read(folder));
    SLUICE_RETURN_IF_ERROR(provenance.check_base(*base_hash));
  }
  const std::string config_path = folder + "/" + kConfigFile;
  SLUICE_ASSIGN_OR_RETURN(const std::string text, read_model_text(config_path));
  SLUICE_RETURN_IF_ERROR(provenance.check_file(kConfigFile, sha256(text)));
  SLUICE_ASSIGN_OR_RETURN(const PeftConfig peft, parse_peft_config(text, config_path));
  SLUICE_ASSIGN_OR_RETURN(const std::shared_ptr<const SafetensorsFile> file, SafetensorsFile::open(folder + "/" + kTensorFile));
  // Hashing takes as long as all the rest, and a load is waited for while the engine keeps the cores busy: side by side.
  std::future<std::string> hashing = std::async([&file] { return sha256(file->bytes()); });
  Result<LoraData> data = Binder(*file, peft, config).run();
  std::string hash = hashing.get();
  SLUICE_RETURN_IF_ERROR(provenance.check_file(kTensorFile, hash));
  if (data.ok()) data->content_hash = std::move(hash);
  return data;
}

bool is_file(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

class PeftLoader final : public AdapterLoader {
 public:
  explicit PeftLoader(std::shared_ptr<const TransformerWeights> weights) : weights_(std::move(weights)) {}

  Result<std::shared_ptr<const Adapter>> load(const std::string& folder, VersionId version) const override {
    if (!version.valid() || version == kBaseVersion) {
      return invalid_argument("an adapter needs a version above 0; 0 is the base model");
    }
    SLUICE_ASSIGN_OR_RETURN(const LoraData data, read_adapter_for(folder, *weights_));
    return std::shared_ptr<const Adapter>(std::make_shared<LoraAdapter>(weights_->config, data, version));
  }

 private:
  const std::shared_ptr<const TransformerWeights> weights_;
};

}  // namespace

Result<LoraData> read_peft_folder(const std::string& folder, const ModelConfig& config) { return read_peft(folder, config, nullptr); }

Result<LoraData> read_adapter(const std::string& path, const ModelConfig& config) {
  return is_file(path) ? read_gguf_adapter(path, config) : read_peft(path, config, nullptr);
}

Result<LoraData> read_adapter_for(const std::string& path, const TransformerWeights& weights) {
  return is_file(path) ? read_gguf_adapter(path, weights.config) : read_peft(path, weights.config, &weights.content_hash);
}

Result<std::string> write_peft_folder(const std::string& folder, const LoraData& data, const ModelConfig& config,
                                      const std::string& base_model_name) {
  std::vector<SafeTensorToWrite> tensors;
  for (const LoraFactors& f : data.modules) {
    const std::int64_t rank = f.rank;
    tensors.push_back({tensor_name(f.layer, f.linear, 'A'), SafeDtype::kF32, {rank, config.linear_cols(f.linear)},
                       std::as_bytes(std::span(f.a))});
    tensors.push_back({tensor_name(f.layer, f.linear, 'B'), SafeDtype::kF32, {config.linear_rows(f.linear), rank},
                       std::as_bytes(std::span(f.b))});
  }
  SLUICE_RETURN_IF_ERROR(write_text(folder + "/" + kConfigFile, write_peft_config(data, config, base_model_name)));
  SLUICE_RETURN_IF_ERROR(write_safetensors(folder + "/" + kTensorFile, std::move(tensors)));
  return sha256_file(folder + "/" + kTensorFile);
}

Status write_provenance(const std::string& folder, const std::string& base_hash,
                        const std::map<std::string, std::string>& facts) {
  nlohmann::json j;
  j["base_sha256"] = base_hash;
  j["facts"] = facts;
  for (const char* name : {kConfigFile, kTensorFile}) {
    SLUICE_ASSIGN_OR_RETURN(j["files"][name], sha256_file(folder + "/" + name));
  }
  return write_text(folder + "/" + kProvenanceFile,
                    j.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

std::unique_ptr<AdapterLoader> make_adapter_loader(std::shared_ptr<const TransformerWeights> weights) {
  return std::make_unique<PeftLoader>(std::move(weights));
}

}  // namespace sluice
