// SPDX-License-Identifier: GPL-3.0-or-later
#include "tasks/stream.h"

#include <cassert>

#include "base/seeds.h"

namespace sluice {

PromptStream::PromptStream(std::vector<TaskPrompt> prompts, std::uint64_t seed) : prompts_(std::move(prompts)), seed_(seed) {
  assert(!prompts_.empty());
}

PromptStream::Next PromptStream::next() {
  const std::size_t place = static_cast<std::size_t>(number_) % prompts_.size();
  if (place == 0 || order_.empty()) shuffle();
  SplitMix64 draw(seed_ ^ SplitMix64(static_cast<std::uint64_t>(number_)).next());
  return {&prompts_[order_[place]], number_++, draw.next() >> 1};
}

void PromptStream::skip(std::int64_t count) {
  number_ += count;
  shuffle();
}

// Each round has an order of its own, made from seed and round alone, so that skip() lands where next() would have.
void PromptStream::shuffle() {
  const std::uint64_t round = static_cast<std::uint64_t>(number_) / prompts_.size();
  order_ = seeded_permutation(prompts_.size(), seed_ + SplitMix64(round).next());
}

}  // namespace sluice
