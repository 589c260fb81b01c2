// SPDX-License-Identifier: GPL-3.0-or-later
// tests/data/golden/losses.json, made by tests/oracle/make_loss_golden.py out of TRL and torch.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>

#include "learn/reference_loss.h"

namespace sluice::testing {

inline const nlohmann::json& loss_golden() {
  static const nlohmann::json json = nlohmann::json::parse(std::ifstream(SLUICE_TEST_DATA "/golden/losses.json"));
  return json;
}

struct LossCase {
  std::string name;
  LossInput input;
  LossSettings settings;
  int max_tokens = 0;
  double loss = 0;
  std::vector<double> grad;
};

inline std::vector<LossCase> loss_cases() {
  std::vector<LossCase> out;
  for (const auto& j : loss_golden()["cases"]) {
    LossCase c;
    c.name = j["name"];
    c.max_tokens = j["max_tokens"];
    c.loss = j["loss"];
    c.grad = j["grad"].get<std::vector<double>>();
    c.input.lp_cur = j["lp_cur"].get<std::vector<double>>();
    c.input.lp_full = j["lp_full"].get<std::vector<double>>();
    c.input.start = {0};
    for (std::size_t i = 0; i < j["lengths"].size(); ++i) {
      const auto n = j["lengths"][i].get<std::int64_t>();
      c.input.start.push_back(c.input.start.back() + n);
      c.input.advantage.insert(c.input.advantage.end(), static_cast<std::size_t>(n), j["advantages"][i].get<double>());
      c.input.age.push_back(j["stale"].get<bool>() ? 2 : 0);
      c.input.weight.push_back(1);
    }
    c.input.mask.assign(c.input.lp_cur.size(), 1);
    c.settings.kl_beta = 0;
    c.settings.too_far_low = 0;
    c.settings.too_far_high = 1e18;
    c.settings.aggregation = parse_aggregation(j["aggregation"].get<std::string>()).value();
    c.settings.clip_high = j["settings"].value("epsilon_high", 0.2);
    c.settings.dual_clip = j["settings"].value("delta", 0.0);
    out.push_back(std::move(c));
  }
  return out;
}

}  // namespace sluice::testing
