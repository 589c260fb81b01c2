// SPDX-License-Identifier: GPL-3.0-or-later
// Writing to a peer that left must give an error and not end the program. Where the writing is a library's (TLS, the HTTP
// client), MSG_NOSIGNAL can't be asked for; this keeps SIGPIPE from the calling thread while it lives. One thread.
#pragma once

#include <csignal>
#include <ctime>

namespace sluice {

class NoSigpipe {
 public:
  NoSigpipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  // One raised meanwhile is taken, so that it does not arrive once the former mask is back.
  ~NoSigpipe() {
    const timespec now{};
    while (!was_pending_ && sigtimedwait(&pipe_, nullptr, &now) == SIGPIPE) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  sigset_t pipe_, before_;
  bool was_pending_ = false;
};

}  // namespace sluice
