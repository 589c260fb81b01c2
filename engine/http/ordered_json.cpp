// SPDX-License-Identifier: GPL-3.0-or-later
#include "http/ordered_json.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

namespace sluice {
namespace {

using Json = nlohmann::json;

// Collects the parser's events; containers in the making stand on a stack.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  DataValue take() { return std::move(root_.front()); }

  bool null() override { return add(DataValue()); }
  bool boolean(bool value) override { return add(DataValue(value)); }
  bool number_integer(std::int64_t value) override { return add(DataValue(value)); }
  bool number_unsigned(std::uint64_t value) override {
    return value > INT64_MAX ? add(DataValue(static_cast<double>(value))) : add(DataValue(static_cast<std::int64_t>(value)));
  }
  bool number_float(double value, const std::string&) override { return add(DataValue(value)); }
  bool string(std::string& value) override { return add(DataValue(std::move(value))); }
  bool binary(Json::binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(DataValue(DataValue::Dict())); }
  bool key(std::string& name) override {
    open_.back().key = std::move(name);
    return true;
  }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(DataValue(DataValue::List())); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  struct Open {
    std::unique_ptr<DataValue> container;
    std::string key;  // of the member to come
  };

  bool add(DataValue&& value) {
    if (open_.empty()) {
      root_.push_back(std::move(value));
    } else if (auto* list = std::get_if<DataValue::List>(&open_.back().container->v)) {
      list->push_back(std::move(value));
    } else {
      std::get<DataValue::Dict>(open_.back().container->v).emplace_back(std::move(open_.back().key), std::move(value));
    }
    return true;
  }
  bool open(DataValue&& container) {
    open_.push_back({std::make_unique<DataValue>(std::move(container)), {}});
    return true;
  }
  bool close() {
    const std::unique_ptr<DataValue> done = std::move(open_.back().container);
    open_.pop_back();
    return add(std::move(*done));
  }

  DataValue::List root_;  // the one value, once it is whole
  std::vector<Open> open_;
};

}  // namespace

std::optional<DataValue> data_of_json(const std::string& text) {
  Builder builder;
  if (!Json::sax_parse(text, &builder)) return std::nullopt;
  return builder.take();
}

const DataValue* member(const DataValue& object, std::string_view name) {
  const auto* dict = std::get_if<DataValue::Dict>(&object.v);
  if (dict == nullptr) return nullptr;
  for (auto it = dict->rbegin(); it != dict->rend(); ++it) {
    if (it->first == name) return it->second.is_null() ? nullptr : &it->second;
  }
  return nullptr;
}

}  // namespace sluice
