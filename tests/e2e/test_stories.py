"""A real trained model: ids, logits and text of an independent implementation."""

import subprocess
import sys

import numpy as np

import harness
from harness import Case, program, shared

RUNS = ("noprompt", "OnedayTim", "Thecat")
PROMPTS = {"noprompt": None, "OnedayTim": "One day, Tim", "Thecat": "The cat"}
IDS = {"noprompt": 1, "OnedayTim": 5, "Thecat": 4}


def golden(name):
    """The prompt's ids, the following ids and the logits of all positions."""
    folder = shared("models/stories260K")
    rows = [[int(v) for v in line.split()]
            for line in (folder / f"golden_greedy_{name}.tokens.txt").read_text().splitlines()]
    fed = [row[1] for row in rows]
    logits = np.fromfile(folder / f"golden_greedy_{name}.logits.f32", "<f4").reshape(len(rows), -1)
    n = IDS[name]
    return fed[:n], fed[n:] + [rows[-1][2]], logits


@harness.for_each(RUNS, "golden_ids_and_logits")
@harness.for_each(RUNS, "llama2c_file_as_minimind1")
@harness.for_each(RUNS, "text")
class Stories(Case):
    def golden_ids_and_logits(self, name):
        prompt, ids, logits = golden(name)
        model = program(shared("models/stories260K"), "--weights", "f32")
        for threads in (1, 2):
            got, rows = model.generate([prompt], len(ids), "--threads", threads)
            self.assertEqual(got, [ids], f"{threads} threads")
            self.close(rows[0], logits, 1e-4, f"logits, {threads} threads")

    def llama2c_file_as_minimind1(self, name):
        """The same weights in Meta's order, with interleaved rope."""
        source = shared("models/stories260K/stories260K.bin")

        def convert():
            target = harness.folder("minimind1")
            subprocess.run([sys.executable, str(harness.GOLDENS / "llama2c_to_minimind1.py"), str(source), target],
                           check=True)
            return target

        prompt, ids, logits = golden(name)
        model = program(harness.once("llama2c", convert))
        self.assertIn("interleaved", harness.emit(harness.once("llama2c", convert), "model"))
        got, rows = model.generate([prompt], len(ids))
        self.assertEqual(got, [ids])
        self.close(rows[0], logits, 1e-4, "logits")

    def text(self, name):
        """From text to text with the model's own tokenizer."""
        folder = shared("models/stories260K")
        _, ids, _ = golden(name)
        model = program(folder, "--weights", "f32")
        prompt = PROMPTS[name]
        done = model.run("-n", len(ids), "--temperature", "0", *(("-p", prompt) if prompt else ()))
        expected = (folder / f"golden_greedy_{name}.txt").read_text()
        self.assertEqual(((prompt or "") + done.stdout.decode()).strip(), expected.strip())
