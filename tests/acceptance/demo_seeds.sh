#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The demo with seeds 1, 2, 3 on the real model, each judged by rescore_demo.py and, where there is a Python for it, by peft_heldout.py.
# About five minutes a seed on two cores, and about five more for PEFT.
#   tests/acceptance/demo_seeds.sh [OUT_FOLDER] [SEED ...]
# SLUICE_HEADLESS: another program. SLUICE_PEFT_PYTHON: a python with torch, transformers, peft and gguf.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${1:-$(mktemp -d)}
shift || true
seeds=("$@")
[ ${#seeds[@]} -gt 0 ] || seeds=(1 2 3)
program=${SLUICE_HEADLESS:-build/release/bin/sluice-headless}
peft=${SLUICE_PEFT_PYTHON:-}
if [ -z "$peft" ]; then
  echo "SKIPPED: the final adapters are not loaded in PEFT, since SLUICE_PEFT_PYTHON names no python with torch, transformers, peft and gguf"
elif ! "$peft" -c 'import torch, transformers, peft, gguf'; then
  echo "SLUICE_PEFT_PYTHON=$peft lacks one of torch, transformers, peft, gguf" >&2
  exit 2
fi
mkdir -p "$out"
failed=0
for seed in "${seeds[@]}"; do
  echo "== seed $seed"
  workspace=$out/workspace-$seed run=$out/run-$seed
  rm -rf "$workspace" "$run".*
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  "$program" demo --data "$workspace" --seed "$seed" --port "$port" --json "$run.jsonl" > >(tee "$run.txt") &
  demo=$!
  python3 tests/acceptance/watch_metrics.py "http://127.0.0.1:$port" "$run.metrics" "$demo" &
  watch=$!
  wait "$demo" || failed=1
  wait "$watch" || failed=1
  "$program" verify --data "$workspace" || failed=1
  python3 tests/acceptance/rescore_demo.py "$run.jsonl" "$workspace" --metrics "$run.metrics" --strict || failed=1
  [ -z "$peft" ] || "$peft" tests/acceptance/peft_heldout.py "$run.jsonl" "$workspace" || failed=1
done
exit $failed
