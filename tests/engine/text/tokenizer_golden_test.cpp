// SPDX-License-Identifier: GPL-3.0-or-later
// Ids equal to those of Hugging Face's tokenizers on thousands of odd strings, for three split rules.
#include <gtest/gtest.h>

#include "golden_vocabulary.h"

namespace sluice {
namespace {

struct Golden {
  const char* name;
  std::size_t least_cases;
};

class TokenizerGolden : public ::testing::TestWithParam<Golden> {
 protected:
  const std::shared_ptr<const Tokenizer> tokenizer_ = golden::make_tokenizer(GetParam().name);
  const std::vector<golden::Case> cases_ = golden::read_cases(GetParam().name);
};

TEST_P(TokenizerGolden, TOK1_TOK3_IdsEqualTheOracle) {
  ASSERT_NE(tokenizer_, nullptr);
  ASSERT_GE(cases_.size(), GetParam().least_cases);
  int wrong = 0;
  for (const golden::Case& c : cases_) {
    for (const bool special : {true, false}) {
      const auto ids = tokenizer_->encode(c.text, {.parse_special = special});
      ASSERT_TRUE(ids.ok());
      const auto& wanted = special ? c.special : c.plain;
      if (*ids == wanted) continue;
      ADD_FAILURE() << "parse_special " << special << " text " << ::testing::PrintToString(c.text) << "\n got "
                    << ::testing::PrintToString(*ids) << "\n want " << ::testing::PrintToString(wanted);
      if (++wrong > 20) FAIL() << "more than 20 differ";
    }
  }
}

TEST_P(TokenizerGolden, DecodesAsTheOracle) {
  for (const golden::Case& c : cases_) ASSERT_EQ(tokenizer_->decode(c.special), c.decoded) << c.text;
}

// What a stream shows, joined, is what decoding at once shows, and no piece of it is cut.
TEST_P(TokenizerGolden, TOK6_TOK7_StreamEqualsWhole) {
  for (const golden::Case& c : cases_) {
    StreamDecoder decoder(tokenizer_);
    std::string streamed;
    for (const std::int32_t id : c.special) {
      streamed += decoder.push(id);
    }
    streamed += decoder.flush();
    ASSERT_EQ(streamed, tokenizer_->decode(c.special)) << c.text;
  }
}

INSTANTIATE_TEST_SUITE_P(All, TokenizerGolden,
                         ::testing::Values(Golden{"smollm2", 2000}, Golden{"llama3", 600}, Golden{"qwen2", 600}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace sluice
