// SPDX-License-Identifier: GPL-3.0-or-later
// SentencePiece's BPE as Llama 2, Mistral and Gemma use it: characters merged over the whole text, best score first, then
// leftmost; characters that are no token become one token a byte. Spaces are written U+2581 in the file, and stand as
// spaces in here.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>

#include "text/merges.h"
#include "text/subword.h"
#include "text/utf8.h"

namespace sluice {
namespace {

constexpr std::size_t kMaxPieceBytes = 1024;  // finding merges takes the square of it
constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

std::string with_spaces(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    if (text.substr(at, kSpaceMark.size()) == kSpaceMark) {
      out += ' ';
      at += kSpaceMark.size();
    } else {
      out += text[at++];
    }
  }
  return out;
}

// Where the code points of valid UTF-8 begin, but the first.
template <class Visit>
void each_inner_boundary(std::string_view text, Visit visit) {
  for (std::size_t at = 1; at < text.size(); ++at) {
    if ((static_cast<unsigned char>(text[at]) & 0xC0) != 0x80) visit(at);
  }
}

class SentencePiece final : public SubwordModel {
 public:
  Status read(const Vocabulary& vocabulary) {
    prefix_ = vocabulary.space_prefix.value_or(vocabulary.add_space_prefix.value_or(true) ? SpacePrefix::kEach
                                                                                         : SpacePrefix::kNone);
    doubles_space_ = vocabulary.doubles_space;
    unknown_ = vocabulary.unk;
    SLUICE_RETURN_IF_ERROR(read_tokens(vocabulary));
    if (vocabulary.merges.empty()) return read_scores(vocabulary);
    const auto decode = [](std::string_view written, std::string& bytes) {
      bytes = with_spaces(written);
      return true;
    };
    return read_merges(vocabulary, decode, merges_);
  }

  std::string normalize(std::string_view text, TextPlace place) const override {
    std::string out = with_spaces(text);
    if (out.empty() || place == TextPlace::kContinues || prefix_ == SpacePrefix::kNone) return out;
    if (place == TextPlace::kBehindAdded && prefix_ == SpacePrefix::kFirst) return out;
    if (out[0] == ' ' && !doubles_space_) return out;
    return " " + out;
  }

  Status encode(std::string_view text, std::vector<std::int32_t>& out) const override {
    std::vector<std::int32_t> symbols;
    symbols.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = next_code_point(text.substr(at)).length;
      append_character(text.substr(at, length), symbols);
      at += length;
    }
    merges_.apply(symbols);
    out.insert(out.end(), symbols.begin(), symbols.end());
    return {};
  }

  bool puts_space() const override { return prefix_ != SpacePrefix::kNone; }

 private:
  Status read_tokens(const Vocabulary& vocabulary) {
    byte_ids_.fill(-1);
    pieces_.resize(vocabulary.tokens.size());
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      const std::string& text = vocabulary.tokens[i];
      const TokenType type = token_type(vocabulary, i);
      const auto id = static_cast<std::int32_t>(i);
      const int byte = type == TokenType::kByte || vocabulary.types.empty() ? byte_of(text) : -1;
      if (byte >= 0) {
        pieces_[i] = std::string(1, static_cast<char>(byte));
        byte_ids_[static_cast<std::size_t>(byte)] = id;
      } else if (type == TokenType::kByte) {
        return invalid_argument("token " + std::to_string(id) + " of the model file is a byte but its text is " +
                                in_quotes(text) + "; the file is damaged");
      } else {
        if (text.size() > kMaxPieceBytes) {
          return invalid_argument("token " + std::to_string(id) + " is longer than 1024 bytes; the model file is damaged");
        }
        pieces_[i] = type == TokenType::kControl || type == TokenType::kUnknown ? text : with_spaces(text);
        if (type == TokenType::kNormal) ids_.emplace(pieces_[i], id);
      }
    }
    return {};
  }

  // Every way to put a token together from two others is a merge, as early as the token's score is high.
  Status read_scores(const Vocabulary& vocabulary) {
    if (vocabulary.scores.size() != vocabulary.tokens.size()) {
      return invalid_argument("the model file has " + std::to_string(vocabulary.tokens.size()) + " tokens but " +
                              std::to_string(vocabulary.scores.size()) + " scores; it is damaged");
    }
    for (std::size_t i = 0; i < vocabulary.scores.size(); ++i) {
      if (std::isfinite(vocabulary.scores[i])) continue;
      return invalid_argument("the score of token " + std::to_string(i) + " of the model file is no number");
    }
    std::vector<std::int32_t> order(vocabulary.tokens.size());
    std::iota(order.begin(), order.end(), 0);
    const auto score = [&](std::int32_t id) { return vocabulary.scores[static_cast<std::size_t>(id)]; };
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return score(a) > score(b); });
    std::int32_t rank = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i > 0 && score(order[i]) != score(order[i - 1])) ++rank;  // of equal scores the leftmost pair goes first
      const std::string& piece = pieces_[static_cast<std::size_t>(order[i])];
      if (find(piece) != order[i]) continue;
      each_inner_boundary(piece, [&](std::size_t at) {
        const auto left = find(std::string_view(piece).substr(0, at));
        const auto right = left ? find(std::string_view(piece).substr(at)) : std::nullopt;
        if (left && right) merges_.add(*left, *right, order[i], rank);
      });
    }
    return {};
  }

  void append_character(std::string_view character, std::vector<std::int32_t>& symbols) const {
    if (const auto id = find(character)) {
      symbols.push_back(*id);
      return;
    }
    const auto byte_id = [&](char c) { return byte_ids_[static_cast<unsigned char>(c)]; };
    if (std::all_of(character.begin(), character.end(), [&](char c) { return byte_id(c) >= 0; })) {
      for (const char c : character) symbols.push_back(byte_id(c));
    } else if (unknown_ && (symbols.empty() || symbols.back() != *unknown_)) {
      symbols.push_back(*unknown_);  // one for a run of unknown characters
    }
  }

  std::array<std::int32_t, 256> byte_ids_{};  // -1 = the vocabulary has no token for that byte
  Merges merges_;
  std::optional<std::int32_t> unknown_;
  SpacePrefix prefix_ = SpacePrefix::kEach;
  bool doubles_space_ = true;
};

}  // namespace

int byte_of(std::string_view text) {
  if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>') return -1;
  int value = 0;
  const auto read = std::from_chars(text.data() + 3, text.data() + 5, value, 16);
  return read.ec == std::errc() && read.ptr == text.data() + 5 && value >= 0 ? value : -1;
}

Result<std::unique_ptr<const SubwordModel>> create_sentencepiece(const Vocabulary& vocabulary) {
  auto model = std::make_unique<SentencePiece>();
  SLUICE_RETURN_IF_ERROR(model->read(vocabulary));
  return std::unique_ptr<const SubwordModel>(std::move(model));
}

}  // namespace sluice
