// SPDX-License-Identifier: GPL-3.0-or-later
// What of a record stands elsewhere goes with it.
#include <fstream>

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

// Not in a row, in a page that was given free, in the index over texts or in the log.
TEST_F(RedactionTest, NoByteOfTheTextStaysInTheFiles) {
  const std::string secret = "Zanzibar-quokka-7731";
  const auto seen_in = [&](const std::string& text) {
    std::string where;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string bytes((std::istreambuf_iterator<char>(in)), {});
      if (bytes.find(text) != std::string::npos) where += entry.path().filename().string() + " ";
    }
    return where;
  };
  const auto found = [&](const std::string& text) {
    RecordFilter filter;
    filter.text = text;
    return store->records(filter, 0, 10).size();
  };
  for (const bool whole_row : {false, true}) {
    const RecordRow kept = turn("an ordinary question");
    RecordRow row = make_record(SessionId(), "my secret is " + secret);
    row.completion_text = secret + std::string(20'000, 'x') + secret;  // in pages of its own
    row.prompt_json = "[\"" + secret + "\"]";
    row = store->add_record(row).value();
    for (const auto source : {FeedbackSource::kClient, FeedbackSource::kHuman}) {
      FeedbackRow said = label(row.id, FeedbackKind::kAccept, source);
      said.comment = said.reason = "about " + secret;
      ASSERT_TRUE(store->add_feedback(said).ok());
    }
    ASSERT_NE(seen_in(secret), "");
    ASSERT_EQ(found(secret), 1u);
    const auto done = whole_row ? store->delete_record(row.id) : store->redact_record(row.id);
    ASSERT_TRUE(done.ok()) << done.status().message();
    EXPECT_EQ(seen_in(secret), "") << whole_row;
    EXPECT_EQ(seen_in("quokka"), "") << whole_row;
    EXPECT_EQ(seen_in("okk"), "") << "three letters as the index keeps them";
    EXPECT_EQ(store->record(kept.id)->prompt_text, "an ordinary question");
    EXPECT_EQ(found("ordinary"), whole_row ? 2u : 1u);
  }
}

}  // namespace
}  // namespace sluice
