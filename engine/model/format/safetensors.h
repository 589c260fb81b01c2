// SPDX-License-Identifier: GPL-3.0-or-later
// The safetensors format (https://huggingface.co/docs/safetensors): a JSON header and one buffer of tensors. Reading
// checks the file whole: header length, JSON limits, offsets = shape x type, no overlap, no hole. An open file is
// immutable; any thread may read it. Writing is deterministic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/format/mapped_file.h"

namespace sluice {

enum class SafeDtype { kF64, kF32, kF16, kBF16, kI64, kI32, kI16, kI8, kU64, kU32, kU16, kU8, kBool };

const char* safe_dtype_name(SafeDtype dtype);   // as in the file: "F32", "BOOL" ...
std::int64_t safe_dtype_bytes(SafeDtype dtype);

struct SafeTensor {
  std::string name;
  SafeDtype dtype = SafeDtype::kF32;
  std::vector<std::int64_t> shape;   // outermost first, as in PyTorch; empty for a scalar
  std::span<const std::byte> bytes;  // elements() * safe_dtype_bytes(dtype), little-endian; not always aligned

  std::int64_t elements() const {
    std::int64_t n = 1;
    for (const std::int64_t d : shape) n *= d;
    return n;
  }
};

class SafetensorsFile {
 public:
  // Errors name the file and the tensor. kNotFound / kUnavailable from the file system, kInvalidArgument for a type
  // Sluice doesn't know, kCorrupt for everything else.
  static Result<std::shared_ptr<const SafetensorsFile>> open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  std::span<const std::byte> bytes() const { return file_.bytes(); }  // the whole file
  const std::vector<SafeTensor>& tensors() const { return tensors_; }  // sorted by name
  const SafeTensor* find(std::string_view name) const;                 // nullptr: no such tensor
  Result<const SafeTensor*> tensor(std::string_view name) const;       // kNotFound, naming file and tensor
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  Status release_pages() const { return file_.release_pages(); }

 private:
  explicit SafetensorsFile(MappedFile file) : file_(std::move(file)) {}
  Status parse();

  MappedFile file_;
  std::vector<SafeTensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

struct SafeTensorToWrite {
  std::string name;
  SafeDtype dtype = SafeDtype::kF32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

// Writes the file and fsyncs it: give a temporary name, rename, then sync_directory (base/durable_file.h). Tensors are
// ordered by element size (largest first), then name, so equal input gives equal bytes and data stays aligned.
// kInvalidArgument: a name twice, or bytes that don't match shape and type.
Status write_safetensors(const std::string& path, std::vector<SafeTensorToWrite> tensors,
                         const std::map<std::string, std::string>& metadata = {{"format", "pt"}});

}  // namespace sluice
