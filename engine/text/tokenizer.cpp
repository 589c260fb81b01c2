// SPDX-License-Identifier: GPL-3.0-or-later
#include "text/tokenizer.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "text/added_tokens.h"
#include "text/subword.h"
#include "text/utf8.h"

namespace sluice {
namespace {


// Texts that end an answer in the families we know, whether or not the file lists them.
constexpr std::array<std::string_view, 9> kEndTexts = {"<|endoftext|>", "<|im_end|>",      "<|end_of_text|>",
                                                       "<|eot_id|>",    "<|eom_id|>",      "<end_of_turn>",
                                                       "<|end|>",       "<|end_of_turn|>", "</s>"};

}  // namespace

struct Tokenizer::Impl {
  Vocabulary vocabulary;  // tokens, merges, scores and template emptied once read
  std::unique_ptr<const SubwordModel> subword;
  std::unordered_map<std::string, std::int32_t> special_ids;  // text -> id of control and user-defined tokens
  AddedTokens added;             // matched in the text as given
  AddedTokens added_normalized;  // matched after normalising
  std::vector<std::int32_t> end_ids;

  Status read_added_tokens();
  Status read_special_ids();
  TokenType type(std::int32_t id) const { return token_type(vocabulary, static_cast<std::size_t>(id)); }
  std::size_t size() const { return subword->pieces().size(); }
  bool in_range(std::int32_t id) const { return id >= 0 && static_cast<std::size_t>(id) < size(); }

  Result<std::vector<std::int32_t>> encode(std::span<const Segment> segments, bool continues, std::size_t max_bytes) const;
  Status encode_marked(std::string_view text, const std::vector<ByteRange>& control_allowed, bool continues,
                       std::vector<std::int32_t>& out) const;
  Status encode_fragment(std::string_view text, TextPlace place, bool control_allowed,
                         std::vector<std::int32_t>& out) const;
};

Status Tokenizer::Impl::read_added_tokens() {
  std::unordered_map<std::int32_t, AddedTokenFlags> flags;
  for (const AddedTokenFlags& f : vocabulary.added) flags[f.id] = f;
  for (std::size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    const auto id = static_cast<std::int32_t>(i);
    if (!is_added(type(id))) continue;
    const std::string& text = vocabulary.tokens[i];
    special_ids.emplace(text, id);
    if (text.size() > AddedTokens::kMaxLength) {
      return invalid_argument("special token " + std::to_string(id) +
                              " is longer than 1024 bytes; the model file is damaged");
    }
    const auto it = flags.find(id);
    const AddedTokenFlags f = it == flags.end() ? AddedTokenFlags{.id = id} : it->second;
    const bool control = type(id) == TokenType::kControl;
    if (f.normalized) {
      added_normalized.add(subword->normalize(to_valid_utf8(text), TextPlace::kBegin), f, control);
      continue;
    }
    added.add(text, f, control);
    const std::string& piece = subword->pieces()[i];
    if (piece != text) added.add(piece, f, control);  // SentencePiece writes the spaces of a user-defined token otherwise
  }
  return {};
}

Status Tokenizer::Impl::read_special_ids() {
  const std::pair<const char*, std::optional<std::int32_t>> named[] = {
      {"bos", vocabulary.bos}, {"eos", vocabulary.eos}, {"eot", vocabulary.eot},
      {"unknown", vocabulary.unk}, {"padding", vocabulary.pad},
      {"fim prefix", vocabulary.fim.prefix}, {"fim suffix", vocabulary.fim.suffix},
      {"fim middle", vocabulary.fim.middle}, {"fim pad", vocabulary.fim.pad},
      {"fim repository", vocabulary.fim.repo}, {"fim file", vocabulary.fim.file}};
  const auto check = [&](const char* name, std::int32_t id) -> Status {
    if (in_range(id)) return {};
    return invalid_argument("the model file's " + std::string(name) + " token id " + std::to_string(id) +
                            " lies outside its vocabulary of " + std::to_string(size()) + " tokens");
  };
  for (const auto& [name, id] : named) {
    if (id) SLUICE_RETURN_IF_ERROR(check(name, *id));
  }
  for (const std::int32_t id : vocabulary.end_of_generation) {
    SLUICE_RETURN_IF_ERROR(check("end-of-generation", id));
    end_ids.push_back(id);
  }
  for (const AddedTokenFlags& f : vocabulary.added) SLUICE_RETURN_IF_ERROR(check("added", f.id));
  if (vocabulary.add_bos && !vocabulary.bos) return invalid_argument("the model file wants a bos token but names none");
  if (vocabulary.add_eos && !vocabulary.eos) return invalid_argument("the model file wants an eos token but names none");
  if (vocabulary.eos) end_ids.push_back(*vocabulary.eos);
  if (vocabulary.eot) end_ids.push_back(*vocabulary.eot);
  for (const std::string_view text : kEndTexts) {
    const auto it = special_ids.find(std::string(text));
    if (it != special_ids.end() && type(it->second) == TokenType::kControl) end_ids.push_back(it->second);
  }
  std::sort(end_ids.begin(), end_ids.end());
  end_ids.erase(std::unique(end_ids.begin(), end_ids.end()), end_ids.end());
  return {};
}

Status Tokenizer::Impl::encode_fragment(std::string_view text, TextPlace place, bool control_allowed,
                                        std::vector<std::int32_t>& out) const {
  if (text.empty()) return {};
  const std::string normal = subword->normalize(text, place);
  text = normal;
  std::vector<ByteRange> allowed;
  if (control_allowed) allowed.push_back({0, text.size()});
  std::size_t done = 0;
  for (const AddedMatch& match : added_normalized.find(text, allowed)) {
    SLUICE_RETURN_IF_ERROR(subword->encode(text.substr(done, match.range.begin - done), out));
    out.push_back(match.id);
    done = match.range.end;
  }
  return subword->encode(text.substr(done), out);
}

Status Tokenizer::Impl::encode_marked(std::string_view text, const std::vector<ByteRange>& control_allowed,
                                      bool continues, std::vector<std::int32_t>& out) const {
  std::size_t range = 0;
  // Normalising moves bytes about, so in a fragment all or nothing is allowed.
  const auto allowed = [&](std::size_t begin, std::size_t end) {
    while (range < control_allowed.size() && control_allowed[range].end < end) ++range;
    return range < control_allowed.size() && control_allowed[range].begin <= begin;
  };
  std::size_t done = 0;
  const auto encode_until = [&](std::size_t end) {
    const TextPlace first = continues ? TextPlace::kContinues : TextPlace::kBegin;
    return encode_fragment(text.substr(done, end - done), done == 0 ? first : TextPlace::kBehindAdded,
                           allowed(done, end), out);
  };
  for (const AddedMatch& match : added.find(text, control_allowed)) {
    SLUICE_RETURN_IF_ERROR(encode_until(match.range.begin));
    out.push_back(match.id);
    done = match.range.end;
  }
  return encode_until(text.size());
}

Tokenizer::Tokenizer(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::~Tokenizer() = default;

Result<std::shared_ptr<const Tokenizer>> Tokenizer::create(Vocabulary vocabulary) {
  const std::size_t count = vocabulary.tokens.size();
  if (count == 0) return invalid_argument("the model file holds no tokens");
  if (count > INT32_MAX) return invalid_argument("the model file holds more than 2147483647 tokens");
  if (!vocabulary.types.empty() && vocabulary.types.size() != count) {
    return invalid_argument("the model file has " + std::to_string(count) + " tokens but " +
                            std::to_string(vocabulary.types.size()) + " token types; it is damaged");
  }
  auto impl = std::make_unique<Impl>();
  SLUICE_ASSIGN_OR_RETURN(impl->subword, SubwordModel::create(vocabulary));
  impl->vocabulary = std::move(vocabulary);
  SLUICE_RETURN_IF_ERROR(impl->read_added_tokens());
  SLUICE_RETURN_IF_ERROR(impl->read_special_ids());
  impl->vocabulary.tokens = {};
  impl->vocabulary.merges = {};
  impl->vocabulary.scores = {};
  impl->vocabulary.chat_template = {};
  return std::shared_ptr<const Tokenizer>(new Tokenizer(std::move(impl)));
}

Result<std::vector<std::int32_t>> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  if (text.size() > options.max_bytes) text = text.substr(0, options.max_bytes + 1);  // refused below, without a copy
  const std::vector<Segment> one = {{std::string(text), options.parse_special}};
  std::vector<std::int32_t> out;
  SLUICE_ASSIGN_OR_RETURN(out, impl_->encode(one, options.continues, options.max_bytes));
  if (options.add_special && add_bos()) out.insert(out.begin(), *bos());
  if (options.add_special && add_eos()) out.push_back(*eos());
  return out;
}

Result<std::vector<std::int32_t>> Tokenizer::encode(std::span<const Segment> segments) const {
  return impl_->encode(segments, false, kMaxTextBytes);
}

Result<std::vector<std::int32_t>> Tokenizer::Impl::encode(std::span<const Segment> segments, bool continues, std::size_t max_bytes) const {
  std::string text;
  std::vector<ByteRange> allowed;
  for (const Segment& segment : segments) {
    if (segment.text.size() > max_bytes - std::min(max_bytes, text.size())) {
      return invalid_argument("the text to tokenise is longer than " + std::to_string(max_bytes) + " bytes: shorten it");
    }
    const std::size_t begin = text.size();
    text += is_valid_utf8(segment.text) ? segment.text : to_valid_utf8(segment.text);
    if (!segment.special_allowed || text.size() == begin) continue;
    if (!allowed.empty() && allowed.back().end == begin) {
      allowed.back().end = text.size();
    } else {
      allowed.push_back({begin, text.size()});
    }
  }
  std::vector<std::int32_t> out;
  SLUICE_RETURN_IF_ERROR(encode_marked(text, allowed, continues, out));
  return out;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special) const {
  std::string bytes;
  for (const std::int32_t id : ids) {
    if (!impl_->in_range(id)) {
      bytes += kReplacement;
    } else if (!skip_special || !is_special(id)) {
      bytes += piece(id);
    }
  }
  return to_valid_utf8(bytes);
}

std::string Tokenizer::decode_text(std::span<const std::int32_t> ids, bool skip_special) const {
  std::string text = decode(ids, skip_special);
  if (impl_->subword->puts_space() && !text.empty() && text[0] == ' ') text.erase(0, 1);
  return text;
}

std::string_view Tokenizer::piece(std::int32_t id) const {
  return impl_->in_range(id) ? std::string_view(impl_->subword->pieces()[static_cast<std::size_t>(id)]) : std::string_view();
}

std::int32_t Tokenizer::size() const { return static_cast<std::int32_t>(impl_->size()); }

bool Tokenizer::is_special(std::int32_t id) const {
  return impl_->in_range(id) && (impl_->type(id) == TokenType::kControl || impl_->type(id) == TokenType::kUnknown);
}

bool Tokenizer::is_end_of_generation(std::int32_t id) const {
  return std::binary_search(impl_->end_ids.begin(), impl_->end_ids.end(), id);
}

const std::vector<std::int32_t>& Tokenizer::end_of_generation() const { return impl_->end_ids; }

std::optional<std::int32_t> Tokenizer::special_id(std::string_view text) const {
  const auto it = impl_->special_ids.find(std::string(text));
  return it == impl_->special_ids.end() ? std::nullopt : std::optional(it->second);
}

std::optional<std::int32_t> Tokenizer::token_id(std::string_view bytes) const {
  const auto id = impl_->subword->find(bytes);
  return id ? id : special_id(bytes);
}

std::optional<std::int32_t> Tokenizer::bos() const { return impl_->vocabulary.bos; }
std::optional<std::int32_t> Tokenizer::eos() const { return impl_->vocabulary.eos; }
bool Tokenizer::add_bos() const { return impl_->vocabulary.add_bos; }
bool Tokenizer::add_eos() const { return impl_->vocabulary.add_eos; }
const FimIds& Tokenizer::fim() const { return impl_->vocabulary.fim; }
std::string Tokenizer::bos_text() const { return bos() ? std::string(piece(*bos())) : std::string(); }
std::string Tokenizer::eos_text() const { return eos() ? std::string(piece(*eos())) : std::string(); }

StreamDecoder::StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special)
    : tokenizer_(std::move(tokenizer)), skip_special_(skip_special) {}

std::string StreamDecoder::push(std::int32_t id) {
  if (skip_special_ && tokenizer_->is_special(id)) return {};
  if (id < 0 || id >= tokenizer_->size()) {
    pending_ += kReplacement;
  } else {
    pending_ += tokenizer_->piece(id);
  }
  std::string out;
  drain_valid_utf8(pending_, out);
  return out;
}

std::string StreamDecoder::flush() {
  std::string out = to_valid_utf8(pending_);
  pending_.clear();
  return out;
}

}  // namespace sluice
