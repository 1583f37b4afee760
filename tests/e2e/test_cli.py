"""Command line of a compiled program, and damaged programs."""

import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess

import numpy as np

import harness
from harness import BUNDLED, Case, GOLDENS, execute, note, program

PROMPT = ("--tokens", "5,6,7")


class Cli(Case):
    def setUp(self):
        self.built = program(GOLDENS / "models/llama-gqa")

    def ids(self, *arguments):
        return [int(i) for i in self.built.run(*PROMPT, "--print-tokens", "--ignore-eos", *arguments).stdout.split()]

    def refused(self, status, arguments, *words, path=None):
        done = execute([path or self.built.path, *arguments], check=False)
        error = done.stderr.decode()
        self.assertEqual((done.returncode, done.stdout), (status, b""), error)
        self.assertEqual(error.count("\n"), 1, error)
        self.assertTrue(error.startswith("mica: error: "), error)
        for word in words:
            self.assertIn(word, error)

    def test_seed_makes_sampling_repeatable(self):
        runs = {seed: self.ids("-n", 40, "--temperature", 1, "--top-p", 1, "--seed", seed) for seed in range(4)}
        self.assertEqual(len({tuple(r) for r in runs.values()}), 4)
        for seed, ids in runs.items():
            self.assertEqual(self.ids("-n", 40, "--temperature", 1, "--top-p", 1, "--seed", seed), ids)
            for threads in (1, 2, 3, 5):
                self.assertEqual(self.ids("-n", 40, "--temperature", 1, "--top-p", 1, "--seed", seed, "--threads", threads), ids)
        # With all sampling methods, over several sequences and a prompt of many rows.
        prompts = ("--tokens", ",".join(str(3 + i * 7 % 60) for i in range(50)), "--tokens", "9,8,7")
        options = ("--temperature", 1.3, "--top-k", 30, "--top-p", 0.95, "--min-p", 0.01, "--typical-p", 0.9, "--repetition-penalty", 1.1,
                   "--presence-penalty", 0.2, "--frequency-penalty", 0.1, "--logit-bias", "4=1.5", "--seed", 11)
        texts = {self.built.run(*prompts, "-n", 40, "--print-tokens", "--ignore-eos", *options, "--threads", threads).stdout
                 for threads in (1, 2, 3, 5)}
        self.assertEqual(len(texts), 1)

    def test_sampling_follows_the_logits(self):
        """Frequencies of the first id for many seeds, compared with softmax(logits / T)."""
        built, n, share = program(BUNDLED / "minimind-dense", "--weights", "f32"), 400, {}
        _, (rows,) = built.generate([[5, 6, 7]], 1)
        temperatures = (1.0, 3.0)
        for temperature in temperatures:
            p = np.exp((rows[-1].astype("f8") - rows[-1].max()) / temperature)
            share[temperature] = p / p.sum()
        for temperature, other in zip(temperatures, reversed(temperatures)):
            counts, p = np.zeros(len(rows[-1])), share[temperature]
            for seed in range(n // 40):
                prompts = [a for _ in range(40) for a in PROMPT]
                out = built.run(*prompts, "-n", 1, "--print-tokens", "--ignore-eos", "--temperature", temperature,
                                "--top-p", 1, "--top-k", 0, "--min-p", 0, "--seed", seed).stdout
                for i in out.split():
                    counts[int(i)] += 1
            self.assertEqual(counts.sum(), n)
            distance, wrong = (np.abs(counts / n - share[t]).sum() / 2 for t in (temperature, other))
            # The expected total variation of n samples.
            expected = np.sqrt(p * (1 - p) / (2 * np.pi * n)).sum()
            note(self, f"T {temperature}: total variation {distance:.3f}, expected by chance {expected:.3f}, "
                       f"from T {other} {wrong:.3f}")
            self.assertLess(distance, 1.6 * expected)
            self.assertGreater(wrong, 2 * expected, "the test tells temperatures apart")

    def test_greedy_options(self):
        greedy = self.ids("-n", 20, "--temperature", 0)
        self.assertEqual(self.ids("-n", 20, "--temperature", 1, "--top-k", 1, "--seed", 3), greedy)
        self.assertEqual(self.ids("-n", 20, "--temperature", 1, "--top-p", 0, "--seed", 3), greedy)
        self.assertEqual(self.ids("-n", 20, "--temperature", 1, "--min-p", 1, "--seed", 3), greedy)
        self.assertEqual(self.ids("-n", 7, "--temperature", 0), greedy[:7])

    def test_top_k(self):
        _, (rows,) = self.built.generate([[5, 6, 7]], 1)
        best = set(np.argsort(-rows[-1])[:3].tolist())
        seen = {self.ids("-n", 1, "--temperature", 2, "--top-p", 1, "--top-k", 3, "--seed", s)[0] for s in range(40)}
        self.assertEqual(seen, best)

    def test_repetition_penalty(self):
        once = self.ids("-n", 30, "--temperature", 0, "--repetition-penalty", 1000)
        self.assertEqual(len(set(once + [5, 6, 7])), 33, "no id comes twice")

    def test_print_tokens_format(self):
        done = self.built.run(*PROMPT, "--tokens", "9", "-n", 3, "--temperature", 0, "--print-tokens", "--ignore-eos")
        self.assertRegex(done.stdout.decode(), r"^\d+ \d+ \d+\n\d+ \d+ \d+\n$")
        self.assertEqual(done.stderr, b"")
        # Without a tokenizer the output is ids.
        plain = self.built.run(*PROMPT, "-n", 3, "--temperature", 0, "--ignore-eos")
        self.assertRegex(plain.stdout.decode(), r"^\d+ \d+ \d+\n$")

    def test_generation_stops_at_the_end_token(self):
        built = program(BUNDLED / "minimind-dense")
        with open(BUNDLED / "minimind-dense/heldout.jsonl", encoding="utf-8") as f:
            task = json.loads(f.readline())
        tokens = ("--tokens", ",".join(map(str, task["prompt_ids"])), "--temperature", 0, "--print-tokens", "-n", 30)
        short, long = (built.run(*tokens, *extra).stdout.split() for extra in ((), ("--ignore-eos",)))
        self.assertEqual([int(i) for i in short], task["answer_ids"])
        self.assertEqual((len(long), long[:len(short)]), (30, short))

    def test_full_context(self):
        done = self.built.run(*PROMPT, "-n", 1000, "--temperature", 0, "--print-tokens", "--ignore-eos")
        # 128 positions: 3 of the prompt; the last id is not computed.
        self.assertEqual(len(done.stdout.split()), 126)
        self.assertRegex(done.stderr.decode(), r"^mica: note: .*128 positions.*\n$")
        self.refused(1, ["--tokens", ",".join("5" * 129), "-n", 1], "128")

    def test_max_seq(self):
        built = program(GOLDENS / "models/llama-gqa", "--max-seq", "32")
        done = built.run(*PROMPT, "-n", 1000, "--temperature", 0, "--print-tokens", "--ignore-eos")
        self.assertEqual(len(done.stdout.split()), 30)
        self.assertIn(b"32 positions", done.stderr)

    def test_json(self):
        done = json.loads(self.built.run(*PROMPT, "-n", 4, "--temperature", 0, "--ignore-eos", "--json").stdout)
        self.assertEqual(done["sequences"][0]["tokens"], self.ids("-n", 4, "--temperature", 0))
        info = json.loads(self.built.run("info", "--json").stdout)
        self.assertEqual((info["vocab"], info["max_seq"], info["weights"], info["kv"]), (64, 128, "f32", "f32"))
        bench = json.loads(self.built.run("bench", "--prompt", 16, "--gen", 8, "--batch", 2, "--repeat", 2,
                                          "--json").stdout)
        self.assertIn("pp16", [r["test"] for r in bench["results"]])
        for result in bench["results"]:
            self.assertGreater(result["tokens_per_s"], 0)
            self.assertEqual(len(result["runs"]), 2)

    def test_usage_errors(self):
        for arguments in (["--bogus"], ["-n", "many"], ["--temperature", "-1"], ["--top-p", "1.1"], ["--threads", "0"],
                          ["--prefill-chunk", "0"], ["-p", "a", "--tokens", "1"]):
            with self.subTest(arguments):
                self.refused(2, arguments)

    def test_wrong_input(self):
        self.refused(1, ["--tokens", "64", "-n", 1], "64")
        self.refused(1, ["-p", "text"], "tokenizer")
        self.refused(1, [*PROMPT, "-n", 1, "--logits", "/nonexistent/x.npy"], "/nonexistent/x.npy")

    def test_help_and_version(self):
        words = {self.built.path: ("--tokens", "--temperature", "--logits", "bench", "info"),
                 harness.mica: ("compile", "run", "inspect")}
        for path, expected in words.items():
            done = execute([path, "--help"])
            self.assertEqual(done.stderr, b"")
            for word in expected:
                self.assertRegex(done.stdout.decode(), rf"(?m)^ +(-\w,)?{word}\b")
            done = execute([path, "--version"])
            self.assertEqual(done.stderr, b"")
            self.assertRegex(done.stdout.decode(), r"^mica \d+\.\d+\.\d+\n$")
        self.assertEqual(execute([harness.mica, "--no-such"], check=False).returncode, 2)
        self.assertEqual(execute([harness.mica, "compile", "/nonexistent", "-o", "/tmp/x"], check=False).returncode, 1)

    def test_full_stdout(self):
        """A full disk causes an error line and status 1 in every command of the compiler."""
        output, text = os.path.join(harness.folder("stdout"), "program"), os.path.join(harness.folder("text"), "ids")
        pathlib.Path(text).write_text("5 6 7 8 9")
        model = BUNDLED / "minimind-dense"
        with open("/dev/full", "wb") as full:
            for arguments, what in ((["--help"], ""), (["--version"], ""), (["compile", "--help"], ""),
                                    (["compile", model, "--emit", "fused"], f"{model}: "),
                                    (["compile", model, "-o", output, "--json"], f"{output}: was written, but its report was not: "),
                                    (["inspect", model], f"{model}: "), (["inspect", model, "--json"], f"{model}: "),
                                    (["inspect", self.built.path], f"{self.built.path}: "),
                                    (["eval", self.built.path, "--tokens-file", text], ""),
                                    (["diff", self.built.path, self.built.path], "")):
                with self.subTest(arguments):
                    done = subprocess.run([harness.mica, *map(str, arguments)], stdout=full, stderr=subprocess.PIPE,
                                          timeout=harness.SECONDS, check=False)
                    self.assertEqual(done.stderr.decode(), f"mica: error: {what}cannot write to the standard output: "
                                                           "No space left on device; redirect it elsewhere\n")
                    self.assertEqual(done.returncode, 1)
        self.assertTrue(os.path.exists(output))

    def test_tokens_beyond_the_vocabulary(self):
        """A tokenizer may have more tokens than its model: compiling warns, and a prompt with such a token is rejected."""
        model = os.path.join(harness.folder("surplus"), "model")
        shutil.copytree(BUNDLED / "minimind-dense", model)
        path = pathlib.Path(model, "tokenizer.json")
        tokenizer = json.loads(path.read_text(encoding="utf-8"))
        tokenizer["added_tokens"].append({"id": 5000, "content": "<x>", "special": False, "normalized": False,
                                          "lstrip": False, "rstrip": False, "single_word": False})
        path.write_text(json.dumps(tokenizer), encoding="utf-8")
        said = harness.compile_messages(model, "-o", model + ".program")
        self.assertEqual(said, f"mica: warning: {model}: the tokenizer has 1 added token beyond the model's 512 ids, the first is \"<x>\"; "
                               "prompts with it will be rejected\n")
        execute([model + ".program", "-p", "ab", "-n", 1])
        self.refused(1, ["-p", "a<x>b", "-n", 1], "token 5000 is not in the model's vocabulary (0 to 511); use another prompt",
                     path=model + ".program")

    def test_a_model_without_a_tokenizer(self):
        """Compiling warns, and the program's error explains why it accepts no text, also if the model has a chat template."""
        model = pathlib.Path(harness.folder("wordless"), "model")
        shutil.copytree(BUNDLED / "minimind-dense", model)
        (model / "tokenizer.json").unlink()
        output = f"{model}.program"
        said = harness.compile_messages(model, "-o", output)
        self.assertEqual(said, f"mica: warning: {model}: has no tokenizer (tokenizer.json, tokenizer.model, vocab.json with merges.txt "
                               "or a *.tiktoken file); the program only accepts token ids (--tokens), no text and no chat\n")
        why = ("the program has no tokenizer; put the tokenizer's files into the model's folder and compile it again, "
               "or pass ids with --tokens")
        for arguments in (["-p", "ab"], ["--chat", "-p", "ab"], ["chat"]):
            self.refused(1, arguments, why, path=output)
        info = execute([output, "info"]).stdout.decode()
        self.assertRegex(info, r"(?m)^tokenizer +no; use --tokens$")
        self.assertRegex(info, r"(?m)^chat +no, the program has no tokenizer$")

    def test_info(self):
        """--check reports success (test_damaged_program tests failures); --licenses includes everything that is linked."""
        plain, checked = (self.built.run("info", *option).stdout.decode() for option in ((), ("--check",)))
        self.assertEqual(checked, plain + "check         all checksums match\n")
        self.assertEqual(json.loads(self.built.run("info", "--check", "--json").stdout)["check"], "ok")
        licenses = self.built.run("info", "--licenses").stdout.decode()
        for title in ("Boost.Beast, Boost.Asio and the Boost libraries that they use", "CLI11", "JSON for Modern C++", "xxHash", "PCRE2", "libstdc++ and libgcc", "Unicode data", "oneDNN",
                      "libedit", "libbsd", "libmd", "ncurses (libtinfo)"):
            self.assertTrue(re.search(rf"(?m)^{re.escape(title)}\n=+\n", licenses), title)
        for words in ("Permission is hereby granted", "Redistributions in binary form", "GCC Runtime Library Exception",
                      "Apache License", "Third Party Programs", "Unicode data files", "Boost Software License"):
            self.assertTrue(words in licenses, words)

    def test_program_is_executable_and_self_contained(self):
        """It runs in another folder, through a link, and without a reader of stdout."""
        self.assertTrue(os.stat(self.built.path).st_mode & stat.S_IXUSR)
        link = os.path.join(harness.folder("link"), "model")
        os.symlink(self.built.path, link)
        out = execute([link, *PROMPT, "-n", 2, "--print-tokens", "--temperature", 0, "--ignore-eos"],
                      env={"PATH": "", "LD_LIBRARY_PATH": ""}).stdout
        self.assertEqual([int(i) for i in out.split()], self.ids("-n", 2, "--temperature", 0))

    def damaged(self, change):
        path = os.path.join(harness.folder("damaged"), "program")
        shutil.copy(self.built.path, path)
        with open(path, "r+b") as f:
            change(f)
        return path

    def test_damaged_program(self):
        info = json.loads(self.built.run("info", "--json").stdout)
        sections = {s["name"]: s for s in info["sections"]}
        size = os.path.getsize(self.built.path)

        def flip(offset):
            return lambda f: harness.flip_byte(f, offset)

        for name in ("code", "manifest"):
            middle = sections[name]["offset"] + sections[name]["bytes"] // 2
            self.refused(1, [*PROMPT, "-n", 1], name, path=self.damaged(flip(middle)))
        for length in (size - 1, size - 100, sections["weights"]["offset"] + 10, sections["code"]["offset"]):
            self.refused(1, [*PROMPT, "-n", 1], f"the program is truncated ({length} bytes", f"bytes instead of {size})",
                         path=self.damaged(lambda f, n=length: f.truncate(n)))
        # The launcher itself is truncated: the kernel does not start it.
        launcher = sections["code"]["offset"] - 4096
        for length in (0, 100, 5000, launcher // 2, launcher - 1, launcher + 100):
            with self.assertRaises(OSError):
                execute([self.damaged(lambda f, n=length: f.truncate(n)), "info"], check=False)
        self.refused(1, [*PROMPT, "-n", 1], f"the program is too long ({size + 4} bytes", f"bytes instead of {size})",
                     path=self.damaged(lambda f: (f.seek(0, 2), f.write(b"more"))))
        self.refused(1, [*PROMPT, "-n", 1], "its last bytes are not a footer", path=self.damaged(flip(size - 1)))
        # Damage that is not checked at start is found on request. The byte of the launcher belongs to a notice of `info
        # --licenses`.
        notice = pathlib.Path(self.built.path).read_bytes().index(b"Permission is hereby granted")
        for name, offset in (("weights", sections["weights"]["offset"] + 64), ("launcher", notice)):
            path = self.damaged(flip(offset))
            execute([path, *PROMPT, "-n", 1])
            self.refused(1, ["info", "--check"], f"its section '{name}' does not match its checksum", path=path)
        damaged = self.damaged(flip(sections["weights"]["offset"] + 64))
        for options in ([*PROMPT, "-n", 1], ["bench", "--gen", 1, "--repeat", 1], [*PROMPT, "-n", 1, "--huge-pages"]):
            self.refused(1, [*options, "--verify-weights"], "its section 'weights' does not match its checksum", path=damaged)
        self.assertEqual(self.ids("-n", 1, "--temperature", 0, "--verify-weights"), self.ids("-n", 1, "--temperature", 0))

    def test_damaged_tokenizer(self):
        self.built = program(BUNDLED / "minimind-dense")
        section = next(s for s in json.loads(self.built.run("info", "--json").stdout)["sections"]
                       if s["name"] == "tokenizer")

        def change(f):
            f.seek(section["offset"] + section["bytes"] // 2)
            f.write(b"mica")

        self.refused(1, ["-p", "a", "-n", 1], "its section 'tokenizer' does not match its checksum",
                     path=self.damaged(change))

    def test_file_size_limit_leaves_nothing(self):
        target = harness.folder("limited")
        done = execute(["bash", "-c", 'ulimit -f 4000; exec "$@"', "-", harness.mica, "compile",
                        GOLDENS / "models/llama-gqa", "-o", os.path.join(target, "out")], check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)
        self.assertEqual(os.listdir(target), [])

    def test_small_stacks(self):
        """A low limit is raised, a low hard limit is an error: kernels with tiles keep them on the stack."""
        built = program(BUNDLED / "minimind-dense", "--weights", "int8")
        run = ["-", built.path, "-p", "One " * 30, "-n", "2", "--temperature", "0"]
        done = execute(["bash", "-c", 'ulimit -Ss 300; exec "$@"', *run], check=False)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        done = execute(["bash", "-c", 'ulimit -s 300; exec "$@"', *run], check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr.decode(), r"^mica: error: .*the stack is limited to 300 KiB \(ulimit -Hs\), but programs need 4096 KiB; raise")

    def test_full_disk_leaves_nothing(self):
        """A separate file system that is too small for the launcher."""
        unshare = ["unshare", "--user", "--map-root-user", "--mount", "bash", "-c"]
        target = harness.folder("full")
        if execute([*unshare, f"mount -t tmpfs -o size=1m none {target}"], check=False).returncode:
            self.skipTest("needs unshare and the right to mount a tmpfs in a namespace")
        done = execute([*unshare, f'mount -t tmpfs -o size=1m none {target} && "$@"; status=$?; ls -A {target}; exit $status',
                        "-", harness.mica, "compile", GOLDENS / "models/llama-gqa", "-o", f"{target}/out"], check=False)
        error = done.stderr.decode()
        self.assertEqual((done.returncode, done.stdout), (1, b""), error)
        self.assertEqual(error, f"mica: error: {target}/out: cannot be written (No space left on device); "
                                "free space or choose another -o\n")

    def interrupted(self, signal_, watched, *options, ignored=False):
        """Starts a compilation and sends a signal as soon as a file appears in the folder `watched` (target or temporary). Returns the
        files left in both, without dumped stages. An existing program is complete."""
        target, temporary = harness.folder("target"), harness.folder("temporary")
        place = {"target": target, "temporary": temporary}[watched]
        action = signal.SIG_IGN if ignored else signal.SIG_DFL
        process = subprocess.Popen(
            [harness.mica, "compile", BUNDLED / "minimind-dense", "-o", os.path.join(target, "out"), *options],
            preexec_fn=lambda: signal.signal(signal_, action), env={**os.environ, "TMPDIR": temporary}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        while not os.listdir(place) and process.poll() is None:
            pass
        process.send_signal(signal_)
        out, error = process.communicate(timeout=harness.SECONDS)
        if "out" in os.listdir(target):
            harness.Program(os.path.join(target, "out")).run("info")
        return process.returncode, out + error, os.listdir(target) + os.listdir(temporary)

    def test_ignored_signal_is_ignored(self):
        """As background jobs of a shell ignore SIGINT."""
        for signal_ in (signal.SIGINT, signal.SIGHUP):
            for options in ((), ("--dump-stages", harness.folder("stages"))):
                status, printed, left = self.interrupted(signal_, "target", *options, ignored=True)
                self.assertEqual((status, left), (0, ["out"]))
                self.assertRegex(printed, rb"^wrote [^\n]+\n$")

    def test_progress(self):
        """Compiling shows its progress on a terminal, where it leaves nothing behind, and nowhere else."""
        target = pathlib.Path(harness.folder("progress")) / "program"
        command = [harness.mica, "compile", BUNDLED / "minimind-dense", "-o", target]
        self.assertEqual(harness.compile_messages(*command[2:]), "")
        *shown, last = harness.screen_of(command, "stderr").split(b"\r\x1b[K")
        self.assertRegex(last, rb"^wrote [^\n]+\n$")
        bars = [re.fullmatch(rb"(#*)(\.*) +(\d+) % (.+)", line) for line in shown if line]
        self.assertTrue(all(bars), shown)
        self.assertEqual(bars[0][4], b"reading the model")
        # A single share for all stages and the bytes of weights, which only grows.
        shares = [int(bar[3]) for bar in bars]
        self.assertEqual((shares, shares[0], shares[-1]), (sorted(shares), 0, 100))
        stages = [bar[4].removeprefix(b"stage ") for bar in bars if bar[4].startswith(b"stage ")]
        self.assertEqual(list(dict.fromkeys(stages)), [b"model", b"fused", b"kernels", b"loops", b"llvm", b"ll", b"obj", b"exe"])
        self.assertRegex(bars[-1][4], rb"^weights, 4\.79 MiB of 4\.79 MiB$")
        self.assertGreater(len(set(shares)), 5)
        for bar in bars:
            self.assertEqual((len(bar[1]), len(bar[1]) + len(bar[2])), (int(bar[3]) * 30 // 100, 30))

    def test_interrupted_compile_leaves_nothing(self):
        met = 0
        for signal_ in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            for watched in ("target", "temporary"):
                for options in ((), ("--dump-stages", harness.folder("stages"))):
                    status, printed, left = self.interrupted(signal_, watched, *options)
                    # On a busy machine, the signal may arrive when the compiler has finished or is about to exit.
                    self.assertIn(status, (-signal_, 0), (signal_, watched, options, printed))
                    self.assertIn(left, ([], ["out"]) if status else (["out"],), (signal_, watched, options, printed))
                    self.assertRegex(printed, rb"^wrote [^\n]+\n$" if status == 0 else rb"^(wrote [^\n]+\n)?$")
                    met += not left
        note(self, f"{met} of 12 met at work")
        self.assertGreater(met, 0)

    def test_mica_run_replaces_damaged_programs(self):
        cache = harness.folder("cache")
        kept = os.path.join(cache, "mica")

        def run():
            out = execute([harness.mica, "run", GOLDENS / "models/llama-gqa", *PROMPT, "-n", 4, "--temperature", 0,
                           "--print-tokens", "--ignore-eos"], env={"XDG_CACHE_HOME": cache}).stdout
            self.assertEqual([int(i) for i in out.split()], self.ids("-n", 4, "--temperature", 0))
            (path,) = (os.path.join(kept, n) for n in os.listdir(kept) if not n.endswith(".lock"))
            return path

        path = run()
        size = os.path.getsize(path)
        for length in (0, 1000, size - 3000):
            os.truncate(path, length)
            self.assertEqual(run(), path)
            self.assertEqual(os.path.getsize(path), size)
        made = os.stat(path).st_ino
        pathlib.Path(kept, f".{os.path.basename(path)}.mica-1.tmp").write_bytes(b"left by a compiler that was killed")
        self.assertEqual((run(), os.stat(path).st_ino), (path, made), "an intact program is not compiled again")

    def test_output_to_a_device_is_refused(self):
        for name, folder in (("/dev/stdout", "/dev"), ("/proc/self/fd/1", "/proc")):
            done = execute([harness.mica, "compile", GOLDENS / "models/llama-gqa", "-o", name], check=False)
            self.assertEqual((done.returncode, done.stdout, done.stderr.decode()),
                             (1, b"", f"mica: error: {name}: cannot be written ({folder} cannot hold regular files); "
                                      "choose another -o\n"))

    def test_inspect_rejects_options_of_models_for_a_program(self):
        for option, *value in (["--weights", "int8"], ["--max-seq", "3"], ["--kv", "f32"], ["--target", "native"]):
            self.refused(2, ["inspect", self.built.path, option, *value], f"{option} does not apply to a program",
                         path=harness.mica)

    def test_mica_run_equals_the_program(self):
        cache = harness.folder("cache")
        for _ in range(2):
            out = execute([harness.mica, "run", GOLDENS / "models/llama-gqa", *PROMPT, "-n", 4, "--temperature", 0,
                           "--print-tokens", "--ignore-eos"], env={"XDG_CACHE_HOME": cache}).stdout
            self.assertEqual([int(i) for i in out.split()], self.ids("-n", 4, "--temperature", 0))
        done = execute([harness.mica, "run", GOLDENS / "models/llama-gqa", "--bogus"], env={"XDG_CACHE_HOME": cache}, check=False)
        self.assertEqual((done.returncode, done.stderr.decode()), (2, f"mica: error: {GOLDENS / 'models/llama-gqa'}: "
                         f"unexpected argument '--bogus'; see mica run {GOLDENS / 'models/llama-gqa'} --help\n"))
        kept = [n for n in os.listdir(os.path.join(cache, "mica")) if not n.endswith(".lock")]
        self.assertEqual(len(kept), 1, "compiled once")
        kept = os.path.join(cache, "mica", kept[0])
        os.chmod(kept, 0o644)
        file = os.path.join(cache, "file")
        pathlib.Path(file).touch()
        for env, why in (({"XDG_CACHE_HOME": cache}, f"{kept}: cannot be started (Permission denied); remove it and run again"),
                         ({"XDG_CACHE_HOME": file}, f"{file}/mica: cannot be created (Not a directory); set XDG_CACHE_HOME to a folder that exists"),
                         ({"MICA_CACHE_BYTES": "1 GB"}, 'MICA_CACHE_BYTES is not a number of bytes: "1 GB"; set it to one')):
            done = execute([harness.mica, "run", GOLDENS / "models/llama-gqa", "info"], env=env, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn(why, done.stderr.decode())
