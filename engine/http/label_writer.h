// SPDX-License-Identifier: GPL-3.0-or-later
// Labels of every dialect on their way into the store: by a record's id, or by the text that was shown (serving.md §2.2,
// §2.3). Thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "http/completions.h"
#include "http/control.h"
#include "http/http_types.h"
#include "http/metrics.h"
#include "store/store.h"
#include "text/tokenizer.h"

namespace sluice {

std::string_view trim_space(std::string_view text);

// How many of the tokens begin before byte `end` of their decoded text; special tokens have no text.
std::int64_t tokens_before(const Tokenizer& tokenizer, const std::vector<TokenId>& ids, std::size_t end);

class LabelWriter {
 public:
  using Outcome = std::variant<FeedbackOutcome, ApiError>;

  LabelWriter(Store& store, const Completions& completions, Metrics& metrics, const Control& control)
      : store_(store), completions_(completions), metrics_(metrics), control_(control) {}

  // Durable when it returns. Errors: record_not_found, record_open, a choice the record lacks, idempotency_conflict.
  Outcome write(FeedbackRow row) const;
  // One result each, in one commit.
  std::vector<Outcome> write(std::vector<FeedbackRow> rows) const;
  // All of them or none; the error is the first one's.
  std::variant<std::vector<FeedbackOutcome>, ApiError> write_together(std::vector<FeedbackRow> rows) const;
  // Turns `row` into one by text: finds its record by the first prompt digest that has one. Without text to match it names
  // none. `cache_hit`: the client showed an old answer again. model_loading: only a part of the answer was shown, which the
  // model's tokenizer has to count.
  [[nodiscard]] std::optional<ApiError> find_by_text(FeedbackRow* row, const std::vector<std::string>& digests,
                                                     const std::string& completion, bool cache_hit) const;
  // Why there is no such record: unknown, or its answer is still being made.
  ApiError no_record(const RecordId& id) const;
  // A label that says nothing, an empty completion for one: `ignored`, not stored.
  FeedbackOutcome ignored(const FeedbackRow& row) const;

 private:
  std::optional<ApiError> check_record(const FeedbackRow& row) const;
  ApiError error_of(const Status& status, const FeedbackRow& row) const;
  void count(const FeedbackRow& row) const;

  Store& store_;
  const Completions& completions_;
  Metrics& metrics_;
  const Control& control_;
};

}  // namespace sluice
