#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decode and prefill against llama.cpp on the same GGUF file, threads and prompts, in one run.

    serve_vs_llamacpp.py [--program build/release/bin/sluice-headless] [--model FILE.gguf] [--requantise Q4_0 --requantise Q8_0 ...]
                         [--threads 2] [--rounds 3] [--kernels AVX2] [--only decode|prefill] [--json FILE]

Needs llama-cpp-python 0.3.36 from PyPI. The peer is driven by its low-level batch calls (its Python `eval` is slower); the two take
turns, round by round, and medians are compared. Both are warm: the first steps of a context are not counted. Greedy, no end of text;
our figure includes choosing the token and its log-probability, the peer's ends with the logits. --requantise makes the model's other
forms by the peer's own call, next to the model. --kernels holds our kernels to one instruction set; give the peer a build of the same
set by LLAMA_CPP_LIB_PATH. Prints tokens per second and the ratio; a timing decides no test."""
import argparse
import ctypes
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

import llama_cpp

ROOT = Path(__file__).resolve().parents[2]
PROMPT, WARM, TOKENS = 32, 4, 144  # as `sluice-headless bench decode`
BATCHES = (1, 4, 8, 16)
CHUNK = 512  # prompt tokens a call, on both sides
TYPES = {"Q4_0": 2, "Q4_1": 3, "Q8_0": 7, "Q5_0": 8, "Q5_1": 9, "Q4_K_M": 15, "Q5_K_M": 17, "Q6_K": 18}  # enum llama_ftype


def default_model():
    cache = os.environ.get("SLUICE_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")) + "/sluice"
    return cache + "/models/SmolLM2-135M-Instruct.Q4_1.gguf"


def requantise(source, kind, folder):
    target = Path(folder) / f"{Path(source).stem}.to-{kind}.gguf"
    if not target.exists():
        params = llama_cpp.llama_model_quantize_default_params()
        params.ftype, params.allow_requantize = TYPES[kind], True
        partial = str(target) + ".part"
        if llama_cpp.llama_model_quantize(str(source).encode(), partial.encode(), ctypes.byref(params)) != 0:
            raise RuntimeError(f"llama_model_quantize to {kind} failed")
        os.replace(partial, target)
    return str(target)


class Peer:
    def __init__(self, path, threads):
        params = llama_cpp.llama_model_default_params()
        self.model = llama_cpp.llama_load_model_from_file(path.encode(), params)
        if not self.model:
            raise RuntimeError(f"llama.cpp does not load {path}")
        self.vocab_size = llama_cpp.llama_n_vocab(llama_cpp.llama_model_get_vocab(self.model))
        self.threads = threads

    def close(self):
        llama_cpp.llama_free_model(self.model)

    def context(self, batch, tokens):
        params = llama_cpp.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = batch * tokens, CHUNK, CHUNK
        params.n_threads = params.n_threads_batch = self.threads
        params.n_seq_max = batch
        ctx = llama_cpp.llama_new_context_with_model(self.model, params)
        if not ctx:
            raise RuntimeError("no llama.cpp context")
        return ctx

    def feed(self, ctx, batch, rows):
        """rows: (token, position, sequence, wants logits)"""
        batch.n_tokens = len(rows)
        for i, (token, position, sequence, logits) in enumerate(rows):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0], batch.logits[i] = token, position, 1, sequence, logits
        if llama_cpp.llama_decode(ctx, batch) != 0:
            raise RuntimeError("llama_decode failed")

    def prompt(self, n, salt):
        return [(1000 + 7919 * i + 104729 * salt) % self.vocab_size for i in range(n)]

    def decode(self, n):
        ctx = self.context(n, 256)
        batch = llama_cpp.llama_batch_init(CHUNK, 0, n)
        for s in range(n):
            self.feed(ctx, batch, [(t, i, s, i == PROMPT - 1) for i, t in enumerate(self.prompt(PROMPT, s))])
        begin = 0.0
        for step in range(WARM + TOKENS):
            if step == WARM:
                begin = time.perf_counter()
            self.feed(ctx, batch, [((1000 + s + 31 * step) % self.vocab_size, PROMPT + step, s, 1) for s in range(n)])
            llama_cpp.llama_get_logits_ith(ctx, 0)  # waits for the result
        took = time.perf_counter() - begin
        llama_cpp.llama_batch_free(batch)
        llama_cpp.llama_free(ctx)
        return n * TOKENS / took

    def prefill(self, n):
        ctx = self.context(1, n)
        batch = llama_cpp.llama_batch_init(CHUNK, 0, 1)
        rates = []
        for turn in range(4 if n <= CHUNK else 2):  # the first does not count
            rows = [(t, i, 0, i == n - 1) for i, t in enumerate(self.prompt(n, turn))]
            llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(ctx), True)
            begin = time.perf_counter()
            for at in range(0, n, CHUNK):
                self.feed(ctx, batch, rows[at:at + CHUNK])
            llama_cpp.llama_get_logits_ith(ctx, (n - 1) % CHUNK)
            rates.append(n / (time.perf_counter() - begin))
        llama_cpp.llama_batch_free(batch)
        llama_cpp.llama_free(ctx)
        return statistics.median(rates[1:])


def ours(args, model, what):
    command = [args.program, "bench", what, "--model", model, "--threads", str(args.threads), "--json", "-"]
    if args.kernels:
        command += ["--kernels", args.kernels]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def compare(args, model):
    """Rows for one file, the adapters' cost against our own base among them."""
    peer = Peer(model, args.threads)
    mine, theirs = {}, {}
    for _ in range(args.rounds):
        if args.only != "prefill":
            for event in ours(args, model, "decode"):
                name = f"decode batch {event['batch']}" + (f" adapters {event['adapters']}" if event["adapters"] else "")
                mine.setdefault(name, []).append(event["tokens_per_s"])
            for n in BATCHES:
                theirs.setdefault(f"decode batch {n}", []).append(peer.decode(n))
        if args.only != "decode":
            for event in ours(args, model, "prefill"):
                mine.setdefault(f"prefill {event['tokens']}", []).append(event["tokens_per_s"])
                theirs.setdefault(f"prefill {event['tokens']}", []).append(peer.prefill(event["tokens"]))
    peer.close()
    rows = []
    for name, values in mine.items():
        row = {"model": Path(model).name, "name": name, "sluice": statistics.median(values), "raw": values}
        if name in theirs:
            row |= {"llama.cpp": statistics.median(theirs[name]), "llama.cpp raw": theirs[name]}
            row["ratio"] = row["sluice"] / row["llama.cpp"]
            print(f"{name:28} sluice {row['sluice']:8.1f}  llama.cpp {row['llama.cpp']:8.1f} tokens/s  ratio {row['ratio']:.2f}", flush=True)
        else:  # the same batch without adapters, round by round
            base = mine[name.split(" adapters")[0]]
            row["slower"] = 1 - statistics.median(a / b for a, b in zip(values, base))
            print(f"{name:28} sluice {row['sluice']:8.1f}  {100 * row['slower']:.1f} % slower than without", flush=True)
        rows.append(row)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/release/bin/sluice-headless"))
    parser.add_argument("--model", default=default_model())
    parser.add_argument("--requantise", action="append", choices=TYPES, default=[], help="compare on this form instead; may be repeated")
    parser.add_argument("--folder", help="where the other forms are kept; default: beside the model")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kernels", help="instruction set of our kernels, as AVX2 or AVX3_DL")
    parser.add_argument("--only", choices=("decode", "prefill"))
    parser.add_argument("--json")
    args = parser.parse_args()
    quiet = llama_cpp.llama_log_callback(lambda *_: None)  # must outlive the peer
    llama_cpp.llama_log_set(quiet, ctypes.c_void_p(0))
    llama_cpp.llama_backend_init()
    rows = []
    for model in [requantise(args.model, k, args.folder or Path(args.model).parent) for k in args.requantise] or [args.model]:
        print(Path(model).name, flush=True)
        rows += compare(args, model)
    if args.json:
        cpu = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), platform.processor())
        Path(args.json).write_text(json.dumps(
            {"llama_cpp_python": llama_cpp.__version__, "llama_cpp_features": llama_cpp.llama_print_system_info().decode(), "cpu": cpu,
             "threads": args.threads, "kernels": args.kernels or "best", "rows": rows}, indent=1))


if __name__ == "__main__":
    sys.exit(main())
