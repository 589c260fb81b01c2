// SPDX-License-Identifier: GPL-3.0-or-later
// Model files and folders as the programs open them: model, tokenizer and chat template together.
#include "runtime/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/temp_folder.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string data_path(const std::string& name) { return std::string(SLUICE_TEST_DATA) + "/" + name; }

// tests/data/folders/llama, to be changed.
class Folder {
 public:
  Folder() : path_(temp_.path() + "/llama") { fs::copy(data_path("folders/llama"), path_, fs::copy_options::recursive); }
  const std::string& path() const { return path_; }
  std::string read(const std::string& name) const {
    std::ifstream in(path_ + "/" + name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path_ + "/" + name) << text; }
  void replace(const std::string& name, const std::string& from, const std::string& with) const {
    std::string text = read(name);
    const auto at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    write(name, text.replace(at, from.size(), with));
  }
  std::string error() const {
    const auto system = load_system(path_);
    EXPECT_FALSE(system.ok());
    return system.ok() ? "" : system.status().message();
  }

 private:
  sluice::testing::TempFolder temp_;
  std::string path_;
};

TEST(Load, AFolderHasTheTokenizerAndTemplateOfTheSameGguf) {
  const Folder folder;
  const auto a = load_system(folder.path()), b = load_system(data_path("tiny-llama.gguf"));
  ASSERT_TRUE(a.ok()) << a.status().message();
  ASSERT_TRUE(b.ok()) << b.status().message();
  EXPECT_EQ(a->model->info().name, "llama");
  EXPECT_EQ(a->model->info().quantisation, "BF16");
  for (const char* text : {"in the house 1234", "  Ünï\n\ncode", "<|im_start|>user\nhi<|im_end|>"}) {
    EXPECT_EQ(*a->tokenizer->encode(text, {.parse_special = true}), *b->tokenizer->encode(text, {.parse_special = true})) << text;
    EXPECT_EQ(*a->tokenizer->encode(text), *b->tokenizer->encode(text)) << text;
  }
  EXPECT_NE(a->chat_template, nullptr) << a->chat_error;
  const auto memory = estimate_memory(folder.path(), 1024);
  ASSERT_TRUE(memory.ok()) << memory.status().message();
  EXPECT_GT(*memory, 0);
}

TEST(Load, CFG8_EndIdsAreTheUnionOfBothFiles) {
  const Folder folder;
  folder.replace("config.json", "\"eos_token_id\": 2", "\"eos_token_id\": [2, 0]");
  folder.replace("generation_config.json", "\"eos_token_id\": 2", "\"eos_token_id\": 5");
  const auto system = load_system(folder.path());
  ASSERT_TRUE(system.ok()) << system.status().message();
  EXPECT_THAT(system->tokenizer->end_of_generation(), ElementsAre(0, 2, 5));
  folder.replace("config.json", "\"eos_token_id\": [2, 0]", "\"eos_token_id\": null");
  folder.replace("generation_config.json", "\"eos_token_id\": 5", "\"eos_token_id\": [0]");
  const auto one = load_system(folder.path());
  ASSERT_TRUE(one.ok()) << one.status().message();
  EXPECT_THAT(one->tokenizer->end_of_generation(), ::testing::Contains(0));
}

TEST(Load, CFG8_EndIdsOutsideTheVocabularyAreRefused) {
  const Folder folder;
  folder.replace("config.json", "\"eos_token_id\": 2", "\"eos_token_id\": 320");
  EXPECT_THAT(folder.error(), AllOf(HasSubstr(folder.path()), HasSubstr("320")));
}

TEST(Load, WhatIsMissingOrDamagedIsNamed) {
  const Folder folder;
  folder.write("tokenizer_config.json", "{");
  EXPECT_THAT(folder.error(), AllOf(HasSubstr(folder.path()), HasSubstr("tokenizer_config.json")));
  folder.write("tokenizer.json", "[]");
  EXPECT_THAT(folder.error(), AllOf(HasSubstr(folder.path()), HasSubstr("tokenizer.json")));
  fs::remove(folder.path() + "/tokenizer.json");
  EXPECT_THAT(folder.error(), AllOf(HasSubstr(folder.path()), HasSubstr("tokenizer.json")));
  fs::remove(folder.path() + "/config.json");
  EXPECT_THAT(folder.error(), AllOf(HasSubstr(folder.path()), HasSubstr("config.json")));
}

}  // namespace
}  // namespace sluice
