// SPDX-License-Identifier: GPL-3.0-or-later
// A blocking HTTP client for one server: GET and POST with deadlines, cancelling, a cap on the answer, and server-sent
// events. No redirects, no decompression; keys and bodies are never logged. The connection is kept between calls.
// Used by one thread at a time (a second one gets kBusy); CancelToken::cancel may come from any thread and is noticed
// within 50 ms, or once the connection stands.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace sluice {

// Copies share one flag. Once cancelled it stays so.
class CancelToken {
 public:
  CancelToken() : flag_(std::make_shared<std::atomic<bool>>(false)) {}
  void cancel() const { flag_->store(true); }
  bool cancelled() const { return flag_->load(); }

 private:
  std::shared_ptr<std::atomic<bool>> flag_;
};

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpCall {
  HttpHeaders headers = {};  // CR, LF or NUL in a name or value: kInvalidArgument
  std::chrono::milliseconds connect_timeout{5'000};
  std::chrono::milliseconds read_timeout{60'000};    // between two reads that bring something
  std::chrono::milliseconds total_timeout{600'000};  // connect to last byte
  std::size_t max_body_bytes = std::size_t{32} << 20;
  CancelToken cancel = {};
};

struct HttpResponse {
  int status = 0;       // any the server sent; only failing to get one is an error
  HttpHeaders headers;  // names as sent
  std::string body;     // for a stream: only of an answer that is no event stream

  // The value of the first header of that name, whatever its case; empty if there is none.
  std::string_view header(std::string_view name) const;
};

class HttpClient {
 public:
  // base_url: "http://host:port" or "https://host:port", no path. kInvalidArgument for anything else.
  static Result<std::unique_ptr<HttpClient>> create(const std::string& base_url);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Errors of all three: kCancelled by the token, kDeadline when a time limit passed, kUnavailable when the server can't
  // be reached or breaks off, kInvalidArgument when the answer is larger than max_body_bytes or the request is malformed.
  Result<HttpResponse> get(const std::string& path, const HttpCall& call = {});
  Result<HttpResponse> post(const std::string& path, const std::string& body, const std::string& content_type,
                            const HttpCall& call = {});

  // A POST answered by server-sent events: on_data gets the data of each event, in order, on the calling thread, its
  // `data:` lines joined by LF. Returning false ends the call, which then succeeds. An answer of another content type
  // than text/event-stream (such as an error) is returned whole in body instead. max_body_bytes caps one event, and the
  // body of such another answer; a stream as a whole has no cap but total_timeout.
  using OnData = std::function<bool(std::string_view data)>;
  Result<HttpResponse> post_events(const std::string& path, const std::string& body, const std::string& content_type,
                                   const OnData& on_data, const HttpCall& call = {});

 private:
  struct Impl;
  explicit HttpClient(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
