// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/format/mapped_file.h"

#include <gtest/gtest.h>

#include <limits>

#include "engine/model/format/byte_builder.h"

namespace sluice {
namespace {

TEST(MappedFile, ViewsAreCheckedWithoutWrapping) {
  const TempFile temp("0123456789");
  auto file = MappedFile::open(temp.path());
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->size(), 10u);
  const auto view = file->view(3, 4);
  ASSERT_TRUE(view.ok());
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(view->data()), view->size()), "3456");
  EXPECT_TRUE(file->view(10, 0).ok());
  constexpr auto kMax = std::numeric_limits<std::uint64_t>::max();
  for (const auto& [offset, length] : {std::pair{std::uint64_t{11}, std::uint64_t{0}}, {5, 6}, {kMax, 2}, {2, kMax}}) {
    const auto bad = file->view(offset, length);
    ASSERT_FALSE(bad.ok()) << offset << " " << length;
    EXPECT_EQ(bad.code(), Code::kCorrupt);
    EXPECT_NE(bad.status().message().find(temp.path()), std::string::npos);
  }
}

TEST(MappedFile, MovesKeepTheBytes) {
  const TempFile temp("abc");
  auto first = MappedFile::open(temp.path());
  ASSERT_TRUE(first.ok());
  MappedFile second = std::move(*first);
  EXPECT_EQ(second.size(), 3u);
  EXPECT_EQ(second.bytes()[0], std::byte{'a'});
}

TEST(MappedFile, EmptyFile) {
  const TempFile temp("");
  const auto file = MappedFile::open(temp.path());
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->size(), 0u);
  EXPECT_FALSE(file->view(0, 1).ok());
}

TEST(MappedFile, ErrorsNameThePath) {
  const auto missing = MappedFile::open(testing::TempDir() + "no_such_model.gguf");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.code(), Code::kNotFound);
  EXPECT_NE(missing.status().message().find("no_such_model.gguf"), std::string::npos);
  const auto folder = MappedFile::open(testing::TempDir());
  ASSERT_FALSE(folder.ok());
  EXPECT_EQ(folder.code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace sluice
