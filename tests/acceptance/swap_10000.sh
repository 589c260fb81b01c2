#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# 10,000 adapter swaps on the fake model with streams in flight at every one; each text is compared with the version on its
# receipt. Usage: swap_10000.sh [BUILD_FOLDER] (default build/release); SLUICE_SWAPS changes the number.
set -eu
cd "$(dirname "$0")/../.."
build=${1:-build/release}
[ -x "$build/bin/chat_test" ] || { echo "$build/bin/chat_test is missing: run packaging/test.sh, or configure with -DSLUICE_TESTS=ON and build chat_test" >&2; exit 2; }
SLUICE_SWAPS=${SLUICE_SWAPS:-10000} exec "$build/bin/chat_test" --gtest_filter='Swap.*'
