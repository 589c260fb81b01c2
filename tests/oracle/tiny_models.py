# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes tests/data/tiny-*.gguf and the golden files of the model: logits, log-probabilities, LoRA forward and gradients.

    python tests/oracle/tiny_models.py          (needs numpy, torch, transformers, peft, gguf, safetensors)
"""
import json
import shutil
from pathlib import Path

import gguf
import peft
import torch
import transformers
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file

import tiny_gguf

DATA = Path(__file__).resolve().parent.parent / "data"
GOLDEN = DATA / "golden"
Q = gguf.GGMLQuantizationType
VERSIONS = {"torch": torch.__version__, "transformers": transformers.__version__, "peft": peft.__version__, "seed": 0}


def plain(kind):
    return lambda name, shape: Q.F32 if len(shape) == 1 else kind


def blocks(name, shape):
    if len(shape) == 1:
        return Q.F32
    return Q.Q8_0 if "embed" in name else Q.Q4_1


def sequences():
    g = torch.Generator().manual_seed(7)
    return [torch.randint(3, 320, (n,), generator=g).tolist() for n in (5, 40, 97)]


def logits(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0]


def golden_logits(model):
    cases = []
    for ids in sequences():
        z = logits(model, ids)
        lp = torch.log_softmax(z.double(), -1)[:-1].gather(1, torch.tensor(ids[1:])[:, None])[:, 0]
        lp_06 = torch.log_softmax(z.double() / 0.6, -1)[:-1].gather(1, torch.tensor(ids[1:])[:, None])[:, 0]
        cases.append({"ids": ids, "last_logits": z[-1].tolist(), "lp": lp.tolist(), "lp_t06": lp_06.tolist()})
    return cases


def adapted(model, folder, **config):
    torch.manual_seed(3)
    peft_model = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **config))
    g = torch.Generator().manual_seed(11)
    with torch.no_grad():
        for name, p in peft_model.named_parameters():
            if "lora_" in name:
                p.copy_(torch.randn(p.shape, generator=g) * 0.1)
    if folder.exists():
        shutil.rmtree(folder)
    peft_model.save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)
    return peft_model


def gradients(peft_model):
    """Two packed sequences; loss = sum of w lp + 0.1 sum of entropy, at unequal temperatures."""
    peft_model.zero_grad()
    g = torch.Generator().manual_seed(5)
    rows, total = [], 0.0
    for ids, tau in zip(sequences()[:2], (1.0, 0.7)):
        z = peft_model(torch.tensor([ids])).logits[0, :-1] / tau
        logp = torch.log_softmax(z, -1)
        lp = logp.gather(1, torch.tensor(ids[1:])[:, None])[:, 0]
        entropy = -(logp.exp() * logp).sum(-1)
        w = torch.randn(lp.shape, generator=g)
        total = total + (w * lp).sum() + 0.1 * entropy.sum()
        rows.append({"ids": ids, "tau": tau, "w": w.tolist(), "lp": lp.tolist(), "entropy": entropy.tolist()})
    total.backward()
    grads = {n.replace(".default", ""): p.grad.clone() for n, p in peft_model.named_parameters() if p.grad is not None}
    return rows, float(total), grads


def main():
    GOLDEN.mkdir(parents=True, exist_ok=True)
    out = {"versions": VERSIONS, "models": {}}
    llama = tiny_gguf.build("llama")
    tiny_gguf.write(llama, "llama", str(DATA / "tiny-llama.gguf"), plain(Q.F32))
    out["models"]["tiny-llama"] = golden_logits(llama)
    for family in ("qwen2", "qwen3"):
        model = tiny_gguf.build(family)
        tiny_gguf.write(model, family, str(DATA / f"tiny-{family}.gguf"), plain(Q.F16))
        out["models"][f"tiny-{family}"] = golden_logits(model)
    quantised = tiny_gguf.build("llama")
    tiny_gguf.write(quantised, "llama", str(DATA / "tiny-llama-q4_1.gguf"), blocks)
    out["models"]["tiny-llama-q4_1"] = golden_logits(quantised)

    everything = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    lora = adapted(llama, GOLDEN / "tiny-lora", r=4, lora_alpha=8, target_modules=everything)
    out["lora"] = golden_logits(lora)
    rows, loss, grads = gradients(lora)
    out["lora_training"] = {"rows": rows, "loss": loss}
    save_file(grads, GOLDEN / "tiny-lora-grads.safetensors", metadata={k: str(v) for k, v in VERSIONS.items()})
    # rsLoRA, one layer, patterns: the rules that change scale, rank and reach.
    llama = tiny_gguf.build("llama")
    patterned = adapted(llama, GOLDEN / "tiny-lora-patterns", r=4, lora_alpha=8, use_rslora=True,
                        target_modules=r".*\.(q_proj|down_proj|v_proj)", exclude_modules=["v_proj"],
                        rank_pattern={"layers.1.self_attn.q_proj": 2}, alpha_pattern={"down_proj": 3})
    out["lora_patterns"] = golden_logits(patterned)
    (GOLDEN / "tiny_models.json").write_text(json.dumps(out, separators=(",", ":")))


main()
