#!/usr/bin/env python3
"""Makes tests/goldens/mtp/NAME: checkpoints with a multi-token prediction (MTP) head.

    make_mtp_goldens.py

Each is a checkpoint of tests/goldens/models with random tensors `mtp.*`; in NAME-separate, the experts of the head are separate tensors.
The golden is computed in f64 by the NumPy code below, which first reproduces the logits of that checkpoint, computed by transformers.
What the head computes is the definition of Qwen's models: from the hidden state of position p after the final norm, and the embedding of
the token at p + 1, each after a norm, a projection of both, a decoder layer with attention and separate keys and values, and a norm; the
model's head then maps it to the logits of position p + 2. To draft more than one token, the head continues with its own normalized hidden
state and its best token. MANIFEST.json records seeds, the difference from transformers' logits, and how much mistakes change the head's.

Needs NumPy only.
"""

import json
import math
import pathlib
import struct

import numpy as np

GOLDENS = pathlib.Path(__file__).resolve().parent
DRAFTS = 3
SEED = 2800
SOURCES = ("qwen3-5", "qwen3-5-moe", "qwen3-next", "qwen3-5-vision", "qwen3-5-moe-vision")


def read_tensors(path):
    raw = path.read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    header, data = json.loads(raw[8 : 8 + size]), raw[8 + size :]
    header.pop("__metadata__", None)
    assert all(entry["dtype"] == "F32" for entry in header.values())
    return {
        name: np.frombuffer(data[slice(*entry["data_offsets"])], "<f4").reshape(entry["shape"])
        for name, entry in header.items()
    }


def write_tensors(path, tensors):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name in sorted(tensors):
        bytes_ = np.ascontiguousarray(tensors[name], "<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensors[name].shape), "data_offsets": [len(data), len(data) + len(bytes_)]}
        data += bytes_
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


class Model:
    def __init__(self, config, tensors):
        self.config = config.get("text_config", config)
        # Names as in a checkpoint without a vision encoder.
        self.tensors = {name.replace("model.language_model.", "model."): value.astype(np.float64) for name, value in tensors.items()}

    def weight(self, name):
        return self.tensors[name + ".weight"]

    def rms(self, x):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.config["rms_norm_eps"])

    def norm(self, x, name):
        return self.rms(x) * (1 + self.weight(name))

    def linear(self, x, name):
        return x @ self.weight(name).T + self.tensors.get(name + ".bias", 0)

    def rotate(self, x):
        """x [T, heads, D]: the first dimensions rotate by their positions 0 to T - 1."""
        rope = self.config["rope_parameters"]
        half = int(x.shape[-1] * rope["partial_rotary_factor"]) // 2
        angles = np.arange(len(x))[:, None] * rope["rope_theta"] ** (-np.arange(half) / half)
        cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
        a, b, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin, rest], -1)

    def attention(self, x, layer):
        heads, kv, d = (self.config[key] for key in ("num_attention_heads", "num_key_value_heads", "head_dim"))
        count = len(x)
        q, gate = np.split(self.linear(x, layer + "q_proj").reshape(count, heads, 2 * d), 2, -1)
        k = self.linear(x, layer + "k_proj").reshape(count, kv, d)
        v = self.linear(x, layer + "v_proj").reshape(count, kv, d)
        q = self.rotate(self.norm(q, layer + "q_norm"))
        k = self.rotate(self.norm(k, layer + "k_norm"))
        out = np.zeros((count, heads, d))
        for h in range(heads):
            g = h * kv // heads
            scores = q[:, h] @ k[:, g].T / math.sqrt(d)
            scores[np.triu_indices(count, 1)] = -np.inf
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            out[:, h] = weights / weights.sum(-1, keepdims=True) @ v[:, g]
        return self.linear((out * sigmoid(gate)).reshape(count, heads * d), layer + "o_proj")

    def delta_inputs(self, x, layer):
        """What the convolution reads (queries, keys and values), the gate, and the inputs of beta and of the time step."""
        if layer + "in_proj_qkv.weight" in self.tensors:
            return tuple(self.linear(x, layer + "in_proj_" + part) for part in ("qkv", "z", "b", "a"))
        # Qwen3-Next has the rows of each key head together.
        c, count = self.config, len(x)
        heads, dim = c["linear_num_key_heads"], c["linear_key_head_dim"]
        repeat = c["linear_num_value_heads"] // heads
        values = repeat * c["linear_value_head_dim"]

        def of_heads(part, sizes):
            rows = self.linear(x, layer + part).reshape(count, heads, sum(sizes))
            return [piece.reshape(count, -1) for piece in np.split(rows, np.cumsum(sizes)[:-1], -1)]

        q, k, v, z = of_heads("in_proj_qkvz", (dim, dim, values, values))
        b, a = of_heads("in_proj_ba", (repeat, repeat))
        return np.concatenate([q, k, v], -1), z, b, a

    def delta_net(self, x, layer):
        c = self.config
        heads_k, heads_v, dim_k, dim_v, taps = (
            c["linear_" + key]
            for key in ("num_key_heads", "num_value_heads", "key_head_dim", "value_head_dim", "conv_kernel_dim")
        )
        count, keys = len(x), heads_k * dim_k
        filters = self.weight(layer + "conv1d")[:, 0]
        inputs, z, b, a = self.delta_inputs(x, layer)
        padded = np.concatenate([np.zeros((taps - 1, len(filters))), inputs])
        mixed = silu(sum(padded[i : i + count] * filters[:, i] for i in range(taps)))
        repeat = heads_v // heads_k

        def unit(rows):
            rows = rows.reshape(count, heads_k, dim_k)
            return np.repeat(rows / np.sqrt((rows * rows).sum(-1, keepdims=True) + 1e-6), repeat, 1)

        q, k = unit(mixed[:, :keys]) / math.sqrt(dim_k), unit(mixed[:, keys : 2 * keys])
        v = mixed[:, 2 * keys :].reshape(count, heads_v, dim_v)
        beta = sigmoid(b)
        step = np.log1p(np.exp(a + self.tensors[layer + "dt_bias"]))
        decay = np.exp(-np.exp(self.tensors[layer + "A_log"]) * step)
        state = np.zeros((heads_v, dim_k, dim_v))
        out = np.zeros((count, heads_v, dim_v))
        for t in range(count):
            state *= decay[t][:, None, None]
            error = (v[t] - np.einsum("hkv,hk->hv", state, k[t])) * beta[t][:, None]
            state += k[t][:, :, None] * error[:, None]
            out[t] = np.einsum("hkv,hk->hv", state, q[t])
        out = self.rms(out) * self.weight(layer + "norm") * silu(z.reshape(out.shape))
        return self.linear(out.reshape(count, -1), layer + "out_proj")

    def layer(self, x, layer, mixer):
        x = x + mixer(self.norm(x, layer + "input_layernorm"))
        return x + self.feed_forward(self.norm(x, layer + "post_attention_layernorm"), layer + "mlp.")

    def swiglu(self, x, name):
        return self.linear(silu(self.linear(x, name + "gate_proj")) * self.linear(x, name + "up_proj"), name + "down_proj")

    def feed_forward(self, x, name):
        if name + "gate.weight" not in self.tensors:
            return self.swiglu(x, name)
        scores = self.linear(x, name + "gate")
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        y = sigmoid(self.linear(x, name + "shared_expert_gate")) * self.swiglu(x, name + "shared_expert.")
        for row, share in enumerate(shares):
            best = np.argsort(-share, kind="stable")[: self.config["num_experts_per_tok"]]
            for expert in best:
                y[row] += share[expert] / share[best].sum() * self.expert(x[row], name + "experts.", expert)
        return y

    def expert(self, x, name, index):
        if name + "gate_up_proj" not in self.tensors:
            return self.swiglu(x, f"{name}{index}.")
        gate, up = np.split(self.tensors[name + "gate_up_proj"][index] @ x, 2)
        return self.tensors[name + "down_proj"][index] @ (silu(gate) * up)

    def hidden(self, ids):
        """The hidden states after the final norm, whose logits the head computes."""
        x = self.weight("model.embed_tokens")[ids]
        for index, kind in enumerate(self.config["layer_types"]):
            name = f"model.layers.{index}."
            if kind == "full_attention":
                x = self.layer(x, name, lambda y, name=name: self.attention(y, name + "self_attn."))
            else:
                x = self.layer(x, name, lambda y, name=name: self.delta_net(y, name + "linear_attn."))
        return self.norm(x, "model.norm")

    def logits(self, hidden):
        return self.linear(hidden, "lm_head" if "lm_head.weight" in self.tensors else "model.embed_tokens")

    def head(self, states, following):
        """The head's hidden states for positions with these hidden states of the model, and the tokens after them."""
        e = self.norm(self.weight("model.embed_tokens")[following], "mtp.pre_fc_norm_embedding")
        h = self.norm(states, "mtp.pre_fc_norm_hidden")
        x = self.linear(np.concatenate([e, h], -1), "mtp.fc")
        x = self.layer(x, "mtp.layers.0.", lambda y: self.attention(y, "mtp.layers.0.self_attn."))
        return self.norm(x, "mtp.norm")

    def draft(self, ids, count, states=None):
        """`count` tokens after `ids`: the head has the model's hidden states of all but the last (`states`, if they are known), then its own."""
        states, following, drafted = self.hidden(ids)[:-1] if states is None else states, list(ids[1:]), []
        while len(drafted) < count:
            hidden = self.head(states, following)
            drafted.append(int(self.logits(hidden[-1]).argmax()))
            states = np.concatenate([states, hidden[-1:]])
            following.append(drafted[-1])
        return drafted


def separated(shapes):
    """The shapes of a layer whose experts are separate tensors instead of stacked ones."""
    for name, shape in shapes.items():
        if name.endswith("experts.gate_up_proj"):
            for expert in range(shape[0]):
                for part in ("gate_proj", "up_proj"):
                    yield name.replace("gate_up_proj", f"{expert}.{part}.weight"), (shape[1] // 2, shape[2])
        elif name.endswith("experts.down_proj"):
            for expert in range(shape[0]):
                yield name.replace("down_proj", f"{expert}.down_proj.weight"), shape[1:]
        else:
            yield name, shape


def random_head(config, tensors, rng, separate):
    """Its layer has the shapes of the model's last one with attention; `separate`: but separate experts."""
    config = config.get("text_config", config)
    width = config["hidden_size"]
    last = max(i for i, kind in enumerate(config["layer_types"]) if kind == "full_attention")
    prefix = next(name for name in tensors if f"layers.{last}." in name).partition(f"layers.{last}.")[0] + f"layers.{last}."
    shapes = {"fc.weight": (width, 2 * width)}
    for name in ("pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm"):
        shapes[name + ".weight"] = (width,)
    shapes |= {f"layers.0.{name.removeprefix(prefix)}": value.shape for name, value in tensors.items() if name.startswith(prefix)}
    if separate:
        shapes = dict(separated(shapes))
    return {
        f"mtp.{name}": (rng.standard_normal(shape) * (0.2 if len(shape) == 1 else shape[-1] ** -0.5)).astype(np.float32)
        for name, shape in sorted(shapes.items())
    }


def mutants(tensors):
    """The tensors with one mistake each, which must change the logits."""
    for name in tensors:
        if name.startswith("mtp."):
            yield f"no {name}", tensors | {name: np.zeros_like(tensors[name])}
    fc = tensors["mtp.fc.weight"]
    yield "halves of fc exchanged", tensors | {"mtp.fc.weight": np.roll(fc, fc.shape[1] // 2, 1)}


def make(source, seed, separate=False):
    folder, target = GOLDENS / "models" / source, GOLDENS / "mtp" / (source + ("-separate" if separate else ""))
    config, golden = (json.loads((folder / name).read_text()) for name in ("config.json", "golden.json"))
    tensors = read_tensors(folder / "model.safetensors")
    tensors |= random_head(config, tensors, np.random.default_rng(seed), separate)
    model, ids = Model(config, tensors), golden["prompt"]
    expected = np.load(folder / "golden.logits.npy")
    hidden = model.hidden(ids)
    error = np.abs(model.logits(hidden) - expected).max() / np.abs(expected).max()
    assert error < 1e-5, error
    logits = model.logits(model.head(hidden[:-1], ids[1:]))

    def change(other, states):
        return np.abs(other.logits(other.head(states, ids[1:])) - logits).max() / np.abs(logits).max()

    changes = {mistake: change(Model(config, changed), hidden[:-1]) for mistake, changed in mutants(tensors)}
    changes["hidden states before the weight of the norm"] = change(model, hidden[:-1] / (1 + model.weight("model.norm")))
    assert min(changes.values()) > 1e-3, changes
    text = ids + golden["greedy"]
    drafts = [model.draft(text[: len(ids) + 1 + i], DRAFTS) for i in range(len(golden["greedy"]))]
    target.mkdir(parents=True, exist_ok=True)
    (target / "config.json").write_text((folder / "config.json").read_text())
    write_tensors(target / "model.safetensors", tensors)
    np.save(target / "golden.mtp_logits.npy", logits.astype(np.float32))
    (target / "golden.json").write_text(json.dumps(golden | {"drafts": drafts}) + "\n")
    print(f"{target.name}: {error:.1e} from transformers, drafts {drafts}")
    return target.name, {"seed": seed, "error": float(f"{error:.3g}"),
                         "mutants": {mistake: float(f"{value:.3g}") for mistake, value in changes.items()}}


def main():
    made = [make(name, SEED + number) for number, name in enumerate(SOURCES)]
    made.append(make("qwen3-5-moe-vision", SEED, separate=True))
    path = GOLDENS / "MANIFEST.json"
    manifest = json.loads(path.read_text())
    manifest["mtp"] = dict(sorted(made))
    path.write_text(json.dumps(manifest, indent=1) + "\n")


if __name__ == "__main__":
    main()
