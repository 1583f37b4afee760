#!/usr/bin/env python3
"""Goldens of Llama, Qwen3 and Qwen3-MoE, computed by transformers in f32 (eager attention).

    make_transformers_goldens.py [--only NAME] [--out DIR]

Some config.json use the key names of transformers 4 (rope_theta, rope_scaling, torch_dtype), some
those of 5 (rope_parameters, dtype). A `config.other.json` next to one has the same meaning
with the other names, and results in bit-identical logits. Needs the packages of requirements.txt.
"""

import argparse
import json
import pathlib
import tempfile

import numpy as np
import safetensors.numpy
import torch
import transformers

import folder
import reference

ARCHITECTURES = {
    "llama": "LlamaForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM",
}


def load(config, weights):
    """A `load` of folder.produce: transformers' model of the folder as written."""
    with tempfile.TemporaryDirectory() as where:
        path = pathlib.Path(where)
        (path / "config.json").write_text(json.dumps(config))
        safetensors.numpy.save_file(weights, path / "model.safetensors", metadata={"format": "pt"})
        model, info = transformers.AutoModelForCausalLM.from_pretrained(
            path, attn_implementation="eager", dtype=torch.float32, output_loading_info=True
        )
    wrong = {k: v for k, v in info.items() if v}
    if wrong:
        raise ValueError(f"{config['architectures']}: {wrong}")
    model.eval()

    def logits_of(ids):
        with torch.no_grad():
            return model(torch.tensor([ids]), use_cache=False).logits[0].float().clone()

    return logits_of


def old_names(config):
    """transformers 4's names for a config in transformers 5's."""
    config = dict(config)
    rope = dict(config.pop("rope_parameters"))
    config["rope_theta"] = rope.pop("rope_theta")
    config["rope_scaling"] = rope if rope["rope_type"] != "default" else None
    config["torch_dtype"] = config.pop("dtype")
    return config


def is_sparse(config, layer):
    if not config.get("num_experts") or layer in (config.get("mlp_only_layers") or []):
        return False
    return (layer + 1) % config.get("decoder_sparse_step", 1) == 0


def shapes_of(config):
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    kv = config.get("num_key_value_heads", heads)
    d = config.get("head_dim") or hidden // heads
    shapes = {
        "model.embed_tokens.weight": (config["vocab_size"], hidden),
        "model.norm.weight": (hidden,),
    }
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (config["vocab_size"], hidden)

    def linear(name, rows, columns, bias):
        shapes[name + ".weight"] = (rows, columns)
        if bias:
            shapes[name + ".bias"] = (rows,)

    def swiglu(prefix, inner):
        bias = config.get("mlp_bias", False)
        linear(prefix + "gate_proj", inner, hidden, bias)
        linear(prefix + "up_proj", inner, hidden, bias)
        linear(prefix + "down_proj", hidden, inner, bias)

    for i in range(config["num_hidden_layers"]):
        p = f"model.layers.{i}."
        shapes |= {
            p + "input_layernorm.weight": (hidden,),
            p + "post_attention_layernorm.weight": (hidden,),
        }
        for name, rows, columns in (
            ("q", heads * d, hidden),
            ("k", kv * d, hidden),
            ("v", kv * d, hidden),
            ("o", hidden, heads * d),
        ):
            linear(f"{p}self_attn.{name}_proj", rows, columns, config.get("attention_bias", False))
        if config["model_type"].startswith("qwen3"):
            shapes |= {p + "self_attn.q_norm.weight": (d,), p + "self_attn.k_norm.weight": (d,)}
        if not is_sparse(config, i):
            swiglu(p + "mlp.", config["intermediate_size"])
            continue
        shapes[p + "mlp.gate.weight"] = (config["num_experts"], hidden)
        for e in range(config["num_experts"]):
            swiglu(f"{p}mlp.experts.{e}.", config["moe_intermediate_size"])
    return shapes


def spec_of(config):
    rope = config["rope_parameters"]
    layers, heads = config["num_hidden_layers"], config["num_attention_heads"]
    return reference.Spec(
        config["hidden_size"],
        layers,
        heads,
        config.get("num_key_value_heads", heads),
        config.get("head_dim") or config["hidden_size"] // heads,
        config["rms_norm_eps"],
        rope["rope_theta"],
        rope_scaling=rope if rope["rope_type"] != "default" else None,
        yarn_clamp="transformers",
        qk_norm=config["model_type"].startswith("qwen3"),
        tied=config["tie_word_embeddings"],
        experts=config.get("num_experts", 0),
        top_k=config.get("num_experts_per_tok", 0),
        norm_topk=config.get("norm_topk_prob", False),
        dense_layers=tuple(i for i in range(layers) if not is_sparse(config, i)),
    )


def configuration(kind, rope=None, **changes):
    """A small config in transformers 5's names: six heads, three key/value heads, heads of six elements in Llama's."""
    config = {
        "architectures": [ARCHITECTURES[kind]],
        "model_type": kind,
        "dtype": "float32",
        "hidden_act": "silu",
        "hidden_size": 36 if kind == "llama" else 32,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 6,
        "num_key_value_heads": 3,
        "vocab_size": 64,
        "max_position_embeddings": 128,
        "rms_norm_eps": 1e-5 if kind == "llama" else 1e-6,
        "tie_word_embeddings": True,
        "attention_bias": False,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0} | (rope or {}),
    }
    if kind == "llama":
        config["mlp_bias"] = False
    else:
        config["head_dim"] = 8
    if kind == "qwen3_moe":
        config |= {
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 16,
            "norm_topk_prob": True,
            "decoder_sparse_step": 1,
            "mlp_only_layers": [],
        }
    config |= changes
    return {k: v for k, v in config.items() if v is not None}


def cases():
    """{folder: (config, "old" | "new" | "both")}."""
    llama3 = {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 128,
    }
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}
    three = {"num_attention_heads": 3, "num_key_value_heads": 1}
    return {
        "llama-gqa": (configuration("llama", num_hidden_layers=3), "old"),
        "llama-mha-untied": (
            configuration(
                "llama", num_attention_heads=3, num_key_value_heads=None, tie_word_embeddings=False
            ),
            "new",
        ),
        "llama-head-dim": (configuration("llama", head_dim=10), "both"),
        "llama-biases": (configuration("llama", attention_bias=True, mlp_bias=True), "old"),
        "llama-rope-linear": (
            configuration("llama", {"rope_type": "linear", "factor": 4.0}, **three),
            "both",
        ),
        "llama-rope-llama3": (
            configuration("llama", llama3, head_dim=16, max_position_embeddings=1024, **three),
            "both",
        ),
        "llama-rope-yarn": (configuration("llama", yarn, head_dim=16, **three), "both"),
        "llama-rope-yarn-options": (
            configuration(
                "llama",
                yarn | {"beta_fast": 6.0, "beta_slow": 0.5, "attention_factor": 1.25},
                head_dim=16,
                num_hidden_layers=3,
                **three,
            ),
            "new",
        ),
        "qwen3-dense": (
            configuration("qwen3", num_attention_heads=4, num_key_value_heads=2, head_dim=16),
            "old",
        ),
        "qwen3-dense-bias-untied": (
            configuration("qwen3", attention_bias=True, tie_word_embeddings=False, head_dim=10),
            "new",
        ),
        "qwen3-moe": (configuration("qwen3_moe"), "both"),
        "qwen3-moe-not-normalized": (configuration("qwen3_moe", norm_topk_prob=False), "old"),
        "qwen3-moe-k1": (configuration("qwen3_moe", num_experts_per_tok=1, head_dim=10), "old"),
        "qwen3-moe-mixed": (
            configuration(
                "qwen3_moe",
                num_hidden_layers=4,
                decoder_sparse_step=2,
                mlp_only_layers=[3],
                tie_word_embeddings=False,
                head_dim=10,
                **three,
            ),
            "new",
        ),
    }


def write_other_names(path, config, other):
    """config.other.json, after checking that it has the same meaning."""
    weights = safetensors.numpy.load_file(path / "model.safetensors")
    prompt = json.loads((path / "golden.json").read_text())["prompt"]
    if not np.array_equal(
        load(other, weights)(prompt).numpy(), np.load(path / "golden.logits.npy")
    ):
        raise ValueError(f"{path}: the other names give other logits")
    (path / "config.other.json").write_text(json.dumps(other, indent=2) + "\n")


def main():
    here = pathlib.Path(__file__).parent
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only")
    parser.add_argument("--out", default=here)
    options = parser.parse_args()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    root, entries = pathlib.Path(options.out), {}
    for number, (name, (config, names)) in enumerate(cases().items()):
        if options.only not in (None, name):
            continue
        written = old_names(config) if names == "old" else config
        entries[name] = folder.produce(
            root / "models",
            name,
            written,
            spec_of(config),
            shapes_of(config),
            load,
            5000 + 100 * number,
        )
        if names == "both":
            write_other_names(root / "models" / name, config, old_names(config))
        entries[name][
            "made_by"
        ] = f"transformers {transformers.__version__}, {config['architectures'][0]}"
    folder.update_manifest(
        root, {"torch": torch.__version__, "transformers": transformers.__version__}, entries
    )


if __name__ == "__main__":
    main()
