#!/usr/bin/env python3
"""Goldens of DeepSeek's first generation, which transformers does not support, computed by the authors' own code in f32.

    make_deepseek_goldens.py GIT [--out DIR]

The authors publish modeling_deepseek.py with their weights. GIT is a git directory of ywhijn/moe-project-7101, which
contains a copy that also stores the logits of routers; except for these lines, and those that measure time in the copy of
zhexiangzhang/ServerlessMOE (6e1b013), both are equal. The file is copied from the commit below to a temporary folder,
never to this tree. Needs the packages of requirements.txt.
"""

import argparse
import hashlib
import importlib
import pathlib
import subprocess
import sys
import tempfile

import torch
import transformers
import transformers.utils.import_utils

import folder
import make_family_goldens
import reference
from family_cases import SMALL, Case

COMMIT = "6224875b9db572e79ab90c16c14ba892fc6a8c11"
SHA256 = "694650d3aed78dff55a99556214291fee8ba8a2d6be7cb5e327af7b752a7447b"

# The keys of the config that the code reads, with the values of deepseek-moe-16b-base except for sizes.
PUBLISHED = SMALL | {
    "architectures": ["DeepseekForCausalLM"],
    "model_type": "deepseek",
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "rope_scaling": None,
    "attention_bias": False,
    "attention_dropout": 0.0,
    "n_routed_experts": 5,
    "n_shared_experts": 2,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 8,
    "first_k_dense_replace": 1,
    "moe_layer_freq": 1,
    "norm_topk_prob": False,
    "scoring_func": "softmax",
    "aux_loss_alpha": 0.001,
    "seq_aux": True,
    "pretraining_tp": 1,
    "initializer_range": 0.02,
    "use_cache": True,
    "tie_word_embeddings": False,
    "torch_dtype": "float32",
}

# The config's class, which must keep its arguments unchanged: transformers 5 would move rope parameters.
CONFIG = """
import transformers

class DeepseekConfig(transformers.PreTrainedConfig):
    model_type = "deepseek"
    rope_scaling = None

    def __init__(self, **values):
        super().__init__()
        self.__dict__.update(values)
"""


def import_authors_code(git, where):
    """The module. transformers 5 lacks a torch version check that it calls."""
    code = subprocess.run(
        ["git", "-C", git, "show", f"{COMMIT}:modeling_deepseek.py"], check=True, stdout=subprocess.PIPE
    ).stdout
    if hashlib.sha256(code).hexdigest() != SHA256:
        raise ValueError(f"{git}: modeling_deepseek.py is another one")
    package = pathlib.Path(where) / "deepseek"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "modeling_deepseek.py").write_bytes(code)
    (package / "configuration_deepseek.py").write_text(CONFIG)
    transformers.utils.import_utils.is_torch_fx_available = lambda: False
    sys.path.insert(0, str(where))
    return importlib.import_module("deepseek.modeling_deepseek")


def margin(module, inputs, _output):
    """The margin of the router's choice."""
    x = inputs[0].reshape(-1, inputs[0].shape[-1])
    ordered = (x @ module.weight.T).softmax(-1).sort(-1, descending=True).values
    return ordered[:, module.top_k - 1] - ordered[:, module.top_k]


def in_f64(model, ids):
    """Computed by the second implementation: the authors' softmax and rope are always f32."""
    c = model.config
    spec = reference.Spec(
        c.hidden_size,
        c.num_hidden_layers,
        c.num_attention_heads,
        c.num_key_value_heads,
        c.hidden_size // c.num_attention_heads,
        c.rms_norm_eps,
        c.rope_theta,
        rope_scaling=c.rope_scaling,
        tied=False,
        experts=c.n_routed_experts,
        top_k=c.num_experts_per_tok,
        norm_topk=c.norm_topk_prob,
        norm_topk_at_one=False,
        shared=int(c.n_shared_experts is not None),
        dense_layers=tuple(range(c.first_k_dense_replace)),
    )
    weights = {n.replace("shared_experts.", "shared_experts.0."): v.double() for n, v in model.state_dict().items()}
    return reference.forward(spec, weights, torch.tensor(ids))


def case(code, changes, mutants):
    config = PUBLISHED | changes

    def compose(mutant):
        values = {k: v for k, v in (config | mutant).items() if k not in ("architectures", "model_type", "torch_dtype")}
        parsed = code.DeepseekConfig(**values)
        parsed._attn_implementation = "eager"
        return code.DeepseekForCausalLM(parsed).float(), config, lambda model: model.state_dict()

    theta = {"theta": {"rope_theta": 500.0}, "eps": {"rms_norm_eps": 1e-2}}
    return Case("deepseek", {}, mutants | theta, compose=compose, margin_of=margin, second=in_f64)


def cases(code):
    return {
        "deepseek": case(code, {"attention_bias": True}, {"normalize": {"norm_topk_prob": True}}),
        # The weight of a single expert is not normalized.
        "deepseek-k1": case(
            code,
            {
                "num_experts_per_tok": 1,
                "norm_topk_prob": True,
                "n_shared_experts": None,
                "first_k_dense_replace": 0,
                "num_hidden_layers": 2,
                "rope_scaling": {"type": "linear", "factor": 4.0},
            },
            {"scaling": {"rope_scaling": None}},
        ),
    }


def main():
    here = pathlib.Path(__file__).parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("git")
    parser.add_argument("--out", default=here)
    options = parser.parse_args()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    root, entries = pathlib.Path(options.out), {}
    with tempfile.TemporaryDirectory() as where:
        code = import_authors_code(options.git, where)
        for number, (name, made) in enumerate(cases(code).items()):
            entries[name] = make_family_goldens.produce(root / "models", name, made, 11400 + 100 * number)
            entries[name]["made_by"] = f"modeling_deepseek.py of ywhijn/moe-project-7101, commit {COMMIT[:7]}"
    folder.update_manifest(
        root, {"torch": torch.__version__, "transformers": transformers.__version__}, entries
    )


if __name__ == "__main__":
    main()
