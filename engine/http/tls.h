// SPDX-License-Identifier: GPL-3.0-or-later
// TLS of the server, over OpenSSL: a certificate and its key, and a session per connection. The context is immutable and
// shared by all threads; a session is used by the thread of its connection, over a non-blocking socket.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/result.h"

namespace sluice {

class TlsSession {
 public:
  // kWantRead, kWantWrite: nothing moved; call again once the socket is ready for that.
  enum class Want { kNothing, kRead, kWrite, kClosed };
  struct Moved {
    std::size_t bytes = 0;
    Want want = Want::kNothing;
  };
  virtual ~TlsSession() = default;
  virtual Moved read(char* to, std::size_t size) = 0;        // does the handshake first, where it is not done
  virtual Moved write(const char* from, std::size_t size) = 0;
  virtual bool pending() const = 0;                          // decrypted bytes wait to be read
  virtual void shut_down() = 0;                              // says that nothing follows; does not wait
};

class TlsContext {
 public:
  // PEM files: certificate chain, private key. kInvalidArgument names the file and why it can't be used.
  static Result<std::unique_ptr<TlsContext>> load(const std::string& certificate_file, const std::string& key_file);
  virtual ~TlsContext() = default;
  virtual std::unique_ptr<TlsSession> accept(int fd) const = 0;  // null: out of memory
};

}  // namespace sluice
