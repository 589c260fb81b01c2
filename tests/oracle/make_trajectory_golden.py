#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes tests/data/golden/trajectory.json and trajectory.safetensors: ten optimiser steps of PEFT + torch.optim.AdamW in f64
on the tiny llama, from the adapter golden/tiny-lora: loss and gradient norm of each step, every LoRA tensor after steps 1, 10.

    python tests/oracle/make_trajectory_golden.py    (needs torch, transformers, peft, gguf; after tiny_models.py)
"""
import json
from pathlib import Path

import peft
import torch
import transformers
from peft import PeftModel
from safetensors.torch import save_file

import tiny_gguf

GOLDEN = Path(__file__).resolve().parent.parent / "data" / "golden"
STEPS, BATCH, BETA, CAP = 10, 4, 0.05, 2.0
SETTINGS = dict(lr=1e-3, betas=(0.9, 0.99), eps=1e-12, weight_decay=0.0)


def logprobs(model, sample):
    ids = torch.tensor([sample["prompt"] + sample["answer"]])
    p = len(sample["prompt"])
    z = model(ids).logits[0, p - 1:-1] / sample["tau"]
    return torch.log_softmax(z, -1).gather(1, torch.tensor(sample["answer"])[:, None])[:, 0]


def make_batches(model):
    """Lengths, temperatures, ages and advantages of all kinds; the sampler's log-probs lie near those of the start."""
    g = torch.Generator().manual_seed(21)
    out = []
    for _ in range(STEPS):
        batch = []
        for i in range(BATCH):
            p = int(torch.randint(2, 20, (1,), generator=g))
            n = int(torch.randint(1, 30, (1,), generator=g))
            ids = torch.randint(3, 320, (p + n,), generator=g).tolist()
            sample = dict(prompt=ids[:p], answer=ids[p:], tau=(1.0, 0.7, 0.5, 1.3)[i], age=(0, 0, 1, 3)[i],
                          advantage=float(torch.randn(1, generator=g)))
            with torch.no_grad():
                lp = logprobs(model, sample)
            sample["lp_full"] = (lp + 0.1 * torch.randn(n, generator=g)).float().tolist()
            batch.append(sample)
        out.append(batch)
    return out


def loss_of(model, batch):
    total, tokens = 0.0, sum(len(s["answer"]) for s in batch)
    for s in batch:
        lp, old, a = logprobs(model, s), torch.tensor(s["lp_full"], dtype=torch.float64), s["advantage"]
        with torch.no_grad(), model.disable_adapter():
            ref = logprobs(model, s)
        w = torch.exp(lp - old).clamp(max=CAP).detach()
        if s["age"] == 0:
            r = torch.exp(lp - old)
            policy = -torch.minimum(r * a, r.clamp(0.8, 1.2) * a)
            if a < 0:
                policy = torch.minimum(policy, torch.full_like(policy, -3 * a))
        else:
            policy = -w * a * torch.exp(lp - lp.detach())
        kl_weight = w if s["age"] > 1 else torch.ones_like(w)
        total = total + (policy + BETA * kl_weight * (lp - ref) ** 2 / 2).sum() / tokens
    return total


def main():
    base = tiny_gguf.build("llama").double()
    model = PeftModel.from_pretrained(base, GOLDEN / "tiny-lora", is_trainable=True).double()
    trained = {n.replace(".default", ""): p for n, p in model.named_parameters() if p.requires_grad}
    batches = make_batches(model)
    optimiser = torch.optim.AdamW(trained.values(), **SETTINGS)
    steps, tensors = [], {}
    for number, batch in enumerate(batches, 1):
        optimiser.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(trained.values(), 1.0)
        optimiser.step()
        steps.append(dict(loss=loss.item(), grad_norm=norm.item()))
        if number in (1, STEPS):
            tensors.update({f"step{number}.{n}": p.detach().float().clone() for n, p in trained.items()})
    versions = dict(torch=torch.__version__, transformers=transformers.__version__, peft=peft.__version__)
    (GOLDEN / "trajectory.json").write_text(json.dumps(
        dict(versions=versions, settings=SETTINGS, kl_beta=BETA, cap=CAP, batches=batches, steps=steps), separators=(",", ":")))
    save_file(tensors, GOLDEN / "trajectory.safetensors")


main()
