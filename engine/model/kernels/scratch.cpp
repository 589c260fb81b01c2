// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/kernels/scratch.h"

#include <cstdlib>
#include <memory>
#include <new>

namespace sluice {
namespace {

struct Free {
  void operator()(std::byte* p) const { std::free(p); }
};

struct Scratch {
  std::unique_ptr<std::byte, Free> memory;
  std::size_t size = 0;
};

}  // namespace

std::byte* thread_scratch(std::size_t bytes) {
  thread_local Scratch scratch;
  if (scratch.size < bytes) {
    const std::size_t rounded = (bytes + 4095) / 4096 * 4096;
    scratch.size = 0;
    scratch.memory.reset();
    scratch.memory.reset(static_cast<std::byte*>(std::aligned_alloc(64, rounded)));
    if (scratch.memory == nullptr) throw std::bad_alloc();
    scratch.size = rounded;
  }
  return scratch.memory.get();
}

}  // namespace sluice
