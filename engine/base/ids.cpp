// SPDX-License-Identifier: GPL-3.0-or-later
#include "base/ids.h"

#include <sys/random.h>

#include <array>

#include "base/clock.h"

namespace sluice {

RecordId RecordId::make() {
  // ULID: 48 bits of milliseconds, 80 random bits, big-endian, in Crockford's base 32.
  std::array<unsigned char, 16> bytes{};
  const std::uint64_t ms = static_cast<std::uint64_t>(Clock::system().wall_us() / 1000);
  for (int i = 0; i < 6; ++i) bytes[i] = static_cast<unsigned char>(ms >> (8 * (5 - i)));
  std::size_t have = 6;
  while (have < bytes.size()) {
    const ssize_t got = getrandom(bytes.data() + have, bytes.size() - have, 0);
    if (got > 0) have += static_cast<std::size_t>(got);
  }
  static constexpr char kDigits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  std::string text = "rec_";
  // 128 bits in 26 digits of 5 bits: the first digit holds the top 3 bits only.
  for (int digit = 0; digit < 26; ++digit) {
    unsigned value = 0;
    for (int bit = 0; bit < 5; ++bit) {
      const int position = digit * 5 + bit - 2;
      const unsigned b = position < 0 ? 0u : (bytes[static_cast<std::size_t>(position / 8)] >> (7 - position % 8)) & 1u;
      value = value * 2 + b;
    }
    text += kDigits[value];
  }
  return {text};
}

}  // namespace sluice
