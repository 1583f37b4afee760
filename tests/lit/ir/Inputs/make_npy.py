#!/usr/bin/env python3
"""Writes .npy files of small, arbitrary but fixed f32 numbers: make_npy.py FOLDER NAME=2x3 ...

`NAME=2x3:nan` fills the array with NaN.
"""

import array
import math
import os
import sys
import zlib


def numbers(name, count):
    """Values in [-1, 1), different for every name, each a multiple of 1/256."""
    state = zlib.crc32(name.encode())
    for _ in range(count):
        state = (state * 1103515245 + 12345) % 2**31
        yield (state >> 16) % 512 / 256 - 1


def write(path, name, text):
    shape_text, _, fill = text.partition(":")
    shape = [int(extent) for extent in shape_text.split("x")]
    count = math.prod(shape)
    values = array.array("f", [math.nan] * count if fill == "nan" else numbers(name, count))
    if sys.byteorder == "big":
        values.byteswap()
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(shape)}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + values.tobytes())


def main():
    folder, *arrays = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    for argument in arrays:
        name, _, text = argument.partition("=")
        write(os.path.join(folder, name + ".npy"), name, text)


if __name__ == "__main__":
    main()
