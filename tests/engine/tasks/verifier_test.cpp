// SPDX-License-Identifier: GPL-3.0-or-later
#include "tasks/verifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "tasks/simulated_user.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

std::string broken_by(const Rule& rule, std::string_view text, bool finished = true, std::vector<std::string> names = {}) {
  const auto violations = check_rule_set({"", "", {rule}}, {text, finished, &names});
  return violations.empty() ? "" : violations[0].text;
}
bool holds(const Rule& rule, std::string_view text) { return broken_by(rule, text).empty(); }

TEST(Verifier, CountsWordsAsPeopleDo) {
  EXPECT_EQ(count_words(""), 0);
  EXPECT_EQ(count_words("  \n "), 0);
  EXPECT_EQ(count_words("Snow is frozen water."), 4);
  EXPECT_EQ(count_words("well-known - and \u2014 so on ..."), 4);
  EXPECT_EQ(count_words("\u00e9t\u00e9 2024"), 2);
}

TEST(Verifier, WordRange) {
  const Rule rule{RuleKind::kWords, 3, 5, {}};
  EXPECT_TRUE(holds(rule, "one two three"));
  EXPECT_TRUE(holds(rule, "one two three four five"));
  EXPECT_EQ(broken_by(rule, "one two"), "2 words, at least 3 wanted");
  EXPECT_EQ(broken_by(rule, "1 2 3 4 5 6"), "6 words, at most 5 wanted");
  EXPECT_TRUE(holds({RuleKind::kWords, 2, 0, {}}, std::string(1000, 'a') + " b c"));
}

TEST(Verifier, Characters) {
  const Rule rule{RuleKind::kCharacters, 1, 4, {}};
  EXPECT_TRUE(holds(rule, " \u00e9\u00e9\u00e9\u00e9 "));
  EXPECT_EQ(broken_by(rule, "12345"), "5 characters, at most 4 wanted");
  EXPECT_FALSE(holds(rule, "  "));
}

TEST(Verifier, FinishedAndEmpty) {
  EXPECT_EQ(broken_by({RuleKind::kFinished, 0, 0, {}}, "x", false), "the reply was cut off before its end");
  EXPECT_EQ(broken_by({RuleKind::kFinished, 0, 0, {}}, "x", true), "");
  EXPECT_FALSE(holds({RuleKind::kNotEmpty, 0, 0, {}}, " \n"));
  EXPECT_TRUE(holds({RuleKind::kNotEmpty, 0, 0, {}}, "x"));
}

TEST(Verifier, LinesAndParagraphs) {
  for (const RuleKind kind : {RuleKind::kOneLine, RuleKind::kOneParagraph}) {
    EXPECT_TRUE(holds({kind, 0, 0, {}}, "\n one line \n\n"));
    EXPECT_FALSE(holds({kind, 0, 0, {}}, "one\n\ntwo"));
    EXPECT_FALSE(holds({kind, 0, 0, {}}, "one\ntwo"));
  }
}

TEST(Verifier, MarkUpIsSeenWhereItIs) {
  const Rule rule{RuleKind::kNoMarkup, 0, 0, {}};
  for (const char* text : {"# Title", "### Title\ntext", "- item", "  * item", "+ item", "\u2022 item", "1. first", "12) twelfth",
                           "a **bold** word", "an *emphasised* word", "__bold__", "`code`", "```\ncode\n```", "> quoted",
                           "| a | b |", "text\n---", "Here:\n- one\n- two"}) {
    EXPECT_FALSE(holds(rule, text)) << text;
  }
  for (const char* text : {"Plain text.", "C# is a language.", "2 * 3 * 4 is 24", "It rose 3.5 percent.", "A well-known fact - yes.",
                           "The year 1999. It was warm.", "5 > 3", "a_b_c", "#hashtag"}) {
    EXPECT_TRUE(holds(rule, text)) << text << ": " << broken_by(rule, text);
  }
  EXPECT_EQ(broken_by(rule, "1. first"), "the reply has a numbered list");
}

TEST(Verifier, ForbiddenWordsAndCharacters) {
  const Rule words{RuleKind::kNoWords, 0, 0, {"git", "apolog*"}};
  EXPECT_EQ(broken_by(words, "Use Git now"), "the reply has the word \"git\"");
  EXPECT_TRUE(holds(words, "a digital widget, github"));
  EXPECT_FALSE(holds(words, "My Apologies"));
  EXPECT_EQ(broken_by({RuleKind::kNoCharacters, 0, 0, {"[", "\u201c"}}, "a \u201cb"), "the reply has the character \u201c");
  EXPECT_TRUE(holds({RuleKind::kNoCharacters, 0, 0, {"["}}, "a b"));
}

TEST(Verifier, NamesTheTopic) {
  const Rule rule{RuleKind::kNamesTopic, 0, 0, {}};
  EXPECT_EQ(broken_by(rule, "Rainbows are arcs.", true, {"rainbow"}), "");
  EXPECT_EQ(broken_by(rule, "A coral reef.", true, {"polyp", "Coral Reef"}), "");
  EXPECT_NE(broken_by(rule, "They are arcs.", true, {"rainbow"}), "");
  EXPECT_NE(broken_by(rule, "an abrainbow", true, {"rainbow"}), "");
  EXPECT_NE(broken_by(rule, "anything"), "") << "no names: nothing can name it";
}

TEST(Verifier, NoReplyMakesACheckSlow) {
  std::string nasty;
  for (int i = 0; i < 200000; ++i) nasty += "*a ";
  RuleSet all{"", "", {}};
  for (const RuleKind kind : {RuleKind::kNoMarkup, RuleKind::kOneParagraph, RuleKind::kNotEmpty}) all.rules.push_back({kind, 0, 0, {}});
  all.rules.push_back({RuleKind::kNoWords, 0, 0, {"zzz*"}});
  all.rules.push_back({RuleKind::kWords, 0, 10, {}});
  const std::vector<std::string> names = {"aaaaaaaa"};
  EXPECT_FALSE(check_rule_set(all, {nasty, true, &names}).empty());  // linear: a quadratic check would outlive the time limit
}

TEST(SimulatedUser, NamesEveryViolation) {
  const SimulatedUser user({"brief-reader", "", {{RuleKind::kFinished, 0, 0, {}}, {RuleKind::kWords, 2, 4, {}}}});
  EXPECT_TRUE(user.judge({"two words", true, nullptr}).accepted);
  const UserVerdict v = user.judge({"one two three four five", false, nullptr});
  EXPECT_FALSE(v.accepted);
  EXPECT_EQ(v.reason, "finished,words");
  EXPECT_THAT(v.detail, HasSubstr("5 words, at most 4 wanted"));
}

TEST(Rules, NamesGoBothWays) {
  EXPECT_EQ(parse_rule("no-markup").value(), RuleKind::kNoMarkup);
  EXPECT_THAT(parse_rule("no-fun").status().message(), HasSubstr("the rules are not-empty, finished"));
}

}  // namespace
}  // namespace sluice
