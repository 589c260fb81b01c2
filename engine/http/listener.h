// SPDX-License-Identifier: GPL-3.0-or-later
// Listening sockets and the threads of their connections. start(), stop() and the destructor belong to one owner.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/guarded.h"
#include "base/result.h"

namespace sluice {

// What a listening address is for.
struct Door {
  bool tls = false;
  bool editors = false;  // editors of RLinf send there
};

// As many threads as there are connections at once, up to a limit; a stream holds its thread for its whole life. One thread
// may stand in take_overdue() while another enqueues.
class ConnectionThreads {
 public:
  struct Task {
    int fd = -1;
    std::string peer;
    Door door;
    SteadyTime since;
  };

  ConnectionThreads(std::size_t most, std::function<void(const Task&)> serve);
  ~ConnectionThreads();  // join()
  void enqueue(Task task) SLUICE_EXCLUDES(mu_);
  // Those that waited since before `limit` and got no thread: the caller's from now on.
  std::vector<Task> take_overdue(SteadyTime limit) SLUICE_EXCLUDES(mu_);
  bool any_waits() const SLUICE_EXCLUDES(mu_);
  void join() SLUICE_EXCLUDES(mu_);  // after what is queued; idempotent
  int wanted_fd() const { return wanted_fd_; }  // a semaphore, one count a task that no free thread is for

 private:
  void work() SLUICE_EXCLUDES(mu_);
  Task take_front() SLUICE_REQUIRES(mu_);
  void call_for_threads() SLUICE_REQUIRES(mu_);

  const std::size_t most_;
  const std::function<void(const Task&)> serve_;
  const int wanted_fd_;
  mutable Mutex mu_;
  CondVar ready_;
  std::deque<Task> tasks_ SLUICE_GUARDED_BY(mu_);
  std::vector<std::thread> threads_ SLUICE_GUARDED_BY(mu_);
  std::size_t idle_ SLUICE_GUARDED_BY(mu_) = 0;
  bool stop_ SLUICE_GUARDED_BY(mu_) = false;
};

class Listener {
 public:
  // Called on a connection's own thread; takes over the (non-blocking) socket. `door`: as its address was bound.
  using Serve = std::function<void(int fd, const std::string& peer, Door door)>;

  // Called on the accepting thread for a connection that found no thread within `patience`: to be answered without waiting.
  using Refuse = std::function<void(int fd, Door door)>;

  Listener(std::size_t max_connections, std::chrono::milliseconds patience, Serve serve, Refuse refuse);
  ~Listener();  // stop()

  // Binds one more address; the port that was bound (for 0: any free one). kConflict: the port is in use.
  // kInvalidArgument: no address of this machine, or no right to the port. Only before start().
  Result<int> bind(const std::string& host, int port, Door door);
  void start();
  // Refuses new connections, lets those that were accepted see stop_fd(), joins their threads. Idempotent.
  void stop();
  int stop_fd() const { return stop_fd_; }  // readable once stop() was called; never read
  int wanted_fd() const { return threads_.wanted_fd(); }

 private:
  struct Socket {
    int fd;
    Door door;
  };
  void accept_loop();
  void accept_one(const Socket& from);

  const Serve serve_;
  const Refuse refuse_;
  const std::chrono::milliseconds patience_;
  const int stop_fd_;
  std::vector<Socket> sockets_;  // of the accepting thread once it runs
  ConnectionThreads threads_;
  std::thread acceptor_;
};

}  // namespace sluice
