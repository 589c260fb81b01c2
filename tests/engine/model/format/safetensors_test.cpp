// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/format/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>

#include "base/sha256.h"
#include "engine/model/format/byte_builder.h"
#include "support/memory_cap.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string with_header(const std::string& json, std::size_t data) {
  return ByteBuilder().string(json).zeros(data).bytes();
}

TEST(Safetensors, ReadsBackWhatWasWritten) {
  const TempFile temp;
  const std::vector<float> a = {1, 2, 3, 4, 5, 6};
  const std::vector<std::int64_t> step = {42};
  const std::vector<std::uint8_t> rng = {1, 2, 3};
  ASSERT_TRUE(write_safetensors(temp.path(), {{"rng", SafeDtype::kU8, {3}, std::as_bytes(std::span(rng))},
                                              {"b.weight", SafeDtype::kF32, {2, 3}, std::as_bytes(std::span(a))},
                                              {"empty", SafeDtype::kF32, {0, 3}, {}},
                                              {"step", SafeDtype::kI64, {}, std::as_bytes(std::span(step))}})
                  .ok());
  const auto opened = SafetensorsFile::open(temp.path());
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  const SafetensorsFile& file = **opened;
  EXPECT_EQ(file.metadata(), (std::map<std::string, std::string>{{"format", "pt"}}));
  ASSERT_EQ(file.tensors().size(), 4u);
  const SafeTensor* b = file.find("b.weight");
  ASSERT_NE(b, nullptr);
  EXPECT_THAT(b->shape, ElementsAre(2, 3));
  EXPECT_EQ(b->dtype, SafeDtype::kF32);
  EXPECT_EQ(std::memcmp(b->bytes.data(), a.data(), b->bytes.size()), 0);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b->bytes.data()) % 8, 0u);
  const auto scalar = file.tensor("step");
  ASSERT_TRUE(scalar.ok());
  EXPECT_EQ((*scalar)->elements(), 1);
  EXPECT_EQ(file.find("empty")->bytes.size(), 0u);
  EXPECT_EQ(file.find("rng")->bytes[2], std::byte{3});
  EXPECT_EQ(file.find("other"), nullptr);
  EXPECT_THAT(file.tensor("other").status().message(), HasSubstr("other"));
}

// Per-entry work that grew with the entries would take minutes here. The time is printed, never judged.
TEST(Safetensors, FMT8_ParseTimeIsLinearInEntries) {
  for (const int n : {1000, 150000}) {
    std::string json = "{";
    for (int i = 0; i < n; ++i) {
      json += (i > 0 ? ",\"t" : "\"t") + std::to_string(i) + R"(":{"dtype":"U8","shape":[1],"data_offsets":[)" + std::to_string(n - 1 - i) +
              "," + std::to_string(n - i) + "]}";
    }
    const TempFile temp(with_header(json + "}", static_cast<std::size_t>(n)));
    const auto start = std::chrono::steady_clock::now();
    const auto file = SafetensorsFile::open(temp.path());
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    ASSERT_TRUE(file.ok()) << file.status().message();
    EXPECT_EQ((*file)->tensors().size(), static_cast<std::size_t>(n));
    RecordProperty("microseconds_per_entry_" + std::to_string(n), std::to_string(took.count() / n));
  }
}

TEST(Safetensors, BytesDependOnContentsOnly) {
  const TempFile a("", "_a"), b("", "_b");
  const std::vector<float> x = {1, 2}, y = {3};
  const SafeTensorToWrite first{"x", SafeDtype::kF32, {2}, std::as_bytes(std::span(x))};
  const SafeTensorToWrite second{"y", SafeDtype::kF32, {1}, std::as_bytes(std::span(y))};
  ASSERT_TRUE(write_safetensors(a.path(), {first, second}).ok());
  ASSERT_TRUE(write_safetensors(b.path(), {second, first}).ok());
  EXPECT_EQ(*sha256_file(a.path()), *sha256_file(b.path()));
}

TEST(Safetensors, WriterRefusesWrongSizesAndNames) {
  const TempFile temp;
  const std::vector<float> x = {1, 2};
  const auto bytes = std::as_bytes(std::span(x));
  EXPECT_EQ(write_safetensors(temp.path(), {{"x", SafeDtype::kF32, {3}, bytes}}).code(), Code::kInvalidArgument);
  EXPECT_EQ(write_safetensors(temp.path(), {{"x", SafeDtype::kF32, {-2}, bytes}}).code(), Code::kInvalidArgument);
  EXPECT_EQ(write_safetensors(temp.path(), {{"x", SafeDtype::kF32, {2}, bytes}, {"x", SafeDtype::kF32, {2}, bytes}}).code(),
            Code::kInvalidArgument);
}

TEST(Safetensors, FMT1_FMT2_MalformedFilesGiveErrorsThatNameFileAndTensor) {
  constexpr auto kMax = std::numeric_limits<std::uint64_t>::max();
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "[";
  const auto w = [](const std::string& entry) { return "{\"w\":" + entry + "}"; };
  struct Case {
    const char* name;
    std::string file;
    const char* says;
  };
  const std::vector<Case> cases = {
      {"empty", "", "too short"},
      {"header length 2^64-1", ByteBuilder().put(kMax).text("{}").bytes(), "claims"},
      {"header length negative", ByteBuilder().put(std::int64_t{-8}).text("{}").bytes(), "claims"},
      {"header length one too many", ByteBuilder().put(std::uint64_t{3}).text("{}").bytes(), "claims"},
      {"no JSON", with_header("nonsense", 0), "not a JSON object"},
      {"a list", with_header("[]", 0), "not a JSON object"},
      {"deep", with_header(deep, 0), "64"},
      {"cut JSON", with_header("{\"w\":{\"dtype\":\"F32\"", 0), "not a JSON object"},
      {"name twice", with_header("{\"w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                                 "\"w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1), "'w' appears twice"},
      {"no offsets", with_header(w("{\"dtype\":\"F32\",\"shape\":[1]}"), 4), "'w' lacks"},
      {"unknown type", with_header(w("{\"dtype\":\"F4\",\"shape\":[1],\"data_offsets\":[0,4]}"), 4), "F4"},
      {"type no string", with_header(w("{\"dtype\":3,\"shape\":[1],\"data_offsets\":[0,4]}"), 4), "'w'"},
      {"shape no list", with_header(w("{\"dtype\":\"F32\",\"shape\":1,\"data_offsets\":[0,4]}"), 4), "'w'"},
      {"negative length", with_header(w("{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}"), 4), "not a length"},
      {"fraction", with_header(w("{\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,4]}"), 4), "not a length"},
      {"shape wraps", with_header(w("{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,0]}"), 0),
       "too large"},
      {"not shape x type", with_header(w("{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}"), 4), "need 8"},
      {"reversed", with_header(w("{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}"), 4), "reversed"},
      {"negative offset", with_header(w("{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}"), 4), "two whole"},
      {"one offset", with_header(w("{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4]}"), 4), "two whole"},
      {"past the end", with_header(w("{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}"), 4), "cut short"},
      {"far past the end",
       with_header(w("{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[18446744073709551612,18446744073709551615]}"), 4),
       "'w'"},
      {"hole", with_header(w("{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}"), 8), "hole"},
      {"trailing bytes", with_header(w("{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}"), 5), "no tensor"},
      {"overlap", with_header("{\"v\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
                              "\"w\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[2,6]}}", 6), "'w' overlaps"},
      {"metadata of numbers", with_header("{\"__metadata__\":{\"a\":1}}", 0), "'a' is not a string"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const TempFile temp(c.file);
    const auto file = SafetensorsFile::open(temp.path());
    ASSERT_FALSE(file.ok());
    EXPECT_THAT(file.status().message(), HasSubstr(c.says));
    EXPECT_THAT(file.status().message(), HasSubstr(temp.path()));
  }
  test::expect_within_memory(std::size_t{32} << 20, [&cases] {
    return std::none_of(cases.begin(), cases.end(), [](const Case& c) {
      const TempFile temp(c.file);
      return SafetensorsFile::open(temp.path()).ok();
    });
  });
}

}  // namespace
}  // namespace sluice
