"""--keep-mtp: drafts of a multi-token prediction head only change the number of passes."""

import concurrent.futures
import json
import pathlib
import re
import shutil
import sys

import numpy as np

import checkpoint
import harness
from harness import BUNDLED, Case, GOLDENS, note, program
from served import Server

sys.path.insert(0, str(GOLDENS))
import make_mtp_goldens as reference  # noqa: E402

HEADS = {path.name: path for path in sorted((GOLDENS / "mtp").iterdir())}
FOLDER = HEADS["qwen3-5"]
GOLDEN = json.loads((FOLDER / "golden.json").read_text())


def predictable(folder, noise):
    """A model in which a token determines the next one, with a head that knows it, as far as `noise` allows."""
    shutil.copytree(FOLDER, folder)
    tensors = {name: value.copy() for name, value in reference.read_tensors(folder / "model.safetensors").items()}
    rng = np.random.default_rng(1)
    for name, value in tensors.items():
        if name.endswith(("o_proj.weight", "out_proj.weight", "down_proj.weight")) or value.ndim == 1 and "norm" in name:
            value[:] = 0
    embedding = rng.standard_normal(tensors["model.embed_tokens.weight"].shape)
    embedding /= np.linalg.norm(embedding, axis=1, keepdims=True)
    # One cycle over all tokens.
    following = rng.permutation(len(embedding))
    tensors["model.embed_tokens.weight"][:] = embedding
    tensors["lm_head.weight"][np.roll(following, -1)] = 4 * embedding[following]
    fc = tensors["mtp.fc.weight"]
    fc[:] = noise * rng.standard_normal(fc.shape)
    fc[:, : len(fc)] += np.eye(len(fc))
    reference.write_tensors(folder / "model.safetensors", tensors)
    return folder


def with_a_tokenizer():
    """The model with more tokens, and the tokenizer of a bundled model."""
    return harness.once("mtp-served", lambda: checkpoint.with_tokenizer(
        FOLDER, pathlib.Path(harness.folder("mtp-served"), "model"), BUNDLED / "minimind-dense", ("tokenizer.json", "tokenizer_config.json"), 3))


def counted(built, prompts, n, *arguments):
    tokens = [a for p in prompts for a in ("--tokens", ",".join(map(str, p)))]
    done = json.loads(built.run(*tokens, "-n", n, "--temperature", 0, "--ignore-eos", "--json", *arguments).stdout)
    return [s["tokens"] for s in done["sequences"]], done.get("mtp")


def partly_right(name):
    """A model whose head is right for a part of the text, because all of its parts have a small effect: (folder, the reference)."""
    folder = pathlib.Path(harness.folder("mtp")) / f"partly-{name}"
    shutil.copytree(HEADS[name], folder)
    tensors = {key: value.copy() for key, value in reference.read_tensors(folder / "model.safetensors").items()}
    rng = np.random.default_rng(2)
    # With tied embeddings, layers without an effect would repeat one token.
    is_tied = "lm_head.weight" not in tensors
    for key, value in tensors.items():
        if re.search(r"(o_proj|out_proj|down_proj)(\.weight)?$", key):
            value *= 4 if is_tied else 0.5
        elif value.ndim == 1 and "norm" in key:
            value *= 0.5
    embedding = next(value for key, value in tensors.items() if key.endswith("embed_tokens.weight"))
    embedding[:] = rng.standard_normal(embedding.shape)
    if not is_tied:
        following = rng.permutation(len(embedding))
        tensors["lm_head.weight"][np.roll(following, -1)] = embedding[following]
    fc = tensors["mtp.fc.weight"]
    fc[:] = (0.15 if is_tied else 0.2) * rng.standard_normal(fc.shape)
    fc[:, : len(fc)] += np.eye(len(fc))
    reference.write_tensors(folder / "model.safetensors", tensors)
    return folder, reference.Model(json.loads((folder / "config.json").read_text()), tensors)


@harness.for_each(list(HEADS), "drafts")
class Families(Case):
    def drafts(self, name):
        """Some drafts are right, as many as those of the reference, and none changes the text."""
        count, drafts = 40, 3
        folder, model = partly_right(name)
        prompt = json.loads((HEADS[name] / "golden.json").read_text())["prompt"][:9]
        built = program(folder, "--keep-mtp", "--weights", "f32")
        [text], mtp = counted(built, [prompt], count, "--mtp", drafts)
        states = model.hidden(prompt + text)
        self.assertEqual(text, model.logits(states[len(prompt) - 1:-1]).argmax(-1).tolist())
        made, drafted, accepted, calls = 1, 0, 0, 0
        while made < count:
            draft = model.draft(prompt + text[:made], drafts, states[: len(prompt) + made - 1])[: count - made - 1]
            right = 0
            while right < len(draft) and draft[right] == text[made + right]:
                right += 1
            drafted, accepted, calls, made = drafted + len(draft), accepted + right, calls + 1, made + right + 1
        self.assertEqual(mtp, {"drafted": drafted, "accepted": accepted, "calls": calls})
        harness.note(self, f"{mtp}")
        self.assertGreater(accepted, 2)
        self.assertGreater(drafted - accepted, 2)
        for weights in ("int8", "int4"):
            built = program(HEADS[name], "--keep-mtp", "--weights", weights)
            plain, rows = built.generate([prompt], 30)
            drafted, same = built.generate([prompt], 30, "--mtp", drafts)
            self.assertEqual(drafted, plain, weights)
            self.assertTrue(np.array_equal(same[0], rows[0]), f"logits to the bit, {weights}")


@harness.for_each(["f32", "bf16", "int8", "int4", "f32_int8"], "same_text")
class Mtp(Case):
    def same_text(self, weights_kv):
        weights, *kv = weights_kv.split("_")
        built = program(FOLDER, "--keep-mtp", "--weights", weights, *(("--kv", *kv) if kv else ()))
        for prompt in (GOLDEN["prompt"], GOLDEN["prompt"][:1]):
            plain, rows = built.generate([prompt], 30, "--threads", 1)
            for options in (("--mtp", 1), ("--mtp", 4), ("--mtp", 31), ("--mtp", 3, "--lookup", 4), ("--mtp", 3, "--prefill-chunk", 7)):
                drafted, same = built.generate([prompt], 30, *options)
                self.assertEqual(drafted, plain, options)
                self.assertTrue(np.array_equal(same[0], rows[0]), f"logits to the bit, {options}")
        without, _ = program(FOLDER, "--weights", weights, *(("--kv", *kv) if kv else ())).generate([GOLDEN["prompt"]], 30)
        with_head, _ = built.generate([GOLDEN["prompt"]], 30)
        self.assertEqual(with_head, without, "the head does not change the model")

    def test_right_drafts_are_accepted(self):
        folder = pathlib.Path(harness.folder("mtp")) / "predictable"
        built = program(predictable(folder, 0), "--keep-mtp", "--weights", "f32")
        prompt = GOLDEN["prompt"][:3]
        plain, none = counted(built, [prompt], 41)
        self.assertIsNone(none)
        text, mtp = counted(built, [prompt], 41, "--mtp", 3)
        self.assertEqual(text, plain)
        self.assertEqual(mtp, {"drafted": 30, "accepted": 30, "calls": 10})

    def test_some_drafts_are_right(self):
        """Batches, prompts in several calls, and texts that continue after rejected drafts."""
        folder = pathlib.Path(harness.folder("mtp")) / "noisy"
        built = program(predictable(folder, 0.35), "--keep-mtp", "--weights", "f32")
        prompts = [GOLDEN["prompt"], GOLDEN["prompt"][5:9], GOLDEN["prompt"][7:30]]
        plain, _ = counted(built, prompts, 60)
        for options in ((), ("--prefill-chunk", 7), ("--lookup", 3)):
            text, mtp = counted(built, prompts, 60, "--mtp", 4, *options)
            self.assertEqual(text, plain, options)
            note(self, f"{options}: {mtp}")
            self.assertGreater(mtp["accepted"], 0)
            self.assertLess(mtp["accepted"], mtp["drafted"])

    def test_bench(self):
        """What verifying costs: one pass per token, however many tokens are drafted."""
        built = program(FOLDER, "--keep-mtp", "--weights", "f32")
        read = [cache["bytes_read_per_position"] for cache in json.loads(built.run("info", "--json").stdout)["manifest"]["caches"]
                if cache["bytes_per_token"] > 0]
        self.assertEqual([size > 0 for size in read], [True, True, False, False], "passes without drafts read no cache of the head")
        options = ("--gen", 8, "--batch", 1, "--batch", 2, "--prompt", 0, "--depth", 5, "--repeat", 2, "--mtp", 3)
        results = json.loads(built.run("bench", *options, "--json").stdout)["results"]
        self.assertEqual([each["test"] for each in results], ["tg8@d5", "tg8@b2@d5", "tg8@d5@m3", "tg8@b2@d5@m3"])
        for each, batch in zip(results[2:], (1, 2)):
            mtp = each["mtp"]
            self.assertGreater(mtp["drafted"], 8 * batch)
            self.assertLessEqual(mtp["accepted"] + mtp["calls"], 8 * batch)
            self.assertAlmostEqual(mtp["seconds_per_call"], 8 * batch / each["tokens_per_s"] / mtp["calls"], delta=1e-9)
            self.assertNotIn("lookup", each)
        self.assertRegex(built.run("bench", *options).stdout.decode(), r"tg8@d5@m3 .*  [\d.]+ ms per pass, \d+ of \d+ drafted tokens accepted\n")
        done = program(FOLDER, "--weights", "f32").run("bench", "--mtp", 2, check=False)
        self.assertIn("mtp: the program has no multi-token prediction head", done.stderr.decode())

    def test_serve(self):
        """Answers of a server that drafts are those of one that does not, with several requests at once."""
        folder = with_a_tokenizer()
        built = program(folder, "--keep-mtp", "--weights", "f32")
        prompts = ["to be or not to be or not to", "a b c a b c", "12 13 12 13 12"]

        def answers(*options):
            with Server("--sequences", "2", *options, command=[built.path]) as own:
                with concurrent.futures.ThreadPoolExecutor(len(prompts)) as pool:
                    found = list(pool.map(lambda text: own.complete(text, max_tokens=40, temperature=0, ignore_eos=True), prompts))
                return [answer["choices"][0]["text"] for answer in found]

        plain = answers()
        for options in (("--mtp", "3"), ("--lookup", "4"), ("--mtp", "2", "--lookup", "4")):
            self.assertEqual(answers(*options), plain, options)
        without = harness.execute([program(folder, "--weights", "f32").path, "serve", "--port", "0", "--mtp", "2"], check=False)
        self.assertNotEqual(without.returncode, 0)
        self.assertIn("mtp: the program has no multi-token prediction head", without.stderr.decode())

    def test_copied_prompts(self):
        """A copied prefix contains the rows that the head has, or has not, computed: as many drafts are right as without a copy."""
        folder, _ = partly_right("qwen3-5")
        tensors = {name: value.copy() for name, value in reference.read_tensors(folder / "model.safetensors").items()}
        # What the head has of earlier positions determines its drafts.
        tensors["mtp.layers.0.self_attn.o_proj.weight"] *= 30
        reference.write_tensors(folder / "model.safetensors", tensors)
        folder = checkpoint.with_tokenizer(folder, pathlib.Path(harness.folder("mtp-copied"), "model"),
                                           BUNDLED / "minimind-dense", ("tokenizer.json", "tokenizer_config.json"), 3)
        built = program(folder, "--keep-mtp", "--weights", "f32")
        prompt = (GOLDEN["prompt"] * 9)[:70]

        def answers(*prompts):
            with Server("--sequences", "2", "--mtp", "3", "--prefill-chunk", "64", command=[built.path]) as own:
                made = own.complete(list(prompts), max_tokens=40, temperature=0, ignore_eos=True)
                own.complete("a", max_tokens=1)  # then the last step of the others has been counted
                return [choice["text"] for choice in made["choices"]], *(own.metric(f"mica_{kind}_tokens_total")
                                                                         for kind in ("copied", "drafted", "accepted"))

        # The prefix is copied before the head computes it, or afterwards.
        for second in (prompt[:60], prompt):
            alone = [answers(each) for each in (prompt, second)]
            texts, *counts = zip(*alone)
            self.assertGreater(min(counts[-1]), 0)
            self.assertEqual(answers(prompt, second), ([text for [text] in texts], len(second) - 1, *map(sum, counts[1:])))

    def test_verify(self):
        """The model of a program with a head is verified like others."""
        for weights in ("f32", "int8"):
            harness.execute([harness.mica, "verify", FOLDER, "--keep-mtp", "--weights", weights])

    def test_run_compiles_with_the_head(self):
        """`mica run` does not take the cached program without a head."""
        env = {"XDG_CACHE_HOME": harness.folder("cache")}
        options = ("--tokens", "1,2,3", "-n", 8, "--temperature", 0, "--print-tokens")
        plain = harness.execute([harness.mica, "run", FOLDER, *options], env=env)
        drafted = harness.execute([harness.mica, "run", FOLDER, "--keep-mtp", *options, "--mtp", 2], env=env)
        self.assertEqual(drafted.stdout, plain.stdout)

    def test_refusals(self):
        done = program(FOLDER, "--weights", "f32").run("--tokens", "1", "--mtp", 2, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("mtp: the program has no multi-token prediction head; leave it out, or compile a model that has one with --keep-mtp",
                      done.stderr.decode())
        done = harness.execute([harness.mica, "compile", FOLDER, "--keep-mtp", "--weights", "int8", "--imatrix", "none", "-o", "unused"],
                               check=False)
        self.assertIn("--imatrix has no statistics for the multi-token prediction head; leave --keep-mtp out", done.stderr.decode())
        done = harness.execute([harness.mica, "compile", FOLDER, "--keep-mtp", "--shard", "tensor=2", "-o", "unused"], check=False)
        self.assertIn("--keep-mtp: drafts of several ranks are not supported; leave --keep-mtp or --shard out", done.stderr.decode())
