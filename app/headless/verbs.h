// SPDX-License-Identifier: GPL-3.0-or-later
// The verbs of sluice-headless. Each returns the exit code: 0 done, 1 failed with one line on stderr, 2 wrong usage.
#pragma once

#include <string>
#include <vector>

#include "base/log.h"
#include "headless/args.h"

namespace sluice::headless {

struct Verb {
  VerbSpec spec;
  int (*run)(const Args& args, Log& log);
};

int serve(const Args& args, Log& log);
int demo(const Args& args, Log& log);
int generate(const Args& args, Log& log);
int bench(const Args& args, Log& log);
int export_version(const Args& args, Log& log);
int verify(const Args& args, Log& log);

// Prints "sluice-headless: <message>" on stderr; returns 1, or 2 for kInvalidArgument when `usage_error`.
int fail(const Status& status, bool usage_error = false);

// True once SIGINT or SIGTERM came (serve, demo end in order then).
bool stop_requested();
int stop_signals();  // how many came; a second one means "at once"
void watch_signals();
// Waits until a stop signal, or `seconds` passed. True when the signal came.
bool wait_for_stop(double seconds);

}  // namespace sluice::headless
