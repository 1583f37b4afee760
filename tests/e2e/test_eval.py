"""mica eval: perplexity and divergence, compared with numpy on the logits of the same programs."""

import json
import os
import pathlib
import shutil

import numpy as np

import checkpoint
import harness
from harness import BUNDLED, Case, GOLDENS, execute, note, program, shared

DENSE = BUNDLED / "minimind-dense"


def log_softmax(rows):
    rows = rows.astype("f8") - rows.max(axis=1, keepdims=True)
    return rows - np.log(np.exp(rows).sum(axis=1, keepdims=True))


def bundled_text():
    """Held-out tasks with their answers, concatenated."""
    with open(DENSE / "heldout.jsonl", encoding="utf-8") as f:
        return "".join(t["prompt"] + t["answer"] for t in map(json.loads, f))


def file_of(text):
    path = os.path.join(harness.folder("text"), "text")
    pathlib.Path(path).write_text(text, encoding="utf-8")
    return path


def evaluate(*arguments, **how):
    return json.loads(execute([harness.mica, "eval", "--json", *arguments], **how).stdout)


class Eval(Case):
    def expected(self, built, ids, context, bos=None):
        """Log probabilities of all scored positions, and of the following ids."""
        scored, chosen = [], []
        for begin in range(0, len(ids) - context + 1, context):
            window = list(ids[begin:begin + context])
            if bos is not None:
                window[0] = bos
            _, (rows,) = built.generate([window[:-1]], 1)
            first = context // 2
            logs = log_softmax(rows)[first:]
            scored.append(logs)
            chosen.append(logs[np.arange(len(logs)), window[first + 1:]])
        return np.concatenate(scored), np.concatenate(chosen)

    def compare(self, result, own, chosen):
        loss = -chosen.mean()
        self.assertEqual(result["positions"], len(own))
        self.assertAlmostEqual(result["program"]["perplexity"], np.exp(loss), delta=1e-6 * np.exp(loss))
        error = np.exp(loss) * chosen.std(ddof=1) / np.sqrt(len(chosen))
        self.assertAlmostEqual(result["program"]["perplexity_error"], error, delta=1e-6 * error)

    def test_perplexity_and_divergence(self):
        ids = np.random.default_rng(3).integers(0, 64, 150).tolist()
        file = file_of(" ".join(map(str, ids)))
        f32, bf16 = program(GOLDENS / "models/llama-gqa"), program(GOLDENS / "models/llama-gqa", "--weights", "bf16")
        for context in (40, 7):
            # Rows are computed as in a single chunk: results are bit-identical.
            p, chosen = self.expected(bf16, ids, context)
            q, chosen_by_reference = self.expected(f32, ids, context)
            result = evaluate(bf16.path, "--tokens-file", file, "--reference", f32.path, "--context", context)
            self.assertEqual((result["tokens"], result["context"], result["windows"], result["first_scored"]),
                             (150, context, 150 // context, context // 2))
            self.compare(result, p, chosen)
            kl = (np.exp(q) * (q - p)).sum(axis=1)
            self.assertAlmostEqual(result["kl"]["mean"], kl.mean(), delta=1e-5 * kl.mean())
            self.assertAlmostEqual(result["kl"]["max"], kl.max(), delta=1e-5 * kl.max())
            for key, percent in (("p99", 99), ("p99_9", 99.9)):
                self.assertAlmostEqual(result["kl"][key], np.percentile(kl, percent), delta=1e-5 * kl.max())
            moved = 100 * np.sqrt(((np.exp(chosen) - np.exp(chosen_by_reference)) ** 2).mean())
            self.assertAlmostEqual(result["rms_delta_p"], moved, delta=1e-5 * moved)
            per_window = context - 1 - context // 2
            self.assertEqual((result["kl"]["max_window"], result["kl"]["max_position"] - context // 2),
                             divmod(int(kl.argmax()), per_window))
            self.assertEqual(result["same_top"], (p.argmax(axis=1) == q.argmax(axis=1)).mean())
            note(self, f"context {context}: KL of bf16 {kl.mean():.1e}, same top {result['same_top']:.3f}")

    def test_as_decode(self):
        """The figures of --as-decode are those of the logits that the program computes as in decode, and not those of prefill."""
        ids = np.random.default_rng(7).integers(0, 500, 128).tolist()
        file, window = file_of(" ".join(map(str, ids))), len(ids) // 2
        built, f32 = program(DENSE, "--weights", "int8", "--rows", "int8"), program(DENSE, "--weights", "f32")
        rows = json.loads(built.run("info", "--json").stdout)["manifest"]["rows"]
        self.assertNotEqual(rows["prompt"], rows["decode"])

        def logs(scored, *role):
            """The log probabilities at the scored positions, as `expected` has them."""
            lines = "".join(f"0 0 {' '.join(map(str, ids[begin:begin + window]))}\n" for begin in (0, window))
            rows = np.frombuffer(scored.run("score", *role, stdin=lines.encode()).stdout, "f4").reshape(2, window, -1)
            return log_softmax(rows[:, window // 2:-1].reshape(-1, rows.shape[-1]))

        chosen = np.concatenate([ids[begin + window // 2 + 1:begin + window] for begin in (0, window)])
        results = []
        for role in ((), ("--as-decode",)):
            results.append(evaluate(built.path, "--tokens-file", file, "--reference", f32.path, "--context", window, *role))
            p, q = logs(built, *role), logs(f32, *role)
            kl = (np.exp(q) * (q - p)).sum(axis=1)
            note(self, f"{' '.join(role) or 'prefill'}: KL {kl.mean():.3e}")
            self.assertAlmostEqual(results[-1]["kl"]["mean"], kl.mean(), delta=1e-5 * kl.mean())
            self.compare(results[-1], p, p[np.arange(len(p)), chosen])
        self.assertEqual([result["as_decode"] for result in results], [False, True])
        self.assertGreater(results[0]["kl"]["mean"], 1.2 * results[1]["kl"]["mean"])

    def test_cache_of_integers(self):
        """The divergence of int8 and bf16 caches from an f32 cache, with the same weights."""
        reference, text = program(DENSE, "--kv", "f32"), file_of(bundled_text())
        bounds = {"int8": 2e-4, "bf16": 1e-4}
        for kv, bound in bounds.items():
            result = evaluate(program(DENSE, "--kv", kv).path, "--text", text, "--context", 256, "--reference",
                              reference.path)
            note(self, f"cache {kv}: KL {result['kl']['mean']:.1e} (bound {bound:.0e}), same top {result['same_top']:.4f}")
            self.assertEqual(result["program"]["kv"], kv)
            self.assertTrue(0 < result["kl"]["mean"] <= bound, kv)
            self.assertGreaterEqual(result["same_top"], 0.99, kv)

    def test_a_program_does_not_diverge_from_itself(self):
        built = program(GOLDENS / "models/llama-gqa")
        ids = file_of(",".join(map(str, range(60))))
        result = evaluate(built.path, "--tokens-file", ids, "--reference", built.path)
        self.assertEqual((result["kl"]["mean"], result["kl"]["max"], result["same_top"]), (0, 0, 1))
        self.assertEqual(result["program"]["perplexity"], result["reference"]["perplexity"])

    def test_text(self):
        """A text tokenized by the program: the model predicts its held-out tasks but not shuffled ones."""
        text, built = bundled_text(), program(DENSE)
        result = evaluate(built.path, "--text", file_of(text), "--context", 256)
        shuffled = "".join(np.random.default_rng(1).permutation(list(text)))
        other = evaluate(built.path, "--text", file_of(shuffled), "--context", 256)
        note(self, f"perplexity {result['program']['perplexity']:.3f}, with letters shuffled "
                   f"{other['program']['perplexity']:.0f}")
        # The model can only guess the operands of a sum and the letters to sort, but not the results.
        self.assertLess(result["program"]["perplexity"], 10)
        self.assertGreater(other["program"]["perplexity"], 30)
        ids = json.loads(built.run("-f", file_of(text[:400]), "-n", 0, "--json").stdout)["sequences"][0]["prompt_tokens"]
        same = evaluate(built.path, "--text", file_of(text[:400]), "--context", 50)
        by_ids = evaluate(built.path, "--tokens-file", file_of("\n".join(map(str, ids))), "--context", 50)
        self.assertEqual(same["program"]["perplexity"], by_ids["program"]["perplexity"])

    def test_bits(self):
        result = evaluate(program(DENSE, "--weights", "f32").path, "--text", file_of(bundled_text()), "--windows", 1,
                          "--reference", program(DENSE).path)
        self.assertEqual((result["windows"], result["context"]), (1, 512))
        facts = json.loads(execute([harness.mica, "inspect", DENSE, "--json"]).stdout)
        for side, bits in (("program", 32), ("reference", 16)):
            self.assertEqual(result[side]["parameters"], facts["parameters"])
            self.assertEqual(result[side]["bits"], 8 * result[side]["weight_bytes"] / facts["parameters"])
            # Panels are padded to whole blocks.
            self.assertTrue(bits <= result[side]["bits"] < 1.1 * bits, result[side])
        self.assertLess(result["kl"]["mean"], 1e-3)

    def test_batch_size_and_threads_change_nothing(self):
        built = program(GOLDENS / "models/llama-gqa")
        file = file_of(" ".join(str(i * 7 % 64) for i in range(128)))
        results = [evaluate(built.path, "--tokens-file", file, *o)["program"]["perplexity"]
                   for o in ((), ("--threads", 1), ("--threads", 2), ("--prefill-chunk", 1), ("--prefill-chunk", 16))]
        self.assertEqual(results, results[:1] * 5)

    def test_begin_token(self):
        """If the text begins with BOS, every window does."""
        folder = shared("models/stories260K")
        built = program(folder, "--weights", "f32")
        text = "Once upon a time, there was a little girl. She liked to play with her big red ball in the park. " * 3
        ids = json.loads(built.run("-p", text, "-n", 0, "--json").stdout)["sequences"][0]["prompt_tokens"]
        self.assertEqual(ids[0], 1)
        logs, chosen = self.expected(built, ids, 64, bos=1)
        self.compare(evaluate(built.path, "--text", file_of(text), "--context", 64), logs, chosen)

    def test_table(self):
        built = program(GOLDENS / "models/llama-gqa")
        file = file_of(" ".join(map(str, range(60))))
        done = execute([harness.mica, "eval", built.path, "--tokens-file", file, "--reference", built.path])
        self.assertEqual(done.stderr, b"", "no progress bar in a pipe")
        lines = done.stdout.decode().splitlines()
        self.assertRegex(lines[0], ": 60 tokens, 1 windows of 60$")
        self.assertEqual(lines[1], "scored: positions 30 to 58 of each window, 29 in total")
        self.assertRegex(lines[3], r"^program +\d+\.\d{4} +\d+\.\d{4} +\d\d\.\d\d +\d+  ")
        self.assertRegex(lines[4], "^reference ")
        self.assertRegex(lines[5], r"^KL\(reference \|\| program\)  0\.000e\+00 ")
        self.assertEqual(lines[6], "KL percentiles            99 %: 0.000e+00, 99.9 %: 0.000e+00")
        self.assertRegex(lines[7], r"^same top +100.00 %$")
        self.assertRegex(lines[8], r"^RMS delta p +0.000 percentage points$")
        self.assertEqual(len(lines), 9)

    def test_columns_of_large_numbers_are_separated(self):
        """An output matrix that is a thousand times too large makes the model certain of wrong tokens."""
        def sure(weights):
            for name in weights:
                if name == "model.norm.weight":
                    weights[name] = weights[name] * 1000

        source = GOLDENS / "models/llama-gqa"
        folder = checkpoint.edited(source, os.path.join(harness.folder("sure"), "sure"), tensors=sure)
        file = file_of(" ".join(str(i * 7 % 64) for i in range(60)))
        done = execute([harness.mica, "eval", program(folder).path, "--tokens-file", file, "--reference",
                        program(source).path])
        lines = done.stdout.decode().splitlines()
        self.assertEqual([len(line.replace("std. error", "error").split()) for line in lines[2:5]], [6, 6, 6], lines)
        self.assertRegex(lines[3], r"^program +\d\.\d{4}e\+\d+ +\d\.\d{4}e\+\d+ ")

    def refused(self, status, arguments, *words):
        done = execute([harness.mica, "eval", *arguments], check=False)
        error = done.stderr.decode()
        self.assertEqual((done.returncode, done.stdout), (status, b""), error)
        self.assertEqual(error.count("\n"), 1, error)
        self.assertTrue(error.startswith("mica: error: "), error)
        for word in words:
            self.assertIn(str(word), error)

    def test_refused(self):
        built, other = program(GOLDENS / "models/llama-gqa"), program(DENSE)
        ids, text = file_of("1 2 3 4"), file_of("some text")
        self.refused(2, [built.path], "--text FILE or --tokens-file FILE")
        self.refused(2, [built.path, "--text", text, "--tokens-file", ids], "exclude")
        self.refused(2, [built.path, "--text", text, "--context", "1"], "--context")
        self.refused(1, ["/nonexistent", "--text", text], "/nonexistent")
        self.refused(1, [harness.mica, "--text", text], harness.mica, "is not a Mica program")
        self.refused(1, [built.path, "--text", text], built.path, "has no tokenizer", "--tokens-file")
        self.refused(1, [other.path, "--text", "/nonexistent.txt"], "/nonexistent.txt")
        self.refused(1, [built.path, "--tokens-file", file_of("1 2 64")], "64", "from 0 to 63")
        self.refused(1, [built.path, "--tokens-file", file_of("1 x")], '"x" is not a token id from 0 to 63 (entry 2); use ids of this vocabulary')
        self.refused(1, [built.path, "--tokens-file", file_of("7")], "has 1 token, but scoring needs at least two; use a longer text")
        self.refused(1, [built.path, "--tokens-file", ids, "--context", 200], "128 positions", "--context")
        self.refused(1, [built.path, "--tokens-file", ids, "--reference", other.path], other.path, "512", "64")

    def test_a_program_that_cannot_run(self):
        """An error of the program is reported once, and a crash of the program is reported for it."""
        built = program(GOLDENS / "models/llama-gqa")
        ids = file_of(" ".join(map(str, range(60))))
        copy = os.path.join(harness.folder("copy"), "program")
        shutil.copy(built.path, copy)
        os.chmod(copy, 0o644)
        self.refused(1, [copy, "--tokens-file", ids], f"{copy}: cannot be started (Permission denied); pass an executable program")
        for script, why in (("kill -KILL $$", f"{copy}: was terminated by signal 9 (Killed) while it computed logits"),
                            ("exit 3", f"{copy}: exited without an answer")):
            with open(copy, "r+b") as f:
                f.write(f"#!/bin/sh\n{script}\n".encode())
            os.chmod(copy, 0o755)
            self.refused(1, [copy, "--tokens-file", ids], why)
        shutil.copy(built.path, copy)
        foreign = program(GOLDENS / "models/llama-gqa", "--target", "sapphirerapids").path
        if execute([foreign, "--tokens", "1", "-n", 1], check=False).returncode:
            self.refused(1, [foreign, "--tokens-file", ids], foreign, "compiled for sapphirerapids")
        offset = {s["name"]: s for s in json.loads(built.run("info", "--json").stdout)["sections"]}["weights"]["offset"]
        os.chmod(copy, 0o755)
        with open(copy, "r+b") as f:
            f.seek(offset)
            f.write(b"\xff" * 4096)
        self.refused(1, [copy, "--tokens-file", ids], copy, "not finite")
        self.refused(1, [built.path, "--tokens-file", ids, "--reference", copy], copy, "not finite")
