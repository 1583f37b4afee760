"""`mica verify`: compares the program with the interpreter, op by op."""

import json
import os
import pathlib
import re
import shutil

import numpy

import checkpoint
import gguf_file
import harness
from harness import BUNDLED, Case, execute, GOLDENS, note
from test_eval import bundled_text, file_of

FORMATS = {"f32": (), "bf16": (), "int8": (), "int4": ("--kv", "int8")}


def verify(model, *options, check=True):
    return execute([harness.mica, "verify", model, *options], check=check)


def found(*arguments):
    return json.loads(verify(*arguments, "--json").stdout)


def spoilt(model, tensor, rows=0.125):
    """A copy of the model in which the first rows of a matrix are zero."""
    def change(weights):
        matrix = weights[tensor].copy()
        matrix[: max(1, int(len(matrix) * rows))] = 0
        weights[tensor] = matrix
    return checkpoint.edited(model, os.path.join(harness.folder("broken"), "model"), tensors=change)


def deepened(model, full):
    """A copy of the model with a layer for each of `full`, which says whether it has no window. Weights are repeated."""
    layers = len(full)

    def change(config):
        own = config["num_hidden_layers"]
        config["num_hidden_layers"] = layers
        config["layer_types"] = ["full_attention" if is_full else "sliding_attention" for is_full in full]
        change.own = own

    def repeat(weights):
        for name in list(weights):
            for layer in range(change.own, layers):
                weights[name.replace(f"model.layers.{layer % change.own}.", f"model.layers.{layer}.")] = weights[name]
    return checkpoint.edited(model, os.path.join(harness.folder("deeper"), "model"), config=change, tensors=repeat)


@harness.for_each(("minimind-moe", "deepseek-v2", "gemma3-text", "qwen3-dense"), "every_format")
class Verify(Case):
    def test_alternating_layer_types(self):
        """Loops over two and three layer types, some with remaining layers after the loop."""
        for name, period, layers in (("gemma2", 2, 7), ("gemma3-text", 3, 6), ("gpt-oss", 2, 6)):
            self.deep(name, [i % period == period - 1 for i in range(layers)])

    def test_irregular_layer_types(self):
        """Loops with several layer types in no fixed order."""
        for name in ("gemma2", "gpt-oss"):
            self.deep(name, [kind == "f" for kind in "ffsfsssfssfffsfs"])

    def deep(self, name, full):
        result = found(deepened(GOLDENS / "models" / name, full), "--positions", "40")
        note(self, f"{name}, {len(full)} layers: worst op {max(op['nmse'] for op in result['ops']):.1e}")
        self.assertEqual({op["layer"] for op in result["ops"] if op["layer"] is not None}, set(range(len(full))))
        self.assertTrue(result["passed"])

    def test_programs_equal_the_interpreter(self):
        """Each precision is within its bounds, and errors increase with fewer bits."""
        errors = []
        for weights in FORMATS:
            got = found(BUNDLED / "minimind-dense", "--weights", weights, "--positions", 64)
            self.assertTrue(got["passed"], got)
            self.assertIsNone(got["fault"])
            self.assertEqual((got["weights"], got["positions"]), (weights, 64))
            layers = [op["layer"] for op in got["ops"] if op["op"] == "attention"]
            self.assertEqual(layers, [0, 1, 2])
            errors.append(got["logits"]["nmse"])
            note(self, f"{weights}: NMSE of logits {errors[-1]:.1e}, worst op {max(op['nmse'] for op in got['ops']):.1e}, "
                 f"from f32 {max(op['nmse_from_f32'] for op in got['ops']):.1e}")
        self.assertEqual(errors, sorted(errors))

    def every_format(self, name):
        """Trained or not: the loss of a format is not an error."""
        for weights, options in FORMATS.items():
            model = BUNDLED / name if name.startswith("minimind") else GOLDENS / "models" / name
            got = found(model, "--weights", weights, *options, "--positions", 40)
            self.assertTrue(got["passed"], f"{weights}: {got['fault']}, {got['logits']}")

    def test_trained_models_are_within_the_bf16_tolerance(self):
        """With a text that a trained model predicts well."""
        place = file_of(bundled_text())
        got = found(BUNDLED / "minimind-dense", "--weights", "bf16", "--text", place, "--positions", 1000)
        note(self, f"1000 positions: KL {got['kl']:.1e}, same top {got['same_top']:.4f}")
        self.assertTrue(got["passed"], got["bounds"])
        self.assertEqual((got["bounds"]["kl"], got["bounds"]["same_top"]), (1e-3, 0.99))
        self.assertGreaterEqual(got["same_top"], 0.99)
        self.assertIsNone(found(BUNDLED / "minimind-dense", "--weights", "bf16")["bounds"]["same_top"])

    def test_both_sides_of_a_threshold(self):
        """Enough positions to exceed windows and thresholds, or a message that they do not."""
        longrope, window = GOLDENS / "models" / "phi3-longrope", GOLDENS / "models" / "mistral"
        got = found(longrope, "--weights", "f32")
        self.assertTrue(got["passed"], got["fault"])
        self.assertEqual((got["positions"], got["not_reached"]), (128, []))
        got = found(longrope, "--weights", "f32", "--positions", 64)
        self.assertEqual(got["not_reached"], ["the rope's other frequencies: more than 64 positions"])
        got = found(window, "--weights", "f32", "--positions", 12)
        self.assertEqual(got["not_reached"], ["the end of a window: more than 12 positions"])
        table = verify(window, "--positions", 12).stdout.decode()
        self.assertIn("not reached; see --positions: the end of a window: more than 12 positions\n", table)
        done = verify(window, "--positions", 129, check=False)
        self.assertEqual((done.returncode, done.stderr.decode()),
                         (1, f"mica: error: {window}: --positions 129 exceeds the program's context of 128; "
                             "use fewer\n"))

    def test_int8_cache_with_f32_weights(self):
        got = found(BUNDLED / "minimind-dense", "--weights", "f32", "--kv", "int8", "--positions", 64)
        self.assertTrue(got["passed"], got["fault"])

    def test_text_and_table(self):
        place = harness.folder("verified")
        text = os.path.join(place, "text")
        with open(text, "w", encoding="utf-8") as file:
            file.write("Q: 27 + 15 = ?\nA: 42\n" * 10)
        table = verify(BUNDLED / "minimind-moe", "--text", text, "--weights", "f32", "--positions", 48).stdout.decode()
        for words in ("layer  op", "moe_experts", "attention", "logits", "same top  100.0 %"):
            self.assertIn(words, table)
        self.assertEqual(table.splitlines()[-1], "verdict   passed: every op is within its tolerance; logits are within their tolerance")

    def test_the_verdict_comes_last(self):
        """It includes the reason if logits are not checked."""
        model = BUNDLED / "minimind-dense"
        broken = spoilt(model, "model.layers.1.mlp.down_proj.weight")
        ints = "logits are not checked because quantization changes them (measure with `mica eval`)"
        ids = "logits are not checked because predictions for random ids are not meaningful (see --text)"
        stored = "logits are not checked because the models are stored in different formats"
        good, bad = "passed: every op is within its tolerance; ", "FAILED: an op exceeds its tolerance; "
        gguf = gguf_file.Converter(model, "F16").convert().write(pathlib.Path(harness.folder("f16")) / "model.gguf")
        for arguments, words in ((("--weights", "int8"), good + ints), (("--weights", "int4"), good + ints),
                                 (("--weights", "bf16"), good + ids), (("--weights", "f32"), good + "logits are within their tolerance"),
                                 (("--weights", "int8", "--against", broken), bad + ints),
                                 (("--weights", "f32", "--against", broken), bad + "logits exceed their tolerance"),
                                 (("--weights", "f32", "--against", gguf), good + stored)):
            done = verify(model, *arguments, "--positions", 48, check=False)
            self.assertEqual(done.stdout.decode().splitlines()[-1], "verdict   " + words)
            self.assertEqual(done.returncode, 0 if words.startswith("passed") else 1)

    def finds(self, broken, model, place, *options):
        """The first wrong op is in that layer, and no other one is wrong."""
        done = verify(broken, "--against", model, *options, "--positions", 48, "--json", check=False)
        self.assertEqual(done.returncode, 1, done.stderr.decode())
        got = json.loads(done.stdout)
        self.assertIn(f"exceeds the tolerance of its precision, first at {got['fault']}: check that layer's weights and kernels",
                      done.stderr.decode())
        # If prefill and decoding are computed differently, the phase is reported.
        self.assertEqual(re.sub(r" \((prompt|decode)\)$", "", got["fault"]), place)
        over = [(op["layer"], op["op"]) for op in got["ops"] if op["nmse"] > got["bounds"]["op_nmse"]]
        self.assertEqual(len(over), 1, over)

    def test_a_fault_in_one_layer_is_found_there(self):
        """Rows of a matrix of layer 1 were changed."""
        model = BUNDLED / "minimind-dense"
        broken = spoilt(model, "model.layers.1.mlp.down_proj.weight")
        for weights in FORMATS:
            self.finds(broken, model, "layer 1, linear down_proj", "--weights", weights)
        verify(broken, "--weights", "bf16", "--positions", 48)

    def test_a_fault_in_one_expert(self):
        model = BUNDLED / "minimind-moe"
        broken = spoilt(model, "model.layers.2.mlp.experts.3.up_proj.weight")
        for weights in ("bf16", "int4"):
            self.finds(broken, model, "layer 2, moe_experts gate_up_proj", "--weights", weights)

    def test_a_near_tie_is_not_an_error(self):
        """The scores of three of four experts are nearly equal for every row: the order of sums decides."""
        model = BUNDLED / "minimind-moe"

        def change(share):
            def edit(weights):
                name = "model.layers.1.mlp.gate.weight"
                gate = weights[name] = (weights[name].astype("u4") << 16).view("<f4")
                signs = numpy.where(numpy.arange(gate.shape[1]) % 3 < 2, 1, -1)
                for expert, sign in ((1, 1), (2, -1)):
                    gate[expert] = gate[0] * (1 + share * sign * signs)
            return edit
        tied, other = (checkpoint.edited(model, os.path.join(harness.folder(name), "model"), tensors=change(share))
                       for name, share in (("tied", 1e-7), ("other", 1e-2)))
        for weights in ("f32", "bf16"):
            got = found(tied, "--weights", weights, "--positions", 64)
            self.assertTrue(got["passed"], got["fault"])
            self.assertGreater(got["near_ties"]["ops"], 0)
            self.assertGreater(got["near_ties"]["logits"], 0)
        table = verify(tied, "--weights", "f32", "--positions", 64).stdout.decode()
        self.assertRegex(table, r"near-tied routing, resolved as in the program: \d+ rows of ops, \d+ of the logits\n")
        # A wrong expert is still found.
        broken = spoilt(tied, "model.layers.1.mlp.experts.2.up_proj.weight")
        self.finds(broken, tied, "layer 1, moe_experts gate_up_proj", "--weights", "f32")
        # So are other choices that are not ties.
        done = verify(other, "--against", tied, "--weights", "f32", "--positions", 64, "--json", check=False)
        self.assertEqual((done.returncode, json.loads(done.stdout)["fault"]), (1, "layer 1, moe_gate gate"))
        self.assertIn("first at layer 1, moe_gate gate: check that layer's weights", done.stderr.decode())

    def test_a_fault_in_a_latent(self):
        """In a matrix that computes keys from latents, which the caches do not hold."""
        model = GOLDENS / "models" / "deepseek-v2"
        broken = spoilt(model, "model.layers.1.self_attn.kv_b_proj.weight")
        self.finds(broken, model, "layer 1, head_linear kv_b_proj_keys", "--weights", "f32")
        self.finds(broken, model, "layer 1, head_linear kv_b_proj_keys", "--weights", "int8")

    def test_a_fault_in_preserved_blocks(self):
        """One bit of a scale in the file; and the folder from which the file was converted."""
        model = BUNDLED / "minimind-dense"
        for kind in ("Q8_0", "Q4_0"):
            place = pathlib.Path(harness.folder("blocks"))
            converter = gguf_file.Converter(model, kind)
            whole = converter.convert().write(place / "whole.gguf")
            tensors = converter.file.tensors
            index = next(i for i, tensor in enumerate(tensors) if tensor[0] == "blk.2.attn_output.weight")
            name, shape, stored, data = tensors[index]
            tensors[index] = name, shape, stored, data[:1] + bytes([data[1] ^ 4]) + data[2:]
            broken = converter.file.write(place / "broken.gguf")
            self.finds(broken, whole, "layer 2, linear o_proj")
            got = found(whole, "--against", model, "--positions", 48)
            self.assertTrue(got["passed"], got["fault"])
            # What the folder has in f32 was rounded again: a less precise check.
            self.finds(whole, spoilt(model, "model.layers.1.mlp.down_proj.weight", rows=0.125 if kind == "Q8_0" else 1), "layer 1, linear down_proj")

    def test_reference_of_another_shape(self):
        done = verify(BUNDLED / "minimind-dense", "--against", BUNDLED / "minimind-moe", check=False)
        self.assertEqual(done.returncode, 1)
        op = re.search("has no op '(.*)' of", done.stderr.decode())[1]
        self.assertIn(f"has no op '{op}' of the program's shape; pass a model of the same shape to --against", done.stderr.decode())

    def test_unusable_texts(self):
        short = file_of("a")
        for model, text, why in ((BUNDLED / "minimind-dense", short, f"{short}: has fewer than two tokens; use a longer text"),
                                 (GOLDENS / "models/llama-gqa", short, "has no tokenizer, which --text needs; leave --text out")):
            done = verify(model, "--text", text, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn(why, done.stderr.decode())

    def test_no_temporary_files_remain(self):
        place = harness.folder("temporary")
        execute([harness.mica, "verify", BUNDLED / "minimind-dense", "--json", "--positions", "9"], env={**os.environ, "TMPDIR": place})
        self.assertEqual(os.listdir(place), [])
        shutil.rmtree(place)
        done = execute([harness.mica, "verify", BUNDLED / "minimind-dense"], env={**os.environ, "TMPDIR": place}, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot create a temporary file (No such file or directory); set TMPDIR to a folder with free space", done.stderr.decode())
