// SPDX-License-Identifier: GPL-3.0-or-later
#include "text/utf8.h"

#include <gtest/gtest.h>

#include "text/byte_alphabet.h"

namespace sluice {
namespace {

TEST(Utf8, ReplacesMaximalSubparts) {
  // Unicode 15, table 3-11: one U+FFFD for a cut but well begun sequence, one for each byte that begins nothing.
  EXPECT_EQ(to_valid_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), "\uFFFD\uFFFD\uFFFD\uFFFD\x41");
  EXPECT_EQ(to_valid_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\x41");
  EXPECT_EQ(to_valid_utf8("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(to_valid_utf8("\xF4\x91\x92\x93"), "\uFFFD\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(to_valid_utf8("h\xC3\xA9\xF0\x9F\x98\x80"), "h\xC3\xA9\xF0\x9F\x98\x80");
}

TEST(Utf8, DrainsWhatIsCertainAtEveryCut) {
  const std::string text = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\xFF\xF0\x9F\xE2z\xE2\x82";
  for (std::size_t first = 0; first <= text.size(); ++first) {
    for (std::size_t second = first; second <= text.size(); ++second) {
      std::string pending, out;
      for (const std::string& part : {text.substr(0, first), text.substr(first, second - first), text.substr(second)}) {
        pending += part;
        drain_valid_utf8(pending, out);
        EXPECT_LE(pending.size(), 3u);
        EXPECT_TRUE(is_valid_utf8(out));
      }
      EXPECT_EQ(out + to_valid_utf8(pending), to_valid_utf8(text));
    }
  }
}

TEST(Utf8, ComposesCanonically) {
  EXPECT_EQ(to_nfc("plain"), "plain");
  EXPECT_EQ(to_nfc("e\u0301"), "\u00E9");
  EXPECT_EQ(to_nfc("a\u0308\u0323"), "\u1EA1\u0308");   // the mark below comes first and composes
  EXPECT_EQ(to_nfc("\u212B"), "\u00C5");
  EXPECT_EQ(to_nfc("\u1112\u1161\u11AB"), "\uD55C");
  EXPECT_EQ(to_nfc("\u0915\u093C"), "\u0915\u093C");     // a composition exclusion
}

TEST(Utf8, LongRunsOfMarksAreNotQuadratic) {
  std::string text = "a";
  for (int i = 0; i < 200'000; ++i) text += i % 2 ? "\u0323" : "\u0308";  // a bubble sort would need 10^10 swaps
  const std::string composed = to_nfc(text);
  EXPECT_EQ(composed.substr(0, 3), "\u1EA1");
  EXPECT_EQ(composed.size(), text.size());  // "a" and one mark of two bytes became one character of three
}

TEST(ByteAlphabet, RoundTripsEveryByte) {
  std::string all;
  for (int b = 0; b < 256; ++b) all += static_cast<char>(b);
  std::string back;
  ASSERT_TRUE(alphabet_to_bytes(bytes_to_alphabet(all), back));
  EXPECT_EQ(back, all);
  EXPECT_EQ(bytes_to_alphabet(" \n"), "\u0120\u010A");
  EXPECT_FALSE(alphabet_to_bytes(" ", back));
  EXPECT_FALSE(alphabet_to_bytes("\u4E00", back));
}

}  // namespace
}  // namespace sluice
