// SPDX-License-Identifier: GPL-3.0-or-later
// The filters that compare items with each other. Pure but for the budget.
#pragma once

#include "base/result.h"
#include "text/jinja/functions.h"

namespace sluice::jinja {

// "a.b" or an index, followed from `v`; undefined where there is none.
Result<Value> follow(Value v, const Value& path);

Result<Value> dictsort_filter(const Value& v, const Arguments& arguments, Budget& budget);
// sort(reverse, case_sensitive, attribute): of texts or of numbers, equal ones in their order.
Result<Value> sort_filter(const Value& v, const Arguments& arguments, Budget& budget);
// unique(case_sensitive, attribute): the first of equal items.
Result<Value> unique_filter(const Value& v, const Arguments& arguments, Budget& budget);
// min, max (case_sensitive, attribute): the first of equal ones; undefined where there are no items.
Result<Value> min_filter(const Value& v, const Arguments& arguments, Budget& budget);
Result<Value> max_filter(const Value& v, const Arguments& arguments, Budget& budget);

}  // namespace sluice::jinja
