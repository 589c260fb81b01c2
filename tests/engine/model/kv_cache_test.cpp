// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/kv_cache.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace sluice {
namespace {

constexpr KvShape kShape{2, 1, 8};

std::vector<TokenId> ids(int n, int from = 0) {
  std::vector<TokenId> v(static_cast<std::size_t>(n));
  std::iota(v.begin(), v.end(), from);
  return v;
}

// Opens, feeds what is not cached, and marks every position with `mark` + its index.
OpenedSequence fill(KvCache& cache, VersionId version, const std::vector<TokenId>& tokens, int reserve, float mark) {
  auto opened = cache.open(version, tokens, reserve);
  EXPECT_TRUE(opened.ok()) << opened.status().message();
  const int cached = opened->cached_tokens;
  EXPECT_TRUE(cache.extend(opened->handle, tokens.data() + cached, static_cast<int>(tokens.size()) - cached).ok());
  for (int p = cached; p < static_cast<int>(tokens.size()); ++p) {
    const int block = cache.blocks(opened->handle)[static_cast<std::size_t>(p / kKvBlock)];
    cache.keys(block, 1, 0)[p % kKvBlock * 8] = mark + static_cast<float>(p);
  }
  return *opened;
}

float key_at(KvCache& cache, SequenceHandle h, int position) {
  return cache.keys(cache.blocks(h)[static_cast<std::size_t>(position / kKvBlock)], 1, 0)[position % kKvBlock * 8];
}

TEST(KvCache, ReusesWholeBlocksAndCopiesTheRest) {
  KvCache cache(kShape, 1024, true);
  const auto first = fill(cache, VersionId(1), ids(100), 120, 1000);
  EXPECT_EQ(first.cached_tokens, 0);
  // An open sequence already shares: two whole blocks by reference, the third partly by copy.
  auto other = ids(100);
  other[80] = 7;
  const auto second = fill(cache, VersionId(1), other, 120, 2000);
  EXPECT_EQ(second.cached_tokens, 80);
  EXPECT_EQ(cache.blocks(second.handle)[1], cache.blocks(first.handle)[1]);
  EXPECT_NE(cache.blocks(second.handle)[2], cache.blocks(first.handle)[2]);
  EXPECT_EQ(key_at(cache, second.handle, 79), 1079);
  EXPECT_EQ(key_at(cache, second.handle, 80), 2080);
  EXPECT_EQ(key_at(cache, first.handle, 80), 1080);
  cache.close(first.handle, true);
  cache.close(second.handle, true);
  const auto third = fill(cache, VersionId(1), ids(100), 120, 3000);
  EXPECT_EQ(third.cached_tokens, 99);  // never the last prompt token
}

TEST(KvCache, LRA2_NeverCrossesVersions) {
  KvCache cache(kShape, 1024, true);
  cache.close(fill(cache, VersionId(1), ids(64), 64, 0).handle, true);
  const auto other = fill(cache, VersionId(2), ids(64), 64, 0);
  EXPECT_EQ(other.cached_tokens, 0);
  EXPECT_EQ(fill(cache, VersionId(1), ids(64), 64, 0).cached_tokens, 63);
}

TEST(KvCache, CON2_EvictsTheLeastRecentlyUsedAndForgetsItsContents) {
  KvCache cache(kShape, 4 * kKvBlock, true);
  cache.close(fill(cache, VersionId(1), ids(64), 64, 0).handle, true);        // two blocks
  cache.close(fill(cache, VersionId(1), ids(64, 500), 64, 0).handle, true);   // two more
  const auto big = fill(cache, VersionId(1), ids(64, 900), 64, 0);            // takes the older two
  EXPECT_EQ(cache.usage().tokens_used, 64);
  cache.close(big.handle, true);
  auto again = cache.open(VersionId(1), ids(64, 500), 64);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->cached_tokens, 63);
  cache.close(again->handle, true);
  again = cache.open(VersionId(1), ids(64), 64);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->cached_tokens, 0);
}

TEST(KvCache, ReservationsHold) {
  KvCache cache(kShape, 4 * kKvBlock, true);
  auto a = cache.open(VersionId(0), ids(3), 3 * kKvBlock);
  ASSERT_TRUE(a.ok());
  EXPECT_EQ(cache.usage().tokens_used, 3 * kKvBlock);
  EXPECT_EQ(cache.open(VersionId(0), ids(3), 2 * kKvBlock).code(), Code::kBusy);
  EXPECT_EQ(cache.open(VersionId(0), ids(3), 5 * kKvBlock).code(), Code::kInvalidArgument);
  EXPECT_EQ(cache.open(VersionId(0), {}, 4).code(), Code::kInvalidArgument);
  auto b = cache.open(VersionId(0), ids(3), kKvBlock);
  ASSERT_TRUE(b.ok());
  const auto many = ids(3 * kKvBlock + 1);
  EXPECT_FALSE(cache.extend(a->handle, many.data(), 3 * kKvBlock + 1).ok());
  EXPECT_EQ(cache.length(a->handle), 0);
  EXPECT_TRUE(cache.extend(a->handle, many.data(), 3 * kKvBlock).ok());
  EXPECT_EQ(cache.room(a->handle), 0);
  EXPECT_TRUE(cache.extend(b->handle, many.data(), kKvBlock).ok());
  cache.close(a->handle, true);
  cache.close(b->handle, true);
  cache.close(b->handle, true);  // twice: nothing
  EXPECT_EQ(cache.usage().tokens_used, 0);
  EXPECT_FALSE(cache.extend(a->handle, many.data(), 1).ok());
}

// A prefix match must not use up the room that another sequence was promised.
TEST(KvCache, MatchingAnIdlePrefixCountsAsUse) {
  KvCache cache(kShape, 4 * kKvBlock, true);
  cache.close(fill(cache, VersionId(0), ids(40), 40, 0).handle, true);  // two idle blocks
  auto promised = cache.open(VersionId(0), ids(5, 700), 2 * kKvBlock);
  ASSERT_TRUE(promised.ok());
  auto reuse = cache.open(VersionId(0), ids(40), 2 * kKvBlock);  // one shared, one to fill
  ASSERT_TRUE(reuse.ok());
  EXPECT_GE(reuse->cached_tokens, kKvBlock);
  EXPECT_EQ(cache.open(VersionId(0), ids(5, 800), 5).code(), Code::kBusy);
  const auto many = ids(2 * kKvBlock);
  EXPECT_TRUE(cache.extend(promised->handle, many.data(), 2 * kKvBlock).ok());
  EXPECT_TRUE(cache.extend(reuse->handle, many.data(), 2 * kKvBlock - reuse->cached_tokens).ok());
}

TEST(KvCache, ForgetsWhatAFailedStepWrote) {
  KvCache cache(kShape, 1024, true);
  cache.close(fill(cache, VersionId(1), ids(64), 64, 0).handle, false);
  EXPECT_EQ(fill(cache, VersionId(1), ids(64), 64, 0).cached_tokens, 0);
}

TEST(KvCache, DropsPrefixesOnRequestAndKeepsNoneWhenOff) {
  KvCache cache(kShape, 1024, true);
  const auto open = fill(cache, VersionId(1), ids(64, 300), 64, 0);
  cache.close(fill(cache, VersionId(1), ids(64), 64, 0).handle, true);
  cache.flush();
  EXPECT_EQ(fill(cache, VersionId(1), ids(64), 64, 0).cached_tokens, 0);
  EXPECT_TRUE(cache.is_open(open.handle));
  EXPECT_EQ(key_at(cache, open.handle, 63), 63);
  KvCache off(kShape, 1024, false);
  off.close(fill(off, VersionId(1), ids(64), 64, 0).handle, true);
  EXPECT_EQ(fill(off, VersionId(1), ids(64), 64, 0).cached_tokens, 0);
}

TEST(KvCache, AFlushHidesWhatOpenSequencesHold) {
  KvCache cache(kShape, 1024, true);
  const auto before = fill(cache, VersionId(1), ids(64), 100, 0);
  cache.flush();
  const auto after = fill(cache, VersionId(1), ids(64), 64, 5000);
  EXPECT_EQ(after.cached_tokens, 0);
  const auto more = ids(20, 200);
  EXPECT_TRUE(cache.extend(before.handle, more.data(), 20).ok()) << "what runs goes on";
  EXPECT_EQ(key_at(cache, before.handle, 63), 63);
  cache.close(before.handle, true);
  EXPECT_EQ(cache.usage().tokens_used, 64);
  auto longer = ids(64);
  longer.insert(longer.end(), more.begin(), more.end());
  const auto third = fill(cache, VersionId(1), longer, 100, 7000);
  EXPECT_EQ(third.cached_tokens, 64) << "of the one that came after the flush, never of the older one";
  EXPECT_EQ(key_at(cache, third.handle, 63), 5063);
}

TEST(KvCache, ExactSequencesShareOnlyAmongThemselves) {
  KvCache cache(kShape, 1024, true);
  cache.close(fill(cache, VersionId(1), ids(64), 64, 0).handle, true);
  auto exact = cache.open(VersionId(1), ids(64), {64, true});
  ASSERT_TRUE(exact.ok());
  EXPECT_EQ(exact->cached_tokens, 0);
  const auto all = ids(64);
  ASSERT_TRUE(cache.extend(exact->handle, all.data(), 64).ok());
  cache.close(exact->handle, true);
  exact = cache.open(VersionId(1), ids(64), {64, true});
  ASSERT_TRUE(exact.ok());
  EXPECT_EQ(exact->cached_tokens, 63);
}

TEST(KvCache, ReservesMoreWhileThereIsRoom) {
  KvCache cache(kShape, 4 * kKvBlock, true);
  auto a = cache.open(VersionId(0), ids(3), 3), b = cache.open(VersionId(0), ids(3), 3);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_TRUE(cache.reserve(a->handle, 2).ok()) << "less than it has";
  EXPECT_TRUE(cache.reserve(a->handle, 3 * kKvBlock).ok());
  EXPECT_EQ(cache.reserve(b->handle, kKvBlock + 1).code(), Code::kBusy);
  EXPECT_EQ(cache.reserve(b->handle, 5 * kKvBlock).code(), Code::kInvalidArgument);
  EXPECT_EQ(cache.room(b->handle), kKvBlock) << "unchanged";
  cache.close(a->handle, true);
  EXPECT_TRUE(cache.reserve(b->handle, 4 * kKvBlock).ok());
  EXPECT_FALSE(cache.reserve(a->handle, 1).ok()) << "closed";
}

// Random opens, growth and closes against what each sequence wrote.
TEST(KvCache, HoldsEverySequencesOwnValuesUnderChurn) {
  KvCache cache(kShape, 16 * kKvBlock, true);
  struct Live {
    SequenceHandle handle;
    std::vector<TokenId> tokens;
  };
  std::vector<Live> live;
  std::uint32_t random = 1;
  const auto next = [&](std::uint32_t n) {
    random = random * 1664525u + 1013904223u;
    return (random >> 10) % n;
  };
  // The value of a position follows from the tokens up to it, as keys do.
  const auto value = [](const std::vector<TokenId>& t, int p) {
    float v = 0;
    for (int i = 0; i <= p; ++i) v = std::fmod(v * 31 + static_cast<float>(t[static_cast<std::size_t>(i)]), 10007.0f);
    return v;
  };
  for (int round = 0; round < 2000; ++round) {
    if (live.size() < 5 && next(3) > 0) {
      Live l;
      const int n = 1 + static_cast<int>(next(90));
      for (int i = 0; i < n; ++i) l.tokens.push_back(static_cast<TokenId>(i % 40 == 13 ? next(3) : i % 7));
      auto opened = cache.open(VersionId(0), l.tokens, n + 20);
      if (!opened.ok()) continue;
      l.handle = opened->handle;
      ASSERT_TRUE(cache.extend(l.handle, l.tokens.data() + opened->cached_tokens, n - opened->cached_tokens).ok());
      for (int p = opened->cached_tokens; p < n; ++p) {
        cache.keys(cache.blocks(l.handle)[static_cast<std::size_t>(p / kKvBlock)], 1, 0)[p % kKvBlock * 8] = value(l.tokens, p);
      }
      live.push_back(std::move(l));
    } else if (!live.empty()) {
      const std::size_t i = next(static_cast<std::uint32_t>(live.size()));
      for (int p = 0; p < static_cast<int>(live[i].tokens.size()); ++p) {
        ASSERT_EQ(key_at(cache, live[i].handle, p), value(live[i].tokens, p)) << round;
      }
      cache.close(live[i].handle, next(8) > 0);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

}  // namespace
}  // namespace sluice
