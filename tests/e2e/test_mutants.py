"""Mistakes are detected: each changes the logits as much as the goldens' manifest requires.

The figures in the manifest were computed in f64 by another implementation, so these tests also verify the mutants themselves.
The other norm order of bf16 is not a mutant here: Mica's residual stream is f32.
"""

import json
import os
import re

import numpy as np

import checkpoint
import edits
import harness
from harness import Case, GOLDENS, compile_ir, difference, note, program
from test_goldens import Golden

BOUND = 1e-5  # of test_goldens
with open(GOLDENS / "MANIFEST.json", encoding="utf-8") as _f:
    MANIFEST = json.load(_f)["checkpoints"]

IR = {
    "eps": (edits.eps, ("llama-gqa", "minimind1-dense", "minimind2-moe", "minimind3-moe", "qwen3-dense")),
    "pairing": (edits.pairing, ("llama-gqa", "minimind1-dense", "minimind2-dense-yarn-long", "minimind3-dense")),
    "top-k normalization": (edits.gate_normalization,
                            ("minimind2-moe-two-shared-k1", "minimind3-moe", "qwen3-moe-k1", "minimind2-moe",
                             "qwen3-moe-not-normalized")),
}


def swap(first, second):
    def change(weights):
        for name in list(weights):
            if name.endswith(first):
                other = name.replace(first, second)
                weights[name], weights[other] = weights[other], weights[name]
    return change


def zero(pattern):
    def change(weights):
        for name in weights:
            if re.search(pattern, name):
                weights[name] = np.zeros_like(weights[name])
    return change


NORMS = swap("input_layernorm.weight", "post_attention_layernorm.weight")
CHECKPOINT = {
    "swapped norms": [("llama-gqa", NORMS), ("minimind1-dense", swap("attention_norm.weight", "ffn_norm.weight")),
                      ("minimind2-moe", NORMS), ("minimind3-dense", NORMS)],
    "swapped qk norms": [("minimind3-dense", swap("q_norm.weight", "k_norm.weight")),
                         ("qwen3-moe", swap("q_norm.weight", "k_norm.weight"))],
    "no shared expert": [("minimind2-moe", zero(r"shared_experts.*down_proj")),
                         ("minimind2-moe-two-shared-k1", zero(r"shared_experts.*down_proj"))],
    **{f"no bias {b}": [("llama-biases", zero(rf"{b}\.bias$"))]
       for b in ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")},
}


def plain_rope(config):
    """No scaling, in the form of transformers 4 or 5."""
    parameters = config.pop("rope_parameters", {"rope_theta": config.get("rope_theta")})
    config.update(rope_scaling=None, rope_theta=parameters["rope_theta"])
    if "inference_rope_scaling" in config:
        config["inference_rope_scaling"] = False


CONFIG = {
    "no rope scaling": [(n, plain_rope) for n in ("llama-rope-linear", "llama-rope-llama3", "llama-rope-yarn",
                                                  "minimind2-dense-yarn-long")],
    "one expert more": [("qwen3-moe-mixed", lambda c: c.update(num_experts_per_tok=c["num_experts_per_tok"] + 1))],
}


class Mutants(Case):
    def check(self, name, mutant, built):
        g = Golden(name)
        _, rows = built.generate([g.prompt], 1)
        moved, expected = difference(rows[0], g.logits), MANIFEST[name]["mutants"][mutant]
        note(self, f"moves the logits by {moved:.3e}, manifest {expected:.3e}, bound of the right model {BOUND:.0e}")
        self.assertGreater(moved, 100 * BOUND)
        self.assertLess(abs(moved / expected - 1), 0.01)

    def in_ir(self, mutant, name, edit):
        g = Golden(name)
        text = harness.emit(g.folder, "model")
        self.assertNotEqual(edit(text), text)
        self.check(name, mutant, compile_ir(edit(text), g.folder))

    def in_folder(self, mutant, name, **change):
        folder = checkpoint.edited(Golden(name).folder, os.path.join(harness.folder(name), name), **change)
        self.check(name, mutant, program(folder))

    def test_theta(self):
        """Not a mutant of the manifest; only the bound is tested."""
        g = Golden("qwen3-dense")
        text = harness.emit(g.folder, "model")
        _, rows = compile_ir(edits.theta(text, 1.01e4), g.folder).generate([g.prompt], 1)
        note(self, f"theta 1 % higher moves the logits by {difference(rows[0], g.logits):.3e}")
        self.assertGreater(difference(rows[0], g.logits), 10 * BOUND)


def _add(mutant, name, run):
    setattr(Mutants, f"test_{mutant}_{name}".replace(" ", "_").replace("-", "_"), run)


for _mutant, (_edit, _names) in IR.items():
    for _name in _names:
        _add(_mutant, _name, lambda self, m=_mutant, n=_name, e=_edit: self.in_ir(m, n, e))
for _key, _table in (("tensors", CHECKPOINT), ("config", CONFIG)):
    for _mutant, _models in _table.items():
        for _name, _change in _models:
            _add(_mutant, _name,
                 lambda self, m=_mutant, n=_name, k=_key, c=_change: self.in_folder(m, n, **{k: c}))
