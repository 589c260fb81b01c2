// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/format/safetensors.h"

#include "memory_file.h"
#include "targets.h"

namespace sluice::fuzz {

void safetensors(std::string_view input) {
  const MemoryFile memory(input);
  const auto file = SafetensorsFile::open(memory.path());
  if (!file.ok()) return;
  std::size_t total = 0;
  for (const SafeTensor& tensor : (*file)->tensors()) {
    std::size_t sum = 0;
    for (const std::byte byte : tensor.bytes) sum += static_cast<std::size_t>(byte);  // all of it must be readable
    total += sum <= 255 * tensor.bytes.size() ? tensor.bytes.size() : 0;
    if ((*file)->find(tensor.name) == nullptr) std::abort();
  }
  if (total > input.size()) std::abort();  // tensors do not overlap
}

}  // namespace sluice::fuzz
