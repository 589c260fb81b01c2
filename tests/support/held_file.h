// SPDX-License-Identifier: GPL-3.0-or-later
// A file that stands still when it is opened: a load under test is held there until release(). The kernel lets go by itself
// after /proc/sys/fs/lease-break-time, 45 s where nobody changed it. Used by one thread.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <string>

namespace sluice::testing {

class HeldFile {
 public:
  // Nobody may have it open.
  explicit HeldFile(const std::string& path) : fd_(::open(path.c_str(), O_RDWR | O_CLOEXEC)) {
    ::signal(SIGIO, SIG_IGN);  // tells the holder that somebody waits
    EXPECT_EQ(::fcntl(fd_, F_SETLEASE, F_WRLCK), 0) << path << " can't be held";
  }
  ~HeldFile() { release(); }
  HeldFile(const HeldFile&) = delete;
  HeldFile& operator=(const HeldFile&) = delete;
  void release() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

}  // namespace sluice::testing
