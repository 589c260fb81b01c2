// SPDX-License-Identifier: GPL-3.0-or-later
// Pure checks of a reply by named rules, as a recipe lists them. Every check is one pass over the text, no regular
// expressions, so no reply can make one slow. A broken rule has a name and a sentence that states the number found.
// Pure functions and values, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sluice {

enum class RuleKind {
  kNotEmpty,       // "not-empty": something but white space
  kFinished,       // "finished": ended by itself, not cut by the budget
  kWords,          // "words": min..max words
  kCharacters,     // "characters": min..max code points, white space at both ends not counted
  kOneLine,        // "one-line"
  kOneParagraph,   // "one-paragraph": no line break between two texts
  kNoMarkup,       // "no-markup": no list, heading, bold, code, table, quote or rule
  kNoCharacters,   // "no-characters": none of the listed ones
  kNoWords,        // "no-words": none of the listed ones, any case, as whole words; a trailing * means "begins with"
  kNamesTopic      // "names-topic": one of the prompt's names, any case, at the start of a word
};
const char* rule_name(RuleKind kind);
Result<RuleKind> parse_rule(std::string_view name);

struct Rule {
  RuleKind kind = RuleKind::kNotEmpty;
  int min = 0, max = 0;             // words, characters; max 0 = no upper limit
  std::vector<std::string> values;  // no-words; no-characters: each one character

  bool operator==(const Rule&) const = default;
};

// Accepted iff every rule holds.
struct RuleSet {
  std::string name;         // persona or metric: "brief-reader", "names the topic"
  std::string description;  // one sentence for people
  std::vector<Rule> rules;

  bool operator==(const RuleSet&) const = default;
};

struct Reply {
  std::string_view text;
  bool finished = false;                   // finish reason "stop"
  const std::vector<std::string>* names = nullptr;  // of the prompt's topic
};

struct Violation {
  std::string rule;   // rule_name
  std::string text;   // "61 words, at most 45 wanted"
};

std::vector<Violation> check_rule_set(const RuleSet& set, const Reply& reply);
// 1 when no rule is broken, else 0.
double score_rule_set(const RuleSet& set, const Reply& reply);

// Words: maximal runs of non-white-space that hold a letter or digit (any code point above ASCII but U+2000 to U+203F counts as one).
int count_words(std::string_view text);

}  // namespace sluice
