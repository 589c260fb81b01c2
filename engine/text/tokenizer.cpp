// SPDX-License-Identifier: GPL-3.0-or-later
#include "text/tokenizer.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "text/added_tokens.h"
#include "text/byte_alphabet.h"
#include "text/merges.h"
#include "text/pretokenizer.h"
#include "text/utf8.h"

namespace sluice {
namespace {

constexpr std::size_t kMaxTextBytes = std::size_t{1} << 30;
constexpr std::size_t kCachedPieceBytes = 64;  // longer pieces hardly repeat

// Texts that end an answer in the families we know, whether or not the file lists them.
constexpr std::array<std::string_view, 9> kEndTexts = {"<|endoftext|>", "<|im_end|>",      "<|end_of_text|>",
                                                       "<|eot_id|>",    "<|eom_id|>",      "<end_of_turn>",
                                                       "<|end|>",       "<|end_of_turn|>", "</s>"};

std::string quoted(std::string_view text) { return "\"" + to_valid_utf8(text.substr(0, 80)) + "\""; }

bool is_added(TokenType type) { return type == TokenType::kControl || type == TokenType::kUserDefined; }

}  // namespace

struct Tokenizer::Impl {
  Vocabulary vocabulary;            // tokens, merges and template emptied once read
  std::vector<std::string> pieces;  // bytes by id
  std::unordered_map<std::string, std::int32_t> ids;          // bytes -> id of normal tokens
  std::unordered_map<std::string, std::int32_t> special_ids;  // text -> id of control and user-defined tokens
  std::array<std::int32_t, 256> byte_ids{};                   // -1 = the vocabulary has no token for that byte
  Merges merges;
  AddedTokens added;             // matched in the text as given
  AddedTokens added_normalized;  // matched after normalising
  std::unique_ptr<const PreTokenizer> pre;
  std::vector<std::int32_t> end_ids;
  bool nfc = false;
  bool ignore_merges = false;

  using Cache = std::unordered_map<std::string_view, std::vector<std::int32_t>>;

  Status read_tokens();
  Status read_merges();
  Status read_special_ids();
  TokenType type(std::int32_t id) const {
    return vocabulary.types.empty() ? TokenType::kNormal : vocabulary.types[static_cast<std::size_t>(id)];
  }
  bool in_range(std::int32_t id) const { return id >= 0 && static_cast<std::size_t>(id) < pieces.size(); }

  Status encode_marked(std::string_view text, const std::vector<ByteRange>& control_allowed,
                       std::vector<std::int32_t>& out) const;
  Status encode_fragment(std::string_view text, bool control_allowed, std::vector<std::int32_t>& out) const;
  Status encode_plain(std::string_view text, std::vector<std::int32_t>& out) const;
  void encode_piece(std::string_view piece, std::vector<std::int32_t>& symbols) const;
};

Status Tokenizer::Impl::read_tokens() {
  const std::size_t count = vocabulary.tokens.size();
  if (count == 0) return invalid_argument("the model file holds no tokens");
  if (!vocabulary.types.empty() && vocabulary.types.size() != count) {
    return invalid_argument("the model file has " + std::to_string(count) + " tokens but " +
                            std::to_string(vocabulary.types.size()) + " token types; it is damaged");
  }
  std::unordered_map<std::int32_t, AddedTokenFlags> flags;
  for (const AddedTokenFlags& f : vocabulary.added) flags[f.id] = f;
  byte_ids.fill(-1);
  pieces.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto id = static_cast<std::int32_t>(i);
    const std::string& text = vocabulary.tokens[i];
    if (is_added(type(id))) {
      pieces[i] = text;
      special_ids.emplace(text, id);
      if (text.size() > AddedTokens::kMaxLength) {
        return invalid_argument("special token " + std::to_string(id) +
                                " is longer than 1024 bytes; the model file is damaged");
      }
      const auto it = flags.find(id);
      const AddedTokenFlags f = it == flags.end() ? AddedTokenFlags{.id = id} : it->second;
      (f.normalized ? added_normalized : added).add(text, f, type(id) == TokenType::kControl);
      continue;
    }
    if (!alphabet_to_bytes(text, pieces[i])) pieces[i] = text;
    ids.emplace(pieces[i], id);
    if (pieces[i].size() == 1) {
      std::int32_t& slot = byte_ids[static_cast<unsigned char>(pieces[i][0])];
      if (slot < 0) slot = id;
    }
  }
  return {};
}

Status Tokenizer::Impl::read_merges() {
  merges.reserve(vocabulary.merges.size());
  std::string left;
  std::string right;
  for (const std::string& merge : vocabulary.merges) {
    const std::size_t space = merge.find(' ', 1);
    const bool split = space != std::string::npos && alphabet_to_bytes(std::string_view(merge).substr(0, space), left) &&
                       alphabet_to_bytes(std::string_view(merge).substr(space + 1), right);
    const auto a = split ? ids.find(left) : ids.end();
    const auto b = split ? ids.find(right) : ids.end();
    const auto joined = split ? ids.find(left + right) : ids.end();
    if (a == ids.end() || b == ids.end() || joined == ids.end()) {
      return invalid_argument("the merge " + quoted(merge) + " of the model file names no tokens of its vocabulary");
    }
    merges.add(a->second, b->second, joined->second);
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
                            " lies outside its vocabulary of " + std::to_string(pieces.size()) + " tokens");
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

void Tokenizer::Impl::encode_piece(std::string_view piece, std::vector<std::int32_t>& symbols) const {
  symbols.clear();
  if (ignore_merges) {
    const auto it = ids.find(std::string(piece));
    if (it != ids.end()) {
      symbols.push_back(it->second);
      return;
    }
  }
  for (const char c : piece) {
    const std::int32_t id = byte_ids[static_cast<unsigned char>(c)];
    if (id >= 0) symbols.push_back(id);
  }
  merges.apply(symbols);
}

Status Tokenizer::Impl::encode_plain(std::string_view text, std::vector<std::int32_t>& out) const {
  std::vector<std::string_view> split;
  SLUICE_RETURN_IF_ERROR(pre->split(text, split));
  Cache cache;
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

Status Tokenizer::Impl::encode_fragment(std::string_view text, bool control_allowed,
                                        std::vector<std::int32_t>& out) const {
  if (text.empty()) return {};
  const std::string normal = nfc ? to_nfc(text) : std::string();
  if (nfc) text = normal;
  std::vector<ByteRange> allowed;
  if (control_allowed) allowed.push_back({0, text.size()});
  std::size_t done = 0;
  for (const AddedMatch& match : added_normalized.find(text, allowed)) {
    SLUICE_RETURN_IF_ERROR(encode_plain(text.substr(done, match.range.begin - done), out));
    out.push_back(match.id);
    done = match.range.end;
  }
  return encode_plain(text.substr(done), out);
}

Status Tokenizer::Impl::encode_marked(std::string_view text, const std::vector<ByteRange>& control_allowed,
                                      std::vector<std::int32_t>& out) const {
  std::size_t range = 0;
  // Normalising moves bytes about, so in a fragment all or nothing is allowed.
  const auto allowed = [&](std::size_t begin, std::size_t end) {
    while (range < control_allowed.size() && control_allowed[range].end < end) ++range;
    return range < control_allowed.size() && control_allowed[range].begin <= begin;
  };
  std::size_t done = 0;
  for (const AddedMatch& match : added.find(text, control_allowed)) {
    SLUICE_RETURN_IF_ERROR(encode_fragment(text.substr(done, match.range.begin - done),
                                           allowed(done, match.range.begin), out));
    out.push_back(match.id);
    done = match.range.end;
  }
  return encode_fragment(text.substr(done), allowed(done, text.size()), out);
}

Tokenizer::Tokenizer(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::~Tokenizer() = default;

Result<std::shared_ptr<const Tokenizer>> Tokenizer::create(Vocabulary vocabulary) {
  if (vocabulary.model != "gpt2") {
    return invalid_argument("the model file's tokenizer is of the kind " + quoted(vocabulary.model) +
                            "; only byte-level BPE (\"gpt2\") is known");
  }
  auto impl = std::make_unique<Impl>();
  SLUICE_ASSIGN_OR_RETURN(impl->pre, PreTokenizer::create(vocabulary.pre_tokenizer));
  impl->nfc = vocabulary.nfc.value_or(impl->pre->nfc());
  impl->ignore_merges = vocabulary.ignore_merges.value_or(impl->pre->ignore_merges());
  impl->vocabulary = std::move(vocabulary);
  SLUICE_RETURN_IF_ERROR(impl->read_tokens());
  SLUICE_RETURN_IF_ERROR(impl->read_merges());
  SLUICE_RETURN_IF_ERROR(impl->read_special_ids());
  impl->vocabulary.tokens = {};
  impl->vocabulary.merges = {};
  impl->vocabulary.chat_template = {};
  return std::shared_ptr<const Tokenizer>(new Tokenizer(std::move(impl)));
}

Result<std::vector<std::int32_t>> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  const std::vector<Segment> one = {{std::string(text), options.parse_special}};
  std::vector<std::int32_t> out;
  SLUICE_ASSIGN_OR_RETURN(out, encode(std::span<const Segment>(one)));
  if (options.add_special && add_bos()) out.insert(out.begin(), *bos());
  if (options.add_special && add_eos()) out.push_back(*eos());
  return out;
}

Result<std::vector<std::int32_t>> Tokenizer::encode(std::span<const Segment> segments) const {
  std::string text;
  std::vector<ByteRange> allowed;
  for (const Segment& segment : segments) {
    if (segment.text.size() > kMaxTextBytes - std::min(kMaxTextBytes, text.size())) {
      return invalid_argument("the text to tokenise is longer than 1 GiB: shorten it");
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
  SLUICE_RETURN_IF_ERROR(impl_->encode_marked(text, allowed, out));
  return out;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special) const {
  std::string bytes;
  for (const std::int32_t id : ids) {
    if (!impl_->in_range(id)) {
      bytes += kReplacement;
    } else if (!skip_special || !is_special(id)) {
      bytes += impl_->pieces[static_cast<std::size_t>(id)];
    }
  }
  return to_valid_utf8(bytes);
}

std::string_view Tokenizer::piece(std::int32_t id) const {
  return impl_->in_range(id) ? std::string_view(impl_->pieces[static_cast<std::size_t>(id)]) : std::string_view();
}

std::int32_t Tokenizer::size() const { return static_cast<std::int32_t>(impl_->pieces.size()); }

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
  const auto it = impl_->ids.find(std::string(bytes));
  return it == impl_->ids.end() ? special_id(bytes) : std::optional(it->second);
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
