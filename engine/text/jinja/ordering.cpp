// SPDX-License-Identifier: GPL-3.0-or-later
#include "text/jinja/ordering.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

namespace sluice::jinja {
namespace {

using Keyed = std::pair<Value, Value>;  // what is compared, and the item

// The items with their keys. Texts are compared without regard to case unless `case_sensitive`.
Result<std::vector<Keyed>> keyed(const Value& v, const Value* case_sensitive, const Value* path, Budget& budget) {
  SLUICE_ASSIGN_OR_RETURN(std::vector<Value> items, iterate(v, budget));
  if (path != nullptr && path->text() && path->text()->text().find(',') != std::string::npos) {
    return invalid_argument("several attributes are not supported: name one");
  }
  std::vector<Keyed> out;
  for (Value& item : items) {
    Value key = item;
    if (path != nullptr && !path->is_none()) {
      SLUICE_ASSIGN_OR_RETURN(key, follow(item, *path));
    }
    SLUICE_RETURN_IF_ERROR(budget.charge(key.weight()));
    if (key.text() && !(case_sensitive && case_sensitive->truthy())) key = Value(key.text()->change_case(MarkedText::Case::kLower));
    out.emplace_back(std::move(key), std::move(item));
  }
  return out;
}

// Sorting asks for an order that has no errors.
Status check_comparable(const std::vector<Keyed>& items) {
  for (const Keyed& item : items) {
    const Result<bool> compared = less(items.front().first, item.first);
    if (!compared.ok()) return compared.status();
    if (item.first.list()) return invalid_argument("lists can't be sorted");
  }
  return {};
}

template <bool largest>
Result<Value> extreme(const Value& v, const Arguments& a, Budget& budget) {
  SLUICE_ASSIGN_OR_RETURN(const std::vector<Keyed> items, keyed(v, a.find(0, "case_sensitive"), a.find(1, "attribute"), budget));
  if (items.empty()) return Value::undefined("the sequence is empty");
  const Keyed* best = &items.front();
  for (const Keyed& item : items) {
    SLUICE_ASSIGN_OR_RETURN(const bool better, largest ? less(best->first, item.first) : less(item.first, best->first));
    if (better) best = &item;
  }
  return best->second;
}

}  // namespace

Result<Value> follow(Value v, const Value& path) {
  if (!path.text()) return get_item(v, path);
  for (const MarkedText& step : path.text()->split(".", -1)) {
    const bool digits = !step.empty() && step.text().find_first_not_of("0123456789") == std::string::npos;
    std::int64_t index = 0;
    if (digits) std::from_chars(step.text().data(), step.text().data() + step.size(), index);
    SLUICE_ASSIGN_OR_RETURN(v, get_item(v, digits ? Value(index) : Value(step)));
  }
  return v;
}

Result<Value> dictsort_filter(const Value& v, const Arguments&, Budget& budget) {
  SLUICE_ASSIGN_OR_RETURN(const Value pairs, apply_filter("items", v, {}, budget));
  std::vector<Value> out = pairs.list()->items;
  // Jinja's default: by key, without regard to case.
  const auto key = [](const Value& pair) { return to_str(pair.list()->items[0]).change_case(MarkedText::Case::kLower).text(); };
  std::stable_sort(out.begin(), out.end(), [&](const Value& a, const Value& b) { return key(a) < key(b); });
  return make_list(std::move(out));
}

Result<Value> sort_filter(const Value& v, const Arguments& a, Budget& budget) {
  const Value* reverse = a.find(0, "reverse");
  SLUICE_ASSIGN_OR_RETURN(std::vector<Keyed> items, keyed(v, a.find(1, "case_sensitive"), a.find(2, "attribute"), budget));
  SLUICE_RETURN_IF_ERROR(check_comparable(items));
  const bool down = reverse != nullptr && reverse->truthy();
  std::stable_sort(items.begin(), items.end(),
                   [&](const Keyed& x, const Keyed& y) { return *(down ? less(y.first, x.first) : less(x.first, y.first)); });
  std::vector<Value> out;
  for (Keyed& item : items) out.push_back(std::move(item.second));
  return make_list(std::move(out));
}

Result<Value> unique_filter(const Value& v, const Arguments& a, Budget& budget) {
  SLUICE_ASSIGN_OR_RETURN(std::vector<Keyed> items, keyed(v, a.find(0, "case_sensitive"), a.find(1, "attribute"), budget));
  std::vector<Value> seen, out;
  for (Keyed& item : items) {
    SLUICE_RETURN_IF_ERROR(budget.charge(16 * seen.size() + item.first.weight()));  // a linear search; there are few as a rule
    if (std::any_of(seen.begin(), seen.end(), [&](const Value& other) { return equal(other, item.first); })) continue;
    seen.push_back(std::move(item.first));
    out.push_back(std::move(item.second));
  }
  return make_list(std::move(out));
}

Result<Value> min_filter(const Value& v, const Arguments& a, Budget& budget) { return extreme<false>(v, a, budget); }
Result<Value> max_filter(const Value& v, const Arguments& a, Budget& budget) { return extreme<true>(v, a, budget); }

}  // namespace sluice::jinja
