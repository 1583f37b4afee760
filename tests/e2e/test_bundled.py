"""The bundled models: logits and ids of the authors' code, and the tasks that they were trained for."""

import json

import numpy as np

import harness
from harness import BUNDLED, Case, nmse, note, program

NAMES = ("minimind-dense", "minimind-moe")


def golden(name):
    with open(BUNDLED / name / "golden.json", encoding="utf-8") as f:
        return json.load(f)


def heldout(name):
    with open(BUNDLED / name / "heldout.jsonl", encoding="utf-8") as f:
        return [json.loads(line) for line in f]


@harness.for_each(NAMES, "f32")
@harness.for_each(NAMES, "bf16")
@harness.for_each(NAMES, "heldout_f32")
@harness.for_each(NAMES, "heldout_bf16")
@harness.for_each(NAMES, "heldout_cache_int8")
@harness.for_each(NAMES, "text")
@harness.for_each(NAMES, "prefill_equals_steps_across_kernels")
@harness.for_each(NAMES, "pieces_with_cache_int8")
class Bundled(Case):
    def f32(self, name):
        """f32 arithmetic on the bf16 checkpoint, as in the goldens."""
        built = program(BUNDLED / name, "--weights", "f32")
        for run in golden(name)["runs"]:
            expected = np.load(BUNDLED / name / run["logits"])
            ids, rows = built.generate([run["prompt"]], len(run["greedy"]))
            self.assertEqual(ids, [run["greedy"]], run["text"])
            self.close(rows[0][:len(expected)], expected, 1e-5, f"logits of {run['text']!r}")

    def bf16(self, name):
        """The checkpoint's own precision. Most prompts have the same greedy ids: margins may be smaller than rounding errors."""
        built, runs = program(BUNDLED / name), golden(name)["runs"]
        for run in runs:
            expected = np.load(BUNDLED / name / run["logits"])
            _, rows = built.generate([run["prompt"]], 1)
            error = nmse(rows[0], expected)
            note(self, f"NMSE {error:.1e} of {run['text']!r} (bound 1e-03)")
            self.assertLessEqual(error, 1e-3)
            self.same_top(rows[0], expected)

    def same_top(self, got, expected):
        """The same top token if the golden's margin exceeds four times the error (rms)."""
        error = np.sqrt(((got.astype("f8") - expected) ** 2).mean())
        best = np.sort(expected, axis=1)[:, -2:]
        clear = best[:, 1] - best[:, 0] > 4 * error
        self.assertGreater(clear.mean(), 0.5)
        self.assertEqual(got.argmax(1)[clear].tolist(), expected.argmax(1)[clear].tolist())

    def accuracy(self, name, *options):
        """Exact answers of all held-out prompts, in batches: ids up to the end token."""
        built, tasks, right = program(BUNDLED / name, *options), heldout(name), 0
        self.assertEqual(len(tasks), 200)
        for first in range(0, len(tasks), 50):
            batch = tasks[first:first + 50]
            tokens = [a for t in batch for a in ("--tokens", ",".join(map(str, t["prompt_ids"])))]
            done = built.run(*tokens, "-n", max(len(t["answer_ids"]) for t in batch) + 1, "--temperature", 0,
                             "--print-tokens")
            lines = done.stdout.decode().splitlines()
            self.assertEqual(len(lines), len(batch))
            for task, line in zip(batch, lines):
                right += [int(i) for i in line.split()] == task["answer_ids"]
        note(self, f"{right} of {len(tasks)} held-out answers are exact (bound 190)")
        self.assertGreaterEqual(right, 0.95 * len(tasks))

    def heldout_f32(self, name):
        self.accuracy(name, "--weights", "f32")

    def heldout_bf16(self, name):
        self.accuracy(name)

    def heldout_cache_int8(self, name):
        self.accuracy(name, "--kv", "int8")

    def text(self, name):
        """From text to text, with the model's own end token and tokenizer: 3 tasks of each kind."""
        built, tasks, kinds = program(BUNDLED / name), heldout(name), {}
        for task in tasks:
            kinds.setdefault(task["kind"], []).append(task)
        self.assertEqual(len(kinds), 4)
        chosen = [t for k in kinds.values() for t in k[:3]]
        right = 0
        for task in chosen:
            done = built.run("-p", task["prompt"], "-n", 40, "--temperature", 0)
            right += done.stdout.decode() == task["answer"]
        note(self, f"{right} of {len(chosen)} answers are exact as text")
        self.assertGreaterEqual(right, len(chosen) - 1)

    def prefill_equals_steps_across_kernels(self, name):
        """Many rows use oneDNN, few use generated kernels: their logits agree."""
        harness.needs_cpu("avx512bw")
        built = program(BUNDLED / name, "--weights", "f32")
        prompt = [i for t in heldout(name)[:12] for i in t["prompt_ids"] + t["answer_ids"]][:200]
        verbose = {"ONEDNN_VERBOSE": "profile_exec"}
        tokens = ",".join(map(str, prompt))
        many = built.run("--tokens", tokens, "-n", 1, "--print-tokens", env=verbose)
        few = built.run("--tokens", tokens, "-n", 1, "--print-tokens", "--prefill-chunk", 1, env=verbose)
        self.assertIn(b"exec,cpu,matmul", many.stdout)
        self.assertNotIn(b"exec,cpu,matmul", few.stdout)
        _, whole = built.generate([prompt], 1)
        for chunk in (1, 3, 100, 199):
            _, rows = built.generate([prompt], 1, "--prefill-chunk", chunk)
            self.close(rows[0], whole[0], 1e-5, f"chunks of {chunk}")
        ids, batch = built.generate([prompt, prompt[:7], prompt[:61]], 12)
        for i, n in enumerate((200, 7, 61)):
            alone, row = built.generate([prompt[:n]], 12)
            self.assertEqual(ids[i], alone[0])
            self.close(batch[i], row[0], 1e-5, f"sequence {i} of a batch")

    def pieces_with_cache_int8(self, name):
        """Sums in another order may move a number across the boundary between two integers, one step of its head's scale; nothing else may
        differ. Chunks of few rows are bit-identical, also in a batch."""
        built = program(BUNDLED / name, "--weights", "f32", "--kv", "int8")
        prompt = [i for t in heldout(name)[:12] for i in t["prompt_ids"] + t["answer_ids"]][:200]
        _, whole = built.generate([prompt], 1)
        _, steps = built.generate([prompt], 1, "--prefill-chunk", 1)
        for chunk in (3, 16):
            self.assertTrue(np.array_equal(built.generate([prompt], 1, "--prefill-chunk", chunk)[1][0], steps[0]))
        for chunk in (1, 100, 199):
            _, rows = built.generate([prompt], 1, "--prefill-chunk", chunk)
            error = nmse(rows[0], whole[0])
            note(self, f"NMSE {error:.1e} in chunks of {chunk} (bound 1e-04)")
            self.assertLessEqual(error, 1e-4)
        batch = built.generate([prompt, prompt[:7], prompt[:61]], 12, "--prefill-chunk", 5)
        for i, n in enumerate((200, 7, 61)):
            ids, rows = built.generate([prompt[:n]], 12, "--prefill-chunk", 5)
            self.assertEqual(batch[0][i], ids[0])
            self.assertTrue(np.array_equal(batch[1][i], rows[0]), f"sequence {i} of a batch")
