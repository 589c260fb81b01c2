// SPDX-License-Identifier: GPL-3.0-or-later
// Recipe files as the runtime reads them: every shipped one is whole, and every mistake is named.
#include "runtime/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace sluice {
namespace {

using ::testing::HasSubstr;

const std::string kFolder = std::string(SLUICE_SOURCE_DIR) + "/resources/recipes";

// The smallest whole recipe, with more parts put in.
std::string with(const std::string& parts) {
  return R"({"name": "small", "stream": {"prompts": ["One?", "Two?"]},
             "user": {"name": "reader", "rules": [{"rule": "finished"}]})" +
         (parts.empty() ? "" : ", " + parts) + "}";
}

std::string error_of(const std::string& parts) {
  const auto recipe = parse_recipe(with(parts), "small.json");
  return recipe.ok() ? "" : recipe.status().message();
}

TEST(ShippedRecipes, AreWholeAndKeepHeldOutPromptsOutOfTraining) {
  const auto names = recipe_names(kFolder);
  ASSERT_THAT(names, ::testing::ElementsAre("be-brief", "commit-line", "subject-line"));
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const auto recipe = load_recipe(name, kFolder);
    ASSERT_TRUE(recipe.ok()) << recipe.status().message();
    EXPECT_EQ(recipe->task.name, name);
    EXPECT_GE(recipe->task.train.size(), 400u);
    EXPECT_GE(recipe->task.held_out.size(), 200u);
    EXPECT_GE(recipe->task.held_out.size(), static_cast<std::size_t>(recipe->gate.cap)) << "the gate may read up to its cap";
    EXPECT_FALSE(recipe->task.protected_metric.rules.empty());
    EXPECT_TRUE(recipe->learn.brakes.enabled);
    EXPECT_GE(recipe->demo.heldout, 100);
    std::set<std::string> train;
    for (const TaskPrompt& p : recipe->task.train) train.insert(p.text);
    for (const TaskPrompt& p : recipe->task.held_out) EXPECT_FALSE(train.contains(p.text)) << p.text;
    for (const TaskPrompt& p : recipe->task.probes) EXPECT_FALSE(train.contains(p.text)) << p.text;
  }
}

TEST(ShippedRecipes, TheirTextReadsBackTheSame) {
  const auto recipe = load_recipe("be-brief", kFolder);
  ASSERT_TRUE(recipe.ok());
  const auto again = parse_recipe(recipe->json, "session 1");
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->learn.optimiser.lr, recipe->learn.optimiser.lr);
  EXPECT_EQ(again->task.train.size(), recipe->task.train.size());
}

TEST(Recipe, UnknownFieldsAreRefusedByName) {
  EXPECT_EQ(error_of(""), "");
  EXPECT_THAT(error_of(R"("lern": {})"), HasSubstr("\"lern\" is unknown"));
  EXPECT_THAT(error_of(R"("learn": {"learning_rate": 1})"), HasSubstr("learn.learning_rate is unknown"));
  EXPECT_THAT(error_of(R"("learn": {"brakes": {"kl": 1}})"), HasSubstr("learn.brakes.kl is unknown"));
  EXPECT_THAT(error_of(R"("learn": {"reward": {"source_weight": {"cat": 1}}})"), HasSubstr("\"cat\" is unknown"));
  EXPECT_THAT(error_of(R"("demo": {"request": 4})"), HasSubstr("demo.request is unknown"));
  EXPECT_THAT(error_of(R"("gate": {"alfa": 0.1})"), HasSubstr("alfa"));
}

TEST(Recipe, ValuesOfTheWrongKindOrSizeAreNamed) {
  EXPECT_THAT(error_of(R"("learn": {"batch_size": "many"})"), HasSubstr("learn.batch_size: value must be a whole number"));
  EXPECT_THAT(error_of(R"("learn": {"batch_size": 4294967312})"), HasSubstr("learn.batch_size"));
  EXPECT_THAT(error_of(R"("learn": {"max_ahead": 18446744073709551615})"), HasSubstr("learn.max_ahead"));
  EXPECT_THAT(error_of(R"("learn": {"objective": "guess"})"), HasSubstr("learn.objective"));
  EXPECT_THAT(error_of(R"("demo": {"concurrency": 0})"), HasSubstr("concurrency"));
  EXPECT_THAT(error_of(R"("demo": [])"), HasSubstr("demo must be an object"));
}

TEST(Recipe, BrakesMayBeOffOnlyWithoutAGate) {
  EXPECT_THAT(error_of(R"("learn": {"brakes": "off"})"), HasSubstr("learn.brakes"));
  EXPECT_EQ(error_of(R"("learn": {"brakes": "off"}, "gate": {"profile": "off"})"), "");
}

TEST(Recipe, FillInTheMiddleMarkersAreThreeTexts) {
  EXPECT_EQ(error_of(R"("fim": {"markers": ["<P>", "<S>", "<M>"]})"), "");
  const auto recipe = parse_recipe(with(R"("fim": {"markers": ["<P>", "<S>", "<M>"]})"), "small.json");
  EXPECT_EQ(recipe->fim_markers, (std::array<std::string, 3>{"<P>", "<S>", "<M>"}));
  for (const char* wrong : {"[]", R"(["a", "b"])", R"(["a", "b", ""])", R"(["a", "b", 3])", R"("abc")"}) {
    EXPECT_THAT(error_of(std::string(R"("fim": {"markers": )") + wrong + "}"), HasSubstr("fim.markers")) << wrong;
  }
  EXPECT_THAT(error_of(R"("fim": {"marks": []})"), HasSubstr("fim.marks is unknown"));
}

TEST(Recipe, AnUnknownNameListsTheKnownOnes) {
  const auto recipe = load_recipe("be-long", kFolder);
  ASSERT_FALSE(recipe.ok());
  EXPECT_THAT(recipe.status().message(), HasSubstr("be-long"));
  EXPECT_THAT(recipe.status().message(), HasSubstr("be-brief, commit-line, subject-line"));
}

}  // namespace
}  // namespace sluice
