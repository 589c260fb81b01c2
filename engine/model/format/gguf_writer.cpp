// SPDX-License-Identifier: GPL-3.0-or-later
#include <bit>
#include <type_traits>

#include "base/durable_file.h"
#include "model/format/gguf.h"
#include "model/format/gguf_layout.h"

namespace sluice {
namespace {

class Head {
 public:
  template <class T>
  void put(const T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      put(static_cast<std::uint64_t>(value.size()));
      append(value.data(), value.size());
    } else if constexpr (std::is_same_v<T, bool>) {
      put(static_cast<std::uint8_t>(value));
    } else {
      append(&value, sizeof(T));
    }
  }

  void put_value(const GgufValue& value) {
    const auto kind = static_cast<std::uint32_t>(value.index());
    if (kind < gguf::kScalarKinds) {
      put(gguf::type_number(kind));
    } else {
      put(gguf::kArrayType);
      put(gguf::type_number(kind - gguf::kScalarKinds));
    }
    std::visit(
        [this](const auto& v) {
          using T = std::decay_t<decltype(v)>;
          if constexpr (std::is_scalar_v<T> || std::is_same_v<T, std::string>) {
            put(v);
          } else {
            put(static_cast<std::uint64_t>(v.size()));
            for (const auto& element : v) put(element);
          }
        },
        value);
  }

  void pad_to(std::uint64_t alignment) { bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment); }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  void append(const void* at, std::size_t n) {
    const auto* first = static_cast<const std::byte*>(at);
    bytes_.insert(bytes_.end(), first, first + n);
  }

  std::vector<std::byte> bytes_;
};

Result<std::uint64_t> alignment_of(const std::vector<std::pair<std::string, GgufValue>>& metadata) {
  for (const auto& [key, value] : metadata) {
    if (key != gguf::kAlignmentKey) continue;
    const auto* alignment = std::get_if<std::uint32_t>(&value);
    if (alignment == nullptr || !std::has_single_bit(*alignment)) {
      return invalid_argument("general.alignment must be a power of two stored as u32");
    }
    return *alignment;
  }
  return gguf::kDefaultAlignment;
}

Status check_tensor(const GgufTensorToWrite& tensor) {
  if (tensor.shape.empty() || tensor.shape.size() > gguf::kMaxDims) {
    return invalid_argument("tensor '" + tensor.name + "' needs 1 to 4 dimensions");
  }
  std::int64_t rows = 1;
  for (std::size_t d = 1; d < tensor.shape.size(); ++d) rows *= tensor.shape[d];
  const std::int64_t cols = tensor.shape[0];
  if (cols <= 0 || rows <= 0 || cols % block_values(tensor.type) != 0 ||
      static_cast<std::uint64_t>(row_bytes(tensor.type, cols) * rows) != tensor.bytes.size()) {
    return invalid_argument("tensor '" + tensor.name + "' has " + std::to_string(tensor.bytes.size()) +
                            " bytes, which don't match its shape and type " + block_type_name(tensor.type));
  }
  return {};
}

}  // namespace

Status write_gguf(const std::string& path, const std::vector<std::pair<std::string, GgufValue>>& metadata,
                  const std::vector<GgufTensorToWrite>& tensors) {
  SLUICE_ASSIGN_OR_RETURN(const std::uint64_t alignment, alignment_of(metadata));
  Head head;
  head.put(gguf::kMagic);
  head.put(std::uint32_t{3});
  head.put(static_cast<std::uint64_t>(tensors.size()));
  head.put(static_cast<std::uint64_t>(metadata.size()));
  for (const auto& [key, value] : metadata) {
    head.put(key);
    head.put_value(value);
  }
  std::uint64_t offset = 0;
  const auto padding = [alignment](std::uint64_t size) { return (alignment - size % alignment) % alignment; };
  for (const GgufTensorToWrite& tensor : tensors) {
    SLUICE_RETURN_IF_ERROR(check_tensor(tensor));
    head.put(tensor.name);
    head.put(static_cast<std::uint32_t>(tensor.shape.size()));
    for (const std::int64_t length : tensor.shape) head.put(length);
    head.put(static_cast<std::uint32_t>(tensor.type));
    head.put(offset);
    offset += tensor.bytes.size() + padding(tensor.bytes.size());
  }
  head.pad_to(alignment);
  const std::vector<std::byte> zeros(alignment);
  std::vector<std::span<const std::byte>> parts{head.bytes()};
  for (const GgufTensorToWrite& tensor : tensors) {
    parts.push_back(tensor.bytes);
    parts.push_back(std::span(zeros).first(padding(tensor.bytes.size())));
  }
  return write_and_sync(path, parts);
}

}  // namespace sluice
