#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# From a clean clone to every test: installs what is missing, builds release with tests and runs them, the torch-free ones
# again under ThreadSanitizer, then one short demo on the real model. Ends with `N passed, N failed`.
set -euo pipefail
cd "$(dirname "$0")/.."
. packaging/jobs.sh
started=$SECONDS
say() { printf '\n== [%d:%02d] %s\n' $(((SECONDS - started) / 60)) $(((SECONDS - started) % 60)) "$*"; }
results=$PWD/build/test-results
rm -rf "$results"
mkdir -p "$results"
export NINJA_STATUS='[%f/%t, %es] ' QT_QPA_PLATFORM=offscreen LC_ALL=C.UTF-8

build() {  # <preset> <configure options>
  local preset=$1
  shift
  cmake --preset "$preset" "$@" >build/configure.log 2>&1 || { cat build/configure.log >&2; exit 1; }
  cmake --build --preset "$preset" -j "$(build_jobs)"
}

# Failed tests do not end the script: the summary names them all.
run_tests() {  # <preset> [<wrapper command>]
  local preset=$1
  shift
  mkdir -p "$results/$preset"
  GTEST_OUTPUT=json:$results/$preset/ "$@" ctest --preset "$preset" -j "$(nproc)" --progress \
    --output-junit "$results/$preset/ctest.xml" || echo "ctest --preset $preset: some tests failed"
}

say "Debian packages"
bash packaging/deps.sh build gui test
say "libtorch and the model"
bash packaging/fetch.sh

say "Build: release"
build release -DSLUICE_TESTS=ON -DSLUICE_TORCH=ON -DSLUICE_GUI=ON
say "Every public header compiles alone"
cmake --build --preset release -j "$(build_jobs)" --target all_verify_interface_header_sets
say "Tests: release"
run_tests release

say "Build: ThreadSanitizer, what needs no torch"
build tsan
say "Tests: ThreadSanitizer"
# The sanitizer needs its fixed address ranges, which address randomisation of newer kernels takes away.
fixed=()
setarch -R true 2>/dev/null && fixed=(setarch -R)
TSAN_OPTIONS="halt_on_error=1 second_deadlock_stack=1 suppressions=$PWD/tests/tools/tsan.supp" run_tests tsan "${fixed[@]}"

say "Demo: the real model, 96 requests"
mkdir -p "$results/demo"
rm -rf build/test-demo
events=$results/demo/events.jsonl
python3 -B tests/tools/check_demo.py --junit "$results/demo/ctest.xml" --requests 96 --limit 900 "$events" -- bash -c "
  build/release/bin/sluice-headless demo --data build/test-demo --seed 1 --max-requests 96 --json '$events' &&
  build/release/bin/sluice-headless verify --data build/test-demo" || true

say "Summary"
python3 -B tests/tools/summarize_tests.py release="$results/release" tsan="$results/tsan" demo="$results/demo"
