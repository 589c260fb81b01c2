// SPDX-License-Identifier: GPL-3.0-or-later
#include "http/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

namespace sluice {
namespace {

std::string openssl_reason() {
  char text[256] = "unknown";
  if (const unsigned long code = ERR_get_error(); code != 0) ERR_error_string_n(code, text, sizeof text);
  ERR_clear_error();
  return text;
}

class OpenSslSession final : public TlsSession {
 public:
  explicit OpenSslSession(SSL* ssl) : ssl_(ssl) {}
  ~OpenSslSession() override { SSL_free(ssl_); }

  Moved read(char* to, std::size_t size) override {
    std::size_t got = 0;
    ERR_clear_error();
    const int ok = SSL_read_ex(ssl_, to, size, &got);  // before `got` is handed on
    return moved(ok, got);
  }
  Moved write(const char* from, std::size_t size) override {
    std::size_t sent = 0;
    ERR_clear_error();
    const int ok = SSL_write_ex(ssl_, from, size, &sent);
    return moved(ok, sent);
  }
  bool pending() const override { return SSL_pending(ssl_) > 0; }
  void shut_down() override {
    if (!broken_ && SSL_is_init_finished(ssl_)) SSL_shutdown(ssl_);
    ERR_clear_error();
  }

 private:
  Moved moved(int ok, std::size_t bytes) {
    if (ok == 1) return {bytes, Want::kNothing};
    switch (SSL_get_error(ssl_, ok)) {
      case SSL_ERROR_WANT_READ: return {0, Want::kRead};
      case SSL_ERROR_WANT_WRITE: return {0, Want::kWrite};
      case SSL_ERROR_ZERO_RETURN: return {0, Want::kClosed};
      default: broken_ = true; return {0, Want::kClosed};
    }
  }

  SSL* const ssl_;
  bool broken_ = false;
};

class OpenSslContext final : public TlsContext {
 public:
  explicit OpenSslContext(SSL_CTX* context) : context_(context) {}
  ~OpenSslContext() override { SSL_CTX_free(context_); }

  std::unique_ptr<TlsSession> accept(int fd) const override {
    SSL* ssl = SSL_new(context_);
    if (ssl == nullptr) return nullptr;
    SSL_set_fd(ssl, fd);
    SSL_set_accept_state(ssl);
    return std::make_unique<OpenSslSession>(ssl);
  }

 private:
  SSL_CTX* const context_;
};

}  // namespace

Result<std::unique_ptr<TlsContext>> TlsContext::load(const std::string& certificate_file, const std::string& key_file) {
  SSL_CTX* made = SSL_CTX_new(TLS_server_method());
  if (made == nullptr) return internal_error("TLS can't be set up: " + openssl_reason());
  auto context = std::make_unique<OpenSslContext>(made);
  SSL_CTX_set_min_proto_version(made, TLS1_2_VERSION);
  SSL_CTX_set_options(made, SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_NO_COMPRESSION);
  // A write that could not finish is repeated from a string that may have moved.
  SSL_CTX_set_mode(made, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (SSL_CTX_use_certificate_chain_file(made, certificate_file.c_str()) != 1) {
    return invalid_argument("The TLS certificate " + certificate_file + " can't be used: " + openssl_reason());
  }
  if (SSL_CTX_use_PrivateKey_file(made, key_file.c_str(), SSL_FILETYPE_PEM) != 1 || SSL_CTX_check_private_key(made) != 1) {
    return invalid_argument("The TLS key " + key_file + " can't be used with that certificate: " + openssl_reason());
  }
  return std::unique_ptr<TlsContext>(std::move(context));
}

}  // namespace sluice
