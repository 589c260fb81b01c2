// SPDX-License-Identifier: GPL-3.0-or-later
// Byte-level BPE: bytes written in GPT-2's alphabet, split by the family's pattern, merged within each piece.
#include <array>

#include "text/byte_alphabet.h"
#include "text/merges.h"
#include "text/pretokenizer.h"
#include "text/subword.h"
#include "text/utf8.h"

namespace sluice {
namespace {

constexpr std::size_t kCachedPieceBytes = 64;  // longer pieces hardly repeat

class ByteBpe final : public SubwordModel {
 public:
  Status read(const Vocabulary& vocabulary) {
    SLUICE_ASSIGN_OR_RETURN(pre_, vocabulary.split_patterns.empty() ? PreTokenizer::create(vocabulary.pre_tokenizer)
                                                                    : PreTokenizer::of_patterns(vocabulary.split_patterns));
    nfc_ = vocabulary.nfc.value_or(pre_->nfc());
    ignore_merges_ = vocabulary.ignore_merges.value_or(pre_->ignore_merges());
    read_tokens(vocabulary);
    return read_merges(vocabulary, alphabet_to_bytes, merges_);
  }

  std::string normalize(std::string_view text, TextPlace) const override {
    return nfc_ ? to_nfc(text) : std::string(text);
  }

  Status encode(std::string_view text, std::vector<std::int32_t>& out) const override {
    std::vector<std::string_view> split;
    SLUICE_RETURN_IF_ERROR(pre_->split(text, split));
    std::unordered_map<std::string_view, std::vector<std::int32_t>> cache;
    std::vector<std::int32_t> symbols;
    for (const std::string_view piece : split) {
      if (piece.size() > kCachedPieceBytes) {
        encode_piece(piece, symbols);
        out.insert(out.end(), symbols.begin(), symbols.end());
        continue;
      }
      auto it = cache.find(piece);
      if (it == cache.end()) {
        encode_piece(piece, symbols);
        it = cache.emplace(piece, symbols).first;
      }
      out.insert(out.end(), it->second.begin(), it->second.end());
    }
    return {};
  }

  bool puts_space() const override { return false; }

 private:
  void read_tokens(const Vocabulary& vocabulary) {
    byte_ids_.fill(-1);
    pieces_.resize(vocabulary.tokens.size());
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      const std::string& text = vocabulary.tokens[i];
      const TokenType type = token_type(vocabulary, i);
      if (is_added(type) || !alphabet_to_bytes(text, pieces_[i])) pieces_[i] = text;
      if (is_added(type) || type == TokenType::kUnused) continue;
      const auto id = static_cast<std::int32_t>(i);
      ids_.emplace(pieces_[i], id);
      if (pieces_[i].size() != 1) continue;
      std::int32_t& slot = byte_ids_[static_cast<unsigned char>(pieces_[i][0])];
      if (slot < 0) slot = id;
    }
  }

  void encode_piece(std::string_view piece, std::vector<std::int32_t>& symbols) const {
    symbols.clear();
    if (ignore_merges_) {
      if (const auto whole = find(piece)) {
        symbols.push_back(*whole);
        return;
      }
    }
    for (const char c : piece) {
      const std::int32_t id = byte_ids_[static_cast<unsigned char>(c)];
      if (id >= 0) symbols.push_back(id);
    }
    merges_.apply(symbols);
  }

  std::array<std::int32_t, 256> byte_ids_{};  // -1 = the vocabulary has no token for that byte
  Merges merges_;
  std::unique_ptr<const PreTokenizer> pre_;
  bool nfc_ = false;
  bool ignore_merges_ = false;
};

}  // namespace

Result<std::unique_ptr<const SubwordModel>> create_byte_bpe(const Vocabulary& vocabulary) {
  auto model = std::make_unique<ByteBpe>();
  SLUICE_RETURN_IF_ERROR(model->read(vocabulary));
  return std::unique_ptr<const SubwordModel>(std::move(model));
}

}  // namespace sluice
