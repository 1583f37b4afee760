"""mica compile --calibrate and --imatrix: the quantization error of weights is minimized for their activations."""

import os
import pathlib
import re
import signal
import struct
import subprocess

import numpy as np

import checkpoint
import gguf_file
import harness
import outlier_twin
from harness import BUNDLED, Case, note, program
from test_eval import bundled_text, evaluate, file_of


def compile_failing(*arguments):
    done = harness.execute([harness.mica, "compile", *arguments, "-o", harness.folder("calibrate") + "/out"], check=False)
    return done.returncode, done.stderr.decode()


def imatrix(entries):
    """A GGUF file as written by llama-imatrix: name -> mean squares of one matrix."""
    def text(value):
        return struct.pack("<Q", len(value)) + value.encode()

    tensors = [(name + part, values) for name, squares in entries.items()
               for part, values in ((".in_sum2", [3 * x for x in squares]), (".counts", [3]))]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), 1) + text("general.type") + struct.pack("<I", 8) + text("imatrix")
    data = b""
    for name, values in tensors:
        data += b"\0" * (-len(data) % 32)
        head += text(name) + struct.pack("<IQIQ", 1, len(values), 0, len(data))
        data += struct.pack(f"<{len(values)}f", *values)
    path = os.path.join(harness.folder("imatrix"), "imatrix.gguf")
    pathlib.Path(path).write_bytes(head + b"\0" * (-len(head) % 32) + data)
    return path


#: The matrices of a layer of minimind-dense by their names in GGUF files, and their columns.
MATRICES = {"attn_q": 256, "attn_k": 256, "attn_v": 256, "attn_output": 512, "ffn_gate": 256, "ffn_up": 256, "ffn_down": 512}


def statistics_of_norms(folder, step=1):
    """Statistics of the inputs of q, k, v, gate and up of minimind-dense, or a changed one: the squares of the norms' weights. A `step` of
    -1 takes them in the reverse order."""
    norms = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
    inputs = {"attn_norm": ("attn_q", "attn_k", "attn_v"), "ffn_norm": ("ffn_gate", "ffn_up")}
    tensors = checkpoint.read(folder)
    squares = {norm: [gguf_file.to_f32(tensors[f"model.layers.{layer}.{name}.weight"]) ** 2 for layer in range(3)]
               for norm, name in norms.items()}
    return imatrix({f"blk.{layer}.{name}.weight": squares[norm][layer][::step].tolist()
                    for norm, names in inputs.items() for name in names for layer in range(3)})


class Calibrate(Case):
    def divergence(self, name, *options):
        reference = program(BUNDLED / name, "--weights", "f32")
        text = file_of(bundled_text()[:6000])
        return evaluate(program(BUNDLED / name, "--weights", "int4", *options).path, "--text", text,
                                "--reference", reference.path, "--as-decode")["kl"]["mean"]

    def test_int4_is_closer_to_f32(self):
        """On another text than the one for calibration, by more than a twentieth."""
        rest = file_of(bundled_text()[6000:])
        for name in ("minimind-dense", "minimind-moe"):
            plain, calibrated = self.divergence(name), self.divergence(name, "--calibrate", rest)
            note(self, f"{name}: KL of int4 {plain:.2e}, calibrated {calibrated:.2e}")
            self.assertLess(calibrated, 0.95 * plain, name)

    def test_the_same_bytes_on_any_number_of_threads(self):
        text = file_of(bundled_text()[:4000])
        files, allowed = [], sorted(os.sched_getaffinity(0))
        for processors in (str(allowed[0]), ",".join(map(str, allowed))):
            path = harness.folder("calibrate-threads") + "/out"
            harness.execute(["taskset", "-c", processors, harness.mica, "compile", BUNDLED / "minimind-moe", "--weights", "int4",
                             "--calibrate", text, "-o", path])
            with open(path, "rb") as file:
                files.append(file.read())
        self.assertEqual(*files)

    def test_imatrix_of_one_tensor(self):
        """Statistics of one tensor only change that one; a tensor of another width is rejected."""
        rows, columns = 256, 512
        path = imatrix({"blk.0.attn_output.weight": [1 + 1000 * (i % 2) for i in range(columns)]})
        # The weights are at the end, before at most 64 KiB, and after checksums.
        plain, weighted = (np.fromfile(path, "u1")[-report["weight_bytes"] - 65536:] for path, report in (
            harness.compile_file(BUNDLED / "minimind-dense", "--weights", "int4", *options) for options in ((), ("--imatrix", path))))
        changed = np.flatnonzero(plain != weighted)
        # 148 bytes for 256 elements.
        packed = rows * columns // 256 * 148
        note(self, f"{len(changed)} bytes in a range of {changed[-1] - changed[0] + 1} are changed, of a matrix of {packed}")
        self.assertGreater(len(changed), packed / 10)
        self.assertLess(changed[-1] - changed[0], packed)
        other = imatrix({"blk.0.attn_output.weight": [1, 2]})
        status, error = compile_failing(BUNDLED / "minimind-dense", "--weights", "int4", "--imatrix", other)
        *_, refusal = error.splitlines()
        self.assertEqual(status, 1, error)
        self.assertIn(f"has 512 columns, but the statistics in {other} are for 2; use those of this model", refusal)

    def test_files_of_llama_imatrix(self):
        """Real files in both formats are the same statistics, and reduce the divergence on another text. They lack the lm_head."""
        files = [harness.GOLDENS / f"imatrix/minimind-dense.{kind}" for kind in ("gguf", "dat")]
        for file in files:
            self.assertIn(f"mica: note: {file}: has statistics for 21 of 22 matrices of ", self.messages("--imatrix", file))
        built = [np.fromfile(program(BUNDLED / "minimind-dense", "--weights", "int4", "--imatrix", file).path, "u1") for file in files]
        self.assertTrue(np.array_equal(*built))
        plain, weighted = self.divergence("minimind-dense"), self.divergence("minimind-dense", "--imatrix", files[0])
        note(self, f"minimind-dense: KL of int4 {plain:.2e}, with a file of llama-imatrix {weighted:.2e}")
        self.assertLess(weighted, 0.97 * plain)

    def test_statistics_of_norms(self):
        """Inputs of q, k, v, gate and up are in proportion to the norm's weights: their squares as statistics are about as good as
        measured ones where a few channels are large, and the same numbers for other channels are not."""
        folder = checkpoint.edited(BUNDLED / "minimind-dense", os.path.join(harness.folder("outliers"), "model"),
                                   tensors=outlier_twin.add_outliers)
        text, exact = file_of(bundled_text()[:6000]), program(folder, "--weights", "f32")
        kls = []
        for step in (1, -1):
            built = program(folder, "--weights", "int4", "--imatrix", statistics_of_norms(folder, step))
            kls.append(evaluate(built.path, "--text", text, "--reference", exact.path, "--as-decode")["kl"]["mean"])
        note(self, f"KL of int4 with statistics {kls[0]:.2e}, with those of other channels {kls[1]:.2e}")
        self.assertLess(kls[0], 0.85 * kls[1])

    def messages(self, *options, model=BUNDLED / "minimind-dense"):
        """The messages of compiling a model."""
        done = harness.execute([harness.mica, "compile", model, "--weights", "int4", *options,
                                "-o", harness.folder("calibrate-messages") + "/out"])
        return done.stderr.decode()

    def test_imatrix_with_missing_matrices(self):
        """With statistics of few matrices, one without statistics is named."""
        model = BUNDLED / "minimind-dense"
        widths = {f"blk.{layer}.{name}.weight": width for layer in range(3) for name, width in MATRICES.items()}
        complete = {name: [1.0 + i % 3 for i in range(width)] for name, width in widths.items()}
        few = imatrix({"blk.0.attn_output.weight": complete["blk.0.attn_output.weight"]})
        messages, count = self.messages("--imatrix", few), len(widths) + 1
        self.assertIn(f"mica: warning: {few}: has statistics for 1 of {count} matrices of {model}, but not for \"blk.", messages)
        incomplete = imatrix(complete)
        messages = self.messages("--imatrix", incomplete)
        self.assertIn(f"{incomplete}: has statistics for {count - 1} of {count} matrices of {model}\n", messages)
        self.assertNotIn("warning", messages)

    def test_a_short_text(self):
        """Few ids are used, and a warning says how many."""
        short, enough = file_of("ab"), file_of(bundled_text())
        self.assertRegex(self.messages("--calibrate", short),
                         re.escape(f"warning: {short}: statistics cover only ") + "[23] tokens; use a text of at least 1024")
        self.assertNotIn("ids only", self.messages("--calibrate", enough))

    def test_matrices_without_statistics_are_counted(self):
        """Those of the second matrix of experts that the text does not select; nothing is reported if there are none."""
        short, model = file_of("ab"), BUNDLED / "minimind-moe"
        messages = self.messages("--calibrate", short, model=model)
        count = re.search(re.escape(f"{short}: gives statistics for ") + r"(\d+) of (\d+) matrices of " + re.escape(str(model)), messages)
        self.assertIsNotNone(count, messages)
        config = checkpoint.config_of(model)
        layers, experts, selected = (config[key] for key in ("num_hidden_layers", "n_routed_experts", "num_experts_per_tok"))
        missing = int(count[2]) - int(count[1])
        self.assertTrue(0 < missing <= layers * (experts - selected), missing)
        for name in ("minimind-moe", "minimind-dense"):
            self.assertNotIn("statistics", self.messages("--calibrate", file_of(bundled_text()), model=BUNDLED / name))

    def test_for_another_machine(self):
        """The model runs on this machine, whatever the program is for."""
        foreign = "znver4" if harness.has_cpu("amx_tile") else "sapphirerapids"
        messages = self.messages("--calibrate", file_of(bundled_text()), "--target", foreign)
        self.assertRegex(messages, rf"^wrote \S+ \(.*\); copy it to a machine with a {foreign}$")

    def test_progress(self):
        """On a terminal, the share of the text that has been computed, between the two compilations."""
        command = [harness.mica, "compile", BUNDLED / "minimind-dense", "--weights", "int4", "--calibrate", file_of(bundled_text()),
                   "-o", harness.folder("progress") + "/out"]
        *shown, last = harness.screen_of(command, "stderr").split(b"\r\x1b[K")
        self.assertRegex(last, rb"^wrote [^\n]+\n$")
        bars = [(bar[2], int(bar[1])) for bar in (re.fullmatch(rb"[#.]* +(\d+) % (.+)", line) for line in shown if line)]
        shares = [share for what, share in bars if what == b"calibrating"]
        self.assertEqual((shares[0], shares), (0, sorted(shares)))
        self.assertGreater(len(set(shares)), 2)
        self.assertEqual(bars[-1][1], 100)

    def test_an_interrupted_calibration_leaves_nothing(self):
        """No program, statistics or process remains."""
        scratch, text = harness.folder("calibrate-interrupted"), file_of(bundled_text() * 4)
        for number in (signal.SIGINT, signal.SIGTERM):
            process = subprocess.Popen([harness.mica, "compile", BUNDLED / "minimind-dense", "--weights", "int4", "--calibrate", text,
                                        "-o", scratch + "/out"], env={**os.environ, "TMPDIR": scratch}, stderr=subprocess.DEVNULL)
            harness.until(lambda: any("mica-column-sums" in name for name in os.listdir(scratch)) or process.poll() is not None,
                          "no statistics are begun")
            self.assertIsNone(process.poll(), "it was to be interrupted")
            process.send_signal(number)
            self.assertEqual(process.wait(timeout=harness.SECONDS), -number)
            harness.until(lambda: not os.listdir(scratch), "not everything is removed")

    def test_refusals(self):
        model, text = BUNDLED / "minimind-dense", file_of(bundled_text()[:4000])
        foreign, short = imatrix({"blk.0.other.weight": [1, 2]}), file_of("a")
        emptied = harness.folder("no-tokenizer")
        for name in os.listdir(model):
            if not name.startswith("tokenizer"):
                os.symlink(os.path.join(model, name), os.path.join(emptied, name))
        written = os.path.join(harness.folder("written"), "model.mlir")
        harness.execute([harness.mica, "compile", model, "--emit", "model", "-o", written])
        os.symlink(model / "model.safetensors", os.path.join(os.path.dirname(written), "model.safetensors"))
        experts = imatrix({"blk.0.ffn_gate_exps.weight": [1, 2, 3]})
        for status, arguments, words in (
                (1, (BUNDLED / "minimind-moe", "--weights", "int4", "--imatrix", experts),
                 f'{experts}: has 3 numbers for 4 matrices ("blk.0.ffn_gate_exps.weight"); use the statistics of this model'),
                (2, (model, "--calibrate", text), "--calibrate needs --weights int8 or int4"),
                (2, (model, "--weights", "bf16", "--imatrix", foreign), "--imatrix needs --weights int8 or int4"),
                (2, (model, "--weights", "int4", "--calibrate", text, "--emit", "obj"), "--calibrate needs --emit exe"),
                (1, (model, "--weights", "int4", "--calibrate", "/nowhere"), "/nowhere"),
                (1, (model, "--weights", "int4", "--calibrate", short), f"{short}: has 1 token; use a longer text"),
                (1, (model, "--weights", "int4", "--calibrate", emptied), "is a directory where a file is expected; pass a file"),
                (1, (model, "--weights", "int4", "--imatrix", emptied), "is a directory where a file is expected; pass a file"),
                (1, (emptied, "--weights", "int4", "--calibrate", text),
                 f"{emptied}: has no tokenizer, which --calibrate needs; put tokenizer.json into the folder, or use --imatrix"),
                (1, (model, "--weights", "int4", "--imatrix", text), "is not a llama-imatrix file"),
                (1, (model, "--weights", "int4", "--imatrix", foreign), f"{foreign}: has no statistics for any matrix of {model}; use those of this model"),
                (1, (written, "--weights", "int4", "--imatrix", foreign), f"{written}: has no mapping of tensor names to those of GGUF files; "
                                                                         "use --calibrate, or the folder or GGUF file that it came from")):
            code, error = compile_failing(*arguments)
            self.assertEqual((code, error.count("\n")), (status, 1), error)
            self.assertTrue(error.startswith("mica: error: "), error)
            self.assertIn(words, error)
