"""Weights of 8 and 4 bits: what they lose, and what they must not change."""

import os

import numpy as np

import checkpoint
import harness
import outlier_twin
from harness import BUNDLED, Case, note, program
from test_bundled import heldout

NAMES = ("minimind-dense", "minimind-moe")
WIDTHS = ("int8", "int4")


def sequences(name, count=4, length=500):
    """Held-out prompts with their answers, one after the other."""
    ids = [i for t in heldout(name) for i in t["prompt_ids"] + t["answer_ids"]]
    return [ids[i * length:(i + 1) * length] for i in range(count)]


def rows_of(built, name):
    return np.concatenate([built.generate([ids], 1)[1][0][:len(ids)] for ids in sequences(name)]).astype("f8")


def divergence(reference, got):
    """Mean Kullback-Leibler divergence of the next token's distribution from the reference's, in nats."""
    def log_softmax(x):
        x = x - x.max(axis=1, keepdims=True)
        return x - np.log(np.exp(x).sum(axis=1, keepdims=True))
    p, q = log_softmax(reference), log_softmax(got)
    return float((np.exp(p) * (p - q)).sum(axis=1).mean())


@harness.for_each(NAMES, "heldout_int8")
@harness.for_each(NAMES, "rows_do_not_depend_on_the_way")
class Integers(Case):
    def heldout_int8(self, name):
        """Sums, sorting and counting survive 8 bits: exact answers, one prompt at a time."""
        built, tasks = program(BUNDLED / name, "--weights", "int8"), heldout(name)[:60]
        right = 0
        for task in tasks:
            ids, _ = built.generate([task["prompt_ids"]], len(task["answer_ids"]))
            right += ids[0] == task["answer_ids"]
        note(self, f"{right} of {len(tasks)} held-out answers are exact")
        self.assertGreaterEqual(right, 0.9 * len(tasks))

    def test_dense_divergence(self):
        """Against f32 over 2000 positions, the model as it is and its twin with channels that stand out."""
        name = "minimind-dense"
        expected = rows_of(program(BUNDLED / name, "--weights", "f32"), name)
        twin = os.path.join(harness.folder("outliers"), "twin")
        checkpoint.edited(BUNDLED / name, twin, tensors=outlier_twin.add_outliers)
        same = rows_of(program(twin, "--weights", "f32"), name)
        self.close(same, expected, 1e-5, "the twin in f32")
        for folder in (BUNDLED / name, twin):
            for width, bound in (("int8", 2e-3), ("int4", 1e-2)):
                lost = divergence(expected, rows_of(program(folder, "--weights", width), name))
                note(self, f"{os.path.basename(folder)} {width}: divergence {lost:.1e} (bound {bound:.0e})")
                self.assertLessEqual(lost, bound)

    def rows_do_not_depend_on_the_way(self, name):
        """Sums of integers are exact: single steps, chunks, threads and oneDNN give the same bits."""
        ids = sequences(name, 1, 120)[0]
        for width in WIDTHS:
            built = program(BUNDLED / name, "--weights", width)
            _, whole = built.generate([ids], 1)
            for chunk in (1, 7, 64):
                _, rows = built.generate([ids], 1, "--prefill-chunk", chunk)
                self.assertTrue(np.array_equal(rows[0], whole[0]), f"{width}, chunks of {chunk}")
            _, alone = built.generate([ids], 1, "--threads", 1)
            self.assertTrue(np.array_equal(alone[0], whole[0]), f"{width}, one thread")
