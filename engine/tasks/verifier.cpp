// SPDX-License-Identifier: GPL-3.0-or-later
#include "tasks/verifier.h"

#include <algorithm>
#include <cctype>

namespace sluice {
namespace {

constexpr RuleKind kAllRules[] = {RuleKind::kNotEmpty, RuleKind::kFinished,     RuleKind::kWords,
                                  RuleKind::kCharacters, RuleKind::kOneLine,    RuleKind::kOneParagraph,
                                  RuleKind::kNoMarkup, RuleKind::kNoCharacters, RuleKind::kNoWords,
                                  RuleKind::kNamesTopic};

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f'; }
bool is_word_byte(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || static_cast<unsigned char>(c) >= 0x80; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool equal_any_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return lower(x) == lower(y); });
}

// Where `word` begins at the start of a word of the text (and ends at the end of one, when `whole`).
bool has_word(std::string_view text, std::string_view word, bool whole) {
  if (word.empty()) return false;
  for (std::size_t at = 0; at + word.size() <= text.size(); ++at) {
    if (at > 0 && is_word_byte(text[at - 1])) continue;
    if (!equal_any_case(text.substr(at, word.size()), word)) continue;
    const std::size_t end = at + word.size();
    if (!whole || end == text.size() || !is_word_byte(text[end])) return true;
  }
  return false;
}

int count_code_points(std::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

// What kind of mark-up a line begins with; "" for none. `line` has no line break.
std::string line_markup(std::string_view line) {
  std::size_t indent = 0;
  while (indent < line.size() && (line[indent] == ' ' || line[indent] == '\t')) ++indent;
  line.remove_prefix(indent);
  if (line.empty()) return "";
  const auto followed_by_space = [&](std::size_t at) { return at < line.size() && is_space(line[at]); };
  if (line.front() == '#') {
    const std::size_t level = std::min(line.find_first_not_of('#'), line.size());
    if (level <= 6 && (level == line.size() || followed_by_space(level))) return "a heading";
  }
  if ((line.front() == '-' || line.front() == '*' || line.front() == '+') && followed_by_space(1)) return "a list";
  if (line.substr(0, 3) == "\u2022") return "a list";
  std::size_t digits = 0;
  while (digits < line.size() && is_digit(line[digits])) ++digits;
  if (digits > 0 && digits < line.size() && (line[digits] == '.' || line[digits] == ')') && followed_by_space(digits + 1)) {
    return "a numbered list";
  }
  if (line.front() == '>') return "a quotation mark at the start of a line";
  if (line.front() == '|') return "a table";
  for (const char* rule : {"---", "___", "***"}) {
    if (line.substr(0, 3) == rule) return "a ruled line";
  }
  return "";
}

// *word* or _word_ set off by marks on both sides; a lone asterisk (2 * 3) is none.
bool has_emphasis(std::string_view text) {
  bool open = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') open = false;
    if (text[i] != '*') continue;
    const bool text_before = i > 0 && !is_space(text[i - 1]), text_after = i + 1 < text.size() && !is_space(text[i + 1]);
    if (open && text_before) return true;
    open = text_after;
  }
  return false;
}

std::string find_markup(std::string_view text) {
  if (text.find("**") != std::string_view::npos || text.find("__") != std::string_view::npos) return "bold marks";
  if (text.find('`') != std::string_view::npos) return "code marks";
  if (has_emphasis(text)) return "emphasis marks";
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (std::string kind = line_markup(text.substr(begin, end - begin)); !kind.empty()) return kind;
    begin = end + 1;
  }
  return "";
}

std::string range_text(int found, int min, int max, const char* unit) {
  const std::string start = std::to_string(found) + " " + unit;
  if (found < min) return start + ", at least " + std::to_string(min) + " wanted";
  return start + ", at most " + std::to_string(max) + " wanted";
}

bool outside(int found, const Rule& rule) { return found < rule.min || (rule.max > 0 && found > rule.max); }

std::string forbidden_word(std::string_view text, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    const bool prefix = !word.empty() && word.back() == '*';
    if (has_word(text, prefix ? std::string_view(word).substr(0, word.size() - 1) : std::string_view(word), !prefix)) return word;
  }
  return "";
}

std::string forbidden_character(std::string_view text, const std::vector<std::string>& characters) {
  for (const std::string& character : characters) {
    if (!character.empty() && text.find(character) != std::string_view::npos) return character;
  }
  return "";
}

bool names_topic(const Reply& reply) {
  return reply.names != nullptr && std::any_of(reply.names->begin(), reply.names->end(), [&](const std::string& name) {
           return has_word(reply.text, name, false);
         });
}

// What is wrong, in words; "" when the rule holds.
std::string broken(const Rule& rule, const Reply& reply) {
  const std::string_view text = trimmed(reply.text);
  switch (rule.kind) {
    case RuleKind::kNotEmpty: return text.empty() ? "the reply is empty" : "";
    case RuleKind::kFinished: return reply.finished ? "" : "the reply was cut off before its end";
    case RuleKind::kWords: {
      const int words = count_words(text);
      return outside(words, rule) ? range_text(words, rule.min, rule.max, "words") : "";
    }
    case RuleKind::kCharacters: {
      const int characters = count_code_points(text);
      return outside(characters, rule) ? range_text(characters, rule.min, rule.max, "characters") : "";
    }
    case RuleKind::kOneLine: return text.find('\n') == std::string_view::npos ? "" : "more than one line";
    case RuleKind::kOneParagraph: return text.find('\n') == std::string_view::npos ? "" : "more than one paragraph";
    case RuleKind::kNoMarkup: {
      const std::string kind = find_markup(text);
      return kind.empty() ? "" : "the reply has " + kind;
    }
    case RuleKind::kNoCharacters: {
      const std::string found = forbidden_character(text, rule.values);
      return found.empty() ? "" : "the reply has the character " + found;
    }
    case RuleKind::kNoWords: {
      const std::string found = forbidden_word(text, rule.values);
      return found.empty() ? "" : "the reply has the word \"" + found + "\"";
    }
    case RuleKind::kNamesTopic: return names_topic(reply) ? "" : "the reply does not name the topic";
  }
  return "";
}

}  // namespace

const char* rule_name(RuleKind kind) {
  switch (kind) {
    case RuleKind::kNotEmpty: return "not-empty";
    case RuleKind::kFinished: return "finished";
    case RuleKind::kWords: return "words";
    case RuleKind::kCharacters: return "characters";
    case RuleKind::kOneLine: return "one-line";
    case RuleKind::kOneParagraph: return "one-paragraph";
    case RuleKind::kNoMarkup: return "no-markup";
    case RuleKind::kNoCharacters: return "no-characters";
    case RuleKind::kNoWords: return "no-words";
    case RuleKind::kNamesTopic: return "names-topic";
  }
  return "unknown";
}

Result<RuleKind> parse_rule(std::string_view name) {
  std::string known;
  for (const RuleKind kind : kAllRules) {
    if (name == rule_name(kind)) return kind;
    known += (known.empty() ? "" : ", ") + std::string(rule_name(kind));
  }
  return invalid_argument("rule \"" + std::string(name) + "\" is unknown; the rules are " + known);
}

std::vector<Violation> check_rule_set(const RuleSet& set, const Reply& reply) {
  std::vector<Violation> out;
  for (const Rule& rule : set.rules) {
    if (std::string what = broken(rule, reply); !what.empty()) out.push_back({rule_name(rule.kind), std::move(what)});
  }
  return out;
}

double score_rule_set(const RuleSet& set, const Reply& reply) { return check_rule_set(set, reply).empty() ? 1 : 0; }

int count_words(std::string_view text) {
  int words = 0;
  bool has_letter = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_space(text[i])) {
      words += has_letter;
      has_letter = false;
    } else if (text.substr(i, 2) == "\xe2\x80") {
      i += 2;  // dashes, quotes, ellipsis: U+2000 to U+203F are no letters
    } else {
      has_letter |= is_word_byte(text[i]);
    }
  }
  return words + has_letter;
}

}  // namespace sluice
