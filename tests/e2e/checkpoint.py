"""Reads, edits and writes model folders: config.json and model.safetensors."""

import json
import os
import shutil
import struct

import numpy as np

TYPES = {"F32": "<f4", "F16": "<f2", "BF16": "<u2"}


def read(folder):
    """Name -> array of every tensor of a folder with one file; bf16 comes as its bits in u16."""
    with open(os.path.join(folder, "model.safetensors"), "rb") as f:
        (size,) = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(size))
        data = f.read()
    tensors = {}
    for name, info in header.items():
        if name != "__metadata__":
            begin, end = info["data_offsets"]
            tensors[name] = np.frombuffer(data[begin:end], TYPES[info["dtype"]]).reshape(info["shape"])
    return tensors


def write_tensors(path, tensors):
    """The reverse of `read`; u2 is taken for bf16."""
    names = {np.dtype(v): k for k, v in TYPES.items()}
    header, offset = {}, 0
    for name, a in tensors.items():
        header[name] = {"dtype": names[a.dtype], "shape": list(a.shape), "data_offsets": [offset, offset + a.nbytes]}
        offset += a.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for a in tensors.values():
            f.write(np.ascontiguousarray(a).tobytes())


def config_of(folder, name="config.json"):
    with open(os.path.join(folder, name), encoding="utf-8") as f:
        return json.load(f)


def edited(source, target, config=None, tensors=None):
    """A copy of the folder `source` in which `config(dict)` and `tensors(dict)` have been applied.

    Each changes its argument in place; `config` may also name another file of `source` to take. Goldens do not
    come along.
    """
    os.makedirs(target)
    for name in os.listdir(source):
        if not name.startswith("golden") and name not in ("config.other.json", "model.safetensors", "config.json"):
            shutil.copy(os.path.join(source, name), target)
    values = config_of(source, config if isinstance(config, str) else "config.json")
    if callable(config):
        config(values)
    with open(os.path.join(target, "config.json"), "w", encoding="utf-8") as f:
        json.dump(values, f)
    if tensors:
        weights = read(source)
        tensors(weights)
        write_tensors(os.path.join(target, "model.safetensors"), weights)
    else:
        shutil.copy(os.path.join(source, "model.safetensors"), target)
    return target
