// SPDX-License-Identifier: GPL-3.0-or-later
#include "http/listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/net/no_sigpipe.h"

namespace sluice {
namespace {

constexpr int kBacklog = 256;
constexpr int kLookAgainMs = 50;  // while connections wait for a thread
constexpr int kSendBuffer = 512 << 10;  // the kernel doubles it: 1 MiB a stream

Status bind_error(const std::string& host, int port, int why) {
  if (why == EADDRINUSE) {
    return conflict("Port " + std::to_string(port) +
                    " is in use by another program: close that program, or choose another port");
  }
  if (why == EACCES) return invalid_argument("Port " + std::to_string(port) + " needs more rights: choose one above 1023");
  return invalid_argument("Can't listen on " + host + " port " + std::to_string(port) +
                          (why != 0 ? ": " + std::string(std::strerror(why)) : "") +
                          ". Use an address of this machine, such as 127.0.0.1");
}

std::string name_of(const sockaddr_storage& address, socklen_t size) {
  char host[NI_MAXHOST] = {};
  const auto* plain = reinterpret_cast<const sockaddr*>(&address);
  return getnameinfo(plain, size, host, sizeof host, nullptr, 0, NI_NUMERICHOST) == 0 ? host : "";
}

int bound_port(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return -1;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

// A listening socket on the address, or -1 and why.
int listen_on(const addrinfo& where, int* why) {
  const int fd = ::socket(where.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return *why = errno, -1;
  const int on = 1;
  // Only a port that is still closing may be taken over; it is never shared with another program of the user.
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (where.ai_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (::bind(fd, where.ai_addr, where.ai_addrlen) == 0 && ::listen(fd, kBacklog) == 0) return fd;
  *why = errno;
  ::close(fd);
  return -1;
}

}  // namespace

ConnectionThreads::ConnectionThreads(std::size_t most, std::function<void(const Task&)> serve)
    : most_(most), serve_(std::move(serve)), wanted_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE)) {}

ConnectionThreads::~ConnectionThreads() {
  join();
  ::close(wanted_fd_);
}

void ConnectionThreads::enqueue(Task task) {
  MutexLock lock(mu_);
  if (tasks_.size() >= idle_ && threads_.size() < most_) threads_.emplace_back([this] { work(); });
  tasks_.push_back(std::move(task));
  call_for_threads();
  ready_.notify_one();
}

// Counted anew each time: a connection that took a count and is about to leave may make one more leave than need be, but no
// task is forgotten.
void ConnectionThreads::call_for_threads() {
  std::uint64_t count = 0;
  while (::read(wanted_fd_, &count, sizeof count) == sizeof count) {
  }
  if (threads_.size() < most_ || tasks_.size() <= idle_) return;
  count = tasks_.size() - idle_;
  (void)!::write(wanted_fd_, &count, sizeof count);
}

ConnectionThreads::Task ConnectionThreads::take_front() {
  Task task = std::move(tasks_.front());
  tasks_.pop_front();
  call_for_threads();
  return task;
}

std::vector<ConnectionThreads::Task> ConnectionThreads::take_overdue(SteadyTime limit) {
  std::vector<Task> overdue;
  MutexLock lock(mu_);
  while (tasks_.size() > idle_ && tasks_.front().since <= limit) overdue.push_back(take_front());
  return overdue;
}

bool ConnectionThreads::any_waits() const {
  MutexLock lock(mu_);
  return !tasks_.empty();
}

void ConnectionThreads::join() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(mu_);
    stop_ = true;
    ready_.notify_all();
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

void ConnectionThreads::work() {
  const NoSigpipe no_signal;  // the TLS library writes to clients that left, too
  while (true) {
    Task task;
    {
      MutexLock lock(mu_);
      ++idle_;
      while (tasks_.empty() && !stop_) ready_.wait(mu_);
      --idle_;
      if (tasks_.empty()) return;
      task = take_front();
    }
    serve_(task);
  }
}

Listener::Listener(std::size_t max_connections, std::chrono::milliseconds patience, Serve serve, Refuse refuse)
    : serve_(std::move(serve)),
      refuse_(std::move(refuse)),
      patience_(patience),
      stop_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      threads_(max_connections, [this](const ConnectionThreads::Task& task) { serve_(task.fd, task.peer, task.door); }) {}

Listener::~Listener() {
  stop();
  for (const Socket& s : sockets_) ::close(s.fd);
  ::close(stop_fd_);
}

Result<int> Listener::bind(const std::string& host, int port, Door door) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return bind_error(host, port, 0);
  int why = 0, fd = -1;
  for (const addrinfo* each = found; each != nullptr && fd < 0; each = each->ai_next) fd = listen_on(*each, &why);
  freeaddrinfo(found);
  if (fd < 0) return bind_error(host, port, why);
  sockets_.push_back({fd, door});
  return bound_port(fd);
}

void Listener::start() {
  acceptor_ = std::thread([this] { accept_loop(); });
}

void Listener::stop() {
  if (!acceptor_.joinable()) return;
  const std::uint64_t one = 1;
  (void)!::write(stop_fd_, &one, sizeof one);
  acceptor_.join();
  threads_.join();
}

void Listener::accept_one(const Socket& from) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  const int fd = ::accept4(from.fd, reinterpret_cast<sockaddr*>(&address), &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) {
    // Out of descriptors: the client waits in the backlog until one is free.
    pollfd stop = {stop_fd_, POLLIN, 0};
    if (errno == EMFILE || errno == ENFILE) ::poll(&stop, 1, 20);
    return;
  }
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kSendBuffer, sizeof kSendBuffer);
  threads_.enqueue({fd, name_of(address, size), from.door, std::chrono::steady_clock::now()});
}

void Listener::accept_loop() {
  std::vector<pollfd> waits = {{stop_fd_, POLLIN, 0}};
  for (const Socket& s : sockets_) waits.push_back({s.fd, POLLIN, 0});
  while (true) {
    if (::poll(waits.data(), waits.size(), threads_.any_waits() ? kLookAgainMs : -1) < 0) {
      if (errno == EINTR) continue;
      break;
    }
    if ((waits[0].revents & POLLIN) != 0) break;
    for (std::size_t i = 1; i < waits.size(); ++i) {
      if ((waits[i].revents & POLLIN) != 0) accept_one(sockets_[i - 1]);
    }
    const SteadyTime limit = std::chrono::steady_clock::now() - patience_;
    for (const ConnectionThreads::Task& task : threads_.take_overdue(limit)) refuse_(task.fd, task.door);
  }
  for (const Socket& s : sockets_) ::close(s.fd);
  sockets_.clear();
}

}  // namespace sluice
