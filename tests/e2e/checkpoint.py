"""Reads, edits and writes model folders: config.json and model.safetensors."""

import json
import math
import os
import shutil
import struct

import numpy as np

TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "U8": "u1"}


def read(folder, mapped=False):
    """Name -> array of every tensor of a folder with one file; bf16 is returned as its bits in u16. With `mapped`, the arrays take no memory,
    and the file must not change while they are used."""
    path = os.path.join(folder, "model.safetensors")
    with open(path, "rb") as f:
        (size,) = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(size))
        data = np.memmap(path, "u1", "r", 8 + size) if mapped else f.read()
    tensors = {}
    for name, info in header.items():
        if name != "__metadata__":
            begin, end = info["data_offsets"]
            tensors[name] = np.frombuffer(data[begin:end], TYPES[info["dtype"]]).reshape(info["shape"])
    return tensors


def write_tensors(path, tensors):
    """The reverse of `read`; u2 is stored as bf16."""
    _write(path, [(name, a.dtype, a.shape) for name, a in tensors.items()], tensors.values())


def _write(path, described, arrays):
    """Writes tensors, which are (name, type, shape) and stored in that order."""
    names = {np.dtype(v): k for k, v in TYPES.items()}
    header, offset = {}, 0
    for name, kind, shape in described:
        end = offset + math.prod(shape) * np.dtype(kind).itemsize
        header[name] = {"dtype": names[np.dtype(kind)], "shape": list(shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for array in arrays:
            f.write(np.ascontiguousarray(array).tobytes())


def config_of(folder, name="config.json"):
    with open(os.path.join(folder, name), encoding="utf-8") as f:
        return json.load(f)


def edited(source, target, config=None, tensors=None):
    """A copy of the folder `source`, changed by `config(dict)` and `tensors(dict)`. Both change their argument in place; `config` may also
    be the name of another config file of `source`. Goldens are not copied."""
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


def with_tokenizer(source, target, other, files, seed, **config):
    """A copy of the folder `source`, changed by `config`, with `files` of the folder `other`, its vocabulary size, and random embeddings and
    head of that size."""
    size = config_of(other)["vocab_size"]

    def resized(tensors):
        rng = np.random.default_rng(seed)
        for name in ("lm_head.weight", "model.embed_tokens.weight"):
            tensors[name] = rng.standard_normal((size, tensors[name].shape[1])).astype("<f4")

    edited(source, target, lambda values: values.update(vocab_size=size, **config), resized)
    for name in files:
        shutil.copy(os.path.join(other, name), target)
    return target


def _delta_net(c):
    """A gated delta net of Qwen3.5."""
    h, heads = c["hidden_size"], c["linear_num_value_heads"]
    values = heads * c["linear_value_head_dim"]
    mixed = 2 * c["linear_num_key_heads"] * c["linear_key_head_dim"] + values
    p = "linear_attn."
    yield p + "in_proj_qkv.weight", (mixed, h)
    yield p + "in_proj_z.weight", (values, h)
    yield p + "in_proj_b.weight", (heads, h)
    yield p + "in_proj_a.weight", (heads, h)
    yield p + "conv1d.weight", (mixed, 1, c["linear_conv_kernel_dim"])
    yield p + "dt_bias", (heads,)
    yield p + "A_log", (heads,)
    yield p + "norm.weight", (c["linear_value_head_dim"],)
    yield p + "out_proj.weight", (h, values)


def _mamba(c):
    """A mixer of Mamba 2 in Granite 4."""
    h, heads = c["hidden_size"], c["mamba_n_heads"]
    inner = heads * c["mamba_d_head"]
    mixed = inner + 2 * c["mamba_n_groups"] * c["mamba_d_state"]
    p = "mamba."
    yield p + "in_proj.weight", (inner + mixed + heads, h)
    yield p + "conv1d.weight", (mixed, 1, c["mamba_d_conv"])
    yield p + "conv1d.bias", (mixed,)
    for name in ("dt_bias", "A_log", "D"):
        yield p + name, (heads,)
    yield p + "norm.weight", (inner,)
    yield p + "out_proj.weight", (h, inner)


def _attention(c):
    kind, h, heads = c["model_type"], c["hidden_size"], c["num_attention_heads"]
    d = c.get("head_dim") or h // heads
    gated = 2 if kind == "qwen3_5_text" else 1
    p = "self_attn."
    for name, count in (("q", gated * heads), ("k", c["num_key_value_heads"]), ("v", c["num_key_value_heads"])):
        yield p + f"{name}_proj.weight", (count * d, h)
        if kind == "qwen2":
            yield p + f"{name}_proj.bias", (count * d,)
    if kind.startswith("qwen3"):
        yield p + "q_norm.weight", (d,)
        yield p + "k_norm.weight", (d,)
    yield p + "o_proj.weight", (h, heads * d)


def _feed_forward(c):
    h = c["hidden_size"]
    if c["model_type"] == "granitemoehybrid":  # without experts
        yield "shared_mlp.input_linear.weight", (2 * c["shared_intermediate_size"], h)
        yield "shared_mlp.output_linear.weight", (h, c["shared_intermediate_size"])
        return
    experts = c.get("num_experts") or c.get("n_routed_experts")
    parts = [(f"experts.{e}.", c.get("moe_intermediate_size") or c["intermediate_size"]) for e in range(experts or 0)]
    parts += [(f"shared_experts.{e}.", c["intermediate_size"]) for e in range(c.get("n_shared_experts") or 0)]
    if experts:
        yield "mlp.gate.weight", (experts, h)
    for part, inner in parts or [("", c["intermediate_size"])]:
        yield f"mlp.{part}gate_proj.weight", (inner, h)
        yield f"mlp.{part}up_proj.weight", (inner, h)
        yield f"mlp.{part}down_proj.weight", (h, inner)


def _mtp(c):
    """The multi-token prediction head of Qwen3.5."""
    h = c["hidden_size"]
    yield "mtp.fc.weight", (h, 2 * h)
    yield "mtp.pre_fc_norm_embedding.weight", (h,)
    yield "mtp.pre_fc_norm_hidden.weight", (h,)
    for name, shape in _layer(c, _attention):
        yield f"mtp.layers.0.{name}", shape
    yield "mtp.norm.weight", (h,)


def _layer(c, mixer):
    norms = [(f"{name}_layernorm.weight", (c["hidden_size"],)) for name in ("input", "post_attention")]
    return (norms[0], *mixer(c), norms[1], *_feed_forward(c))


def _shapes(c):
    """(name, shape) of the tensors of a Hugging Face config; one-dimensional ones are norm weights, or parameters per head of recurrent
    layers."""
    recurrent = {"qwen3_5_text": _delta_net, "granitemoehybrid": _mamba}.get(c["model_type"])
    yield "model.embed_tokens.weight", (c["vocab_size"], c["hidden_size"])
    for i in range(c["num_hidden_layers"]):
        mixer = recurrent if recurrent and c["layer_types"][i] == "linear_attention" else _attention
        for name, shape in _layer(c, mixer):
            yield f"model.layers.{i}.{name}", shape
    yield "model.norm.weight", (c["hidden_size"],)
    if not c["tie_word_embeddings"]:
        yield "lm_head.weight", (c["vocab_size"], c["hidden_size"])
    if c.get("mtp_num_hidden_layers"):
        yield from _mtp(c)


def random(folder, config, dtype):
    """A model folder with random weights: norms 1 + 0.2 N, matrices N / sqrt(fan in), biases of time steps -4 + 0.2 N, so that states forget
    slowly; dtype f32 or bf16. Only one tensor is in memory at a time."""
    rng, kind = np.random.default_rng(0), {"f32": "<f4", "bf16": "<u2"}[dtype]

    def draw(name, shape):
        x = rng.standard_normal(shape, dtype="f4")
        middle = -4 if name.endswith("dt_bias") else 1
        x = middle + np.float32(0.2) * x if len(shape) == 1 else x / np.float32(np.sqrt(math.prod(shape[1:])))
        return x.astype(kind) if dtype == "f32" else (x.view("u4") >> 16).astype(kind)

    shapes = list(_shapes(config))
    _write(os.path.join(folder, "model.safetensors"), [(name, kind, shape) for name, shape in shapes],
           (draw(name, shape) for name, shape in shapes))
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        json.dump({**config, "torch_dtype": {"f32": "float32", "bf16": "bfloat16"}[dtype]}, f)
    return folder


def sparse(folder, config):
    """A bf16 model folder whose weights are zeros in a sparse file, for tools that only read shapes."""
    path = os.path.join(folder, "model.safetensors")
    shapes = list(_shapes(config))
    _write(path, [(name, "<u2", shape) for name, shape in shapes], [])
    os.truncate(path, os.path.getsize(path) + 2 * sum(math.prod(shape) for _, shape in shapes))
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        json.dump({**config, "torch_dtype": "bfloat16"}, f)
    return folder
