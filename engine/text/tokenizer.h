// SPDX-License-Identifier: GPL-3.0-or-later
// Text <-> token ids by byte-level BPE or SentencePiece's BPE, equal to what Hugging Face's tokenizers and SentencePiece
// make of the same vocabulary.
// Immutable once created; any number of threads may share one. Time is linear in the text but for a logarithm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/vocabulary.h"

namespace sluice {

inline constexpr std::size_t kMaxTextBytes = std::size_t{1} << 30;

struct EncodeOptions {
  bool parse_special = false;  // whether the text of a control token becomes that token
  bool add_special = false;    // whether bos / eos are put around, where the vocabulary asks for them
  bool continues = false;      // the text stands behind other text: SentencePiece puts no space before it
  std::size_t max_bytes = kMaxTextBytes;  // a longer text is refused
};

// A stretch of a prompt. Neighbours are split and merged as one text, so that ids are those of the whole prompt; only
// control tokens are sought in `special_allowed` stretches alone. So a message can't open or close a turn.
struct Segment {
  std::string text;
  bool special_allowed = false;

  bool operator==(const Segment&) const = default;
};

class Tokenizer {
 public:
  // kInvalidArgument, naming what is wrong, for another model than those two, an unknown pre-tokenizer, ids out of range, a
  // merge whose parts or result are no tokens, or scores that are none.
  static Result<std::shared_ptr<const Tokenizer>> create(Vocabulary vocabulary);
  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Bytes that are no UTF-8 count as U+FFFD. A byte the vocabulary has no token for is left out, as in the original
  // tokenizers (SmolLM2 lacks six control characters and two lead bytes of unassigned planes). kInvalidArgument above
  // max_bytes (counts are 64 bits wide).
  Result<std::vector<std::int32_t>> encode(std::string_view text, EncodeOptions options = {}) const;
  // parse_special is each segment's own; bos and eos are not added (encode_segments does that).
  Result<std::vector<std::int32_t>> encode(std::span<const Segment> segments) const;

  // The pieces joined, as they continue another text. Always valid UTF-8: what is no code point becomes U+FFFD. An id
  // outside the vocabulary becomes U+FFFD too.
  std::string decode(std::span<const std::int32_t> ids, bool skip_special = true) const;
  // The same of ids that stand for a text from its begin: without the space that SentencePiece put before it. Gives back
  // what was encoded.
  std::string decode_text(std::span<const std::int32_t> ids, bool skip_special = true) const;
  // The bytes a token stands for; may be part of a code point. Empty for an id outside the vocabulary.
  std::string_view piece(std::int32_t id) const;

  std::int32_t size() const;  // tokens in the vocabulary
  bool is_special(std::int32_t id) const;  // a control or unknown token: left out by skip_special
  bool is_end_of_generation(std::int32_t id) const;
  const std::vector<std::int32_t>& end_of_generation() const;  // ascending
  // The id of a control or user-defined token by its text.
  std::optional<std::int32_t> special_id(std::string_view text) const;
  // The id of any token by the bytes it stands for.
  std::optional<std::int32_t> token_id(std::string_view bytes) const;

  std::optional<std::int32_t> bos() const;
  std::optional<std::int32_t> eos() const;
  bool add_bos() const;
  bool add_eos() const;
  const FimIds& fim() const;  // as the vocabulary named them; ids lie within it
  std::string bos_text() const;  // empty where there is none
  std::string eos_text() const;

 private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<const Impl> impl);

  const std::unique_ptr<const Impl> impl_;
};

// Turns ids into text as they come, never cutting a code point: its bytes wait until it is whole. What all calls return,
// joined, equals Tokenizer::decode of all ids. Used by one thread at a time.
class StreamDecoder {
 public:
  explicit StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special = true);

  std::string push(std::int32_t id);  // the text that became certain, often empty
  std::string flush();                // what waits still, as U+FFFD; the decoder is then as new
  bool pending() const { return !pending_.empty(); }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  bool skip_special_;
  std::string pending_;  // the begin of a code point, at most three bytes
};

}  // namespace sluice
