"""Rope frequencies that depend on the sequence length: above the threshold, across it and back."""

import json
import pathlib
import re

import numpy as np

import checkpoint
import harness
from harness import BUNDLED, Case, GOLDENS, execute, program
from test_chat import Terminal
from served import Server

THRESHOLDS = {"llama-rope-dynamic": 128, "phi3-longrope": 64}
NAMES = sorted(THRESHOLDS)


def built(name, *options):
    # Exceeds max_position_embeddings, because theta grows with the length.
    return program(GOLDENS / "models" / name, *(("--max-seq", "192") if "dynamic" in name else ()), *options)


def golden(name, kind):
    folder = GOLDENS / "models" / name
    values = json.loads((folder / f"golden.{kind}.json").read_text(encoding="utf-8"))
    return values["prompt"], values["greedy"], np.load(folder / f"golden.{kind}.logits.npy")


def tokens(ids):
    return "--tokens", ",".join(map(str, ids))


def periodic(name, length):
    """A repetitive prompt, for which there are drafts."""
    ids = np.random.default_rng(7).integers(3, 64, 6).tolist()
    return (ids * (length // len(ids) + 1))[:length]


@harness.for_each(NAMES, "above")
@harness.for_each(NAMES, "across")
@harness.for_each(NAMES, "same_text")
@harness.for_each(NAMES, "batch")
@harness.for_each(NAMES, "tools")
class Lengths(Case):
    def above(self, name):
        prompt, greedy, logits = golden(name, "above")
        for chunk in (512, 50, 1):
            _, rows = built(name).generate([prompt], 1, "--prefill-chunk", chunk)
            self.close(rows[0], logits, 1e-5, f"chunks of {chunk}")
        self.assertEqual(built(name).generate([prompt], len(greedy))[0], [greedy])

    def across(self, name):
        prompt, greedy, logits = golden(name, "across")
        for options in ((), ("--lookup", 8), ("--prefill-chunk", 9), ("--threads", 1)):
            ids, rows = built(name).generate([prompt], len(greedy), *options)
            self.assertEqual(ids, [greedy], options)
            self.close(rows[0][len(prompt) - 1:], logits, 1e-5, f"{options}")
        # With a sequence that stays short and one that is long from the beginning.
        others = [prompt[:9], golden(name, "above")[0]]
        ids, rows = built(name).generate([others[0], prompt, others[1]], len(greedy))
        self.assertEqual(ids[1], greedy)
        self.close(rows[1][len(prompt) - 1:], logits, 1e-5, "beside others")

    def same_text(self, name):
        """Drafts change nothing, neither before nor after the threshold."""
        for before in (1, 2, 5, 20):
            prompt = periodic(name, THRESHOLDS[name] - before)
            plain, rows = built(name).generate([prompt], 40)
            drafted, same = built(name).generate([prompt], 40, "--lookup", 7)
            self.assertEqual(drafted, plain, before)
            self.assertTrue(np.array_equal(same[0], rows[0]), f"logits to the bit, {before} before the threshold")
        done = built(name).run(*tokens(prompt), "-n", 40, "--temperature", 0, "--print-tokens", "--ignore-eos", "-v")
        self.assertIn(f"{THRESHOLDS[name]} tokens were recomputed", done.stderr.decode())
        short = built(name).run(*tokens(prompt[:9]), "-n", 9, "--temperature", 0, "--print-tokens", "--ignore-eos", "-v")
        self.assertNotIn("recomputed", short.stderr.decode())

    def batch(self, name):
        """Texts that reuse each other's slots, on both sides of the threshold."""
        threshold = THRESHOLDS[name]
        prompts = [periodic(name, length) for length in (threshold - 3, 5, threshold + 6, 7, threshold - 9, threshold)]
        place = pathlib.Path(harness.folder("lengths"))
        (place / "requests.jsonl").write_text("".join(json.dumps({"tokens": p}) + "\n" for p in prompts), encoding="utf-8")
        done = built(name).run("-f", place / "requests.jsonl", "--batch", 2, "-n", 20, "--temperature", 0, "--ignore-eos",
                               "--print-tokens")
        rows = {row["line"]: row["tokens"] for row in map(json.loads, done.stdout.decode().splitlines())}
        for line, prompt in enumerate(prompts, 1):
            self.assertEqual(rows[line], built(name).generate([prompt], 20)[0][0], line)

    def tools(self, name):
        threshold, folder = THRESHOLDS[name], GOLDENS / "models" / name
        info = built(name).run("info").stdout.decode()
        self.assertIn(f"change beyond {threshold} positions", info)
        # The scored rows equal those of the whole window, for all chunk sizes.
        prompt, _, logits = golden(name, "above")
        place = pathlib.Path(harness.folder("tools"))
        (place / "ids").write_text(" ".join(map(str, prompt)), encoding="utf-8")
        done = execute([harness.mica, "eval", built(name).path, "--tokens-file", place / "ids", "--context", len(prompt),
                        "--prefill-chunk", 7, "--json"])
        found = json.loads(done.stdout)
        rows = logits[found["first_scored"]:-1].astype("f8")
        loss = np.log(np.exp(rows).sum(1)) - rows[range(len(rows)), prompt[found["first_scored"] + 1:]]
        self.assertEqual(found["positions"], len(rows))
        self.assertAlmostEqual(found["program"]["perplexity"] / np.exp(loss.mean()), 1, 4)
        bench = json.loads(built(name).run("bench", "--prompt", 16, "--gen", 8, "--depth", threshold - 4, "--lookup", 4,
                                           "--repeat", 1, "--json").stdout)
        self.assertEqual(len(bench["results"]), 3)

    def test_verify(self):
        """The program's rows above the threshold equal the interpreter's."""
        folder = checkpoint.edited(GOLDENS / "models/llama-rope-dynamic", f"{harness.folder('verify')}/short",
                                   config=lambda c: c.update(max_position_embeddings=20))
        execute([harness.mica, "verify", folder, "--max-seq", "48"])

    def test_maximum_length(self):
        for name, options in (("llama-rope-dynamic", ()), ("phi3-longrope", ("--max-seq", "128"))):
            self.assertIn(b"128 positions", program(GOLDENS / "models" / name, *options).run("info").stdout)
        done = execute([harness.mica, "compile", GOLDENS / "models/phi3-longrope", "--max-seq", "129",
                        "-o", pathlib.Path(harness.folder("far")) / "program"], check=False)
        self.assertIn(b"--max-seq 129 is not between 1 and the model's own 128 positions", done.stderr)


class Conversations(Case):
    """A conversation whose text crosses the threshold, forwards and back."""

    def chat(self, template, threshold=40, endless=False):
        def change(config):
            config |= {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "max_position_embeddings": threshold,
                       "rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}
            del config["use_moe"]
        folder = pathlib.Path(harness.folder("turns")) / "model"
        checkpoint.edited(BUNDLED / "minimind-dense", folder, config=change)
        if template:
            (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
        if endless:
            for file, end in (("generation_config.json", {"eos_token_id": 0}), ("tokenizer_config.json", {"eos_token": "<|endoftext|>"})):
                file = folder / file
                file.write_text(json.dumps(json.loads(file.read_text(encoding="utf-8")) | end), encoding="utf-8")
        return program(folder, "--max-seq", str(max(512, threshold + 64)))

    def answers(self, model, turns):
        """The answers, and how often tokens were recomputed."""
        command = ("chat", "--temperature", "0", "-n", "8")
        done, noted = (model.run(*command, option, stdin="".join(t + "\n" for t in turns).encode()) for option in ("--json", "-v"))
        return [json.loads(line) for line in done.stdout.splitlines()], noted.stderr.decode().count("tokens were recomputed")

    def test_crossing_the_threshold(self):
        model = self.chat(None)
        rows, times = self.answers(model, ["27 + 15", "1 + 2", "sort c a b", "4 + 4"])
        self.assertLess(rows[1]["prompt_tokens"], 40)
        self.assertGreater(rows[2]["prompt_tokens"], 40)
        self.assertEqual(times, 1)
        whole = "Q: 27 + 15 = ?\nA: 42\n<|im_end|>Q: 1 + 2 = ?\nA: 3\n<|im_end|>sort: c a b\n->"
        fresh = json.loads(model.run("-p", whole, "-n", 8, "--temperature", 0, "--json").stdout)["sequences"][0]
        self.assertEqual((fresh["text"], len(fresh["prompt_tokens"])), (rows[2]["content"], rows[2]["prompt_tokens"]))

    def test_rewinding_below_the_threshold(self):
        """A template that drops earlier text goes back below the threshold: the same answers as with a new cache."""
        model = self.chat("{{ bos_token }}abcdefgh: {{ messages[-1].content }}")
        long = " ".join(["1 + 2 ="] * 20)
        rows, times = self.answers(model, ["27 + 15", long, "27 + 15", "/reset", long])
        self.assertGreater(rows[1]["prompt_tokens"], 40)
        self.assertEqual((rows[0]["content"], rows[1]["content"]), (rows[2]["content"], rows[3]["content"]))
        self.assertEqual(times, 2)

    def test_cached_prompts(self):
        """A server's answers above the threshold do not depend on what it has cached."""
        model = self.chat(None)
        start = "count from 7 to 12: " * 8

        def answer(server, prompt):
            made = server.complete(prompt, max_tokens=8, temperature=0, logprobs=5)
            usage = made["usage"]
            self.assertGreater(usage["prompt_tokens"], 40)
            return made["choices"], usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]

        with Server("--sequences", "2", command=[model.path]) as used:
            # Only the same prompt reuses positions, as others have another length.
            for number, prompt in enumerate((start, start + "7 8", start, start + "9 10 11", start + "9 10")):
                with Server("--sequences", "1", command=[model.path]) as fresh:
                    choices, size, cached = answer(used, prompt)
                    self.assertEqual((choices, cached), (answer(fresh, prompt)[0], size - 1 if number == 2 else 0), prompt)
            [choice], size, _ = answer(used, start)
            _, again, cached = answer(used, start)
            self.assertEqual((again, cached), (size, size - 1))
            with Server("--sequences", "1", command=[model.path]) as fresh:
                self.assertEqual(answer(used, start + choice["text"] + "7")[0], answer(fresh, start + choice["text"] + "7")[0])

    def test_interrupt_while_tokens_are_recomputed(self):
        """An answer crosses the threshold in a long text, which takes a second to recompute at 64 tokens per call: Ctrl-C ends that
        immediately, and the same turn starts over with a cache that contains no row of the other regime."""
        template = "1 + 2 = " * 1500 + "{{ messages[-1].content }}"
        size = json.loads(self.chat(template, threshold=13000).run("chat", "--json", "-n", 1, stdin=b"a\n").stdout)["prompt_tokens"]
        model = self.chat(template, threshold=size + 4, endless=True)
        options = ("chat", "--temperature", "0", "-n", "12", "--prefill-chunk", "64", "--threads", "1", "-v")
        whole = model.run(*options, stdin=b"a\n")
        self.assertIn(f"{size + 4} tokens were recomputed", whole.stderr.decode())
        terminal = Terminal([model.path, *options])
        terminal.prompt()
        terminal.write(b"a\r")
        terminal.read_until(b"a\r\n")
        terminal.some()  # of the answer
        terminal.silence(0.3)
        terminal.write(b"\x03")
        terminal.read_until(b"mica: note: stopped\r\n")
        noted = terminal.read_until(b"> ").decode()
        self.assertIn("answer: 5 tokens", noted)
        again = re.search(r"(\d+) tokens were recomputed", noted)
        self.assertTrue(0 < int(again[1]) < size, noted)
        terminal.prompt(b"")
        terminal.write(b"a\r")
        terminal.read_until(b"a\r\n")
        answer = terminal.read_until(b"mica: note: ", seconds=60)
        self.assertIn(whole.stdout.replace(b"\n", b"\r\n"), answer)
        terminal.prompt()
        terminal.write(b"/exit\r")
        self.assertEqual(terminal.close(), 0)
