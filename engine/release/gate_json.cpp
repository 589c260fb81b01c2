// SPDX-License-Identifier: GPL-3.0-or-later
#include "release/gate_json.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "base/excerpt.h"
#include "base/json_limits.h"

namespace sluice {
namespace {

using nlohmann::json;

// Every field but the profile, once: reading and writing walk the same list. `Settings` is GateSettings, const or not.
template <class Settings, class Visit>
void each_field(Settings& s, Visit&& visit) {
  visit("alpha", s.alpha);
  visit("beta", s.beta);
  visit("delta", s.delta);
  visit("n_min", s.n_min);
  visit("cap", s.cap);
  visit("k", s.rule.k);
  visit("mu0", s.rule.mu0);
  visit("v0", s.rule.v0);
  visit("lam_max", s.rule.lam_max);
  visit("protected_delta", s.protected_delta);
  visit("protected_limit", s.protected_limit);
  visit("protected_alpha", s.protected_alpha);
  visit("anchor", s.anchor);
  visit("anchor_delta", s.anchor_delta);
  visit("anchor_limit", s.anchor_limit);
  visit("probes", s.probes);
}

template <class Limits, class Visit>
void each_limit(Limits& v, Visit&& visit) {
  visit("kl_incumbent", v.kl_incumbent);
  visit("kl_base", v.kl_base);
  visit("eos_drop", v.eos_drop);
  visit("cut_rise", v.cut_rise);
  visit("empty_rise", v.empty_rise);
  visit("length_ratio_lo", v.length_ratio_lo);
  visit("length_ratio_hi", v.length_ratio_hi);
  visit("distinct3_ratio", v.distinct3_ratio);
  visit("duplicate_ratio", v.duplicate_ratio);
  visit("duplicate_rise", v.duplicate_rise);
  visit("latency_ratio", v.latency_ratio);
  visit("probe_mismatch", v.probe_mismatch);
}

template <class Arm, class Visit>
void each_arm_field(Arm& arm, Visit&& visit) {
  visit("answers", arm.answers);
  visit("eos_share", arm.eos_share);
  visit("cut_share", arm.cut_share);
  visit("empty_share", arm.empty_share);
  visit("mean_length", arm.mean_length);
  visit("distinct3", arm.distinct3);
  visit("duplicate_share", arm.duplicate_share);
  visit("us_per_token", arm.us_per_token);
}

// A finite number, or null where there is none: JSON has no NaN.
json finite(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

// What null stands for: nothing was said, or a measured number that is none (see finite).
enum class NullNumber { kUnsaid, kNotFinite };

// Reads the fields an object has into their places; collects the first thing that is wrong.
class FieldReader {
 public:
  FieldReader(const json& object, const char* what, NullNumber null = NullNumber::kUnsaid) : object_(object), what_(what), null_(null) {
    if (!object.is_object()) fail("must be an object");
  }

  void operator()(const char* name, double& out) {
    const json* value = take(name);
    if (value == nullptr) {
      if (null_ == NullNumber::kNotFinite && object_.contains(name)) out = std::numeric_limits<double>::quiet_NaN();
      return;
    }
    if (!value->is_number()) return fail("\"" + std::string(name) + "\" must be a number");
    out = value->get<double>();
  }
  void operator()(const char* name, int& out) {
    const json* value = take(name);
    if (value == nullptr) return;
    const double number = value->is_number() ? value->get<double>() : 0.5;
    if (number != std::floor(number) || std::abs(number) > 1e9) {
      return fail("\"" + std::string(name) + "\" must be a whole number");
    }
    out = static_cast<int>(number);
  }
  void operator()(const char* name, bool& out) {
    const json* value = take(name);
    if (value == nullptr) return;
    if (!value->is_boolean()) return fail("\"" + std::string(name) + "\" must be true or false");
    out = value->get<bool>();
  }
  void skip(const char* name) { seen_.insert(name); }

  // Failed when a field was wrong, or none asked for one that is there.
  Status done() {
    if (status_.ok()) {
      for (const auto& [name, value] : object_.items()) {
        if (!seen_.contains(name)) fail("has no field \"" + excerpt(name) + "\"; remove it");
      }
    }
    return status_;
  }

 private:
  const json* take(const char* name) {
    seen_.insert(name);
    if (!status_.ok()) return nullptr;
    const auto it = object_.find(name);
    return it == object_.end() || it->is_null() ? nullptr : &*it;
  }
  void fail(const std::string& text) {
    if (status_.ok()) status_ = invalid_argument(std::string(what_) + " " + text);
  }

  const json& object_;
  const char* what_;
  const NullNumber null_;
  std::set<std::string> seen_;
  Status status_;
};

Result<json> parse(std::string_view text, const char* what) {
  SLUICE_RETURN_IF_ERROR(check_json_limits(text, what));
  json value = json::parse(text, nullptr, false);
  if (value.is_discarded()) return invalid_argument(std::string(what) + " is not valid JSON: " + json_problem<json>(text));
  return value;
}

json arm_to_json(const ProbeArm& arm) {
  json out;
  each_arm_field(arm, [&](const char* name, auto value) { out[name] = finite(value); });
  return out;
}

Status arm_from_json(const json& probe, const char* name, ProbeArm& arm) {
  if (!probe.contains(name)) return {};
  FieldReader reader(probe.at(name), "probe arm", NullNumber::kNotFinite);
  each_arm_field(arm, reader);
  return reader.done();
}

json probe_object(const ProbeEvidence& p) {
  json out = {{"measured", p.measured}, {"broken", p.broken},       {"same_bytes", p.same_bytes},
              {"differing", p.differing}, {"kl_incumbent", finite(p.kl_incumbent)}, {"kl_base", finite(p.kl_base)}};
  if (p.mismatch) out["mismatch"] = finite(*p.mismatch);
  out["candidate"] = arm_to_json(p.candidate);
  out["incumbent"] = arm_to_json(p.incumbent);
  out["base"] = arm_to_json(p.base);
  return out;
}

Result<ProbeEvidence> probe_of(const json& value) {
  ProbeEvidence p;
  FieldReader reader(value, "probe evidence", NullNumber::kNotFinite);
  reader("measured", p.measured);
  reader("same_bytes", p.same_bytes);
  reader("differing", p.differing);
  reader("kl_incumbent", p.kl_incumbent);
  reader("kl_base", p.kl_base);
  for (const char* name : {"broken", "mismatch", "candidate", "incumbent", "base"}) reader.skip(name);
  SLUICE_RETURN_IF_ERROR(reader.done());
  if (value.contains("broken") && value["broken"].is_string()) p.broken = value["broken"].get<std::string>();
  if (value.contains("mismatch") && value["mismatch"].is_number()) p.mismatch = value["mismatch"].get<double>();
  SLUICE_RETURN_IF_ERROR(arm_from_json(value, "candidate", p.candidate));
  SLUICE_RETURN_IF_ERROR(arm_from_json(value, "incumbent", p.incumbent));
  SLUICE_RETURN_IF_ERROR(arm_from_json(value, "base", p.base));
  return p;
}

std::string text_of(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace

std::string gate_settings_to_json(const GateSettings& settings) {
  json out = {{"profile", gate_profile_name(settings.profile)}};
  each_field(settings, [&](const char* name, auto value) { out[name] = value; });
  json& limits = out["invariants"];
  each_limit(settings.invariants, [&](const char* name, auto value) { limits[name] = value; });
  return text_of(out);
}

Result<GateSettings> gate_settings_from_json(std::string_view text, const GateSettings& base) {
  SLUICE_ASSIGN_OR_RETURN(const json value, parse(text, "gate settings"));
  if (!value.is_object()) return invalid_argument("gate settings must be an object");
  GateSettings out = base;
  if (const auto it = value.find("profile"); it != value.end()) {
    if (!it->is_string()) return invalid_argument("gate settings: \"profile\" must be a string");
    SLUICE_ASSIGN_OR_RETURN(const GateProfile profile, parse_gate_profile(it->get<std::string>()));
    if (profile != base.profile) out = gate_preset(profile);
  }
  FieldReader reader(value, "gate settings");
  each_field(out, reader);
  reader.skip("profile");
  reader.skip("invariants");
  SLUICE_RETURN_IF_ERROR(reader.done());
  if (const auto it = value.find("invariants"); it != value.end() && !it->is_null()) {
    FieldReader limits(*it, "gate settings: \"invariants\"");
    each_limit(out.invariants, limits);
    SLUICE_RETURN_IF_ERROR(limits.done());
  }
  SLUICE_RETURN_IF_ERROR(check_gate_settings(out));
  return out;
}

std::string probe_to_json(const ProbeEvidence& probe) { return text_of(probe_object(probe)); }

Result<ProbeEvidence> probe_from_json(std::string_view text) {
  SLUICE_ASSIGN_OR_RETURN(const json value, parse(text, "probe evidence"));
  if (!value.is_object()) return invalid_argument("probe evidence must be an object");
  return probe_of(value);
}

std::string invariants_to_json(const ProbeEvidence& probe, const Decision& decision) {
  json checks = json::array();
  for (const InvariantCheck& c : decision.invariants) {
    checks.push_back({{"name", c.name},
                      {"text", c.text},
                      {"unit", c.unit},
                      {"value", finite(c.value)},
                      {"limit", finite(c.limit)},
                      {"at_least", c.at_least},
                      {"applicable", c.applicable},
                      {"passed", c.passed}});
  }
  return text_of({{"checks", std::move(checks)}, {"probe", probe_object(probe)}});
}

Result<ProbeEvidence> probe_of_decision(std::string_view invariants_json) {
  SLUICE_ASSIGN_OR_RETURN(const json value, parse(invariants_json, "invariants of a decision"));
  if (!value.is_object() || !value.contains("probe")) return not_found("the decision has no probe numbers");
  return probe_of(value.at("probe"));
}

std::string memo_to_json(const EvaluationMemo& m) {
  return text_of({{"candidate", m.candidate.value},
                  {"incumbent", m.incumbent.value},
                  {"anchor", m.anchor.value},
                  {"attempt", m.attempt},
                  {"settings", m.settings.value},
                  {"started_us", m.started_us},
                  {"tokens", m.tokens},
                  {"probe", probe_object(m.probe)}});
}

Result<EvaluationMemo> memo_from_json(std::string_view text) {
  SLUICE_ASSIGN_OR_RETURN(const json value, parse(text, "evaluation memo"));
  EvaluationMemo m;
  for (const auto& [name, place] :
       {std::pair("candidate", &m.candidate.value), std::pair("incumbent", &m.incumbent.value),
        std::pair("anchor", &m.anchor.value), std::pair("attempt", &m.attempt), std::pair("settings", &m.settings.value),
        std::pair("started_us", &m.started_us), std::pair("tokens", &m.tokens)}) {
    const auto it = value.is_object() ? value.find(name) : value.end();
    if (it == value.end() || !it->is_number_integer()) return corrupt("evaluation memo lacks \"" + std::string(name) + "\"");
    *place = it->get<std::int64_t>();
  }
  if (!value.contains("probe")) return corrupt("evaluation memo lacks \"probe\"");
  SLUICE_ASSIGN_OR_RETURN(m.probe, probe_of(value.at("probe")));
  return m;
}

std::string protected_to_json(const std::string& metric, const Decision& d) {
  if (metric.empty()) return "[]";
  json row = {{"name", metric},
              {"candidate_k", d.candidate_protected.k},
              {"candidate_n", d.candidate_protected.n},
              {"incumbent_k", d.incumbent_protected.k},
              {"incumbent_n", d.incumbent_protected.n},
              {"mean_d", finite(d.mean_protected)},
              {"log_h", finite(d.log_hp)},
              {"log_e", finite(d.log_ep)}};
  if (d.anchor_protected.n > 0) {
    row["anchor_k"] = d.anchor_protected.k;
    row["anchor_n"] = d.anchor_protected.n;
    row["mean_d_anchor"] = finite(d.mean_protected_anchor);
    row["log_h_anchor"] = finite(d.log_hpa);
  }
  return text_of(json::array({std::move(row)}));
}

}  // namespace sluice
