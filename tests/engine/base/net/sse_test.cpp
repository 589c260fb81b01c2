// SPDX-License-Identifier: GPL-3.0-or-later
#include "base/net/sse.h"

#include <gtest/gtest.h>

#include <vector>

namespace sluice {
namespace {

using Events = std::vector<std::string>;

Events read_in_parts(std::string_view text, std::size_t part) {
  SseReader reader(1 << 20);
  Events events;
  for (std::size_t at = 0; at < text.size(); at += part) {
    EXPECT_EQ(reader.feed(text.substr(at, part), [&](std::string_view data) {
      events.emplace_back(data);
      return true;
    }), SseReader::Outcome::kMore);
  }
  return events;
}

// PRO-4: only the empty line ends an event, wherever the bytes are cut.
TEST(SseReader, PRO4_EventsAtEveryCut) {
  const std::string text =
      "\xEF\xBB\xBF" "data: first\n\n: a comment\n\nevent: x\nid: 7\ndata:second\ndata:  indented\r\n\r\n"
      "data\n\ndata: third\r\rretry: 10\n\ndatax: no\n\ndata: [DONE]\n\ndata: never ended\n";
  const Events wanted = {"first", "second\n indented", "", "third", "[DONE]"};
  for (std::size_t part = 1; part <= text.size(); ++part) EXPECT_EQ(read_in_parts(text, part), wanted) << part;
}

TEST(SseReader, StopsWhenAsked) {
  SseReader reader(1 << 20);
  int seen = 0;
  const auto outcome = reader.feed("data: a\n\ndata: b\n\n", [&](std::string_view) { return ++seen < 1; });
  EXPECT_EQ(outcome, SseReader::Outcome::kStopped);
  EXPECT_EQ(seen, 1);
}

TEST(SseReader, RefusesAnEventAboveTheCap) {
  const auto never = [](std::string_view) { return true; };
  SseReader line(100);
  EXPECT_EQ(line.feed("data: " + std::string(100, 'x'), never), SseReader::Outcome::kTooLarge);
  SseReader lines(100);
  std::string many;
  for (int i = 0; i < 30; ++i) many += "data: xxxx\n";
  EXPECT_EQ(lines.feed(many, never), SseReader::Outcome::kTooLarge);
  SseReader events(100);
  std::string small;
  for (int i = 0; i < 100; ++i) small += "data: xxxx\n\n";
  EXPECT_EQ(events.feed(small, never), SseReader::Outcome::kMore);
}

}  // namespace
}  // namespace sluice
