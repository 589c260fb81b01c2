// SPDX-License-Identifier: GPL-3.0-or-later
#include "text/byte_alphabet.h"

#include <array>

#include "text/utf8.h"

namespace sluice {
namespace {

struct Table {
  std::array<char32_t, 256> to_char{};
  std::array<int, 0x144> to_byte{};  // -1 = not of the alphabet

  Table() {
    to_byte.fill(-1);
    char32_t next = 0x100;
    for (int b = 0; b < 256; ++b) {
      const bool printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      const char32_t c = printable ? static_cast<char32_t>(b) : next++;
      to_char[static_cast<std::size_t>(b)] = c;
      to_byte[c] = b;
    }
  }
};

const Table& table() {
  static const Table instance;
  return instance;
}

}  // namespace

std::string bytes_to_alphabet(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) append_utf8(out, table().to_char[static_cast<unsigned char>(c)]);
  return out;
}

bool alphabet_to_bytes(std::string_view text, std::string& bytes) {
  bytes.clear();
  while (!text.empty()) {
    const Utf8Step step = next_code_point(text);
    if (!step.valid || step.code_point >= table().to_byte.size() || table().to_byte[step.code_point] < 0) return false;
    bytes.push_back(static_cast<char>(table().to_byte[step.code_point]));
    text.remove_prefix(step.length);
  }
  return true;
}

}  // namespace sluice
