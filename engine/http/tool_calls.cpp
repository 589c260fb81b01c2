// SPDX-License-Identifier: GPL-3.0-or-later
#include "http/tool_calls.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/ids.h"
#include "base/json_limits.h"
#include "http/fields.h"

namespace sluice {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kOpen = "<tool_call>";
constexpr std::string_view kClose = "</tool_call>";
constexpr std::string_view kSpace = " \t\r\n";

std::optional<ToolCall> parse_call(const std::string& text) {
  if (!check_json_limits(text, "a tool call").ok()) return std::nullopt;
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  const auto name = json.find("name");
  const auto arguments = json.find("arguments");
  if (name == json.end() || !name->is_string() || name->get_ref<const std::string&>().empty()) return std::nullopt;
  ToolCall call;
  call.id = "call_" + RecordId::make().text.substr(4);
  call.name = name->get<std::string>();
  if (arguments == json.end() || arguments->is_null()) {
    call.arguments = "{}";
  } else if (arguments->is_object()) {
    call.arguments = dump(*arguments);
  } else {
    return std::nullopt;
  }
  return call;
}

// Length of the longest end of `text` that `mark` begins with.
std::size_t begun(std::string_view text, std::string_view mark) {
  for (std::size_t n = std::min(mark.size() - 1, text.size()); n > 0; --n) {
    if (text.substr(text.size() - n) == mark.substr(0, n)) return n;
  }
  return 0;
}

}  // namespace

ToolCallReader::Piece ToolCallReader::push(std::string_view text) {
  Piece out;
  held_ += text;
  while (in_block_ ? take_block(out) : take_text(out)) {
  }
  return out;
}

ToolCallReader::Piece ToolCallReader::flush() {
  Piece out;
  out.content = std::move(space_) + std::move(held_);
  held_.clear();
  space_.clear();
  in_block_ = after_block_ = false;
  return out;
}

void ToolCallReader::skip_space() {
  if (!after_block_) return;
  held_.erase(0, std::min(held_.find_first_not_of(kSpace), held_.size()));
  if (!held_.empty()) after_block_ = false;
}

bool ToolCallReader::take_text(Piece& out) {
  skip_space();
  const std::size_t at = held_.find(kOpen);
  const std::size_t end = at != std::string::npos ? at : held_.size() - begun(held_, kOpen);
  // White space waits: it is no content if a block follows.
  const std::size_t text_end = held_.find_last_not_of(kSpace, end == 0 ? std::string::npos : end - 1);
  const std::size_t keep = end == 0 || text_end == std::string::npos ? 0 : text_end + 1;
  out.content += held_.substr(0, keep);
  if (at == std::string::npos) {
    held_.erase(0, keep);
    return false;
  }
  space_ = held_.substr(keep, at - keep);
  held_.erase(0, at);
  in_block_ = true;
  sought_ = kOpen.size();
  return true;
}

bool ToolCallReader::take_block(Piece& out) {
  const std::size_t close = held_.find(kClose, sought_);
  if (close == std::string::npos) {
    sought_ = std::max(kOpen.size(), held_.size() - std::min(held_.size(), kClose.size() - 1));
    return false;
  }
  std::optional<ToolCall> call = parse_call(held_.substr(kOpen.size(), close - kOpen.size()));
  const std::size_t end = close + kClose.size();
  if (call) {
    out.calls.push_back(std::move(*call));
  } else {
    out.content += space_ + held_.substr(0, end);
  }
  after_block_ = call.has_value();
  held_.erase(0, end);
  space_.clear();
  in_block_ = false;
  return true;
}

}  // namespace sluice
