// SPDX-License-Identifier: GPL-3.0-or-later
// What is kept of an exchange: the record row of learning.md §2.1. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chat/completion.h"
#include "store/rows.h"

namespace sluice {

struct PromptFacts {
  std::string text;                    // prompt_text_of()
  const std::vector<TokenId>* ids = nullptr;
  int max_tokens = 0;                  // after clamping
};

struct RecordFacts {
  const CompletionRequest* request = nullptr;
  RecordId id;
  VersionId version;
  std::string adapter_name;
  std::vector<PromptFacts> prompts;    // at least one
  const std::vector<ChoiceResult>* choices = nullptr;  // n of each prompt
  bool complete = true;
  std::int64_t received_us = 0;
  Timings timings;                     // of choice 0
};

// Prompt 0 and its choice 0 fill the row's own fields; further ones stand in sampling_json under "prompts" and "choices"
// (each from index 1 on; choice i belongs to prompt i / n) and do not train.
RecordRow make_record(const RecordFacts& facts);

// The text of a message's content: itself, or its text parts joined.
std::string content_text(const DataValue& content);
// What people read of a prompt: the last user message; the last message where there is none.
std::string prompt_text_of(const std::vector<ChatMessage>& messages);
std::string messages_json(const std::vector<ChatMessage>& messages);

}  // namespace sluice
