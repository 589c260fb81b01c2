// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/format/safetensors_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "support/temp_folder.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using sluice::testing::TempFolder;

void write_shard(const std::string& path, const std::string& tensor, float value) {
  const std::vector<float> data = {value};
  ASSERT_TRUE(write_safetensors(path, {{tensor, SafeDtype::kF32, {1}, std::as_bytes(std::span(data))}}).ok());
}

void write_text(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

// A folder of two shards, a.safetensors with "a" and b.safetensors with "b".
void write_sharded(const std::string& folder, const std::string& b_file = "b.safetensors") {
  fs::create_directories(folder);
  write_shard(folder + "/a.safetensors", "a", 1);
  write_shard(folder + "/b.safetensors", "b", 2);
  write_text(folder + "/model.safetensors.index.json",
             R"({"metadata":{},"weight_map":{"a":"a.safetensors","b":")" + b_file + "\"}}");
}

std::string error_of(const std::string& folder) {
  const auto opened = SafetensorsFolder::open(folder);
  EXPECT_FALSE(opened.ok());
  return opened.ok() ? "" : opened.status().message();
}

float value_of(const SafeTensor& tensor) {
  float value = 0;
  std::memcpy(&value, tensor.bytes.data(), sizeof value);
  return value;
}

TEST(SafetensorsFolder, OneFileOrShards) {
  const TempFolder temp;
  write_shard(temp.path() + "/model.safetensors", "w", 5);
  const auto single = SafetensorsFolder::open(temp.path());
  ASSERT_TRUE(single.ok()) << single.status().message();
  EXPECT_EQ((*single)->tensors().size(), 1u);
  write_sharded(temp.path() + "/sharded");
  const auto sharded = SafetensorsFolder::open(temp.path() + "/sharded");
  ASSERT_TRUE(sharded.ok()) << sharded.status().message();
  ASSERT_EQ((*sharded)->tensors().size(), 2u);
  EXPECT_EQ((*sharded)->tensors()[1]->name, "b");
  EXPECT_EQ(value_of(*(*sharded)->tensors()[1]), 2.0f);
}

TEST(SafetensorsFolder, FMT3_MissingShardsAreListed) {
  const TempFolder temp;
  write_sharded(temp.path());
  fs::remove(temp.path() + "/b.safetensors");
  EXPECT_THAT(error_of(temp.path()), AllOf(HasSubstr(temp.path()), HasSubstr("b.safetensors")));
  fs::remove(temp.path() + "/a.safetensors");
  EXPECT_THAT(error_of(temp.path()), AllOf(HasSubstr("a.safetensors"), HasSubstr("b.safetensors")));
}

TEST(SafetensorsFolder, FMT3_TensorAbsentFromItsShard) {
  const TempFolder temp;
  write_sharded(temp.path());
  write_shard(temp.path() + "/b.safetensors", "other", 2);
  EXPECT_THAT(error_of(temp.path()), AllOf(HasSubstr("b.safetensors"), HasSubstr("'other'")));
  write_text(temp.path() + "/model.safetensors.index.json", R"({"weight_map":{"a":"a.safetensors","c":"a.safetensors"}})");
  EXPECT_THAT(error_of(temp.path()), HasSubstr("no tensor 'c'"));
}

TEST(SafetensorsFolder, FMT4_OnlyIndexedFilesAreRead) {
  const TempFolder temp;
  write_sharded(temp.path());
  write_shard(temp.path() + "/model.safetensors", "a", 99);
  write_text(temp.path() + "/extra.safetensors", "nonsense");
  const auto opened = SafetensorsFolder::open(temp.path());
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  ASSERT_EQ((*opened)->tensors().size(), 2u);
  EXPECT_EQ(value_of(*(*opened)->tensors()[0]), 1.0f);
}

TEST(SafetensorsFolder, FMT5_WeightMapMayNotLeaveTheFolder) {
  const TempFolder temp;
  write_shard(temp.path() + "/outside.safetensors", "b", 3);
  const std::string folder = temp.path() + "/model";
  write_sharded(folder, "../outside.safetensors");
  EXPECT_THAT(error_of(folder), AllOf(HasSubstr("../outside.safetensors"), HasSubstr("not inside the folder")));
  write_sharded(folder, temp.path() + "/outside.safetensors");
  EXPECT_THAT(error_of(folder), AllOf(HasSubstr(temp.path() + "/outside.safetensors"), HasSubstr("not inside the folder")));
  write_sharded(folder, "link.safetensors");
  fs::create_symlink(temp.path() + "/outside.safetensors", folder + "/link.safetensors");
  EXPECT_THAT(error_of(folder), AllOf(HasSubstr("link.safetensors"), HasSubstr("link out of the folder")));
  write_sharded(folder, "");
  EXPECT_THAT(error_of(folder), HasSubstr("not inside the folder"));
}

TEST(SafetensorsFolder, FMT5_HubCacheLinksToItsBlobsAreFollowed) {
  const TempFolder temp;
  const std::string snapshot = temp.path() + "/models--x/snapshots/1234", blobs = temp.path() + "/models--x/blobs";
  write_sharded(snapshot);
  fs::create_directories(blobs);
  for (const char* name : {"a", "b"}) {
    fs::rename(snapshot + "/" + name + ".safetensors", blobs + "/" + name);
    fs::create_symlink(std::string("../../blobs/") + name, snapshot + "/" + name + ".safetensors");
  }
  const auto opened = SafetensorsFolder::open(snapshot);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_EQ((*opened)->tensors().size(), 2u);
}

TEST(SafetensorsFolder, DamagedIndexAndEmptyFolders) {
  const TempFolder temp;
  EXPECT_THAT(error_of(temp.path() + "/absent"), HasSubstr("there is no folder"));
  EXPECT_THAT(error_of(temp.path()), HasSubstr("model.safetensors"));
  write_text(temp.path() + "/pytorch_model.bin", "x");
  EXPECT_THAT(error_of(temp.path()), HasSubstr("pytorch_model.bin"));
  const std::string index = temp.path() + "/model.safetensors.index.json";
  for (const char* text : {"", "[]", "{}", R"({"weight_map":[]})", R"({"weight_map":{}})", R"({"weight_map":{"a":1}})", "{\"weight_map\":{"}) {
    write_text(index, text);
    EXPECT_THAT(error_of(temp.path()), HasSubstr("model.safetensors.index.json")) << text;
  }
  write_text(index, std::string(100000, '['));
  EXPECT_THAT(error_of(temp.path()), HasSubstr("64"));
}

}  // namespace
}  // namespace sluice
