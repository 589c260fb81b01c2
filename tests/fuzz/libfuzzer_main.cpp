// SPDX-License-Identifier: GPL-3.0-or-later
// One libFuzzer program; SLUICE_FUZZ_TARGET names its function.
#include <cstdint>

#include "targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sluice::fuzz::SLUICE_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}
