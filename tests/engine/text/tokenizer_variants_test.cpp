// SPDX-License-Identifier: GPL-3.0-or-later
// Every family's split of byte-level BPE and every way of SentencePiece to put spaces: ids equal to `tokenizers` and to
// SentencePiece itself, from what a GGUF file says and from tokenizer.json (tests/oracle/make_tokenizer_variants_golden.py).
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "golden_vocabulary.h"
#include "text/tokenizer_json.h"

namespace sluice {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<std::int32_t>;

Json read(const std::string& name) {
  std::ifstream in(golden::data_path("tokenizer_" + name + ".json"));
  return Json::parse(in);
}

std::shared_ptr<const Tokenizer> make(Result<Vocabulary> vocabulary) {
  EXPECT_TRUE(vocabulary.ok()) << (vocabulary.ok() ? "" : vocabulary.status().message());
  if (!vocabulary.ok()) return nullptr;
  auto made = Tokenizer::create(std::move(vocabulary).value());
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.status().message());
  return made.ok() ? *made : nullptr;
}

void expect_ids(const Tokenizer& tokenizer, const std::string& text, const Json& wanted, bool special, int& wrong) {
  const auto ids = tokenizer.encode(text, {.parse_special = special});
  ASSERT_TRUE(ids.ok());
  if (*ids == wanted.get<Ids>() || ++wrong > 20) return;
  ADD_FAILURE() << ::testing::PrintToString(text) << "\n got " << ::testing::PrintToString(*ids) << "\n want " << wanted;
}

class Splits : public ::testing::TestWithParam<const char*> {
 protected:
  void expect_golden(const Tokenizer& tokenizer) const {
    int wrong = 0;
    for (std::size_t i = 0; i < golden_["texts"].size(); ++i) {
      expect_ids(tokenizer, golden_["texts"][i], variant()["ids"][i], true, wrong);
    }
    ASSERT_EQ(wrong, 0);
  }
  const Json& variant() const { return golden_["variants"][GetParam()]; }
  const Json golden_ = read("splits");
};

TEST_P(Splits, TOK3_GgufNamesGiveTheOraclesIds) {
  Vocabulary vocabulary;
  vocabulary.pre_tokenizer = GetParam();
  vocabulary.tokens.resize(golden_["vocab"].size());
  for (const auto& [token, id] : golden_["vocab"].items()) vocabulary.tokens.at(id.get<std::size_t>()) = token;
  for (const Json& merge : golden_["merges"]) {
    vocabulary.merges.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  }
  expect_golden(*make(std::move(vocabulary)));
}

TEST_P(Splits, TOK3_TokenizerJsonGivesTheOraclesIds) {
  Json file = variant()["parts"];
  file["model"] = {{"type", "BPE"}, {"vocab", golden_["vocab"]}, {"merges", golden_["merges"]}, {"ignore_merges", variant()["ignore_merges"]}};
  file["added_tokens"] = Json::array();
  expect_golden(*make(vocabulary_from_json({.tokenizer_json = file.dump()})));
}

INSTANTIATE_TEST_SUITE_P(All, Splits,
                         ::testing::Values("gpt-2", "smollm", "llama-bpe", "qwen2", "tekken", "gpt-4o", "seed-coder", "deepseek-llm",
                                           "deepseek-coder", "deepseek-v3"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

class Pieces : public ::testing::Test {
 protected:
  // As a GGUF file would say it.
  Vocabulary from_gguf() const {
    Vocabulary v;
    v.model = "llama";
    v.tokens = golden_["tokens"].get<std::vector<std::string>>();
    v.scores = golden_["scores"].get<std::vector<float>>();
    for (const Json& type : golden_["types"]) v.types.push_back(static_cast<TokenType>(type.get<int>()));
    v.unk = 0;
    v.bos = 1;
    v.eos = 2;
    return v;
  }
  std::string tokenizer_json(const std::string& variant) const {
    Json file = golden_["variants"][variant]["parts"];
    Json vocab;
    for (std::size_t i = 0; i < golden_["tokens"].size(); ++i) vocab[golden_["tokens"][i].get<std::string>()] = i;
    file["model"] = {{"type", "BPE"},      {"vocab", vocab},     {"merges", golden_["merges"]},
                     {"byte_fallback", true}, {"fuse_unk", true}, {"unk_token", "<unk>"}};
    file["added_tokens"] = golden_["added_tokens"];
    return file.dump();
  }
  const std::string text(std::size_t i) const { return golden_["texts"][i]; }
  const Json golden_ = read("pieces");
};

TEST_F(Pieces, TOK2_TOK3_ScoresGiveSentencePiecesIds) {
  for (const bool prefix : {true, false}) {
    Vocabulary vocabulary = from_gguf();
    vocabulary.add_space_prefix = prefix;
    const auto tokenizer = make(vocabulary);
    int wrong = 0;
    const Json& own = golden_["sentencepiece"][prefix ? "prefix" : "none"];
    ASSERT_GT(own.size(), 350u);
    for (const auto& [i, ids] : own.items()) expect_ids(*tokenizer, text(std::stoul(i)), ids, false, wrong);
    ASSERT_EQ(wrong, 0);
  }
}

TEST_F(Pieces, TOK1_TOK2_TokenizerJsonGivesTheOraclesIdsForEveryWayToPutSpaces) {
  for (const auto& [name, variant] : golden_["variants"].items()) {
    const auto tokenizer = make(vocabulary_from_json({.tokenizer_json = tokenizer_json(name)}));
    int wrong = 0;
    for (std::size_t i = 0; i < golden_["texts"].size(); ++i) {
      SCOPED_TRACE(name);
      expect_ids(*tokenizer, text(i), variant["ids"][i], true, wrong);
      const Json& plain = variant["plain"][i];
      expect_ids(*tokenizer, text(i), plain.is_null() ? variant["ids"][i] : plain, false, wrong);
      EXPECT_EQ(tokenizer->decode_text(variant["ids"][i].get<Ids>()), variant["decoded"][i].get<std::string>()) << text(i);
    }
    ASSERT_EQ(wrong, 0) << name;
  }
}

TEST_F(Pieces, TOK2_GgufPutsASpaceBehindEverySpecialAsTheLegacyTokenizer) {
  const auto tokenizer = make(from_gguf());
  int wrong = 0;
  for (std::size_t i = 0; i < golden_["texts"].size(); ++i) {
    if (text(i).find("<unk>") != std::string::npos) continue;  // no added token in GGUF files
    expect_ids(*tokenizer, text(i), golden_["variants"]["prepend"]["ids"][i], true, wrong);
  }
  ASSERT_EQ(wrong, 0);
}

TEST_F(Pieces, TOK4_DecodingGivesTheTextBack) {
  for (const bool prefix : {true, false}) {
    Vocabulary vocabulary = from_gguf();
    vocabulary.add_space_prefix = prefix;
    const auto tokenizer = make(vocabulary);
    for (std::size_t i = 0; i < golden_["texts"].size(); ++i) {
      // A literal U+2581 is a space to SentencePiece; behind a user-defined token stands the legacy space.
      if (text(i).find("\u2581") != std::string::npos) continue;
      if (prefix && (text(i).find("<think>") != std::string::npos || text(i).find("\n\n") != std::string::npos)) continue;
      EXPECT_EQ(tokenizer->decode_text(*tokenizer->encode(text(i)), false), text(i)) << prefix;
    }
  }
}

TEST_F(Pieces, TOK5_SpecialTextIsPlainUnlessAsked) {
  const auto tokenizer = make(from_gguf());
  for (const char* text : {"<s>", "</s>", "<0x41>"}) {
    const Ids ids = *tokenizer->encode(text);
    for (const std::int32_t id : ids) EXPECT_FALSE(tokenizer->is_special(id)) << text;
    EXPECT_EQ(tokenizer->decode_text(ids), text);
  }
  EXPECT_EQ(*tokenizer->encode("</s>", {.parse_special = true}), Ids{2});
}

TEST_F(Pieces, TOK6_TOK7_BytesOfACharacterWaitInStreams) {
  const auto tokenizer = make(from_gguf());
  for (const std::string text : {"🫠", "a🫠b", "𝔘🫠日"}) {
    StreamDecoder decoder(tokenizer);
    std::string streamed;
    const Ids ids = *tokenizer->encode(text, {.continues = true});
    for (const std::int32_t id : ids) {
      const std::string part = decoder.push(id);
      EXPECT_EQ(part.find("\uFFFD"), std::string::npos);
      streamed += part;
    }
    EXPECT_EQ(streamed, text);
    EXPECT_FALSE(decoder.pending());
  }
}

TEST_F(Pieces, TOK8_LongRunsAreQuick) {
  const auto tokenizer = make(from_gguf());
  for (const std::string unit : {"a", " ", "\n", "the ", "\xC3\xA9"}) {
    std::string text;
    while (text.size() < 50'000) text += unit;
    EXPECT_EQ(tokenizer->decode(*tokenizer->encode(text, {.continues = true})), text) << unit;
  }
}

TEST_F(Pieces, AContinuedTextGetsNoSpace) {
  const auto tokenizer = make(from_gguf());
  EXPECT_EQ(tokenizer->decode(*tokenizer->encode("fox")), " fox");
  EXPECT_EQ(tokenizer->decode(*tokenizer->encode("fox", {.continues = true})), "fox");
}

TEST_F(Pieces, NamesWhatIsWrong) {
  const auto error = [](Vocabulary v) {
    const auto made = Tokenizer::create(std::move(v));
    return made.ok() ? "" : made.status().message();
  };
  Vocabulary scores = from_gguf();
  scores.scores.pop_back();
  EXPECT_NE(error(scores).find("scores"), std::string::npos);
  scores = from_gguf();
  scores.scores[300] = NAN;
  EXPECT_NE(error(scores).find("300"), std::string::npos);
  Vocabulary byte = from_gguf();
  byte.types[400] = TokenType::kByte;
  EXPECT_NE(error(byte).find("400"), std::string::npos);
  Vocabulary length = from_gguf();
  length.tokens[400] = std::string(2000, 'x');
  EXPECT_NE(error(length).find("400"), std::string::npos);
}

TEST_F(Pieces, WithoutByteTokensOneUnknownStandsForARun) {
  Vocabulary v = from_gguf();
  for (TokenType& type : v.types) {
    if (type == TokenType::kByte) type = TokenType::kUnused;
  }
  EXPECT_EQ(*make(v)->encode("🫠🫠", {.continues = true}), Ids{0});
  v.unk.reset();
  EXPECT_EQ(*make(v)->encode("🫠🫠", {.continues = true}), Ids{});
}

}  // namespace
}  // namespace sluice
