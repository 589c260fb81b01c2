#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decode and prefill against llama.cpp on the same GGUF file, threads and prompts, in one run.

    serve_vs_llamacpp.py [--program build/release/bin/sluice-headless] [--model FILE.gguf] [--threads 2] [--rounds 3] [--json FILE]

Needs llama-cpp-python 0.3.36 from PyPI. The peer is driven by its low-level batch calls (its Python `eval` is slower); the two take
turns, round by round, and medians are compared. Greedy, no end of text. Prints tokens per second and the ratio; a timing decides no test."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import llama_cpp

ROOT = Path(__file__).resolve().parents[2]
PROMPT, WARM, TOKENS = 32, 4, 64


def default_model():
    cache = os.environ.get("SLUICE_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")) + "/sluice"
    return cache + "/models/SmolLM2-135M-Instruct.Q4_1.gguf"


class Peer:
    def __init__(self, path, threads):
        llama_cpp.llama_backend_init()
        params = llama_cpp.llama_model_default_params()
        self.model = llama_cpp.llama_load_model_from_file(path.encode(), params)
        self.vocab_size = llama_cpp.llama_n_vocab(llama_cpp.llama_model_get_vocab(self.model))
        self.threads = threads

    def context(self, batch, tokens):
        params = llama_cpp.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = batch * tokens, 512, 512
        params.n_threads = params.n_threads_batch = self.threads
        params.n_seq_max = batch
        return llama_cpp.llama_new_context_with_model(self.model, params)

    def feed(self, ctx, batch, rows):
        """rows: (token, position, sequence, wants logits)"""
        batch.n_tokens = len(rows)
        for i, (token, position, sequence, logits) in enumerate(rows):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0], batch.logits[i] = token, position, 1, sequence, logits
        if llama_cpp.llama_decode(ctx, batch) != 0:
            raise RuntimeError("llama_decode failed")

    def decode(self, n):
        ctx = self.context(n, PROMPT + WARM + TOKENS + 8)
        batch = llama_cpp.llama_batch_init(512, 0, n)
        for s in range(n):
            self.feed(ctx, batch, [((1000 + 7919 * i + 104729 * s) % self.vocab_size, i, s, i == PROMPT - 1) for i in range(PROMPT)])
        current, position = [1000 + s for s in range(n)], PROMPT
        begin = 0.0
        for step in range(WARM + TOKENS):
            if step == WARM:
                begin = time.perf_counter()
            self.feed(ctx, batch, [(current[s], position, s, 1) for s in range(n)])
            llama_cpp.llama_get_logits_ith(ctx, 0)  # waits for the result
            position += 1
        took = time.perf_counter() - begin
        llama_cpp.llama_batch_free(batch)
        llama_cpp.llama_free(ctx)
        return n * TOKENS / took

    def prefill(self, n):
        ctx = self.context(1, n + 8)
        batch = llama_cpp.llama_batch_init(512, 0, 1)
        begin = time.perf_counter()
        self.feed(ctx, batch, [((1000 + 7919 * i) % self.vocab_size, i, 0, i == n - 1) for i in range(n)])
        llama_cpp.llama_get_logits_ith(ctx, n - 1)
        took = time.perf_counter() - begin
        llama_cpp.llama_batch_free(batch)
        llama_cpp.llama_free(ctx)
        return n / took


def ours(args, what):
    out = subprocess.run([args.program, "bench", what, "--model", args.model, "--threads", str(args.threads), "--json", "-"],
                         capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/release/bin/sluice-headless"))
    parser.add_argument("--model", default=default_model())
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json")
    args = parser.parse_args()
    peer = Peer(args.model, args.threads)
    mine, theirs = {}, {}
    for _ in range(args.rounds):
        for event in ours(args, "decode"):
            if event["adapters"] == 0:
                mine.setdefault(f"decode batch {event['batch']}", []).append(event["tokens_per_s"])
        for n in (1, 4, 8):
            theirs.setdefault(f"decode batch {n}", []).append(peer.decode(n))
        mine.setdefault("prefill 512", []).append(ours(args, "prefill")[0]["tokens_per_s"])
        theirs.setdefault("prefill 512", []).append(peer.prefill(512))
    rows = []
    for name in mine:
        a, b = statistics.median(mine[name]), statistics.median(theirs[name])
        rows.append({"name": name, "sluice": a, "llama.cpp": b, "ratio": a / b, "threads": args.threads, "raw": [mine[name], theirs[name]]})
        print(f"{name:16} sluice {a:8.1f}  llama.cpp {b:8.1f} tokens/s  ratio {a / b:.2f}")
    if args.json:
        Path(args.json).write_text(json.dumps({"llama_cpp": llama_cpp.__version__, "rows": rows}, indent=1))


if __name__ == "__main__":
    sys.exit(main())
