// SPDX-License-Identifier: GPL-3.0-or-later
// A file mapped read-only, with views that are checked against its size. Move-only; immutable after open, so any thread
// may read it; share one as shared_ptr<const MappedFile>. The file must not be cut short while it is mapped (files of
// Sluice are never overwritten; a model file belongs to the user).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace sluice {

class MappedFile {
 public:
  // kNotFound when there is no such file, kInvalidArgument when it isn't a regular file, kUnavailable when it can't be
  // opened or mapped. An empty file maps to no bytes.
  static Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return bytes_.size(); }
  std::span<const std::byte> bytes() const { return bytes_; }

  // `length` bytes from `offset`; kCorrupt, naming the file, where they don't lie inside it.
  Result<std::span<const std::byte>> view(std::uint64_t offset, std::uint64_t length) const;

  // Hands the pages back to the system; whoever reads next has them read from the file again. Safe beside readers.
  Status release_pages() const;

 private:
  MappedFile(std::string path, std::span<const std::byte> bytes) : path_(std::move(path)), bytes_(bytes) {}
  void unmap();

  std::string path_;
  std::span<const std::byte> bytes_;
};

}  // namespace sluice
