"""Random checkpoints of every supported family against the authors' own code."""

import json
import os

import numpy as np

import checkpoint
import harness
from harness import Case, GOLDENS, nmse, note, program

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


def comparable(golden, got):
    """Rows in which `got` chose the golden's experts, as far as one can know.

    Where the gate's margin is small, rounding may choose another expert. Such rows do not count; when one shows another
    choice by its error, what later rows attend to has changed, and they do not count either.
    """
    if golden.gate_margin is None:
        return list(range(len(got)))
    rows = []
    for i, margin in enumerate(golden.gate_margin.min(axis=0)):
        if margin >= 0.005:
            rows.append(i)
        elif nmse(got[i], golden.logits[i]) > 1e-3:
            break
    return rows


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
        """Rounded weights and rows against f32, where the same experts are chosen."""
        g = Golden(name)
        _, (got,) = program(g.folder, "--weights", "bf16").generate([g.prompt], 1)
        self.assertEqual(got.shape, g.logits.shape)
        rows = comparable(g, got)
        error = nmse(got[rows], g.logits[rows])
        self.assertLessEqual(error, 1e-3)
        self.assertLessEqual(max(nmse(got[i], g.logits[i]) for i in rows), 5e-3)
        best = np.sort(g.logits[rows], axis=1)
        clear = best[:, -1] - best[:, -2] > 4 * np.sqrt(error * (g.logits[rows].astype("f8") ** 2).mean())
        note(self, f"NMSE {error:.1e} (bound 1e-03) over {len(rows)} rows, {clear.sum()} with a clear top token")
        self.assertEqual(got[rows].argmax(1)[clear].tolist(), g.logits[rows].argmax(1)[clear].tolist())

    def other_config(self, name):
        """The same model as another version of transformers writes it."""
        g = Golden(name)
        other = checkpoint.edited(g.folder, os.path.join(harness.folder(name), name), config="config.other.json")
        _, rows = program(g.folder).generate([g.prompt], 1)
        _, others = program(other).generate([g.prompt], 1)
        self.assertTrue(np.array_equal(rows[0], others[0]))
