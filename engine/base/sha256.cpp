// SPDX-License-Identifier: GPL-3.0-or-later
#include "base/sha256.h"

#include <openssl/evp.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <system_error>
#include <vector>

namespace sluice {
namespace {

// SHA-256 is in every build of OpenSSL; that one of its calls fails says that the library is broken.
void must(int done) {
  if (done == 1) return;
  std::fputs("OpenSSL can't compute SHA-256\n", stderr);
  std::abort();
}

}  // namespace

void Sha256::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  if (!context_) throw std::bad_alloc();
  must(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr));
}

void Sha256::update(std::span<const std::byte> bytes) { must(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size())); }

Sha256Digest Sha256::digest() {
  Sha256Digest out;
  unsigned int size = 0;
  must(EVP_DigestFinal_ex(context_.get(), out.data(), &size));
  return out;
}

std::string to_hex(const Sha256Digest& digest) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * digest.size());
  for (const std::uint8_t byte : digest) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

std::string sha256(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return to_hex(hash.digest());
}

std::string sha256(std::string_view text) { return sha256(std::as_bytes(std::span(text))); }

Result<std::string> sha256_file(const std::string& path) {
  const auto close = [](std::FILE* f) { std::fclose(f); };
  const std::unique_ptr<std::FILE, decltype(close)> file(std::fopen(path.c_str(), "rb"), close);
  if (!file) return not_found("can't open '" + path + "' to hash it: " + std::generic_category().message(errno));
  Sha256 hash;
  std::vector<std::byte> piece(1 << 16);
  std::size_t n = 0;
  while ((n = std::fread(piece.data(), 1, piece.size(), file.get())) > 0) hash.update(std::span(piece.data(), n));
  if (std::ferror(file.get())) {
    return unavailable("can't read '" + path + "' to hash it: " + std::generic_category().message(errno));
  }
  return to_hex(hash.digest());
}

}  // namespace sluice
