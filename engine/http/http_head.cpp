// SPDX-License-Identifier: GPL-3.0-or-later
#include "http/http_head.h"

#include <algorithm>

#include "base/excerpt.h"

namespace sluice {
namespace {

constexpr std::size_t kMaxTarget = 8 << 10;

ApiError refuse(const std::string& message) { return make_error(400, "invalid_value", message); }

bool is_token_char(char c) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) return true;
  return c != '\0' && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool is_token(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), is_token_char); }

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t') || byte == 0x7f;
}

std::string_view trimmed(std::string_view text) {
  const auto from = text.find_first_not_of(" \t");
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(" \t") - from + 1);
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// Nothing when an escape is broken or means NUL.
std::optional<std::string> percent_decoded(std::string_view text, bool plus_is_space) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += plus_is_space && text[i] == '+' ? ' ' : text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0 || (high == 0 && low == 0)) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

std::string collapse_slashes(std::string_view path) {
  std::string out;
  for (const char c : path) {
    if (c != '/' || out.empty() || out.back() != '/') out += c;
  }
  return out;
}

bool read_query_string(std::string_view text, std::map<std::string, std::string>* query) {
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(text.size(), pair.size() + 1));
    if (pair.empty()) continue;
    const auto equals = std::min(pair.find('='), pair.size());
    const auto name = percent_decoded(pair.substr(0, equals), true);
    const auto value = percent_decoded(pair.substr(std::min(pair.size(), equals + 1)), true);
    if (!name || !value) return false;
    query->emplace(*name, *value);
  }
  return true;
}

std::optional<ApiError> read_target(std::string_view target, std::string* authority, HttpRequest* request) {
  if (target.size() > kMaxTarget) return make_error(414, "request_too_large", "The request's address is too long");
  for (const char c : target) {
    if (c <= 0x20 || c == 0x7f || c == '#') return refuse("The request's address holds a character that must be escaped");
  }
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!same_name(target.substr(0, scheme.size()), scheme)) continue;
    target.remove_prefix(scheme.size());
    const auto end = std::min(target.find_first_of("/?"), target.size());
    *authority = std::string(target.substr(0, end));
    target.remove_prefix(end);
    if (authority->empty()) return refuse("The request's address names no host");
    if (target.empty()) target = "/";
  }
  if (target == "*" && request->method == "OPTIONS") {
    request->path = "*";
    return std::nullopt;
  }
  if (target.front() != '/') return refuse("The request's address must begin with /");
  const auto question = std::min(target.find('?'), target.size());
  const auto path = percent_decoded(collapse_slashes(target.substr(0, question)), false);
  if (!path || !read_query_string(target.substr(std::min(target.size(), question + 1)), &request->query)) {
    return refuse("The request's address holds a broken % escape");
  }
  request->path = *path;
  return std::nullopt;
}

std::optional<ApiError> read_request_line(std::string_view line, std::string* authority, HttpRequest* request) {
  const auto first = line.find(' ');
  const auto last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) {
    return refuse("The request line must be \"METHOD /path HTTP/1.1\"");
  }
  const std::string_view target = line.substr(first + 1, last - first - 1);
  request->method = std::string(line.substr(0, first));
  request->version = std::string(line.substr(last + 1));
  if (!is_token(request->method) || target.empty()) return refuse("The request line must be \"METHOD /path HTTP/1.1\"");
  if (request->version != "HTTP/1.1" && request->version != "HTTP/1.0") {
    return refuse("Only HTTP/1.1 and HTTP/1.0 are spoken here");
  }
  return read_target(target, authority, request);
}

std::optional<ApiError> read_header_line(std::string_view line, HttpRequest* request) {
  if (line.front() == ' ' || line.front() == '\t') return refuse("A header is folded over two lines: send it on one");
  const auto colon = line.find(':');
  if (colon == std::string_view::npos) return refuse("A header line has no colon");
  const std::string_view name = line.substr(0, colon);
  if (!is_token(name)) return refuse("A header's name is empty or holds a space or another character that is not allowed");
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (std::any_of(value.begin(), value.end(), is_control)) {
    return refuse("The header " + excerpt(name) + " holds a control character");
  }
  request->headers.emplace_back(name, value);
  return std::nullopt;
}

// The next line without its CRLF; nothing when a bare CR or LF comes first.
std::optional<std::string_view> take_line(std::string_view* head) {
  const auto end = head->find_first_of("\r\n");
  if (end == std::string_view::npos || head->substr(end, 2) != "\r\n") return std::nullopt;
  const std::string_view line = head->substr(0, end);
  head->remove_prefix(end + 2);
  return line;
}

const char* reason_phrase(int status) {
  switch (status) {
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 204: return "No Content";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 409: return "Conflict";
    case 413: return "Payload Too Large";
    case 414: return "URI Too Long";
    case 415: return "Unsupported Media Type";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 503: return "Service Unavailable";
    default: return status < 400 ? "OK" : "Error";
  }
}

}  // namespace

std::optional<ApiError> parse_request_head(std::string_view head, HttpRequest* request) {
  if (head.find('\0') != std::string_view::npos) return refuse("The request's head holds a NUL byte");
  const auto broken = [] { return refuse("A line of the request's head does not end in CR LF"); };
  const auto first = take_line(&head);
  if (!first) return broken();
  std::string authority;
  if (auto error = read_request_line(*first, &authority, request)) return error;
  while (true) {
    const auto line = take_line(&head);
    if (!line) return broken();
    if (line->empty()) break;
    if (auto error = read_header_line(*line, request)) return error;
  }
  if (!authority.empty() && request->header("Host") != authority) {
    return refuse("The request's address and its Host header name two hosts");
  }
  return std::nullopt;
}

bool wants_keep_alive(const HttpRequest& request) {
  bool close = false, keep = false;
  for (const auto& [name, value] : request.headers) {
    if (!same_name(name, "Connection")) continue;
    std::string_view rest = value;
    while (!rest.empty()) {
      const std::string_view item = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), item.size() + 1));
      close |= same_name(trimmed(item), "close");
      keep |= same_name(trimmed(item), "keep-alive");
    }
  }
  return !close && (keep || request.version == "HTTP/1.1");
}

std::string answer_head(const HttpReply& reply, AnswerFraming framing, std::size_t length, bool keep_alive) {
  std::string out = "HTTP/1.1 " + std::to_string(reply.status) + " " + reason_phrase(reply.status) + "\r\n";
  for (const auto& [name, value] : reply.headers) out += name + ": " + value + "\r\n";
  if (reply.status != 204) {
    out += "Content-Type: " + reply.content_type + "\r\n";
    if (framing == AnswerFraming::kLength) out += "Content-Length: " + std::to_string(length) + "\r\n";
    if (framing == AnswerFraming::kChunked) out += "Transfer-Encoding: chunked\r\n";
  }
  out += keep_alive ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
  return out;
}

}  // namespace sluice
