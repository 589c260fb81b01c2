// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/format/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>

#include "engine/model/format/byte_builder.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::vector<std::pair<std::string, GgufValue>> every_kind() {
  return {{"u8", std::uint8_t{200}}, {"i8", std::int8_t{-3}}, {"u16", std::uint16_t{60000}}, {"i16", std::int16_t{-300}},
          {"u32", std::uint32_t{4000000000u}}, {"i32", std::int32_t{-7}}, {"f32", 1.5f}, {"bool", true},
          {"string", std::string("llama")}, {"u64", std::uint64_t{1} << 63}, {"i64", std::int64_t{-5}}, {"f64", 0.25},
          {"strings", std::vector<std::string>{"a", "", "ccc"}}, {"floats", std::vector<float>{1.0f, -2.0f}},
          {"i32s", std::vector<std::int32_t>{1, -1}}, {"u8s", std::vector<std::uint8_t>{1, 255}},
          {"bools", std::vector<bool>{true, false, true}}, {"doubles", std::vector<double>{0.5}},
          {"none", std::vector<std::int64_t>{}}};
}

TEST(Gguf, ReadsBackWhatWasWritten) {
  const TempFile temp;
  std::vector<float> plain(12);
  for (int i = 0; i < 12; ++i) plain[i] = static_cast<float>(i);
  std::vector<std::byte> blocks(2 * 20);
  for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<std::byte>(i);
  ASSERT_TRUE(write_gguf(temp.path(), every_kind(),
                         {{"norm", BlockType::kF32, {3, 2, 2}, std::as_bytes(std::span(plain))},
                          {"weight", BlockType::kQ4_1, {32, 2}, blocks}})
                  .ok());
  const auto opened = GgufFile::open(temp.path());
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  const GgufFile& file = **opened;
  EXPECT_EQ(file.version(), 3u);
  EXPECT_EQ(file.metadata(), every_kind());
  ASSERT_EQ(file.tensors().size(), 2u);
  const GgufTensor* norm = file.find_tensor("norm");
  ASSERT_NE(norm, nullptr);
  EXPECT_THAT(norm->shape, ElementsAre(3, 2, 2));
  EXPECT_EQ(norm->rows(), 4);
  EXPECT_EQ(std::memcmp(norm->bytes.data(), plain.data(), norm->bytes.size()), 0);
  const auto weight = file.tensor("weight");
  ASSERT_TRUE(weight.ok());
  EXPECT_EQ((*weight)->type, BlockType::kQ4_1);
  EXPECT_EQ((*weight)->offset % 32, 0u);
  ASSERT_EQ((*weight)->bytes.size(), blocks.size());
  EXPECT_EQ(std::memcmp((*weight)->bytes.data(), blocks.data(), blocks.size()), 0);
  const auto none = file.tensor("other");
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.status().message(), HasSubstr("other"));
}

TEST(Gguf, WritingIsDeterministic) {
  const TempFile a("", "_a"), b("", "_b");
  ASSERT_TRUE(write_gguf(a.path(), every_kind(), {}).ok());
  ASSERT_TRUE(write_gguf(b.path(), every_kind(), {}).ok());
  EXPECT_EQ(contents(a.path()), contents(b.path()));
}

TEST(Gguf, WriterRefusesBytesThatDontMatchTheShape) {
  const TempFile temp;
  const std::vector<std::byte> short_by_one(39);
  const Status status = write_gguf(temp.path(), {}, {{"weight", BlockType::kQ4_1, {32, 2}, short_by_one}});
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("weight"));
}

TEST(Gguf, GettersConvertOnlyWhatFits) {
  const TempFile temp;
  ASSERT_TRUE(write_gguf(temp.path(), every_kind(), {}).ok());
  const auto opened = GgufFile::open(temp.path());
  ASSERT_TRUE(opened.ok());
  const GgufFile& file = **opened;
  EXPECT_EQ(*file.get_u32("u8"), 200u);
  EXPECT_EQ(*file.get_u32("u32"), 4000000000u);
  EXPECT_EQ(*file.get_u64("u64"), std::uint64_t{1} << 63);
  EXPECT_EQ(*file.get_i64("i8"), -3);
  EXPECT_EQ(*file.get_f32("f64"), 0.25f);
  EXPECT_EQ(*file.get_f32("i32"), -7.0f);
  EXPECT_EQ(*file.get_bool("bool"), true);
  EXPECT_EQ(*file.get_string("string"), "llama");
  EXPECT_EQ(*file.find_string("string"), "llama");
  EXPECT_EQ(file.find_string("u8"), nullptr);
  EXPECT_THAT(*file.string_array("strings"), ElementsAre("a", "", "ccc"));
  EXPECT_THAT(*file.float_array("floats"), ElementsAre(1.0f, -2.0f));
  EXPECT_THAT(*file.float_array("doubles"), ElementsAre(0.5f));
  EXPECT_THAT(*file.i32_array("i32s"), ElementsAre(1, -1));
  EXPECT_THAT(*file.i32_array("u8s"), ElementsAre(1, 255));
  EXPECT_EQ(*file.bool_array("bools"), (std::vector<bool>{true, false, true}));
  for (const char* key : {"i32", "u64", "string", "bool", "f32", "u8s"}) {
    const auto wrong = file.get_u32(key);
    ASSERT_FALSE(wrong.ok()) << key;
    EXPECT_EQ(wrong.code(), Code::kInvalidArgument) << key;
    EXPECT_THAT(wrong.status().message(), HasSubstr(key));
    EXPECT_THAT(wrong.status().message(), HasSubstr(temp.path()));
  }
  EXPECT_EQ(file.get_i64("u64").code(), Code::kInvalidArgument);
  EXPECT_EQ(file.i32_array("strings").code(), Code::kInvalidArgument);
  EXPECT_EQ(file.get_u32("absent").code(), Code::kNotFound);
}

TEST(Gguf, DefaultsAreForAbsentKeysOnly) {
  const TempFile temp;
  ASSERT_TRUE(write_gguf(temp.path(), every_kind(), {}).ok());
  const auto opened = GgufFile::open(temp.path());
  ASSERT_TRUE(opened.ok());
  const GgufFile& file = **opened;
  EXPECT_EQ(*file.get_u32_or("absent", 9), 9u);
  EXPECT_EQ(*file.get_u32_or("u8", 9), 200u);
  EXPECT_EQ(file.get_u32_or("string", 9).code(), Code::kInvalidArgument);
  EXPECT_EQ(*file.get_f32_or("absent", 1e-5f), 1e-5f);
  EXPECT_EQ(*file.get_bool_or("absent", true), true);
  EXPECT_EQ(*file.get_string_or("absent", "x"), "x");
}

// Per-entry work that grew with the entries would take minutes here. The time is printed, never judged.
TEST(Gguf, FMT8_ParseTimeIsLinearInEntries) {
  for (const std::uint64_t n : {1000u, 150000u}) {
    ByteBuilder b;
    b.text("GGUF").put(std::uint32_t{3}).put(n).put(n);
    for (std::uint64_t i = 0; i < n; ++i) b.string("key." + std::to_string(i)).put(std::uint32_t{8}).string("value");
    for (std::uint64_t i = 0; i < n; ++i) {
      b.string("tensor." + std::to_string(i)).put(std::uint32_t{1}).put(std::uint64_t{8}).put(std::uint32_t{0}).put((n - 1 - i) * 32);
    }
    b.align(32).zeros(n * 32);
    const TempFile temp(b.bytes());
    const auto start = std::chrono::steady_clock::now();
    const auto file = GgufFile::open(temp.path());
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    ASSERT_TRUE(file.ok()) << file.status().message();
    EXPECT_EQ((*file)->tensors().size(), n);
    EXPECT_TRUE((*file)->has("key." + std::to_string(n - 1)));
    RecordProperty("microseconds_per_entry_" + std::to_string(n), std::to_string(took.count() / static_cast<double>(2 * n)));
  }
}

TEST(Gguf, ReadsVersion2) {
  ByteBuilder b;
  b.text("GGUF").put(std::uint32_t{2}).put(std::uint64_t{1}).put(std::uint64_t{1});
  b.string("general.alignment").put(std::uint32_t{4}).put(std::uint32_t{64});
  b.string("w").put(std::uint32_t{1}).put(std::uint64_t{2}).put(std::uint32_t{0}).put(std::uint64_t{0});
  b.align(64).put(1.0f).put(2.0f);
  const TempFile temp(b.bytes());
  const auto file = GgufFile::open(temp.path());
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ((*file)->version(), 2u);
  EXPECT_EQ((*file)->alignment(), 64u);
  EXPECT_EQ((*file)->tensors()[0].offset % 64, 0u);
}

}  // namespace
}  // namespace sluice
