// SPDX-License-Identifier: GPL-3.0-or-later
#include "base/json_limits.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(JsonLimits, AcceptsUpToTheDepth) {
  EXPECT_TRUE(check_json_limits(nested(64), "body").ok());
  EXPECT_TRUE(check_json_limits("[1],[2],{\"a\":{}}", "body").ok());
}

TEST(JsonLimits, RefusesDeeper) {
  const Status status = check_json_limits(nested(65), "the request body");
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("the request body"), std::string::npos);
  EXPECT_NE(status.message().find("64"), std::string::npos);
  EXPECT_FALSE(check_json_limits(std::string(1'000'000, '{'), "body").ok());
}

TEST(JsonLimits, MixedBracketsCountAlike) {
  std::string text;
  for (int i = 0; i < 33; ++i) text += "[{\"a\":";
  EXPECT_FALSE(check_json_limits(text, "body").ok());
}

TEST(JsonLimits, BracketsInStringsDoNotCount) {
  const std::string many(1000, '[');
  EXPECT_TRUE(check_json_limits("\"" + many + "\"", "body").ok());
  EXPECT_TRUE(check_json_limits("\"\\\"" + many + "\"", "body").ok());   // an escaped quote does not end it
  EXPECT_FALSE(check_json_limits("\"\\\\\"" + many, "body").ok());       // an escaped backslash does not escape the quote
}

TEST(JsonLimits, RefusesLonger) {
  EXPECT_TRUE(check_json_limits("12345", "body", {.max_bytes = 5, .max_depth = 1}).ok());
  EXPECT_FALSE(check_json_limits("123456", "body", {.max_bytes = 5, .max_depth = 1}).ok());
}

TEST(JsonLimits, UnbalancedInputIsNotItsMatter) {
  EXPECT_TRUE(check_json_limits("]]]}}}\"\\", "body").ok());
  EXPECT_TRUE(check_json_limits("", "body").ok());
}

}  // namespace
}  // namespace sluice
