#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes tests/data/golden/losses.json: policy losses, their gradients by log-prob and group advantages, from TRL's own
GRPOTrainer code in f64; AdamW with norm clipping from torch in f32.

    python tests/oracle/make_loss_golden.py      (needs torch, trl 1.16)
"""
import collections
import json
import types
from pathlib import Path
from unittest import mock

import torch
import trl
from trl.trainer.grpo_trainer import GRPOTrainer

OUT = Path(__file__).resolve().parent.parent / "data" / "golden" / "losses.json"
MAX_TOKENS = 12
LENGTHS = (3, 12, 1, 7)
ADVANTAGES = (1.1, -0.8, 0.0, -1.3)


class Accelerator:
    num_processes = 1
    sync_gradients = True

    @staticmethod
    def gather(x):
        return x

    @staticmethod
    def reduce(x, reduction):
        return x


def trainer(lp, **changed):
    """As much of a GRPOTrainer as its loss reads."""
    args = types.SimpleNamespace(delta=None, use_bias_correction_kl=False, steps_per_generation=1)
    me = mock.MagicMock(spec=[])
    values = dict(
        aux_loss_enabled=False, top_entropy_quantile=1.0, off_policy_mask_threshold=None, importance_sampling_level="token",
        beta=0.0, loss_type="dapo", epsilon_low=0.2, epsilon_high=0.2, use_vllm=False, vllm_importance_sampling_correction=False,
        max_completion_length=MAX_TOKENS, current_gradient_accumulation_steps=1, accelerator=Accelerator(),
        _entropy_bonus_enabled=False, model=types.SimpleNamespace(training=True), args=args,
        _metrics={"train": collections.defaultdict(list)},
        _get_per_token_logps_and_entropies=lambda *a, **k: (lp, torch.zeros_like(lp), None))
    values["args"].delta = changed.pop("delta", None)
    values.update(changed)
    for name, value in values.items():
        setattr(me, name, value)
    return me


def case(name, aggregation, stale=False, **changed):
    g = torch.Generator().manual_seed(len(name))
    rows, width = len(LENGTHS), max(LENGTHS)
    mask = torch.tensor([[1.0] * n + [0.0] * (width - n) for n in LENGTHS], dtype=torch.float64)
    old = -4 * torch.rand(rows, width, generator=g, dtype=torch.float64) - 0.1
    gap = 0.6 * torch.randn(rows, width, generator=g, dtype=torch.float64)
    gap[1, 0], gap[1, 1], gap[3, 0] = 1.5, -1.5, 2.0  # ratios beyond every clip, both signs, above 3 with A < 0
    lp = (old + gap).requires_grad_()
    ids = torch.zeros(rows, width, dtype=torch.long)
    inputs = dict(prompt_ids=ids[:, :1], prompt_mask=ids[:, :1] + 1, completion_ids=ids, completion_mask=mask,
                  advantages=torch.tensor(ADVANTAGES, dtype=torch.float64), num_items_in_batch=mask.sum())
    if stale:  # ratio 1 with the truncated weight of the sampler on it
        changed.update(use_vllm=True, vllm_importance_sampling_correction=True)
        inputs["importance_sampling_ratio"] = torch.exp(lp.detach() - old).clamp(max=2.0)
    else:
        inputs["old_per_token_logps"] = old
    settings = {k: changed[k] for k in ("epsilon_low", "epsilon_high", "delta") if k in changed}
    loss = GRPOTrainer._compute_loss(trainer(lp, **changed), None, inputs)
    loss.backward()

    def packed(x):
        return [v for row, n in zip(x.tolist(), LENGTHS) for v in row[:n]]

    return dict(name=name, aggregation=aggregation, stale=stale, settings=settings, lengths=LENGTHS, advantages=ADVANTAGES,
                max_tokens=MAX_TOKENS, lp_cur=packed(lp.detach()), lp_full=packed(old), loss=loss.item(), grad=packed(lp.grad))


def adamw(steps=5):
    g = torch.Generator().manual_seed(1)
    theta = torch.nn.Parameter(torch.randn(64, generator=g))
    settings = dict(lr=1e-3, betas=(0.9, 0.95), eps=1e-12, weight_decay=0.0)
    optimiser = torch.optim.AdamW([theta], **settings)
    out = dict(start=theta.tolist(), settings=settings, max_norm=1.0, grads=[], norms=[], theta=[])
    for step in range(steps):
        theta.grad = torch.randn(64, generator=g) * 10.0 ** (step - 3)
        theta.grad[0] = 1e-10
        out["grads"].append(theta.grad.tolist())
        out["norms"].append(torch.nn.utils.clip_grad_norm_([theta], 1.0).item())
        optimiser.step()
        out["theta"].append(theta.tolist())
    return out


def groups():
    out = []
    for rewards in ([1, 0, 0, 1], [0.2, 0.9, 0.4], [0.0] + [0.95] * 7):
        r = torch.tensor(rewards, dtype=torch.float64)
        out.append(dict(rewards=rewards, grpo=((r - r.mean()) / (r.std() + 1e-4)).tolist(), dr_grpo=(r - r.mean()).tolist()))
    return out


def main():
    cases = [
        case("token_mean", "token_mean", loss_type="bnpo"),
        case("seq_mean", "seq_mean", loss_type="grpo"),
        case("seq_sum_const", "seq_sum_const", loss_type="dr_grpo"),
        case("clip higher", "token_mean", loss_type="bnpo", epsilon_high=0.28),
        case("dual clip", "token_mean", loss_type="bnpo", delta=3.0),
        case("truncated", "token_mean", stale=True, loss_type="bnpo"),
        case("truncated seq_mean", "seq_mean", stale=True, loss_type="grpo"),
    ]
    header = dict(torch=torch.__version__, trl=trl.__version__)
    OUT.write_text(json.dumps(dict(versions=header, cases=cases, groups=groups(), adamw=adamw()), separators=(",", ":")))


main()
