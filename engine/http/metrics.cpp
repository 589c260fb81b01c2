// SPDX-License-Identifier: GPL-3.0-or-later
#include "http/metrics.h"

#include <algorithm>
#include <cstdio>

namespace sluice {
namespace {

constexpr std::size_t kMaxVersions = 64;
constexpr int kRecordsAtOnce = 10'000;

std::string escape(const std::string& value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') out += "\\n";
    else out += c;
  }
  return out;
}

std::string labelled(const std::string& name, const std::vector<std::pair<std::string, std::string>>& labels) {
  std::string out = name + "{";
  for (const auto& [key, value] : labels) out += (out.back() == '{' ? "" : ",") + key + "=\"" + escape(value) + "\"";
  return out + "}";
}

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

void type(std::string& out, const std::string& name, const char* kind) {
  out += "# TYPE sluice_" + name + " " + kind + "\n";
}

void single(std::string& out, const std::string& name, const char* kind, double value) {
  type(out, name, kind);
  out += "sluice_" + name + " " + number(value) + "\n";
}

void write_times(std::string& out, const std::string& name, const TimeHistogram& histogram) {
  type(out, name, "histogram");
  std::int64_t below = 0;
  for (std::size_t i = 0; i < TimeHistogram::kBounds.size(); ++i) {
    below += histogram.counts[i];
    out += labelled("sluice_" + name + "_bucket", {{"le", number(TimeHistogram::kBounds[i])}}) + " " +
           std::to_string(below) + "\n";
  }
  out += "sluice_" + name + "_bucket{le=\"+Inf\"} " + std::to_string(histogram.n) + "\n";
  out += "sluice_" + name + "_sum " + number(histogram.sum) + "\n";
  out += "sluice_" + name + "_count " + std::to_string(histogram.n) + "\n";
}

// Tokens fed per step, in powers of two.
void write_batch_tokens(std::string& out, const StepSizes& sizes) {
  type(out, "batch_tokens", "histogram");
  std::int64_t below = 0;
  for (std::size_t i = 0; i + 1 < sizes.counts.size(); ++i) {
    below += sizes.counts[i];
    out += labelled("sluice_batch_tokens_bucket", {{"le", std::to_string(std::int64_t{1} << i)}}) + " " +
           std::to_string(below) + "\n";
  }
  out += "sluice_batch_tokens_bucket{le=\"+Inf\"} " + std::to_string(sizes.steps) + "\n";
  out += "sluice_batch_tokens_sum " + std::to_string(sizes.tokens) + "\n";
  out += "sluice_batch_tokens_count " + std::to_string(sizes.steps) + "\n";
}

void write_sequences(std::string& out, const GeneratorStats& g, const std::vector<VersionRow>& versions) {
  type(out, "sequences_by_version", "gauge");
  std::int64_t other = 0;
  std::size_t left = g.running_by_version.size();
  for (const auto& [version, running] : g.running_by_version) {  // ascending: the oldest fold
    if (left-- > kMaxVersions) {
      other += running;
      continue;
    }
    const auto row = std::find_if(versions.begin(), versions.end(), [id = version](const VersionRow& v) { return v.id == id; });
    out += labelled("sluice_sequences_by_version", {{"adapter", row == versions.end() ? "" : row->name},
                                                    {"version", std::to_string(version.value)}}) +
           " " + std::to_string(running) + "\n";
  }
  if (other > 0) out += "sluice_sequences_by_version{adapter=\"other\",version=\"other\"} " + std::to_string(other) + "\n";
}

void write_engine(std::string& out, const Control& control, const std::vector<VersionRow>& versions) {
  const ServingCounters counters = control.counters();
  const GeneratorStats& g = counters.generator;
  single(out, "requests_running", "gauge", static_cast<double>(g.running));
  single(out, "requests_waiting", "gauge", static_cast<double>(g.waiting));
  single(out, "tokens_per_second", "gauge", g.tokens_per_s);
  single(out, "kv_cache_usage_ratio", "gauge",
         g.kv.tokens_capacity > 0 ? static_cast<double>(g.kv.tokens_used) / static_cast<double>(g.kv.tokens_capacity) : 0);
  type(out, "engine_state", "gauge");
  const ServingPhase now = control.phase();
  for (const ServingPhase phase : {ServingPhase::kReady, ServingPhase::kLoading, ServingPhase::kPaused, ServingPhase::kAsleep,
                                   ServingPhase::kStopping}) {
    out += labelled("sluice_engine_state", {{"state", phase_name(phase)}}) + (phase == now ? " 1\n" : " 0\n");
  }
  single(out, "prompt_tokens_total", "counter", static_cast<double>(g.prompt_tokens));
  single(out, "prompt_tokens_cached_total", "counter", static_cast<double>(g.cached_tokens));
  single(out, "generation_tokens_total", "counter", static_cast<double>(g.generated_tokens));
  single(out, "prefix_cache_queries_total", "counter", static_cast<double>(g.prefix_queries));
  single(out, "prefix_cache_hits_total", "counter", static_cast<double>(g.prefix_hits));
  single(out, "preemptions_total", "counter", static_cast<double>(g.preemptions));
  single(out, "adapter_swaps_total", "counter", static_cast<double>(counters.adapter_swaps.n));
  write_times(out, "adapter_swap_seconds", counters.adapter_swaps);
  write_batch_tokens(out, g.batch_tokens);
  write_sequences(out, g, versions);
}

void write_store(std::string& out, const Store& store, const std::vector<VersionRow>& versions) {
  type(out, "adapter_info", "gauge");
  if (versions.size() > kMaxVersions) {
    out += "sluice_adapter_info{adapter=\"other\",version=\"other\",state=\"other\"} " +
           std::to_string(versions.size() - kMaxVersions) + "\n";
  }
  for (std::size_t i = versions.size() > kMaxVersions ? versions.size() - kMaxVersions : 0; i < versions.size(); ++i) {
    const VersionRow& v = versions[i];
    out += labelled("sluice_adapter_info", {{"adapter", v.name},
                                            {"version", std::to_string(v.id.value)},
                                            {"state", version_state_name(v.state)}}) + " 1\n";
  }
  const StoreCounts counts = store.counts(SessionId());
  type(out, "records", "gauge");  // records go on to another state, and may be deleted
  const auto record_line = [&out](const std::string& state, std::int64_t n) {
    out += labelled("sluice_records", {{"state", state}}) + " " + std::to_string(n) + "\n";
  };
  record_line("live", counts.live_records);
  record_line("waiting", counts.waiting);
  record_line("trained", counts.trained);
  for (const auto& [reason, n] : counts.dropped) record_line(reason, n);
  type(out, "gate_decisions_total", "counter");
  for (const auto& [verdict, n] : counts.verdicts) {
    out += labelled("sluice_gate_decisions_total", {{"verdict", verdict}}) + " " + std::to_string(n) + "\n";
  }
}

}  // namespace

Metrics::Metrics(const Store& store) {
  const auto newest = store.records({}, 0, 1);
  MutexLock lock(mu_);
  if (!newest.empty()) last_record_ = newest.front().seq;
}

void Metrics::count_request(const std::string& route, const std::string& finish_reason) {
  MutexLock lock(mu_);
  ++requests_;
  ++counters_[labelled("sluice_requests_total", {{"route", route}, {"finish_reason", finish_reason}})];
}

void Metrics::count_error(const std::string& code) {
  MutexLock lock(mu_);
  ++counters_[labelled("sluice_errors_total", {{"code", code}})];
}

void Metrics::count_feedback(const std::string& source, const std::string& kind, const std::string& state) {
  MutexLock lock(mu_);
  ++counters_[labelled("sluice_feedback_total", {{"source", source}, {"kind", kind}, {"state", state}})];
}

void Metrics::observe_first_token(double seconds) {
  MutexLock lock(mu_);
  first_token_.add(seconds);
}
void Metrics::observe_gap(double seconds) {
  MutexLock lock(mu_);
  gap_.add(seconds);
}
void Metrics::observe_whole(double seconds) {
  MutexLock lock(mu_);
  whole_.add(seconds);
}

std::int64_t Metrics::requests() const {
  MutexLock lock(mu_);
  return requests_;
}

void Metrics::read_records(const Store& store) {
  std::int64_t last = 0;
  {
    MutexLock lock(mu_);
    last = last_record_;
  }
  const std::vector<AnswerTimes> rows = store.answer_times_after(last, kRecordsAtOnce);
  MutexLock lock(mu_);
  for (const AnswerTimes& row : rows) {
    if (row.seq <= last_record_) continue;  // another reader counted it meanwhile
    last_record_ = row.seq;
    if (row.purpose != Purpose::kLive || !row.complete) continue;
    queue_.add(static_cast<double>(row.queue_us) / 1e6);
    prefill_.add(static_cast<double>(row.prefill_us) / 1e6);
    decode_.add(static_cast<double>(row.decode_us) / 1e6);
  }
}

std::string Metrics::text(const Store& store, const Control& control) {
  read_records(store);
  std::string out;
  const std::vector<VersionRow> versions = store.versions();
  write_engine(out, control, versions);
  write_store(out, store, versions);
  MutexLock lock(mu_);
  std::string last;
  for (const auto& [line, value] : counters_) {  // sorted, so one name's lines stand together
    const std::string name = line.substr(7, line.find('{') - 7);  // without "sluice_"
    if (name != last) type(out, name, "counter");
    last = name;
    out += line + " " + std::to_string(value) + "\n";
  }
  write_times(out, "time_to_first_token_seconds", first_token_);
  write_times(out, "inter_token_seconds", gap_);
  write_times(out, "e2e_request_seconds", whole_);
  write_times(out, "queue_seconds", queue_);
  write_times(out, "prefill_seconds", prefill_);
  write_times(out, "decode_seconds", decode_);
  return out;
}

}  // namespace sluice
