// SPDX-License-Identifier: GPL-3.0-or-later
#include "http/guard.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

namespace sluice {
namespace {

// "example.org:80" -> "example.org", "[::1]:80" -> "::1".
std::string_view without_port(std::string_view host) {
  if (!host.empty() && host.front() == '[') {
    const auto end = host.find(']');
    return end == std::string_view::npos ? host : host.substr(1, end - 1);
  }
  const auto colon = host.rfind(':');
  return colon == std::string_view::npos || host.find(':') != colon ? host : host.substr(0, colon);
}

bool is_ip_literal(std::string_view host) {
  const std::string text(host);
  in6_addr address{};
  return inet_pton(AF_INET, text.c_str(), &address) == 1 || inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

std::string own_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "";
}

// Every byte is looked at whatever the first difference is.
bool equal_constant_time(const Sha256Digest& a, const Sha256Digest& b) {
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

Sha256Digest digest_of(std::string_view text) {
  Sha256 hash;
  hash.update(text);
  return hash.digest();
}

constexpr std::string_view kClientPrefix = "client:", kAdminPrefix = "admin:";

std::string_view presented_key(const HttpRequest& request) {
  const std::string_view authorization = request.header("Authorization");
  constexpr std::string_view kBearer = "Bearer ";
  if (authorization.size() > kBearer.size() && same_name(authorization.substr(0, kBearer.size()), kBearer)) {
    return authorization.substr(kBearer.size());
  }
  const std::string_view x_api_key = request.header("x-api-key");
  return x_api_key.empty() ? request.header("api-key") : x_api_key;
}

std::optional<ApiError> check_framing(const HttpRequest& request, std::size_t max_body, BodyFraming* framing) {
  const std::size_t lengths = request.header_count("Content-Length");
  const std::size_t encodings = request.header_count("Transfer-Encoding");
  if (encodings > 0) {
    if (encodings > 1 || lengths > 0 || !same_name(request.header("Transfer-Encoding"), "chunked")) {
      return make_error(400, "invalid_value", "Transfer-Encoding must be a single \"chunked\", without Content-Length");
    }
    framing->chunked = true;
    return std::nullopt;
  }
  if (lengths > 1) return make_error(400, "invalid_value", "Content-Length is given more than once");
  if (lengths == 0) return std::nullopt;
  const std::string_view text = request.header("Content-Length");
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), framing->length);
  if (failure == std::errc::result_out_of_range || (failure == std::errc() && framing->length > max_body)) {
    return make_error(413, "request_too_large", "The request body is larger than " + std::to_string(max_body) + " bytes");
  }
  if (failure != std::errc() || end != text.data() + text.size()) {
    return make_error(400, "invalid_value", "Content-Length is not a number");
  }
  return std::nullopt;
}

}  // namespace

bool is_loopback_host(std::string_view host) {
  if (same_name(host, "localhost") || host == "::1") return true;
  return is_ip_literal(host) && host.substr(0, 4) == "127.";
}

std::string_view api_key_text(std::string_view line) {
  for (const std::string_view prefix : {kClientPrefix, kAdminPrefix}) {
    if (line.substr(0, prefix.size()) == prefix) return line.substr(prefix.size());
  }
  return line;
}

Status check_guard_options(const std::vector<std::string>& api_keys, const std::vector<std::string>& cors_origins) {
  for (std::size_t i = 0; i < api_keys.size(); ++i) {
    if (api_key_text(api_keys[i]).empty()) return invalid_argument("API key number " + std::to_string(i + 1) + " is empty");
  }
  for (const std::string& origin : cors_origins) {
    const auto colon = origin.find("://");
    const std::string scheme = origin.substr(0, colon == std::string::npos ? 0 : colon);
    if ((scheme == "http" || scheme == "https") && origin.size() > colon + 3 && origin.find('/', colon + 3) == std::string::npos) {
      continue;
    }
    return invalid_argument("\"" + origin + "\" is no origin of a page: write it as https://app.example or http://localhost:3000");
  }
  return Status();
}

Guard::Guard(const GuardOptions& options) : options_(options) {
  for (const std::string& key : options.api_keys) {
    const bool client = key.compare(0, kClientPrefix.size(), kClientPrefix) == 0;
    keys_.push_back({digest_of(api_key_text(key)), !client});
  }
}

bool Guard::origin_allowed(std::string_view origin) const {
  for (const std::string& allowed : options_.cors_origins) {
    if (same_name(origin, allowed)) return true;
  }
  return false;
}

HttpReply Guard::preflight(const HttpRequest& request, Scope scope, const std::string& methods) const {
  const std::string_view origin = request.header("Origin");
  if (!origin.empty() && (scope == Scope::kAdmin || !origin_allowed(origin))) {
    return error_reply(make_error(403, "origin_not_allowed", "Pages of that origin may not use this route"));
  }
  HttpReply reply;
  reply.status = 204;
  reply.headers.emplace_back("Allow", methods);
  if (origin.empty()) return reply;
  const std::string_view method = request.header("Access-Control-Request-Method");
  const std::string_view headers = request.header("Access-Control-Request-Headers");
  if (!method.empty()) reply.headers.emplace_back("Access-Control-Allow-Methods", method);
  if (!headers.empty()) reply.headers.emplace_back("Access-Control-Allow-Headers", headers);
  reply.headers.emplace_back("Access-Control-Max-Age", "600");
  return reply;
}

void Guard::add_cors(const HttpRequest& request, std::optional<Scope> scope, HttpReply* reply) const {
  if (scope != Scope::kClient) return;
  reply->headers.emplace_back("Vary", "Origin");
  const std::string_view origin = request.header("Origin");
  if (!origin_allowed(origin)) return;
  reply->headers.emplace_back("Access-Control-Allow-Origin", origin);
  reply->headers.emplace_back("Access-Control-Expose-Headers",
                              "X-Sluice-Record-Id, X-Sluice-Adapter, x-reef-agent-record-id, x-request-id, Retry-After, "
                              "retry-after-ms, x-should-retry");
}

bool Guard::host_allowed(std::string_view host_header) const {
  const std::string_view host = without_port(host_header);
  if (is_loopback_host(host) || same_name(host, options_.host)) return true;
  for (const std::string& allowed : options_.allowed_hosts) {
    if (same_name(host, allowed)) return true;
  }
  // Beyond loopback a key is needed anyway, so the names under which this machine is reached are fine.
  return !is_loopback_host(options_.host) && (is_ip_literal(host) || same_name(host, own_name()));
}

std::optional<ApiError> Guard::check_head(const HttpRequest& request, BodyFraming* framing) const {
  std::size_t bytes = 0;
  for (const auto& [name, value] : request.headers) bytes += name.size() + value.size() + 4;
  if (request.headers.size() > options_.max_header_lines || bytes > options_.max_header_bytes) {
    return make_error(431, "header_too_large", "The request has too many or too long headers");
  }
  if (auto error = check_framing(request, options_.max_body_bytes, framing)) return error;
  if (!request.header("Content-Encoding").empty()) {
    return make_error(415, "unsupported_media_type", "Compressed request bodies are not accepted: send the JSON as it is");
  }
  if (request.header_count("Host") > 1) return make_error(400, "invalid_value", "Host is given more than once");
  if (request.header_count("Host") == 0) {
    if (request.version != "HTTP/1.0") return make_error(400, "invalid_value", "The Host header is missing");
  } else if (!host_allowed(request.header("Host"))) {
    return make_error(403, "host_not_allowed", "This server does not answer to that Host name");
  }
  return std::nullopt;
}

std::optional<ApiError> Guard::check_access(const HttpRequest& request, Scope scope) const {
  if (scope == Scope::kOpen) return std::nullopt;
  if (!keys_.empty()) {
    const std::string_view presented = presented_key(request);
    const Sha256Digest digest = digest_of(presented);
    bool known = false, admin = false;
    for (const Key& key : keys_) {
      const bool same = equal_constant_time(key.digest, digest);
      known |= same;
      admin |= same && key.admin;
    }
    if (presented.empty() || !known) {
      return make_error(401, "invalid_api_key", "Send a valid API key as \"Authorization: Bearer KEY\"");
    }
    if (scope == Scope::kAdmin && !admin) {
      return make_error(403, "insufficient_scope", "This API key may only be used for completions and feedback");
    }
  }
  // A page in a browser must not steer the engine: such requests carry an Origin.
  const std::string_view origin = request.header("Origin");
  if (scope == Scope::kAdmin && !origin.empty() && !origin_allowed(origin)) {
    return make_error(403, "origin_not_allowed", "Requests of web pages may not use this route");
  }
  return std::nullopt;
}

}  // namespace sluice
