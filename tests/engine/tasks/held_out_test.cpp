// SPDX-License-Identifier: GPL-3.0-or-later
#include "tasks/held_out.h"

#include <gtest/gtest.h>

#include "tasks/recipe.h"

namespace sluice {
namespace {

TaskPrompt says(const char* text) {
  TaskPrompt prompt;
  prompt.text = text;
  return prompt;
}

class HeldOutTest : public ::testing::Test {
 protected:
  const std::vector<TaskPrompt> held_out{says("What is fog?"), says("Tell me about rain")}, probes{says("2 - 3 =")};
  const HeldOutTexts texts{&held_out, &probes};
};

TEST_F(HeldOutTest, CaseAndSpacingDontCount) {
  for (const char* text : {"What is fog?", "what is FOG ?", "  What\n is\tfog?\n", "2-3=", "tell me about rain"}) {
    EXPECT_TRUE(texts.contain(text)) << text;
  }
  for (const char* text : {"", "What is fog? And rain?", "What is fog", "2 + 3 =", "Tell me about rain forests"}) {
    EXPECT_FALSE(texts.contain(text)) << text;
  }
}

TEST_F(HeldOutTest, ARawPromptHoldsThemAnywhere) {
  EXPECT_TRUE(texts.stand_in("What is fog?"));
  EXPECT_TRUE(texts.stand_in("<|im_start|>user\nwhat is fog?<|im_end|>\n<|im_start|>assistant\n"));
  EXPECT_TRUE(texts.stand_in("[INST]Tell me about rain[/INST]"));
  for (const char* text : {"", "What is", "What is fogging?", "Tell me about Bahrain", "know what fog is?"}) {
    EXPECT_FALSE(texts.stand_in(text)) << text;
  }
}

TEST_F(HeldOutTest, WithoutPromptsNothingIsHeldOut) {
  const std::vector<TaskPrompt> none, blank{says(" ")};
  EXPECT_TRUE(HeldOutTexts().empty());
  EXPECT_TRUE(HeldOutTexts({&none, &blank}).empty());
  EXPECT_FALSE(HeldOutTexts().stand_in("What is fog?"));
  EXPECT_FALSE(HeldOutTexts({&none, &blank}).contain(""));
}

class ShippedHeldOut : public ::testing::TestWithParam<const char*> {};

TEST_P(ShippedHeldOut, AreFoundAndTheTrainingPromptsAreNot) {
  const auto r = load_task_recipe(std::string(SLUICE_SOURCE_DIR) + "/resources/recipes/" + GetParam() + ".json");
  ASSERT_TRUE(r.ok());
  const HeldOutTexts all({&r->held_out, &r->probes});
  for (const auto* list : {&r->held_out, &r->probes}) {
    for (const TaskPrompt& p : *list) EXPECT_TRUE(all.contain(p.text) && all.stand_in(p.text)) << p.text;
  }
  for (const TaskPrompt& p : r->train) EXPECT_FALSE(all.contain(p.text)) << p.text;
}
INSTANTIATE_TEST_SUITE_P(All, ShippedHeldOut, ::testing::Values("be-brief", "commit-line", "subject-line"));

}  // namespace
}  // namespace sluice
