// SPDX-License-Identifier: GPL-3.0-or-later
// The strict reading of a request's head: what two programs could read differently is refused (serving.md §1.1).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http/http_head.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

std::optional<ApiError> parse(const std::string& head, HttpRequest* request) { return parse_request_head(head, request); }

std::string refusal(const std::string& head) {
  HttpRequest request;
  const auto error = parse(head, &request);
  return error ? error->message : "";
}

TEST(HttpHead, ReadsLineHeadersAndQuery) {
  HttpRequest r;
  ASSERT_FALSE(parse("GET //v1///models/a%2Fb?x=1+2&y=%41&z&x=9 HTTP/1.1\r\nHost: h\r\nX-A:  b c \t\r\nx-a:\r\n\r\n", &r));
  EXPECT_EQ(r.method, "GET");
  EXPECT_EQ(r.path, "/v1/models/a/b");
  EXPECT_EQ(r.version, "HTTP/1.1");
  EXPECT_EQ(r.query["x"], "1 2");
  EXPECT_EQ(r.query["y"], "A");
  EXPECT_EQ(r.query["z"], "");
  EXPECT_EQ(r.header("X-a"), "b c");
  EXPECT_EQ(r.header_count("x-A"), 2u);
}

TEST(HttpHead, AbsoluteAddressMustNameTheHost) {
  HttpRequest r;
  ASSERT_FALSE(parse("GET http://localhost:8080/health?a=b HTTP/1.1\r\nHost: localhost:8080\r\n\r\n", &r));
  EXPECT_EQ(r.path, "/health");
  EXPECT_THAT(refusal("GET http://evil/health HTTP/1.1\r\nHost: localhost\r\n\r\n"), HasSubstr("two hosts"));
  EXPECT_THAT(refusal("GET http:///health HTTP/1.1\r\nHost: localhost\r\n\r\n"), HasSubstr("names no host"));
}

TEST(HttpHead, WhatHidesARequestInAnotherIsRefused) {
  const std::string line = "GET / HTTP/1.1\r\n";
  const std::pair<std::string, const char*> cases[] = {
      {"GET / HTTP/1.1\nHost: a\r\n\r\n", "CR LF"},
      {line + "Host: a\n\r\n", "CR LF"},
      {line + "Host: a\rb\r\n\r\n", "CR LF"},
      {line + std::string("Host: a\0b\r\n\r\n", 13), "NUL"},
      {line + "Host: a\r\n folded\r\n\r\n", "folded"},
      {line + "Host: a\r\n\tfolded\r\n\r\n", "folded"},
      {line + "Transfer-Encoding : chunked\r\n\r\n", "space"},
      {line + ": empty\r\n\r\n", "empty"},
      {line + "no colon\r\n\r\n", "no colon"},
      {line + "X(y): a\r\n\r\n", "not allowed"},
      {line + "X: a\x01z\r\n\r\n", "control character"},
      {line + "X: a\x7fz\r\n\r\n", "control character"},
      {"GET  / HTTP/1.1 \r\n\r\n", "HTTP/1.1"},
      {"GET /\r\n\r\n", "METHOD"},
      {" GET / HTTP/1.1\r\n\r\n", "METHOD"},
      {"G(T / HTTP/1.1\r\n\r\n", "METHOD"},
      {"GET / HTTP/2.0\r\n\r\n", "HTTP/1.0"},
      {"GET / http/1.1\r\n\r\n", "HTTP/1.0"},
      {"GET models HTTP/1.1\r\n\r\n", "begin with /"},
      {"GET /a b HTTP/1.1\r\n\r\n", "escaped"},
      {"GET /a#b HTTP/1.1\r\n\r\n", "escaped"},
      {"GET /a\x80 HTTP/1.1\r\n\r\n", "escaped"},
      {"GET /%zz HTTP/1.1\r\n\r\n", "escape"},
      {"GET /%4 HTTP/1.1\r\n\r\n", "escape"},
      {"GET /%00 HTTP/1.1\r\n\r\n", "escape"},
      {"GET /?a=%0 HTTP/1.1\r\n\r\n", "escape"},
  };
  for (const auto& [head, part] : cases) EXPECT_THAT(refusal(head), HasSubstr(part)) << head;
}

TEST(HttpHead, EveryCutAndEveryByteIsHandled) {
  const std::string whole = "POST /v1/completions?a=b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n";
  for (std::size_t i = 0; i < whole.size(); ++i) {
    HttpRequest request;
    EXPECT_TRUE(parse(whole.substr(0, i), &request)) << i;
    for (int byte = 0; byte < 256; ++byte) {
      std::string changed = whole;
      changed[i] = static_cast<char>(byte);
      HttpRequest other;
      if (!parse(changed, &other)) continue;
      for (const auto& [name, value] : other.headers) {
        EXPECT_EQ(value.find_first_of(std::string_view("\r\n\0", 3)), std::string::npos);
        EXPECT_FALSE(name.empty());
      }
    }
  }
}

TEST(HttpHead, KeepAliveByVersionAndConnection) {
  const auto keeps = [](const std::string& version, const std::string& connection) {
    HttpRequest r;
    r.version = version;
    if (!connection.empty()) r.headers.emplace_back("connection", connection);
    return wants_keep_alive(r);
  };
  EXPECT_TRUE(keeps("HTTP/1.1", ""));
  EXPECT_FALSE(keeps("HTTP/1.1", "TE, Close"));
  EXPECT_FALSE(keeps("HTTP/1.0", ""));
  EXPECT_TRUE(keeps("HTTP/1.0", "Keep-Alive"));
  EXPECT_FALSE(keeps("HTTP/1.0", "keep-alive, close"));
}

}  // namespace
}  // namespace sluice
