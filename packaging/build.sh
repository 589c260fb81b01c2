#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# build.sh [--headless]: builds both programs (or only sluice-headless, without Qt) by the release preset into
# build/release/bin. Needs what packaging/deps.sh and packaging/fetch.sh bring.
set -euo pipefail
cd "$(dirname "$0")/.."
gui=ON targets=(sluice sluice-headless)
case "${1-}" in
  "") ;;
  --headless) gui=OFF targets=(sluice-headless) ;;
  *) echo "usage: packaging/build.sh [--headless]" >&2; exit 2 ;;
esac
options=(-DSLUICE_GUI=$gui -DSLUICE_TORCH=ON)
# A folder that packaging/test.sh configured keeps its tests; a new one is spared them.
[ -e build/release/CMakeCache.txt ] || options+=(-DSLUICE_TESTS=OFF)
. packaging/jobs.sh
mkdir -p build
cmake --preset release "${options[@]}" >build/configure.log 2>&1 || { cat build/configure.log >&2; exit 1; }
NINJA_STATUS='[%f/%t, %es] ' cmake --build --preset release -j "$(build_jobs)" --target "${targets[@]}"
