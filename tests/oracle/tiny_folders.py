#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes tests/data/folders/* (tiny random Hugging Face models), tests/data/tiny-blocks.gguf (every block type that the other
tiny files lack) and tests/data/golden/tiny_folders.json: what transformers computes from them, under several config.json.

    python tests/oracle/tiny_folders.py    (needs numpy, torch, transformers, tokenizers, gguf, safetensors)
"""
import json
import shutil
import tempfile
from pathlib import Path

import gguf
import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (AutoConfig, AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM,
                          Qwen3Config, Qwen3ForCausalLM)

import tiny_gguf

DATA = Path(__file__).resolve().parent.parent / "data"
FOLDERS = DATA / "folders"
Q = gguf.GGMLQuantizationType
COMMON = dict(vocab_size=320, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
              num_key_value_heads=2, max_position_embeddings=512, rms_norm_eps=1e-5, bos_token_id=1, eos_token_id=2,
              pad_token_id=2, use_cache=False)


def randomise(model, seed):
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name.endswith("norm.weight"):
                p.copy_(1 + 0.1 * torch.randn_like(p))
            else:
                p.copy_(torch.randn_like(p) * (0.3 if "embed" in name or "lm_head" in name else 0.2))
    return model


def save(model, name, dtype, **more):
    folder = FOLDERS / name
    shutil.rmtree(folder, ignore_errors=True)
    model.to(dtype).save_pretrained(folder, **more)
    return folder


def tokenizer_json(folder):
    tokens, merges = tiny_gguf.vocabulary()
    tokenizer = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=[tuple(m.split(" ")) for m in merges]))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                       pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(tiny_gguf.SPECIALS)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"bos_token": tiny_gguf.SPECIALS[1], "eos_token": tiny_gguf.SPECIALS[2], "unk_token": tiny_gguf.SPECIALS[0],
         "add_prefix_space": False, "chat_template": tiny_gguf.CHATML, "tokenizer_class": "GPT2Tokenizer"}, indent=1))


def build_folders():
    llama = save(randomise(LlamaForCausalLM(LlamaConfig(tie_word_embeddings=True, **COMMON)), 1), "llama", torch.bfloat16,
                 max_shard_size="30KB")
    tokenizer_json(llama)
    biased = LlamaForCausalLM(LlamaConfig(tie_word_embeddings=True, attention_bias=True, mlp_bias=True, **COMMON))
    biased = save(randomise(biased, 2), "llama-biased", torch.float16)
    file = biased / "model.safetensors"
    tensors = load_file(file)
    tensors["lm_head.bias"] = torch.randn(320, generator=torch.Generator().manual_seed(3)).half()
    save_file(tensors, file, metadata={"format": "pt"})
    qwen2 = Qwen2ForCausalLM(Qwen2Config(tie_word_embeddings=False, rope_parameters={"rope_type": "default", "rope_theta": 1e6},
                                         **COMMON))
    save(randomise(qwen2, 4), "qwen2", torch.float16)
    huge = Qwen2ForCausalLM(Qwen2Config(tie_word_embeddings=True, **COMMON))
    randomise(huge, 5)
    with torch.no_grad():  # queries and keys whose products no half can hold
        for layer in huge.model.layers:
            layer.self_attn.q_proj.bias.mul_(4000.0)
            layer.self_attn.k_proj.bias.mul_(4000.0)
    save(huge, "qwen2-huge", torch.float16)
    qwen3 = Qwen3ForCausalLM(Qwen3Config(tie_word_embeddings=True, head_dim=16, **COMMON))
    save(randomise(qwen3, 6), "qwen3", torch.bfloat16)


LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
YARN = {"factor": 4.0, "original_max_position_embeddings": 32}
# name, folder, keys of config.json that are replaced (None: removed)
VARIANTS = [
    ("llama", "llama", {}),
    ("llama, no theta", "llama", {"rope_parameters": None}),
    ("llama, theta of version 4", "llama", {"rope_parameters": None, "rope_theta": 100000.0}),
    ("llama, llama3", "llama", {"rope_parameters": None, "rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", **LLAMA3}}),
    ("llama, llama3 by type", "llama", {"rope_parameters": {"rope_theta": 500000.0, "type": "llama3", **LLAMA3}}),
    ("llama, linear", "llama", {"rope_parameters": None, "rope_scaling": {"type": "linear", "factor": 2.5}}),
    ("llama, yarn", "llama", {"rope_parameters": None, "rope_scaling": {"rope_type": "yarn", **YARN}}),
    ("llama, yarn by both", "llama", {"rope_parameters": None, "rope_scaling": {"type": "yarn", "rope_type": "yarn", **YARN}}),
    ("llama, yarn with all keys", "llama",
     {"rope_parameters": {"rope_theta": 20000.0, "rope_type": "yarn", "attention_factor": 1.3, "beta_fast": 16.0, "beta_slow": 0.5,
                          "truncate": False, **YARN}}),
    ("llama with biases", "llama-biased", {}),
    ("qwen2", "qwen2", {}),
    ("qwen2, window off", "qwen2", {"use_sliding_window": False, "sliding_window": 16, "max_window_layers": 0, "layer_types": None}),
    ("qwen2, yarn by type", "qwen2", {"rope_parameters": None, "rope_theta": 1000000.0, "rope_scaling": {"type": "yarn", **YARN}}),
    ("qwen2, huge queries and keys", "qwen2-huge", {}),
    ("qwen3", "qwen3", {}),
    ("qwen3, yarn", "qwen3", {"rope_parameters": {"rope_theta": 1000000.0, "rope_type": "yarn", **YARN}}),
]


def patched(folder, patch):
    """The model of a folder under a changed config.json."""
    with tempfile.TemporaryDirectory() as temp:
        copy = Path(temp) / "model"
        shutil.copytree(FOLDERS / folder, copy)
        config = json.loads((copy / "config.json").read_text())
        for key, value in patch.items():
            config.pop(key, None)
            if value is not None:
                config[key] = value
        (copy / "config.json").write_text(json.dumps(config))
        model = AutoModelForCausalLM.from_pretrained(copy, dtype=torch.float32, attn_implementation="eager").eval()
        bias = load_file(copy / "model.safetensors").get("lm_head.bias") if (copy / "model.safetensors").exists() else None
    return model, 0 if bias is None else bias.float()


def sequences(vocab):
    g = torch.Generator().manual_seed(17)
    return [torch.randint(3, vocab, (n,), generator=g).tolist() for n in (5, 97)]


def golden(model, bias=0):
    cases = []
    for ids in sequences(model.config.vocab_size):
        with torch.no_grad():
            z = model(torch.tensor([ids])).logits[0] + bias
        assert torch.isfinite(z).all()
        lp = torch.log_softmax(z.double(), -1)[:-1].gather(1, torch.tensor(ids[1:])[:, None])[:, 0]
        cases.append({"ids": ids, "last_logits": [round(v, 6) for v in z[-1].tolist()], "lp": [round(v, 7) for v in lp.tolist()]})
    return cases


# Half-precision fields of each block and the size they get, so that weights come out near 0.1.
FIELDS = {Q.Q2_K: {80: 0.01, 82: 0.01}, Q.Q3_K: {108: 0.002}, Q.Q4_K: {0: 0.0003, 2: 0.003}, Q.Q5_K: {0: 0.00015, 2: 0.003},
          Q.Q6_K: {208: 0.00006}, Q.IQ4_NL: {0: 0.0015}, Q.Q5_1: {0: 0.01, 2: -0.15}}
KINDS = {"q_proj": Q.Q2_K, "k_proj": Q.Q3_K, "v_proj": Q.Q4_K, "o_proj": Q.Q5_1, "gate_proj": Q.Q5_K, "up_proj": Q.Q6_K,
         "down_proj": Q.IQ4_NL}


def random_blocks(rng, kind, rows, cols):
    """gguf.quants can't make K blocks, so they are drawn: random integers under scales of the right size."""
    values, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = rng.integers(0, 256, (rows * cols // values, size), dtype=np.uint8)
    for at, scale in FIELDS[kind].items():
        halves = (scale * rng.uniform(0.7, 1.3, (len(blocks), 1))).astype(np.float16)
        blocks[:, at:at + 2] = halves.view(np.uint8)
    return blocks.reshape(rows, cols // values * size)


def build_blocks():
    """One layer whose seven matrices have seven types, rows of 256."""
    config = dict(COMMON, vocab_size=128, hidden_size=256, intermediate_size=256, num_hidden_layers=1)
    model = Qwen2ForCausalLM(Qwen2Config(tie_word_embeddings=True, attn_implementation="eager", **config))
    randomise(model, 8).eval()
    rng = np.random.default_rng(9)
    writer = gguf.GGUFWriter(str(DATA / "tiny-blocks.gguf"), "qwen2")
    writer.add_block_count(1)
    writer.add_context_length(512)
    writer.add_embedding_length(256)
    writer.add_feed_forward_length(256)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    with torch.no_grad():
        for name, p in model.named_parameters():
            module = name.split(".")[-2]
            if p.dim() == 1:
                writer.add_tensor(tiny_gguf.gguf_name(name), p.numpy())
                continue
            kind = KINDS.get(module, Q.Q8_0)
            data = gguf.quants.quantize(p.numpy(), kind) if kind == Q.Q8_0 else random_blocks(rng, kind, *p.shape)
            p.copy_(torch.from_numpy(gguf.quants.dequantize(data, kind).reshape(p.shape).astype(np.float32)))
            writer.add_tensor(tiny_gguf.gguf_name(name), data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return model


def frequencies(config):
    """Inverse frequencies and factor as transformers' rotary embedding has them."""
    rotary = transformers.models.llama.modeling_llama.LlamaRotaryEmbedding(config)
    return {"inverse": rotary.inv_freq.tolist(), "magnitude": rotary.attention_scaling}


def main():
    build_folders()
    out = {"versions": {"torch": torch.__version__, "transformers": transformers.__version__, "gguf": "0.19.0"}, "variants": []}
    for name, folder, patch in VARIANTS:
        model, bias = patched(folder, patch)
        out["variants"].append({"name": name, "folder": folder, "patch": patch, "cases": golden(model, bias),
                                "rope": frequencies(model.config)})
    out["blocks"] = golden(build_blocks())
    (DATA / "golden" / "tiny_folders.json").write_text(json.dumps(out, separators=(",", ":")))


main()
