"""Models written by hand in the dialect: programs compute the same as the interpreter."""

import os
import pathlib
import re
import sys

import numpy as np

import checkpoint
import harness
from harness import Case, execute, note, program

sys.path.insert(0, str(harness.ROOT / "tests/lit/ir/Inputs"))
import make_npy  # names and shapes of a module's weights

FENCED = re.compile(r"^```(\w*)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
MODELS = ("tiny-model", "tiny-moe")

# How a layer computes its result, by the operands of the last sum in tiny-model.mlir: x1 is the stream after attention, d the
# result of the second half. Only the first form, which the file has, can be computed in place.
LAST_SUM = "%x2 = mica.add %x1, %d : tensor<?x32xf32>"
NORM = "mica.rmsnorm {}, %norm2 eps(1.0e-05) : tensor<?x32xf32>, tensor<32xf32> -> tensor<?x32xf32>"
RESIDUALS = {
    "post-norm": "%x15 = mica.add %x1, %d : tensor<?x32xf32>\n    %x2 = " + NORM.format("%x15"),
    "norm-of-second-half": "%x2 = " + NORM.format("%d"),
    "none-in-second-half": "%x2 = mica.silu %d : tensor<?x32xf32>",
    "doubled": "%x2 = mica.add %d, %d : tensor<?x32xf32>",
    "layer-input-again": "%x15 = mica.add %x1, %d : tensor<?x32xf32>\n    %x2 = mica.add %x15, %x : tensor<?x32xf32>",
    "only-layer-input": "%x2 = mica.add %x, %d : tensor<?x32xf32>",
    "parallel": "%x15 = mica.add %o, %d : tensor<?x32xf32>\n    %x2 = mica.add %x, %x15 : tensor<?x32xf32>",
}


def write_model(folder, name, edit=None):
    """model.mlir and model.safetensors with random weights: norms 1 + 0.2 N, matrices N / sqrt(fan in)."""
    source, rng, tensors = harness.ROOT / f"tests/lit/ir/{name}.mlir", np.random.default_rng(0), {}
    for tensor, shape in make_npy.weights_of(source):
        x = rng.standard_normal([int(n) for n in shape.split("x")])
        tensors[tensor] = (1 + 0.2 * x if x.ndim == 1 else x / np.sqrt(x.shape[-1])).astype("<f4")
    checkpoint.write_tensors(os.path.join(folder, "model.safetensors"), tensors)
    path = pathlib.Path(folder, "model.mlir")
    path.write_text((edit or str)(source.read_text(encoding="utf-8")), encoding="utf-8")
    return str(path)


def interpreted(model, ids):
    """Logits of every position of `ids`, with the weights next to the model."""
    return harness.interpreted(model, [ids], os.path.dirname(model))[0]


def with_other_layer(text, edit=str):
    """With a second function for layers, `edit`ed."""
    start, end = text.index("  func.func private @layer("), text.index("  func.func @main(")
    return text[:end] + edit(text[start:end].replace("@layer(", "@other_layer(")) + text[end:]


def with_two_kinds(text):
    """The second layer calls another function, so that there is no loop over layers."""
    before, after = with_other_layer(text).rsplit("call @layer(", 1)
    return before + "call @other_layer(" + after


def with_layers(text, functions):
    """A call of each of these functions, in order, with the weights of both layers in turn."""
    start, end = text.index("    %layer0 = arith.constant"), text.index("    %xs = mica.select_rows")
    count, weights = len(functions), [line for line in text[start:end].splitlines() if "get_weight" in line]
    call = next(line for line in text[start:end].replace("\n        ", " ").splitlines() if "call @layer(%x0" in line)
    calls = [re.sub(r"(%(?:n1|n2|w[qkvo]|g|u|d))0\b", rf"\g<1>{i % 2}", call)
             .replace("%x1, %k1, %v1 =", f"%x{i + 1}, %k{i + 1}, %v{i + 1} =").replace("@layer(%x0,", f"@{function}(%x{i},")
             .replace("%k_cache, %v_cache", f"%k{i}, %v{i}" if i else "%k_cache, %v_cache").replace("%layer0", f"%layer{i}")
             for i, function in enumerate(functions)]
    layers = [f"    %layer{i} = arith.constant {i} : index" for i in range(count)]
    tail = text[end:].replace("%x2", f"%x{count}").replace("%k2, %v2", f"%k{count}, %v{count}")
    return (text[:start] + "\n".join([*weights, *layers, *calls]) + "\n" + tail).replace("kv_cache<2 x", f"kv_cache<{count} x")


def with_two_streams(text):
    """Each of six layers adds the input of the previous layer, which a loop would have to carry as well."""
    text = re.sub(r"@layer\(%x(\d),(.*?): \(", lambda m: f"@layer(%x{m[1]}, %x{max(int(m[1]) - 1, 0)},{m[2]}: (tensor<?x32xf32>, ",
                  with_layers(text, 6 * ["layer"]))
    text = text.replace("@layer(%x: tensor<?x32xf32>,", "@layer(%x: tensor<?x32xf32>, %z: tensor<?x32xf32>,")
    return text.replace(LAST_SUM, "%x15 = mica.add %x1, %d : tensor<?x32xf32>\n    %x2 = mica.add %x15, %z : tensor<?x32xf32>")


@harness.for_each(MODELS, "equals_the_interpreter")
@harness.for_each(RESIDUALS, "rolled")
@harness.for_each(("post-norm", "layer-input-again"), "two_kinds")
@harness.for_each(("post-norm", "only-layer-input", "layer-input-again"), "two_kinds_in_no_order")
class Handwritten(Case):
    def equals_the_interpreter(self, name):
        self.check(name)

    def rolled(self, name):
        self.check("tiny-model", lambda text: self.with_residual(text, name))

    def two_kinds(self, name):
        self.check("tiny-model", lambda text: with_two_kinds(self.with_residual(text, name)))

    def two_kinds_in_no_order(self, name):
        """Loops with two layer types, one as in the file, the other with a result computed differently."""
        functions = ["layer" if kind == "a" else "other_layer" for kind in "aababbbabbaaabab"]

        def edit(text):
            return with_other_layer(with_layers(text, functions), lambda layer: self.with_residual(layer, name))
        model = self.check("tiny-model", edit)
        self.assertIn("mica.index_table", harness.emit(model, "kernels"))

    def test_two_residual_streams(self):
        self.check("tiny-model", with_two_streams)

    def with_residual(self, text, name):
        self.assertEqual(text.count(LAST_SUM), 1)
        text = text.replace(LAST_SUM, RESIDUALS[name])
        # Both halves in parallel, with the same input.
        return text.replace("mica.rmsnorm %x1, %norm2", "mica.rmsnorm %x, %norm2") if name == "parallel" else text

    def check(self, name, edit=None):
        model = write_model(harness.folder(name), name, edit)
        prompt = np.random.default_rng(1).integers(3, 96, 20).tolist()
        (ids,), (rows,) = program(model).generate([prompt], 6)
        expected = interpreted(model, prompt + ids[:-1])
        self.close(rows, expected, 1e-5, "logits of prompt and generated ids")
        self.assertEqual(ids, expected[len(prompt) - 1:].argmax(1).tolist())
        return model

    def run_blocks(self, page, place):
        """Runs all blocks of commands of a page in order; returns the stdout of each."""
        text = (harness.ROOT / page).read_text(encoding="utf-8")
        blocks = [block for language, block in FENCED.findall(text) if not language and block.startswith("mica")]
        note(self, f"{page}: {len(blocks)} blocks, {sum(b.count(chr(10)) for b in blocks)} commands")
        # Both pages begin with this line.
        self.assertIn("export PATH=$PWD/build/release/bin:$PATH", text[:text.index("\nmica")])
        environment = {"PATH": f"{os.path.dirname(harness.mica)}:{os.environ['PATH']}", "XDG_CACHE_HOME": os.path.join(place, "cache"),
                       "EDITOR": "sed -i s/theta([^)]*)/theta(3.0e+00)/"}
        return [execute(["bash", "-eo", "pipefail", "-c", f"cd {place}; {block}"], env=environment).stdout.decode()
                for block in blocks]

    def test_commands_of_the_page(self):
        place = harness.folder("page")
        os.symlink(harness.ROOT / "tests", os.path.join(place, "tests"))
        write_model(place, "tiny-model")
        first, second = self.run_blocks("docs/handwritten-model.md", place)
        self.assertIn("mica.gated_linear", first, "the stage after fusion")
        self.assertIn("mica_forward:", first, "the assembly")
        self.assertRegex(first.splitlines()[-1], r"^\d+( \d+){3}$")
        self.assertIn("theta(3.0e+00)", pathlib.Path(place, "edited.mlir").read_text(encoding="utf-8"))
        original = program(harness.BUNDLED / "minimind-dense").run("-p", "count from 7 to 12:", "--temperature", 0)
        self.assertNotEqual(second, "")
        self.assertNotEqual(second, original.stdout.decode(), "another theta shows")

    def test_commands_of_the_readme(self):
        place = harness.folder("readme")
        for name in ("tests", "README.md"):
            os.symlink(harness.ROOT / name, os.path.join(place, name))
        first, second = self.run_blocks("README.md", place)
        for words in (" 2 3 4 5 6 7 8 9\n a b c d\n", "pp512", "qkv_append", "runs here", "KL(reference || program)", "same top"):
            self.assertIn(words, first)
        self.assertEqual(second.count("mica.qkv_append"), 2 * 1, "after fusion, by mica and by mica-opt")
        self.assertTrue(pathlib.Path(place, "page.html").exists())

    def test_excerpts_in_the_readme_are_up_to_date(self):
        text = (harness.ROOT / "README.md").read_text(encoding="utf-8")
        excerpts = [block for language, block in FENCED.findall(text) if language == "mlir"]
        self.assertEqual(len(excerpts), 2)
        for stage, excerpt in zip(("model", "fused"), excerpts):
            printed = execute([harness.mica, "compile", harness.BUNDLED / "minimind-dense", "--emit", stage]).stdout.decode()
            # Types are after a colon, up to the end of the line or of a list.
            lines = [re.sub(r" : [^()]*", "", line).strip() for line in printed.splitlines()]
            self.assertIn(f"\n{excerpt}", "\n".join(lines), f"stage {stage}, with the types left out")

    def test_versions_of_the_program_format_are_documented(self):
        """In docs/ir-changes.md all that have a message; in the changelog those that a program of this tree may have had."""
        source = (harness.ROOT / "backends/runtime/program/Format.h").read_text(encoding="utf-8")
        changes = dict(re.findall(r'^    \{(\d+), "(.*)"\},$', source, re.M))
        self.assertGreater(len(changes), 2)
        table = (harness.ROOT / "docs/ir-changes.md").read_text(encoding="utf-8").replace("`", "")
        for version, change in changes.items():
            self.assertIn(f"| {version} | {change} |\n", table)
        log = (harness.ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
        listed = re.findall(r"^- Version (\d+): ", log, re.M)
        self.assertEqual(listed, sorted(changes, key=int, reverse=True)[:len(listed)])
        self.assertGreater(len(listed), 1)

    def test_the_recorded_conversation_is_up_to_date(self):
        """In the README and in docs/terminal.txt, which is recorded in tmux."""
        recorded = (harness.ROOT / "docs/terminal.txt").read_text(encoding="utf-8")
        conversation = recorded[recorded.index("$ build/release/demo/minimind-dense chat"):]
        self.assertIn(f"```text\n{conversation.rstrip()}\n```", (harness.ROOT / "README.md").read_text(encoding="utf-8"))
        turns = re.findall(r"^> (.*)\n((?:(?!> ).*\n?)*)", conversation, re.MULTILINE)
        self.assertEqual(turns.pop()[0], "/exit")
        self.assertGreater(len(turns), 2)
        said = "".join(line + "\n" for line, _ in turns).encode()
        answers = program(harness.BUNDLED / "minimind-dense").run("chat", "--temperature", 0, stdin=said).stdout.decode()
        self.assertEqual(answers.split(), "".join(answer for _, answer in turns).split())

    def test_transcript_in_the_readme_is_up_to_date(self):
        text = (harness.ROOT / "README.md").read_text(encoding="utf-8")
        transcript = next(block for _, block in FENCED.findall(text) if "$ tools/quickstart.sh" in block)
        built = program(harness.BUNDLED / "minimind-dense")
        calls = re.findall(r"^\$ build/release/demo/minimind-dense (.*)\n((?:(?!\$ ).*\n?)*)", transcript, re.MULTILINE)
        self.assertEqual(len(calls), 4)
        for arguments, shown in calls:
            printed = execute(["bash", "-c", f"{built.path} {arguments}"]).stdout.decode()
            if arguments != "info":
                self.assertEqual(shown.rstrip("\n"), printed.rstrip("\n"), arguments)
                continue
            # Sizes and the target depend on the machine; counts of weights do not.
            lines = lambda table: [line for line in harness.without_numbers(table) if not line.startswith("target ")]
            self.assertEqual(lines(shown), lines(printed))
            weights = re.compile(r"^weights .*$", re.M)
            self.assertEqual(weights.findall(shown), weights.findall(printed))
