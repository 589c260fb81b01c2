// SPDX-License-Identifier: GPL-3.0-or-later
#include "base/ids.h"

#include <gtest/gtest.h>

#include <set>

namespace sluice {
namespace {

TEST(RecordId, IsAPrefixedUlidAndUnique) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const RecordId id = RecordId::make();
    ASSERT_EQ(id.text.size(), 30u);
    EXPECT_EQ(id.text.substr(0, 4), "rec_");
    EXPECT_EQ(id.text.find_first_not_of("0123456789ABCDEFGHJKMNPQRSTVWXYZ", 4), std::string::npos);
    EXPECT_TRUE(seen.insert(id.text).second);
  }
}

TEST(RecordId, SortsByTime) {
  const RecordId first = RecordId::make();
  RecordId later = RecordId::make();
  while (later.text.substr(4, 10) == first.text.substr(4, 10)) later = RecordId::make();
  EXPECT_LT(first, later);
}

}  // namespace
}  // namespace sluice
