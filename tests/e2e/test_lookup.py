"""--lookup: drafts from the text so far only change the number of passes."""

import json
import os

import numpy as np

import checkpoint
import harness
from harness import BUNDLED, Case, GOLDENS, note, program, shared
from test_gguf import converted

MODELS = ("minimind-dense", "minimind-moe", "stories260K", "llama-gqa", "qwen3-moe", "minimind1-dense")
WEIGHTS = ("f32", "bf16")
# Rejected drafts are removed from a rolling state, from matrices of Mamba 2 (alone, or beside attention in the same layer), and from caches
# with windows. test_families compiles most of these programs as well.
STATES = ("lfm2", "granite-hybrid-dense", "falcon-h1", "gemma4-text")


def folder_of(model):
    if model == "stories260K":
        return shared("models/stories260K")
    return (BUNDLED if model.startswith("minimind-") else GOLDENS / "models") / model


def prompts_of(built):
    """A repetitive text, another text, and one with a single id."""
    vocabulary = json.loads(built.run("info", "--json").stdout)["vocab"]
    ids = np.random.default_rng(5).integers(3, vocabulary, 40).tolist()
    return [ids[:6] * 5, ids, ids[:1]]


def ids_of(done):
    return [[int(i) for i in line.split()] for line in done.stdout.decode().splitlines()]


@harness.for_each([f"{m}_{w}" for m in MODELS for w in WEIGHTS] +
                  ["minimind-dense_int8", "minimind-dense_int4", "minimind-moe_int8", "minimind-dense_int8_int8",
                   "minimind-dense_blocks"] + [f"{m}_int8_int8" for m in STATES],
                  "same_text")
@harness.for_each(MODELS, "same_samples")
class Lookup(Case):
    def same_text(self, model_weights):
        model, weights, *kv = model_weights.split("_")
        built = (program(converted(model, "Q4_K")[0]) if weights == "blocks" else
                 program(folder_of(model), "--weights", weights, *(("--kv", *kv) if kv else ())))
        n, accepted, rejected = 60, 0, 0
        for prompt in prompts_of(built):
            plain, rows = built.generate([prompt], n, "--threads", 1)
            for threads in (1, 2):
                for maximum in (1, 7, 15, 31):
                    options = ("--lookup", maximum, "--threads", threads)
                    drafted, same = built.generate([prompt], n, *options)
                    self.assertEqual(drafted, plain, options)
                    self.assertTrue(np.array_equal(same[0], rows[0]), f"logits to the bit, {options}")
            counts = self.counted(built, [prompt], n)
            accepted += counts["accepted"]
            rejected += counts["drafted"] - counts["accepted"]
        note(self, f"{accepted} of {3 * n} ids were drafted and right, {rejected} drafted and wrong")
        self.assertGreater(accepted, 0)
        self.assertGreater(rejected, 0)

    def counted(self, built, prompts, n, *arguments):
        tokens = [a for p in prompts for a in ("--tokens", ",".join(map(str, p)))]
        done = json.loads(built.run(*tokens, "-n", n, "--temperature", 0, "--ignore-eos", "--json", "--lookup", 15,
                                    *arguments).stdout)
        made = sum(len(s["tokens"]) for s in done["sequences"])
        self.assertLessEqual(done["lookup"]["accepted"], done["lookup"]["drafted"])
        if len(prompts) == 1:
            # Each pass produces one id plus the accepted drafts.
            self.assertEqual(done["lookup"]["calls"] + done["lookup"]["accepted"], made - 1)
        self.assertEqual(done["decode"]["tokens"], made - len(prompts))
        return done["lookup"]

    def same_samples(self, model):
        built = program(folder_of(model))
        for seed in range(3):
            for prompt in prompts_of(built):
                options = ("--tokens", ",".join(map(str, prompt)), "-n", 50, "--print-tokens", "--ignore-eos",
                           "--temperature", 0.7, "--repetition-penalty", 1.1, "--seed", seed)
                self.assertEqual(ids_of(built.run(*options, "--lookup", 15)), ids_of(built.run(*options)))

    def test_batch(self):
        built = program(BUNDLED / "minimind-dense")
        prompts = prompts_of(built) * 2
        plain, _ = built.generate(prompts, 40)
        drafted, _ = built.generate(prompts, 40, "--lookup", 15)
        self.assertEqual(drafted, plain)
        # 32 rows at most: with twenty sequences, none is left for drafts.
        many = [[5, 6, 7]] * 20
        self.assertEqual(self.counted(built, many, 10)["drafted"], 0)
        self.assertGreater(self.counted(built, many[:4], 40)["accepted"], 0)

    def test_end_and_context(self):
        built = program(BUNDLED / "minimind-dense")
        with open(BUNDLED / "minimind-dense/heldout.jsonl", encoding="utf-8") as f:
            tasks = [json.loads(line) for line in f][:40]
        for task in tasks:
            options = ("--tokens", ",".join(map(str, task["prompt_ids"])), "--temperature", 0, "--print-tokens", "-n", 30)
            self.assertEqual(built.run(*options, "--lookup", 15).stdout, built.run(*options).stdout)
        short = program(GOLDENS / "models/llama-gqa", "--max-seq", "32")
        options = ("--tokens", "5,6,7", "-n", 100, "--temperature", 0, "--print-tokens", "--ignore-eos")
        plain, drafted = short.run(*options), short.run(*options, "--lookup", 15)
        self.assertEqual((drafted.stdout, drafted.stderr), (plain.stdout, plain.stderr))
        self.assertEqual(len(ids_of(plain)[0]), 30)

    def test_real_texts(self):
        """A call of the model produces more than two ids, whatever the text; this tokenizer produces small tokens."""
        script = harness.ROOT / "tests/bench/lookup.py"
        longer = os.path.join(harness.folder("longer"), "longer")
        checkpoint.edited(BUNDLED / "minimind-dense", longer, config=lambda c: c.update(max_position_embeddings=2048))
        done = harness.execute(["/usr/bin/python3", script, program(longer).path, "--pairs", 1])
        rows = {cells[1]: cells[2:7] for cells in
                ([c.strip() for c in line.split("|")] for line in done.stdout.decode().splitlines()[2:])}
        self.assertEqual(list(rows), ["list", "code", "code, edited", "quoted passage"])
        for name, (ids, per_call, *speeds) in rows.items():
            note(self, f"{name}: {ids} ids, {per_call} per call, {speeds[2]} times as fast")
            self.assertGreater(float(per_call), 2.2, name)
        self.assertEqual(done.stderr, b"")

    def test_text_beyond_the_context(self):
        """Texts that fit in a program's context are measured, others are named."""
        script = harness.ROOT / "tests/bench/lookup.py"
        done = harness.execute(["/usr/bin/python3", script, program(BUNDLED / "minimind-dense").path, "--pairs", 1])
        self.assertEqual(len(done.stdout.splitlines()), 2 + 2)
        self.assertIn(b"list: mica: error: ", done.stderr)

    def test_bench(self):
        """A repetitive text takes a fraction of the passes."""
        built = program(BUNDLED / "minimind-dense")
        results = json.loads(built.run("bench", "--prompt", 0, "--gen", 200, "--lookup", 15, "--repeat", 3,
                                       "--json").stdout)["results"]
        self.assertEqual([r["test"] for r in results], ["tg200", "tg200@l15"])
        note(self, f"{results[1]['tokens_per_s'] / results[0]['tokens_per_s']:.1f} times the ids per second")
        self.assertLess(results[1]["lookup"]["calls"], 40)
