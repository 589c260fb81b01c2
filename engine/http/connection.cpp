// SPDX-License-Identifier: GPL-3.0-or-later
#include "http/connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>

namespace sluice {
namespace {

constexpr std::size_t kReadBytes = 16 << 10;
constexpr auto kLinger = std::chrono::milliseconds(500);

int ms_until(std::chrono::steady_clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, 3'600'000));
}

Status too_large(std::size_t max_bytes) {
  return busy("The request body is larger than " + std::to_string(max_bytes) + " bytes");
}

Status malformed_chunks() { return invalid_argument("The chunks of the request body are malformed"); }

}  // namespace

Connection::Connection(int fd, int stop_fd, int wanted_fd, const ConnectionTimes& times, std::unique_ptr<TlsSession> tls)
    : fd_(fd), stop_fd_(stop_fd), wanted_fd_(wanted_fd), times_(times), tls_(std::move(tls)) {}

Connection::~Connection() {
  if (tls_) tls_->shut_down();
  ::shutdown(fd_, SHUT_WR);
  // What the client still sends is read away, else the kernel resets the connection and it may lose our last answer.
  char rest[4096];
  const auto deadline = Clock::now() + kLinger;
  while (must_close && Clock::now() < deadline && wait(POLLIN, deadline)) {
    if (::recv(fd_, rest, sizeof rest, MSG_DONTWAIT) <= 0) break;
  }
  ::close(fd_);
}

bool Connection::wait(short events, Clock::time_point deadline) const {
  while (true) {
    pollfd waits[2] = {{fd_, events, 0}, {stop_fd_, POLLIN, 0}};
    const int ready = ::poll(waits, 2, ms_until(deadline));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    // A reader that takes nothing may be waited for, but not while the server stops.
    if ((waits[1].revents & POLLIN) != 0) return events == POLLOUT && (waits[0].revents & POLLOUT) != 0;
    return (waits[0].revents & (events | POLLHUP | POLLERR)) != 0;
  }
}

bool Connection::wait_request() {
  if (used_ < buffer_.size() || (tls_ && tls_->pending())) return true;
  const auto deadline = Clock::now() + times_.idle;
  while (true) {
    pollfd waits[3] = {{fd_, POLLIN, 0}, {stop_fd_, POLLIN, 0}, {wanted_fd_, POLLIN, 0}};
    const int ready = ::poll(waits, 3, ms_until(deadline));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0 || waits[1].revents != 0) return false;
    char byte;
    if (waits[0].revents != 0) return ::recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
    std::uint64_t one = 0;  // another may have taken it meanwhile
    if (::read(wanted_fd_, &one, sizeof one) == sizeof one) return false;
  }
}

// Bytes read; 0 at the end of the stream, -1 when none came before the deadline or the server stopped.
long Connection::receive(char* to, std::size_t size) {
  while (true) {
    short wanted = POLLIN;
    if (tls_) {
      const TlsSession::Moved moved = tls_->read(to, size);
      if (moved.bytes > 0) return static_cast<long>(moved.bytes);
      if (moved.want == TlsSession::Want::kClosed) return 0;
      if (moved.want == TlsSession::Want::kWrite) wanted = POLLOUT;
    } else {
      const ssize_t got = ::recv(fd_, to, size, MSG_DONTWAIT);
      if (got >= 0) return got;
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) return 0;
    }
    if (!wait(wanted, deadline_)) return -1;
  }
}

bool Connection::fill() {
  buffer_.resize(kReadBytes);
  used_ = 0;
  const long got = receive(buffer_.data(), buffer_.size());
  buffer_.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return got > 0;
}

Status Connection::read_head(std::size_t max_bytes, std::string* head) {
  deadline_ = Clock::now() + times_.request;
  head->clear();
  while (true) {
    if (used_ == buffer_.size() && !fill()) {
      if (Clock::now() >= deadline_) return deadline_exceeded("The request's head did not arrive in time");
      return cancelled("The client left");
    }
    const char c = buffer_[used_++];
    const bool blank = c == '\r' || c == '\n';
    if (head->empty() && blank) continue;
    *head += c;
    if (head->size() > max_bytes) return busy("The request has too many or too long headers");
    // A bare LF ends the head for the strict parser to refuse: a client that sends such lines waits for an answer.
    if (c == '\n' && (head->ends_with("\r\n\r\n") || head->ends_with("\n\n"))) return Status();
  }
}

bool Connection::write(std::string_view bytes) {
  auto deadline = Clock::now() + times_.stalled;
  while (!bytes.empty()) {
    std::size_t sent = 0;
    short wanted = POLLOUT;
    if (tls_) {
      const TlsSession::Moved moved = tls_->write(bytes.data(), bytes.size());
      if (moved.want == TlsSession::Want::kClosed) return false;
      if (moved.want == TlsSession::Want::kRead) wanted = POLLIN;
      sent = moved.bytes;
    } else {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return false;
      sent = n > 0 ? static_cast<std::size_t>(n) : 0;
    }
    bytes.remove_prefix(sent);
    if (sent > 0) {
      deadline = Clock::now() + times_.stalled;
    } else if (peer_gone() || !wait(wanted, deadline)) {
      return false;
    }
  }
  return true;
}

bool Connection::peer_gone() const {
  pollfd wait = {fd_, POLLRDHUP, 0};
  return ::poll(&wait, 1, 0) > 0 && (wait.revents & (POLLRDHUP | POLLERR | POLLHUP | POLLNVAL)) != 0;
}

void Connection::hang_up() { ::shutdown(fd_, SHUT_RDWR); }

Status Connection::read_exactly(std::size_t size, std::string* to) {
  while (size > 0) {
    if (used_ == buffer_.size() && !fill()) return invalid_argument("The request body was cut short");
    const std::size_t n = std::min(size, buffer_.size() - used_);
    to->append(buffer_, used_, n);
    used_ += n;
    size -= n;
  }
  return Status();
}

Status Connection::read_line(std::string* line) {
  line->clear();
  while (line->size() < 1024) {
    SLUICE_RETURN_IF_ERROR(read_exactly(1, line));
    if (line->back() != '\n') continue;
    line->pop_back();
    if (line->empty() || line->back() != '\r') break;
    line->pop_back();
    return Status();
  }
  return malformed_chunks();
}

Status Connection::read_body(bool chunked, std::size_t length, std::size_t max_bytes, std::string* body) {
  if (chunked) return read_chunks(max_bytes, body);
  if (length > max_bytes) return too_large(max_bytes);
  return read_exactly(length, body);
}

Status Connection::read_chunks(std::size_t max_bytes, std::string* body) {
  std::string line;
  while (true) {
    SLUICE_RETURN_IF_ERROR(read_line(&line));
    std::size_t size = 0;
    const auto [end, failure] = std::from_chars(line.data(), line.data() + line.size(), size, 16);
    if (failure == std::errc::result_out_of_range) return too_large(max_bytes);
    // A chunk's extension is skipped, but the bytes between must not be open to another reading.
    const bool odd = end != line.data() + line.size() && *end != ';';
    if (failure != std::errc() || odd || line.find_first_of(std::string_view("\r\0", 2)) != std::string::npos) {
      return malformed_chunks();
    }
    if (size > max_bytes - body->size()) return too_large(max_bytes);
    if (size == 0) return read_trailers();
    SLUICE_RETURN_IF_ERROR(read_exactly(size, body));
    SLUICE_RETURN_IF_ERROR(read_line(&line));
    if (!line.empty()) return malformed_chunks();
  }
}

// They say nothing here, but have to end.
Status Connection::read_trailers() {
  std::string line;
  for (int trailers = 0; trailers < 64; ++trailers) {
    SLUICE_RETURN_IF_ERROR(read_line(&line));
    if (line.empty()) return Status();
  }
  return malformed_chunks();
}

}  // namespace sluice
