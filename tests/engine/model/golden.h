// SPDX-License-Identifier: GPL-3.0-or-later
// Golden files of tests/oracle/tiny_models.py and small drivers over a ModelContext.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/transformer.h"
#include "model_api/model.h"

namespace sluice::test {

inline std::string data_path(const std::string& name) { return std::string(SLUICE_TEST_DATA) + "/" + name; }

inline const nlohmann::json& golden() {
  static const nlohmann::json json = [] {
    std::ifstream in(data_path("golden/tiny_models.json"));
    return nlohmann::json::parse(in);
  }();
  return json;
}

inline LoadedModel load(const std::string& name) {
  Result<LoadedModel> loaded = load_model(data_path(name + ".gguf"));
  EXPECT_TRUE(loaded.ok()) << loaded.status().message();
  return *loaded;
}

inline std::shared_ptr<const Adapter> load_adapter(const LoadedModel& model, const std::string& folder, std::int64_t version) {
  auto adapter = model.model->adapter_loader().load(folder, VersionId(version));
  EXPECT_TRUE(adapter.ok()) << adapter.status().message();
  return *adapter;
}

// log softmax(z / temperature) of ids[1..], fed in pieces of `chunk` tokens.
inline std::vector<float> score(ModelContext& context, std::shared_ptr<const Adapter> adapter, const std::vector<TokenId>& ids,
                                int chunk, float temperature = 1.0f) {
  context.flush();
  auto opened = context.open(std::move(adapter), ids, static_cast<int>(ids.size()));
  EXPECT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_EQ(opened->cached_tokens, 0);
  std::vector<float> out;
  const int n = static_cast<int>(ids.size());
  for (int first = 0; first < n - 1; first += chunk) {
    StepItem item;
    item.sequence = opened->handle;
    item.tokens = ids.data() + first;
    item.count = std::min(chunk, n - 1 - first);
    item.score = true;
    item.score_targets = ids.data() + first + 1;
    item.score_temperature = temperature;
    auto output = context.step({{item}});
    EXPECT_TRUE(output.ok()) << output.status().message();
    out.insert(out.end(), output->results[0].scores.begin(), output->results[0].scores.end());
  }
  context.close(opened->handle);
  return out;
}

inline void expect_near(const std::vector<float>& got, const std::vector<float>& want, float tolerance, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance) << what << " at " << i;
}

}  // namespace sluice::test
