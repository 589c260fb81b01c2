// SPDX-License-Identifier: GPL-3.0-or-later
#include "base/durable_file.h"

#include <cerrno>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>

namespace sluice {
namespace {

Status failed(const char* what, const std::string& path, int error) {
  return unavailable(std::string("can't ") + what + " '" + path + "': " + std::generic_category().message(error));
}

// 0 or errno.
int write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return 0;
}

}  // namespace

Status write_and_sync(const std::string& path, std::span<const std::span<const std::byte>> parts) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return failed("create", path, errno);
  int error = 0;
  for (const auto& part : parts) {
    if (error == 0) error = write_all(fd, part);
  }
  if (error == 0 && ::fsync(fd) != 0) error = errno;
  if (::close(fd) != 0 && error == 0) error = errno;
  if (error != 0) {
    ::unlink(path.c_str());
    return failed("write", path, error);
  }
  return {};
}

Status sync_directory(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return failed("open the folder", path, errno);
  const int error = ::fsync(fd) != 0 ? errno : 0;
  ::close(fd);
  if (error != 0) return failed("sync the folder", path, error);
  return {};
}

}  // namespace sluice
