// SPDX-License-Identifier: GPL-3.0-or-later
// Crafted files: each must give an error that names the file and the culprit, without much memory or time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "engine/model/format/byte_builder.h"
#include "model/format/gguf.h"
#include "support/memory_cap.h"

namespace sluice {
namespace {

using testing::HasSubstr;

constexpr auto kMax = std::numeric_limits<std::uint64_t>::max();
using u32 = std::uint32_t;
using u64 = std::uint64_t;

ByteBuilder header(u64 tensors, u64 keys, u32 version = 3) {
  ByteBuilder b;
  b.text("GGUF").put(version).put(tensors).put(keys);
  return b;
}

// One tensor entry with everything under control, followed by `data` bytes of data.
std::string one_tensor(std::vector<u64> shape, u32 type, u64 offset, std::size_t data, const std::string& name = "w") {
  ByteBuilder b = header(1, 0);
  b.string(name).put(static_cast<u32>(shape.size()));
  for (const u64 length : shape) b.put(length);
  b.put(type).put(offset).align(32).zeros(data);
  return b.bytes();
}

std::string one_key(const std::function<void(ByteBuilder&)>& value, const std::string& key = "k") {
  ByteBuilder b = header(0, 1);
  b.string(key);
  value(b);
  b.zeros(16);
  return b.bytes();
}

struct Case {
  const char* name;
  std::string file;
  Code code;
  const char* says;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&all](const char* name, std::string file, Code code, const char* says) {
    all.push_back({name, std::move(file), code, says});
  };
  add("empty", "", Code::kInvalidArgument, "not a GGUF file");
  add("short", "GGUF", Code::kInvalidArgument, "not a GGUF file");
  add("other magic", std::string(64, 'x'), Code::kInvalidArgument, "letters GGUF");
  add("version 1", header(0, 0, 1).zeros(32).bytes(), Code::kInvalidArgument, "version 1");
  add("version 4", header(0, 0, 4).zeros(32).bytes(), Code::kInvalidArgument, "version 4");
  add("big-endian", header(0, 0, 3u << 24).zeros(32).bytes(), Code::kInvalidArgument, "big-endian");
  add("key count", header(0, kMax).zeros(64).bytes(), Code::kCorrupt, "metadata keys");
  add("tensor count", header(u64{1} << 61, 0).zeros(64).bytes(), Code::kCorrupt, "tensors");
  add("key length 2^63", header(0, 1).put(u64{1} << 63).zeros(32).bytes(), Code::kCorrupt, "metadata key 0");
  add("key length 2^64-1", header(0, 1).put(kMax).zeros(32).bytes(), Code::kCorrupt, "metadata key 0");
  add("long key", header(0, 1).string(std::string(70000, 'a')).zeros(32).bytes(), Code::kCorrupt, "limit");
  add("empty key", one_key([](auto& b) { b.put(u32{4}).put(u32{1}); }, ""), Code::kCorrupt, "is empty");
  add("key twice",
      header(0, 2).string("k").put(u32{7}).put(true).string("k").put(u32{7}).put(true).zeros(16).bytes(), Code::kCorrupt,
      "'k' appears twice");
  add("value type", one_key([](auto& b) { b.put(u32{13}).put(u64{1}); }), Code::kCorrupt, "unknown type 13");
  add("value cut", header(0, 1).string("k").put(u32{10}).put(u32{1}).bytes(), Code::kCorrupt, "'k'");
  add("bool of 2", one_key([](auto& b) { b.put(u32{7}).put(std::uint8_t{2}); }), Code::kCorrupt, "neither true nor false");
  add("string length", one_key([](auto& b) { b.put(u32{8}).put(u64{1} << 63); }), Code::kCorrupt, "'k'");
  add("list length", one_key([](auto& b) { b.put(u32{9}).put(u32{4}).put(u64{1} << 62); }), Code::kCorrupt, "'k'");
  add("list of strings", one_key([](auto& b) { b.put(u32{9}).put(u32{8}).put(u64{2}).put(u64{1}).text("a").put(u64{99}); }),
      Code::kCorrupt, "'k'");
  add("list element type", one_key([](auto& b) { b.put(u32{9}).put(u32{99}).put(u64{0}); }), Code::kCorrupt, "type 99");
  add("list of lists", one_key([](auto& b) { b.put(u32{9}).put(u32{9}).put(u64{1}); }), Code::kCorrupt, "list of lists");
  add("alignment 0", one_key([](auto& b) { b.put(u32{4}).put(u32{0}); }, "general.alignment"), Code::kCorrupt, "alignment");
  add("alignment 24", one_key([](auto& b) { b.put(u32{4}).put(u32{24}); }, "general.alignment"), Code::kCorrupt, "24");
  add("no name", one_tensor({4}, 0, 0, 64, ""), Code::kCorrupt, "no name");
  add("no dimension", one_tensor({}, 0, 0, 64), Code::kCorrupt, "0 dimensions");
  add("five dimensions", one_tensor({1, 1, 1, 1, 1}, 0, 0, 64), Code::kCorrupt, "5 dimensions");
  add("10^6 dimensions", header(1, 0).string("w").put(u32{1000000}).zeros(64).bytes(), Code::kCorrupt, "1000000 dim");
  add("dimension 0", one_tensor({4, 0}, 0, 0, 64), Code::kCorrupt, "impossible shape");
  add("dimension 2^63", one_tensor({u64{1} << 63}, 0, 0, 64), Code::kCorrupt, "impossible shape");
  add("product wraps", one_tensor({u64{1} << 42, u64{1} << 42}, 0, 0, 64), Code::kCorrupt, "impossible shape");
  add("bytes wrap", one_tensor({u64{1} << 62}, 0, 0, 64), Code::kCorrupt, "impossible shape");
  add("tensor type Q8_1", one_tensor({256}, 9, 0, 288), Code::kInvalidArgument, "Q8_1 (type 9)");
  add("tensor type IQ2_XS", one_tensor({256}, 17, 0, 256), Code::kInvalidArgument, "IQ2_XS (type 17)");
  add("tensor type IQ4_XS", one_tensor({256}, 23, 0, 256), Code::kInvalidArgument, "IQ4_XS (type 23)");
  add("tensor type I32", one_tensor({64}, 26, 0, 256), Code::kInvalidArgument, "I32 (type 26)");
  add("tensor type MXFP4", one_tensor({32}, 39, 0, 32), Code::kInvalidArgument, "MXFP4 (type 39)");
  add("row not whole K blocks", one_tensor({288}, 14, 0, 512), Code::kCorrupt, "no whole number of Q6_K blocks");
  add("K rows cut by one byte", one_tensor({512}, 13, 0, 2 * 176 - 1), Code::kCorrupt, "past the end");
  add("tensor type far off", one_tensor({256}, 4711, 0, 256), Code::kInvalidArgument, "type 4711");
  add("row not whole blocks", one_tensor({31}, 3, 0, 64), Code::kCorrupt, "no whole number of Q4_1 blocks");
  add("offset unaligned", one_tensor({4}, 0, 4, 64), Code::kCorrupt, "alignment");
  add("offset wraps", one_tensor({4}, 0, kMax - 31, 64), Code::kCorrupt, "past the end");
  add("offset at end", one_tensor({4}, 0, 64, 64), Code::kCorrupt, "past the end");
  add("data cut by one", one_tensor({16}, 0, 0, 63), Code::kCorrupt, "past the end");
  {
    ByteBuilder b = header(2, 0);
    for (const char* name : {"a", "b"}) b.string(name).put(u32{1}).put(u64{16}).put(u32{0}).put(u64{name[0] == 'a' ? 32u : 0u});
    add("overlap", b.align(32).zeros(96).bytes(), Code::kCorrupt, "'b' and 'a' overlap");
  }
  {
    ByteBuilder b = header(2, 0);
    for (int i = 0; i < 2; ++i) b.string("a").put(u32{1}).put(u64{8}).put(u32{0}).put(u64{32u * i});
    add("tensor twice", b.align(32).zeros(64).bytes(), Code::kCorrupt, "'a' appears twice");
  }
  return all;
}

TEST(GgufMalformed, FMT6_FMT7_EachGivesAnErrorThatNamesFileAndCulprit) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const TempFile temp(c.file);
    const auto file = GgufFile::open(temp.path());
    ASSERT_FALSE(file.ok());
    EXPECT_EQ(file.code(), c.code);
    EXPECT_THAT(file.status().message(), HasSubstr(c.says));
    EXPECT_THAT(file.status().message(), HasSubstr(temp.path()));
  }
}

// Counts and lengths are checked against the file before anything is made for them.
TEST(GgufMalformed, FMT7_NoneTakesMuchMemory) {
  const std::vector<Case> all = cases();
  test::expect_within_memory(std::size_t{32} << 20, [&all] {
    for (const Case& c : all) {
      const TempFile temp(c.file);
      if (GgufFile::open(temp.path()).ok()) return false;
    }
    return true;
  });
}

// A file that is cut anywhere is refused and never read past its end (the sanitizer build sees that).
TEST(GgufMalformed, CutAtEveryByte) {
  ByteBuilder b = header(1, 2);
  b.string("name").put(u32{8}).string("llama");
  b.string("list").put(u32{9}).put(u32{5}).put(u64{3}).put(u32{1}).put(u32{2}).put(u32{3});
  b.string("w").put(u32{2}).put(u64{32}).put(u64{2}).put(u32{3}).put(u64{0}).align(32).zeros(40);
  {
    const TempFile whole(b.bytes());
    ASSERT_TRUE(GgufFile::open(whole.path()).ok());
  }
  for (std::size_t n = 0; n < b.bytes().size(); ++n) {
    const TempFile cut(b.bytes().substr(0, n));
    ASSERT_FALSE(GgufFile::open(cut.path()).ok()) << n << " bytes";
  }
}

}  // namespace
}  // namespace sluice
