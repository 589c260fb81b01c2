// SPDX-License-Identifier: GPL-3.0-or-later
// Reads server-sent events out of a byte stream cut anywhere (WHATWG HTML, "Interpreting an event stream"; only `data`
// fields count here). Used by one thread at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sluice {

class SseReader {
 public:
  explicit SseReader(std::size_t max_event_bytes) : max_event_bytes_(max_event_bytes) {}

  enum class Outcome { kMore, kStopped, kTooLarge };
  // Gives on_data each event that `bytes` completes; it returns false to stop. An event not ended by an empty line is
  // dropped at the end of the stream, as the standard says.
  Outcome feed(std::string_view bytes, const std::function<bool(std::string_view)>& on_data);

 private:
  Outcome end_line(const std::function<bool(std::string_view)>& on_data);

  std::size_t max_event_bytes_;
  std::string line_;
  std::string data_;
  bool has_data_ = false;
  bool after_cr_ = false;  // a LF now belongs to the CR that ended the line
  bool first_line_ = true;  // a byte order mark may stand before it
};

}  // namespace sluice
