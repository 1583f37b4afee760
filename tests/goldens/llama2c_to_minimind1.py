#!/usr/bin/env python3
"""Write a llama2.c model file (version 0, f32) as a MiniMind 1 folder: the same numbers, Meta's names,
interleaved rope.

    llama2c_to_minimind1.py MODEL.bin OUTDIR

Uses only Python's standard library: tests run it without torch.
"""

import json
import pathlib
import struct
import sys


def read_header(data):
    """Seven i32; a negative vocabulary size means an untied output projection."""
    names = "dim", "hidden_dim", "n_layers", "n_heads", "n_kv_heads", "vocab_size", "max_seq_len"
    header = dict(zip(names, struct.unpack_from("<7i", data)))
    if header["vocab_size"] <= 0 or header["dim"] <= 0 or header["n_heads"] <= 0:
        raise ValueError(f"not a llama2.c file with a tied output projection: {header}")
    return header


def layout(h):
    """(name, shape, with one per layer) in the order of the file."""
    dim, inner = h["dim"], h["hidden_dim"]
    kv = dim // h["n_heads"] * h["n_kv_heads"]
    return [
        ("tok_embeddings", (h["vocab_size"], dim), False),
        ("attention_norm", (dim,), True),
        ("attention.wq", (dim, dim), True),
        ("attention.wk", (kv, dim), True),
        ("attention.wv", (kv, dim), True),
        ("attention.wo", (dim, dim), True),
        ("ffn_norm", (dim,), True),
        ("feed_forward.w1", (inner, dim), True),
        ("feed_forward.w2", (dim, inner), True),
        ("feed_forward.w3", (inner, dim), True),
        ("norm", (dim,), False),
    ]


def tensors(h, data):
    """Yield (name, shape, bytes)."""
    at = struct.calcsize("<7i")
    for name, shape, layered in layout(h):
        size = 4
        for extent in shape:
            size *= extent
        for layer in range(h["n_layers"] if layered else 1):
            if at + size > len(data):
                raise ValueError(f"the file ends within {name} of layer {layer}")
            yield f"layers.{layer}.{name}.weight" if layered else f"{name}.weight", shape, data[
                at : at + size
            ]
            at += size


def write_safetensors(path, entries):
    header, at = {}, 0
    for name, shape, data in entries:
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for _, _, data in entries:
            out.write(data)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    data, out = pathlib.Path(sys.argv[1]).read_bytes(), pathlib.Path(sys.argv[2])
    header = read_header(data)
    out.mkdir(parents=True, exist_ok=True)
    write_safetensors(out / "model.safetensors", list(tensors(header, data)))
    config = {"model_type": "minimind", "norm_eps": 1e-5, "rope_theta": 10000.0, **header}
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n")


if __name__ == "__main__":
    main()
