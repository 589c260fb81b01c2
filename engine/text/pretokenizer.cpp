// SPDX-License-Identifier: GPL-3.0-or-later
#include "text/pretokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>

#include "text/subword.h"

namespace sluice {
namespace {

// Unicode's White_Space. PCRE2's own \s under UCP also takes U+180E, which lost that property in Unicode 6.3.
#define SPACE_SET "\\t-\\r \\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}"
#define SPACE "[" SPACE_SET "]"
#define NOT_SPACE "[^" SPACE_SET "]"

constexpr const char* kEachNumber = "\\p{N}";

constexpr const char* kGpt2 =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" SPACE_SET "\\p{L}\\p{N}]+|" SPACE "+(?!" NOT_SPACE ")|" SPACE "+";

// Runs of white space, as most patterns end: with the line ends, without the last one before a word, the rest.
#define SPACES SPACE "*[\\r\\n]+|" SPACE "+(?!" NOT_SPACE ")|" SPACE "+"
#define ENDINGS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"

// Llama 3 and Qwen2 differ in how many digits stay together.
#define LLAMA_LIKE(numbers) \
  ENDINGS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" numbers "| ?[^" SPACE_SET "\\p{L}\\p{N}]+[\\r\\n]*|" SPACES
constexpr const char* kLlama3 = LLAMA_LIKE("\\p{N}{1,3}");
constexpr const char* kQwen2 = LLAMA_LIKE("\\p{N}");
constexpr const char* kSeedCoder =
    ENDINGS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^" SPACE_SET "\\p{L}\\p{N}\\r\\n]+|" SPACES;

// Words split where lower case turns into upper case.
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED_LIKE(endings, numbers)                                                                                \
  "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" endings "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*" endings "|" numbers \
  "| ?[^" SPACE_SET "\\p{L}\\p{N}]+[\\r\\n/]*|" SPACES
constexpr const char* kTekken = CASED_LIKE("", "\\p{N}");
constexpr const char* kGpt4o = CASED_LIKE(ENDINGS "?", "\\p{N}{1,3}");

constexpr const char* kEachLineEnd = "[\\r\\n]";
constexpr const char* kHanAndHangul = "[\\x{4E00}-\\x{9FA5}\\x{800}-\\x{4E00}\\x{AC00}-\\x{D7FF}]+";
// DeepSeek's first tokenizer lists the letters that have case.
constexpr const char* kDeepSeekLetters =
    SPACE "?["
    "A-Za-z\\x{B5}\\x{C0}-\\x{D6}\\x{D8}-\\x{F6}\\x{F8}-\\x{1BA}\\x{1BC}-\\x{1BF}\\x{1C4}-\\x{293}"
    "\\x{295}-\\x{2AF}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37B}-\\x{37D}\\x{37F}\\x{386}\\x{388}-\\x{38A}"
    "\\x{38C}\\x{38E}-\\x{3A1}\\x{3A3}-\\x{3F5}\\x{3F7}-\\x{481}\\x{48A}-\\x{52F}\\x{531}-\\x{556}"
    "\\x{10A0}-\\x{10C5}\\x{13A0}-\\x{13F5}\\x{13F8}-\\x{13FD}\\x{1C90}-\\x{1CBA}\\x{1CBD}-\\x{1CBF}"
    "\\x{1D00}-\\x{1D2B}\\x{1D6B}-\\x{1D77}\\x{1D79}-\\x{1D9A}\\x{1E00}-\\x{1F15}\\x{1F18}-\\x{1F1D}"
    "\\x{1F20}-\\x{1F45}\\x{1F48}-\\x{1F4D}\\x{1F50}-\\x{1F57}\\x{1F59}\\x{1F5B}\\x{1F5D}"
    "\\x{1F5F}-\\x{1F7D}\\x{1F80}-\\x{1FB4}\\x{1FB6}-\\x{1FBC}\\x{1FBE}\\x{1FC2}-\\x{1FC4}"
    "\\x{1FC6}-\\x{1FCC}\\x{1FD0}-\\x{1FD3}\\x{1FD6}-\\x{1FDB}\\x{1FE0}-\\x{1FEC}\\x{1FF2}-\\x{1FF4}"
    "\\x{1FF6}-\\x{1FFC}\\x{2102}\\x{2107}\\x{210A}-\\x{2113}\\x{2115}\\x{2119}-\\x{211D}\\x{2124}"
    "\\x{2126}\\x{2128}\\x{212A}-\\x{212D}\\x{212F}-\\x{2134}\\x{2139}\\x{213C}-\\x{213F}"
    "\\x{2145}-\\x{2149}\\x{214E}\\x{2183}\\x{2184}\\x{2C00}-\\x{2C7B}\\x{2C7E}-\\x{2CE4}"
    "\\x{2CEB}-\\x{2CEE}\\x{2CF2}\\x{2CF3}\\x{A640}-\\x{A66D}\\x{A680}-\\x{A69B}\\x{A722}-\\x{A76F}"
    "\\x{A771}-\\x{A787}\\x{A78B}-\\x{A78E}\\x{AB70}-\\x{ABBF}\\x{FB00}-\\x{FB06}\\x{FB13}-\\x{FB17}"
    "\\x{FF21}-\\x{FF3A}\\x{FF41}-\\x{FF5A}\\x{10400}-\\x{1044F}\\x{104B0}-\\x{104D3}"
    "\\x{104D8}-\\x{104FB}\\x{10C80}-\\x{10CB2}\\x{10CC0}-\\x{10CF2}\\x{118A0}-\\x{118DF}"
    "\\x{1E900}-\\x{1E943}"
    "]+";
constexpr const char* kDeepSeekPunctuation =
    SPACE "?[!-/:-~\\x{FF01}-\\x{FF0F}\\x{FF1A}-\\x{FF5E}\\x{2018}-\\x{201F}\\x{3000}-\\x{3002}]+";
constexpr const char* kDeepSeekV3 =
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
    "| ?[\\p{P}\\p{S}]+[\\r\\n]*|" SPACES;

struct Family {
  std::vector<const char*> names;
  std::vector<const char*> patterns;  // applied in turn, each to the pieces of the one before
  bool nfc = false;
  bool ignore_merges = false;
};

const Family* find_family(const std::string& name, std::string& known) {
  static const std::vector<Family> families = {
      {{"gpt-2", "phi-2"}, {kGpt2}},
      {{"smollm", "starcoder", "refact", "command-r", "codeshell"}, {kEachNumber, kGpt2}},
      {{"llama-bpe", "llama3", "llama-v3", "falcon3"}, {kLlama3}, false, true},
      {{"dbrx", "smaug-bpe"}, {kLlama3}},
      {{"qwen2", "deepseek-r1-qwen", "megrez"}, {kQwen2}, true},
      {{"tekken"}, {kTekken}, false, true},
      {{"gpt-4o", "llama4"}, {kGpt4o}},
      {{"seed-coder"}, {kSeedCoder}},
      {{"deepseek-llm"},
       {kEachLineEnd, kDeepSeekLetters, kDeepSeekPunctuation, SPACE "+$", kHanAndHangul, kEachNumber}},
      {{"deepseek-coder"}, {kEachLineEnd, SPACE "?\\p{L}+", SPACE "?\\p{P}+", kHanAndHangul, kEachNumber}},
      {{"deepseek-v3"},
       {"\\p{N}{1,3}", "[\\x{4E00}-\\x{9FA5}\\x{3040}-\\x{309F}\\x{30A0}-\\x{30FF}]+", kDeepSeekV3}},
  };
  for (const Family& family : families) {
    for (const char* one : family.names) {
      if (name == one) return &family;
      known += known.empty() ? "" : ", ";
      known += one;
    }
  }
  return nullptr;
}

struct CodeFree {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct ContextFree {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};
struct DataFree {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};

// A pattern of tokenizer.json with its \\s and \\S spelt out, inside character classes or not.
std::string with_python_space(const std::string& pattern) {
  std::string out;
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char escaped = pattern[++i];
      if (escaped == 's') {
        out += in_class ? SPACE_SET : SPACE;
      } else if (escaped == 'S' && !in_class) {
        out += NOT_SPACE;
      } else {
        out += c;
        out += escaped;
      }
      continue;
    }
    if (c == '[') in_class = true;
    if (c == ']') in_class = false;
    out += c;
  }
  return out;
}

std::string pcre2_message(int code) {
  PCRE2_UCHAR buffer[160] = {};
  pcre2_get_error_message(code, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

}  // namespace

struct PreTokenizer::Impl {
  std::string name;
  std::vector<std::unique_ptr<pcre2_code, CodeFree>> stages;
  std::unique_ptr<pcre2_match_context, ContextFree> context;
  bool nfc = false;
  bool ignore_merges = false;

  Status add_stage(const std::string& pattern) {
    if (!context) {
      context.reset(pcre2_match_context_create(nullptr));
      if (!context) return internal_error("no memory for the pre-tokenizer");
      pcre2_set_match_limit(context.get(), 100'000'000);
      pcre2_set_heap_limit(context.get(), 64 * 1024);  // KiB
    }
    int error = 0;
    PCRE2_SIZE offset = 0;
    pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                     PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &offset, nullptr);
    if (code == nullptr) {
      return invalid_argument("the pre-tokenizer's pattern " + in_quotes(pattern) + " does not compile: " + pcre2_message(error));
    }
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // where there is no JIT the interpreter does it
    stages.emplace_back(code);
    return {};
  }

  int match(const pcre2_code* code, std::string_view text, std::size_t from, pcre2_match_data* data) const {
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    const int rc = pcre2_match(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK, data, context.get());
    if (rc != PCRE2_ERROR_JIT_STACKLIMIT) return rc;
    return pcre2_match(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data, context.get());
  }

  // Matches and what lies between them are pieces. The piece is the whole subject: look-ahead stops at its end.
  Status split_one(const pcre2_code* code, pcre2_match_data* data, std::string_view text,
                   std::vector<std::string_view>& out) const {
    std::size_t at = 0;
    while (at < text.size()) {
      const int rc = match(code, text, at, data);
      if (rc == PCRE2_ERROR_NOMATCH) break;
      if (rc < 0) {
        return invalid_argument("the text can't be split for the \"" + name + "\" tokenizer: " + pcre2_message(rc) +
                                "; shorten its runs of equal characters");
      }
      const PCRE2_SIZE* range = pcre2_get_ovector_pointer(data);
      if (range[1] <= at || range[0] == range[1]) break;  // a pattern that matches nothing splits nothing more
      if (range[0] > at) out.push_back(text.substr(at, range[0] - at));
      out.push_back(text.substr(range[0], range[1] - range[0]));
      at = range[1];
    }
    if (at < text.size()) out.push_back(text.substr(at));
    return {};
  }
};

PreTokenizer::PreTokenizer(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
PreTokenizer::~PreTokenizer() = default;

Result<std::unique_ptr<const PreTokenizer>> PreTokenizer::create(const std::string& name) {
  if (name.empty()) {
    return invalid_argument(
        "the model file names no pre-tokenizer (tokenizer.ggml.pre), so its words can't be split as it was trained: make "
        "the file again with a present-day converter");
  }
  std::string known;
  const Family* family = find_family(name, known);
  if (family == nullptr) {
    return invalid_argument("the model file names the pre-tokenizer \"" + name + "\", which is unknown; known are " + known);
  }
  auto impl = std::make_unique<Impl>();
  impl->name = name;
  impl->nfc = family->nfc;
  impl->ignore_merges = family->ignore_merges;
  for (const char* pattern : family->patterns) {
    const Status added = impl->add_stage(pattern);
    if (!added.ok()) return internal_error("the pattern of \"" + name + "\": " + added.message());
  }
  return std::unique_ptr<const PreTokenizer>(new PreTokenizer(std::move(impl)));
}

Result<std::unique_ptr<const PreTokenizer>> PreTokenizer::of_patterns(const std::vector<std::string>& patterns) {
  auto impl = std::make_unique<Impl>();
  impl->name = "own";
  for (const std::string& pattern : patterns) SLUICE_RETURN_IF_ERROR(impl->add_stage(with_python_space(pattern)));
  return std::unique_ptr<const PreTokenizer>(new PreTokenizer(std::move(impl)));
}

bool PreTokenizer::nfc() const { return impl_->nfc; }
bool PreTokenizer::ignore_merges() const { return impl_->ignore_merges; }

Status PreTokenizer::split(std::string_view text, std::vector<std::string_view>& pieces) const {
  std::unique_ptr<pcre2_match_data, DataFree> data(pcre2_match_data_create(1, nullptr));
  if (!data) return internal_error("no memory to split text");
  std::vector<std::string_view> current = {text};
  std::vector<std::string_view> next;
  for (const auto& stage : impl_->stages) {
    next.clear();
    for (const std::string_view piece : current) {
      SLUICE_RETURN_IF_ERROR(impl_->split_one(stage.get(), data.get(), piece, next));
    }
    current.swap(next);
  }
  if (!text.empty()) pieces.insert(pieces.end(), current.begin(), current.end());
  return {};
}

}  // namespace sluice
