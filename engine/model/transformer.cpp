// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/transformer.h"

#include <cctype>
#include <filesystem>

#include "model/peft_folder.h"
#include "model/transformer_context.h"
#include "model/weights.h"

namespace sluice {
namespace {

class TransformerModel final : public Model {
 public:
  TransformerModel(std::shared_ptr<const TransformerWeights> weights, ModelInfo info)
      : weights_(std::move(weights)), info_(std::move(info)), loader_(make_adapter_loader(weights_)) {}

  const ModelInfo& info() const override { return info_; }
  std::unique_ptr<ModelContext> make_context(const ContextOptions& options) const override {
    return std::make_unique<TransformerContext>(weights_, options);
  }
  const AdapterLoader& adapter_loader() const override { return *loader_; }
  Status release_memory() const override {
    return weights_->file ? weights_->file->release_pages() : weights_->folder->release_pages();
  }
  const std::shared_ptr<const TransformerWeights>& weights() const { return weights_; }

 private:
  const std::shared_ptr<const TransformerWeights> weights_;
  const ModelInfo info_;
  const std::unique_ptr<AdapterLoader> loader_;
};

// "SmolLM2-135M-Instruct" of ".../SmolLM2-135M-Instruct.Q4_1.gguf": general.name in files is often a training label.
std::string file_name_of_model(const ModelFile& file, const std::string& quantisation) {
  std::error_code ignored;
  if (file.folder != nullptr) return std::filesystem::canonical(file.path, ignored).filename().string();
  std::string name = std::filesystem::path(file.path).stem().string();
  const auto lower = [](std::string s) {
    for (char& c : s) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return s;
  };
  for (const char* separator : {".", "-", "_"}) {
    const std::string tail = separator + lower(quantisation);
    if (name.size() > tail.size() && lower(name).ends_with(tail)) return name.substr(0, name.size() - tail.size());
  }
  return name;
}

ModelInfo describe(const TransformerWeights& w, const ModelFile& file, const LoadOptions& options) {
  ModelInfo info;
  info.name = options.name.empty() ? file_name_of_model(file, w.quantisation) : options.name;
  info.architecture = w.config.architecture;
  info.content_hash = w.content_hash;
  info.quantisation = w.quantisation;
  info.vocab_size = w.config.vocab;
  info.context_length = w.config.context;
  info.hidden_size = w.config.hidden;
  info.layers = w.config.layers;
  info.parameters = w.parameters;
  info.weight_bytes = w.bytes;
  return info;
}

}  // namespace

Result<LoadedModel> load_model(const std::string& path, const LoadOptions& options) {
  LoadedModel loaded;
  SLUICE_ASSIGN_OR_RETURN(loaded.file, open_model_file(path));
  SLUICE_ASSIGN_OR_RETURN(std::shared_ptr<const TransformerWeights> weights, load_weights(loaded.file));
  ModelInfo info = describe(*weights, loaded.file, options);
  loaded.model = std::make_shared<TransformerModel>(std::move(weights), std::move(info));
  return loaded;
}

std::shared_ptr<const TransformerWeights> model_weights(const Model& model) {
  const auto* ours = dynamic_cast<const TransformerModel*>(&model);
  return ours == nullptr ? nullptr : ours->weights();
}

}  // namespace sluice
