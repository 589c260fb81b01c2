// SPDX-License-Identifier: GPL-3.0-or-later
#include "text/tokenizer_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "base/json_limits.h"
#include "text/subword.h"

namespace sluice {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxFileBytes = std::size_t{256} << 20;
constexpr std::int64_t kMaxTokens = std::int64_t{1} << 22;  // a stray huge id must not take memory
constexpr const char* kFile = "tokenizer.json";
constexpr const char* kSpaceMark = "\xE2\x96\x81";  // U+2581
// What ByteLevel splits by when use_regex is on.
constexpr const char* kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

Status bad(const std::string& what) { return invalid_argument(std::string(kFile) + ": " + what); }

Result<Json> parse(const std::string& text, const std::string& file) {
  SLUICE_RETURN_IF_ERROR(check_json_limits(text, file, {.max_bytes = kMaxFileBytes, .max_depth = 64}));
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) {
    return invalid_argument(file + " is not valid JSON: " + json_problem<Json>(text) + "; fetch the model folder again");
  }
  if (!json.is_object()) return invalid_argument(file + " must hold a JSON object");
  return json;
}

// A member, or null where there is none.
const Json& member(const Json& object, const char* key) {
  static const Json none;
  if (!object.is_object()) return none;
  const auto it = object.find(key);
  return it == object.end() ? none : *it;
}

bool flag(const Json& object, const char* key, bool fallback = false) {
  const Json& value = member(object, key);
  return value.is_boolean() ? value.get<bool>() : fallback;
}

std::string text(const Json& object, const char* key) {
  const Json& value = member(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

// The members of a "Sequence", or the one thing itself; nothing for null.
std::vector<const Json*> steps_of(const Json& value, const char* list) {
  std::vector<const Json*> out;
  if (value.is_null()) return out;
  if (text(value, "type") != "Sequence") return {&value};
  for (const Json& step : member(value, list)) {
    for (const Json* inner : steps_of(step, list)) out.push_back(inner);
  }
  return out;
}

class Reader {
 public:
  explicit Reader(const Json& file) : file_(file), model_(member(file, "model")) {}

  Result<Vocabulary> run() {
    if (const std::string type = text(model_, "type"); type != "BPE" && !(type.empty() && model_.contains("merges"))) {
      return bad("the model is of the type " + in_quotes(type) + "; only BPE is known: use another model");
    }
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!text(model_, key).empty()) return bad("\"model." + std::string(key) + "\" is not supported");
    }
    if (member(model_, "dropout").is_number() && member(model_, "dropout") != 0) return bad("\"model.dropout\" is not supported");
    SLUICE_RETURN_IF_ERROR(read_pre_tokenizer());
    SLUICE_RETURN_IF_ERROR(read_normalizer());
    SLUICE_RETURN_IF_ERROR(read_vocabulary());
    SLUICE_RETURN_IF_ERROR(read_added_tokens());
    SLUICE_RETURN_IF_ERROR(read_merges());
    v_.ignore_merges = flag(model_, "ignore_merges");
    read_post_processor();
    return std::move(v_);
  }

 private:
  bool pieces() const { return v_.model == "llama"; }

  Status read_pre_tokenizer() {
    bool byte_level = false;
    bool metaspace = false;
    for (const Json* step : steps_of(member(file_, "pre_tokenizer"), "pretokenizers")) {
      const std::string type = text(*step, "type");
      if (type == "ByteLevel") {
        byte_level = true;
        if (flag(*step, "add_prefix_space")) return bad("ByteLevel with add_prefix_space is not supported");
        if (flag(*step, "use_regex", true)) v_.split_patterns.push_back(kByteLevelPattern);
      } else if (type == "Digits") {
        v_.split_patterns.push_back(flag(*step, "individual_digits") ? "\\p{N}" : "\\p{N}+");
      } else if (type == "Metaspace") {
        metaspace = true;
        SLUICE_RETURN_IF_ERROR(read_metaspace(*step));
      } else if (type == "Split") {
        SLUICE_RETURN_IF_ERROR(read_split(*step));
      } else {
        return bad("the pre-tokenizer " + in_quotes(type) +
                   " is not supported; known are ByteLevel, Digits, Metaspace and Split");
      }
    }
    if (byte_level && metaspace) return bad("ByteLevel and Metaspace do not go together");
    v_.model = byte_level ? "gpt2" : "llama";
    if (byte_level && v_.split_patterns.empty()) v_.split_patterns.push_back("(?!)");  // nothing is split
    if (!byte_level && !v_.split_patterns.empty()) return bad("a split by patterns without ByteLevel is not supported");
    return {};
  }

  Status read_metaspace(const Json& step) {
    if (text(step, "replacement") != kSpaceMark) return bad("Metaspace with another replacement than U+2581 is not supported");
    if (flag(step, "split", true)) return bad("Metaspace with \"split\": true is not supported");
    std::string scheme = text(step, "prepend_scheme");
    if (scheme.empty()) scheme = flag(step, "add_prefix_space", true) ? "always" : "never";
    v_.space_prefix = scheme == "never" ? SpacePrefix::kNone : scheme == "first" ? SpacePrefix::kFirst : SpacePrefix::kEach;
    v_.doubles_space = false;
    return {};
  }

  Status read_split(const Json& step) {
    const Json& pattern = member(step, "pattern");
    const std::string regex = text(pattern, "Regex");
    if (regex.empty() && text(pattern, "String") == " " && replaces_space()) return {};  // no space is left by then
    if (regex.empty() || text(step, "behavior") != "Isolated" || flag(step, "invert")) {
      return bad("a Split pre-tokenizer is only supported with a Regex, \"behavior\": \"Isolated\" and \"invert\": false");
    }
    v_.split_patterns.push_back(regex);
    return {};
  }

  bool replaces_space() const {
    const auto steps = steps_of(member(file_, "normalizer"), "normalizers");
    return std::any_of(steps.begin(), steps.end(), [](const Json* step) { return is_space_replacement(*step); });
  }

  static bool is_space_replacement(const Json& step) {
    return text(step, "type") == "Replace" && text(member(step, "pattern"), "String") == " " &&
           text(step, "content") == kSpaceMark;
  }

  Status read_normalizer() {
    bool marks_spaces = v_.space_prefix.has_value();
    if (pieces() && !v_.space_prefix) v_.space_prefix = SpacePrefix::kNone;
    v_.nfc = false;
    for (const Json* step : steps_of(member(file_, "normalizer"), "normalizers")) {
      const std::string type = text(*step, "type");
      if (type == "NFC" && !pieces()) {
        v_.nfc = true;
      } else if (pieces() && type == "Prepend" && text(*step, "prepend") == kSpaceMark) {
        v_.space_prefix = SpacePrefix::kEach;
      } else if (pieces() && is_space_replacement(*step)) {
        marks_spaces = true;
      } else {
        return bad("the normalizer " + in_quotes(type) +
                   " is not supported; known are NFC with ByteLevel, and Prepend and Replace of spaces by U+2581");
      }
    }
    if (pieces() && !marks_spaces) {
      return bad("neither ByteLevel nor Metaspace nor a Replace of spaces says how spaces are written; such a tokenizer is "
                 "not supported");
    }
    return {};
  }

  Status place(const std::string& token, const Json& id, TokenType type) {
    if (!id.is_number_integer() || id < 0 || id >= kMaxTokens) {
      return bad("the token " + in_quotes(token) + " has no id between 0 and " + std::to_string(kMaxTokens - 1));
    }
    const auto at = id.get<std::size_t>();
    if (at >= v_.tokens.size()) {
      v_.tokens.resize(at + 1);
      v_.types.resize(at + 1, TokenType::kUnused);
    }
    if (v_.types[at] != TokenType::kUnused && v_.tokens[at] != token) {
      return bad("the tokens " + in_quotes(v_.tokens[at]) + " and " + in_quotes(token) + " share the id " + std::to_string(at));
    }
    v_.tokens[at] = token;
    v_.types[at] = type;
    return {};
  }

  Status read_vocabulary() {
    const Json& vocab = member(model_, "vocab");
    if (!vocab.is_object() || vocab.empty()) return bad("\"model.vocab\" holds no tokens");
    const bool byte_fallback = pieces() && flag(model_, "byte_fallback");
    for (const auto& [token, id] : vocab.items()) {
      const bool byte = byte_fallback && byte_of(token) >= 0;
      SLUICE_RETURN_IF_ERROR(place(token, id, byte ? TokenType::kByte : TokenType::kNormal));
    }
    const std::string unknown = text(model_, "unk_token");
    if (pieces() && vocab.contains(unknown)) v_.unk = vocab[unknown].get<std::int32_t>();
    return {};
  }

  Status read_added_tokens() {
    for (const Json& token : member(file_, "added_tokens")) {
      const std::string content = text(token, "content");
      if (content.empty()) return bad("one of \"added_tokens\" has no content");
      const Json& id = member(token, "id");
      SLUICE_RETURN_IF_ERROR(place(content, id, flag(token, "special") ? TokenType::kControl : TokenType::kUserDefined));
      // Metaspace normalises nothing, so that all are matched in the text as given.
      const bool normalized = flag(token, "normalized") && (!pieces() || v_.doubles_space);
      v_.added.push_back({id.get<std::int32_t>(), flag(token, "lstrip"), flag(token, "rstrip"), flag(token, "single_word"),
                          normalized});
    }
    return {};
  }

  Status read_merges() {
    const Json& merges = member(model_, "merges");
    if (!merges.is_array()) return bad("\"model.merges\" is no list");
    v_.merges.reserve(merges.size());
    for (const Json& merge : merges) {
      if (merge.is_string()) {
        v_.merges.push_back(merge.get<std::string>());
      } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
        v_.merges.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
      } else {
        return bad("entry " + std::to_string(v_.merges.size()) + " of \"model.merges\" is no pair of texts");
      }
    }
    // Pieces without merges have scores, all alike: none joins.
    if (pieces() && v_.merges.empty()) v_.scores.assign(v_.tokens.size(), 0.0f);
    return {};
  }

  // A template around the text says whether bos and eos are added.
  void read_post_processor() {
    for (const Json* step : steps_of(member(file_, "post_processor"), "processors")) {
      const Json& single = member(*step, "single");
      if (text(*step, "type") != "TemplateProcessing" || !single.is_array() || single.empty()) continue;
      v_.add_bos = member(single.front(), "SpecialToken").is_object();
      v_.add_eos = single.size() > 1 && member(single.back(), "SpecialToken").is_object();
    }
  }

  const Json& file_;
  const Json& model_;
  Vocabulary v_;
};

// "bos_token": a text, or an object with the text as its content.
std::string token_text(const Json& config, const char* key) {
  const Json& value = member(config, key);
  return value.is_object() ? text(value, "content") : text(config, key);
}

Status read_named_tokens(const Json& config, const Json& map, Vocabulary& v) {
  std::unordered_map<std::string, std::int32_t> ids;
  for (std::size_t i = 0; i < v.tokens.size(); ++i) {
    if (v.types[i] != TokenType::kUnused) ids.emplace(v.tokens[i], static_cast<std::int32_t>(i));
  }
  for (const auto& [key, slot] :
       {std::pair("bos_token", &v.bos), std::pair("eos_token", &v.eos), std::pair("pad_token", &v.pad)}) {
    std::string name = token_text(config, key);
    if (name.empty()) name = token_text(map, key);
    if (name.empty()) continue;
    const auto it = ids.find(name);
    if (it == ids.end()) {
      return invalid_argument("tokenizer_config.json: \"" + std::string(key) + "\" is " + in_quotes(name) +
                              ", which tokenizer.json does not hold");
    }
    *slot = it->second;
  }
  v.add_bos = flag(config, "add_bos_token", v.add_bos) && v.bos;
  v.add_eos = flag(config, "add_eos_token", v.add_eos) && v.eos;
  return {};
}

// A number or a list of them.
Status read_end_ids(const std::string& content, const std::string& file, Vocabulary& v) {
  if (content.empty()) return {};
  SLUICE_ASSIGN_OR_RETURN(const Json json, parse(content, file));
  const Json& value = member(json, "eos_token_id");
  if (value.is_null()) return {};
  const auto take = [&](const Json& id) -> Status {
    if (!id.is_number_integer() || id < 0 || id > INT32_MAX) {
      return invalid_argument(file + ": \"eos_token_id\" must be a token id or a list of them");
    }
    v.end_of_generation.push_back(id.get<std::int32_t>());
    return {};
  };
  if (!value.is_array()) return take(value);
  for (const Json& id : value) SLUICE_RETURN_IF_ERROR(take(id));
  return {};
}

// One template, or a list of named ones of which "default" counts.
std::string template_of(const Json& config) {
  const Json& value = member(config, "chat_template");
  if (!value.is_array()) return text(config, "chat_template");
  std::string first;
  for (const Json& named : value) {
    if (text(named, "name") == "default") return text(named, "template");
    if (first.empty()) first = text(named, "template");
  }
  return first;
}

}  // namespace

Result<Vocabulary> vocabulary_from_json(const TokenizerFiles& files) {
  if (files.tokenizer_json.empty()) {
    return invalid_argument("the model folder has no tokenizer.json: convert its tokenizer, or use a GGUF file");
  }
  SLUICE_ASSIGN_OR_RETURN(const Json file, parse(files.tokenizer_json, kFile));
  SLUICE_ASSIGN_OR_RETURN(Vocabulary v, Reader(file).run());
  Json config = Json::object();
  Json map = Json::object();
  if (!files.tokenizer_config_json.empty()) {
    SLUICE_ASSIGN_OR_RETURN(config, parse(files.tokenizer_config_json, "tokenizer_config.json"));
  }
  if (!files.special_tokens_map_json.empty()) {
    SLUICE_ASSIGN_OR_RETURN(map, parse(files.special_tokens_map_json, "special_tokens_map.json"));
  }
  SLUICE_RETURN_IF_ERROR(read_named_tokens(config, map, v));
  SLUICE_RETURN_IF_ERROR(read_end_ids(files.config_json, "config.json", v));
  SLUICE_RETURN_IF_ERROR(read_end_ids(files.generation_config_json, "generation_config.json", v));
  v.chat_template = files.chat_template_jinja.empty() ? template_of(config) : files.chat_template_jinja;
  return v;
}

}  // namespace sluice
