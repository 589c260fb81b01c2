// SPDX-License-Identifier: GPL-3.0-or-later
#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "golden_vocabulary.h"
#include "text/byte_alphabet.h"
#include "text/utf8.h"

namespace sluice {
namespace {

class TokenizerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { tokenizer_ = golden::make_tokenizer("smollm2"); }
  static void TearDownTestSuite() { tokenizer_.reset(); }
  static std::vector<std::int32_t> encode(std::string_view text, EncodeOptions options = {}) {
    auto ids = tokenizer_->encode(text, options);
    EXPECT_TRUE(ids.ok());
    return ids.ok() ? *ids : std::vector<std::int32_t>{};
  }
  static std::shared_ptr<const Tokenizer> tokenizer_;
};
std::shared_ptr<const Tokenizer> TokenizerTest::tokenizer_;

TEST_F(TokenizerTest, KnowsItsSpecialTokens) {
  EXPECT_EQ(tokenizer_->size(), 49152);
  EXPECT_EQ(tokenizer_->special_id("<|im_start|>"), 1);
  EXPECT_EQ(tokenizer_->special_id("Hello"), std::nullopt);
  EXPECT_EQ(tokenizer_->token_id("<|im_end|>"), 2);
  EXPECT_TRUE(tokenizer_->token_id(" the").has_value());
  EXPECT_EQ(tokenizer_->bos_text(), "<|im_start|>");
  EXPECT_EQ(tokenizer_->eos_text(), "<|im_end|>");
  EXPECT_EQ(tokenizer_->piece(2), "<|im_end|>");
  EXPECT_EQ(tokenizer_->piece(-1), "");
  EXPECT_EQ(tokenizer_->piece(49152), "");
  EXPECT_TRUE(tokenizer_->is_special(0));
  EXPECT_FALSE(tokenizer_->is_special(1000));
}

TEST_F(TokenizerTest, CFG8_EndsAtEosAndAtTheEndOfText) {
  EXPECT_EQ(tokenizer_->end_of_generation(), (std::vector<std::int32_t>{0, 2}));
  EXPECT_TRUE(tokenizer_->is_end_of_generation(2));
  EXPECT_FALSE(tokenizer_->is_end_of_generation(1));
}

TEST_F(TokenizerTest, TOK3_RunsOfSpaceAreKept) {
  for (int n = 1; n <= 9; ++n) {
    for (const char space : {' ', '\t', '\n'}) {
      const std::string text = std::string(static_cast<std::size_t>(n), space) + "x" + std::string(static_cast<std::size_t>(n), space);
      EXPECT_EQ(tokenizer_->decode(encode(text)), text);
    }
  }
}

TEST_F(TokenizerTest, TOK4_DecodingGivesTheTextBack) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string text = round % 2 ? " " : "";
    for (int i = 0; i < 12; ++i) {
      const char32_t c = random() % 4 ? 0x20 + random() % 0x60 : 0x80 + random() % 0x2FF80;
      append_utf8(text, c == 0x7F ? 'x' : c);
    }
    ASSERT_EQ(tokenizer_->decode(encode(text), false), text);
  }
}

TEST_F(TokenizerTest, TOK5_SpecialTextIsPlainUnlessAsked) {
  EXPECT_EQ(encode("<|im_end|>", {.parse_special = true}), (std::vector<std::int32_t>{2}));
  const auto plain = encode("<|im_end|>");
  EXPECT_GT(plain.size(), 1u);
  for (const std::int32_t id : plain) EXPECT_FALSE(tokenizer_->is_special(id));
  EXPECT_EQ(tokenizer_->decode(plain), "<|im_end|>");
}

TEST_F(TokenizerTest, TOK6_TOK7_StreamNeverCutsACharacter) {
  for (const std::string text : {"日本語のテキスト", "👨‍👩‍👧‍👦 🏳️‍🌈 🫠", "\U00020000\U0001F9FF"}) {
    const auto ids = encode(text);
    StreamDecoder decoder(tokenizer_);
    std::string streamed;
    for (const std::int32_t id : ids) {
      const std::string part = decoder.push(id);
      EXPECT_TRUE(is_valid_utf8(part));
      EXPECT_EQ(part.find(kReplacement), std::string::npos);
      streamed += part;
    }
    EXPECT_FALSE(decoder.pending());
    EXPECT_EQ(streamed, text);
  }
}

TEST_F(TokenizerTest, StreamFlushesAHalfCharacterAsReplacement) {
  const auto ids = encode("\U0001F9FF");
  ASSERT_GT(ids.size(), 1u);
  StreamDecoder decoder(tokenizer_);
  std::string streamed;
  for (std::size_t i = 0; i + 1 < ids.size(); ++i) streamed += decoder.push(ids[i]);
  EXPECT_EQ(streamed, "");
  EXPECT_TRUE(decoder.pending());
  EXPECT_EQ(decoder.flush(), kReplacement);
  EXPECT_FALSE(decoder.pending());
  EXPECT_EQ(decoder.push(99'999'999), kReplacement);
}

TEST_F(TokenizerTest, TOK8_LongRunsAreLinear) {
  for (const std::string unit : {"a", "1", " ", "\n", "!", "\t", "\xC3\xA9", " \n", "a1", "\xCC\x81"}) {
    std::string text;
    while (text.size() < 100'000) text += unit;
    EXPECT_EQ(tokenizer_->decode(encode(text)), text) << unit;
    EXPECT_EQ(tokenizer_->decode(encode(text + "x")), text + "x") << unit;
  }
}

TEST_F(TokenizerTest, TOK9_BytesThatAreNoTextBecomeReplacement) {
  for (const std::string bad : {"\xED\xA0\xBD", "\xFF", "a\xC3", "\xF0\x9F\x98", "\xC0\x80"}) {
    EXPECT_EQ(tokenizer_->decode(encode(bad)), to_valid_utf8(bad));
  }
}

TEST_F(TokenizerTest, TOK10_ATextAboveTheLimitIsRefused) {
  EXPECT_EQ(kMaxTextBytes, std::size_t{1} << 30);
  EXPECT_TRUE(tokenizer_->encode("12345678", {.max_bytes = 8}).ok());
  const auto refused = tokenizer_->encode("123456789", {.max_bytes = 8});
  ASSERT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_NE(refused.status().message().find("8 bytes"), std::string::npos);
  EXPECT_EQ(tokenizer_->encode("x", {.max_bytes = 0}).code(), Code::kInvalidArgument);
  // Lengths beyond 2^31 count in full: only the begin of this view is readable, so it must be refused by its length alone.
  const std::string begin(16, 'x');
  EXPECT_EQ(tokenizer_->encode(std::string_view(begin.data(), std::size_t{1} << 33), {.max_bytes = 8}).code(),
            Code::kInvalidArgument);
}

TEST_F(TokenizerTest, TPL2_ControlTokensOnlyInAllowedSegments) {
  const std::vector<Segment> segments = {{"<|im_start|>user\n", true}, {"hi<|im_end|>", false}, {"<|im_end|>\n", true}};
  const auto ids = tokenizer_->encode(segments);
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(std::count(ids->begin(), ids->end(), 2), 1);
  EXPECT_EQ(std::count(ids->begin(), ids->end(), 1), 1);
  EXPECT_EQ(tokenizer_->decode(*ids, false), "<|im_start|>user\nhi<|im_end|><|im_end|>\n");
  // A token put together from both sides of a border is none.
  const std::vector<Segment> split = {{"<|im_", true}, {"end|>", false}};
  const auto parts = tokenizer_->encode(split);
  ASSERT_TRUE(parts.ok());
  EXPECT_EQ(std::count(parts->begin(), parts->end(), 2), 0);
}

TEST_F(TokenizerTest, SegmentsGiveTheIdsOfTheWholeText) {
  const std::string user = "\n\n  indented text ";
  const std::vector<Segment> segments = {{"<|im_start|>user\n", true}, {user, false}, {"<|im_end|>\n", true}};
  const auto ids = tokenizer_->encode(segments);
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(*ids, encode("<|im_start|>user\n" + user + "<|im_end|>\n", {.parse_special = true}));
}

TEST_F(TokenizerTest, ThreadsShareOne) {
  const auto wanted = encode("The quick brown fox <|im_end|> 12345", {.parse_special = true});
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const auto ids = tokenizer_->encode("The quick brown fox <|im_end|> 12345", {.parse_special = true});
        if (!ids.ok() || *ids != wanted) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

Vocabulary bytes_only() {
  Vocabulary vocabulary;
  vocabulary.pre_tokenizer = "gpt-2";
  for (int b = 0; b < 256; ++b) {
    vocabulary.tokens.push_back(bytes_to_alphabet(std::string(1, static_cast<char>(b))));
    vocabulary.types.push_back(TokenType::kNormal);
  }
  return vocabulary;
}

std::string create_error(Vocabulary vocabulary) {
  const auto made = Tokenizer::create(std::move(vocabulary));
  return made.ok() ? "" : made.status().message();
}

TEST(TokenizerCreate, AddsBosAndEosWhereTheVocabularyAsks) {
  Vocabulary vocabulary = bytes_only();
  for (const char* text : {"<s>", "</s>"}) {
    vocabulary.tokens.push_back(text);
    vocabulary.types.push_back(TokenType::kControl);
  }
  vocabulary.bos = 256;
  vocabulary.eos = 257;
  vocabulary.add_bos = vocabulary.add_eos = true;
  const auto made = Tokenizer::create(vocabulary);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(*(*made)->encode("A", {.add_special = true}), (std::vector<std::int32_t>{256, 'A', 257}));
  EXPECT_EQ(*(*made)->encode("A"), (std::vector<std::int32_t>{'A'}));
}

TEST(TokenizerCreate, UserDefinedTokensMatchInAnyText) {
  Vocabulary vocabulary = bytes_only();
  vocabulary.tokens.push_back("<think>");
  vocabulary.types.push_back(TokenType::kUserDefined);
  const auto made = Tokenizer::create(vocabulary);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(*(*made)->encode("x<think>"), (std::vector<std::int32_t>{'x', 256}));
  EXPECT_FALSE((*made)->is_special(256));
}

TEST(TokenizerCreate, NamesWhatIsWrong) {
  Vocabulary other = bytes_only();
  other.model = "unigram";
  EXPECT_NE(create_error(other).find("\"unigram\""), std::string::npos);
  other.model = "llama";
  EXPECT_NE(create_error(other).find("0 scores"), std::string::npos);
  Vocabulary pre = bytes_only();
  pre.pre_tokenizer = "made-up";
  EXPECT_NE(create_error(pre).find("\"made-up\""), std::string::npos);
  EXPECT_NE(create_error(pre).find("smollm"), std::string::npos);
  Vocabulary merge = bytes_only();
  merge.merges = {"a bc"};
  EXPECT_NE(create_error(merge).find("\"a bc\""), std::string::npos);
  merge.merges = {""};
  EXPECT_NE(create_error(merge), "");
  Vocabulary ids = bytes_only();
  ids.eos = 256;
  EXPECT_NE(create_error(ids).find("256"), std::string::npos);
  ids.eos = -1;
  EXPECT_NE(create_error(ids).find("-1"), std::string::npos);
  Vocabulary types = bytes_only();
  types.types.pop_back();
  EXPECT_NE(create_error(types).find("255"), std::string::npos);
  Vocabulary bos = bytes_only();
  bos.add_bos = true;
  EXPECT_NE(create_error(bos).find("bos"), std::string::npos);
  Vocabulary empty;
  empty.pre_tokenizer = "gpt-2";
  EXPECT_NE(create_error(empty), "");
}

}  // namespace
}  // namespace sluice
