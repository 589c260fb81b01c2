// SPDX-License-Identifier: GPL-3.0-or-later
// GgufFile::open. Every length and count comes from the file and is compared with the bytes that are left, never added
// to a position first; memory grows only with bytes that are really there; time is linear in the entries.
#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>

#include "model/format/gguf.h"
#include "model/format/gguf_layout.h"

namespace sluice {
namespace {

static_assert(std::endian::native == std::endian::little, "model files are mapped as they are");

constexpr std::uint64_t kMaxKeyBytes = 65535;  // the format's own limit
constexpr std::uint64_t kMaxNameBytes = 1024;

// Names of ggml's tensor types by number, for the message about one that can't be read.
const char* ggml_type_name(std::uint32_t type) {
  static constexpr const char* kNames[] = {
      "F32",     "F16",     "Q4_0",     "Q4_1",     "Q4_2",     "Q4_3",   "Q5_0",  "Q5_1",  "Q8_0",   "Q8_1",
      "Q2_K",    "Q3_K",    "Q4_K",     "Q5_K",     "Q6_K",     "Q8_K",   "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S",
      "IQ4_NL",  "IQ3_S",   "IQ2_S",    "IQ4_XS",   "I8",       "I16",    "I32",   "I64",   "F64",    "IQ1_M",
      "BF16",    "Q4_0_4_4", "Q4_0_4_8", "Q4_0_8_8", "TQ1_0",   "TQ2_0",  "IQ4_NL_4_4", "IQ4_NL_4_8", "IQ4_NL_8_8",
      "MXFP4"};
  return type < std::size(kNames) ? kNames[type] : "unknown";
}

std::optional<BlockType> known_type(std::uint32_t number) {
  const auto type = static_cast<BlockType>(number);
  if (block_values(type) == 0) return std::nullopt;
  return type;
}

}  // namespace

class GgufReader {
 public:
  explicit GgufReader(MappedFile file) : out_(new GgufFile(std::move(file))), bytes_(out_->file_.bytes()) {}

  Result<std::shared_ptr<const GgufFile>> read() {
    SLUICE_RETURN_IF_ERROR(read_header());
    SLUICE_RETURN_IF_ERROR(read_metadata());
    SLUICE_RETURN_IF_ERROR(read_alignment());
    SLUICE_RETURN_IF_ERROR(read_tensor_table());
    SLUICE_RETURN_IF_ERROR(place_tensors());
    return std::shared_ptr<const GgufFile>(std::move(out_));
  }

 private:
  std::uint64_t left() const { return bytes_.size() - at_; }
  std::string in_file() const { return "'" + out_->path() + "': "; }
  Status cut_short(const std::string& what) const {
    return corrupt(in_file() + what + " runs past the end of the file (" + std::to_string(left()) +
                   " bytes are left at byte " + std::to_string(at_) + "): the file is cut short or damaged");
  }

  template <class T>
  Status take(T& value, const std::string& what) {
    if (left() < sizeof(T)) return cut_short(what);
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return {};
  }

  Status take_string(std::string& value, std::uint64_t limit, const std::string& what) {
    std::uint64_t length = 0;
    SLUICE_RETURN_IF_ERROR(take(length, what));
    if (length > left()) return cut_short(what + " (length " + std::to_string(length) + ")");
    if (length > limit) {
      return corrupt(in_file() + what + " is " + std::to_string(length) + " bytes long, the limit is " +
                     std::to_string(limit));
    }
    value.assign(reinterpret_cast<const char*>(bytes_.data() + at_), length);
    at_ += length;
    return {};
  }

  Status read_header() {
    std::uint32_t magic = 0;
    if (left() < 24) return invalid_argument(in_file() + "not a GGUF file: it has only " + std::to_string(left()) + " bytes");
    SLUICE_RETURN_IF_ERROR(take(magic, "the header"));
    if (magic != gguf::kMagic) {
      return invalid_argument(in_file() + "not a GGUF file: it does not begin with the letters GGUF");
    }
    SLUICE_RETURN_IF_ERROR(take(out_->version_, "the header"));
    if ((out_->version_ & 0xffff) == 0 && out_->version_ != 0) {
      return invalid_argument(in_file() + "a big-endian GGUF file; Sluice reads little-endian ones");
    }
    if (out_->version_ != 2 && out_->version_ != 3) {
      return invalid_argument(in_file() + "GGUF version " + std::to_string(out_->version_) +
                              "; Sluice reads versions 2 and 3: convert the model again");
    }
    SLUICE_RETURN_IF_ERROR(take(n_tensors_, "the header"));
    SLUICE_RETURN_IF_ERROR(take(n_keys_, "the header"));
    // The least an entry takes: key length, type, one byte; name length, dimension count, one dimension, type, offset.
    if (n_keys_ > left() / 13) return cut_short("a list of " + std::to_string(n_keys_) + " metadata keys");
    if (n_tensors_ > left() / 32) return cut_short("a list of " + std::to_string(n_tensors_) + " tensors");
    return {};
  }

  Status read_metadata() {
    out_->metadata_.reserve(n_keys_);
    for (std::uint64_t i = 0; i < n_keys_; ++i) {
      std::string key;
      SLUICE_RETURN_IF_ERROR(take_string(key, kMaxKeyBytes, "metadata key " + std::to_string(i)));
      if (key.empty()) return corrupt(in_file() + "metadata key " + std::to_string(i) + " is empty");
      const std::string what = "the value of '" + key + "'";
      GgufValue value;
      std::uint32_t type = 0;
      SLUICE_RETURN_IF_ERROR(take(type, what));
      if (type == gguf::kArrayType) {
        SLUICE_RETURN_IF_ERROR(read_array(value, what));
      } else {
        SLUICE_RETURN_IF_ERROR(read_scalar(value, type, what));
      }
      if (!out_->keys_.emplace(key, out_->metadata_.size()).second) {
        return corrupt(in_file() + "the metadata key '" + key + "' appears twice");
      }
      out_->metadata_.emplace_back(std::move(key), std::move(value));
    }
    return {};
  }

  Status unknown_type(std::uint32_t type, const std::string& what) const {
    return corrupt(in_file() + what + " has the unknown type " + std::to_string(type));
  }

  template <class T>
  Status take_value(T& value, const std::string& what) {
    if constexpr (std::is_same_v<T, std::string>) {
      return take_string(value, std::numeric_limits<std::uint64_t>::max(), what);
    } else if constexpr (std::is_same_v<T, bool>) {
      std::uint8_t byte = 0;
      SLUICE_RETURN_IF_ERROR(take(byte, what));
      if (byte > 1) return corrupt(in_file() + what + " is neither true nor false (" + std::to_string(byte) + ")");
      value = byte != 0;
      return {};
    } else {
      return take(value, what);
    }
  }

  template <std::size_t I = 0>
  Status read_scalar(GgufValue& value, std::uint32_t type, const std::string& what) {
    if constexpr (I == gguf::kScalarKinds) {
      return unknown_type(type, what);
    } else {
      if (type != gguf::type_number(I)) return read_scalar<I + 1>(value, type, what);
      return take_value(value.emplace<I>(), what);
    }
  }

  Status read_array(GgufValue& value, const std::string& what) {
    std::uint32_t type = 0;
    std::uint64_t count = 0;
    SLUICE_RETURN_IF_ERROR(take(type, what));
    SLUICE_RETURN_IF_ERROR(take(count, what));
    if (type == gguf::kArrayType) return corrupt(in_file() + what + " is a list of lists, which Sluice does not read");
    return read_elements(value, type, count, what);
  }

  template <std::size_t I = 0>
  Status read_elements(GgufValue& value, std::uint32_t type, std::uint64_t count, const std::string& what) {
    if constexpr (I == gguf::kScalarKinds) {
      return unknown_type(type, what);
    } else {
      if (type != gguf::type_number(I)) return read_elements<I + 1>(value, type, count, what);
      using T = std::variant_alternative_t<I, GgufValue>;
      constexpr std::uint64_t kLeast = std::is_same_v<T, std::string> ? 8 : sizeof(T);
      if (count > left() / kLeast) return cut_short(what + " (a list of " + std::to_string(count) + ")");
      auto& list = value.emplace<std::vector<T>>();
      list.reserve(count);
      for (std::uint64_t i = 0; i < count; ++i) {
        T element{};
        SLUICE_RETURN_IF_ERROR(take_value(element, what));
        list.push_back(std::move(element));
      }
      return {};
    }
  }

  Status read_alignment() {
    if (!out_->has(gguf::kAlignmentKey)) return {};
    SLUICE_ASSIGN_OR_RETURN(out_->alignment_, out_->get_u32(gguf::kAlignmentKey));
    if (!std::has_single_bit(out_->alignment_) || out_->alignment_ < 8 || out_->alignment_ > (1u << 20)) {
      return corrupt(in_file() + "general.alignment is " + std::to_string(out_->alignment_) +
                     ", not a power of two from 8 to 1048576");
    }
    return {};
  }

  Status read_tensor_table() {
    out_->tensors_.reserve(n_tensors_);
    for (std::uint64_t i = 0; i < n_tensors_; ++i) {
      GgufTensor tensor;
      SLUICE_RETURN_IF_ERROR(take_string(tensor.name, kMaxNameBytes, "the name of tensor " + std::to_string(i)));
      if (tensor.name.empty()) return corrupt(in_file() + "tensor " + std::to_string(i) + " has no name");
      SLUICE_RETURN_IF_ERROR(read_tensor_entry(tensor));
      if (!out_->names_.emplace(tensor.name, out_->tensors_.size()).second) {
        return corrupt(in_file() + "the tensor '" + tensor.name + "' appears twice");
      }
      out_->tensors_.push_back(std::move(tensor));
    }
    return {};
  }

  // Shape, type and offset; sizes_ gets the bytes the tensor needs.
  Status read_tensor_entry(GgufTensor& tensor) {
    const std::string what = "tensor '" + tensor.name + "'";
    std::uint32_t n_dims = 0;
    SLUICE_RETURN_IF_ERROR(take(n_dims, what));
    if (n_dims < 1 || n_dims > gguf::kMaxDims) {
      return corrupt(in_file() + what + " has " + std::to_string(n_dims) + " dimensions, not 1 to 4");
    }
    std::int64_t elements = 1;
    for (std::uint32_t d = 0; d < n_dims; ++d) {
      std::uint64_t length = 0;
      SLUICE_RETURN_IF_ERROR(take(length, what));
      if (length == 0 || length > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) ||
          __builtin_mul_overflow(elements, static_cast<std::int64_t>(length), &elements)) {
        return corrupt(in_file() + what + " has an impossible shape: dimension " + std::to_string(d) + " is " +
                       std::to_string(length));
      }
      tensor.shape.push_back(static_cast<std::int64_t>(length));
    }
    std::uint32_t number = 0;
    SLUICE_RETURN_IF_ERROR(take(number, what));
    const std::optional<BlockType> type = known_type(number);
    if (!type) {
      return invalid_argument(in_file() + what + " is stored as " + ggml_type_name(number) + " (type " +
                              std::to_string(number) +
                              "), which Sluice does not read; it reads F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, "
                              "Q2_K, Q3_K, Q4_K, Q5_K, Q6_K and IQ4_NL");
    }
    tensor.type = *type;
    if (tensor.cols() % block_values(*type) != 0) {
      return corrupt(in_file() + what + ": its rows of " + std::to_string(tensor.cols()) +
                     " values are no whole number of " + block_type_name(*type) + " blocks");
    }
    std::int64_t size = 0;
    if (__builtin_mul_overflow(elements / block_values(*type), block_bytes(*type), &size)) {
      return corrupt(in_file() + what + " has an impossible shape: its size does not fit in 64 bits");
    }
    sizes_.push_back(static_cast<std::uint64_t>(size));
    return take(tensor.offset, what);  // still relative to the data section
  }

  Status place_tensors() {
    if (out_->tensors_.empty()) return {};
    const std::uint64_t padding = (out_->alignment_ - at_ % out_->alignment_) % out_->alignment_;
    if (padding > left()) return cut_short("the tensor data");
    const std::uint64_t data_begin = at_ + padding;
    const std::uint64_t data_size = bytes_.size() - data_begin;
    for (std::size_t i = 0; i < out_->tensors_.size(); ++i) {
      GgufTensor& tensor = out_->tensors_[i];
      const std::string what = "tensor '" + tensor.name + "'";
      if (tensor.offset % out_->alignment_ != 0) {
        return corrupt(in_file() + what + " begins at offset " + std::to_string(tensor.offset) +
                       ", not a multiple of the alignment " + std::to_string(out_->alignment_));
      }
      if (tensor.offset > data_size || sizes_[i] > data_size - tensor.offset) {
        return corrupt(in_file() + what + " (" + std::to_string(sizes_[i]) + " bytes at offset " +
                       std::to_string(tensor.offset) + ") runs past the end of the file, which has " +
                       std::to_string(data_size) + " bytes of data: the file is cut short or damaged");
      }
      tensor.offset += data_begin;
      tensor.bytes = bytes_.subspan(tensor.offset, sizes_[i]);
    }
    return check_overlaps();
  }

  Status check_overlaps() const {
    std::vector<const GgufTensor*> order;
    for (const GgufTensor& tensor : out_->tensors_) order.push_back(&tensor);
    std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->offset < b->offset; });
    for (std::size_t i = 1; i < order.size(); ++i) {
      if (order[i]->offset - order[i - 1]->offset < order[i - 1]->bytes.size()) {
        return corrupt(in_file() + "the tensors '" + order[i - 1]->name + "' and '" + order[i]->name + "' overlap");
      }
    }
    return {};
  }

  std::unique_ptr<GgufFile> out_;
  std::span<const std::byte> bytes_;
  std::uint64_t at_ = 0;
  std::uint64_t n_tensors_ = 0;
  std::uint64_t n_keys_ = 0;
  std::vector<std::uint64_t> sizes_;
};

Result<std::shared_ptr<const GgufFile>> GgufFile::open(const std::string& path) {
  SLUICE_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  return GgufReader(std::move(file)).read();
}

}  // namespace sluice
