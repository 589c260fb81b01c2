#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# fuzz.sh MINUTES [TARGET...]: builds the fuzz targets with clang, ASan and UBSan, and runs them one after the other at low
# priority, MINUTES in all. Inputs that fail end in build/fuzz/found/<target>-*; mend, then keep them (small, with
# -minimize_crash=1) under tests/data/fuzz/<target>, where fuzz_regression_test runs them.
# Needs: apt-get install clang libclang-rt-14-dev
set -euo pipefail
cd "$(dirname "$0")/../.."
minutes=${1:?usage: fuzz.sh MINUTES [TARGET...]}
shift
targets=("$@")
((${#targets[@]})) || targets=(gguf safetensors tokenizer_json chat_template chat_request sse)
find_clang() { command -v clang++ || command -v clang++-14; }
clang=$(find_clang) || { echo "fuzz.sh: no clang++; apt-get install clang libclang-rt-14-dev" >&2; exit 1; }
cmake -S . -B build/fuzz -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_COMPILER="$clang" -DCMAKE_C_COMPILER="${clang/++/}" \
  -DSLUICE_FUZZ=ON -DSLUICE_WERROR=OFF -DSLUICE_TORCH=OFF -DSLUICE_GUI=OFF >build/fuzz-configure.log 2>&1 ||
  { cat build/fuzz-configure.log >&2; exit 1; }
cmake --build build/fuzz -j "$(nproc)" --target "${targets[@]/#/fuzz_}"

seconds=$((minutes * 60 / ${#targets[@]}))
mkdir -p build/fuzz/found
failed=0
for target in "${targets[@]}"; do
  corpus=build/fuzz/corpus/$target
  mkdir -p "$corpus"
  dict=()
  [[ -f tests/fuzz/$target.dict ]] && dict=(-dict=tests/fuzz/$target.dict)
  echo "== $target, $seconds s"
  nice -n 19 build/fuzz/bin/fuzz_"$target" "$corpus" tests/data/fuzz/"$target" "${dict[@]}" -max_total_time="$seconds" \
    -timeout=10 -rss_limit_mb=2048 -max_len=8192 -print_final_stats=1 -artifact_prefix=build/fuzz/found/"$target"- \
    >build/fuzz/"$target".log 2>&1 || { failed=1; echo "$target: FAILED, see build/fuzz/$target.log"; }
  grep -E "stat::number_of_executed_units|SUMMARY|ERROR|Test unit written" build/fuzz/"$target".log || true
done
exit $failed
