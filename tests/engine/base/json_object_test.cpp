// SPDX-License-Identifier: GPL-3.0-or-later
#include "base/json_object.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sluice {
namespace {

TEST(JsonObject, FieldsInTheOrderOfTheCalls) {
  const std::string name = "tex\"t";
  const std::string text = JsonObject()
                               .add(name, std::string("a\n\xFF"))
                               .add("c", "literal")
                               .add("yes", true)
                               .add("int", -3)
                               .add("big", std::int64_t{1} << 62)
                               .add("float", 0.1f)
                               .add("double", 0.1)
                               .add("nan", std::nan(""))
                               .add("some", std::optional<std::int64_t>(5))
                               .add("none", std::optional<std::int64_t>())
                               .add("ids", std::vector<int>{1, -1})
                               .add("reals", std::vector<float>{0.5f, INFINITY})
                               .add_raw("raw", "{}")
                               .text();
  EXPECT_EQ(text,
            "{\"tex\\\"t\":\"a\\u000a\xEF\xBF\xBD\",\"c\":\"literal\",\"yes\":true,\"int\":-3,\"big\":4611686018427387904,\"float\":0.1,"
            "\"double\":0.1,\"nan\":null,\"some\":5,\"none\":null,\"ids\":[1,-1],\"reals\":[0.5,null],\"raw\":{}}");
  EXPECT_EQ(JsonObject().text(), "{}");
}

}  // namespace
}  // namespace sluice
