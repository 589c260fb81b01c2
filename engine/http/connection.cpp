// SPDX-License-Identifier: GPL-3.0-or-later
#include "http/connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace sluice {
namespace {

constexpr int kWriteWaitMs = 60'000;
constexpr std::size_t kReadBytes = 16 << 10;

using Clock = std::chrono::steady_clock;

int ms_until(Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, 3'600'000));
}

}  // namespace

Connection::Connection(int fd, int stop_fd, std::size_t max_head_bytes)
    : fd_(fd), stop_fd_(stop_fd), max_head_bytes_(max_head_bytes) {}

Connection::~Connection() {
  ::shutdown(fd_, SHUT_WR);
  // What the client still sends is read away, else the kernel resets the connection and it may lose our last answer.
  char rest[4096];
  const auto deadline = Clock::now() + std::chrono::milliseconds(must_close ? 500 : 0);
  pollfd waits[2] = {{fd_, POLLIN, 0}, {stop_fd_, POLLIN, 0}};
  while (must_close && ::poll(waits, 2, ms_until(deadline)) > 0 && (waits[1].revents & POLLIN) == 0) {
    if (::recv(fd_, rest, sizeof rest, MSG_DONTWAIT) <= 0 || Clock::now() >= deadline) break;
  }
  ::close(fd_);
}

bool Connection::wait_request(std::chrono::seconds idle) {
  if (used_ < buffer_.size()) return true;
  const auto deadline = Clock::now() + idle;
  while (true) {
    pollfd waits[2] = {{fd_, POLLIN, 0}, {stop_fd_, POLLIN, 0}};
    const int ready = ::poll(waits, 2, ms_until(deadline));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0 || (waits[1].revents & POLLIN) != 0) return false;
    char byte;
    return ::recv(fd_, &byte, 1, MSG_PEEK) > 0;
  }
}

void Connection::begin_request(std::chrono::seconds time_to_read) {
  in_head_ = true;
  head_bytes_ = 0;
  head_too_large_ = false;
  deadline_ = Clock::now() + time_to_read;
}

bool Connection::fill() {
  while (true) {
    pollfd waits[2] = {{fd_, POLLIN, 0}, {stop_fd_, POLLIN, 0}};
    const int ready = ::poll(waits, 2, ms_until(deadline_));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0 || (waits[1].revents & POLLIN) != 0) return false;
    buffer_.resize(kReadBytes);
    used_ = 0;
    const ssize_t got = ::recv(fd_, buffer_.data(), buffer_.size(), 0);
    buffer_.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return got > 0;
  }
}

long Connection::read(char* to, std::size_t size) {
  if (used_ == buffer_.size() && !fill()) return -1;
  const std::size_t n = std::min(size, buffer_.size() - used_);
  if (in_head_) {
    head_bytes_ += n;
    if (head_bytes_ > max_head_bytes_) {
      head_too_large_ = true;
      return -1;
    }
  }
  std::memcpy(to, buffer_.data() + used_, n);
  used_ += n;
  return static_cast<long>(n);
}

bool Connection::write(const char* from, std::size_t size) {
  while (size > 0) {
    const ssize_t sent = ::send(fd_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      from += sent;
      size -= static_cast<std::size_t>(sent);
      continue;
    }
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return false;
    // A reader that takes nothing may be waited for, but not while the server stops.
    pollfd waits[2] = {{fd_, POLLOUT, 0}, {stop_fd_, POLLIN, 0}};
    if (::poll(waits, 2, kWriteWaitMs) <= 0 || (waits[0].revents & (POLLERR | POLLHUP)) != 0) return false;
    if ((waits[1].revents & POLLIN) != 0 && (waits[0].revents & POLLOUT) == 0) return false;
  }
  return true;
}

bool Connection::writable() const {
  pollfd wait = {fd_, POLLOUT, 0};
  return ::poll(&wait, 1, 0) >= 0 && !peer_gone();
}

bool Connection::peer_gone() const {
  pollfd wait = {fd_, POLLRDHUP, 0};
  return ::poll(&wait, 1, 0) > 0 && (wait.revents & (POLLRDHUP | POLLERR | POLLHUP | POLLNVAL)) != 0;
}

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
  return invalid_argument("The chunks of the request body are malformed");
}

Status Connection::read_body(bool chunked, std::size_t length, std::size_t max_bytes, std::string* body) {
  if (!chunked) return read_exactly(length, body);
  std::string line;
  while (true) {
    SLUICE_RETURN_IF_ERROR(read_line(&line));
    std::size_t size = 0;
    const auto [end, failure] = std::from_chars(line.data(), line.data() + line.size(), size, 16);
    const bool extension = end != line.data() + line.size() && *end != ';';
    if (failure == std::errc::result_out_of_range || size > max_bytes - body->size()) {
      return busy("The request body is larger than " + std::to_string(max_bytes) + " bytes");
    }
    if (failure != std::errc() || extension) return invalid_argument("The chunks of the request body are malformed");
    if (size == 0) break;
    SLUICE_RETURN_IF_ERROR(read_exactly(size, body));
    SLUICE_RETURN_IF_ERROR(read_line(&line));
    if (!line.empty()) return invalid_argument("The chunks of the request body are malformed");
  }
  for (int trailers = 0; trailers < 64; ++trailers) {
    SLUICE_RETURN_IF_ERROR(read_line(&line));
    if (line.empty()) return Status();
  }
  return invalid_argument("The chunks of the request body are malformed");
}

}  // namespace sluice
