#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Published chat templates of real models, rendered by jinja2 as Hugging Face sets it up and by our interpreter, and compared. The
# templates come from the source archive of llama-cpp-python on PyPI (77 MB), which carries llama.cpp's collection of them.
# Usage: real_templates.sh [BUILD_FOLDER] (default build/release); the build folder must have been configured with -DSLUICE_TESTS=ON.
# The first run makes a Python environment of pinned, hash-checked packages in the cache folder; that needs PyPI and Debian's
# python3-venv, which packaging/deps.sh doesn't install. Exit 0 when every template rendered alike or was refused as expected.
set -eu
cd "$(dirname "$0")/../.."
build=${1:-build/release}
cache=${SLUICE_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/sluice}
archive='llama-cpp-python==0.3.36 --hash=sha256:832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e'
venv=$cache/templates-venv
wanted=$({ cat tests/acceptance/real_templates.txt; echo "$archive"; } | sha256sum | cut -d' ' -f1)
if [ "$(cat "$venv/.pins" 2>/dev/null || true)" != "$wanted" ]; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q --no-deps --require-hashes -r tests/acceptance/real_templates.txt
  temp=$(mktemp -d)
  trap 'rm -rf "$temp"' EXIT
  echo "$archive" > "$temp/archive.txt"
  "$venv/bin/pip" download -q --no-deps --no-build-isolation --no-binary llama-cpp-python --require-hashes -r "$temp/archive.txt" -d "$temp"
  mkdir "$venv/templates"
  tar -xzf "$temp"/llama_cpp_python-*.tar.gz -C "$venv/templates" --strip-components=5 --wildcards '*/vendor/llama.cpp/models/templates/*.jinja'
  echo "$wanted" > "$venv/.pins"
fi
ninja -C "$build" render_template
exec "$venv/bin/python" tests/acceptance/real_templates.py "$(find "$build" -name render_template -type f)" "$venv/templates"
