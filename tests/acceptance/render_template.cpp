// SPDX-License-Identifier: GPL-3.0-or-later
// Renders conversations with chat templates, for real_templates.py: reads {"now", "templates": {name: source}, "conversations": [...]}
// from standard input and writes {name: [{"text"} or {"error"}, ...]}, one entry for each conversation.
#include <cstdio>
#include <iostream>

#include "support/template_json.h"

int main() {
  using sluice::ChatTemplate;
  using sluice::OrderedJson;
  const OrderedJson asked = OrderedJson::parse(std::cin, nullptr, false);
  if (asked.is_discarded()) {
    std::fputs("render_template: standard input is not JSON\n", stderr);
    return 2;
  }
  OrderedJson out = OrderedJson::object();
  for (const auto& [name, source] : asked["templates"].items()) {
    OrderedJson results = OrderedJson::array();
    const auto made = ChatTemplate::create(source.get<std::string>(), "<s>", "</s>");
    for (const OrderedJson& conversation : asked["conversations"]) {
      if (!made.ok()) {
        results.push_back({{"error", made.status().message()}});
        continue;
      }
      const auto segments = sluice::render_json(**made, conversation, asked["now"].get<std::int64_t>());
      if (segments.ok()) {
        results.push_back({{"text", sluice::join_segments(*segments)}});
      } else {
        results.push_back({{"error", segments.status().message()}});
      }
    }
    out[name] = std::move(results);
  }
  std::cout << out.dump() << "\n";
  return 0;
}
