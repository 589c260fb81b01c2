// SPDX-License-Identifier: GPL-3.0-or-later
// One accepted socket: reads with limits and deadlines, writes, and notices when the client leaves or the server stops.
// Owns the socket. Used by the thread that serves it.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/tls.h"

namespace sluice {

struct ConnectionTimes {
  std::chrono::milliseconds idle{65'000};      // between two requests
  std::chrono::milliseconds request{30'000};   // from a request's first byte to its last
  std::chrono::milliseconds stalled{60'000};   // a client that reads nothing
  std::chrono::milliseconds queued{2'000};     // accepted, but every thread has a request
};

class Connection {
 public:
  // `stop_fd` becomes readable when the server stops (never read here). `wanted_fd`: a semaphore, one count for each
  // connection that waits for a thread; who waits for a request takes one and gives up. Takes over `fd`. `tls`: null = plain.
  Connection(int fd, int stop_fd, int wanted_fd, const ConnectionTimes& times, std::unique_ptr<TlsSession> tls);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Waits for the first byte of the next request. False: idle too long, client gone, the thread is wanted for another
  // connection, or the server stops.
  bool wait_request();
  // The head of the next request through its blank line; empty lines before it are dropped. The time for the whole request
  // is counted from here. kBusy: longer than max_bytes. kDeadline: not there in time. kCancelled: client gone, server stops.
  Status read_head(std::size_t max_bytes, std::string* head);
  // Reads a body into `body`. kInvalidArgument: bad chunk framing or cut short; kBusy: larger than max_bytes.
  Status read_body(bool chunked, std::size_t length, std::size_t max_bytes, std::string* body);

  // All or nothing; waits for a client that reads nothing as long as `stalled` says.
  bool write(std::string_view bytes);
  bool peer_gone() const;  // the client closed its side or the connection broke
  void hang_up();          // from any thread: whoever reads or writes sees the connection broken

  bool must_close = false;  // after the present answer

 private:
  using Clock = std::chrono::steady_clock;
  // Waits until the socket is ready for `events`. False: deadline, error, the server stops.
  bool wait(short events, Clock::time_point deadline) const;
  bool fill();
  long receive(char* to, std::size_t size);
  Status read_exactly(std::size_t size, std::string* to);
  Status read_line(std::string* line);
  Status read_chunks(std::size_t max_bytes, std::string* body);
  Status read_trailers();

  const int fd_;
  const int stop_fd_;
  const int wanted_fd_;
  const ConnectionTimes times_;
  const std::unique_ptr<TlsSession> tls_;
  std::string buffer_;
  std::size_t used_ = 0;
  Clock::time_point deadline_;
};

}  // namespace sluice
