// SPDX-License-Identifier: GPL-3.0-or-later
#include "chat/stop_strings.h"

#include <gtest/gtest.h>

#include <random>

namespace sluice {
namespace {

struct Outcome {
  std::string text;
  std::string match;
  bool operator==(const Outcome&) const = default;
};

// Feeds the text in pieces cut where the bits of `cuts` are set.
Outcome run(const std::vector<std::string>& stops, const std::string& text, std::uint64_t cuts) {
  StopStrings matcher(stops);
  Outcome out;
  std::string piece;
  for (std::size_t i = 0; i < text.size(); ++i) {
    piece += text[i];
    if (i + 1 < text.size() && (cuts >> (i % 64) & 1) == 0) continue;
    out.text += matcher.push(piece);
    piece.clear();
    if (matcher.matched()) break;
  }
  if (matcher.matched()) {
    out.match = matcher.match();
    EXPECT_EQ(matcher.push("more"), "");
    EXPECT_EQ(matcher.flush(), "");
  } else {
    out.text += matcher.flush();
  }
  return out;
}

TEST(StopStrings, EveryWayToCutTheTextGivesTheSame) {  // PRO-1
  const struct {
    std::vector<std::string> stops;
    std::string text;
    Outcome expected;
  } cases[] = {
      {{"STOP"}, "abc STOP def", {"abc ", "STOP"}},
      {{"STOP"}, "abc STO def", {"abc STO def", ""}},      // PRO-2
      {{"STOP"}, "abc STO", {"abc STO", ""}},              // PRO-2
      {{"STOP"}, "SSTSTOSTOP", {"SSTSTO", "STOP"}},
      {{"aab"}, "aaab!", {"a", "aab"}},
      {{"\n\n"}, "a\nb\n\nc", {"a\nb", "\n\n"}},
      {{"x"}, "x", {"", "x"}},
      {{"abcd", "bc"}, "zabcdz", {"za", "bc"}},            // complete first, though it begins later
      {{"bcd", "cd"}, "abcd", {"a", "bcd"}},               // complete together: the longest
      {{"ab", "abc"}, "abc", {"", "ab"}},
      {{"\xC3\xA9t"}, "caf\xC3\xA9 \xC3\xA9t\xC3\xA9", {"caf\xC3\xA9 ", "\xC3\xA9t"}},
      {{}, "nothing to find", {"nothing to find", ""}},
  };
  for (const auto& c : cases) {
    const std::uint64_t ways = std::uint64_t{1} << std::min<std::size_t>(c.text.size() - 1, 12);
    for (std::uint64_t cuts = 0; cuts < ways; ++cuts) {
      ASSERT_EQ(run(c.stops, c.text, cuts), c.expected) << c.text << " cut " << cuts;
    }
  }
}

TEST(StopStrings, HoldsBackNoMoreThanCouldStillGrow) {
  StopStrings matcher({"end", "\n\nUser:"});
  EXPECT_EQ(matcher.push("hello"), "hello");
  EXPECT_EQ(matcher.push("\n"), "");
  EXPECT_EQ(matcher.push("x"), "\nx");
  EXPECT_EQ(matcher.push("\n\nUs"), "");
  EXPECT_EQ(matcher.push("e"), "");
  EXPECT_EQ(matcher.push("n"), "\n\nUs");  // "en" may still become "end"
  EXPECT_EQ(matcher.push("d of it"), "");
  EXPECT_EQ(matcher.match(), "end");
}

// The rule in plain loops: walk byte by byte; the first place where a stop ends, the longest of those that end there.
Outcome plainly(const std::vector<std::string>& stops, const std::string& text) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::string best;
    for (const std::string& stop : stops) {
      if (stop.size() <= end && text.compare(end - stop.size(), stop.size(), stop) == 0 && stop.size() > best.size()) best = stop;
    }
    if (!best.empty()) return {text.substr(0, end - best.size()), best};
  }
  return {text, ""};
}

TEST(StopStrings, AgreesWithThePlainRuleOnRandomTexts) {
  std::mt19937 random(7);
  const auto word = [&](std::size_t longest) {
    std::string w;
    for (std::size_t n = 1 + random() % longest; n > 0; --n) w += static_cast<char>('a' + random() % 3);
    return w;
  };
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::string> stops;
    for (std::size_t n = random() % 4; n > 0; --n) stops.push_back(word(5));
    const std::string text = word(24);
    ASSERT_EQ(run(stops, text, random()), plainly(stops, text)) << text;
  }
}

}  // namespace
}  // namespace sluice
