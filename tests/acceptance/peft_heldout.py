#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Loads the version in service at the end of a demo run with PEFT, on the model as transformers reads it, and compares.

    peft_heldout.py RUN.jsonl WORKSPACE [--model FILE.gguf] [--prompts N] [--version 0]

Answers the same held-out prompts as the run's final measurement, with other random draws, and scores both sets of answers by
demo_rules.py: accepted and on topic. The two counts are two samples, so they may differ by 2.6 standard errors of a difference of two
shares (99 % of honest runs; pairs of the same prompt differ less than that). And, without chance: the log-probs that the run stored with
the answers of its measurement must be those that PEFT gives the same tokens, within 0.003 nats a token in the mean (decoding rounds activations
to 16 bits, PEFT does not), and an adapter must explain them better than the base without it. Exit 0 when all holds.

Needs torch, transformers, peft and gguf from PyPI."""
import argparse
import math
import os
import random
import sys
from pathlib import Path

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

sys.path.insert(0, str(Path(__file__).parent))
from demo_rules import breaks_be_brief, names_topic  # noqa: E402
from rescore_demo import Run, heldout_records  # noqa: E402

MOST_ERRORS = 2.6    # standard errors between two samples of one share
MOST_NATS = 0.003    # mean |difference| of log-probs, a token; 0.0003 measured, the base alone is 0.2 to 0.4 off


def agree(what, ours, theirs, n):
    """Whether two counts of n look like samples of one share."""
    pooled = (ours + theirs) / (2 * n)
    error = math.sqrt(pooled * (1 - pooled) * 2 / n)
    good = abs(ours - theirs) <= MOST_ERRORS * error * n
    print(f"{what}: {theirs}/{n} in the run, {ours}/{n} in PEFT; {MOST_ERRORS} standard errors are {100 * MOST_ERRORS * error:.1f} points"
          f"{'' if good else '  DIFFERENT'}")
    return good


def sample(model, tokenizer, recipe, prompts):
    """(text, finished) for each prompt."""
    out, system = [], recipe["stream"].get("system", "")
    for start in range(0, len(prompts), 8):
        texts = [tokenizer.apply_chat_template([{"role": "system", "content": system}, {"role": "user", "content": p}], tokenize=False,
                                               add_generation_prompt=True) for p in prompts[start:start + 8]]
        batch = tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=False)
        with torch.inference_mode():
            ids = model.generate(**batch, do_sample=True, temperature=recipe["sampling"]["temperature"], top_p=1.0, top_k=0,
                                 max_new_tokens=recipe["sampling"]["max_tokens"], eos_token_id=tokenizer.eos_token_id,
                                 pad_token_id=tokenizer.pad_token_id)
        for row in ids[:, batch.input_ids.shape[1]:].tolist():
            finished = tokenizer.eos_token_id in row
            answer = row[:row.index(tokenizer.eos_token_id)] if finished else row
            out.append((tokenizer.decode(answer, skip_special_tokens=True), finished))
        print(f"  {len(out)} of {len(prompts)} answered", flush=True)
    return out


def log_prob_gap(model, records):
    """Mean |stored - ours| a token over the answers of the run, at their temperature."""
    total = count = 0
    for r in records:
        prompt, answer = (torch.frombuffer(bytearray(r[c]), dtype=torch.int32).long() for c in ("prompt_ids", "token_ids"))
        stored = torch.frombuffer(bytearray(r["lp_full"]), dtype=torch.float32)
        with torch.inference_mode():
            logits = model(torch.cat([prompt, answer])[None]).logits[0, len(prompt) - 1:-1]
        ours = torch.log_softmax(logits.float() / r["temperature"], -1).gather(1, answer[:, None])[:, 0]
        total += (ours - stored[:len(answer)]).abs().sum().item()
        count += len(answer)
    return total / count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("workspace")
    cache = os.environ.get("SLUICE_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")) + "/sluice"
    parser.add_argument("--model", default=cache + "/models/SmolLM2-135M-Instruct.Q4_1.gguf")
    parser.add_argument("--prompts", type=int, help="that many of the measurement's prompts, for a quick look")
    parser.add_argument("--version", type=int, help="0 for the base; else the version in service at the end")
    args = parser.parse_args()
    run = Run(args.run, args.workspace)
    version = run.summary["serving_version"] if args.version is None else args.version
    records = sorted(heldout_records(run, version), key=lambda r: r["prompt_text"])
    if not records:
        print(f"PROBLEM: the run has no final measurement of v{version}")
        return 1
    random.Random(1).shuffle(records)
    records = records[:args.prompts]
    logging.disable_progress_bar()
    folder, name = os.path.split(args.model)
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    tokenizer.padding_side = "left"
    tokenizer.pad_token_id = tokenizer.eos_token_id
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32).eval()
    good = True
    without = log_prob_gap(model, records) if version else math.inf
    if version:
        model = PeftModel.from_pretrained(model, f"{args.workspace}/adapters/{version}").eval()
    gap = log_prob_gap(model, records)
    good &= gap <= MOST_NATS and gap < without / 2
    print(f"log-probs of the run's answers: {gap:.4f} nats a token from PEFT's" + (f", {without:.4f} from the base's" if version else "")
          + ("" if good else "  DIFFERENT"))
    torch.manual_seed(1)
    prompts = [r["prompt_text"] for r in records]
    answers = sample(model, tokenizer, run.recipe, prompts)
    theirs = [run.score(r) for r in records]
    good &= agree("accepted", sum(not breaks_be_brief(*a) for a in answers), sum(a for a, _ in theirs), len(records))
    good &= agree("names the topic", sum(names_topic(text, run.prompts.held_out[p][1]) for p, (text, _) in zip(prompts, answers)),
                  sum(t for _, t in theirs), len(records))
    print(f"v{version}: PEFT and the run {'agree' if good else 'DO NOT agree'} on {len(records)} held-out prompts")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
