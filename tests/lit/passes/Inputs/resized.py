#!/usr/bin/env python3
"""Writes a model folder with other sizes: resized.py MODEL FOLDER [KEY=VALUE | TENSOR:AXIS=EXTENT]...

KEY=VALUE changes a number of config.json, in `text_config` if it has one; TENSOR:AXIS=EXTENT an axis of all tensors of that module. All weights are new: multiples of
1/1024 below 1/4, those of make_npy.py divided by 4.
"""

import array
import json
import math
import os
import re
import struct
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../ir/Inputs"))
import make_npy


def shapes_of(path):
    """{name: shape} of a safetensors file."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    return {name: tensor["shape"] for name, tensor in header.items() if name != "__metadata__"}


def write(path, shapes):
    header, begin = {}, 0
    for name, shape in shapes.items():
        end = begin + 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
        begin = end
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, shape in shapes.items():
            values = array.array("f", (value / 4 for value in make_npy.numbers(name, math.prod(shape))))
            if sys.byteorder == "big":
                values.byteswap()
            file.write(values.tobytes())


def main():
    model, folder, *changes = sys.argv[1:]
    with open(os.path.join(model, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    shapes = shapes_of(os.path.join(model, "model.safetensors"))
    for change in changes:
        what, value = change.split("=")
        module, _, axis = what.partition(":")
        if not axis:
            config.get("text_config", config)[what] = int(value)
            continue
        named = [shape for name, shape in shapes.items()
                 if re.search(rf"(^|\.){re.escape(module)}(\.|$)", name) and len(shape) > int(axis)]
        if not named:
            sys.exit(f"{model} has no {module} with axis {axis}")
        for shape in named:
            shape[int(axis)] = int(value)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)
    write(os.path.join(folder, "model.safetensors"), shapes)


if __name__ == "__main__":
    main()
