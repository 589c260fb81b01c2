# SPDX-License-Identifier: GPL-3.0-or-later
"""The tiny random models of the tests: transformers models written as GGUF files, with a 320-token vocabulary."""
import gguf
import numpy as np
import torch
from transformers import (LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM)

SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
# G stands for the blank of the byte alphabet. Every merge uses tokens that exist before it.
MERGES = """G t;G a;h e;i n;r e;o n;G the;e r;G s;G w;G o;a t;n d;i t;o r;e s;G b;e n;G c;i s;G f;in g;G p;o u;G an;
a l;a r;G to;G m;G of;G in;G d;G h;G and;i c;l e;o m;t h;i on;a s;r o;G is;e d;v e;l l;G n;u t;G re;a n;e t;G be;
G e;G y;G you;s t;G g;G I;o t;G l;u r;c h"""
CHATML = ("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
          "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")
CONTEXT = 2048


def byte_alphabet():
    """GPT-2's map of bytes to printable characters."""
    keep = list(range(ord("!"), ord("~") + 1)) + list(range(0xA1, 0xAD)) + list(range(0xAE, 0x100))
    extra = [b for b in range(256) if b not in keep]
    table = {b: chr(b) for b in keep}
    table.update({b: chr(256 + i) for i, b in enumerate(extra)})
    return [table[b] for b in range(256)]


def vocabulary():
    alphabet = byte_alphabet()
    tokens = SPECIALS + alphabet
    blank = alphabet[ord(" ")]
    merges = []
    for merge in MERGES.replace("\n", "").split(";"):
        left, right = merge.replace("G", blank).split(" ")
        if left + right in tokens:
            continue
        if right not in tokens:  # "G the" needs "the": spell it through its own last piece
            left, right = blank + right[0], right[1:]
        assert left in tokens and right in tokens, (left, right)
        tokens.append(left + right)
        merges.append(left + " " + right)
    n = 0
    while len(tokens) < 320:  # fill up with pairs of digits
        a, b = str(n // 10), str(n % 10)
        tokens.append(a + b)
        merges.append(a + " " + b)
        n += 1
    return tokens[:320], merges[:320 - 259]


def build(family):
    torch.manual_seed(0)
    common = dict(vocab_size=320, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                  num_key_value_heads=2, max_position_embeddings=CONTEXT, rms_norm_eps=1e-5, tie_word_embeddings=True,
                  attn_implementation="eager", bos_token_id=1, eos_token_id=2, pad_token_id=2, use_cache=False,
                  rope_parameters={"rope_type": "default", "rope_theta": 100000.0})
    if family == "llama":
        model = LlamaForCausalLM(LlamaConfig(**common))
    elif family == "qwen2":
        model = Qwen2ForCausalLM(Qwen2Config(**common))
    else:
        model = Qwen3ForCausalLM(Qwen3Config(head_dim=24, **common))
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name.endswith("norm.weight"):
                p.copy_(1 + 0.1 * torch.randn_like(p))
            else:
                p.copy_(torch.randn_like(p) * (0.3 if "embed" in name else 0.15))
    return model.float().eval()


NAMES = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
         "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm",
         "post_attention_layernorm": "ffn_norm", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm"}


def gguf_name(name):
    if name == "model.embed_tokens.weight":
        return "token_embd.weight"
    if name == "model.norm.weight":
        return "output_norm.weight"
    _, _, layer, rest = name.split(".", 3)
    module, kind = rest.rsplit(".", 1)
    return f"blk.{layer}.{NAMES[module]}.{kind}"


def interleave(w, heads):
    """Rows in the pair order of llama GGUF files."""
    return w.reshape(heads, 2, w.shape[0] // heads // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def write(model, family, path, types):
    """types(name, shape) -> GGMLQuantizationType. The model's parameters become what the file holds."""
    c = model.config
    writer = gguf.GGUFWriter(path, family)
    writer.add_name(f"Tiny random {family}")
    writer.add_block_count(c.num_hidden_layers)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(c.hidden_size)
    writer.add_feed_forward_length(c.intermediate_size)
    writer.add_head_count(c.num_attention_heads)
    writer.add_head_count_kv(c.num_key_value_heads)
    head_dim = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_rope_freq_base(100000.0)
    writer.add_layer_norm_rms_eps(c.rms_norm_eps)
    tokens, merges = vocabulary()
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if t in SPECIALS else 1 for t in tokens])
    writer.add_token_merges(merges)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_pad_token_id(2)
    writer.add_add_bos_token(False)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(CHATML)
    with torch.no_grad():
        for name, p in model.named_parameters():
            kind = types(name, p.shape)
            stored = p.detach().numpy()
            data = gguf.quants.quantize(stored, kind)
            back = gguf.quants.dequantize(data, kind).reshape(p.shape).astype(np.float32)
            p.copy_(torch.from_numpy(back))
            if family == "llama" and ("q_proj" in name or "k_proj" in name):
                heads = c.num_attention_heads if "q_proj" in name else c.num_key_value_heads
                data = interleave(data, heads)
            writer.add_tensor(gguf_name(name), data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
