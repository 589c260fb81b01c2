#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Real client libraries (openai, litellm, langchain-openai, lm-eval's local-completions) against a `sluice-headless serve` that
# this script starts. Usage: clients.sh [BUILD_FOLDER] [MODEL.gguf] (defaults: build/release, the bundled model). The first run
# makes a Python environment of pinned packages in the cache folder; that needs PyPI and Debian's python3-venv, which
# packaging/deps.sh doesn't install. Exit 0 when every check passed.
set -eu
cd "$(dirname "$0")/../.."
build=${1:-build/release}
model=${2:-}
[ -x "$build/bin/sluice-headless" ] || { echo "$build/bin/sluice-headless is missing: run packaging/build.sh" >&2; exit 2; }
cache=${SLUICE_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/sluice}
venv=$cache/clients-venv
wanted=$(sha256sum tests/acceptance/clients.txt | cut -d' ' -f1)
if [ "$(cat "$venv/.pins" 2>/dev/null || true)" != "$wanted" ]; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q --no-deps -r tests/acceptance/clients.txt
  echo "$wanted" > "$venv/.pins"
fi
exec "$venv/bin/python" tests/acceptance/clients.py --program "$build/bin/sluice-headless" ${model:+--model "$model"}
