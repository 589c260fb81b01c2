// SPDX-License-Identifier: GPL-3.0-or-later
// The subset of the Jinja template language that chat templates use (serving.md 4.4), with trim_blocks and lstrip_blocks
// on. What it does not know is an error with its line, at parse time. Every byte of the result is marked as the
// template's own or the caller's data.
// Immutable once parsed; any number of threads may render at once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/jinja/marked_text.h"
#include "text/jinja/value.h"

namespace sluice::jinja {

struct RenderLimits {
  std::int64_t max_steps = 4'000'000;  // about a second; texts and values are capped at 64 MiB (kMaxWeight)
  std::int64_t now_unix = -1;          // for strftime_now, in seconds UTC; -1 = the clock
};

class Template {
 public:
  static Result<std::unique_ptr<const Template>> parse(const std::string& source);
  ~Template();
  Template(const Template&) = delete;
  Template& operator=(const Template&) = delete;

  Result<MarkedText> render(std::vector<std::pair<std::string, Value>> globals, const RenderLimits& limits = {}) const;

 private:
  struct Impl;
  explicit Template(std::unique_ptr<const Impl> impl);

  const std::unique_ptr<const Impl> impl_;
};

}  // namespace sluice::jinja
