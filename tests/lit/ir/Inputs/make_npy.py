#!/usr/bin/env python3
"""Writes .npy files of small, arbitrary but fixed numbers: make_npy.py FOLDER NAME=2x3 ...

`NAME=2x3:nan` fills the array with NaN, `NAME=i32:5,7` writes these integers.
`weights-of=FILE.mlir` stands for all tensors in the weights of a module.
"""

import array
import math
import os
import re
import sys
import zlib


def numbers(name, count):
    """Values in [-1, 1), different for every name, each a multiple of 1/256."""
    state = zlib.crc32(name.encode())
    for _ in range(count):
        state = (state * 1103515245 + 12345) % 2**31
        yield (state >> 16) % 512 / 256 - 1


def parse(name, text):
    """(type in the header, shape, elements) of `2x3`, `2x3:nan` or `i32:5,7`."""
    before, _, after = text.partition(":")
    if before == "i32":
        values = array.array("i", map(int, after.split(",")))
        return "<i4", (len(values),), values
    shape = tuple(int(extent) for extent in before.split("x"))
    count = math.prod(shape)
    return "<f4", shape, array.array("f", [math.nan] * count if after == "nan" else numbers(name, count))


def write(path, name, text, shape=None):
    """Writes the numbers of `text`; integers get the shape `shape` instead of a row."""
    descr, flat, values = parse(name, text)
    shape = shape or flat
    if sys.byteorder == "big":
        values.byteswap()
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + values.tobytes())


WEIGHT = re.compile(r'mica\.weight @"?([^"\s]+)"?(?: from \[(.*?)\] (stack))? : tensor<([\dx]+)x(?:f32|bf16|f16)>')


def weights_of(path):
    """(name, shape) of every tensor of the checkpoint: a weight itself, or the entries of a stack."""
    with open(path, encoding="utf-8") as file:
        for name, sources, _, shape in WEIGHT.findall(file.read()):
            if sources:
                yield from ((source, shape.partition("x")[2]) for source in re.findall(r'"(.*?)"', sources))
            else:
                yield name, shape


def main():
    folder, *arrays = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    for argument in arrays:
        name, _, text = argument.partition("=")
        for each, what in weights_of(text) if name == "weights-of" else [(name, text)]:
            write(os.path.join(folder, each + ".npy"), each, what)


if __name__ == "__main__":
    main()
