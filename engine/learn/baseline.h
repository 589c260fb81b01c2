// SPDX-License-Identifier: GPL-3.0-or-later
// Running means of past rewards per source and segment, the baseline of learning.md §2.4. A value type; one thread.
#pragma once

#include <array>
#include <map>
#include <string>

#include "base/result.h"
#include "learn/settings.h"

namespace sluice {

// "<route>/<prompt-length bin>": what samples share a mean. Bins 0-64, 65-256, 257-1024, longer.
std::string segment_of(const RecordRow& record);

class Baseline {
 public:
  // b_k = (S_k + 10 Lbar b) / (N_k + 10 Lbar), b = S / N over all segments of the source; 0 before any data.
  double read(FeedbackSource source, const std::string& segment) const;
  // One trained sample of `length` tokens (> 0; 1 with seq_mean) and reward `value`. Earlier samples of the segment decay by
  // 2^(-1/half_life). Segments beyond 64 of a source share one.
  void add(FeedbackSource source, const std::string& segment, double length, double value,
           double half_life = LearnSettings().baseline_half_life);

  // Exact text form (hexadecimal floats): parse(serialise()) reads back bit for bit. kCorrupt on anything else.
  std::string serialise() const;
  static Result<Baseline> parse(const std::string& text);
  // {"client":{"chat/0-64":[S,N],...},...} for people and for the batch row.
  std::string to_json() const;

  bool operator==(const Baseline&) const = default;

 private:
  struct Sums {
    double reward = 0;   // sum of L r, decayed
    double length = 0;   // sum of L, decayed
    double count = 0;    // sum of 1, decayed
    void add(double length_now, double value, double decay);
    bool operator==(const Sums&) const = default;
  };
  struct Source {
    Sums all;
    std::map<std::string, Sums> segments;
    bool operator==(const Source&) const = default;
  };
  std::array<Source, kFeedbackSources> sources_;
};

}  // namespace sluice
