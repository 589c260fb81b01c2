// SPDX-License-Identifier: GPL-3.0-or-later
// The checked getters of an open file; reading is gguf_reader.cpp.
#include "model/format/gguf.h"

#include <limits>
#include <type_traits>

namespace sluice {
namespace {

template <class T>
inline constexpr bool kIsInteger = std::is_integral_v<T> && !std::is_same_v<T, bool>;

Status wrong_type(const GgufFile& file, std::string_view key, const char* wanted) {
  return invalid_argument("'" + file.path() + "': the value of '" + std::string(key) + "' is not " + wanted);
}

Status absent_key(const GgufFile& file, std::string_view key) {
  return not_found("'" + file.path() + "' has no '" + std::string(key) + "'");
}

// Any integer alternative as Out where it fits.
template <class Out, class In>
bool convert_integer(In in, Out& out) {
  if (!std::in_range<Out>(in)) return false;
  out = static_cast<Out>(in);
  return true;
}

template <class Out>
Result<Out> get_integer(const GgufFile& file, std::string_view key, const char* wanted) {
  const GgufValue* value = file.find(key);
  if (value == nullptr) return absent_key(file, key);
  Out out{};
  const bool fits = std::visit(
      [&out](const auto& v) {
        if constexpr (kIsInteger<std::decay_t<decltype(v)>>) {
          return convert_integer(v, out);
        } else {
          return false;
        }
      },
      *value);
  if (!fits) return wrong_type(file, key, wanted);
  return out;
}

// A value that must be exactly a T.
template <class T>
Result<T> get_exact(const GgufFile& file, std::string_view key, const char* wanted) {
  const GgufValue* value = file.find(key);
  if (value == nullptr) return absent_key(file, key);
  const T* typed = std::get_if<T>(value);
  if (typed == nullptr) return wrong_type(file, key, wanted);
  return *typed;
}

template <class T>
Result<T> or_absent(Result<T> got, const GgufFile& file, std::string_view key, T absent) {
  if (!got.ok() && !file.has(key)) return absent;
  return got;
}

}  // namespace

const GgufValue* GgufFile::find(std::string_view key) const {
  const auto at = keys_.find(key);
  return at == keys_.end() ? nullptr : &metadata_[at->second].second;
}

Result<std::uint32_t> GgufFile::get_u32(std::string_view key) const {
  return get_integer<std::uint32_t>(*this, key, "a whole number from 0 to 4294967295");
}
Result<std::uint64_t> GgufFile::get_u64(std::string_view key) const {
  return get_integer<std::uint64_t>(*this, key, "a whole number of at least 0");
}
Result<std::int64_t> GgufFile::get_i64(std::string_view key) const {
  return get_integer<std::int64_t>(*this, key, "a whole number that fits in 64 bits");
}

Result<float> GgufFile::get_f32(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return absent_key(*this, key);
  float out = 0;
  const bool is_number = std::visit(
      [&out](const auto& v) {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_floating_point_v<T> || kIsInteger<T>) {
          out = static_cast<float>(v);
          return true;
        } else {
          return false;
        }
      },
      *value);
  if (!is_number) return wrong_type(*this, key, "a number");
  return out;
}

Result<bool> GgufFile::get_bool(std::string_view key) const { return get_exact<bool>(*this, key, "true or false"); }
Result<std::string> GgufFile::get_string(std::string_view key) const {
  return get_exact<std::string>(*this, key, "a string");
}
Result<std::vector<std::string>> GgufFile::string_array(std::string_view key) const {
  return get_exact<std::vector<std::string>>(*this, key, "a list of strings");
}
Result<std::vector<bool>> GgufFile::bool_array(std::string_view key) const {
  return get_exact<std::vector<bool>>(*this, key, "a list of true and false");
}

Result<std::vector<float>> GgufFile::float_array(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return absent_key(*this, key);
  if (const auto* floats = std::get_if<std::vector<float>>(value)) return *floats;
  if (const auto* doubles = std::get_if<std::vector<double>>(value)) {
    return std::vector<float>(doubles->begin(), doubles->end());
  }
  return wrong_type(*this, key, "a list of numbers");
}

Result<std::vector<std::int32_t>> GgufFile::i32_array(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return absent_key(*this, key);
  std::vector<std::int32_t> out;
  const bool fits = std::visit(
      [&out](const auto& v) {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_scalar_v<T> || std::is_same_v<T, std::string>) {
          return false;
        } else if constexpr (kIsInteger<typename T::value_type>) {
          out.resize(v.size());
          for (std::size_t i = 0; i < v.size(); ++i) {
            if (!convert_integer(v[i], out[i])) return false;
          }
          return true;
        } else {
          return false;
        }
      },
      *value);
  if (!fits) return wrong_type(*this, key, "a list of whole numbers that fit in 32 bits");
  return out;
}

Result<std::uint32_t> GgufFile::get_u32_or(std::string_view key, std::uint32_t absent) const {
  return or_absent(get_u32(key), *this, key, absent);
}
Result<float> GgufFile::get_f32_or(std::string_view key, float absent) const {
  return or_absent(get_f32(key), *this, key, absent);
}
Result<bool> GgufFile::get_bool_or(std::string_view key, bool absent) const {
  return or_absent(get_bool(key), *this, key, absent);
}
Result<std::string> GgufFile::get_string_or(std::string_view key, std::string absent) const {
  return or_absent(get_string(key), *this, key, std::move(absent));
}
const std::string* GgufFile::find_string(std::string_view key) const {
  const GgufValue* value = find(key);
  return value == nullptr ? nullptr : std::get_if<std::string>(value);
}

const GgufTensor* GgufFile::find_tensor(std::string_view name) const {
  const auto at = names_.find(name);
  return at == names_.end() ? nullptr : &tensors_[at->second];
}

Result<const GgufTensor*> GgufFile::tensor(std::string_view name) const {
  if (const GgufTensor* found = find_tensor(name)) return found;
  return not_found("'" + path() + "' has no tensor '" + std::string(name) + "'");
}

}  // namespace sluice
