// SPDX-License-Identifier: GPL-3.0-or-later
// verify and export.
#include <cstdio>

#include "headless/verbs.h"
#include "runtime/maintenance.h"

namespace sluice::headless {

int verify(const Args& args, Log&) {
  const auto problems = verify_workspace(args.text("--data"));
  if (!problems.ok()) return fail(problems.status());
  for (const std::string& line : *problems) std::printf("%s\n", line.c_str());
  if (!problems->empty()) {
    return fail(corrupt(std::to_string(problems->size()) + " problem(s) in " + args.text("--data")));
  }
  std::printf("The workspace is sound.\n");
  return 0;
}

int export_version(const Args& args, Log&) {
  const std::string format = args.text("--format", "peft");
  if (format != "peft") return fail(invalid_argument("format \"" + format + "\" is unknown: use peft"), true);
  const auto version = args.integer("--version", 0, 1, INT64_MAX);
  if (!version.ok()) return fail(version.status(), true);
  const Status done = export_from_workspace(args.text("--data"), VersionId(*version), args.text("--model"), args.text("--out"));
  if (!done.ok()) return fail(done);
  std::printf("Exported version %lld to %s.\n", static_cast<long long>(*version), args.text("--out").c_str());
  return 0;
}

}  // namespace sluice::headless
