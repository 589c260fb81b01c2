// SPDX-License-Identifier: GPL-3.0-or-later
// SHA-256 (FIPS 180-4), computed by OpenSSL: content hashes of model and adapter files, and the hash chain of release
// evidence. A Sha256 belongs to one thread; the free functions are thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

struct evp_md_ctx_st;  // OpenSSL's EVP_MD_CTX

namespace sluice {

using Sha256Digest = std::array<std::uint8_t, 32>;

// Feeds bytes in any number of pieces. digest() ends the message: update() afterwards is a programmer error.
class Sha256 {
 public:
  Sha256();
  void update(std::span<const std::byte> bytes);
  void update(std::string_view text) { update(std::as_bytes(std::span(text))); }
  Sha256Digest digest();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

std::string to_hex(const Sha256Digest& digest);  // 64 lower-case digits

std::string sha256(std::span<const std::byte> bytes);  // as hex
std::string sha256(std::string_view text);             // as hex

// Reads the file in pieces. kNotFound when it can't be opened, kUnavailable when reading fails.
Result<std::string> sha256_file(const std::string& path);  // as hex

}  // namespace sluice
