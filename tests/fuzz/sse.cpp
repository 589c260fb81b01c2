// SPDX-License-Identifier: GPL-3.0-or-later
#include "base/net/sse.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "targets.h"

namespace sluice::fuzz {
namespace {

struct Seen {
  std::vector<std::string> events;
  SseReader::Outcome outcome = SseReader::Outcome::kMore;

  bool operator==(const Seen&) const = default;
};

Seen read(std::string_view bytes, std::size_t part) {
  SseReader reader(4096);
  Seen seen;
  while (!bytes.empty() && seen.outcome == SseReader::Outcome::kMore) {
    const std::size_t n = std::min(part, bytes.size());
    seen.outcome = reader.feed(bytes.substr(0, n), [&](std::string_view data) {
      seen.events.emplace_back(data);
      return data != "[DONE]";
    });
    bytes.remove_prefix(n);
  }
  return seen;
}

}  // namespace

void sse(std::string_view input) {
  if (input.empty()) return;
  const std::size_t part = static_cast<unsigned char>(input[0]) % 32 + 1;
  input.remove_prefix(1);
  // What is read does not depend on how the stream is cut.
  if (read(input, part) != read(input, std::max<std::size_t>(input.size(), 1))) std::abort();
}

}  // namespace sluice::fuzz
