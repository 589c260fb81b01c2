// SPDX-License-Identifier: GPL-3.0-or-later
#include "base/durable_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace sluice {
namespace {

std::span<const std::byte> bytes_of(const std::string& s) { return std::as_bytes(std::span(s)); }

TEST(DurableFile, WritesAllPartsAndReplaces) {
  const std::string path = testing::TempDir() + "durable_file_test.bin";
  const std::string a = "first ", b = "second";
  const std::span<const std::byte> two[] = {bytes_of(a), bytes_of(b)};
  ASSERT_TRUE(write_and_sync(path, two).ok());
  const std::span<const std::byte> one[] = {bytes_of(b)};
  ASSERT_TRUE(write_and_sync(path, one).ok());
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "second");
  EXPECT_TRUE(sync_directory(testing::TempDir()).ok());
  std::filesystem::remove(path);
}

TEST(DurableFile, ErrorsNameThePath) {
  const std::string path = testing::TempDir() + "no such folder/file";
  const Status written = write_and_sync(path, {});
  EXPECT_EQ(written.code(), Code::kUnavailable);
  EXPECT_NE(written.message().find(path), std::string::npos);
  EXPECT_EQ(sync_directory(path).code(), Code::kUnavailable);
}

// The disk is full: the partial file must not stay behind as if it were whole.
TEST(DurableFile, FullDiskIsAnError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  const std::string text(100, 'x');
  const std::string link = testing::TempDir() + "durable_file_full";
  std::filesystem::remove(link);
  std::filesystem::create_symlink("/dev/full", link);
  const std::span<const std::byte> part[] = {bytes_of(text)};
  EXPECT_EQ(write_and_sync(link, part).code(), Code::kUnavailable);
  EXPECT_FALSE(std::filesystem::is_symlink(link));
}

}  // namespace
}  // namespace sluice
