// SPDX-License-Identifier: GPL-3.0-or-later
// The tiny Hugging Face folders of tests/oracle/tiny_folders.py, copied with keys of config.json replaced.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/model/golden.h"
#include "support/temp_folder.h"

namespace sluice::test {

inline const nlohmann::json& folder_golden() {
  static const nlohmann::json json = [] {
    std::ifstream in(data_path("golden/tiny_folders.json"));
    return nlohmann::json::parse(in);
  }();
  return json;
}

// The golden entry of a name in VARIANTS.
inline const nlohmann::json& variant(const std::string& name) {
  for (const auto& v : folder_golden()["variants"]) {
    if (v["name"] == name) return v;
  }
  ADD_FAILURE() << "no variant " << name;
  return folder_golden()["variants"][0];
}

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
inline void write_file(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

// A copy of tests/data/folders/<name>; a null in `patch` removes the key, unless `keep_null`.
class CopiedFolder {
 public:
  explicit CopiedFolder(const std::string& name, const nlohmann::json& patch = {}, bool keep_null = false) : path_(temp_.path() + "/" + name) {
    std::filesystem::copy(data_path("folders/" + name), path_, std::filesystem::copy_options::recursive);
    if (patch.empty()) return;
    auto config = nlohmann::json::parse(read_file(file("config.json")));
    for (const auto& [key, value] : patch.items()) {
      if (value.is_null() && !keep_null) {
        config.erase(key);
      } else {
        config[key] = value;
      }
    }
    write_file(file("config.json"), config.dump());
  }
  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  sluice::testing::TempFolder temp_;
  std::string path_;
};

}  // namespace sluice::test
