"""A second implementation for every golden: a plain torch decoder, independent of the libraries
that computed the golden.

The golden makers check two things before they write anything: the golden agrees with it, and
each *mutant* of it (one deliberate mistake, see `Spec.mutant`) changes the logits by far more
than the tests' bound. Tensors have the names of the Hugging Face Llama layout; `rename` converts
MiniMind 1 to it.
"""

from __future__ import annotations

import dataclasses
import math

import torch


@dataclasses.dataclass
class Spec:
    """The content of a config.json, with uniform names. Sizes in elements; `rope_scaling` as in transformers 4."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    eps: float
    theta: float
    pairing: str = "half"  # or "interleaved"
    rope_scaling: dict | None = None
    yarn_clamp: str = "minimind"  # or "transformers"
    qk_norm: bool = False
    tied: bool = True
    experts: int = 0
    top_k: int = 0
    norm_topk: bool = False
    norm_topk_at_one: bool = True  # MiniMind 1 and 2 do not normalize if k = 1
    shared: int = 0
    dense_layers: tuple = ()
    mutant: str = ""


def inverse_frequencies(s: Spec):
    """inv_freq [D/2] in f64 and the amplitude of cos and sin."""
    half = s.head_dim // 2
    i = torch.arange(half, dtype=torch.float64)
    freq = s.theta ** (-2 * i / s.head_dim)
    r = s.rope_scaling
    if not r or s.mutant == "no rope scaling":
        return freq, 1.0
    kind = r.get("rope_type", r.get("type"))
    factor = r["factor"]
    if kind == "linear":
        return freq / factor, 1.0
    if kind == "llama3":
        length = r["original_max_position_embeddings"]
        low, high = r["low_freq_factor"], r["high_freq_factor"]
        t = ((length * freq / (2 * math.pi)) - low) / (high - low)
        t = t.clamp(0, 1)
        return freq / factor * (1 - t) + freq * t, 1.0
    assert kind == "yarn", kind
    length = r["original_max_position_embeddings"]

    def dim(rotations):
        return s.head_dim * math.log(length / (2 * math.pi * rotations)) / (2 * math.log(s.theta))

    top = (
        half - 1
        if (s.yarn_clamp == "minimind") != (s.mutant == "other yarn clamp")
        else s.head_dim - 1
    )
    low = max(math.floor(dim(r.get("beta_fast", 32))), 0)
    high = min(math.ceil(dim(r.get("beta_slow", 1))), top)
    ramp = ((i - low) / max(high - low, 0.001)).clamp(0, 1)
    amplitude = r.get("attention_factor")
    if amplitude is None:
        amplitude = 0.1 * math.log(factor) + 1
    if s.mutant == "no attention factor":
        amplitude = 1.0
    return freq * (1 - ramp + ramp / factor), amplitude


def rmsnorm(s: Spec, x, weight):
    eps = s.eps
    if s.mutant == "eps":
        eps = 1e-6 if eps == 1e-5 else 1e-5
    return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps))


def rope(s: Spec, x, positions):
    """x [S, heads, D] rotated at positions [S]."""
    freq, amplitude = inverse_frequencies(s)
    angle = positions.to(torch.float64)[:, None] * freq
    cos = (angle.cos() * amplitude).to(x.dtype)[:, None, :]
    sin = (angle.sin() * amplitude).to(x.dtype)[:, None, :]
    interleaved = s.pairing == "interleaved"
    if s.mutant == "pairing":
        interleaved = not interleaved
    if interleaved:
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def linear(s: Spec, weights, name, x):
    y = x @ weights[name + ".weight"].T
    bias = weights.get(name + ".bias")
    if bias is None or s.mutant == "no bias " + name.rsplit(".", 1)[1]:
        return y
    return y + bias


def attention(s: Spec, w, p, x):
    rows = x.shape[0]
    q = linear(s, w, p + "q_proj", x).view(rows, s.heads, s.head_dim)
    k = linear(s, w, p + "k_proj", x).view(rows, s.kv_heads, s.head_dim)
    v = linear(s, w, p + "v_proj", x).view(rows, s.kv_heads, s.head_dim)
    positions = torch.arange(rows)
    if s.mutant == "rope before qk norm":
        q, k = rope(s, q, positions), rope(s, k, positions)
    if s.qk_norm and s.mutant != "no qk norm":
        names = ("q_norm", "k_norm") if s.mutant != "swapped qk norms" else ("k_norm", "q_norm")
        q = rmsnorm(s, q, w[p + names[0] + ".weight"])
        k = rmsnorm(s, k, w[p + names[1] + ".weight"])
    if s.mutant != "rope before qk norm":
        q, k = rope(s, q, positions), rope(s, k, positions)
    repeat = s.heads // s.kv_heads
    if s.mutant == "tiled heads":
        k, v = k.repeat(1, repeat, 1), v.repeat(1, repeat, 1)
    else:
        k, v = k.repeat_interleave(repeat, 1), v.repeat_interleave(repeat, 1)
    scores = torch.einsum("shd,thd->hst", q, k) / math.sqrt(s.head_dim)
    scores = scores.masked_fill(torch.ones(rows, rows, dtype=torch.bool).triu(1), -math.inf)
    out = torch.einsum("hst,thd->shd", scores.softmax(-1), v)
    return linear(s, w, p + "o_proj", out.reshape(rows, -1))


def swiglu(s: Spec, w, p, x):
    gate, up = linear(s, w, p + "gate_proj", x), linear(s, w, p + "up_proj", x)
    return linear(s, w, p + "down_proj", torch.nn.functional.silu(gate) * up)


def experts(s: Spec, w, p, x, trace):
    scores = linear(s, w, p + "gate", x).softmax(-1)
    k = s.top_k if s.mutant != "one expert more" else s.top_k + 1
    weight, chosen = scores.topk(k, -1)
    ordered = scores.sort(-1, descending=True).values
    trace.append((chosen.sort(-1).values, ordered[:, k - 1] - ordered[:, k]))
    normalize = s.norm_topk and (k > 1 or s.norm_topk_at_one)
    if s.mutant == "top-k normalization":
        normalize = not normalize
    if normalize:
        weight = weight / (weight.sum(-1, keepdim=True) + 1e-20)
    y = torch.zeros_like(x)
    for e in range(s.experts):
        share = (weight * (chosen == e)).sum(-1, keepdim=True)
        y = y + share * swiglu(s, w, f"{p}experts.{e}.", x)
    for e in range(s.shared if s.mutant != "no shared expert" else 0):
        y = y + swiglu(s, w, f"{p}shared_experts.{e}.", x)
    return y


def forward(s: Spec, w, ids, trace=None):
    """Logits [S, V] of one sequence; `trace` receives (chosen experts, margin) per MoE layer."""
    trace = [] if trace is None else trace
    x = w["model.embed_tokens.weight"][ids]
    norms = ("input_layernorm.weight", "post_attention_layernorm.weight")
    if s.mutant == "swapped norms":
        norms = norms[::-1]
    for i in range(s.layers):
        p = f"model.layers.{i}."
        x = x + attention(s, w, p + "self_attn.", rmsnorm(s, x, w[p + norms[0]]))
        y = rmsnorm(s, x, w[p + norms[1]])
        if s.experts and i not in s.dense_layers:
            x = x + experts(s, w, p + "mlp.", y, trace)
        else:
            x = x + swiglu(s, w, p + "mlp.", y)
    x = rmsnorm(s, x, w["model.norm.weight"])
    head = "model.embed_tokens" if s.tied or s.mutant == "tied head" else "lm_head"
    return x @ w[head + ".weight"].T


def mutants(s: Spec, w):
    """The mistakes that must be detected in a model of this type."""
    names = ["eps", "pairing", "swapped norms"]
    if s.kv_heads not in (1, s.heads):
        names.append("tiled heads")
    if s.rope_scaling:
        names.append("no rope scaling")
        if s.rope_scaling.get("rope_type", s.rope_scaling.get("type")) == "yarn":
            if inverse_frequencies(s)[1] != 1.0:
                names.append("no attention factor")
            plain = inverse_frequencies(s)[0]
            if not plain.equal(
                inverse_frequencies(dataclasses.replace(s, mutant="other yarn clamp"))[0]
            ):
                names.append("other yarn clamp")
    if s.qk_norm:
        names += ["swapped qk norms", "no qk norm", "rope before qk norm"]
    if s.experts:
        names += ["top-k normalization", "one expert more"]
    if s.shared:
        names.append("no shared expert")
    if not s.tied:
        names.append("tied head")
    biases = {n.rsplit(".", 2)[1] for n in w if n.endswith(".bias")}
    return names + ["no bias " + b for b in sorted(biases)]


META_NAMES = {
    "attention.wq": "self_attn.q_proj",
    "attention.wk": "self_attn.k_proj",
    "attention.wv": "self_attn.v_proj",
    "attention.wo": "self_attn.o_proj",
    "attention_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}


def rename(weights):
    """Renames MiniMind 1's tensors to the Hugging Face layout; others are unchanged."""
    out = {}
    for name, value in weights.items():
        if name.startswith("model.") or name.startswith("lm_head."):
            out[name] = value
            continue
        name = name.replace("tok_embeddings", "model.embed_tokens")
        name = "lm_head.weight" if name == "output.weight" else name
        name = "model.norm.weight" if name == "norm.weight" else name
        for old, new in META_NAMES.items():
            name = name.replace(old, new)
        name = name.replace("feed_forward.shared_experts.", "feed_forward.shared_experts.0.")
        name = name.replace("feed_forward", "mlp")
        for old, new in (("w1", "gate_proj"), ("w2", "down_proj"), ("w3", "up_proj")):
            name = name.replace(f".{old}.", f".{new}.")
        out["model." + name if name.startswith("layers.") else name] = value
    return out
