// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/format/safetensors.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <unordered_set>

#include "base/durable_file.h"
#include "base/json_limits.h"

namespace sluice {
namespace {

using nlohmann::json;

struct DtypeRow {
  SafeDtype dtype;
  const char* name;
  std::int64_t bytes;
};
constexpr DtypeRow kDtypes[] = {
    {SafeDtype::kF64, "F64", 8}, {SafeDtype::kF32, "F32", 4}, {SafeDtype::kF16, "F16", 2}, {SafeDtype::kBF16, "BF16", 2},
    {SafeDtype::kI64, "I64", 8}, {SafeDtype::kI32, "I32", 4}, {SafeDtype::kI16, "I16", 2}, {SafeDtype::kI8, "I8", 1},
    {SafeDtype::kU64, "U64", 8}, {SafeDtype::kU32, "U32", 4}, {SafeDtype::kU16, "U16", 2}, {SafeDtype::kU8, "U8", 1},
    {SafeDtype::kBool, "BOOL", 1}};

const DtypeRow& row_of(SafeDtype dtype) {
  return *std::find_if(std::begin(kDtypes), std::end(kDtypes), [dtype](const DtypeRow& r) { return r.dtype == dtype; });
}

// Bytes of a tensor; nothing when a dimension is negative or the product doesn't fit.
std::optional<std::uint64_t> tensor_bytes(const std::vector<std::int64_t>& shape, SafeDtype dtype) {
  std::int64_t bytes = safe_dtype_bytes(dtype);
  for (const std::int64_t length : shape) {
    if (length < 0 || __builtin_mul_overflow(bytes, length, &bytes)) return std::nullopt;
  }
  return static_cast<std::uint64_t>(bytes);
}

// The first name that the outermost object holds twice. A pass of its own: the parser keeps the last silently, and with a
// callback it looks through all earlier names at the end of every object, which takes minutes for large headers.
class TwiceNamed final : public nlohmann::json_sax<json> {
 public:
  const std::string& name() const { return name_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return ++depth_ > 0; }
  bool end_object() override { return --depth_ >= 0; }
  bool start_array(std::size_t) override { return ++depth_ > 0; }
  bool end_array() override { return --depth_ >= 0; }
  bool key(string_t& key) override {
    if (depth_ == 1 && !seen_.insert(key).second) name_ = key;
    return name_.empty();
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  int depth_ = 0;
  std::unordered_set<std::string> seen_;
  std::string name_;
};

// The header as JSON; a name that appears twice is an error.
Result<json> parse_header(std::string_view text, const std::string& path) {
  SLUICE_RETURN_IF_ERROR(check_json_limits(text, "the header of '" + path + "'"));
  TwiceNamed twice;
  const bool complete = json::sax_parse(text, &twice);
  if (!twice.name().empty()) return corrupt("'" + path + "': the name '" + twice.name() + "' appears twice");
  json header = complete ? json::parse(text, nullptr, /*allow_exceptions=*/false) : json(json::value_t::discarded);
  if (header.is_discarded() || !header.is_object()) {
    return corrupt("'" + path + "': its header is not a JSON object: the file is damaged or no safetensors file");
  }
  return header;
}

// A whole number of at least 0, or nothing.
std::optional<std::uint64_t> whole_number(const json& value) {
  if (!value.is_number_unsigned()) return std::nullopt;
  return value.get<std::uint64_t>();
}

// Fills type, shape and bytes of `tensor` from its header entry.
Status read_entry(const json& entry, std::span<const std::byte> data, const std::string& where, SafeTensor& tensor,
                  std::uint64_t& begin) {
  if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") || !entry.contains("data_offsets")) {
    return corrupt(where + " lacks dtype, shape or data_offsets");
  }
  const json& dtype = entry["dtype"];
  if (!dtype.is_string()) return corrupt(where + ": its dtype is not a string");
  const auto name = dtype.get<std::string>();
  const auto* row = std::find_if(std::begin(kDtypes), std::end(kDtypes), [&](const auto& r) { return name == r.name; });
  if (row == std::end(kDtypes)) return invalid_argument(where + " is stored as " + name + ", which Sluice does not read");
  tensor.dtype = row->dtype;

  const json& shape = entry["shape"];
  if (!shape.is_array()) return corrupt(where + ": its shape is not a list");
  for (const json& length : shape) {
    const auto n = whole_number(length);
    if (!n || *n > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return corrupt(where + ": its shape holds something that is not a length");
    }
    tensor.shape.push_back(static_cast<std::int64_t>(*n));
  }
  const auto bytes = tensor_bytes(tensor.shape, tensor.dtype);
  if (!bytes) return corrupt(where + ": its shape is too large");

  const json& offsets = entry["data_offsets"];
  const auto first = offsets.is_array() && offsets.size() == 2 ? whole_number(offsets[0]) : std::nullopt;
  const auto last = first ? whole_number(offsets[1]) : std::nullopt;
  if (!last) return corrupt(where + ": its data_offsets are not two whole numbers");
  if (*last < *first) return corrupt(where + ": its data_offsets are reversed");
  if (*last > data.size()) {
    return corrupt(where + " ends at byte " + std::to_string(*last) + " of the data, which has " +
                   std::to_string(data.size()) + " bytes: the file is cut short or damaged");
  }
  if (*last - *first != *bytes) {
    return corrupt(where + " has " + std::to_string(*last - *first) + " bytes, but its shape and type need " +
                   std::to_string(*bytes));
  }
  begin = *first;
  tensor.bytes = data.subspan(*first, *bytes);
  return {};
}

}  // namespace

const char* safe_dtype_name(SafeDtype dtype) { return row_of(dtype).name; }
std::int64_t safe_dtype_bytes(SafeDtype dtype) { return row_of(dtype).bytes; }

Result<std::shared_ptr<const SafetensorsFile>> SafetensorsFile::open(const std::string& path) {
  SLUICE_ASSIGN_OR_RETURN(MappedFile mapped, MappedFile::open(path));
  std::shared_ptr<SafetensorsFile> file(new SafetensorsFile(std::move(mapped)));
  SLUICE_RETURN_IF_ERROR(file->parse());
  return std::shared_ptr<const SafetensorsFile>(std::move(file));
}

Status SafetensorsFile::parse() {
  const std::string in_file = "'" + path() + "': ";
  std::uint64_t header_size = 0;
  if (file_.size() < sizeof header_size) return corrupt(in_file + "too short for a safetensors file");
  std::memcpy(&header_size, file_.bytes().data(), sizeof header_size);
  const std::uint64_t left = file_.size() - sizeof header_size;
  if (header_size > left) {
    return corrupt(in_file + "its header claims " + std::to_string(header_size) + " bytes, but only " +
                   std::to_string(left) + " follow: the file is cut short, or is no safetensors file");
  }
  const auto head = file_.bytes().subspan(sizeof header_size, header_size);
  const auto data = file_.bytes().subspan(sizeof header_size + header_size);
  SLUICE_ASSIGN_OR_RETURN(
      const json header, parse_header({reinterpret_cast<const char*>(head.data()), head.size()}, path()));

  std::vector<std::pair<std::uint64_t, std::size_t>> order;  // first byte, index in tensors_
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      if (!entry.is_object()) return corrupt(in_file + "__metadata__ is not an object");
      for (const auto& [key, value] : entry.items()) {
        if (!value.is_string()) return corrupt(in_file + "__metadata__ '" + key + "' is not a string");
        metadata_[key] = value.get<std::string>();
      }
      continue;
    }
    SafeTensor tensor;
    tensor.name = name;
    std::uint64_t begin = 0;
    SLUICE_RETURN_IF_ERROR(read_entry(entry, data, in_file + "tensor '" + name + "'", tensor, begin));
    order.emplace_back(begin, tensors_.size());
    tensors_.push_back(std::move(tensor));  // items() go in the order of names
  }
  // The data is exactly covered: what overlaps or lies between tensors was made by a broken or hostile writer.
  std::sort(order.begin(), order.end(), [this](const auto& a, const auto& b) {
    return std::pair(a.first, tensors_[a.second].bytes.size()) < std::pair(b.first, tensors_[b.second].bytes.size());
  });
  std::uint64_t at = 0;
  for (const auto& [begin, index] : order) {
    if (begin != at) {
      return corrupt(in_file + "tensor '" + tensors_[index].name + (begin < at ? "' overlaps another" : "' leaves a hole") +
                     " at byte " + std::to_string(std::min(begin, at)) + " of the data");
    }
    at += tensors_[index].bytes.size();
  }
  if (at != data.size()) {
    return corrupt(in_file + std::to_string(data.size() - at) + " bytes at its end belong to no tensor");
  }
  return {};
}

const SafeTensor* SafetensorsFile::find(std::string_view name) const {
  const auto at = std::lower_bound(tensors_.begin(), tensors_.end(), name,
                                   [](const SafeTensor& t, std::string_view n) { return t.name < n; });
  return at != tensors_.end() && at->name == name ? &*at : nullptr;
}

Result<const SafeTensor*> SafetensorsFile::tensor(std::string_view name) const {
  if (const SafeTensor* found = find(name)) return found;
  return not_found("'" + path() + "' has no tensor '" + std::string(name) + "'");
}

Status write_safetensors(const std::string& path, std::vector<SafeTensorToWrite> tensors,
                         const std::map<std::string, std::string>& metadata) {
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    const auto size_a = safe_dtype_bytes(a.dtype), size_b = safe_dtype_bytes(b.dtype);
    return size_a != size_b ? size_a > size_b : a.name < b.name;
  });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::set<std::string_view> names = {"__metadata__"};
  std::uint64_t at = 0;
  for (const SafeTensorToWrite& tensor : tensors) {
    const auto bytes = tensor_bytes(tensor.shape, tensor.dtype);
    if (!bytes || *bytes != tensor.bytes.size()) {
      return invalid_argument("tensor '" + tensor.name + "' has " + std::to_string(tensor.bytes.size()) +
                              " bytes, which don't match its shape and type " + safe_dtype_name(tensor.dtype));
    }
    if (!names.insert(tensor.name).second) {
      return invalid_argument("the tensor name '" + tensor.name + "' is reserved or given twice");
    }
    header[tensor.name] = {{"dtype", safe_dtype_name(tensor.dtype)},
                           {"shape", tensor.shape},
                           {"data_offsets", {at, at + tensor.bytes.size()}}};
    at += tensor.bytes.size();
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.append((8 - text.size() % 8) % 8, ' ');
  const std::uint64_t size = text.size();
  std::vector<std::span<const std::byte>> parts{std::as_bytes(std::span(&size, 1)), std::as_bytes(std::span(text))};
  for (const SafeTensorToWrite& tensor : tensors) parts.push_back(tensor.bytes);
  return write_and_sync(path, parts);
}

}  // namespace sluice
