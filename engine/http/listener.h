// SPDX-License-Identifier: GPL-3.0-or-later
// Listening sockets and the threads of their connections. start(), stop() and the destructor belong to one owner.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/guarded.h"
#include "base/result.h"

namespace sluice {

// As many threads as there are connections at once, up to a limit; a stream holds its thread for its whole life.
class ConnectionThreads {
 public:
  explicit ConnectionThreads(std::size_t most) : most_(most) {}
  void enqueue(std::function<void()> task) SLUICE_EXCLUDES(mu_);
  void join() SLUICE_EXCLUDES(mu_);  // after what is queued; idempotent

 private:
  void work() SLUICE_EXCLUDES(mu_);

  const std::size_t most_;
  Mutex mu_;
  CondVar ready_;
  std::deque<std::function<void()>> tasks_ SLUICE_GUARDED_BY(mu_);
  std::vector<std::thread> threads_ SLUICE_GUARDED_BY(mu_);
  std::size_t idle_ SLUICE_GUARDED_BY(mu_) = 0;
  bool stop_ SLUICE_GUARDED_BY(mu_) = false;
};

// What a listening address is for.
struct Door {
  bool tls = false;
  bool editors = false;  // editors of RLinf send there
};

class Listener {
 public:
  // Called on a connection's own thread; takes over the (non-blocking) socket. `door`: as its address was bound.
  using Serve = std::function<void(int fd, const std::string& peer, Door door)>;

  Listener(std::size_t max_connections, Serve serve);
  ~Listener();  // stop()

  // Binds one more address; the port that was bound (for 0: any free one). kConflict: the port is in use.
  // kInvalidArgument: no address of this machine, or no right to the port. Only before start().
  Result<int> bind(const std::string& host, int port, Door door);
  void start();
  // Refuses new connections, lets those that were accepted see stop_fd(), joins their threads. Idempotent.
  void stop();
  int stop_fd() const { return stop_fd_; }  // readable once stop() was called; never read

 private:
  struct Socket {
    int fd;
    Door door;
  };
  void accept_loop();

  const Serve serve_;
  const int stop_fd_;
  std::vector<Socket> sockets_;  // of the accepting thread once it runs
  ConnectionThreads threads_;
  std::thread acceptor_;
};

}  // namespace sluice
