// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/large_block.h"

#include <sys/mman.h>

#include <new>

namespace sluice {

LargeBlock::LargeBlock(std::size_t bytes) {
  if (bytes == 0) return;
  constexpr std::size_t kLargePage = std::size_t{2} << 20;
  // Only what is touched takes memory: the space for a start on a large page costs none.
  const std::size_t size = bytes < kLargePage ? bytes : bytes + kLargePage;
  void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  mapping_ = std::unique_ptr<void, Unmap>(at, Unmap{size});
  data_ = at;
  if (bytes < kLargePage) return;
  std::size_t space = size;
  std::align(kLargePage, bytes, data_, space);
  madvise(data_, bytes, MADV_HUGEPAGE);  // a wish: small pages do as well
}

void LargeBlock::Unmap::operator()(void* at) const { munmap(at, bytes); }

}  // namespace sluice
