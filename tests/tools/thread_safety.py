#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""thread_safety.py BUILD_DIR: clang's thread-safety analysis, as errors, over every source of engine/ that BUILD_DIR's
compile_commands.json names. g++ ignores the annotations. Exit status 77 (skipped) where clang++ is missing."""
import json
import os
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FLAGS = ["-std=c++20", "-fsyntax-only", "-Wno-everything", "-Wthread-safety", "-Werror=thread-safety"]
# A violation that must be found, else the whole check proves nothing.
PROBE = """#include "base/guarded.h"
struct Probe { sluice::Mutex mu; int x SLUICE_GUARDED_BY(mu) = 0; int read() { return x; } };
"""


def includes_and_defines(command):
    kept, words = [], iter(shlex.split(command))
    for word in words:
        if word in ("-I", "-isystem", "-D"):
            kept += [word, next(words)]
        elif word.startswith(("-I", "-D")):
            kept.append(word)
    return kept


def main():
    root = Path(__file__).resolve().parents[2]
    clang = shutil.which("clang++")
    if not clang:
        print("skipped: clang++ is not installed (Debian package clang)")
        return 77
    probe = subprocess.run([clang, *FLAGS, f"-I{root}/engine", "-x", "c++", "-"], input=PROBE, text=True, capture_output=True)
    if probe.returncode == 0 or "requires holding mutex 'mu'" not in probe.stderr:
        print("the analysis does not find a plain violation:\n" + probe.stderr)
        return 1

    commands = json.loads(Path(sys.argv[1], "compile_commands.json").read_text())
    engine = [c for c in commands if Path(c["file"]).is_relative_to(root / "engine") and c["file"].endswith(".cpp")]

    def check(entry):
        command = [clang, *FLAGS, *includes_and_defines(entry["command"]), entry["file"]]
        return entry["file"], subprocess.run(command, text=True, capture_output=True, cwd=entry["directory"])

    failed = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for file, result in pool.map(check, engine):
            if result.returncode:
                failed += 1
                print(f"--- {file}\n{result.stderr}")
    print(f"{len(engine)} sources, {failed} with violations")
    return 1 if failed or not engine else 0


if __name__ == "__main__":
    sys.exit(main())
