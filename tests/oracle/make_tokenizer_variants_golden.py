#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes tests/data/golden/tokenizer_{splits,pieces}.json: one tiny vocabulary each, and the ids that Hugging Face's
`tokenizers` (and SentencePiece itself) give odd strings for every way to split or to put spaces.

usage: make_tokenizer_variants_golden.py OUT_DIR        (needs: pip install tokenizers sentencepiece protobuf gguf)

splits: byte-level BPE whose merges cross all borders, so that the ids show each family's split. Every variant holds its
parts of tokenizer.json as `tokenizers` writes them.
pieces: a SentencePiece BPE model with byte fallback; ids by SentencePiece from its scores, and by `tokenizers` from merges.
"""
import io
import json
import sys

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from make_tokenizer_golden import LLAMA3, QWEN2, SCRIPTS, WORDS, corpus

CASED = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+%s"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*%s"
         r"|%s| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
TEKKEN = CASED % ("", "", r"\p{N}")
ENDINGS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
GPT4O = CASED % (ENDINGS, ENDINGS, r"\p{N}{1,3}")
CJK = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
# Letters with case, as DeepSeek's first tokenizer lists them.
CASED_LETTERS = (
    "[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373"
    "\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a"
    "-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b"
    "-\u1d77\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d"
    "\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0"
    "-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a"
    "-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb"
    "-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00"
    "-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb"
    "\U00010c80-\U00010cb2\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943]+")
DEEPSEEK_PUNCTUATION = "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+"
DEEPSEEK_WORDS = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
                  r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
SEED = (r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}"
        r"| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+")


def split(*patterns):
    return [pre_tokenizers.Split(Regex(p), "isolated") for p in patterns]


def byte_level(use_regex):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)


def sequence(*parts):
    return pre_tokenizers.Sequence(list(parts))


DIGITS = pre_tokenizers.Digits(individual_digits=True)
# Name in GGUF files -> pre-tokenizer, NFC, ignore_merges.
SPLITS = {
    "gpt-2": (byte_level(True), False, False),
    "smollm": (sequence(DIGITS, byte_level(True)), False, False),
    "llama-bpe": (sequence(*split(LLAMA3), byte_level(False)), False, True),
    "qwen2": (sequence(*split(QWEN2), byte_level(False)), True, False),
    "tekken": (sequence(*split(TEKKEN), byte_level(False)), False, True),
    "gpt-4o": (sequence(*split(GPT4O), byte_level(False)), False, False),
    "seed-coder": (sequence(*split(SEED), byte_level(False)), False, False),
    "deepseek-llm": (sequence(*split(r"[\r\n]", r"\s?" + CASED_LETTERS, DEEPSEEK_PUNCTUATION, r"\s+$", CJK),
                              DIGITS, byte_level(False)), False, False),
    "deepseek-coder": (sequence(*split(r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", CJK), DIGITS, byte_level(False)), False, False),
    "deepseek-v3": (sequence(*split(r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+", DEEPSEEK_WORDS), byte_level(False)),
                    False, False),
}


def ids_of(tokenizer, texts, plain):
    tokenizer.encode_special_tokens = plain
    return [tokenizer.encode(t, add_special_tokens=False).ids for t in texts]


def parts_of(tokenizer):
    whole = json.loads(tokenizer.to_str())
    return {k: whole[k] for k in ("normalizer", "pre_tokenizer", "decoder")}, whole


def splits():
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = byte_level(False)
    trainer = trainers.BpeTrainer(vocab_size=700, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    trained.train_from_iterator([" ".join(WORDS + SCRIPTS), "100 200 1000 999 123 2024 \n\n  \n\t\t   x don't I'LL HTTPServer getURL"] * 6, trainer)
    model = json.loads(trained.to_str())["model"]
    texts = corpus([], 11, 420)
    texts += ["HTTPServer", "getURLFor", "iPhone's", "ABC'LL x", "A/B\n", "a./\n/", "\r\n x", "中文abc混合123", "ひらがなカタカナ漢字", " ½ x²", "_a #b $c", "x\n\n", "  \n", "a  "]
    variants = {}
    for name, (pre, nfc, ignore) in SPLITS.items():
        tokenizer = Tokenizer(models.BPE(vocab=model["vocab"], merges=[tuple(m) for m in model["merges"]], ignore_merges=ignore))
        if nfc:
            tokenizer.normalizer = normalizers.NFC()
        tokenizer.pre_tokenizer = pre
        tokenizer.decoder = decoders.ByteLevel()
        parts, _ = parts_of(tokenizer)
        variants[name] = {"parts": parts, "ignore_merges": ignore, "ids": ids_of(tokenizer, texts, False)}
    return {"vocab": model["vocab"], "merges": model["merges"], "texts": texts, "variants": variants}


def merges_of(pieces):
    """Every split of a piece into two others, by score, as merges."""
    score = {p.piece: p.score for p in pieces if p.type == 1}
    out = []
    for piece in sorted(score, key=lambda p: -score[p]):
        for at in range(1, len(piece)):
            if piece[:at] in score and piece[at:] in score:
                out.append((piece[:at], piece[at:]))
    return out


def llama_like(pieces, merges, prefix, specials):
    vocab = {p.piece: i for i, p in enumerate(pieces)}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    if prefix == "prepend":
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    elif prefix == "replace":  # as Gemma
        tokenizer.normalizer = normalizers.Replace(" ", "▁")
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme=prefix, split=False)
    tokenizer.decoder = decoders.Sequence(steps + ([decoders.Strip(" ", 1, 0)] if prefix not in ("replace", "never") else []))
    tokenizer.add_tokens(specials)
    return tokenizer


def pieces():
    def train(dummy_prefix):
        out = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter((WORDS + SCRIPTS) * 3 + [" ".join(WORDS)] * 4), model_writer=out, model_type="bpe", vocab_size=760,
            byte_fallback=True, split_digits=True, normalization_rule_name="identity", remove_extra_whitespaces=False,
            allow_whitespace_only_pieces=True, user_defined_symbols=["<think>", "\n\n"], add_dummy_prefix=dummy_prefix, character_coverage=0.98,
            hard_vocab_limit=False, minloglevel=2)
        return out.getvalue()

    proto = sentencepiece_model_pb2.ModelProto.FromString(train(True))
    specials = [AddedToken(t, special=True, normalized=False) for t in ("<unk>", "<s>", "</s>")]
    specials += [AddedToken(t, special=False, normalized=False) for t in ("<think>", "\n\n")]
    texts = corpus(["<s>", "</s>"], 12, 420) + [" " * n + w for n in range(4) for w in ("Hello", "<s>Hello", "<s> Hello", "the</s> fox", "\t\tx")]
    texts += ["a<think>b", "<think>", "<think> x", "x\n\ny", "<0x41>", "<unk>", "a▁b", "▁", "𝔘🫠", "\ufffd", "<think>\n\nyes"]
    texts = list(dict.fromkeys(texts))
    merges = merges_of(proto.pieces)
    variants = {}
    for prefix in ("prepend", "replace", "first", "always", "never"):
        tokenizer = llama_like(proto.pieces, merges, prefix, specials)
        parts, whole = parts_of(tokenizer)
        special = ids_of(tokenizer, texts, False)
        plain = ids_of(tokenizer, texts, True)
        variants[prefix] = {"parts": parts, "ids": special, "plain": [None if p == s else p for p, s in zip(plain, special)],
                            "decoded": [tokenizer.decode(i, skip_special_tokens=True) for i in special]}
    own = {}
    for dummy in (True, False):
        proto.normalizer_spec.add_dummy_prefix = dummy
        processor = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
        # A user-defined symbol does not end a text here as it does in the others.
        free = [i for i, t in enumerate(texts) if not dummy or not ("<think>" in t or "\n\n" in t)]
        own["prefix" if dummy else "none"] = {i: processor.encode(texts[i]) for i in free}
    return {"tokens": [p.piece for p in proto.pieces], "scores": [p.score for p in proto.pieces], "types": [p.type for p in proto.pieces],
            "merges": merges, "added_tokens": whole["added_tokens"], "texts": texts, "variants": variants, "sentencepiece": own}


def main():
    for name, made in (("splits", splits()), ("pieces", pieces())):
        with open(sys.argv[1] + "/tokenizer_%s.json" % name, "w", encoding="utf-8", newline="\n") as out:
            json.dump(made, out, ensure_ascii=False, separators=(",", ":"))
            out.write("\n")


if __name__ == "__main__":
    main()
