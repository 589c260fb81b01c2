// SPDX-License-Identifier: GPL-3.0-or-later
#include "base/net/sse.h"

namespace sluice {

SseReader::Outcome SseReader::feed(std::string_view bytes, const std::function<bool(std::string_view)>& on_data) {
  while (!bytes.empty()) {
    if (after_cr_) {
      after_cr_ = false;
      if (bytes[0] == '\n') {
        bytes.remove_prefix(1);
        continue;
      }
    }
    const std::size_t end = bytes.find_first_of("\r\n");
    const std::string_view part = bytes.substr(0, end);
    if (line_.size() + data_.size() + part.size() > max_event_bytes_) return Outcome::kTooLarge;
    line_.append(part);
    if (end == std::string_view::npos) break;
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    const Outcome outcome = end_line(on_data);
    if (outcome != Outcome::kMore) return outcome;
  }
  return Outcome::kMore;
}

SseReader::Outcome SseReader::end_line(const std::function<bool(std::string_view)>& on_data) {
  std::string_view line = line_;
  if (first_line_ && line.substr(0, 3) == "\xEF\xBB\xBF") line.remove_prefix(3);
  first_line_ = false;
  if (line.empty()) {
    line_.clear();
    if (!has_data_) return Outcome::kMore;
    has_data_ = false;
    std::string data;
    data.swap(data_);
    return on_data(data) ? Outcome::kMore : Outcome::kStopped;
  }
  const std::size_t colon = line.find(':');
  if (line.substr(0, colon) == "data") {
    std::string_view value = colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
    if (!value.empty() && value[0] == ' ') value.remove_prefix(1);
    if (has_data_) data_ += '\n';
    data_ += value;
    has_data_ = true;
  }
  line_.clear();
  return Outcome::kMore;
}

}  // namespace sluice
