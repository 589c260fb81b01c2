#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The demo with seeds 1, 2, 3 on the real model, each judged by rescore_demo.py. About seven minutes a seed on two cores.
#   tests/acceptance/demo_seeds.sh [OUT_FOLDER] [SEED ...]
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${1:-$(mktemp -d)}
shift || true
seeds=("$@")
[ ${#seeds[@]} -gt 0 ] || seeds=(1 2 3)
program=${SLUICE_HEADLESS:-build/release/bin/sluice-headless}
mkdir -p "$out"
failed=0
for seed in "${seeds[@]}"; do
  echo "== seed $seed"
  rm -rf "$out/workspace-$seed"
  "$program" demo --data "$out/workspace-$seed" --seed "$seed" --json "$out/run-$seed.jsonl" | tee "$out/run-$seed.txt"
  "$program" verify --data "$out/workspace-$seed" || failed=1
  python3 tests/acceptance/rescore_demo.py "$out/run-$seed.jsonl" "$out/workspace-$seed" --strict || failed=1
done
exit $failed
