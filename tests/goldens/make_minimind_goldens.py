#!/usr/bin/env python3
"""Goldens of MiniMind's three generations, computed by the authors' own code in f32.

    make_minimind_goldens.py GIT [--only NAME] [--out DIR]

GIT is a git directory of jingyaogong/minimind. The code is copied from the commits below to a
temporary folder, never to this tree. Needs the packages of requirements.txt.
"""

import argparse
import importlib
import io
import math
import pathlib
import subprocess
import sys
import tarfile
import tempfile

import torch
import transformers

import folder
import reference

COMMITS = {
    1: "58e3af0359a187bdf2d91fa737b8d1edde9a21a7",
    2: "c090b69c4d41a2288301b600c9ca040127db0134",
    3: "d65ef2c00ebc6082f9df11541e1b191655eddb00",
}
VOCABULARY = 64
YARN = {
    "type": "yarn",
    "factor": 16,
    "beta_fast": 32,
    "beta_slow": 1,
    "original_max_position_embeddings": 2048,
    "attention_factor": 1.0,
}
SHORT_YARN = {
    "type": "yarn",
    "factor": 4,
    "beta_fast": 8,
    "beta_slow": 1,
    "original_max_position_embeddings": 16,
    "attention_factor": 1.0,
}


def import_authors_code(git, where):
    """{generation: (config class, model class)}."""
    found = {}
    for generation, commit in COMMITS.items():
        package = f"minimind{generation}"
        files = subprocess.run(
            ["git", "-C", git, "archive", commit, "model"], check=True, stdout=subprocess.PIPE
        ).stdout
        target = pathlib.Path(where) / package
        tarfile.open(fileobj=io.BytesIO(files)).extractall(target, filter="data")
        (target / "__init__.py").touch()
        (target / "model" / "__init__.py").touch()
    sys.path.insert(0, str(where))
    one = importlib.import_module("minimind1.model.model")
    found[1] = (importlib.import_module("minimind1.model.LMConfig").LMConfig, one.MiniMindLM)
    for generation in (2, 3):
        module = importlib.import_module(f"minimind{generation}.model.model_minimind")
        found[generation] = (module.MiniMindConfig, module.MiniMindForCausalLM)
    return found


def loader(classes, generation):
    """A `load` of folder.produce: the authors' model, eval mode, f32, no flash attention."""
    config_class, model_class = classes[generation]

    def load(config, weights):
        parsed = config_class(
            **{k: v for k, v in config.items() if k != "rope_scaling"}, flash_attn=False
        )
        if config.get("rope_scaling"):
            parsed.rope_scaling = dict(
                config["rope_scaling"]
            )  # the constructor knows one dictionary only
        model = model_class(parsed).float().eval()
        state = {n: torch.from_numpy(v.copy()) for n, v in weights.items()}
        embedding = "tok_embeddings" if generation == 1 else "model.embed_tokens"
        head = "output" if generation == 1 else "lm_head"
        state.setdefault(head + ".weight", state[embedding + ".weight"])
        missing, surplus = model.load_state_dict(state, strict=False)
        if missing or surplus:
            raise ValueError(f"missing {missing}, surplus {surplus}")

        def logits_of(ids):
            with torch.no_grad():
                return model(input_ids=torch.tensor([ids])).logits[0].float().clone()

        return logits_of

    return load


def ffn_shapes(prefix, hidden, inner, names=("gate_proj", "up_proj", "down_proj")):
    gate, up, down = (f"{prefix}{n}.weight" for n in names)
    return {gate: (inner, hidden), up: (inner, hidden), down: (hidden, inner)}


def generation_one(experts=0, shared=True, inner=None, hidden=36, layers=2, heads=6, kv=3, **extra):
    """(config, shapes, spec) of an LMConfig model."""
    config = {
        "model_type": "minimind",
        "dim": hidden,
        "n_layers": layers,
        "n_heads": heads,
        "n_kv_heads": kv,
        "vocab_size": VOCABULARY,
        "norm_eps": 1e-5,
        "max_seq_len": 128,
        "rope_theta": 1e6,
    }
    if inner:
        config["hidden_dim"] = inner
    if experts:
        config |= {
            "use_moe": True,
            "n_routed_experts": experts,
            "num_experts_per_tok": 2,
            "n_shared_experts": shared,
            "scoring_func": "softmax",
            "norm_topk_prob": True,
        }
    config |= extra
    step = config.get("multiple_of", 64)
    inner = inner or step * -(-int(2 * 4 * hidden / 3) // step)
    d = hidden // heads
    shapes = {"tok_embeddings.weight": (VOCABULARY, hidden), "norm.weight": (hidden,)}
    names = ("w1", "w3", "w2")
    for i in range(layers):
        p = f"layers.{i}."
        shapes |= {
            p + "attention_norm.weight": (hidden,),
            p + "ffn_norm.weight": (hidden,),
            p + "attention.wq.weight": (hidden, hidden),
            p + "attention.wo.weight": (hidden, hidden),
            p + "attention.wk.weight": (kv * d, hidden),
            p + "attention.wv.weight": (kv * d, hidden),
        }
        if not experts:
            shapes |= ffn_shapes(p + "feed_forward.", hidden, inner, names)
            continue
        shapes[p + "feed_forward.gate.weight"] = (experts, hidden)
        for e in range(experts):
            shapes |= ffn_shapes(f"{p}feed_forward.experts.{e}.", hidden, inner, names)
        if config["n_shared_experts"] is not None:
            shapes |= ffn_shapes(p + "feed_forward.shared_experts.", hidden, inner, names)
    spec = reference.Spec(
        hidden,
        layers,
        heads,
        kv,
        d,
        1e-5,
        config["rope_theta"],
        pairing="interleaved",
        experts=experts,
        top_k=config.get("num_experts_per_tok", 0),
        norm_topk=config.get("norm_topk_prob", False),
        norm_topk_at_one=False,
        shared=int(bool(experts) and config["n_shared_experts"] is not None),
    )
    return config, shapes, spec


def generation_two_or_three(
    generation,
    experts=0,
    k=2,
    shared=1,
    inner=None,
    hidden=36,
    layers=2,
    heads=6,
    kv=3,
    head_dim=None,
    **extra,
):
    """(config, shapes, spec) of a MiniMindConfig model."""
    d = head_dim or hidden // heads
    config = {
        "model_type": "minimind",
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "vocab_size": VOCABULARY,
        "rms_norm_eps": 1e-5 if generation == 2 else 1e-6,
        "max_position_embeddings": 128,
        "rope_theta": 1000000.0,
        "hidden_act": "silu",
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
    if inner:
        config["intermediate_size"] = inner
    if generation == 3:
        config |= {"head_dim": d, "tie_word_embeddings": True, "use_moe": bool(experts)}
    if experts:
        config |= {"use_moe": True, "num_experts_per_tok": k, "norm_topk_prob": True}
        config |= (
            {"n_routed_experts": experts, "n_shared_experts": shared, "scoring_func": "softmax"}
            if generation == 2
            else {"num_experts": experts, "moe_intermediate_size": inner}
        )
    config |= extra
    inner = inner or 64 * math.ceil(
        int(hidden * 8 / 3) / 64 if generation == 2 else hidden * math.pi / 64
    )
    shapes = {"model.embed_tokens.weight": (VOCABULARY, hidden), "model.norm.weight": (hidden,)}
    for i in range(layers):
        p = f"model.layers.{i}."
        a = p + "self_attn."
        shapes |= {
            p + "input_layernorm.weight": (hidden,),
            p + "post_attention_layernorm.weight": (hidden,),
            a + "q_proj.weight": (heads * d, hidden),
            a + "k_proj.weight": (kv * d, hidden),
            a + "v_proj.weight": (kv * d, hidden),
            a + "o_proj.weight": (hidden, heads * d),
        }
        if generation == 3:
            shapes |= {a + "q_norm.weight": (d,), a + "k_norm.weight": (d,)}
        if not experts:
            shapes |= ffn_shapes(p + "mlp.", hidden, inner)
            continue
        shapes[p + "mlp.gate.weight"] = (experts, hidden)
        for e in range(experts):
            shapes |= ffn_shapes(f"{p}mlp.experts.{e}.", hidden, inner)
        for e in range(config.get("n_shared_experts", 0)):
            shapes |= ffn_shapes(f"{p}mlp.shared_experts.{e}.", hidden, inner)
    scaling = config.get("rope_scaling") or (YARN if config.get("inference_rope_scaling") else None)
    if scaling and config["max_position_embeddings"] <= scaling["original_max_position_embeddings"]:
        scaling = None
    spec = reference.Spec(
        hidden,
        layers,
        heads,
        kv,
        d,
        config["rms_norm_eps"],
        config["rope_theta"],
        rope_scaling=scaling,
        qk_norm=generation == 3,
        experts=experts,
        top_k=k if experts else 0,
        norm_topk=config.get("norm_topk_prob", False),
        norm_topk_at_one=generation == 3,
        shared=config.get("n_shared_experts", 0) if experts else 0,
    )
    return config, shapes, spec


def cases():
    """{folder: (generation, config, shapes, spec)}."""

    def one(**options):
        return 1, *generation_one(**options)

    def two(**options):
        return 2, *generation_two_or_three(2, **options)

    def three(**options):
        return 3, *generation_two_or_three(3, **options)

    odd = {"hidden": 24, "heads": 3, "kv": 1}
    return {
        "minimind1-dense": one(**odd),
        "minimind1-dense-multiple-of": one(multiple_of=32, hidden=30, heads=3, kv=1),
        "minimind1-dense-2024": one(inner=40, rope_theta=1e4),
        "minimind1-moe-shared": one(experts=4, inner=16, shared=True),
        "minimind1-moe-shared-false": one(experts=4, inner=16, shared=False, **odd),
        "minimind1-moe-not-shared": one(experts=4, inner=16, shared=None, layers=3, **odd),
        "minimind2-dense": two(**odd),
        "minimind2-dense-yarn-flag": two(
            inner=32, inference_rope_scaling=True, max_position_embeddings=32768
        ),
        "minimind2-dense-yarn-long": two(
            inner=32,
            inference_rope_scaling=True,
            max_position_embeddings=64,
            rope_scaling=SHORT_YARN,
        ),
        "minimind2-dense-yarn-not-needed": two(
            inner=32, inference_rope_scaling=True, max_position_embeddings=2048
        ),
        "minimind2-dense-yarn-clamp": two(
            inner=32,
            inference_rope_scaling=True,
            rope_theta=100.0,
            max_position_embeddings=32768,
            **odd,
        ),
        "minimind2-moe": two(experts=4, inner=16),
        "minimind2-moe-two-shared-k1": two(experts=3, k=1, shared=2, inner=16),
        "minimind2-moe-not-normalized": two(experts=4, shared=0, inner=16, norm_topk_prob=False),
        "minimind3-dense": three(inner=64, head_dim=12),
        "minimind3-dense-default-inner": three(**odd),
        "minimind3-dense-yarn-flag": three(
            inner=32, head_dim=10, inference_rope_scaling=True, max_position_embeddings=32768
        ),
        "minimind3-moe": three(experts=4, k=1, inner=16),
        "minimind3-moe-k2": three(experts=4, k=2, inner=16, hidden=32, head_dim=10),
        "minimind3-moe-not-normalized": three(experts=4, k=1, inner=16, norm_topk_prob=False),
    }


def main():
    here = pathlib.Path(__file__).parent
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("git")
    parser.add_argument("--only")
    parser.add_argument("--out", default=here)
    options = parser.parse_args()
    torch.set_num_threads(1)
    root, entries = pathlib.Path(options.out), {}
    with tempfile.TemporaryDirectory() as where:
        classes = import_authors_code(options.git, where)
        for number, (name, (generation, config, shapes, spec)) in enumerate(cases().items()):
            if options.only not in (None, name):
                continue
            twice = (
                generation == 1 and "moe" not in name
            )  # the authors' checkpoints store the tied head twice
            extra = (
                (lambda w: {"output.weight": w["tok_embeddings.weight"].copy()}) if twice else None
            )
            absent = (
                ("rope_theta",) if name.endswith("2024") else ()
            )  # files of 2024 lack it; their theta is 1e4
            entries[name] = folder.produce(
                root / "models",
                name,
                config,
                spec,
                shapes,
                loader(classes, generation),
                100 * (number + 1),
                extra,
                absent,
            )
            entries[name][
                "made_by"
            ] = f"MiniMind generation {generation}, commit {COMMITS[generation][:7]}"
    folder.update_manifest(
        root,
        {"torch": torch.__version__, "transformers": transformers.__version__, "minimind": COMMITS},
        entries,
    )


if __name__ == "__main__":
    main()
