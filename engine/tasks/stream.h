// SPDX-License-Identifier: GPL-3.0-or-later
// A source of prompts. Train and held-out prompts are separate lists; a stream only ever hands out one of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sluice {

struct TaskPrompt {
  std::string id;                  // within the recipe: "form/topic"
  std::string text;                // what the user says
  std::string topic;               // what it asks about, as it reads in the prompt
  std::vector<std::string> names;  // words any of which counts as naming the topic
  std::string group;               // clustering unit of the gate

  bool operator==(const TaskPrompt&) const = default;
};

// Endless: a fresh seeded order each time round. Used by one thread at a time.
class PromptStream {
 public:
  PromptStream(std::vector<TaskPrompt> prompts, std::uint64_t seed);  // at least one prompt

  struct Next {
    const TaskPrompt* prompt = nullptr;  // valid for the stream's life
    std::int64_t number = 0;             // from 0
    std::uint64_t seed = 0;              // sampling seed of this request, below 2^63
  };
  Next next();
  // Goes on behind `count` requests that were made before, as if next() had been called so often.
  void skip(std::int64_t count);
  std::size_t size() const { return prompts_.size(); }

 private:
  void shuffle();

  std::vector<TaskPrompt> prompts_;
  std::vector<std::size_t> order_;
  std::uint64_t seed_;
  std::int64_t number_ = 0;
};

}  // namespace sluice
