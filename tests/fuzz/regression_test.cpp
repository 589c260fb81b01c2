// SPDX-License-Identifier: GPL-3.0-or-later
// Every input under tests/data/fuzz, seeds and what fuzzing once found, goes through its target again, whole and cut short
// at many places, with any compiler.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "targets.h"

namespace sluice::fuzz {
namespace {

struct Target {
  const char* folder;
  void (*run)(std::string_view);
};

class FuzzRegression : public ::testing::TestWithParam<Target> {
 protected:
  static std::vector<std::string> inputs() {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(std::string(SLUICE_TEST_DATA) + "/fuzz/" + GetParam().folder)) {
      paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    std::vector<std::string> out;
    for (const auto& path : paths) {
      std::ifstream in(path, std::ios::binary);
      out.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
    return out;
  }
};

TEST_P(FuzzRegression, InputsEndInAResultOrAnError) {
  const auto all = inputs();
  ASSERT_FALSE(all.empty());
  for (const std::string& input : all) GetParam().run(input);
}

TEST_P(FuzzRegression, TruncatedInputsDoToo) {
  for (const std::string& input : inputs()) {
    const std::size_t step = std::max<std::size_t>(input.size() / 64, 1);
    for (std::size_t n = 0; n < input.size(); n += step) GetParam().run(std::string_view(input).substr(0, n));
  }
}

INSTANTIATE_TEST_SUITE_P(All, FuzzRegression,
                         ::testing::Values(Target{"gguf", gguf}, Target{"safetensors", safetensors}, Target{"tokenizer_json", tokenizer_json},
                                           Target{"chat_template", chat_template}, Target{"chat_request", chat_request}, Target{"sse", sse}),
                         [](const auto& info) { return std::string(info.param.folder); });

}  // namespace
}  // namespace sluice::fuzz
