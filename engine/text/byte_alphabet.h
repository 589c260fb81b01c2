// SPDX-License-Identifier: GPL-3.0-or-later
// GPT-2's way to write bytes as visible characters: printable Latin-1 stands for itself, the other 68 bytes for U+0100
// and up, in order. Vocabularies of byte-level BPE store tokens so. Pure functions, any thread.
#pragma once

#include <string>
#include <string_view>

namespace sluice {

std::string bytes_to_alphabet(std::string_view bytes);
// False, with `bytes` unspecified, when a character is not of the alphabet.
bool alphabet_to_bytes(std::string_view text, std::string& bytes);

}  // namespace sluice
