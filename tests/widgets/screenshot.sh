#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# screenshot.sh [PROGRAM [FILE]]: runs the demo on the real engine under a virtual display and keeps one picture of the window
# in the middle of it, once at least one update was promoted and 160 requests were answered (SLUICE_SHOT_REQUESTS).
# Needs xvfb-run, imagemagick and python3. Takes as long as half a demo.
set -euo pipefail
cd "$(dirname "$0")/../.."
program=$(realpath "${1:-build/release/bin/sluice}")
file=$(realpath -m "${2:-resources/screenshots/workbench.png}")
requests=${SLUICE_SHOT_REQUESTS:-160}
deadline=$((SECONDS + ${SLUICE_SHOT_SECONDS:-1200}))

if [[ -z ${SLUICE_SHOT_INSIDE:-} ]]; then
  SLUICE_SHOT_INSIDE=1 exec xvfb-run -a -s "-screen 0 1360x860x24" "$0" "$program" "$file"
fi

work=$(mktemp -d)
pid=
cleanup() {
  [[ -z $pid ]] || { kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; }
  rm -rf "$work"
}
trap cleanup EXIT
export XDG_CONFIG_HOME=$work/config LC_ALL=C.UTF-8
"$program" --demo --data "$work/be-brief" &
pid=$!

# How far the demo is: live requests answered, versions promoted. Read-only, beside the running program.
progress() {
  python3 - "$work/be-brief/sluice.db" <<'PY' 2>/dev/null || echo "0 0"
import sqlite3, sys
db = sqlite3.connect("file:%s?mode=ro" % sys.argv[1], uri=True)
count = lambda sql: db.execute(sql).fetchone()[0]
print(count("SELECT count(*) FROM metric WHERE name = 'accept'"),
      count("SELECT count(*) FROM decision WHERE verdict = 'promote' AND kind = 'gate'"))
PY
}

while :; do
  kill -0 "$pid" 2>/dev/null || { echo "screenshot.sh: the workbench ended early" >&2; exit 1; }
  read -r answered promoted < <(progress)
  (( answered >= requests && promoted >= 1 )) && break
  (( SECONDS < deadline )) || { echo "screenshot.sh: only $answered requests and $promoted promotions in time" >&2; exit 1; }
  sleep 2
done
mkdir -p "$(dirname "$file")"
import -window root "$work/full.png"
convert "$work/full.png" -colors 192 -define png:compression-level=9 "PNG8:$file"
echo "$file: $(stat -c %s "$file") bytes, after $answered requests and $promoted promotions"
