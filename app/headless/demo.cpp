// SPDX-License-Identifier: GPL-3.0-or-later
// The whole loop in the terminal: a line per update and per gate decision, a summary, and JSON lines for scripts.
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <optional>
#include <vector>

#include "headless/json_lines.h"
#include "headless/verbs.h"
#include "runtime/runtime.h"
#include "runtime/session.h"

namespace sluice::headless {
namespace {

std::string ratio(std::int64_t k, std::int64_t n) { return std::to_string(k) + "/" + std::to_string(n); }

std::optional<std::int64_t> or_null(VersionId version) { return version.valid() ? std::optional(version.value) : std::nullopt; }

double peak_rss_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// Prints what happens; keeps what the summary needs.
class Report {
 public:
  explicit Report(JsonLines& lines) : lines_(lines) {}

  void request(const DriverEvent& e) {
    const char* verdict = !e.error.empty() ? "failed" : e.feedback_state.empty() ? "silent" : e.accepted ? "accept" : "reject";
    lines_.write("request", JsonObject()
                                .add("n", e.number + 1)
                                .add("record_id", e.record_id)
                                .add("prompt", e.prompt)
                                .add("completion", e.completion)
                                .add("verdict", verdict)
                                .add("reason", !e.error.empty() ? e.error : e.accepted ? "accepted" : e.reason)
                                .add("adapter_version", e.version));
    const std::lock_guard lock(mutex_);
    if (!e.error.empty()) return;
    verdicts_.emplace_back(e.number, e.accepted);
  }

  void swap(const SwapNotice& n) {
    lines_.write("swap", JsonObject().add("version", n.to.value).add("from", n.from.value).add("microseconds", n.microseconds));
    std::printf("[%6.1f s] v%lld serves instead of v%lld (swapped in %lld us)\n", lines_.seconds(),
                static_cast<long long>(n.to.value), static_cast<long long>(n.from.value), static_cast<long long>(n.microseconds));
    std::fflush(stdout);
  }

  // New rows of the store since the last call.
  void catch_up(const Store& store, SessionId session) {
    for (const StepRow& s : store.steps(session, last_step_, 1000)) {
      last_step_ = s.id.value;
      step(s);
    }
    for (const DecisionRow& d : store.decisions(last_decision_, 1000)) {
      last_decision_ = d.id.value;
      if (d.session == session) decision(d);
    }
  }
  void skip_to_now(const Store& store) { last_decision_ = store.last_decision_id().value; }

  // Accept rate of requests [first, last), numbers from 0; and how many there were.
  std::pair<double, std::int64_t> rate(std::int64_t first, std::int64_t last) const {
    const std::lock_guard lock(mutex_);
    std::int64_t n = 0, k = 0;
    for (const auto& [number, accepted] : verdicts_) {
      if (number < first || number >= last) continue;
      ++n;
      k += accepted;
    }
    return {n ? static_cast<double>(k) / static_cast<double>(n) : 0.0, n};
  }
  std::int64_t requests() const {
    const std::lock_guard lock(mutex_);
    return static_cast<std::int64_t>(verdicts_.size());
  }

  std::int64_t steps = 0, promoted = 0, rejected = 0, held = 0, rolled_back = 0;

 private:
  void step(const StepRow& s) {
    ++steps;
    lines_.write("step", JsonObject()
                             .add("step", s.number)
                             .add("loss", s.loss)
                             .add("kl_base", s.kl_base)
                             .add("entropy", s.entropy)
                             .add("clip_fraction", s.clip_fraction)
                             .add("truncated_fraction", s.truncated_fraction)
                             .add("reward_mean", s.reward_mean)
                             .add("tokens", s.tokens)
                             .add("seconds", s.seconds)
                             .add("candidate", or_null(s.candidate)));
    const std::int64_t n = requests();
    std::printf("[%6.1f s] step %lld: %lld requests, last 32 accepted %.2f, batch reward %+.2f, loss %+.4f, KL %.3f, %.1f s%s\n",
                lines_.seconds(), static_cast<long long>(s.number), static_cast<long long>(n), rate(n - 32, n).first,
                s.reward_mean, s.loss, s.kl_base, s.seconds,
                s.candidate.valid() ? (" -> candidate v" + std::to_string(s.candidate.value)).c_str() : "");
    std::fflush(stdout);
  }

  void decision(const DecisionRow& d) {
    if (d.kind == "startup") return;
    promoted += d.verdict == Verdict::kPromote && d.kind != "rollback";
    rejected += d.verdict == Verdict::kReject;
    held += d.verdict == Verdict::kHold;
    rolled_back += d.kind == "rollback";
    const std::string rates = JsonObject()
                                  .add("candidate", ratio(d.candidate_k, d.candidate_n))
                                  .add("incumbent", ratio(d.incumbent_k, d.incumbent_n))
                                  .add("anchor", ratio(d.anchor_k, d.anchor_n))
                                  .text();
    lines_.write("decision", JsonObject()
                                 .add("version", or_null(d.version))
                                 .add("verdict", verdict_name(d.verdict))
                                 .add("stage", d.stage)
                                 .add("reason_code", d.reason_code)
                                 .add("reason", d.reason_text)
                                 .add("n", d.n)
                                 .add("lo", d.lo)
                                 .add("hi", d.hi)
                                 .add_raw("rates", rates));
    std::printf("[%6.1f s] gate: %s\n", lines_.seconds(), d.reason_text.c_str());
    std::fflush(stdout);
  }

  JsonLines& lines_;
  mutable std::mutex mutex_;
  std::vector<std::pair<std::int64_t, bool>> verdicts_;
  std::int64_t last_step_ = 0;
  std::int64_t last_decision_ = 0;
};

Status summarise(Runtime& runtime, Report& report, JsonLines& lines) {
  const VersionId serving = runtime.store().serving_version();
  std::printf("[%6.1f s] measuring base and v%lld on held-out prompts ...\n", lines.seconds(),
              static_cast<long long>(serving.value));
  std::fflush(stdout);
  SLUICE_ASSIGN_OR_RETURN(const HeldOutScore base, runtime.measure_held_out(kBaseVersion, 0));
  HeldOutScore now = base;
  if (serving != kBaseVersion) {
    SLUICE_ASSIGN_OR_RETURN(now, runtime.measure_held_out(serving, 0));
  }
  const std::int64_t n = report.requests();
  const auto first32 = report.rate(0, 32), first64 = report.rate(0, 64), last64 = report.rate(n - 64, n);
  JsonObject summary;
  summary.add("requests", n)
      .add("accept_first32", first32.first)
      .add("accept_first64", first64.first)
      .add("accept_last64", last64.first)
      .add("heldout_base", ratio(base.accepted, base.n))
      .add("heldout_serving", ratio(now.accepted, now.n))
      .add("protected_base", ratio(base.protected_ok, base.has_protected ? base.n : 0))
      .add("protected_serving", ratio(now.protected_ok, now.has_protected ? now.n : 0))
      .add("steps", report.steps)
      .add("promoted", report.promoted)
      .add("rejected", report.rejected)
      .add("held", report.held)
      .add("rolled_back", report.rolled_back)
      .add("seconds", lines.seconds())
      .add("peak_rss_mb", peak_rss_mb())
      .add("serving_version", serving.value);
  lines.write("summary", summary);
  std::printf("\n%lld requests in %.0f s; accepted: first 32 %.2f, last 64 %.2f\n"
              "held-out prompts: base %s, v%lld %s\n",
              static_cast<long long>(n), lines.seconds(), first32.first, last64.first, ratio(base.accepted, base.n).c_str(),
              static_cast<long long>(serving.value), ratio(now.accepted, now.n).c_str());
  if (base.has_protected) {
    std::printf("protected metric: base %s, v%lld %s\n", ratio(base.protected_ok, base.n).c_str(),
                static_cast<long long>(serving.value), ratio(now.protected_ok, now.n).c_str());
  }
  std::printf("gate: %lld promoted, %lld rejected, %lld held; %lld steps; peak memory %.0f MB\n",
              static_cast<long long>(report.promoted), static_cast<long long>(report.rejected),
              static_cast<long long>(report.held), static_cast<long long>(report.steps), peak_rss_mb());
  return n > 0 ? Status() : unavailable("No request of the stream was answered.");
}

// Why the session will never come to its end by itself; ok while it may.
Status stuck(const Runtime& runtime, SessionId session) {
  const auto row = runtime.store().session(session);
  if (!row || row->state == SessionState::kEnded) return conflict("The session was ended from outside.");
  const auto now = runtime.snapshot();
  if (!now->train.brake.empty()) return unavailable(now->train.brake);
  if (!now->store_error.empty()) return unavailable(now->store_error);
  return {};
}

}  // namespace

int demo(const Args& args, Log& log) {
  watch_signals();
  JsonLines lines;
  Report report(lines);  // before the runtime: its threads report until it is gone
  RuntimeOptions options;
  options.discard_at_bound = true;
  options.data_folder = args.text("--data");
  options.model_path = args.text("--model");
  const auto port = args.integer("--port", 0, 0, 65535);
  const auto seed = args.integer("--seed", 1, 0, INT64_MAX);
  const auto max_requests = args.integer("--max-requests", -1, 1, 1'000'000);
  for (const auto* number : {&port, &seed, &max_requests}) {
    if (!number->ok()) return fail(number->status(), true);
  }
  options.port = static_cast<int>(*port);
  if (args.has("--json")) {
    if (Status s = lines.open(args.text("--json")); !s.ok()) return fail(s);
  }
  auto opened = Runtime::open(options, log);
  if (!opened.ok()) return fail(opened.status());
  Runtime& runtime = **opened;
  std::printf("Workspace %s. Loading the model ...\n", options.data_folder.c_str());
  std::fflush(stdout);
  while (true) {
    const Status ready = runtime.wait_ready(0.2);
    if (ready.ok()) break;
    if (ready.code() != Code::kDeadline) return fail(ready);
    if (stop_requested()) return 0;
  }
  if (runtime.snapshot()->session) {
    std::printf("The workspace has a session from before: it ends here.\n");
    if (const CommandOutcome ended = runtime.run(EndSession{}); !ended.ok()) return fail(ended.status);
  }
  if (runtime.snapshot()->frozen) {
    return fail(conflict("Learning is frozen in this workspace: unfreeze it first (POST /sluice/v1/decisions, or F9 in the "
                         "workbench), or give another --data."));
  }
  if (const auto now = runtime.snapshot(); now->serving != kBaseVersion) {
    std::printf("%s of an earlier run serves: this run starts from it, and its curve where that one ended. To see it learn from "
                "nothing, roll back to the base or give another --data.\n", now->serving_name.c_str());
  }
  report.skip_to_now(runtime.store());
  runtime.on_request([&report](const DriverEvent& event) { report.request(event); });
  runtime.on_swap([&report](const SwapNotice& notice) { report.swap(notice); });
  StartSession start;
  start.recipe = args.text("--recipe", "be-brief");
  start.seed = static_cast<std::uint64_t>(*seed);
  start.max_requests = *max_requests;
  start.gate_profile = args.text("--gate");
  const CommandOutcome started = runtime.run(start);
  if (!started.ok()) return fail(started.status);
  std::printf("[%6.1f s] %s Requests go through %s\n", lines.seconds(), started.text.c_str(), runtime.snapshot()->server_url.c_str());
  std::fflush(stdout);
  while (!runtime.wait_session_finished(0.1)) {
    report.catch_up(runtime.store(), *started.session);
    if (Status s = stuck(runtime, *started.session); !s.ok()) return fail(s);
    if (stop_requested()) {
      std::printf("Stopped; the session can go on in the workbench.\n");
      return 0;
    }
  }
  report.catch_up(runtime.store(), *started.session);
  if (Status s = summarise(runtime, report, lines); !s.ok()) return fail(s);
  const CommandOutcome ended = runtime.run(EndSession{});
  return ended.ok() ? 0 : fail(ended.status);
}

}  // namespace sluice::headless
