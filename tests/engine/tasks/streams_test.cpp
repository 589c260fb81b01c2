// SPDX-License-Identifier: GPL-3.0-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tasks/recipe.h"
#include "tasks/simulated_user.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

class ShippedRecipe : public ::testing::TestWithParam<const char*> {
 protected:
  TaskRecipe load() const {
    const auto recipe = load_task_recipe(std::string(SLUICE_SOURCE_DIR) + "/resources/recipes/" + GetParam() + ".json");
    EXPECT_TRUE(recipe.ok()) << recipe.status().message();
    return recipe.value();
  }
};

TEST_P(ShippedRecipe, HasEnoughPromptsAndKeepsThemApart) {
  const TaskRecipe r = load();
  EXPECT_EQ(r.name, GetParam());
  EXPECT_GE(r.train.size(), 400u);
  EXPECT_GE(r.held_out.size(), 200u);
  EXPECT_GE(r.probes.size(), 16u);
  EXPECT_FALSE(r.system_prompt.empty());
  EXPECT_EQ(r.sampling, (TaskSampling{r.name == "be-brief" ? 0.5 : 0.7, 1.0, 96}));
  std::set<std::string> texts, train_topics, ids;
  for (const auto* list : {&r.train, &r.held_out, &r.probes}) {
    for (const TaskPrompt& p : *list) {
      EXPECT_TRUE(texts.insert(p.text).second) << p.text;
      EXPECT_TRUE(ids.insert(p.id).second) << p.id;
      EXPECT_FALSE(p.names.empty()) << p.id;
      EXPECT_EQ(p.text.find('{'), std::string::npos);
      if (list == &r.train) train_topics.insert(p.topic);
      EXPECT_EQ(train_topics.contains(p.topic), list == &r.train) << p.topic;
    }
  }
  EXPECT_FALSE(r.protected_metric.rules.empty());
  EXPECT_NE(r.protected_metric.rules, r.user.rules) << "the protected metric is another signal";
}

TEST_P(ShippedRecipe, EveryPromptNamesItsOwnTopic) {
  const TaskRecipe r = load();
  const RuleSet names{"", "", {{RuleKind::kNamesTopic, 0, 0, {}}}};
  for (const auto* list : {&r.train, &r.held_out, &r.probes}) {
    for (const TaskPrompt& p : *list) EXPECT_EQ(score_rule_set(names, {p.text, true, &p.names}), 1) << p.text;
  }
}
INSTANTIATE_TEST_SUITE_P(All, ShippedRecipe, ::testing::Values("be-brief", "commit-line", "subject-line"));

TEST(BeBrief, AcceptsWhatItShould) {
  const auto r = load_task_recipe(std::string(SLUICE_SOURCE_DIR) + "/resources/recipes/be-brief.json");
  ASSERT_TRUE(r.ok());
  const SimulatedUser user(r->user);
  EXPECT_TRUE(user.judge({"Snow is frozen water that falls from clouds.", true, nullptr}).accepted);
  EXPECT_EQ(user.judge({"Snow.", true, nullptr}).reason, "words");
  EXPECT_EQ(user.judge({"Snow is frozen water that falls from", false, nullptr}).reason, "finished");
  EXPECT_EQ(user.judge({"Snow is:\n\n- cold\n- white and quite wet", true, nullptr}).reason, "one-paragraph,no-markup");
}

constexpr const char* kSmall = R"({"name": "tiny", "stream": {"forms": ["What is {topic}?"], "topics": ["a cat"],
  "held_out_topics": [{"text": "a dog", "names": ["dog", "hound"]}]}, "user": {"name": "u", "rules": [{"rule": "finished"}]}})";

std::string message(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  const auto result = parse_task_recipe(text);
  return result.ok() ? "no error" : result.status().message();
}

TEST(ParseRecipe, TheSmallestOne) {
  const auto r = parse_task_recipe(kSmall);
  ASSERT_TRUE(r.ok()) << r.status().message();
  ASSERT_EQ(r->train.size(), 1u);
  EXPECT_EQ(r->train[0].text, "What is a cat?");
  EXPECT_EQ(r->train[0].names, std::vector<std::string>{"cat"});
  EXPECT_EQ(r->held_out[0].names, (std::vector<std::string>{"dog", "hound"}));
  EXPECT_TRUE(r->protected_metric.rules.empty());
}

TEST(ParseRecipe, EveryMistakeIsNamed) {
  EXPECT_THAT(message(kSmall, "\"tiny\"", "\"no spaces\""), HasSubstr("\"name\" must be"));
  EXPECT_THAT(message(kSmall, "{topic}", "it"), HasSubstr("without exactly one {topic}: What is it?"));
  EXPECT_THAT(message(kSmall, "\"a cat\"", "\"a dog\""), HasSubstr("makes the same prompt twice: What is a dog?"));
  EXPECT_THAT(message(kSmall, "\"a cat\"", "\"A  dog\", \"a cat\""), HasSubstr("holds out the prompt: What is A  dog?"));
  EXPECT_THAT(message(kSmall, "\"a cat\"", "3"), HasSubstr("stream.topics"));
  EXPECT_THAT(message(kSmall, "\"finished\"", "\"finish\""), HasSubstr("rule \"finish\" is unknown"));
  EXPECT_THAT(message(kSmall, "[{\"rule\": \"finished\"}]", "[]"), HasSubstr("user.rules"));
  EXPECT_THAT(message(kSmall, "{\"rule\": \"finished\"}", "{\"rule\": \"words\"}"), HasSubstr("needs \"min\" or \"max\""));
  EXPECT_THAT(message(kSmall, "{\"rule\": \"finished\"}", "{\"rule\": \"words\", \"min\": 5, \"max\": 2}"), HasSubstr("\"min\" above"));
  EXPECT_THAT(message(kSmall, "{\"rule\": \"finished\"}", "{\"rule\": \"words\", \"min\": -5}"), HasSubstr("user.rules.min"));
  EXPECT_THAT(message(kSmall, "[\"a cat\"]", "[]"), HasSubstr("no prompts to train on"));
  EXPECT_THAT(message(kSmall, "\"user\"", "\"sampling\": {\"temperature\": 3}, \"user\""), HasSubstr("sampling.temperature\" is 3"));
  EXPECT_THAT(message(kSmall, "\"stream\"", "\"streams\""), HasSubstr("\"stream\" is missing"));
  EXPECT_THAT(parse_task_recipe("{").status().message(), HasSubstr("not valid JSON"));
  EXPECT_THAT(parse_task_recipe("[]").status().message(), HasSubstr("must be a JSON object"));
  EXPECT_THAT(parse_task_recipe(std::string(100, '[')).status().message(), HasSubstr("recipe"));
  EXPECT_THAT(load_task_recipe("/no/such/recipe.json").status().message(), HasSubstr("/no/such/recipe.json"));
}

TEST(PromptStream, EveryPromptOnceARoundInAnOrderOfTheSeed) {
  std::vector<TaskPrompt> prompts;
  for (int i = 0; i < 20; ++i) prompts.push_back({std::to_string(i), "", "", {}, ""});
  PromptStream a(prompts, 7), b(prompts, 7), c(prompts, 8);
  std::vector<std::string> first, second, other;
  std::set<std::uint64_t> seeds;
  for (int i = 0; i < 20; ++i) {
    const PromptStream::Next next = a.next();
    first.push_back(next.prompt->id);
    EXPECT_EQ(next.number, i);
    EXPECT_LT(next.seed, std::uint64_t{1} << 63);
    seeds.insert(next.seed);
    EXPECT_EQ(b.next().seed, next.seed);
    other.push_back(c.next().prompt->id);
  }
  for (int i = 0; i < 20; ++i) second.push_back(a.next().prompt->id);
  EXPECT_EQ(std::set<std::string>(first.begin(), first.end()).size(), 20u);
  EXPECT_EQ(std::set<std::string>(second.begin(), second.end()).size(), 20u);
  EXPECT_NE(first, second);
  EXPECT_NE(first, other);
  EXPECT_EQ(seeds.size(), 20u);
}

TEST(PromptStream, SkipLandsWhereNextWouldHave) {
  std::vector<TaskPrompt> prompts;
  for (int i = 0; i < 7; ++i) prompts.push_back({std::to_string(i), "", "", {}, ""});
  for (int skip = 0; skip < 25; ++skip) {
    PromptStream a(prompts, 3), b(prompts, 3);
    for (int i = 0; i < skip; ++i) a.next();
    b.skip(skip);
    for (int i = 0; i < 10; ++i) {
      const auto x = a.next(), y = b.next();
      ASSERT_EQ(x.prompt->id, y.prompt->id) << skip;
      ASSERT_EQ(x.seed, y.seed);
      ASSERT_EQ(x.number, y.number);
    }
  }
}

}  // namespace
}  // namespace sluice
