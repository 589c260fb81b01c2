// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/format/mapped_file.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace sluice {

Result<MappedFile> MappedFile::open(const std::string& path) {
  const auto reason = [](int error) { return std::generic_category().message(error); };
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    const int error = errno;
    if (error == ENOENT || error == ENOTDIR) return not_found("there is no file '" + path + "'");
    return unavailable("can't open '" + path + "': " + reason(error));
  }
  struct stat info{};
  if (::fstat(fd, &info) != 0) {
    const int error = errno;
    ::close(fd);
    return unavailable("can't look at '" + path + "': " + reason(error));
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(fd);
    return invalid_argument("'" + path + "' is not a regular file");
  }
  const auto size = static_cast<std::size_t>(info.st_size);
  std::span<const std::byte> bytes;
  if (size > 0) {
    void* at = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
    const int error = errno;
    if (at == MAP_FAILED) {
      ::close(fd);
      return unavailable("can't map '" + path + "': " + reason(error));
    }
    bytes = {static_cast<const std::byte*>(at), size};
  }
  ::close(fd);
  return MappedFile(path, bytes);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    unmap();
    path_ = std::move(other.path_);
    bytes_ = std::exchange(other.bytes_, {});
  }
  return *this;
}

MappedFile::~MappedFile() { unmap(); }

void MappedFile::unmap() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

Status MappedFile::release_pages() const {
  if (bytes_.empty() || ::madvise(const_cast<std::byte*>(bytes_.data()), bytes_.size(), MADV_DONTNEED) == 0) return {};
  return unavailable("the pages of '" + path_ + "' can't be handed back: " + std::generic_category().message(errno));
}

Result<std::span<const std::byte>> MappedFile::view(std::uint64_t offset, std::uint64_t length) const {
  // Compared with what is left, never added: offset + length may wrap.
  if (offset > size() || length > size() - offset) {
    return corrupt("'" + path_ + "' has " + std::to_string(size()) + " bytes, but " + std::to_string(length) +
                   " are wanted from byte " + std::to_string(offset) + ": the file is cut short or damaged");
  }
  return bytes_.subspan(offset, length);
}

}  // namespace sluice
