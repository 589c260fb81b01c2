#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Builds and runs every test. Needs Debian 12; installs what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] && { apt-get update -qq; apt-get install -y -qq g++ cmake ninja-build ccache mold libgtest-dev libgmock-dev >/dev/null; }
cmake --preset release -DSLUICE_TORCH=OFF -DSLUICE_GUI=OFF
cmake --build --preset release
ctest --preset release
