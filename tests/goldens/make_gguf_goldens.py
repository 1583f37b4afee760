#!/usr/bin/env python3
"""Blocks of every type of GGUF that Mica reads, and the numbers to which the package `gguf` dequantizes them.

    make_gguf_goldens.py     writes gguf/TYPE.blocks.npy (u8 [blocks, bytes]) and gguf/TYPE.values.npy (f32 [blocks, elements])

Bytes are random. Fields that are f16 are finite numbers of either sign, including zero and subnormal numbers, so that no value is NaN;
other fields may have any value.
"""
import pathlib

import gguf
import numpy as np

# Positions of f16 fields in blocks.
HALVES = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108],
    "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0], "MXFP4": [],
}


def halves(rng, count):
    bits = rng.integers(0, 1 << 16, count, dtype=np.uint16)
    bits[(bits & 0x7C00) == 0x7C00] &= 0xBFFF  # no infinity, no NaN
    bits[0], bits[-1] = 0, 0x8001  # zero, and the subnormal number next to it from below
    return bits


def main():
    folder = pathlib.Path(__file__).resolve().parent / "gguf"
    folder.mkdir(exist_ok=True)
    for seed, (name, places) in enumerate(HALVES.items()):
        kind = gguf.GGMLQuantizationType[name]
        elements, size = gguf.GGML_QUANT_SIZES[kind]
        rng = np.random.default_rng(seed)
        count = 2048 // elements
        blocks = rng.integers(0, 256, (count, size), dtype=np.uint8)
        for place in places:
            blocks[:, place:place + 2] = halves(rng, count).reshape(-1, 1).view(np.uint8)
        if name == "MXFP4":
            blocks[:4, 0] = [0, 1, 2, 255]
        values = gguf.quants.dequantize(blocks.reshape(-1), kind).astype(np.float32).reshape(count, elements)
        assert not np.isnan(values).any(), name
        np.save(folder / f"{name}.blocks.npy", blocks)
        np.save(folder / f"{name}.values.npy", values)


if __name__ == "__main__":
    main()
