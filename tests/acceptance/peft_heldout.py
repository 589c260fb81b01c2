#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers held-out prompts with the version in service of a workspace, loaded by PEFT on the model as transformers reads it, and scores
them with the rule of rescore_demo.py: the product's held-out figure must be reproducible without the product.

    peft_heldout.py WORKSPACE [--model FILE.gguf] [--recipe resources/recipes/be-brief.json] [--prompts 104] [--version N]

Needs torch, transformers, peft and gguf from PyPI. Other random draws than the product's, so the two figures agree as two samples do."""
import argparse
import json
import os
import random
import sqlite3
import sys
from pathlib import Path

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

sys.path.insert(0, str(Path(__file__).parent))
from rescore_demo import breaks_be_brief  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]


def held_out_prompts(recipe):
    stream = recipe["stream"]
    for topic in stream["held_out_topics"]:
        text = topic if isinstance(topic, str) else topic["text"] if "text" in topic else topic["topic"]
        for form in stream["forms"]:
            yield form.replace("{topic}", text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workspace")
    cache = os.environ.get("SLUICE_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")) + "/sluice"
    parser.add_argument("--model", default=cache + "/models/SmolLM2-135M-Instruct.Q4_1.gguf")
    parser.add_argument("--recipe", default=str(ROOT / "resources/recipes/be-brief.json"))
    parser.add_argument("--prompts", type=int, default=104)
    parser.add_argument("--version", type=int)
    args = parser.parse_args()
    recipe = json.load(open(args.recipe, encoding="utf-8"))
    prompts = list(held_out_prompts(recipe))
    random.Random(1).shuffle(prompts)
    prompts = prompts[:args.prompts]
    version = args.version
    if version is None:
        db = sqlite3.connect(f"file:{args.workspace}/sluice.db?mode=ro", uri=True)
        version = db.execute("select version from serving order by seq desc limit 1").fetchone()[0]
    folder, name = os.path.split(args.model)
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    tokenizer.padding_side = "left"
    tokenizer.pad_token_id = tokenizer.eos_token_id
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32).eval()
    if version:
        model = PeftModel.from_pretrained(model, f"{args.workspace}/adapters/{version}").eval()
    torch.manual_seed(1)
    accepted = 0
    system = recipe["stream"].get("system", "")
    for start in range(0, len(prompts), 8):
        texts = [tokenizer.apply_chat_template([{"role": "system", "content": system}, {"role": "user", "content": p}], tokenize=False,
                                               add_generation_prompt=True) for p in prompts[start:start + 8]]
        batch = tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=False)
        with torch.inference_mode():
            out = model.generate(**batch, do_sample=True, temperature=recipe["sampling"]["temperature"], top_p=1.0, top_k=0,
                                 max_new_tokens=recipe["sampling"]["max_tokens"], eos_token_id=tokenizer.eos_token_id,
                                 pad_token_id=tokenizer.pad_token_id)
        for row in out[:, batch.input_ids.shape[1]:].tolist():
            finished = tokenizer.eos_token_id in row
            ids = row[:row.index(tokenizer.eos_token_id)] if finished else row
            accepted += not breaks_be_brief(tokenizer.decode(ids, skip_special_tokens=True), finished)
    print(f"v{version} in PEFT: {accepted}/{len(prompts)} accepted on held-out prompts")


if __name__ == "__main__":
    main()
