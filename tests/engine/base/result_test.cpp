// SPDX-License-Identifier: GPL-3.0-or-later
#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>

#include "base/log.h"

namespace sluice {
namespace {

Result<int> half(int n) {
  if (n % 2 != 0) return invalid_argument("n is " + std::to_string(n) + ": give an even number");
  return n / 2;
}

Result<std::string> quarter_text(int n) {
  SLUICE_ASSIGN_OR_RETURN(const int h, half(n));
  SLUICE_ASSIGN_OR_RETURN(const int q, half(h));
  return std::to_string(q);
}

TEST(Result, CarriesAValueOrTheReason) {
  EXPECT_EQ(*quarter_text(8), "2");
  const auto failed = quarter_text(6);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.code(), Code::kInvalidArgument);
  EXPECT_EQ(failed.status().message(), "n is 3: give an even number");
}

TEST(Result, MovesOutMoveOnlyValues) {
  Result<std::unique_ptr<int>> r(std::make_unique<int>(7));
  std::unique_ptr<int> out = std::move(r).value();
  EXPECT_EQ(*out, 7);
}

TEST(Log, FiltersByLevelAndNamesUnknownLevels) {
  std::vector<std::string> lines;
  Log log([&](LogLevel level, std::string_view category, std::string_view text) {
    lines.push_back(std::string(log_level_name(level)) + " " + std::string(category) + " " + std::string(text));
  }, LogLevel::kWarning);
  log.info("gate", "not shown");
  log.error("gate", "shown");
  EXPECT_EQ(lines, std::vector<std::string>{"error gate shown"});
  EXPECT_FALSE(parse_log_level("loud").ok());
  EXPECT_TRUE(parse_log_level("debug").ok());
}

}  // namespace
}  // namespace sluice
