// SPDX-License-Identifier: GPL-3.0-or-later
#include "learn_torch/checkpoint.h"

#include <charconv>
#include <cstring>

#include "model/format/safetensors.h"

namespace sluice {
namespace {

const char kNotePrefix[] = "note.";
const char kCount[] = "optimiser_steps";
const char kFirst[] = "moment1";
const char kSecond[] = "moment2";

SafeTensorToWrite vector_tensor(const char* name, const std::vector<float>& values) {
  return {name, SafeDtype::kF32, {static_cast<std::int64_t>(values.size())}, std::as_bytes(std::span(values))};
}

Status read_moment(const SafetensorsFile& file, const char* name, std::vector<float>& out) {
  SLUICE_ASSIGN_OR_RETURN(const SafeTensor* tensor, file.tensor(name));
  if (tensor->dtype != SafeDtype::kF32 || tensor->elements() != static_cast<std::int64_t>(out.size())) {
    return corrupt(file.path() + ": tensor " + name + " has " + std::to_string(tensor->elements()) + " values, but the adapter has " +
                   std::to_string(out.size()));
  }
  std::memcpy(out.data(), tensor->bytes.data(), tensor->bytes.size());
  return Status::ok_status();
}

}  // namespace

Status write_trainer_file(const std::string& path, const AdamW& optimiser, const CheckpointNotes& notes) {
  std::map<std::string, std::string> metadata = {{"format", "pt"}, {kCount, std::to_string(optimiser.t)}};
  for (const auto& [name, value] : notes) metadata[kNotePrefix + name] = value;
  return write_safetensors(path, {vector_tensor(kFirst, optimiser.m), vector_tensor(kSecond, optimiser.v)}, metadata);
}

Result<TrainerFile> read_trainer_file(const std::string& path, std::size_t parameters) {
  SLUICE_ASSIGN_OR_RETURN(const std::shared_ptr<const SafetensorsFile> file, SafetensorsFile::open(path));
  TrainerFile out;
  out.optimiser = AdamW(parameters);
  SLUICE_RETURN_IF_ERROR(read_moment(*file, kFirst, out.optimiser.m));
  SLUICE_RETURN_IF_ERROR(read_moment(*file, kSecond, out.optimiser.v));
  const auto count = file->metadata().find(kCount);
  const std::string text = count == file->metadata().end() ? "" : count->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out.optimiser.t);
  if (error != std::errc() || end != text.data() + text.size() || out.optimiser.t < 0) {
    return corrupt(path + ": the count of optimiser steps is missing or damaged");
  }
  const std::string prefix = kNotePrefix;
  for (const auto& [name, value] : file->metadata()) {
    if (name.compare(0, prefix.size(), prefix) == 0) out.notes[name.substr(prefix.size())] = value;
  }
  return out;
}

}  // namespace sluice
