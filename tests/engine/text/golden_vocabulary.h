// SPDX-License-Identifier: GPL-3.0-or-later
// Reads the vocabularies and ids that tests/oracle/make_tokenizer_golden.py wrote. Header only, for tests.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace sluice::golden {

inline std::string unescape(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    const char c = text.at(++i);
    if (c == 'x') {
      out += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      out += c == 'n' ? '\n' : c == 'r' ? '\r' : c == 't' ? '\t' : '\\';
    }
  }
  return out;
}

inline std::string data_path(const std::string& name) { return std::string(SLUICE_TEST_DATA) + "/golden/" + name; }

inline Vocabulary read_vocabulary(const std::string& name) {
  Vocabulary vocabulary;
  std::ifstream in(data_path("tokenizer_" + name + "_vocabulary.txt"), std::ios::binary);
  EXPECT_TRUE(in.good()) << "no golden vocabulary " << name;
  std::vector<std::pair<std::size_t, std::pair<std::string, TokenType>>> specials;
  std::vector<std::string> normal;
  std::string line;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string key;
    words >> key;
    if (key == "pre") {
      words >> vocabulary.pre_tokenizer;
    } else if (key == "special") {
      std::int32_t id = 0;
      std::string kind, flags, text;
      words >> id >> kind >> flags >> text;
      specials.push_back({static_cast<std::size_t>(id), {unescape(text), kind == "C" ? TokenType::kControl : TokenType::kUserDefined}});
      const auto has = [&](char f) { return flags.find(f) != std::string::npos; };
      vocabulary.added.push_back({id, has('L'), has('R'), has('S'), has('N')});
    } else if (key == "bytes") {
      for (std::string c; words >> c;) normal.push_back(c);
    } else if (key == "merge") {
      std::string a, b;
      words >> a >> b;
      normal.push_back(a + b);
      vocabulary.merges.push_back(a + " " + b);
    } else {
      std::int32_t id = 0;
      words >> id;
      (key == "bos" ? vocabulary.bos : key == "eos" ? vocabulary.eos : key == "unk" ? vocabulary.unk : vocabulary.pad) = id;
    }
  }
  vocabulary.tokens.resize(specials.size() + normal.size());
  vocabulary.types.assign(vocabulary.tokens.size(), TokenType::kNormal);
  for (const auto& [id, token] : specials) {
    vocabulary.tokens.at(id) = token.first;
    vocabulary.types.at(id) = token.second;
  }
  std::size_t next = 0;
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (vocabulary.types[id] == TokenType::kNormal) vocabulary.tokens[id] = normal.at(next++);
  }
  return vocabulary;
}

inline std::shared_ptr<const Tokenizer> make_tokenizer(const std::string& name) {
  auto made = Tokenizer::create(read_vocabulary(name));
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.status().message());
  return made.ok() ? *made : nullptr;
}

struct Case {
  std::string text;
  std::vector<std::int32_t> special;  // control tokens parsed
  std::vector<std::int32_t> plain;    // control tokens as ordinary text
  std::string decoded;                // of `special`, without special tokens
};

inline std::vector<Case> read_cases(const std::string& name) {
  std::vector<Case> cases;
  std::ifstream in(data_path("tokenizer_" + name + "_ids.txt"), std::ios::binary);
  EXPECT_TRUE(in.good()) << "no golden ids " << name;
  const auto ids = [](const std::string& line) {
    std::istringstream words(line);
    std::vector<std::int32_t> out;
    for (std::int32_t id; words >> id;) out.push_back(id);
    return out;
  };
  std::string text, special, plain, decoded;
  while (std::getline(in, text) && std::getline(in, special) && std::getline(in, plain) && std::getline(in, decoded)) {
    cases.push_back({unescape(text), ids(special), plain == "=" ? ids(special) : ids(plain), unescape(decoded)});
  }
  return cases;
}

}  // namespace sluice::golden
