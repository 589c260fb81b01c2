#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes tests/data/golden/tokenizer_*.txt: vocabularies and the ids that Hugging Face's `tokenizers` gives odd strings.

usage: make_tokenizer_golden.py SmolLM2.gguf OUT_DIR        (needs: pip install tokenizers gguf)

SmolLM2's own tokens and merges (Apache-2.0) come from the GGUF file, its pre-tokenizer is rebuilt here: each digit alone,
then the GPT-2 byte-level split. Two tiny vocabularies with the Llama 3 and Qwen2 splits are trained on the corpus.
Texts are escaped: \\n \\r \\t \\\\ and \\xHH for other bytes below 0x20 and 0x7F.
"""
import random
import sys

import gguf
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")


def escape(text):
    out = []
    for ch in text:
        if ch == "\\":
            out.append("\\\\")
        elif ch in "\n\r\t":
            out.append({"\n": "\\n", "\r": "\\r", "\t": "\\t"}[ch])
        elif ord(ch) < 0x20 or ord(ch) == 0x7F:
            out.append("\\x%02X" % ord(ch))
        else:
            out.append(ch)
    return "".join(out)


WORDS = """the quick brown fox jumps over a lazy dog; toaster kettle isn't wasn't I'd we'll they've you're it's 'S 'T 'RE
Snow is a form of precipitation that falls from the sky in 1998, 3.14159 and 1,000,000 times, at 12:34:56 on 2024-02-29.
def main(argc, argv): return {'key': [1, 2, 3]} ; if (x <= 0xFF && !y) { printf("%d\\n", x); } // comment
<html><body class="a">&nbsp;</body></html> SELECT * FROM users WHERE id = 42; git commit -m "fix: typo"
https://example.org/path?query=1&b=2#frag user.name+tag@example.com C:\\Users\\x ~/src/a_b-c.d $HOME ${VAR}
antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis Donaudampfschifffahrtsgesellschaft""".split(" ")
SCRIPTS = ["日本語のテキストです。", "中文文本，没有空格", "한국어 문장입니다", "Ελληνικά και", "Русский текст", "עברית", "العربية نص",
           "हिन्दी पाठ", "ไทยไม่มีช่องว่าง", "Tiếng Việt", "Türkçe İıŞş", "naïve façade", "ǅ ǆ Ǆ", "ﬁ ﬂ ﬀ", "ⅣⅫ ①②③ ½¾", "٣٤٥ १२३ ๔๕๖",
           "ÅÅÅ", "e\u0301 é E\u0302\u0301 ế", "a\u0308\u0323 a\u0323\u0308", "ſ'ſ K", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝟙𝟚𝟛", "ᄒ\u1161\u11ab 한", "क\u094dष", "ß ẞ SS"]
EMOJI = ["😀", "👍🏽", "👨‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪🇫🇷", "❤️", "☃", "🫠", "1️⃣", "🤷🏿‍♀️"]
SPACES = [" ", "  ", "   ", "\t", "\t\t", " \t ", "\n", "\n\n", "\n\n\n", "\r\n", "\r", " \n", "\n ", "\n  \n", "\u00a0", "\u2003", "\u3000",
          "\u1680", "\u180e", "\u200b", "\u2028", "\u2029", "\u0085", "\u202f", "\ufeff", "\x0b", "\x0c", "\x1c", "\x1f", "    ", "        "]
CONTROL = ["\x00", "\x01", "\x02", "\x03", "\x04", "\x05", "\x06", "\x07", "\x08", "\x0e", "\x1b[0m", "\x7f", "\x80", "\x9f", "\ufffd",
           "\ufffe", "\uffff", "\ue000", "\U0010ffff", "\U000e0041", "\u202e", "\u00ad", "\U00050000", "\U000a0000"]
PUNCT = list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~") + ["...", "---", "!!!", "“”", "‘’", "—", "…", "€", "£", "§", "«»", "''", "'", "'s", "'ll", "`` "]


def corpus(specials, seed, count):
    rng = random.Random(seed)
    fixed = ["", " ", "a", "0", "\n", "Hello world", " Hello", "Hello ", "  Hello", "Hello  ", "\tHello", "Hello\t\tWorld", "a  1", "a   12 3",
             "x   \n   y", "x  \n\n  y", "0123456789", "1 2  3   4", "007", "1e-9", "3.14", "1,234,567", "٠١٢", "don't DON'T Don'T",
             "I'Ll we'VE", "'", "''", "'s", " 's", "s'", "ſ", "'ſ", "a'ſ"]
    fixed += [" " * n + "x" for n in range(1, 20)] + ["\t" * n + "x" for n in range(1, 8)] + ["\n" * n + "x" for n in range(1, 8)]
    fixed += ["x" + " " * n for n in range(1, 20)] + [" " * n for n in range(1, 40)] + ["\n" * n for n in range(1, 10)]
    fixed += ["a" * n for n in (2, 3, 10, 63, 64, 65, 66, 300)] + ["ab" * 100, "=" * 80, "-" * 79, "🙂" * 20, "一" * 70, "1" * 100]
    fixed += SCRIPTS + EMOJI + SPACES + CONTROL + PUNCT
    for s in specials:
        fixed += [s, "a" + s, s + "a", "a " + s + " b", s + s, s[:-1], s[1:], s[:-1] + " " + s[-1:], "<" + s + ">", s.upper(), "\n" + s + "\n", "  " + s + "  x"]
    strings = list(dict.fromkeys(fixed))
    pools = [WORDS, SCRIPTS, EMOJI, SPACES, CONTROL, PUNCT, specials or ["<|x|>"], [str(n) for n in range(0, 3000, 7)]]
    weights = [8, 5, 3, 6, 2, 4, 2, 3]
    seen = set(strings)
    while len(strings) < count:
        kind = rng.random()
        if kind < 0.15:  # single code points of every plane in use
            text = "".join(chr(rng.choice([rng.randrange(0x20, 0x250), rng.randrange(0x250, 0xD800), rng.randrange(0xE000, 0x10000),
                                           rng.randrange(0x10000, 0x20000)])) for _ in range(rng.randrange(1, 6)))
        else:
            parts = []
            for _ in range(rng.randrange(1, 9)):
                parts.append(rng.choice(rng.choices(pools, weights)[0]))
                if rng.random() < 0.5:
                    parts.append(" ")
            text = "".join(parts)
        if text not in seen:
            seen.add(text)
            strings.append(text)
    return strings


def write_vocabulary(path, pre, specials, vocab, merges, extra):
    ids = dict(vocab)
    by_id = {i: t for t, i in ids.items()}
    special_ids = {ids[s.content] for s in specials}
    normal = [by_id[i] for i in sorted(by_id) if i not in special_ids]
    alphabet = [t for t in normal if len(t) == 1]
    assert normal == alphabet + [a + b for a, b in merges], "tokens are not alphabet + merges in order"
    with open(path, "w", encoding="utf-8", newline="\n") as out:
        out.write("pre %s\n" % pre)
        for line in extra:
            out.write(line + "\n")
        for s in specials:
            flags = "".join(f for f, on in zip("LRSN", (s.lstrip, s.rstrip, s.single_word, s.normalized)) if on) or "-"
            out.write("special %d %s %s %s\n" % (ids[s.content], "C" if s.special else "U", flags, escape(s.content)))
        out.write("bytes " + " ".join(alphabet) + "\n")
        for a, b in merges:
            out.write("merge %s %s\n" % (a, b))


def write_ids(path, tokenizer, strings):
    with open(path, "w", encoding="utf-8", newline="\n") as out:
        for text in strings:
            tokenizer.encode_special_tokens = False
            special = tokenizer.encode(text, add_special_tokens=False).ids
            tokenizer.encode_special_tokens = True
            plain = tokenizer.encode(text, add_special_tokens=False).ids
            out.write(escape(text) + "\n" + " ".join(map(str, special)) + "\n")
            out.write(("=" if plain == special else " ".join(map(str, plain))) + "\n")
            out.write(escape(tokenizer.decode(special, skip_special_tokens=True)) + "\n")


def smollm2(gguf_path, out_dir):
    reader = gguf.GGUFReader(gguf_path)
    field = lambda name: reader.fields["tokenizer.ggml." + name].contents()
    tokens, types = field("tokens"), field("token_type")
    merges = [tuple(m.split(" ")) for m in field("merges")]
    vocab = {t: i for i, t in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    tokenizer.decoder = decoders.ByteLevel()
    specials = [AddedToken(t, special=True, normalized=False) for t, ty in zip(tokens, types) if ty == 3]
    tokenizer.add_special_tokens(specials)
    assert tokenizer.get_vocab_size() == len(tokens)
    write_vocabulary(out_dir + "/tokenizer_smollm2_vocabulary.txt", "smollm", specials, vocab, merges, ["bos 1", "eos 2", "unk 0", "pad 2"])
    names = ["<|im_end|>", "<|im_start|>", "<|endoftext|>", "<repo_name>"]
    write_ids(out_dir + "/tokenizer_smollm2_ids.txt", tokenizer, corpus(names, 1, 2400))


def tiny(out_dir, name, pre, pattern, nfc, ignore_merges, specials, seed):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if nfc:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=900, special_tokens=specials, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  show_progress=False)
    text = (WORDS + SCRIPTS) * 3 + ["100 200 1000 999 123 2024 \n\n  \n\t\t   x"] * 20
    tokenizer.train_from_iterator([" ".join(text)], trainer)
    import json
    model = json.loads(tokenizer.to_str())["model"]
    merges = [tuple(m if isinstance(m, list) else m.split(" ")) for m in model["merges"]]
    write_vocabulary(out_dir + "/tokenizer_%s_vocabulary.txt" % name, pre, specials, model["vocab"], merges, ["bos 0", "eos 1"])
    write_ids(out_dir + "/tokenizer_%s_ids.txt" % name, tokenizer, corpus([s.content for s in specials], seed, 700))


def main():
    gguf_path, out_dir = sys.argv[1:]
    smollm2(gguf_path, out_dir)
    tiny(out_dir, "llama3", "llama-bpe", LLAMA3, False, True,
         [AddedToken("<|begin_of_text|>", special=True, normalized=False), AddedToken("<|eot_id|>", special=True, normalized=False),
          AddedToken("<L>", special=True, normalized=False, lstrip=True), AddedToken("<R>", special=True, normalized=False, rstrip=True),
          AddedToken("wo-rd", special=True, normalized=False, single_word=True), AddedToken("<LR>", special=True, normalized=False, lstrip=True, rstrip=True)], 2)
    tiny(out_dir, "qwen2", "qwen2", QWEN2, True, False,
         [AddedToken("<|im_start|>", special=True, normalized=False), AddedToken("<|im_end|>", special=True, normalized=False),
          AddedToken("<tool>", special=False, normalized=False), AddedToken("<\u00e9>", special=False, normalized=True),
          AddedToken("<|im_end|>x", special=True, normalized=False)], 3)


if __name__ == "__main__":
    main()
