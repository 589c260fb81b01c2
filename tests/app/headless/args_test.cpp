// SPDX-License-Identifier: GPL-3.0-or-later
#include "headless/args.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::headless {
namespace {

using ::testing::HasSubstr;

const VerbSpec kSpec = {"paint", "Paints.", {{"--data", "DIR", "where", true}, {"--coats", "N", "how often", false},
                                             {"--dry", "", "no paint", false}, {"--shade", "T", "how dark", false}}, ""};
const VerbSpec kWhich = {"bench", "Measures.", {{"--threads", "N", "cores", false}}, "decode|train"};

std::string error_of(const VerbSpec& spec, const std::vector<std::string>& words) {
  const auto args = Args::parse(spec, words);
  return args.ok() ? "" : args.status().message();
}

TEST(Args, ValuesInBothSpellings) {
  const auto args = Args::parse(kSpec, {"--data", "a folder", "--coats=3", "--dry"});
  ASSERT_TRUE(args.ok()) << args.status().message();
  EXPECT_EQ(args->text("--data"), "a folder");
  EXPECT_EQ(args->integer("--coats", 1, 0, 9).value(), 3);
  EXPECT_TRUE(args->has("--dry"));
  EXPECT_EQ(args->number("--shade", 0.5, 0, 1).value(), 0.5);
}

TEST(Args, EveryMistakeNamesTheArgument) {
  EXPECT_THAT(error_of(kSpec, {}), HasSubstr("--data DIR is missing"));
  EXPECT_THAT(error_of(kSpec, {"--data"}), HasSubstr("--data needs a value"));
  EXPECT_THAT(error_of(kSpec, {"--data", "x", "--data", "y"}), HasSubstr("--data is given twice"));
  EXPECT_THAT(error_of(kSpec, {"--data", "x", "--colour", "red"}), HasSubstr("--colour is unknown"));
  EXPECT_THAT(error_of(kSpec, {"--data", "x", "--dry=yes"}), HasSubstr("--dry takes no value"));
  EXPECT_THAT(error_of(kSpec, {"--data", "x", "wall"}), HasSubstr("\"wall\" is not expected"));
  EXPECT_THAT(error_of(kWhich, {}), HasSubstr("decode|train"));
  EXPECT_EQ(error_of(kWhich, {"train", "--threads", "2"}), "");
}

TEST(Args, NumbersAreWholeAndWithinTheirBounds) {
  for (const char* bad : {"", "x", "3x", "1.5", "-1", "10", "99999999999999999999"}) {
    const auto args = Args::parse(kSpec, {"--data", "x", "--coats", bad});
    ASSERT_TRUE(args.ok());
    EXPECT_FALSE(args->integer("--coats", 1, 0, 9).ok()) << bad;
  }
  for (const char* bad : {"", "nan", "inf", "2", "0.5x"}) {
    const auto args = Args::parse(kSpec, {"--data", "x", "--shade", bad});
    ASSERT_TRUE(args.ok());
    EXPECT_FALSE(args->number("--shade", 0, 0, 1).ok()) << bad;
  }
}

}  // namespace
}  // namespace sluice::headless
