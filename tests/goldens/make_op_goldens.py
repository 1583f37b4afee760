#!/usr/bin/env python3
"""Goldens of single operations, computed by torch and, for rope and its scalings, by transformers.

    make_op_goldens.py [--only NAME] [--out DIR] [--mica-opt PATH]

Each case is a folder ops/NAME: `function.mlir` with one function `@main` of one op, its operands
`argument.N.npy`, torch's results `result.N.npy`, and `case.json` with the op, its attributes, types
and the tolerance (max |a - b| / max |b|; 0 means equal bit by bit). bf16 is stored as its bits in
u16, as stated in case.json. --mica-opt parses every function with that tool.
"""

import argparse
import dataclasses
import json
import math
import pathlib
import subprocess

import numpy as np
import torch
import torch.nn.functional as F
import transformers
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

F32, BF16, I32, I1 = "f32", "bf16", "i32", "i1"
TORCH_TYPES = {torch.float32: F32, torch.bfloat16: BF16, torch.int32: I32, torch.bool: I1}


@dataclasses.dataclass
class Case:
    """`body` uses {0}, {1}, ... for operands' names, {t0}, ... for their types and {r0}, ... for
    results'.
    """

    op: str
    operands: list
    results: list
    body: str
    attributes: dict = dataclasses.field(default_factory=dict)
    tolerance: float = 1e-6
    static: tuple = ()  # operands that are weights: their shapes are static


def random(seed):
    return torch.Generator().manual_seed(seed)


def normal(g, *shape):
    return torch.randn(*shape, generator=g)


def i32(values):
    return torch.tensor(values, dtype=torch.int32)


# ---------------------------------------------------------------- norms


def rmsnorm(x, w, eps, rounding, offset, result, compute):
    """The formula in the type `compute`, rounded as in the convention."""
    y = x.to(compute) * torch.rsqrt(x.to(compute).pow(2).mean(-1, keepdim=True) + eps)
    if rounding == "before_weight":
        y = (offset + w) * y.to(x.dtype)
    else:
        y = (offset + w.to(compute)) * y
    return y.to(x.dtype).to(result)


def rmsnorm_case(x, w, eps, rounding="before_weight", offset=0.0, result=None):
    result = result or x.dtype
    y = rmsnorm(x, w, eps, rounding, offset, result, torch.float32)
    if (
        result == torch.bfloat16
    ):  # results must be bit-identical, so no value may depend on the last f32 bit
        assert y.equal(rmsnorm(x, w, eps, rounding, offset, result, torch.float64))
    words = f" rounding({rounding})" if rounding != "before_weight" else ""
    words += f" weight_offset({offset:e})" if offset else ""
    return Case(
        "mica.rmsnorm",
        [x, w],
        [y],
        f"mica.rmsnorm {{0}}, {{1}} eps({eps:e}){words} : {{t0}}, {{t1}} -> {{r0}}",
        {"eps": eps, "rounding": rounding, "weight_offset": offset},
        0.0 if y.dtype == torch.bfloat16 else 1e-6,
        static=(1,),
    )


def layernorm_case(x, w, b, eps):
    operands = [x, w] + ([b] if b is not None else [])
    bias = " bias({2} : {t2})" if b is not None else ""
    return Case(
        "mica.layernorm",
        operands,
        [F.layer_norm(x, x.shape[-1:], w, b, eps)],
        f"mica.layernorm {{0}}, {{1}}{bias} eps({eps:e}) : {{t0}}, {{t1}} -> {{r0}}",
        {"eps": eps},
        static=(1, 2),
    )


def norm_cases():
    g = random(1)
    x, w, b = 0.02 * normal(g, 5, 16), 1 + 0.2 * normal(g, 16), 0.1 * normal(g, 16)
    heads, low = normal(g, 3, 2, 8), normal(g, 6, 64).bfloat16()
    weight = (1 + 0.2 * normal(g, 64)).bfloat16()
    return {
        "rmsnorm": rmsnorm_case(x, w, 1e-5),
        "rmsnorm-small-eps": rmsnorm_case(x, w, 1e-6),
        "rmsnorm-heads": rmsnorm_case(heads, 1 + 0.2 * normal(g, 8), 1e-6),
        "rmsnorm-bf16-before-weight": rmsnorm_case(low, weight, 1e-5),
        "rmsnorm-bf16-after-weight": rmsnorm_case(low, weight, 1e-5, "after_weight"),
        "rmsnorm-weight-offset": rmsnorm_case(x, 0.2 * normal(g, 16), 1e-6, "after_weight", 1.0),
        "rmsnorm-narrow-result": rmsnorm_case(10 * x, w, 1e-5, result=torch.bfloat16),
        "layernorm": layernorm_case(x, w, None, 1e-5),
        "layernorm-bias": layernorm_case(x + 0.01, w, b, 1e-12),
    }


# ---------------------------------------------------------------- rope


def scaled_frequencies(rotary, theta, scaling):
    """inv_freq [rotary / 2] and the amplitude, as computed by transformers (except for MiniMind's yarn)."""
    config = transformers.LlamaConfig(
        head_dim=rotary, hidden_size=4 * rotary, num_attention_heads=4, max_position_embeddings=4096
    )
    config.rope_parameters = {"rope_theta": theta} | (scaling or {"rope_type": "default"})
    kind = config.rope_parameters["rope_type"]
    if kind == "default":
        return LlamaRotaryEmbedding.compute_default_rope_parameters(config)
    return ROPE_INIT_FUNCTIONS[kind](config, torch.device("cpu"))


def scaling_text(rotary, scaling):
    if not scaling:
        return ""
    kind, factor = scaling["rope_type"], scaling["factor"]
    if kind == "linear":
        inside = f"linear_scaling<factor = {factor}"
    elif kind == "llama3":
        inside = (
            f"llama3_scaling<factor = {factor}, low_freq_factor = {scaling['low_freq_factor']}, "
            f"high_freq_factor = {scaling['high_freq_factor']}, "
            f"original_context = {scaling['original_max_position_embeddings']}"
        )
    else:
        amplitude = scaling.get("attention_factor", 0.1 * math.log(factor) + 1)
        inside = (
            f"yarn_scaling<factor = {factor}, beta_fast = {scaling.get('beta_fast', 32.0)}, "
            f"beta_slow = {scaling.get('beta_slow', 1.0)}, attention_factor = {amplitude!r}, "
            f"original_context = {scaling['original_max_position_embeddings']}, "
            f"high_limit = {rotary - 1}"
        )
    return f" scaling(#mica.{inside}>)"


def rope_case(seed, pairing, scaling=None, rotary=None, theta=1e4):
    g, heads, size = random(seed), 2, 8 if scaling is None else 16
    x, positions = normal(g, 6, heads, size), i32([0, 1, 2, 7, 40, 300])
    width = rotary or size
    frequencies, amplitude = scaled_frequencies(width, theta, scaling)
    angle = positions[:, None].double() * frequencies.double()
    cos, sin = (angle.cos() * amplitude).float(), (angle.sin() * amplitude).float()
    rotated, rest = x[..., :width], x[..., width:]
    if pairing == "half":
        y, _ = apply_rotary_pos_emb(
            rotated, rotated, cos.repeat(1, 2), sin.repeat(1, 2), unsqueeze_dim=1
        )
    else:
        pairs = torch.view_as_complex(rotated.unflatten(-1, (-1, 2)).contiguous())
        y = torch.view_as_real(pairs * torch.complex(cos, sin)[:, None, :]).flatten(-2)
    partial = f" rotary_dim({rotary})" if rotary else ""
    return Case(
        "mica.rope",
        [x, positions],
        [torch.cat([y, rest], -1)],
        f"mica.rope {{0}}, {{1}} {pairing} theta({theta:e}){partial}"
        f"{scaling_text(width, scaling)} : {{t0}}, {{t1}}",
        {"pairing": pairing, "theta": theta, "rotary_dim": width, "scaling": scaling},
        2e-5,
    )


def rope_cases():
    scalings = {
        "": None,
        "-linear": {"rope_type": "linear", "factor": 4.0},
        "-yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64},
        "-yarn-options": {
            "rope_type": "yarn",
            "factor": 8.0,
            "original_max_position_embeddings": 128,
            "beta_fast": 8.0,
            "beta_slow": 0.5,
            "attention_factor": 1.25,
        },
        "-llama3": {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 128,
        },
    }
    cases = {}
    for i, pairing in enumerate(("half", "interleaved")):
        for j, (name, scaling) in enumerate(scalings.items()):
            cases[f"rope-{pairing}{name}"] = rope_case(20 + 10 * i + j, pairing, scaling)
        cases[f"rope-{pairing}-partial"] = rope_case(28 + 10 * i, pairing, rotary=4)
    return cases


# ---------------------------------------------------------------- attention


def attention_case(
    seed,
    counts,
    past,
    heads=4,
    groups=2,
    size=8,
    mask="causal",
    window=None,
    cap=None,
    scale=None,
    key_mask=None,
    folded=True,
):
    """`counts[b]` new tokens of sequence b after `past[b]` cached ones; keys [B, P, G, D], the rest
    zero.
    """
    g, scale = random(seed), scale or 1 / math.sqrt(size)
    length = max(c + p for c, p in zip(counts, past))
    keys, values = (normal(g, len(counts), length, groups, size) for _ in range(2))
    q = normal(g, sum(counts), heads, size)
    sequences = i32([b for b, c in enumerate(counts) for _ in range(c)])
    positions = i32([p + s for c, p in zip(counts, past) for s in range(c)])
    for b, (c, p) in enumerate(zip(counts, past)):
        keys[b, c + p :] = 0
        values[b, c + p :] = 0
    if not folded:
        keys, values = keys.repeat_interleave(heads // groups, 2), values.repeat_interleave(
            heads // groups, 2
        )
    repeat, at = heads // keys.shape[2], torch.arange(length)
    seen = torch.ones(q.shape[0], length, dtype=torch.bool)
    if mask == "causal":
        seen &= at[None, :] <= positions[:, None]
    if window:
        seen &= at[None, :] > positions[:, None] - window
    if key_mask is not None:
        seen &= key_mask[sequences.long()]
    rows = []
    for t in range(q.shape[0]):
        k = keys[sequences[t]].repeat_interleave(repeat, 1).double()  # [P, H, D]
        v = values[sequences[t]].repeat_interleave(repeat, 1).double()
        scores = torch.einsum("hd,phd->hp", q[t].double(), k) * scale
        scores = cap * torch.tanh(scores / cap) if cap else scores
        scores = scores.masked_fill(~seen[t], -math.inf)
        y = torch.einsum("hp,phd->hd", scores.softmax(-1), v)
        if seen[t].any() and not cap:  # torch's own attention must agree if it has the feature
            own = F.scaled_dot_product_attention(
                q[t, :, None].double(),
                k.transpose(0, 1),
                v.transpose(0, 1),
                attn_mask=seen[t][None, None].expand(heads, 1, -1),
                scale=scale,
            )
            torch.testing.assert_close(own[:, 0], y)
        rows.append(y if seen[t].any() else torch.zeros_like(y))
    operands = [q, keys, values, sequences, positions] + (
        [key_mask] if key_mask is not None else []
    )
    words = " key_mask({5} : {t5})" if key_mask is not None else ""
    tail = (f" window({window})" if window else "") + (f" softcap({cap:e})" if cap else "")
    return Case(
        "mica.attention",
        operands,
        [torch.stack(rows).float()],
        f"mica.attention {{0}}, {{1}}, {{2}} at({{3}}, {{4}} : {{t3}}, {{t4}}){words} {mask} "
        f"scale({scale!r}){tail} : {{t0}}, {{t1}}, {{t2}} -> {{r0}}",
        {"mask": mask, "scale": scale, "window": window, "softcap": cap},
        2e-6,
    )


def attention_cases():
    hidden = torch.tensor([[1, 1, 0, 1, 1, 1], [0, 0, 1, 1, 1, 0]], dtype=torch.bool)
    cache = normal(random(61), 2, 3, 2, 4)
    return {
        "attention-prefill": attention_case(50, [5], [0]),
        "attention-cache-offset": attention_case(51, [2], [5]),
        "attention-decode-batch": attention_case(52, [1, 1, 1], [6, 0, 3]),
        "attention-unequal-batch": attention_case(53, [3, 1, 2], [0, 4, 2]),
        "attention-multi-head": attention_case(54, [4], [1], heads=2, groups=2),
        "attention-multi-query": attention_case(55, [4], [1], heads=4, groups=1),
        "attention-repeated-heads": attention_case(56, [3], [2], folded=False, size=4),
        "attention-full": attention_case(57, [4], [2], mask="full"),
        "attention-window": attention_case(58, [4, 2], [3, 1], window=3),
        "attention-softcap": attention_case(59, [4], [3], cap=0.75),
        "attention-scale": attention_case(60, [4], [3], scale=0.11),
        "attention-key-mask": attention_case(62, [3, 5], [3, 0], key_mask=hidden),
        "repeat-kv": Case(
            "mica.repeat_kv",
            [cache],
            [cache.repeat_interleave(3, 2)],
            "mica.repeat_kv {0} times 3 : {t0} -> {r0}",
            {"times": 3},
            0.0,
        ),
    }


# ---------------------------------------------------------------- elementwise and products


def unary_case(op, x, y):
    return Case(f"mica.{op}", [x], [y], f"mica.{op} {{0}} : {{t0}}")


def elementwise_cases():
    g = random(3)
    x, z = torch.cat([3 * normal(g, 4, 16), torch.linspace(-12, 12, 16)[None]]), normal(g, 5, 16)
    ties = torch.tensor([[1.00390625, 1.01171875, -1.00390625, 3.0e38, 1e-40, 0.1, -0.0, 65504.0]])
    return {
        "silu": unary_case("silu", x, F.silu(x)),
        "gelu": unary_case("gelu", x, F.gelu(x)),
        "gelu-tanh": unary_case("gelu_tanh", x, F.gelu(x, approximate="tanh")),
        "relu": unary_case("relu", x, F.relu(x)),
        "relu2": unary_case("relu2", x, F.relu(x).square()),
        "quick-gelu": unary_case("quick_gelu", x, x * torch.sigmoid(1.702 * x)),
        "add": Case("mica.add", [x, z], [x + z], "mica.add {0}, {1} : {t0}", tolerance=0.0),
        "mul": Case("mica.mul", [x, z], [x * z], "mica.mul {0}, {1} : {t0}", tolerance=0.0),
        "cast-bf16": Case(
            "mica.cast", [ties], [ties.bfloat16()], "mica.cast {0} : {t0} to {r0}", tolerance=0.0
        ),
    }


def product_cases():
    g = random(4)
    x, w, b = normal(g, 3, 16), normal(g, 10, 16) / 4, normal(g, 10)
    tokens, rows = i32([4, 0, 4, 9]), i32([2, 0])
    words = "{0}, {1}{bias} : {t0}, {t1} -> {r0}"
    return {
        "linear": Case(
            "mica.linear",
            [x, w],
            [F.linear(x, w)],
            "mica.linear " + words.replace("{bias}", ""),
            static=(1,),
        ),
        "linear-bias": Case(
            "mica.linear",
            [x, w, b],
            [F.linear(x, w, b)],
            "mica.linear " + words.replace("{bias}", " bias({2} : {t2})"),
            static=(1, 2),
        ),
        "linear-bf16": Case(
            "mica.linear",
            [x.bfloat16(), w.bfloat16()],
            [F.linear(x.bfloat16().float(), w.bfloat16().float())],
            "mica.linear " + words.replace("{bias}", ""),
            static=(1,),
        ),
        "lm-head": Case(
            "mica.lm_head",
            [x, w],
            [F.linear(x, w)],
            "mica.lm_head " + words.replace("{bias}", ""),
            static=(1,),
        ),
        "embedding": Case(
            "mica.embedding",
            [tokens, w],
            [w[tokens.long()]],
            "mica.embedding {0}, {1} : {t0}, {t1} -> {r0}",
            tolerance=0.0,
            static=(1,),
        ),
        "select-rows": Case(
            "mica.select_rows",
            [x, rows],
            [x[rows.long()]],
            "mica.select_rows {0}, {1} : {t0}, {t1} -> {r0}",
            tolerance=0.0,
        ),
    }


# ---------------------------------------------------------------- experts


def gate(x, w, scoring, k, normalize):
    logits = F.linear(x, w)
    scores = logits.softmax(-1) if scoring == "softmax" else logits.sigmoid()
    weights, chosen = torch.sort(scores, descending=True, stable=True)  # ties to the lower index
    weights, chosen = weights[:, :k], chosen[:, :k]
    if normalize:
        weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
    return weights.contiguous(), chosen.to(torch.int32).contiguous()


def gate_case(x, w, scoring, k, normalize):
    word = " normalize" if normalize else ""
    return Case(
        "mica.moe_gate",
        [x, w],
        list(gate(x, w, scoring, k, normalize)),
        f"mica.moe_gate {{0}}, {{1}} {scoring} k({k}){word} : {{t0}}, {{t1}} -> {{r0}}, {{r1}}",
        {"scoring": scoring, "k": k, "normalize": normalize},
        static=(1,),
    )


def experts_case(seed, activation, function, k=2, residual=False):
    g, hidden, inner, count = random(seed), 8, 6, 4
    x, w = normal(g, 5, hidden), normal(g, count, hidden)
    w[3] = -10 * x.sum(0)  # an expert chosen by few or no tokens
    weights, chosen = gate(x, w, "softmax", k, True)
    gates, ups = (normal(g, count, inner, hidden) / 3 for _ in range(2))
    downs, extra = normal(g, count, hidden, inner) / 3, normal(g, 5, hidden)
    y = extra.clone() if residual else torch.zeros_like(x)
    for t in range(x.shape[0]):
        for weight, e in zip(weights[t], chosen[t]):
            y[t] += weight * (downs[e] @ (function(gates[e] @ x[t]) * (ups[e] @ x[t])))
    operands = [x, weights, chosen, gates, downs, ups] + ([extra] if residual else [])
    more = " residual({6} : {t6})" if residual else ""
    return Case(
        "mica.moe_experts",
        operands,
        [y],
        f"mica.moe_experts {{0}}, {{1}}, {{2}}, {{3}}, {{4}} up({{5}} : {{t5}}){more} {activation} "
        f"inner({inner}) : {{t0}}, {{t1}}, {{t2}}, {{t3}}, {{t4}} -> {{r0}}",
        {"activation": activation, "inner": inner},
        static=(3, 4, 5),
    )


def expert_cases():
    g = random(5)
    x, w = normal(g, 6, 16), normal(g, 5, 16) / 3
    tied = w.clone()
    tied[3] = tied[1]
    return {
        "moe-gate-softmax-k2": gate_case(x, w, "softmax", 2, True),
        "moe-gate-softmax-k2-plain": gate_case(x, w, "softmax", 2, False),
        "moe-gate-softmax-k1": gate_case(x, w, "softmax", 1, True),
        "moe-gate-softmax-k1-plain": gate_case(x, w, "softmax", 1, False),
        "moe-gate-sigmoid-k3": gate_case(x, w, "sigmoid", 3, True),
        "moe-gate-sigmoid-k2-plain": gate_case(x, w, "sigmoid", 2, False),
        "moe-gate-tie": gate_case(x, tied, "softmax", 2, True),
        "moe-experts": experts_case(70, "silu", F.silu),
        "moe-experts-k1": experts_case(71, "silu", F.silu, k=1),
        "moe-experts-gelu": experts_case(72, "gelu_tanh", lambda x: F.gelu(x, approximate="tanh")),
        "moe-experts-residual": experts_case(73, "silu", F.silu, residual=True),
    }


# ---------------------------------------------------------------- writing


def mlir_type(tensor, static):
    """The number of rows, the batch and the cache length are dynamic, everything else is static."""
    dynamic = 0 if static else 2 if tensor.dim() == 4 or tensor.dtype == torch.bool else 1
    sizes = ["?"] * dynamic + [str(n) for n in tensor.shape[dynamic:]]
    return f"tensor<{'x'.join(sizes + [TORCH_TYPES[tensor.dtype]])}>"


def function_text(case):
    types = [mlir_type(t, i in case.static) for i, t in enumerate(case.operands)]
    results = [mlir_type(t, False) for t in case.results]
    names = [f"%{i}" for i in range(len(results))]
    body = case.body.format(
        *[f"%arg{i}" for i in range(len(types))],
        **{f"t{i}": t for i, t in enumerate(types)},
        **{f"r{i}": t for i, t in enumerate(results)},
    )
    arguments = ", ".join(f"%arg{i}: {t}" for i, t in enumerate(types))
    signature = results[0] if len(results) == 1 else f"({', '.join(results)})"
    left = "%y" if len(names) == 1 else f"%y:{len(names)}"
    values = "%y" if len(names) == 1 else ", ".join(f"%y#{i}" for i in range(len(names)))
    return (
        (
            f"func.func @main({arguments}) -> {signature} {{\n  {left} = {body}\n"
            f"  return {values} : {', '.join(results)}\n}}\n"
        ),
        types,
        results,
    )


def array(tensor):
    if tensor.dtype == torch.bfloat16:
        return tensor.contiguous().view(torch.uint16).numpy()
    return tensor.contiguous().numpy()


def write(root, name, case):
    path = root / name
    path.mkdir(parents=True, exist_ok=True)
    text, types, results = function_text(case)
    (path / "function.mlir").write_text(text)
    for kind, tensors in (("argument", case.operands), ("result", case.results)):
        for i, tensor in enumerate(tensors):
            np.save(path / f"{kind}.{i}.npy", array(tensor))

    def described(kind, tensors, kinds):
        lines = [
            json.dumps(
                {
                    "file": f"{kind}.{i}.npy",
                    "element": TORCH_TYPES[t.dtype],
                    "shape": list(t.shape),
                    "type": text,
                }
            )
            for i, (t, text) in enumerate(zip(tensors, kinds))
        ]
        return "[\n    " + ",\n    ".join(lines) + "\n  ]"

    fields = {
        "op": json.dumps(case.op),
        "attributes": json.dumps(case.attributes),
        "tolerance": json.dumps(case.tolerance),
        "arguments": described("argument", case.operands, types),
        "results": described("result", case.results, results),
    }
    lines = ",\n".join(f'  "{key}": {value}' for key, value in fields.items())
    (path / "case.json").write_text("{\n" + lines + "\n}\n")
    size = max(f.stat().st_size for f in path.iterdir())
    if size > 4096:
        raise ValueError(f"{name}: a file of {size} bytes")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only")
    parser.add_argument("--out", default=pathlib.Path(__file__).parent / "ops", type=pathlib.Path)
    parser.add_argument("--mica-opt")
    options = parser.parse_args()
    torch.set_num_threads(1)
    groups = norm_cases, rope_cases, attention_cases, elementwise_cases, product_cases, expert_cases
    for name, case in {n: c for group in groups for n, c in group().items()}.items():
        if options.only not in (None, name):
            continue
        write(options.out, name, case)
        if options.mica_opt:
            subprocess.run(
                [options.mica_opt, options.out / name / "function.mlir"],
                check=True,
                stdout=subprocess.DEVNULL,
            )


if __name__ == "__main__":
    main()
