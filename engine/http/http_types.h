// SPDX-License-Identifier: GPL-3.0-or-later
// Requests and replies as the handlers of engine/http see them, free of the HTTP library. Values, used by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace sluice {

using HeaderList = std::vector<std::pair<std::string, std::string>>;

// Equal whatever the case of ASCII letters, as names of headers, hosts and schemes are.
bool same_name(std::string_view a, std::string_view b);

// A whole number in decimal digits, and nothing else.
std::optional<std::int64_t> parse_number(std::string_view text);

struct HttpRequest {
  std::string method;             // HEAD arrives as GET
  std::string path;               // decoded, repeated slashes collapsed, no query
  std::map<std::string, std::string> query;
  std::string version;            // "HTTP/1.1"
  HeaderList headers;             // in the order sent
  std::string body;
  std::string remote_addr;        // of the socket
  bool from_editor = false;       // came in on a port where editors of RLinf send
  std::function<bool()> gone;     // has the client closed its side?
  std::function<void()> hang_up;  // breaks the connection off, from any thread, until the answer is written

  // Value of the first header of that name, whatever its case; empty when there is none.
  std::string_view header(std::string_view name) const;
  std::size_t header_count(std::string_view name) const;
};

// Where a stream is written. False from write(): the client is gone or the server stops; nothing more is to be written.
class StreamSink {
 public:
  virtual ~StreamSink() = default;
  virtual bool write(std::string_view bytes) = 0;
  virtual bool alive() const = 0;  // would write() make sense?
};

struct HttpReply {
  int status = 200;
  std::string content_type = "application/json";
  HeaderList headers;
  std::string body;
  // When set, `body` is not used: called once, writes the whole answer.
  std::function<void(StreamSink&)> stream;
};

// An error of serving.md §1.8. `type` follows from the status.
struct ApiError {
  int status = 500;
  std::string code;               // "" = null
  std::string message;
  std::string param;              // "" = null
  int retry_after_s = 0;          // > 0: Retry-After and retry-after-ms
  HeaderList numbers;             // further members of the error object, whole numbers
};

ApiError make_error(int status, const std::string& code, const std::string& message, const std::string& param = "");
// 400: the value of a field, header or query number can't be taken.
ApiError bad_value(const std::string& param, const std::string& message);
std::string error_json(const ApiError& error);  // {"error":{...}}
HttpReply error_reply(const ApiError& error);
// The usual mapping of a failed Status. `conflict_code`: what a kConflict means on this route.
ApiError api_error(const Status& status, const std::string& conflict_code = "");

}  // namespace sluice
