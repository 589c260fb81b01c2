// SPDX-License-Identifier: GPL-3.0-or-later
// GET /sluice/v1/events: events in order, resumed by Last-Event-ID, a gap told (serving.md §1.2).
#include "http_fixture.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class EventsTest : public HttpTest {
 protected:
  int open_stream(const std::string& last_id = "") const {
    const int fd = connect_raw();
    send_raw(fd, "GET /sluice/v1/events HTTP/1.1\r\nHost: localhost\r\n" +
                     (last_id.empty() ? "" : "Last-Event-ID: " + last_id + "\r\n") + "\r\n");
    return fd;
  }
  // The id of the last event whose frame stands in `text`: others, such as log lines, may have come before the one looked for.
  static std::string id_in(const std::string& text) {
    const auto at = text.rfind("\nid: ") == std::string::npos ? text.find("id: ") : text.rfind("\nid: ") + 1;
    return at == std::string::npos ? "" : text.substr(at + 4, text.find('\n', at) - at - 4);
  }
};

TEST_F(EventsTest, CommitsAreToldAndResumed) {
  start();
  const int fd = open_stream();
  EXPECT_THAT(read_until(fd, ": open"), HasSubstr("text/event-stream"));
  const std::string first = post("/v1/completions", prompt("p")).body["sluice"]["record_id"];
  const std::string got = read_until(fd, first + "\"}\n\n");
  EXPECT_THAT(got, HasSubstr("event: record\ndata: {\"id\":1,\"kind\":\"record\",\"record_id\":\"" + first + "\"}\n\n"));
  const std::string id = id_in(got);
  ::close(fd);
  const std::string second = post("/v1/completions", prompt("q")).body["sluice"]["record_id"];
  const int again = open_stream(id);
  const std::string rest = read_until(again, second);
  EXPECT_EQ(rest.find(first), std::string::npos);
  EXPECT_NE(rest.find(second), std::string::npos);
  EXPECT_EQ(rest.find("reset"), std::string::npos);
  ::close(again);
}

TEST_F(EventsTest, AReaderThatMissedSomeIsTold) {
  start();
  const std::string old = control_->hub_->wire_id(control_->hub_->newest());
  for (int i = 0; i < 12; ++i) ASSERT_EQ(post("/v1/completions", prompt("p")).status, 200);  // the hub keeps 8
  int fd = open_stream(old);
  EXPECT_THAT(read_until(fd, "event: record"), HasSubstr("event: reset\n"));
  ::close(fd);
  fd = open_stream("another-program-7");
  EXPECT_THAT(read_until(fd, "reset"), HasSubstr("event: reset"));
  ::close(fd);
}

TEST_F(EventsTest, ReadersAreLimitedAndLeaveTheirPlace) {
  start();
  std::vector<int> readers;
  for (int i = 0; i < 32; ++i) {
    readers.push_back(open_stream());
    read_until(readers.back(), ": open");
  }
  EXPECT_EQ(get("/sluice/v1/events").code(), "queue_full");
  for (const int fd : readers) ::close(fd);
  int fd = -1;
  for (std::string head; head.find(" 200 ") == std::string::npos; head = read_until(fd, "\r\n\r\n")) {
    if (fd >= 0) ::close(fd);
    fd = open_stream();
  }
  ::close(fd);
}

TEST_F(EventsTest, StoppingEndsTheStream) {
  start();
  const int fd = open_stream();
  read_until(fd, ": open");
  server_->stop();
  EXPECT_THAT(read_all(fd), ::testing::Not(HasSubstr("error")));
  ::close(fd);
}

TEST(EventHub, NumbersWithoutGaps) {
  EventHub hub(4);
  for (int i = 1; i <= 10; ++i) hub.push({EventKind::kLog, i, "", i});
  const auto news = hub.wait_after(2, std::chrono::steady_clock::now());
  EXPECT_TRUE(news.missed);
  ASSERT_EQ(news.events.size(), 4u);
  EXPECT_EQ(news.events.front().number, 7);
  EXPECT_FALSE(hub.wait_after(6, std::chrono::steady_clock::now()).missed);
  EXPECT_TRUE(hub.wait_after(10, std::chrono::steady_clock::now()).events.empty());
  EXPECT_EQ(hub.parse_wire_id(hub.wire_id(7)), 7);
  for (const std::string& bad : {hub.wire_id(11), hub.wire_id(7) + "x", std::string("7"), std::string(), EventHub(4).wire_id(1)}) {
    EXPECT_FALSE(hub.parse_wire_id(bad)) << bad;
  }
}

}  // namespace
}  // namespace sluice
