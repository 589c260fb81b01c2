// SPDX-License-Identifier: GPL-3.0-or-later
// The whole engine on a tiny model, for tests: options of a small workspace on a free port, and a runtime opened with them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "runtime/runtime.h"

namespace sluice::testing {

inline std::string test_data(const std::string& name) { return std::string(SLUICE_TEST_DATA) + "/" + name; }

// `folder` holds the workspace "ws"; the recipes are the product's.
inline RuntimeOptions tiny_runtime(const std::string& folder, const std::string& model = test_data("tiny-llama.gguf")) {
  RuntimeOptions o;
  o.data_folder = folder + "/ws";
  o.model_path = model;
  o.recipe_folder = std::string(SLUICE_SOURCE_DIR) + "/resources/recipes";
  o.port = 0;
  o.kv_tokens = 2048;
  return o;
}

// Null, and a failed test, where it can't be opened. The model may still be loading.
inline std::unique_ptr<Runtime> open_runtime(const RuntimeOptions& options, Log& log) {
  auto opened = Runtime::open(options, log);
  EXPECT_TRUE(opened.ok()) << opened.status().message();
  return opened.ok() ? std::move(opened).value() : nullptr;
}

}  // namespace sluice::testing
