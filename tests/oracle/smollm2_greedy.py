# SPDX-License-Identifier: GPL-3.0-or-later
"""Greedy continuations of 20 prompts by transformers, in f32 on the dequantised weights of the embedded model.

    python tests/oracle/smollm2_greedy.py SmolLM2-135M-Instruct.Q4_1.gguf     -> tests/data/golden/smollm2_greedy.json
"""
import json
import sys
from pathlib import Path

import gguf
import numpy as np
import tokenizers
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM

import tiny_gguf

QUESTIONS = ["What is snow?", "Name three colours of the rainbow.", "Why is the sky blue?", "How do bees make honey?",
             "Write a short sentence about the sea.", "What does a violin sound like?", "Tell me about volcanoes.",
             "How far away is the moon?", "What is 7 times 6?", "Explain what a prime number is.",
             "Give me a recipe for pancakes.", "What is the difference between a frog and a toad?"]
PLAIN = ["Once upon a time there was a", "The three most important rules of gardening are", "def fibonacci(n):\n    ",
         "In 1969 the first people", "Dear customer,\n\nthank you for", "1, 2, 3, 4, 5,", "import numpy as np\n\n",
         "The recipe needs two eggs, a cup of flour and"]
TOKENS = 64


def deinterleave(w, heads):
    return w.reshape(heads, w.shape[0] // heads // 2, 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def load(path):
    reader = gguf.GGUFReader(path)
    field = {k: f.contents() for k, f in reader.fields.items()}
    heads, kv = field["llama.attention.head_count"], field["llama.attention.head_count_kv"]
    config = LlamaConfig(vocab_size=field["llama.vocab_size"], hidden_size=field["llama.embedding_length"],
                         intermediate_size=field["llama.feed_forward_length"], num_hidden_layers=field["llama.block_count"],
                         num_attention_heads=heads, num_key_value_heads=kv, max_position_embeddings=field["llama.context_length"],
                         rms_norm_eps=field["llama.attention.layer_norm_rms_epsilon"], tie_word_embeddings=True,
                         rope_parameters={"rope_type": "default", "rope_theta": field["llama.rope.freq_base"]},
                         attn_implementation="eager")
    with torch.device("meta"):
        model = LlamaForCausalLM(config)
    names = {tiny_gguf.gguf_name(n): n for n, _ in model.named_parameters()}
    state = {}
    for t in reader.tensors:
        w = gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float32)
        if ".attn_q." in t.name or ".attn_k." in t.name:
            w = deinterleave(w, heads if ".attn_q." in t.name else kv)
        state[names[t.name]] = torch.from_numpy(np.ascontiguousarray(w))
    state["lm_head.weight"] = state["model.embed_tokens.weight"]
    model = LlamaForCausalLM(config)
    model.load_state_dict(state)
    tokens, merges = field["tokenizer.ggml.tokens"], field["tokenizer.ggml.merges"]
    tokenizer = Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, [tuple(m.split(" ", 1)) for m in merges]))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    return model.float().eval(), tokenizer


def chat_ids(tokenizer, question):
    """The file's ChatML template, with its default system message."""
    text = lambda s: tokenizer.encode(s).ids
    turn = lambda role, content: [1] + text(f"{role}\n{content}") + [2] + text("\n")
    system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
    return turn("system", system) + turn("user", question) + [1] + text("assistant\n")


def greedy(model, ids):
    steps, cache, fed = [], None, ids
    with torch.no_grad():
        for _ in range(TOKENS):
            out = model(torch.tensor([fed]), past_key_values=cache, use_cache=True)
            cache = out.past_key_values
            lp = torch.log_softmax(out.logits[0, -1].double(), -1)
            best = lp.topk(2)
            steps.append((int(best.indices[0]), float(best.values[0]), float(best.values[0] - best.values[1])))
            fed = [steps[-1][0]]
    return {"prompt": ids, "tokens": [s[0] for s in steps], "lp": [round(s[1], 6) for s in steps],
            "margin": [round(s[2], 6) for s in steps]}


def main():
    torch.set_num_threads(1)
    model, tokenizer = load(sys.argv[1])
    prompts = [chat_ids(tokenizer, q) for q in QUESTIONS] + [tokenizer.encode(p).ids for p in PLAIN]
    cases = []
    for ids in prompts:
        cases.append(greedy(model, ids))
        print(len(cases), len(ids), flush=True)
    out = {"versions": {"torch": torch.__version__, "transformers": transformers.__version__, "tokenizers": tokenizers.__version__},
           "model": Path(sys.argv[1]).name, "cases": cases}
    target = Path(__file__).resolve().parent.parent / "data/golden/smollm2_greedy.json"
    target.write_text(json.dumps(out, separators=(",", ":")))


if __name__ == "__main__":
    main()
