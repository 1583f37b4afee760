"""The IR is the model: edited text of stage `model` computes the same as an equally edited checkpoint.

The text is compiled with the weights beside it and without config.json.
"""

import os
import re

import numpy as np

import checkpoint
import edits
import harness
from harness import Case, GOLDENS, compile_ir, difference, program
from test_goldens import Golden

UNCHANGED = ("llama-biases", "llama-rope-yarn", "minimind1-dense", "minimind1-moe-shared", "minimind2-moe",
             "minimind3-dense", "qwen3-moe-mixed")


def interleave_rows(weights, config):
    """Permutes rows of q and k so that a `half` rope rotates the pairs of an `interleaved` one."""
    size = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    for name, a in weights.items():
        if re.search(r"self_attn\.[qk]_proj\.(weight|bias)$", name):
            tail = a.shape[1:]
            weights[name] = np.ascontiguousarray(
                a.reshape(-1, size // 2, 2, *tail).swapaxes(1, 2).reshape(a.shape))


def remove_layer(weights, index):
    """Removes the layer's tensors and renumbers later layers."""
    for name in list(weights):
        match = re.match(r"model\.layers\.(\d+)\.(.*)", name)
        if match and int(match[1]) >= index:
            tensor = weights.pop(name)
            if int(match[1]) > index:
                weights[f"model.layers.{int(match[1]) - 1}.{match[2]}"] = tensor


@harness.for_each(UNCHANGED, "unchanged")
class Ir(Case):
    def check(self, name, text, reference):
        """The program compiled from the text equals `reference` and differs from the unedited model."""
        g = Golden(name)
        _, rows = compile_ir(text, g.folder).generate([g.prompt], 1)
        _, expected = program(reference).generate([g.prompt], 1)
        self.close(rows[0], expected[0], 1e-6, "edited IR against edited checkpoint")
        self.assertGreater(difference(rows[0], g.logits), 1e-3, "the edit must show")

    def edited(self, name, **changes):
        return checkpoint.edited(GOLDENS / "models" / name, os.path.join(harness.folder(name), name), **changes)

    def unchanged(self, name):
        g = Golden(name)
        _, rows = compile_ir(harness.emit(g.folder, "model"), g.folder).generate([g.prompt], 1)
        self.close(rows[0], g.logits, 1e-5, "logits")

    def test_theta(self):
        name = "minimind2-dense"
        self.check(name, edits.theta(harness.emit(Golden(name).folder, "model"), 5e4),
                   self.edited(name, config=lambda c: c.update(rope_theta=5e4)))

    def test_theta_with_yarn(self):
        name = "minimind2-dense-yarn-long"
        self.check(name, edits.theta(harness.emit(Golden(name).folder, "model"), 5e4),
                   self.edited(name, config=lambda c: c.update(rope_theta=5e4)))

    def test_yarn_without_truncation(self):
        name = "llama-rope-yarn"
        text = harness.emit(Golden(name).folder, "model")
        edited = re.sub(r"(high_limit = \d+)>", r"\1, truncate = false>", text)
        self.assertNotEqual(edited, text)

        def not_truncated(config):
            (config.get("rope_parameters") or config["rope_scaling"])["truncate"] = False

        self.check(name, edited, self.edited(name, config=not_truncated))

    def layer_removed(self, name, index):
        text = harness.emit(Golden(name).folder, "model")
        cut = edits.without_layer_call(text, index)
        self.assertEqual(len(re.findall(r"= call @", text)), len(re.findall(r"= call @", cut)) + 1)

        def fewer(config):
            config["num_hidden_layers"] -= 1
            if "mlp_only_layers" in config:
                config["mlp_only_layers"] = [i - 1 for i in config["mlp_only_layers"] if i > index]

        self.check(name, cut, self.edited(name, config=fewer, tensors=lambda w: remove_layer(w, index)))

    def test_first_layer_removed(self):
        self.layer_removed("llama-gqa", 0)

    def test_last_layer_removed(self):
        self.layer_removed("minimind3-dense", -1 % checkpoint.config_of(
            GOLDENS / "models/minimind3-dense")["num_hidden_layers"])

    def test_sparse_layer_removed(self):
        self.layer_removed("minimind2-moe", 1)

    def test_pairing(self):
        for name in ("llama-gqa", "llama-biases"):
            with self.subTest(name):
                config = checkpoint.config_of(GOLDENS / "models" / name)
                text = edits.pairing(harness.emit(Golden(name).folder, "model"))
                self.assertEqual((text.count(" half "), text.count(" interleaved ")), (0, 2))
                self.check(name, text, self.edited(name, tensors=lambda w, c=config: interleave_rows(w, c)))
