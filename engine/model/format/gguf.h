// SPDX-License-Identifier: GPL-3.0-or-later
// GGUF versions 2 and 3, little-endian: typed metadata and a table of tensors that point into the mapped file
// (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md). A file is checked whole when it is opened: counts, lengths,
// shapes, offsets, alignment, overlaps. Immutable afterwards; any thread may read. Also a writer, for exports and tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/block_type.h"
#include "base/result.h"
#include "model/format/mapped_file.h"

namespace sluice {

// A metadata value with exactly the type it has in the file. Arrays of arrays are refused.
using GgufValue =
    std::variant<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t, std::uint32_t, std::int32_t, float, bool,
                 std::string, std::uint64_t, std::int64_t, double, std::vector<std::uint8_t>,
                 std::vector<std::int8_t>, std::vector<std::uint16_t>, std::vector<std::int16_t>,
                 std::vector<std::uint32_t>, std::vector<std::int32_t>, std::vector<float>, std::vector<bool>,
                 std::vector<std::string>, std::vector<std::uint64_t>, std::vector<std::int64_t>, std::vector<double>>;

struct GgufTensor {
  std::string name;
  BlockType type = BlockType::kF32;
  std::vector<std::int64_t> shape;   // GGUF order: shape[0] is the length of a row, the fastest; 1 to 4 dimensions
  std::uint64_t offset = 0;          // in the file, bytes
  std::span<const std::byte> bytes;  // row_bytes(type, cols()) * rows()

  std::int64_t cols() const { return shape[0]; }
  std::int64_t rows() const {
    std::int64_t n = 1;
    for (std::size_t i = 1; i < shape.size(); ++i) n *= shape[i];
    return n;
  }
};

class GgufFile {
 public:
  // Errors name the file and the key or tensor. kNotFound / kUnavailable from the file system; kInvalidArgument for what
  // isn't GGUF, has another version or byte order, or a tensor type Sluice can't read; kCorrupt for everything that
  // contradicts itself or the file's size.
  static Result<std::shared_ptr<const GgufFile>> open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  std::uint64_t file_size() const { return file_.size(); }
  Status release_pages() const { return file_.release_pages(); }
  std::uint32_t version() const { return version_; }
  std::uint32_t alignment() const { return alignment_; }

  // Metadata in file order.
  const std::vector<std::pair<std::string, GgufValue>>& metadata() const { return metadata_; }
  const GgufValue* find(std::string_view key) const;  // nullptr: no such key
  bool has(std::string_view key) const { return find(key) != nullptr; }

  // Checked getters. kNotFound: no such key. kInvalidArgument: another type, or a number that doesn't fit. Integers of
  // any width convert where the value fits; float and double convert to float, as do integers.
  Result<std::uint32_t> get_u32(std::string_view key) const;
  Result<std::uint64_t> get_u64(std::string_view key) const;
  Result<std::int64_t> get_i64(std::string_view key) const;
  Result<float> get_f32(std::string_view key) const;
  Result<bool> get_bool(std::string_view key) const;
  Result<std::string> get_string(std::string_view key) const;
  Result<std::vector<std::string>> string_array(std::string_view key) const;
  Result<std::vector<float>> float_array(std::string_view key) const;
  Result<std::vector<std::int32_t>> i32_array(std::string_view key) const;  // from integers of any width that fit
  Result<std::vector<bool>> bool_array(std::string_view key) const;

  // The same, with a default for an absent key only: a wrong type stays an error.
  Result<std::uint32_t> get_u32_or(std::string_view key, std::uint32_t absent) const;
  Result<float> get_f32_or(std::string_view key, float absent) const;
  Result<bool> get_bool_or(std::string_view key, bool absent) const;
  Result<std::string> get_string_or(std::string_view key, std::string absent) const;
  const std::string* find_string(std::string_view key) const;  // nullptr: absent or not a string; no copy

  // Tensors in file order.
  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  const GgufTensor* find_tensor(std::string_view name) const;         // nullptr: no such tensor
  Result<const GgufTensor*> tensor(std::string_view name) const;      // kNotFound, naming file and tensor

 private:
  friend class GgufReader;
  struct StringHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>()(s); }
  };
  using Index = std::unordered_map<std::string, std::size_t, StringHash, std::equal_to<>>;

  explicit GgufFile(MappedFile file) : file_(std::move(file)) {}

  MappedFile file_;
  std::uint32_t version_ = 0;
  std::uint32_t alignment_ = 32;
  std::vector<std::pair<std::string, GgufValue>> metadata_;
  std::vector<GgufTensor> tensors_;
  Index keys_;
  Index names_;
};

// What write_gguf stores: bytes of row_bytes(type, shape[0]) * rows.
struct GgufTensorToWrite {
  std::string name;
  BlockType type = BlockType::kF32;
  std::vector<std::int64_t> shape;  // GGUF order
  std::span<const std::byte> bytes;
};

// Writes a version 3 file with the given keys and tensors in the given order, and fsyncs it; the caller renames. Equal
// input gives equal bytes. Alignment is general.alignment if given (a u32), else 32. kInvalidArgument names the tensor
// whose bytes don't match its shape.
Status write_gguf(const std::string& path, const std::vector<std::pair<std::string, GgufValue>>& metadata,
                  const std::vector<GgufTensorToWrite>& tensors);

}  // namespace sluice
