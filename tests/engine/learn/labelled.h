// SPDX-License-Identifier: GPL-3.0-or-later
// Records with labels for the tests of learn.
#pragma once

#include <string>
#include <vector>

#include "store/store.h"

namespace sluice::testing {

// A served chat answer of `tokens` tokens, whose ids tell records apart.
inline RecordRow served(int number, int tokens = 4, VersionId version = kBaseVersion) {
  RecordRow r;
  r.id = RecordId::make();
  r.version = version;
  r.adapter_name = version == kBaseVersion ? "base" : "t@" + std::to_string(version.value);
  r.route = "chat";
  r.group_key = "g" + std::to_string(number);
  r.prompt_text = "question " + std::to_string(number);
  r.completion_text = "answer " + std::to_string(number);
  r.prompt_ids = {1, 2, number % 50};
  for (int t = 0; t < tokens; ++t) {
    r.token_ids.push_back((number + t) % 50);
    r.lp_full.push_back(-1.0f - 0.01f * static_cast<float>(t));
    r.lp_mu.push_back(r.lp_full.back());
  }
  r.temperature = 0.7f;
  r.max_tokens = 96;
  r.finish_reason = "stop";
  return r;
}

inline FeedbackRow label(const RecordId& record, bool accept, FeedbackSource source = FeedbackSource::kPersona) {
  FeedbackRow f;
  f.record = record;
  f.kind = accept ? FeedbackKind::kAccept : FeedbackKind::kReject;
  f.source = source;
  return f;
}

inline LabelledRecord labelled(int number, bool accept, int tokens = 4, VersionId version = kBaseVersion) {
  LabelledRecord one;
  one.record = served(number, tokens, version);
  one.feedback = {label(one.record.id, accept)};
  return one;
}

}  // namespace sluice::testing
