#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
# Writes tests/data/golden/dequant.bin: for every tensor type, random blocks and what the `gguf` package (0.19.0) makes
# of them. Layout, little-endian, repeated to the end: u32 type, u32 values, u32 bytes, the bytes, the values as f32.
# Usage: make_dequant_golden.py OUT
import struct
import sys

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as T
from gguf.quants import dequantize

VALUES = 1024


def finite_halves(rng, n):
    """Half-precision bit patterns that are no infinity or NaN: normal, subnormal, zero, both signs."""
    bits = rng.integers(0, 1 << 16, n, dtype=np.uint16)
    return np.where(bits & 0x7C00 == 0x7C00, bits & 0x83FF, bits)


def random_blocks(rng, qtype):
    block, size = GGML_QUANT_SIZES[qtype]
    n = VALUES // block
    if qtype == T.F32:
        return rng.standard_normal(VALUES).astype(np.float32).view(np.uint8).reshape(n, size)
    if qtype in (T.F16, T.BF16):
        return finite_halves(rng, VALUES).view(np.uint8).reshape(n, size)
    blocks = rng.integers(0, 256, (n, size), dtype=np.uint8)
    half_at = {T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q8_0: [0], T.IQ4_NL: [0],
               T.Q2_K: [80, 82], T.Q3_K: [108], T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208]}
    for at in half_at[qtype]:
        blocks[:, at:at + 2] = finite_halves(rng, n).view(np.uint8).reshape(n, 2)
    return blocks


def main():
    rng = np.random.default_rng(20240601)
    with open(sys.argv[1], "wb") as out:
        for qtype in (T.F32, T.F16, T.BF16, T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q8_0, T.Q4_K, T.Q6_K,
                      T.Q2_K, T.Q3_K, T.Q5_K, T.IQ4_NL):
            blocks = random_blocks(rng, qtype)
            data = blocks.reshape(-1)
            typed = data.view(np.float32) if qtype == T.F32 else data.view(np.float16) if qtype == T.F16 else data
            values = np.asarray(dequantize(typed, qtype), dtype=np.float32).reshape(-1)
            assert values.size == VALUES and np.isfinite(values).all()
            out.write(struct.pack("<III", int(qtype), VALUES, data.size))
            out.write(data.tobytes())
            out.write(values.astype("<f4").tobytes())


main()
