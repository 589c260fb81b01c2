// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/bench.h"

#include <cstdio>

#include "headless/json_lines.h"
#include "headless/verbs.h"

namespace sluice::headless {

int bench(const Args& args, Log& log) {
  JsonLines lines;
  const auto threads = args.integer("--threads", 0, 0, 256);
  if (!threads.ok()) return fail(threads.status(), true);
  const auto micro_batch = args.integer("--micro-batch", 0, 0, 1000000);
  if (!micro_batch.ok()) return fail(micro_batch.status(), true);
  if (args.has("--json")) {
    if (Status s = lines.open(args.text("--json")); !s.ok()) return fail(s);
  }
  BenchOptions options;
  options.model_path = args.text("--model");
  options.kernels = args.text("--kernels");
  options.threads = static_cast<int>(*threads);
  options.micro_batch_tokens = static_cast<int>(*micro_batch);
  options.on_result = [&lines](const BenchResult& r) {
    JsonObject object;
    object.add("name", r.name).add("batch", r.batch).add("adapters", r.adapters).add("threads", r.threads);
    std::printf("%-8s batch %3d  adapters %d  threads %d  ", r.name.c_str(), r.batch, r.adapters, r.threads);
    if (r.seconds > 0) {
      object.add("tokens", r.tokens).add("answer_tokens", r.answer_tokens).add("from_base", r.from_base).add("tokens_per_s", r.tokens_per_s).add("seconds", r.seconds);
      object.add("reference_seconds", r.reference_seconds).add("forward_seconds", r.forward_seconds);
      object.add("backward_seconds", r.backward_seconds).add("update_seconds", r.update_seconds);
      object.add("anonymous_megabytes", r.megabytes);
      std::printf("%9.1f tokens/s, %d tokens, answers of %d%s: %.2f s a step (base %.2f, forward %.2f, backward %.2f, update %.3f), %.0f MB anonymous\n",
                  r.tokens_per_s, r.tokens, r.answer_tokens, r.from_base ? " from the base" : "", r.seconds, r.reference_seconds, r.forward_seconds, r.backward_seconds,
                  r.update_seconds, r.megabytes);
    } else if (r.tokens_per_s > 0) {
      if (r.name == "prefill") object.add("tokens", r.tokens);
      object.add("tokens_per_s", r.tokens_per_s);
      std::printf("%9.1f tokens/s", r.tokens_per_s);
      if (r.name == "prefill") std::printf(", prompt of %d", r.tokens);
      std::printf("\n");
    } else if (r.microseconds > 0 || r.worst_microseconds > 0) {
      object.add("microseconds", r.microseconds).add("worst_microseconds", r.worst_microseconds);
      std::printf("%9.0f us median, %.0f us worst\n", r.microseconds, r.worst_microseconds);
    } else if (r.milliseconds > 0) {
      object.add("milliseconds", r.milliseconds).add("worst_milliseconds", r.worst_milliseconds);
      std::printf("%9.1f ms median, %.1f ms worst, from disk to visible\n", r.milliseconds, r.worst_milliseconds);
    } else if (r.cycles > 0) {
      object.add("cycles", r.cycles).add("growth_megabytes", r.growth_megabytes);
      std::printf("%+9.1f MB resident after %d loads and unloads\n", r.growth_megabytes, r.cycles);
    } else if (r.megabytes > 0) {
      object.add("tokens", r.tokens).add("anonymous_megabytes", r.megabytes);
      std::printf("%9.1f MB anonymous, %d tokens cached\n", r.megabytes, r.tokens);
    } else {
      object.add("rows_per_s", r.rows_per_s);
      std::printf("%9.0f rows/s\n", r.rows_per_s);
    }
    std::fflush(stdout);
    lines.write("bench", object);
  };
  const Status done = run_bench(args.positional(), options, log);
  return done.ok() ? 0 : fail(done, done.code() == Code::kInvalidArgument);
}

}  // namespace sluice::headless
