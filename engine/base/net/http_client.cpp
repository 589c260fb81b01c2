// SPDX-License-Identifier: GPL-3.0-or-later
#include "base/net/http_client.h"

#include <httplib.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/net/no_sigpipe.h"
#include "base/net/sse.h"
#include "base/net/watchdog.h"

namespace sluice {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](unsigned char x, unsigned char y) {
           return std::tolower(x) == std::tolower(y);
         });
}

bool is_token(std::string_view text) {  // RFC 9110, 5.6.2
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](unsigned char c) {
    return (c < 0x80 && std::isalnum(c)) || kMarks.find(static_cast<char>(c)) != std::string_view::npos;
  });
}

// Neither controls (a line break would start a header or request of its own) nor, in a path, spaces.
bool is_clean(std::string_view text, unsigned char least) {
  return std::all_of(text.begin(), text.end(), [&](unsigned char c) { return (c >= least && c != 0x7F) || c == '\t'; });
}

Status check_request(const std::string& path, const std::string& content_type, const HttpHeaders& headers) {
  if (path.empty() || path[0] != '/' || !is_clean(path, 0x21) || path.find('\t') != std::string::npos) {
    return invalid_argument("the HTTP path must begin with / and hold neither spaces nor control characters");
  }
  if (!is_clean(content_type, 0x20)) return invalid_argument("the content type holds a control character");
  for (const auto& [name, value] : headers) {
    if (!is_token(name)) return invalid_argument("a header name holds a character that HTTP does not allow there");
    if (!is_clean(value, 0x20)) return invalid_argument("the value of header " + name + " holds a control character");
  }
  return {};
}

const char* describe(httplib::Error error) {
  switch (error) {
    case httplib::Error::Connection: return "no connection";
    case httplib::Error::ConnectionTimeout: return "no connection in time";
    case httplib::Error::Read: return "the answer broke off";
    case httplib::Error::Write: return "the request could not be sent";
    case httplib::Error::SSLConnection: return "no TLS connection";
    case httplib::Error::SSLLoadingCerts: return "the system's certificates could not be read";
    case httplib::Error::SSLServerVerification: return "its certificate is not trusted";
    default: return "the exchange failed";
  }
}

std::string in_ms(milliseconds time) { return std::to_string(time.count()) + " ms"; }

// What one call collects while the library reads.
struct Reading {
  HttpResponse response;
  SseReader* events = nullptr;  // null: the body is collected
  const HttpClient::OnData* on_data = nullptr;
  std::size_t max_body_bytes = 0;
  steady_clock::time_point last_read;
  bool streaming = false;   // events are being handed out
  bool stopped = false;     // on_data asked to end
  Status failed;            // why the receiver refused to go on

  bool head(const httplib::Response& head) {
    last_read = steady_clock::now();
    response.status = head.status;
    for (const auto& [name, value] : head.headers) response.headers.emplace_back(name, value);
    const std::string_view coding = response.header("Content-Encoding");
    if (!coding.empty() && !equal_ignoring_case(coding, "identity")) {
      failed = unavailable("the server answered compressed although it was asked not to");
      return false;
    }
    std::string_view type = response.header("Content-Type");
    type = type.substr(0, type.find(';'));
    while (!type.empty() && type.back() == ' ') type.remove_suffix(1);
    streaming = events != nullptr && equal_ignoring_case(type, "text/event-stream");
    return true;
  }

  bool content(std::string_view bytes) {
    last_read = steady_clock::now();
    if (streaming) {
      const SseReader::Outcome outcome = events->feed(bytes, *on_data);
      if (outcome == SseReader::Outcome::kTooLarge) failed = too_large("an event of the answer");
      stopped = outcome == SseReader::Outcome::kStopped;
      return outcome == SseReader::Outcome::kMore;
    }
    if (bytes.size() > max_body_bytes - response.body.size()) {
      failed = too_large("the answer");
      return false;
    }
    response.body.append(bytes);
    return true;
  }

  Status too_large(const char* what) const {
    return invalid_argument(std::string(what) + " is larger than the allowed " + std::to_string(max_body_bytes) + " bytes");
  }
};

httplib::Request request_for(const char* method, const std::string& path) {
  httplib::Request request;
  request.method = method;
  request.path = path;
  return request;
}

httplib::Request post_request(const std::string& path, const std::string& body, const std::string& content_type) {
  httplib::Request request = request_for("POST", path);
  request.body = body;
  request.headers.emplace("Content-Type", content_type);
  return request;
}

}  // namespace

std::string_view HttpResponse::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (equal_ignoring_case(key, name)) return value;
  }
  return {};
}

struct HttpClient::Impl {
  explicit Impl(const std::string& url) : base_url(url), client(url), watchdog([this] { client.stop(); }) {
    client.set_keep_alive(true);
    client.set_follow_location(false);
    client.set_decompress(false);
    client.set_url_encode(false);
    client.set_tcp_nodelay(true);
  }

  Result<HttpResponse> exchange(httplib::Request request, const HttpCall& call, SseReader* events, const OnData* on_data);
  Status failure(const Reading& reading, httplib::Error error, CallWatchdog::Verdict verdict, const HttpCall& call) const;

  const std::string base_url;
  httplib::Client client;
  CallWatchdog watchdog;
  std::atomic<bool> in_use{false};
};

Status HttpClient::Impl::failure(const Reading& reading, httplib::Error error, CallWatchdog::Verdict verdict,
                                 const HttpCall& call) const {
  if (!reading.failed.ok()) return {reading.failed.code(), base_url + ": " + reading.failed.message()};
  if (verdict == CallWatchdog::Verdict::kCancelled) return cancelled("the call to " + base_url + " was cancelled");
  if (verdict == CallWatchdog::Verdict::kDeadline) {
    return deadline_exceeded(base_url + " did not answer whole within " + in_ms(call.total_timeout));
  }
  if (error == httplib::Error::Read && steady_clock::now() - reading.last_read >= call.read_timeout) {
    return deadline_exceeded(base_url + " sent nothing for " + in_ms(call.read_timeout));
  }
  return unavailable(base_url + ": " + describe(error) + "; check that the server runs there");
}

Result<HttpResponse> HttpClient::Impl::exchange(httplib::Request request, const HttpCall& call, SseReader* events,
                                                const OnData* on_data) {
  if (in_use.exchange(true)) return busy("the HTTP client is in use by another thread: give each thread its own");
  const NoSigpipe no_signal;
  const auto start = steady_clock::now();
  Reading reading;
  reading.events = events;
  reading.on_data = on_data;
  reading.max_body_bytes = call.max_body_bytes;
  reading.last_read = start;

  for (const auto& [name, value] : call.headers) request.headers.emplace(name, value);
  request.headers.emplace("Accept-Encoding", "identity");
  if (!request.has_header("User-Agent")) request.headers.emplace("User-Agent", "sluice");
  request.response_handler = [&](const httplib::Response& response) { return reading.head(response); };
  request.content_receiver = [&](const char* data, std::size_t n, std::uint64_t, std::uint64_t) {
    return reading.content({data, n});
  };
  client.set_connection_timeout(std::min(call.connect_timeout, call.total_timeout));
  client.set_read_timeout(std::min(call.read_timeout, call.total_timeout));
  client.set_write_timeout(std::min(call.read_timeout, call.total_timeout));

  httplib::Response response;
  httplib::Error error = httplib::Error::Success;
  bool sent = false;
  std::string thrown;
  watchdog.begin(start + call.total_timeout, call.cancel);
  try {
    sent = client.send(request, response, error);
  } catch (const std::exception& e) {  // the library lets number parsing of a malformed answer throw
    thrown = e.what();
  }
  const CallWatchdog::Verdict verdict = watchdog.end();
  if (!sent) client.stop();  // what is left of a broken exchange must not meet the next one
  in_use = false;

  if (!thrown.empty()) return unavailable(base_url + " answered with something that is no HTTP (" + thrown + ")");
  if (!sent && !reading.stopped) return failure(reading, error, verdict, call);
  if (reading.response.status == 0) {  // an answer without content has no head callback
    reading.response.status = response.status;
    for (const auto& [name, value] : response.headers) reading.response.headers.emplace_back(name, value);
  }
  return std::move(reading.response);
}

HttpClient::HttpClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpClient::~HttpClient() {
  const NoSigpipe no_signal;  // TLS says goodbye
  impl_.reset();
}

Result<std::unique_ptr<HttpClient>> HttpClient::create(const std::string& base_url) {
  const auto bad = [&](const std::string& why) {
    return invalid_argument("\"" + base_url + "\" is no server address (" + why + "): write http://host:port");
  };
  const std::size_t scheme_end = base_url.find("://");
  if (scheme_end == std::string::npos) return bad("no scheme");
  const std::string scheme = base_url.substr(0, scheme_end);
  if (scheme != "http" && scheme != "https") return bad("the scheme must be http or https");
  const std::string authority = base_url.substr(scheme_end + 3);
  if (authority.empty() || authority.find_first_of("/?#@ \t\r\n") != std::string::npos) return bad("host and port only");
  const std::size_t colon = authority.rfind(':');
  if (colon != std::string::npos && authority.find(']', colon) == std::string::npos) {
    const std::string port = authority.substr(colon + 1);
    const bool digits = !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == std::string::npos;
    if (colon == 0 || !digits || std::stoi(port) < 1 || std::stoi(port) > 65535) return bad("the port must be 1 to 65535");
  }
  try {
    auto impl = std::make_unique<Impl>(base_url);
    if (!impl->client.is_valid()) return bad("not understood");
    return std::unique_ptr<HttpClient>(new HttpClient(std::move(impl)));
  } catch (const std::exception& e) {
    return bad(e.what());
  }
}

Result<HttpResponse> HttpClient::get(const std::string& path, const HttpCall& call) {
  SLUICE_RETURN_IF_ERROR(check_request(path, "", call.headers));
  return impl_->exchange(request_for("GET", path), call, nullptr, nullptr);
}

Result<HttpResponse> HttpClient::post(const std::string& path, const std::string& body, const std::string& content_type,
                                      const HttpCall& call) {
  SLUICE_RETURN_IF_ERROR(check_request(path, content_type, call.headers));
  return impl_->exchange(post_request(path, body, content_type), call, nullptr, nullptr);
}

Result<HttpResponse> HttpClient::post_events(const std::string& path, const std::string& body,
                                             const std::string& content_type, const OnData& on_data,
                                             const HttpCall& call) {
  SLUICE_RETURN_IF_ERROR(check_request(path, content_type, call.headers));
  httplib::Request request = post_request(path, body, content_type);
  request.headers.emplace("Accept", "text/event-stream");
  SseReader events(call.max_body_bytes);
  return impl_->exchange(std::move(request), call, &events, &on_data);
}

}  // namespace sluice
