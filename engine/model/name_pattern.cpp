// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/name_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <memory>

namespace sluice {
namespace {

constexpr std::uint32_t kMatchLimit = 100000;

struct Free {
  void operator()(pcre2_code* p) const { pcre2_code_free(p); }
  void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
  void operator()(pcre2_match_context* p) const { pcre2_match_context_free(p); }
};

PCRE2_SPTR text(const std::string& s) { return reinterpret_cast<PCRE2_SPTR>(s.data()); }

}  // namespace

Result<bool> matches_whole(const std::string& pattern, const std::string& name) {
  int error = 0;
  PCRE2_SIZE at = 0;
  const std::unique_ptr<pcre2_code, Free> code(
      pcre2_compile(text(pattern), pattern.size(), PCRE2_ANCHORED | PCRE2_ENDANCHORED, &error, &at, nullptr));
  if (code == nullptr) {
    return invalid_argument("\"" + pattern + "\" is not a regular expression (at character " + std::to_string(at) + ")");
  }
  const std::unique_ptr<pcre2_match_data, Free> match(pcre2_match_data_create_from_pattern(code.get(), nullptr));
  const std::unique_ptr<pcre2_match_context, Free> context(pcre2_match_context_create(nullptr));
  pcre2_set_match_limit(context.get(), kMatchLimit);
  const int rc = pcre2_match(code.get(), text(name), name.size(), 0, 0, match.get(), context.get());
  if (rc == PCRE2_ERROR_NOMATCH) return false;
  if (rc < 0) return invalid_argument("\"" + pattern + "\" takes too long to match \"" + name + "\"");
  return true;
}

}  // namespace sluice
