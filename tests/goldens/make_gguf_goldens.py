#!/usr/bin/env python3
"""Blocks of every type of GGUF that Mica reads, and the numbers to which the package `gguf` dequantizes them.

    make_gguf_goldens.py     writes gguf/TYPE.blocks.npy (u8 [blocks, bytes]) and gguf/TYPE.values.npy (f32 [blocks, elements])

Bytes are random. Fields that are f16 are finite numbers of either sign, including zero and subnormal numbers, so that no value is NaN;
other fields may have any value.
"""
import pathlib
import sys

import gguf
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import gguf_blocks


def halves(rng, count):
    bits = rng.integers(0, 1 << 16, count, dtype=np.uint16)
    bits[(bits & 0x7C00) == 0x7C00] &= 0xBFFF  # no infinity, no NaN
    bits[0], bits[-1] = 0, 0x8001  # zero, and the subnormal number next to it from below
    return bits


def main():
    folder = pathlib.Path(__file__).resolve().parent / "gguf"
    folder.mkdir(exist_ok=True)
    for seed, (name, places) in enumerate(gguf_blocks.SCALES.items()):
        kind = gguf.GGMLQuantizationType[name]
        elements, size = gguf.GGML_QUANT_SIZES[kind]
        rng = np.random.default_rng(seed)
        count = 2048 // elements
        blocks = rng.integers(0, 256, (count, size), dtype=np.uint8)
        for place in places:
            if name == "MXFP4":
                blocks[:4, place] = [0, 1, 2, 255]
            else:
                blocks[:, place:place + 2] = halves(rng, count).reshape(-1, 1).view(np.uint8)
        values = gguf.quants.dequantize(blocks.reshape(-1), kind).astype(np.float32).reshape(count, elements)
        assert not np.isnan(values).any(), name
        np.save(folder / f"{name}.blocks.npy", blocks)
        np.save(folder / f"{name}.values.npy", values)


if __name__ == "__main__":
    main()
