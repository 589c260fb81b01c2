#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# 50 adapter swaps on the real model with streams in flight at every one, each text compared with the version on its receipt,
# and a short request behind a 2,000-token prompt with the times of its steps. Usage: swap_50_real.sh [BUILD_FOLDER] (default
# build/release). SLUICE_MODEL names another model file, SLUICE_SWAPS another number.
set -eu
cd "$(dirname "$0")/../.."
build=${1:-build/release}
grep -qs swap_50_real "$build/build.ninja" ||  # a folder that packaging/build.sh configured has no tests
  { echo "$build has no target swap_50_real: run packaging/test.sh, or configure with -DSLUICE_TESTS=ON" >&2; exit 2; }
ninja -C "$build" swap_50_real
exec "$build/bin/swap_50_real"
