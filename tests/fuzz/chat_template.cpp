// SPDX-License-Identifier: GPL-3.0-or-later
#include "text/chat_template.h"

#include <cstdlib>

#include "targets.h"
#include "text/jinja.h"
#include "text/utf8.h"

namespace sluice::fuzz {
namespace {

std::vector<std::pair<std::string, jinja::Value>> globals(const std::string& text) {
  using Dict = DataValue::Dict;
  const DataValue tool = Dict{{"type", "function"}, {"function", Dict{{"name", "f"}, {"parameters", Dict{}}}}};
  const DataValue messages = DataValue::List{Dict{{"role", "system"}, {"content", "s"}}, Dict{{"role", "user"}, {"content", text}},
                                             Dict{{"role", "assistant"}, {"content", nullptr}, {"tool_calls", DataValue::List{tool}}}};
  std::vector<std::pair<std::string, jinja::Value>> out;
  out.emplace_back("messages", *jinja::from_data(messages, jinja::kFromData));
  out.emplace_back("tools", *jinja::from_data(DataValue::List{tool}, jinja::kFromData));
  out.emplace_back("add_generation_prompt", jinja::Value(true));
  out.emplace_back("bos_token", jinja::Value::literal("<s>"));
  return out;
}

}  // namespace

void chat_template(std::string_view input) {
  const std::size_t nul = std::min(input.find('\0'), input.size());
  const std::string text = to_valid_utf8(nul < input.size() ? input.substr(nul + 1) : "hi");
  const auto parsed = jinja::Template::parse(std::string(input.substr(0, nul)));
  if (!parsed.ok()) return;
  // Few steps: what a template may cost in all is tested elsewhere, and the fuzzer is to be quick.
  const auto rendered = (*parsed)->render(globals(text), {.max_steps = 100'000, .now_unix = 1'750'000'000});
  if (rendered.ok() && !is_valid_utf8(rendered->text())) std::abort();
  if (rendered.ok() || rendered.status().reason() == Reason::kTemplate) return;  // what it raises is said in its own words
  if (rendered.status().message().find("line ") == std::string::npos) std::abort();
}

}  // namespace sluice::fuzz
