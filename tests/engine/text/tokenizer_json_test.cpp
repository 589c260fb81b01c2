// SPDX-License-Identifier: GPL-3.0-or-later
// What the reader of tokenizer.json takes from the folder's files and what it refuses; ids are in tokenizer_variants_test.
#include "text/tokenizer_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "text/byte_alphabet.h"
#include "text/tokenizer.h"

namespace sluice {
namespace {

using Json = nlohmann::json;

// A byte-level tokenizer with the tokens <s> 256, </s> 257 and <x> 258.
Json minimal() {
  Json vocab;
  for (int b = 0; b < 256; ++b) vocab[bytes_to_alphabet(std::string(1, static_cast<char>(b)))] = b;
  Json added = Json::array();
  for (const char* text : {"<s>", "</s>", "<x>"}) {
    added.push_back({{"id", 256 + added.size()}, {"content", text}, {"special", added.size() < 2}});
  }
  return {{"added_tokens", added},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", Json::array({"a b"})}}}};
}

// The same with "ab", so that its merge has a result.
Json whole() {
  Json file = minimal();
  file["model"]["vocab"]["ab"] = 259;
  return file;
}

std::string error(const TokenizerFiles& files) {
  const auto vocabulary = vocabulary_from_json(files);
  if (!vocabulary.ok()) return vocabulary.status().message();
  const auto made = Tokenizer::create(*vocabulary);
  return made.ok() ? "" : made.status().message();
}
std::string error_of(const Json& file) { return error(TokenizerFiles{.tokenizer_json = file.dump()}); }

TEST(TokenizerJson, TakesNamesTemplateAndEndsFromTheOtherFiles) {
  const Json config = {{"bos_token", "<s>"},
                       {"eos_token", {{"content", "</s>"}, {"lstrip", false}}},
                       {"add_bos_token", true},
                       {"chat_template", {{{"name", "tool_use"}, {"template", "T"}}, {{"name", "default"}, {"template", "D"}}}}};
  const auto v = vocabulary_from_json({.tokenizer_json = whole().dump(), .tokenizer_config_json = config.dump()});
  ASSERT_TRUE(v.ok()) << v.status().message();
  EXPECT_EQ(v->bos, 256);
  EXPECT_EQ(v->eos, 257);
  EXPECT_TRUE(v->add_bos);
  EXPECT_FALSE(v->add_eos);
  EXPECT_EQ(v->chat_template, "D");
  EXPECT_EQ(v->types[256], TokenType::kControl);
  EXPECT_EQ(v->types[258], TokenType::kUserDefined);
  const auto tokenizer = Tokenizer::create(*v);
  EXPECT_EQ(*(*tokenizer)->encode("ab<x>", {.add_special = true}), (std::vector<std::int32_t>{256, 259, 258}));

  const auto file = vocabulary_from_json(
      {.tokenizer_json = whole().dump(), .tokenizer_config_json = config.dump(), .chat_template_jinja = "J"});
  EXPECT_EQ(file->chat_template, "J");
  const auto map = vocabulary_from_json({.tokenizer_json = whole().dump(), .special_tokens_map_json = R"({"eos_token":"<x>"})"});
  EXPECT_EQ(map->eos, 258);
}

TEST(TokenizerJson, CFG8_EndsAreTheUnionOfBothConfigs) {
  const auto ends = [](const char* config, const char* generation) {
    const auto v = vocabulary_from_json({.tokenizer_json = whole().dump(),
                                         .tokenizer_config_json = R"({"eos_token":"</s>"})",
                                         .config_json = config,
                                         .generation_config_json = generation});
    EXPECT_TRUE(v.ok());
    auto made = Tokenizer::create(*v);
    EXPECT_TRUE(made.ok());
    return (*made)->end_of_generation();
  };
  using Ids = std::vector<std::int32_t>;
  EXPECT_EQ(ends("", ""), Ids{257});
  EXPECT_EQ(ends(R"({"eos_token_id":258})", ""), (Ids{257, 258}));
  EXPECT_EQ(ends(R"({"eos_token_id":257})", R"({"eos_token_id":[258,0]})"), (Ids{0, 257, 258}));
  EXPECT_EQ(ends(R"({"eos_token_id":null})", "{}"), Ids{257});
  for (const char* bad : {R"({"eos_token_id":"x"})", R"({"eos_token_id":[-1]})", R"({"eos_token_id":1e9})", "[]", "{"}) {
    EXPECT_NE(error(TokenizerFiles{.tokenizer_json = whole().dump(), .config_json = bad}).find("config.json"), std::string::npos) << bad;
  }
  EXPECT_NE(error(TokenizerFiles{.tokenizer_json = whole().dump(), .config_json = R"({"eos_token_id":9999})"}).find("9999"), std::string::npos);
}

TEST(TokenizerJson, ATemplateAroundTheTextAddsBosAndEos) {
  Json file = whole();
  const Json token = {{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}};
  const Json sequence = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  file["post_processor"] = {{"type", "Sequence"},
                            {"processors", {{{"type", "ByteLevel"}}, {{"type", "TemplateProcessing"}, {"single", {token, sequence}}}}}};
  const char* config = R"({"bos_token":"<s>","eos_token":"</s>"})";
  const auto v = vocabulary_from_json({.tokenizer_json = file.dump(), .tokenizer_config_json = config});
  EXPECT_TRUE(v->add_bos);
  EXPECT_FALSE(v->add_eos);
  file["post_processor"]["processors"][1]["single"] = {sequence, token};
  EXPECT_TRUE(vocabulary_from_json({.tokenizer_json = file.dump(), .tokenizer_config_json = config})->add_eos);
}

TEST(TokenizerJson, GapsInTheIdsAreUnused) {
  Json file = whole();
  file["model"]["vocab"]["ab"] = 300;
  const auto v = vocabulary_from_json({.tokenizer_json = file.dump()});
  ASSERT_TRUE(v.ok());
  EXPECT_EQ(v->tokens.size(), 301u);
  EXPECT_EQ(v->types[270], TokenType::kUnused);
  EXPECT_EQ(*(*Tokenizer::create(*v))->encode("ab"), std::vector<std::int32_t>{300});
}

TEST(TokenizerJson, NamesWhatIsWrong) {
  EXPECT_NE(error(TokenizerFiles{}).find("no tokenizer.json"), std::string::npos);
  EXPECT_NE(error(TokenizerFiles{.tokenizer_json = "{\"model\""}).find("valid JSON"), std::string::npos);
  EXPECT_NE(error(TokenizerFiles{.tokenizer_json = "[1]"}).find("object"), std::string::npos);
  EXPECT_NE(error(TokenizerFiles{.tokenizer_json = std::string(100'000, '[')}), "");
  EXPECT_NE(error_of(minimal()).find("a b"), std::string::npos);  // the merge has no result
  struct Change {
    const char* pointer;
    Json value;
    const char* named;
  };
  for (const Change& change : std::vector<Change>{
           {"/model/type", "Unigram", "Unigram"},
           {"/model/vocab", Json::object(), "vocab"},
           {"/model/vocab/a", -1, "\"a\""},
           {"/model/vocab/a", 1e12, "\"a\""},
           {"/model/vocab/a", "x", "\"a\""},
           {"/model/vocab/a", 98, "share"},
           {"/model/merges", 5, "merges"},
           {"/model/merges/0", Json::array({"a"}), "entry 0"},
           {"/model/end_of_word_suffix", "</w>", "end_of_word_suffix"},
           {"/model/dropout", 0.1, "dropout"},
           {"/pre_tokenizer", {{"type", "Whitespace"}}, "Whitespace"},
           {"/pre_tokenizer/add_prefix_space", true, "add_prefix_space"},
           {"/pre_tokenizer", nullptr, "spaces"},
           {"/pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "\u2581"}, {"split", true}}, "split"},
           {"/pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "_"}, {"split", false}}, "replacement"},
           {"/normalizer", {{"type", "Lowercase"}}, "Lowercase"},
           {"/added_tokens/0/id", 97, "share"},
           {"/added_tokens/0/content", "", "content"},
       }) {
    Json file = whole();
    file[Json::json_pointer(change.pointer)] = change.value;
    EXPECT_NE(error_of(file).find(change.named), std::string::npos) << change.pointer << " gave: " << error_of(file);
  }
  for (const Json& split : {Json{{"type", "Split"}, {"pattern", {{"Regex", "(["}}}, {"behavior", "Isolated"}},
                            Json{{"type", "Split"}, {"pattern", {{"Regex", "a"}}}, {"behavior", "Removed"}}}) {
    Json file = whole();
    file["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {split, {{"type", "ByteLevel"}, {"use_regex", false}}}}};
    EXPECT_NE(error_of(file), "");
  }
  EXPECT_NE(error(TokenizerFiles{.tokenizer_json = whole().dump(), .tokenizer_config_json = R"({"bos_token":"<none>"})"}).find("<none>"),
            std::string::npos);
}

}  // namespace
}  // namespace sluice
