#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# From a clean clone to the running program: installs what is missing, fetches libtorch and the model, builds, and starts
# the workbench; without a display it runs the demo in the terminal. Arguments go to the program. A second call is quick.
set -euo pipefail
cd "$(dirname "$0")/.."
say() { printf '\n== %s\n' "$*"; }
if [ -n "${DISPLAY-}${WAYLAND_DISPLAY-}" ]; then
  groups=(build gui) build_options=()
  command=(build/release/bin/sluice "$@")
else
  groups=(build) build_options=(--headless)
  workspace=${XDG_DATA_HOME:-$HOME/.local/share}/sluice/demo
  command=(build/release/bin/sluice-headless demo --data "$workspace" "$@")
fi
say "1/4 Debian packages"
bash packaging/deps.sh "${groups[@]}"
say "2/4 libtorch and the model"
bash packaging/fetch.sh
say "3/4 Build"
bash packaging/build.sh "${build_options[@]}"
say "4/4 ${command[*]}"
[ -n "${DISPLAY-}${WAYLAND_DISPLAY-}" ] || echo "No display: the demo runs here. The workspace is $workspace"
exec "${command[@]}"
