// SPDX-License-Identifier: GPL-3.0-or-later
#include "text/fim.h"

#include <gtest/gtest.h>

#include <numeric>

#include "golden_vocabulary.h"
#include "text/byte_alphabet.h"

namespace sluice {
namespace {

using Ids = std::vector<std::int32_t>;

// 256 byte tokens and these control tokens behind them.
Vocabulary bytes_and(const std::vector<std::string>& controls) {
  Vocabulary vocabulary;
  vocabulary.pre_tokenizer = "gpt-2";
  for (int b = 0; b < 256; ++b) vocabulary.tokens.push_back(bytes_to_alphabet(std::string(1, static_cast<char>(b))));
  vocabulary.types.assign(256, TokenType::kNormal);
  for (const std::string& text : controls) {
    vocabulary.tokens.push_back(text);
    vocabulary.types.push_back(TokenType::kControl);
  }
  return vocabulary;
}

std::shared_ptr<const Tokenizer> make(Vocabulary vocabulary) {
  auto made = Tokenizer::create(std::move(vocabulary));
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.status().message());
  return made.ok() ? *made : nullptr;
}

const std::vector<std::string> kQwen = {"<|endoftext|>",  "<|im_start|>",   "<|im_end|>", "<|fim_prefix|>", "<|fim_middle|>",
                                        "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"};

TEST(Fim, QwenMarkersByTheirTexts) {
  const auto tokenizer = make(bytes_and(kQwen));
  const auto format = find_fim_format(*tokenizer);
  ASSERT_TRUE(format.ok());
  EXPECT_EQ(format->open, Ids{259});
  EXPECT_EQ(format->between, Ids{261});
  EXPECT_EQ(format->close, Ids{260});
  Ids all(9);
  std::iota(all.begin(), all.end(), 256);
  EXPECT_EQ(format->stop_ids, all);
  const auto prompt = make_fim_prompt(*tokenizer, *format, "ab", "c", 100);
  EXPECT_EQ(prompt->ids, (Ids{259, 'a', 'b', 261, 'c', 260}));
}

TEST(Fim, StarCoderCodeLlamaAndDeepSeekMarkers) {
  Vocabulary star = bytes_and({"<|endoftext|>", "<fim_prefix>", "<fim_middle>", "<fim_suffix>", "<file_sep>"});
  const auto star_format = find_fim_format(*make(star));
  ASSERT_TRUE(star_format.ok());
  EXPECT_EQ(star_format->open, Ids{257});
  EXPECT_EQ(star_format->stop_ids, (Ids{256, 257, 258, 259, 260}));

  for (const std::vector<std::string>& texts :
       {std::vector<std::string>{"<s>", "</s>", "▁<PRE>", "▁<SUF>", "▁<MID>", "▁<EOT>"},
        std::vector<std::string>{"<s>", "</s>", "<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"}}) {
    Vocabulary vocabulary = bytes_and(texts);
    vocabulary.bos = 256;
    vocabulary.eos = 257;
    const auto format = find_fim_format(*make(vocabulary));
    ASSERT_TRUE(format.ok());
    EXPECT_EQ(format->open, (Ids{256, 258}));
    EXPECT_EQ(format->between, Ids{259});
    EXPECT_EQ(format->close, Ids{260});
    EXPECT_EQ(format->stop_ids.front(), 257);
    EXPECT_EQ(format->stop_ids.back(), texts.size() == 6 ? 261 : 260);
  }
}

TEST(Fim, IdsOfTheFileComeFirst) {
  Vocabulary vocabulary = bytes_and({"<s>", "<a>", "<b>", "<c>", "<pad>"});
  for (const std::string& text : kQwen) {
    vocabulary.tokens.push_back(text);
    vocabulary.types.push_back(TokenType::kControl);
  }
  vocabulary.fim = {.prefix = 257, .suffix = 258, .middle = 259, .pad = 260, .repo = {}, .file = {}};
  vocabulary.bos = 256;
  vocabulary.add_bos = true;
  const auto format = find_fim_format(*make(vocabulary));
  ASSERT_TRUE(format.ok());
  EXPECT_EQ(format->open, (Ids{256, 257}));
  EXPECT_EQ(format->stop_ids, (Ids{257, 258, 259, 260}));
  vocabulary.fim.suffix = 9999;
  const auto outside = Tokenizer::create(vocabulary);
  ASSERT_FALSE(outside.ok());
  EXPECT_NE(outside.status().message().find("9999"), std::string::npos);
}

TEST(Fim, PRO10_AModelWithoutMarkersHasNone) {
  const auto none = find_fim_format(*golden::make_tokenizer("smollm2"));
  ASSERT_EQ(none.code(), Code::kInvalidArgument);
  EXPECT_NE(none.status().message().find("fim.markers"), std::string::npos);
}

TEST(Fim, MarkersOfARecipeAreTokenisedAsText) {
  const auto tokenizer = make(bytes_and({"<|fim|>"}));
  const auto format = fim_format_of(*tokenizer, {"<P>", "<|fim|>", "M"});
  ASSERT_TRUE(format.ok());
  EXPECT_EQ(format->open, (Ids{'<', 'P', '>'}));
  EXPECT_EQ(format->between, Ids{256});
  EXPECT_EQ(format->close, Ids{'M'});
  EXPECT_EQ(format->stop_ids, Ids{256});
  EXPECT_EQ(fim_format_of(*tokenizer, {"a", "", "c"}).code(), Code::kInvalidArgument);
}

TEST(Fim, UserCodeOpensNoMarker) {
  const auto tokenizer = make(bytes_and(kQwen));
  const auto format = *find_fim_format(*tokenizer);
  const auto prompt = make_fim_prompt(*tokenizer, format, "<|fim_suffix|>", "<|im_end|>", 100);
  for (const std::int32_t id : {257, 258, 261}) {
    EXPECT_EQ(std::count(prompt->ids.begin(), prompt->ids.end(), id), id == 261 ? 1 : 0);
  }
}

TEST(Fim, CutsThePrefixLeftAndTheSuffixRight) {
  const auto tokenizer = make(bytes_and(kQwen));
  const auto format = *find_fim_format(*tokenizer);
  const auto cut = [&](std::size_t prefix, std::size_t suffix, std::size_t most) {
    std::string p(prefix, 'p');
    std::string s(suffix, 's');
    if (!p.empty()) p[0] = '(';
    if (!s.empty()) s.back() = ')';
    const auto prompt = make_fim_prompt(*tokenizer, format, p, s, most);
    EXPECT_TRUE(prompt.ok());
    EXPECT_LE(prompt->ids.size(), most);
    const bool begins = std::count(prompt->ids.begin(), prompt->ids.end(), '(') == 1;
    const bool ends = std::count(prompt->ids.begin(), prompt->ids.end(), ')') == 1;
    EXPECT_EQ(begins, prompt->prefix_cut == 0 && prefix > 0);
    EXPECT_EQ(ends, prompt->suffix_cut == 0 && suffix > 0);
    return std::pair(prefix - prompt->prefix_cut, suffix - prompt->suffix_cut);
  };
  using Kept = std::pair<std::size_t, std::size_t>;
  EXPECT_EQ(cut(60, 40, 103), Kept(60, 40));
  EXPECT_EQ(cut(200, 200, 103), Kept(75, 25));
  EXPECT_EQ(cut(200, 10, 103), Kept(90, 10));
  EXPECT_EQ(cut(50, 200, 103), Kept(50, 50));
  EXPECT_EQ(cut(200, 0, 103), Kept(100, 0));
  EXPECT_EQ(cut(5, 5, 3), Kept(0, 0));
  EXPECT_EQ(make_fim_prompt(*tokenizer, format, "a", "b", 2).code(), Code::kInvalidArgument);
}

TEST(Fim, KnowsAPromptThatAnEditorFormatted) {
  const auto tokenizer = make(bytes_and(kQwen));
  const auto format = *find_fim_format(*tokenizer);
  const auto ids = [&](std::string_view text) { return *tokenizer->encode(text, {.parse_special = true}); };
  EXPECT_TRUE(is_fim_formatted(format, ids("<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>")));
  EXPECT_FALSE(is_fim_formatted(format, ids("<|fim_suffix|>b<|fim_prefix|>a<|fim_middle|>")));
  EXPECT_FALSE(is_fim_formatted(format, ids("plain")));
  EXPECT_FALSE(is_fim_formatted(format, {}));
}

}  // namespace
}  // namespace sluice
