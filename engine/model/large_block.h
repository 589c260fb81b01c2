// SPDX-License-Identifier: GPL-3.0-or-later
// A block of memory, zeros at first, that is read from end to end again and again: on large pages where the system has
// them, for with pages of 4 KB a stream stops at every page for its address. Owned; moves, is not copied.
#pragma once

#include <cstddef>
#include <memory>

namespace sluice {

class LargeBlock {
 public:
  LargeBlock() = default;
  explicit LargeBlock(std::size_t bytes);  // throws std::bad_alloc

  void* data() const { return data_; }  // aligned to 64 bytes; null without bytes

 private:
  struct Unmap {
    std::size_t bytes;
    void operator()(void* at) const;
  };
  std::unique_ptr<void, Unmap> mapping_{nullptr, Unmap{0}};
  void* data_ = nullptr;
};

}  // namespace sluice
