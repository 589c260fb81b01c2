// SPDX-License-Identifier: GPL-3.0-or-later
// A recipe for the tiny model whose candidates the gate can't decide about.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace sluice::testing {

// Its gate can prove nothing within four pairs: every candidate is held, one step from the version in service.
inline const char kHeldRecipe[] = R"({
  "name": "held", "title": "Held", "summary": "Every candidate is held.",
  "stream": {"forms": ["What is {topic}?", "Explain {topic}."], "topics": ["snow", "a desert", "coffee", "chess"],
             "held_out_topics": ["fog", "a comet", "tea", "rice"], "probe_topics": ["salt"]},
  "user": {"name": "reader", "rules": [{"rule": "characters", "min": 1, "max": 12}]},
  "protected": {"name": "says something", "rules": [{"rule": "not-empty"}]},
  "sampling": {"temperature": 1.0, "top_p": 1.0, "max_tokens": 8},
  "learn": {"lr": 0.001, "rank": 4, "kl_beta": 0.0, "warmup_steps": 0, "batch_size": 8, "candidate_every": 1,
            "max_ahead": 1, "max_age": 1000,
            "brakes": {"mean_abs_kl": 50, "length_bias": 1, "length_low": 0.01, "length_high": 100, "outside_ratio_share": 1}},
  "gate": {"profile": "demo", "alpha": 0.01, "beta": 0.01, "n_min": 2, "cap": 4, "probes": 2, "protected_limit": 1000000,
           "anchor": false,
           "invariants": {"kl_incumbent": 100, "kl_base": 100, "eos_drop": 1, "cut_rise": 1, "empty_rise": 1,
                          "length_ratio_lo": 0, "length_ratio_hi": 1000, "distinct3_ratio": 0, "duplicate_ratio": 1000,
                          "duplicate_rise": 1, "latency_ratio": 1000, "probe_mismatch": 10}},
  "demo": {"bad_candidate": false, "concurrency": 2}
})";

// `text` with the first `what` replaced.
inline std::string changed(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), by);
}

}  // namespace sluice::testing
