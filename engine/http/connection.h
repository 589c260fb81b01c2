// SPDX-License-Identifier: GPL-3.0-or-later
// One accepted socket: reads with limits and deadlines, writes, and notices when the client leaves or the server stops.
// Owns the socket. Used by the thread that serves it.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "base/result.h"

namespace sluice {

class Connection {
 public:
  // `stop_fd` becomes readable when the server stops (never read here). Takes over `fd`.
  Connection(int fd, int stop_fd, std::size_t max_head_bytes);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Waits for the first byte of the next request. False: idle too long, client gone, or the server stops.
  bool wait_request(std::chrono::seconds idle);
  // A new request's head starts: its size and the time to read it are counted from here.
  void begin_request(std::chrono::seconds time_to_read);
  void end_head() { in_head_ = false; }
  bool head_too_large() const { return head_too_large_; }

  // Up to `size` bytes; 0 at the end of the stream, -1 on error, time-out, or a head beyond its limit.
  long read(char* to, std::size_t size);
  // All or nothing; waits at most 60 s for a client that reads nothing.
  bool write(const char* from, std::size_t size);
  bool writable() const;
  bool peer_gone() const;  // the client closed its side or the connection broke

  // Reads a body into `body`. kInvalidArgument: bad chunk framing or cut short; kBusy: larger than max_bytes.
  Status read_body(bool chunked, std::size_t length, std::size_t max_bytes, std::string* body);

  bool must_close = false;  // after the present answer
  int fd() const { return fd_; }

 private:
  bool fill();
  Status read_exactly(std::size_t size, std::string* to);
  Status read_line(std::string* line);

  const int fd_;
  const int stop_fd_;
  const std::size_t max_head_bytes_;
  std::string buffer_;
  std::size_t used_ = 0;
  std::size_t head_bytes_ = 0;
  bool in_head_ = false;
  bool head_too_large_ = false;
  std::chrono::steady_clock::time_point deadline_;
};

}  // namespace sluice
