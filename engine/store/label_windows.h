// SPDX-License-Identifier: GPL-3.0-or-later
// How long a label may take, by what asked and who answers, and which records others wait for (learning.md §2.2, serving.md
// §2.2). Pure functions over values; no thread rules.
//
// A record is of the stream its client named, else of its route. A stream that answers itself (X-Sluice-Stream) says so with
// RecordRow::holds; another name, such as reef's scenario, only groups: its records have the window of their route. Only records whose verdict comes by a timer or from a machine
// hold their stream up: quick verdicts are kinder than slow ones, so those would be trained on first and give a wrong rate. A
// person's verdict has no such clock, and may never come: a chat turn or a request made in the workbench holds nobody up, is
// trained on when its label is there and counted as missing when its window is over. No stream waits for another's.
#pragma once

#include <cstdint>

#include "store/rows.h"

namespace sluice {

struct LabelWindows {                      // microseconds from the record's commit
  std::int64_t completion_us = 15'000'000;   // editors: a 10 s timer and some latency
  std::int64_t chat_us = 900'000'000;        // the next turn
  std::int64_t stream_us = 120'000'000;      // a named stream: its persona or verifier
  std::int64_t judge_us = 300'000'000;
  std::int64_t desk_us = 86'400'000'000;     // a person, in the workbench or elsewhere
};

// Of a record on its way into the store. Without a label by then it is closed as `no_event`.
std::int64_t record_window_us(const RecordRow& record, const LabelWindows& windows);
// Of a record of the store: a label of this source is `late` after it; never shorter than the record's own.
std::int64_t label_window_us(const RecordRow& record, FeedbackSource source, const LabelWindows& windows);
// Do later records of its stream wait while it is open?
bool holds_stream(const RecordRow& record);

}  // namespace sluice
