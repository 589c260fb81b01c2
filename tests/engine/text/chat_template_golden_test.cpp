// SPDX-License-Identifier: GPL-3.0-or-later
// Rendered prompts equal to jinja2's, set up as Hugging Face does: templates in the manner of popular families, and
// snippets for each construct. What jinja2 refuses must be refused here too.
#include <gtest/gtest.h>

#include <fstream>

#include "golden_vocabulary.h"
#include "support/template_json.h"
#include "text/chat_template.h"
#include "text/jinja.h"

namespace sluice {
namespace {

using Json = OrderedJson;

class TemplateGolden : public ::testing::Test {
 protected:
  TemplateGolden() {
    std::ifstream in(golden::data_path("chat_templates.json"));
    golden_ = Json::parse(in);
  }
  Json golden_;
};

// The place is named, unless the template raised the error itself: that is said in its own words.
bool is_told(const Status& status, const char* line) {
  return status.reason() == Reason::kTemplate || status.message().find(line) != std::string::npos;
}

TEST_F(TemplateGolden, TPL3_PromptsEqualJinja2) {
  std::map<std::string, std::shared_ptr<const ChatTemplate>> templates;
  for (const auto& [name, source] : golden_["templates"].items()) {
    auto made = ChatTemplate::create(source.get<std::string>(), "<s>", "</s>");
    ASSERT_TRUE(made.ok()) << name << ": " << (made.ok() ? "" : made.status().message());
    templates[name] = *made;
  }
  ASSERT_GE(golden_["cases"].size(), 200u);
  for (const Json& one : golden_["cases"]) {
    const Json& conversation = golden_["conversations"][one["conversation"].get<std::size_t>()];
    const auto segments = render_json(*templates[one["template"].get<std::string>()], conversation, golden_["now"].get<std::int64_t>());
    if (one.contains("error")) {
      EXPECT_FALSE(segments.ok()) << one;
      if (!segments.ok()) {
        EXPECT_TRUE(is_told(segments.status(), "line ")) << segments.status().message();
      }
    } else {
      ASSERT_TRUE(segments.ok()) << one << (segments.ok() ? "" : segments.status().message());
      EXPECT_EQ(join_segments(*segments), one["text"].get<std::string>()) << one["template"] << conversation;
    }
  }
}

TEST_F(TemplateGolden, SnippetsEqualJinja2) {
  ASSERT_GE(golden_["snippets"].size(), 110u);
  for (const Json& one : golden_["snippets"]) {
    const std::string source = one["source"].get<std::string>();
    std::vector<std::pair<std::string, jinja::Value>> globals;
    for (const auto& [name, value] : golden_["values"].items()) {
      globals.emplace_back(name, *jinja::from_data(data_from_json(value), jinja::kFromData));
    }
    auto parsed = jinja::Template::parse(source);
    Result<jinja::MarkedText> text = parsed.ok() ? (*parsed)->render(globals, {.now_unix = golden_["now"].get<std::int64_t>()})
                                                 : Result<jinja::MarkedText>(parsed.status());
    if (one.contains("error")) {
      EXPECT_FALSE(text.ok()) << source << " gave " << (text.ok() ? text->text() : "");
      if (!text.ok()) {
        EXPECT_TRUE(is_told(text.status(), "line 1")) << text.status().message();
      }
    } else {
      EXPECT_TRUE(text.ok()) << source << "\n" << (text.ok() ? "" : text.status().message());
      if (text.ok()) {
        EXPECT_EQ(text->text(), one["text"].get<std::string>()) << source;
      }
    }
  }
}

}  // namespace
}  // namespace sluice
