"""Random checkpoints of every supported family, compared with the authors' own code."""

import json
import os

import numpy as np

import checkpoint
import harness
from harness import Case, GOLDENS, nmse, note, program

NAMES = sorted(os.listdir(GOLDENS / "models"))
MIXTURES = [n for n in NAMES if (GOLDENS / "models" / n / "golden.gate_margin.npy").exists()]
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
        #: Options of the program that computes in f32, which is not the default of block-quantized checkpoints.
        self.exact = ("--weights", "f32") if "quantization_config" in checkpoint.config_of(self.folder) else ()


def comparable(golden, got):
    """Rows in which `got` chose the golden's experts, as far as can be known. If the gate's margin is small, rounding may change the
    choice. Such rows are excluded; if the error of a row shows another choice, the following rows attend to other values, and are excluded
    too."""
    if golden.gate_margin is None:
        return list(range(len(got)))
    rows = []
    for i, margin in enumerate(golden.gate_margin.min(axis=0)):
        if margin >= 0.005:
            rows.append(i)
        elif nmse(got[i], golden.logits[i]) > 1e-3:
            break
    return rows


def clear_rows(logits, error):
    """Rows whose top token leads by more than four times the error `error`, an NMSE."""
    best = np.sort(logits, axis=1)
    return best[:, -1] - best[:, -2] > 4 * np.sqrt(error * (logits.astype("f8") ** 2).mean())


@harness.for_each(NAMES, "f32")
@harness.for_each(NAMES, "bf16")
@harness.for_each(MIXTURES, "bf16_one_token")
@harness.for_each(OTHER, "other_config")
class Goldens(Case):
    def f32(self, name):
        g = Golden(name)
        model = program(g.folder, *g.exact)
        _, rows = model.generate([g.prompt], 1)
        self.close(rows[0], g.logits, 1e-5, "logits")
        ids, _ = model.generate([g.prompt], len(g.greedy))
        self.assertEqual(ids, [g.greedy])

    def bf16(self, name):
        """Rounded weights and rows compared with f32, where the same experts are chosen."""
        g = Golden(name)
        _, (got,) = program(g.folder, "--weights", "bf16").generate([g.prompt], 1)
        self.assertEqual(got.shape, g.logits.shape)
        rows = comparable(g, got)
        error = nmse(got[rows], g.logits[rows])
        self.assertLessEqual(error, 1e-3)
        self.assertLessEqual(max(nmse(got[i], g.logits[i]) for i in rows), 5e-3)
        clear = clear_rows(g.logits[rows], error)
        if g.gate_margin is None:
            self.assertEqual(len(rows), len(got))
        else:
            self.assertGreater(len(rows), 0)  # few in some models: bf16_one_token compares the others
        self.assertGreaterEqual(clear.sum(), 0.7 * len(rows), "top tokens to compare")
        note(self, f"NMSE {error:.1e} (bound 1e-03) over {len(rows)} rows, {clear.sum()} with a clear top token")
        self.assertEqual(got[rows].argmax(1)[clear].tolist(), g.logits[rows].argmax(1)[clear].tolist())

    def bf16_one_token(self, name):
        """Each token alone: rows do not depend on another row's choice of experts, so nearly all can be compared with the f32 program,
        which equals the golden."""
        config = checkpoint.config_of(Golden(name).folder)
        prompts = [[i] for i in range(config.get("text_config", config)["vocab_size"])]
        wide, got = (np.concatenate(program(Golden(name).folder, *options).generate(prompts, 1)[1])
                     for options in (Golden(name).exact, ("--weights", "bf16")))
        same = np.array([nmse(g, w) <= 5e-3 for g, w in zip(got, wide)])
        got, wide = got[same], wide[same]
        error = nmse(got, wide)
        clear = clear_rows(wide, error)
        note(self, f"NMSE {error:.1e} (bound 1e-03), {same.sum()} of {len(same)} tokens with the same experts, "
                   f"{clear.sum()} with a clear top token")
        self.assertGreaterEqual(same.sum(), 0.9 * len(same))
        self.assertLessEqual(error, 1e-3)
        self.assertGreaterEqual(clear.sum(), 0.7 * len(same))
        self.assertEqual(got.argmax(1)[clear].tolist(), wide.argmax(1)[clear].tolist())

    def other_config(self, name):
        """The same model as written by another version of transformers: the same IR, and so the same program."""
        g = Golden(name)
        other = checkpoint.edited(g.folder, os.path.join(harness.folder(name), name), config="config.other.json")
        self.assertEqual(harness.emit(other, "model"), harness.emit(g.folder, "model"))
