// SPDX-License-Identifier: GPL-3.0-or-later
// What of a record stands elsewhere goes with it.
#include "store_fixture.h"

namespace sluice {
namespace {

class RedactionTest : public StoreTest {
 protected:
  RecordRow turn(const std::string& text) {
    RecordRow row = make_record(SessionId(), text);
    row.conversation = "c1";
    row.turn = "main";
    return store->add_record(row).value();
  }
};

// The turn before keeps the first message of the next one, for its judge.
TEST_F(RedactionTest, TheTurnBeforeForgetsWhatThisOneBeganWith) {
  for (const bool whole_row : {false, true}) {
    const RecordRow first = turn("hello");
    ASSERT_TRUE(store->add_next_state(SessionId(), "c1", R"({"role":"user","content":"my secret"})").value());
    const RecordRow second = turn("my secret");
    ASSERT_NE(store->record(first.id)->next_state, "");
    const auto done = whole_row ? store->delete_record(second.id) : store->redact_record(second.id);
    ASSERT_TRUE(done.ok()) << done.status().message();
    EXPECT_EQ(store->record(first.id)->next_state, "") << whole_row;
  }
}

}  // namespace
}  // namespace sluice
