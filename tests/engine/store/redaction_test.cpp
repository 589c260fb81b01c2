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

// A reader that goes on after the last number it saw, or a client that takes a label back, must not meet another row under it.
TEST_F(RedactionTest, NumbersOfDeletedRowsNeverComeBack) {
  std::int64_t last_record = 0, last_feedback = 0;
  for (int round = 0; round < 3; ++round) {
    const RecordRow kept = turn("kept"), gone = turn("gone");
    const auto said = store->add_feedback(label(gone.id));
    ASSERT_TRUE(said.ok()) << said.status().message();
    EXPECT_GT(kept.seq, last_record);
    EXPECT_GT(said->row.id.value, last_feedback);
    last_record = gone.seq;
    last_feedback = said->row.id.value;
    ASSERT_TRUE(store->delete_record(gone.id).ok());
    ASSERT_TRUE(store->delete_record(kept.id).ok()) << "an older one after it";
  }
}

}  // namespace
}  // namespace sluice
