"""`mica verify`: the program beside the interpreter, op by op."""

import json
import os
import shutil

import checkpoint
import harness
from harness import BUNDLED, Case, execute, note


def verify(model, *options, check=True):
    return execute([harness.mica, "verify", model, *options], check=check)


class Verify(Case):
    def test_programs_are_what_the_interpreter_says(self):
        """Each precision within its bounds, and errors that grow with fewer bits."""
        errors = []
        for weights in ("f32", "bf16", "int8", "int4"):
            found = json.loads(verify(BUNDLED / "minimind-dense", "--weights", weights, "--json").stdout)
            self.assertTrue(found["passed"], found)
            self.assertIsNone(found["fault"])
            self.assertEqual((found["weights"], found["positions"]), (weights, 48))
            layers = [op["layer"] for op in found["ops"] if op["op"] == "attention"]
            self.assertEqual(layers, [0, 1, 2])
            errors.append(found["logits"]["nmse"])
            note(self, f"{weights}: NMSE of logits {errors[-1]:.1e}, worst op {max(op['nmse'] for op in found['ops']):.1e}")
        self.assertEqual(errors, sorted(errors))

    def test_caches_are_coarser_than_weights(self):
        found = json.loads(verify(BUNDLED / "minimind-dense", "--weights", "f32", "--kv", "int8", "--json").stdout)
        self.assertTrue(found["passed"], found["fault"])

    def test_text_and_table(self):
        place = harness.folder("verified")
        text = os.path.join(place, "text")
        with open(text, "w", encoding="utf-8") as file:
            file.write("Q: 27 + 15 = ?\nA: 42\n" * 10)
        table = verify(BUNDLED / "minimind-moe", "--text", text, "--weights", "f32").stdout.decode()
        for words in ("layer  op", "moe_experts", "attention", "logits", "same top  100.0 %"):
            self.assertIn(words, table)

    def test_a_fault_in_one_layer_is_found_there(self):
        """Rows of one matrix of layer 1 were changed on the way: the first op that is wrong is that layer's."""
        def change(weights):
            down = weights["model.layers.1.mlp.down_proj.weight"].copy()
            down[: len(down) // 8] = 0
            weights["model.layers.1.mlp.down_proj.weight"] = down
        model = BUNDLED / "minimind-dense"
        broken = checkpoint.edited(model, os.path.join(harness.folder("broken"), "model"), tensors=change)
        for weights in ("bf16", "int8"):
            done = verify(broken, "--against", model, "--weights", weights, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("first at layer 1, linear down_proj", done.stderr.decode())
        verify(broken, "--weights", "bf16")

    def test_models_must_fit(self):
        done = verify(BUNDLED / "minimind-dense", "--against", BUNDLED / "minimind-moe", check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("give a model of the same shape to --against", done.stderr.decode())

    def test_nothing_stays_behind(self):
        place = harness.folder("temporary")
        execute([harness.mica, "verify", BUNDLED / "minimind-dense", "--json"], env={**os.environ, "TMPDIR": place})
        self.assertEqual(os.listdir(place), [])
        shutil.rmtree(place)
        done = execute([harness.mica, "verify", BUNDLED / "minimind-dense"], env={**os.environ, "TMPDIR": place}, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("set TMPDIR to a folder with room", done.stderr.decode())
