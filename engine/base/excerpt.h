// SPDX-License-Identifier: GPL-3.0-or-later
// What a message may repeat of a text that somebody else chose the length of. Pure, any thread.
#pragma once

#include <string>
#include <string_view>

namespace sluice {

// The text, or its first 64 bytes or so (cut between UTF-8 characters) and "...".
inline std::string excerpt(std::string_view text) {
  std::size_t most = 64;
  if (text.size() <= most) return std::string(text);
  while (most > 60 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  return std::string(text.substr(0, most)) + "...";
}

}  // namespace sluice
