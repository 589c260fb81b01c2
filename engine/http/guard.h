// SPDX-License-Identifier: GPL-3.0-or-later
// Checks of a request's head before any of its body is read: framing that proxies and servers may understand differently,
// sizes, the Host, the API key. Immutable after construction; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/sha256.h"
#include "http/http_types.h"

namespace sluice {

struct GuardOptions {
  std::string host;                        // the address listened on
  std::vector<std::string> api_keys;
  std::vector<std::string> allowed_hosts;
  std::vector<std::string> cors_origins;
  std::size_t max_body_bytes = std::size_t{32} << 20;
  std::size_t max_header_lines = 64;
  std::size_t max_header_bytes = 16 << 10;
};

// Who may use a route: everyone, holders of any key, holders of a full key.
enum class Scope { kOpen, kClient, kAdmin };

// How the body is framed, once the guard has let a request pass.
struct BodyFraming {
  bool chunked = false;
  std::size_t length = 0;                  // when not chunked
};

bool is_loopback_host(std::string_view host);
// The key itself in a line of the key file: "client:KEY" and "admin:KEY" say what it may do, KEY alone is a full one.
std::string_view api_key_text(std::string_view line);
// kInvalidArgument names the key's place or the origin that can't be meant.
Status check_guard_options(const std::vector<std::string>& api_keys, const std::vector<std::string>& cors_origins);

class Guard {
 public:
  explicit Guard(const GuardOptions& options);

  // The first thing wrong with the head; the connection must be closed after answering it.
  std::optional<ApiError> check_head(const HttpRequest& request, BodyFraming* framing) const;
  // The API key against the route's scope, and on admin routes the Origin.
  std::optional<ApiError> check_access(const HttpRequest& request, Scope scope) const;
  // The answer to OPTIONS on a route: 204, with what a page of an allowed origin asks for where it may use the route.
  HttpReply preflight(const HttpRequest& request, Scope scope, const std::string& methods) const;
  // Lets a page of an allowed origin read the answer of a client route. `scope`: nothing for a route that does not exist.
  void add_cors(const HttpRequest& request, std::optional<Scope> scope, HttpReply* reply) const;

 private:
  bool host_allowed(std::string_view host_header) const;
  bool origin_allowed(std::string_view origin) const;

  struct Key {
    Sha256Digest digest;
    bool admin;
  };
  const GuardOptions options_;
  std::vector<Key> keys_;
};

}  // namespace sluice
