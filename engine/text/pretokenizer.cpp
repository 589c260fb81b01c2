// SPDX-License-Identifier: GPL-3.0-or-later
#include "text/pretokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>

namespace sluice {
namespace {

// Unicode's White_Space. PCRE2's own \s under UCP also takes U+180E, which lost that property in Unicode 6.3.
#define SPACE_SET "\\t-\\r \\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}"
#define SPACE "[" SPACE_SET "]"
#define NOT_SPACE "[^" SPACE_SET "]"

constexpr const char* kEachNumber = "\\p{N}";

constexpr const char* kGpt2 =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" SPACE_SET "\\p{L}\\p{N}]+|" SPACE "+(?!" NOT_SPACE ")|" SPACE "+";

// Llama 3 and Qwen2 differ in how many digits stay together.
#define LLAMA_LIKE(numbers)                                                                                   \
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" numbers "| ?[^" SPACE_SET "\\p{L}\\p{N}]+[\\r\\n]*|" SPACE \
  "*[\\r\\n]+|" SPACE "+(?!" NOT_SPACE ")|" SPACE "+"
constexpr const char* kLlama3 = LLAMA_LIKE("\\p{N}{1,3}");
constexpr const char* kQwen2 = LLAMA_LIKE("\\p{N}");

struct Family {
  const char* name;
  std::vector<const char*> patterns;  // applied in turn, each to the pieces of the one before
  bool nfc = false;
  bool ignore_merges = false;
};

const Family* find_family(const std::string& name, std::string& known) {
  static const std::vector<Family> families = {
      {"gpt-2", {kGpt2}},
      {"phi-2", {kGpt2}},
      {"smollm", {kEachNumber, kGpt2}},
      {"starcoder", {kEachNumber, kGpt2}},
      {"llama-bpe", {kLlama3}, false, true},
      {"llama3", {kLlama3}, false, true},
      {"llama-v3", {kLlama3}, false, true},
      {"qwen2", {kQwen2}, true},
      {"deepseek-r1-qwen", {kQwen2}, true},
  };
  for (const Family& family : families) {
    if (name == family.name) return &family;
    known += known.empty() ? "" : ", ";
    known += family.name;
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
      if (range[1] <= at) break;  // none of the patterns matches nothing; an endless loop must not hang on that
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
  std::string known;
  const Family* family = find_family(name, known);
  if (family == nullptr) {
    return invalid_argument("the model file names the pre-tokenizer \"" + name + "\", which is unknown; known are " + known);
  }
  auto impl = std::make_unique<Impl>();
  impl->name = name;
  impl->nfc = family->nfc;
  impl->ignore_merges = family->ignore_merges;
  impl->context.reset(pcre2_match_context_create(nullptr));
  if (!impl->context) return internal_error("no memory for the pre-tokenizer");
  pcre2_set_match_limit(impl->context.get(), 100'000'000);
  pcre2_set_heap_limit(impl->context.get(), 64 * 1024);  // KiB
  for (const char* pattern : family->patterns) {
    int error = 0;
    PCRE2_SIZE offset = 0;
    pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern), PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP,
                                     &error, &offset, nullptr);
    if (code == nullptr) return internal_error("the pattern of \"" + name + "\" does not compile: " + pcre2_message(error));
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // where there is no JIT the interpreter does it
    impl->stages.emplace_back(code);
  }
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
