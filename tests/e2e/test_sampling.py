"""How a program samples tokens, ends texts and processes a file of requests."""

import fcntl
import json
import os
import pathlib
import shutil
import subprocess

import harness
import resident
from harness import BUNDLED, Case, GOLDENS, execute, program

PROMPT = ("--tokens", "5,6,7")
GREEDY = ("--temperature", 0, "--ignore-eos")


class Sampling(Case):
    def setUp(self):
        self.built = program(BUNDLED / "minimind-dense", "--weights", "f32")

    def text(self, *arguments):
        return self.built.run("-p", "Once", "-n", 24, *GREEDY, *arguments).stdout.decode()

    def ids(self, *arguments):
        return [int(i) for i in self.built.run(*PROMPT, "-n", 12, *GREEDY, "--print-tokens", *arguments).stdout.split()]

    def refused(self, status, arguments, *words, built=None):
        done = execute([(built or self.built).path, *arguments], check=False)
        self.assertEqual((done.returncode, done.stdout), (status, b""))
        for word in words:
            self.assertIn(word, done.stderr.decode())
        self.assertEqual(done.stderr.count(b"\n"), 1)

    def test_stop(self):
        whole = self.text().rstrip("\n")
        for begin, size in ((3, 1), (7, 4), (11, 9), (0, 2), (20, 15)):
            stop = whole[begin:begin + size]
            self.assertEqual(self.text("--stop", stop).rstrip("\n"), whole[:whole.find(stop)].rstrip("\n"), stop)
        self.assertEqual(self.text("--stop", "no such text", "--stop", "\x01").rstrip("\n"), whole)
        done = json.loads(self.text("--stop", whole[7:11], "--json"))["sequences"][0]
        self.assertEqual((done["finish"], done["text"]), ("stop_text", whole[:whole.find(whole[7:11])]))

    def test_penalties_and_bias(self):
        self.assertEqual(self.ids("--logit-bias", "9=1000"), [9] * 12)
        self.assertEqual(len(set(self.ids("--logit-bias", "9=1000", "--presence-penalty", 9999))), 12)
        alternating = self.ids("--logit-bias", "9=1000", "--logit-bias", "10=1000", "--frequency-penalty", 100)
        self.assertEqual((alternating.count(9), alternating.count(10)), (6, 6))
        # -inf bans a token, whatever else is added.
        likeliest = self.ids()
        banned = self.ids("--logit-bias", f"{likeliest[0]}=-inf", "--logit-bias", f"{likeliest[0]}=1000")
        self.assertNotIn(likeliest[0], banned)
        self.assertEqual(banned, self.ids("--logit-bias", f"{likeliest[0]}=-1e9"))
        # With a tiny mass, the least likely token left by top-k is nearer to the expected information than the likeliest.
        self.assertEqual(self.ids("--typical-p", 1e-9), self.ids())

    def test_unusable_settings_are_rejected(self):
        self.refused(1, ["-p", "a", "--logit-bias", "512=1"], "token 512 is not in the model's vocabulary (0 to 511)")
        self.refused(2, ["-p", "a", "--logit-bias", "x"], "'x' is not a bias for a token; write ID=B")
        self.refused(1, ["-p", "a", *(f"--logit-bias={token}=-inf" for token in range(512))],
                     "the logit bias bans every token; leave at least one")
        self.refused(2, ["-p", "a", "--stop", ""], "--stop")
        self.refused(2, ["-p", "a", "--batch", 2], "--batch")
        self.refused(2, ["-f", "a", "-o", "b"], "--output")
        for option in (["--json"], ["--lookup", 2], ["--logits", "x.npy"]):
            self.refused(2, ["-f", "a", "--batch", 2, *option], f"{option[0]} cannot be combined with --batch")
        self.refused(1, [*PROMPT, "--stop", "a"], "the program has no tokenizer, which --stop needs; leave it out", built=program(GOLDENS / "models/llama-gqa"))
        room = json.loads(self.built.run("info", "--json").stdout)["max_seq"]
        self.refused(1, ["--tokens", ",".join(["5"] * (room + 3))], f"{room + 3} tokens, 3 more than the context of {room} positions")

    def test_defaults_are_shown(self):
        info = json.loads(self.built.run("info", "--json").stdout)["sampling"]
        self.assertEqual(set(info), {"temperature", "top_k", "top_p", "min_p", "typical_p", "repetition_penalty"})
        self.assertRegex(self.built.run("info").stdout.decode(), r"(?m)^sampling +(greedy|temperature )")

    def test_unsupported_generation_defaults_are_named(self):
        model = pathlib.Path(harness.folder("missed"), "model")
        shutil.copytree(GOLDENS / "models/llama-gqa", model)
        (model / "generation_config.json").write_text('{"penalty_alpha": 0.6, "do_sample": true, "typical_p": 0.5, "num_beams": 1}', encoding="utf-8")
        done = execute([harness.mica, "compile", model, "-o", f"{model}.program"])
        self.assertTrue(done.stderr.decode().startswith(f'mica: warning: {model}/generation_config.json: "penalty_alpha" is ignored; it changes '
                                                        "which tokens are chosen, but is not supported\n"), done.stderr)
        info = json.loads(execute([f"{model}.program", "info", "--json"]).stdout)
        self.assertEqual((info["sampling"]["typical_p"], info["sampling"]["top_k"]), (0.5, 50))

    def test_control_characters_do_not_reach_a_terminal(self):
        """Output of a model to a pipe is unchanged, that to a terminal has no control characters."""
        vocabulary = json.loads((BUNDLED / "minimind-dense/tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
        command = [self.built.path, "-p", "\x1b[2Jx", "-n", "2", "--temperature", "0", "--logit-bias", f"{vocabulary[chr(0x11b)]}=1000"]
        self.assertEqual(execute(command).stdout, b"\x1b\x1b\n")
        self.assertEqual(harness.screen_of(command, "stdout"), b"\\x1b\\x1b\r\n")


class Batch(Case):
    def setUp(self):
        self.built = program(BUNDLED / "minimind-dense", "--weights", "f32")
        self.place = pathlib.Path(harness.folder("batch"))
        self.requests = self.place / "requests.jsonl"
        self.requests.write_text('{"prompt": "Once upon"}\n{"prompt": "A", "id": 7, "n": 2}\n\n{"prompt": "x\\u00e9", "max_tokens": 3}\n',
                                 encoding="utf-8")

    def run_batch(self, *arguments):
        return self.built.run("-f", self.requests, "--batch", 3, "-n", 8, "--temperature", 1, "--seed", 5, *arguments).stdout.decode()

    def test_results_do_not_depend_on_the_batch(self):
        rows = [json.loads(line) for line in self.run_batch().splitlines()]
        self.assertEqual([(row["line"], row["sample"], row.get("id")) for row in rows], [(1, 0, None), (2, 0, 7), (2, 1, 7), (4, 0, None)])
        self.assertNotEqual(rows[1]["seed"], rows[2]["seed"])
        for row, prompt, n in ((rows[0], "Once upon", 8), (rows[1], "A", 8), (rows[2], "A", 8), (rows[3], "xé", 3)):
            alone = self.built.run("-p", prompt, "-n", n, "--temperature", 1, "--seed", row["seed"], "--json").stdout
            self.assertEqual(row["text"], json.loads(alone)["sequences"][0]["text"])
        self.assertEqual(self.run_batch("--threads", 1), self.run_batch())

    def test_resumes(self):
        results = self.place / "results.jsonl"
        self.assertEqual(self.run_batch("-o", results), "")
        whole = results.read_bytes()
        self.assertEqual(whole.decode(), self.run_batch())
        results.write_bytes(whole[:len(whole) * 2 // 3])
        self.run_batch("-o", results)
        self.assertEqual(results.read_bytes(), whole)

    def test_requests_are_not_kept_in_memory(self):
        """Twenty thousand requests take as much memory as two hundred; they would be 40 MB."""
        sizes = []
        for count in (200, 20000):
            text = "sort: d b a c " * 10
            self.requests.write_text("".join(f'{{"prompt": "{text}{i}"}}\n' for i in range(count)), encoding="utf-8")
            results = self.place / f"results-{count}.jsonl"
            done, peaks = resident.run([self.built.path, "-f", self.requests, "--batch", 4, "-n", 0, "-o", results])
            self.assertEqual((done.returncode, results.read_bytes().count(b"\n")), (0, count), done.stderr)
            sizes.append(peaks["RssAnon"])
        harness.note(self, f"{sizes[0] / 1e6:.1f} MB for 200 requests, {sizes[1] / 1e6:.1f} MB for 20000")
        self.assertLess(sizes[1], sizes[0] + 4e6)

    def test_two_batches_do_not_share_their_results(self):
        """The second one is rejected while the first one writes; afterwards it resumes."""
        results = self.place / "shared.jsonl"
        command = [str(word) for word in (self.built.path, "-f", self.requests, "--batch", 3, "-n", 8, "--temperature", 1, "--seed", 5,
                                          "-o", results)]
        whole = self.run_batch().encode()
        results.write_bytes(whole[:100])
        with open(results, "rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            done = execute(command, check=False)
            self.assertEqual((done.returncode, done.stderr.decode()), (1, f"mica: error: {self.built.path}: another batch is writing "
                             f"to '{results}'; wait until it has finished or choose another file with -o\n"))
            self.assertEqual(results.read_bytes(), whole[:100])
        both = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for _ in range(2)]
        self.assertIn(sorted(process.wait(harness.SECONDS) for process in both), ([0, 0], [0, 1]))
        self.assertEqual(results.read_bytes(), whole)

    def test_resumes_without_a_seed(self):
        """Existing results are kept, although each run draws its own seed; stop strings may contain any bytes."""
        results, options = self.place / "drawn.jsonl", ("--temperature", 1, "--stop", b"\xff".decode(errors="surrogateescape"))
        self.built.run("-f", self.requests, "--batch", 3, "-n", 8, *options, "-o", results)
        whole = results.read_bytes().splitlines(keepends=True)
        results.write_bytes(b"".join(whole[:2]) + whole[2][:10])
        self.built.run("-f", self.requests, "--batch", 3, "-n", 8, *options, "-o", results)
        again = results.read_bytes().splitlines(keepends=True)
        self.assertEqual((again[:2], len(again)), (whole[:2], len(whole)))

    def test_without_batch_the_file_is_the_prompt(self):
        text = self.requests.read_text(encoding="utf-8")
        self.assertEqual(self.built.run("-f", self.requests, "-n", 4, *GREEDY).stdout,
                         self.built.run("-p", text, "-n", 4, *GREEDY).stdout)
