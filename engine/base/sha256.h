// SPDX-License-Identifier: GPL-3.0-or-later
// SHA-256 (FIPS 180-4): content hashes of adapter files and the hash chain of release evidence. A Sha256 belongs to one
// thread; the free functions are thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sluice {

using Sha256Digest = std::array<std::uint8_t, 32>;

// Feeds bytes in any number of pieces. digest() ends the message: update() afterwards is a programmer error.
class Sha256 {
 public:
  void update(std::span<const std::byte> bytes);
  void update(std::string_view text) { update(std::as_bytes(std::span(text))); }
  Sha256Digest digest();

 private:
  void compress(const std::uint8_t* block);

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::uint8_t, 64> pending_{};
  std::size_t pending_size_ = 0;
  std::uint64_t length_ = 0;  // bytes so far
};

std::string to_hex(const Sha256Digest& digest);  // 64 lower-case digits

std::string sha256(std::span<const std::byte> bytes);  // as hex
std::string sha256(std::string_view text);             // as hex

// Reads the file in pieces. kNotFound when it can't be opened, kUnavailable when reading fails.
Result<std::string> sha256_file(const std::string& path);  // as hex

}  // namespace sluice
