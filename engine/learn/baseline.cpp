// SPDX-License-Identifier: GPL-3.0-or-later
#include "learn/baseline.h"

#include <cmath>
#include <cstdio>
#include <sstream>

#include "base/json_object.h"
#include "store/store.h"

namespace sluice {
namespace {

constexpr std::size_t kMaxSegments = 64;
constexpr double kPrior = 10;  // samples' worth of the source's mean
const char kShared[] = "shared";

std::string hex(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%a", value);
  return text;
}

bool read_hex(std::istream& in, double& value) {
  std::string text;
  if (!(in >> text)) return false;
  char* end = nullptr;
  value = std::strtod(text.c_str(), &end);
  return end != text.c_str() && *end == '\0' && std::isfinite(value);
}

}  // namespace

std::string segment_of(const RecordRow& record) {
  const std::size_t n = record.prompt_ids.size();
  const char* bin = n <= 64 ? "0-64" : n <= 256 ? "65-256" : n <= 1024 ? "257-1024" : "longer";
  std::string route;  // safe in the text forms below, whatever a client called it
  for (char c : record.route) route += (c >= 'a' && c <= 'z') ? c : '_';
  return route + "/" + bin;
}

void Baseline::Sums::add(double length_now, double value, double decay) {
  reward = reward * decay + length_now * value;
  length = length * decay + length_now;
  count = count * decay + 1;
}

double Baseline::read(FeedbackSource source, const std::string& segment) const {
  const Source& s = sources_[static_cast<std::size_t>(source)];
  if (s.all.length <= 0) return 0;
  const double mean = s.all.reward / s.all.length;
  const double prior = kPrior * s.all.length / s.all.count;
  auto it = s.segments.find(segment);
  if (it == s.segments.end() && s.segments.size() >= kMaxSegments - 1) it = s.segments.find(kShared);
  if (it == s.segments.end()) return mean;
  return (it->second.reward + prior * mean) / (it->second.length + prior);
}

void Baseline::add(FeedbackSource source, const std::string& segment, double length, double value, double half_life) {
  const double decay = std::exp2(-1.0 / half_life);
  Source& s = sources_[static_cast<std::size_t>(source)];
  s.all.add(length, value, decay);
  const bool full = s.segments.size() >= kMaxSegments - 1 && s.segments.count(segment) == 0;
  s.segments[full ? kShared : segment].add(length, value, decay);
}

std::string Baseline::serialise() const {
  std::string out = "baseline1";
  const auto write = [&out](const Sums& x) { out += " " + hex(x.reward) + " " + hex(x.length) + " " + hex(x.count); };
  for (const Source& s : sources_) {
    out += " " + std::to_string(s.segments.size());
    write(s.all);
    for (const auto& [name, sums] : s.segments) {
      out += " " + name;
      write(sums);
    }
  }
  return out;
}

Result<Baseline> Baseline::parse(const std::string& text) {
  const Status bad = corrupt("the baseline sums of a checkpoint are damaged: they do not follow the form of this program");
  std::istringstream in(text);
  std::string word;
  if (!(in >> word) || word != "baseline1") return bad;
  const auto read_sums = [&in](Sums& x) {
    return read_hex(in, x.reward) && read_hex(in, x.length) && read_hex(in, x.count);
  };
  Baseline out;
  for (Source& s : out.sources_) {
    std::size_t segments = 0;
    if (!(in >> segments) || segments > kMaxSegments || !read_sums(s.all)) return bad;
    for (std::size_t i = 0; i < segments; ++i) {
      if (!(in >> word) || !read_sums(s.segments[word])) return bad;
    }
  }
  if (in >> word) return bad;
  return out;
}

std::string Baseline::to_json() const {
  JsonObject out;
  for (int i = 0; i < kFeedbackSources; ++i) {
    const Source& s = sources_[static_cast<std::size_t>(i)];
    if (s.segments.empty()) continue;
    JsonObject segments;
    for (const auto& [name, sums] : s.segments) segments.add(name, std::vector<double>{sums.reward, sums.length});
    out.add_raw(feedback_source_name(static_cast<FeedbackSource>(i)), segments.text());
  }
  return out.text();
}

}  // namespace sluice
