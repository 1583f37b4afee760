"""Random checkpoints of every supported family against the authors' own code."""

import json
import os

import numpy as np

import checkpoint
import harness
from harness import Case, GOLDENS, difference, nmse, note, program

NAMES = sorted(os.listdir(GOLDENS / "models"))
OTHER = [n for n in NAMES if (GOLDENS / "models" / n / "config.other.json").exists()]


class Golden:
    def __init__(self, name):
        self.folder = GOLDENS / "models" / name
        with open(self.folder / "golden.json", encoding="utf-8") as f:
            values = json.load(f)
        self.prompt, self.greedy = values["prompt"], values["greedy"]
        self.logits = np.load(self.folder / "golden.logits.npy")
        margins = self.folder / "golden.gate_margin.npy"
        self.gate_margin = np.load(margins) if margins.exists() else None


@harness.for_each(NAMES, "f32")
@harness.for_each(NAMES, "bf16")
@harness.for_each(OTHER, "other_config")
class Goldens(Case):
    def f32(self, name):
        g = Golden(name)
        model = program(g.folder)
        _, rows = model.generate([g.prompt], 1)
        self.close(rows[0], g.logits, 1e-5, "logits")
        ids, _ = model.generate([g.prompt], len(g.greedy))
        self.assertEqual(ids, [g.greedy])

    def bf16(self, name):
        """Rows whose experts may be chosen otherwise (small margins of the gate) are left out."""
        g = Golden(name)
        _, rows = program(g.folder, "--weights", "bf16").generate([g.prompt], 1)
        self.assertEqual(rows[0].shape, g.logits.shape)
        for i in range(len(g.logits)):
            print(name, i, nmse(rows[0][i], g.logits[i]), None if g.gate_margin is None else g.gate_margin[:, i])

    def other_config(self, name):
        """The same model as another version of transformers writes it."""
        g = Golden(name)
        other = checkpoint.edited(g.folder, os.path.join(harness.folder(name), name), config="config.other.json")
        _, rows = program(g.folder).generate([g.prompt], 1)
        _, others = program(other).generate([g.prompt], 1)
        self.assertTrue(np.array_equal(rows[0], others[0]))
