"""The backend uses generated code and oneDNN on packed weights, and nothing else."""

import collections
import ctypes
import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np

import checkpoint
import harness
from harness import Case, compile_file, execute, note, program
from test_eval import bundled_text, file_of

sys.path.insert(0, str(harness.ROOT / "tests/tools"))
import resident

PR_SET_THP_DISABLE = 41  # linux/prctl.h
CONFIG = {"model_type": "llama", "hidden_act": "silu", "hidden_size": 512, "intermediate_size": 1408,
          "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 2048,
          "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": True}
MOE = {**CONFIG, "model_type": "minimind", "use_moe": True, "n_routed_experts": 4, "n_shared_experts": 1,
       "num_experts_per_tok": 2, "norm_topk_prob": True, "scoring_func": "softmax", "hidden_size": 256,
       "intermediate_size": 256}
HIDDEN, INNER = CONFIG["hidden_size"], CONFIG["intermediate_size"]
KEYS = HIDDEN // CONFIG["num_attention_heads"] * CONFIG["num_key_value_heads"]
# The numbers of columns of weights in a layer that oneDNN multiplies, by K: q/k/v, o, gate and up; down.
COLUMNS = {HIDDEN: (HIDDEN + 2 * KEYS) + HIDDEN + 2 * INNER, INNER: HIDDEN}
ALLOWED = {"memcpy", "memset", "memmove"}
# Targets on which matmuls of many rows use oneDNN: if AMX tiles are available, they multiply bf16.
LIBRARY = {"f32": (), "bf16": ("--target", "cooperlake")}


def random_model(config, layers, dtype):
    """A folder with random weights, written once per run."""
    return harness.once(("random", json.dumps(config), layers, dtype), lambda: checkpoint.random(
        harness.folder("random"), {**config, "num_hidden_layers": layers}, dtype))


def symbols_of(path, kind):
    """The symbols of an object file that are undefined or, by `kind`, defined and exported."""
    tool = shutil.which("llvm-nm-22") or shutil.which("llvm-nm") or shutil.which("nm")
    lines = execute([tool, *kind, path]).stdout.decode().splitlines()
    return {line.split()[-1] for line in lines if line.strip()}


def calls(output):
    """(creations, executions): the lines of oneDNN's log, without times."""
    found = {"create": [], "exec": []}
    for line in output.decode().splitlines():
        match = re.match(r"onednn_verbose,.*?(create:cache_miss|create:cache_hit|create|exec),(cpu,.*),[^,]*$", line)
        if match:
            found[match[1].split(":")[0]].append(match[2])
    return found["create"], found["exec"]


def columns_of(executed):
    """{K: columns of weights multiplied by rows of K numbers}, in any number of panels."""
    found = collections.Counter()
    for line in executed:
        _, k, n = map(int, re.search(r",(\d+)x(\d+):\2x(\d+)", line + ",").groups())
        found[k] += n
    return dict(found)


def tag_of(ir):
    """oneDNN's name for the layout of weights in the IR: panels of columns in blocks along K, in which `depth` consecutive values are
    stored together."""
    (layout,) = set(re.findall(r"#mica\.packed<columns = (\d+), depth = (\d+), k_block = (\d+)>", ir))
    columns, depth, block = map(int, layout)
    return f"BA{block // depth}a{columns}b" + (f"{depth}a" if depth > 1 else "")


def prompt(n):
    return ",".join(str(3 + i * 7 % 2000) for i in range(n))


def two_layers(name):
    return harness.GOLDENS / "models" / name


@harness.for_each(("f32", "bf16"), "onednn_512")
@harness.for_each(("f32", "bf16"), "onednn_threads")
@harness.for_each(("bf16", "int8", "int4"), "tiles_512")
@harness.for_each(("f32", "bf16"), "undefined_symbols")
class Backend(Case):
    def undefined_symbols(self, weights):
        names = ("llama-biases", "llama-rope-yarn", "minimind2-moe", "minimind3-dense", "qwen3-moe-mixed")
        models = [two_layers(n) for n in names] + [harness.BUNDLED / n for n in ("minimind-dense", "minimind-moe")]
        for model in models:
            path, _ = compile_file(model, "--weights", weights, emit="obj")
            symbols = symbols_of(path, ["--undefined-only"])
            note(self, f"{model.name}: {' '.join(sorted(symbols))}")
            self.assertLessEqual(symbols, ALLOWED, model.name)
            self.assertIn("mica_forward", symbols_of(path, ["--defined-only", "--extern-only"]), model.name)

    def onednn_512(self, weights):
        harness.needs_cpu(*{"f32": ("avx512bw",), "bf16": ("avx512bw", "avx512_bf16")}[weights])
        creations, tag = {}, tag_of(harness.emit(random_model(CONFIG, 4, weights), "kernels", *LIBRARY[weights]))
        for layers in (4, 8):
            built = program(random_model(CONFIG, layers, weights), *LIBRARY[weights])
            log = built.run("--tokens", prompt(512), "-n", 4, "--temperature", 0, "--print-tokens",
                            env={"ONEDNN_VERBOSE": "all"}).stdout
            created, executed = calls(log)
            creations[layers] = created
            self.assertEqual(columns_of(executed), {k: layers * n for k, n in COLUMNS.items()})
            for line in executed:
                self.assertRegex(line, r"^cpu,matmul,brg_matmul:")
                self.assertIn(f"wei:{weights}::blocked:{tag}::f0", line)
            self.assertEqual([r for r in executed if ",ref" in r], [])
            self.assertNotIn(b"cpu,reorder", log)
            self.assertEqual(sorted(created), sorted(set(executed)), "one primitive per shape and format")
        note(self, f"{len(creations[4])} primitives created with 4 layers, {len(creations[8])} with 8")
        self.assertEqual(sorted(creations[4]), sorted(creations[8]))

        built = program(random_model(CONFIG, 4, weights), *LIBRARY[weights])
        again = calls(built.run("bench", "--prompt", 512, "--gen", 2, "--repeat", 3,
                                env={"ONEDNN_VERBOSE": "all"}).stdout)
        self.assertEqual(len(again[0]), len(set(again[0])), "later prompts create nothing")
        self.assertEqual(sorted(again[0]), sorted(creations[4]), "they are those of any prompt of this length")
        for k, columns in COLUMNS.items():
            self.assertGreaterEqual(columns_of(again[1])[k], 3 * 4 * columns)
        chunks = calls(built.run("--tokens", prompt(1024), "-n", 1, "--prefill-chunk", 512, "--print-tokens",
                                 env={"ONEDNN_VERBOSE": "all"}).stdout)
        self.assertEqual(sorted(chunks[0]), sorted(creations[4]), "the second piece of 512 creates nothing")

    def onednn_threads(self, weights):
        """Above the GEMM threshold, oneDNN may split its work by the number of threads; for these shapes it does not split sums over K.
        Results are bit-identical."""
        harness.needs_cpu(*{"f32": (), "bf16": ("avx512bw", "avx512_bf16")}[weights])
        built = program(random_model(CONFIG, 4, weights), *LIBRARY[weights])
        ids = [int(i) for i in prompt(512).split(",")]
        rows = {threads: built.generate([ids], 1, "--threads", threads)[1][0] for threads in (1, 2, 3, 4)}
        for threads in (2, 3, 4):
            self.assertTrue(np.array_equal(rows[threads], rows[1]),
                            f"{threads} threads: {harness.difference(rows[threads], rows[1]):.1e}")

    def tiles_512(self, weights):
        """AMX tiles compute any number of bf16 rows without oneDNN, which multiplies many rows by expanded blocks: results are
        bit-identical for any chunks of a prompt and any number of threads."""
        harness.needs_cpu("amx_tile", "amx_bf16", "amx_int8")
        built = program(random_model(CONFIG, 2, "bf16"), "--weights", weights)
        log = built.run("--tokens", prompt(512), "-n", 4, "--temperature", 0, "--print-tokens",
                        env={"ONEDNN_VERBOSE": "all"}).stdout
        self.assertEqual(bool(calls(log)[1]), weights != "bf16")
        ids = [int(i) for i in prompt(530).split(",")]
        rows = built.generate([ids], 1, "--prefill-chunk", 1)[1][0]
        for options in (("--prefill-chunk", c) for c in (4, 5, 16, 17, 33, 250, 256, 257, 530)):
            self.assertTrue(np.array_equal(built.generate([ids], 1, *options)[1][0], rows), options)
        for threads in (1, 3):
            self.assertTrue(np.array_equal(built.generate([ids], 1, "--threads", threads)[1][0], rows), threads)

    def test_no_cache_is_copied(self):
        """Stage loops contains no copy and no allocation."""
        for name in ("llama-gqa", "minimind2-moe", "minimind3-dense"):
            text = harness.emit(two_layers(name), "loops")
            self.assertIn("func.func", text)
            for word in ("memref.copy", "linalg.copy", "memref.alloc("):
                self.assertNotIn(word, text, name)


@harness.for_each(("f32", "bf16"), "bytes_per_decode_step")
class DecodeWrites(Case):
    def step(self, folder, weights, depths):
        """The writes of decode steps at these depths, called through the object's own interface."""
        compiler = harness.c_compiler()
        place = harness.folder("step")
        built = program(folder, "--weights", weights)
        info = json.loads(built.run("info", "--json").stdout)
        manifest = info["manifest"]
        manifest["weight_bytes"] = next(s["bytes"] for s in info["sections"] if s["name"] == "weights")
        with open(os.path.join(place, "manifest.json"), "w", encoding="utf-8") as f:
            json.dump(manifest, f)
        library = os.path.join(place, "model.so")
        execute([compiler, "-shared", "-Wl,-z,defs", "-o", library,
                 compile_file(folder, "--weights", weights, emit="obj")[0]])
        done = execute([sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "decode_step.py"),
                        library, os.path.join(place, "manifest.json"), *depths])
        return {int(k): v for k, v in json.loads(done.stdout).items()}, manifest

    def bytes_per_decode_step(self, weights):
        """The bytes written by a step do not grow with its depth: one position in the caches, and in scratch memory a constant plus a
        softmax state for each chunk of positions, of which there are at most 16."""
        config = {**CONFIG, "hidden_size": 128, "intermediate_size": 256, "num_attention_heads": 4, "vocab_size": 256}
        for name, folder in (("llama", random_model(config, 3, weights)),
                             ("moe", random_model({**MOE, **{k: config[k] for k in (
                                 "hidden_size", "num_attention_heads", "vocab_size")}}, 2, weights))):
            report, manifest = self.step(folder, weights, (16, 4096, 4112, 8191))
            row = sum(c["bytes_per_token"] for c in manifest["caches"])
            note(self, f"{name}: {report}, {row} bytes per token in the caches")
            for depth, chunks in ((4096, 9), (4112, 9), (8191, 16)):
                softmaxes = chunks * config["num_attention_heads"] * (32 + 32) * 4  # heads of 32 numbers
                self.assertLessEqual(report[depth]["scratch"], report[16]["scratch"] + softmaxes, f"at depth {depth}")
                self.assertLessEqual(report[depth]["caches"], row)
            self.assertGreater(report[4096]["caches"], row // 2, "the new position is there")
            self.assertGreater(report[4096]["scratch"], 0)
            self.assertGreater(report[4096]["read_only_pages"], 10 * report[4096]["pages"])
            self.assertEqual({r["products"] for r in report.values()}, {0}, "one row is generated code's work")


def text_size(path):
    """Bytes of executable sections of an ELF64 object."""
    data = np.fromfile(path, "u1").tobytes()
    table = int.from_bytes(data[0x28:0x30], "little")
    size, count = (int.from_bytes(data[a:a + 2], "little") for a in (0x3A, 0x3C))
    total = 0
    for i in range(count):
        header = data[table + i * size:table + (i + 1) * size]
        if int.from_bytes(header[8:16], "little") & 4:
            total += int.from_bytes(header[32:40], "little")
    return total


class CodeSize(Case):
    def test_code_does_not_grow_with_layers(self):
        """Code size is tested; times are only printed: those of the stages that produce code (llvm, ll, obj), which do not depend on the
        number of layers, and those of earlier stages, which have a symbol per weight and a call per layer."""
        config = {**CONFIG, "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4, "vocab_size": 256}
        for weights in ("f32", "bf16"):
            sizes, seconds, before = {}, {}, {}
            for layers in (8, 64):
                path, report = compile_file(random_model(config, layers, weights), emit="obj")
                sizes[layers] = text_size(path)
                seconds[layers] = sum(s["seconds"] for s in report["stages"] if s["stage"] in ("llvm", "ll", "obj"))
                before[layers] = sum(s["seconds"] for s in report["stages"]) - seconds[layers]
            note(self, f"{weights}, 8 and 64 layers: {sizes[8]} and {sizes[64]} bytes of code (10 % allowed), {seconds[8]:.2f} "
                       f"and {seconds[64]:.2f} s to make it, {before[8]:.2f} and {before[64]:.2f} s from model to loops")
            self.assertGreater(sizes[8], 1000)
            self.assertLess(abs(sizes[64] / sizes[8] - 1), 0.1)

    def test_code_does_not_grow_with_alternating_layer_types(self):
        """One layer in `period` has a larger window than its neighbors."""
        for name, period in (("gemma2", 2), ("gemma3-text", 6), ("gpt-oss", 2)):
            self.kinds(name, *([i % period == period - 1 for i in range(n * period)] for n in (4, 16)))

    def test_code_does_not_grow_with_irregular_layer_types(self):
        """Layers have a larger window than their neighbors at random."""
        chance = np.random.default_rng(0).random(64) < 0.5
        for name in ("gemma2", "gpt-oss"):
            self.kinds(name, chance[:16], chance)

    def kinds(self, name, *layers):
        """Few and many layers of two types."""
        sizes = []
        for full in layers:
            place = harness.folder(f"kinds-{name}-{len(full)}")
            config = json.loads((harness.GOLDENS / "models" / name / "config.json").read_text())
            kinds = ["full_attention" if is_full else "sliding_attention" for is_full in full]
            with open(os.path.join(place, "config.json"), "w", encoding="utf-8") as file:
                json.dump({**config, "num_hidden_layers": len(full), "layer_types": kinds}, file)
            sizes.append(text_size(compile_file(place, emit="obj")[0]))
        note(self, f"{name}: {sizes[0]} and {sizes[1]} bytes of code for {len(layers[0])} and {len(layers[1])} layers")
        self.assertLess(abs(sizes[1] / sizes[0] - 1), 0.1, name)

    def test_code_does_not_grow_with_mixtures(self):
        config = {**MOE, "hidden_size": 64, "intermediate_size": 64, "num_attention_heads": 4, "vocab_size": 256}
        sizes = [text_size(compile_file(random_model(config, n, "bf16"), emit="obj")[0]) for n in (4, 32)]
        note(self, f"{sizes[0]} and {sizes[1]} bytes of code for 4 and 32 sparse layers")
        self.assertLess(abs(sizes[1] / sizes[0] - 1), 0.1)


@harness.for_each(("bf16", "int8", "int4"), "only_chosen_experts")
class Memory(Case):
    def test_peak_does_not_grow_with_the_model(self):
        """Ten times the weights, in more layers and in a matrix that is larger than the whole small model."""
        peaks, sizes = {}, {}
        for name, layers, vocab in (("small", 1, 2048), ("large", 5, 96000)):
            place = harness.folder(name)
            checkpoint.random(place, {**CONFIG, "hidden_size": 1024, "intermediate_size": 2816, "vocab_size": vocab,
                                      "num_hidden_layers": layers}, "bf16")
            sizes[name] = os.path.getsize(os.path.join(place, "model.safetensors"))
            report = json.loads(execute([harness.mica, "compile", place, "-o", os.path.join(place, "program"),
                                         "--json"]).stdout)
            self.assertGreater(report["weight_bytes"], 0.9 * sizes[name])
            peaks[name] = report["peak_anonymous_bytes"]
            shutil.rmtree(place)
        note(self, ", ".join(f"{n}: {peaks[n] >> 20} MB at the peak for {sizes[n] >> 20} MB of weights" for n in peaks))
        self.assertGreater(sizes["large"], 10 * sizes["small"])
        self.assertLess(peaks["large"] - peaks["small"], 64 << 20)
        self.assertLess(peaks["large"], 1e9)

    def test_mapped_input_is_dropped(self):
        """In a model with many tensors only a few are mapped at once, even if weights are read before they are packed."""
        sizes, peaks = {}, {}
        for layers in (1, 8):
            place = harness.folder("mapped")
            checkpoint.random(place, {**CONFIG, "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": layers},
                              "bf16")
            sizes[layers] = os.path.getsize(os.path.join(place, "model.safetensors"))
            for weights in ("bf16", "int8"):
                done, peak = resident.run([harness.mica, "compile", place, "-o", os.path.join(place, "program"),
                                           "--weights", weights])
                self.assertEqual(done.returncode, 0, done.stderr)
                peaks[weights, layers] = peak["RssFile"]
            shutil.rmtree(place)
        for weights in ("bf16", "int8"):
            more = peaks[weights, 8] - peaks[weights, 1]
            note(self, f"{weights}: {more / 1e6:.1f} MB more of files are mapped at the peak where the model has "
                       f"{(sizes[8] - sizes[1]) / 1e6:.1f} MB more")
            self.assertGreater(peaks[weights, 1], 1e6)
            self.assertLess(more, 0.2 * (sizes[8] - sizes[1]), weights)

    def test_calibration_takes_no_memory_for_weights(self):
        """Beside the pages of the program that is run: of a model with more layers, no more is mapped or kept."""
        text, sizes, peaks = file_of(bundled_text()[:800]), [], {kind: [] for kind in ("RssFile", "RssAnon")}
        for layers in (1, 5):
            place = harness.folder("mapped")
            checkpoint.random(place, {**CONFIG, "num_hidden_layers": layers, "vocab_size": 512}, "bf16")
            for name in ("tokenizer.json", "tokenizer_config.json"):
                shutil.copy(harness.BUNDLED / "minimind-dense" / name, place)
            sizes.append(os.path.getsize(os.path.join(place, "model.safetensors")))
            done, peak = resident.run([harness.mica, "compile", place, "-o", os.path.join(place, "program"), "--weights", "int8",
                                       "--calibrate", text])
            self.assertEqual(done.returncode, 0, done.stderr)
            for kind, found in peaks.items():
                found.append(peak[kind])
            shutil.rmtree(place)
        size = sizes[1] - sizes[0]
        for kind, (one, several) in peaks.items():
            note(self, f"{kind}: {(several - one) / 1e6:.1f} MB more at the peak where the model has {size / 1e6:.1f} MB more")
            self.assertLess(several - one, 0.5 * size, kind)

    def test_packing_uses_all_cores(self):
        """Packing uses as many threads as computing, limited by the processors available to the process."""
        compiled = program(harness.BUNDLED / "minimind-dense")
        place = harness.folder("packed")
        for allowed in ({min(os.sched_getaffinity(0))}, os.sched_getaffinity(0)):
            before = os.sched_getaffinity(0)
            os.sched_setaffinity(0, allowed)
            try:
                report = json.loads(execute([harness.mica, "compile", harness.BUNDLED / "minimind-dense", "--json",
                                             "-o", os.path.join(place, "program")]).stdout)
                threads = json.loads(compiled.run("bench", "--prompt", 1, "--gen", 1, "--repeat", 1, "--json").stdout)["threads"]
            finally:
                os.sched_setaffinity(0, before)
            self.assertEqual(report["packing_threads"], threads)
            self.assertLessEqual(threads, len(allowed))
            with open(os.path.join(place, "program"), "rb") as one, open(compiled.path, "rb") as other:
                self.assertEqual(one.read(), other.read())

    def touched(self, compiled, requests):
        """The number of bytes of weights that a process has read after each request, a list of ids; all belong to one sequence."""
        info, counts = json.loads(compiled.run("info", "--json").stdout), []
        # Data that is not in the page cache is read in pieces of at most a huge page.
        with open(compiled.path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        with subprocess.Popen([compiled.path, "score"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            length = 0
            for ids in requests:
                process.stdin.write(f"{length} {len(ids) - 1} {' '.join(map(str, ids))}\n".encode())
                process.stdin.flush()
                self.assertEqual(len(process.stdout.read(4 * info["vocab"])), 4 * info["vocab"])
                length += len(ids)
                counts.append(resident.pages_of(process.pid, compiled.path, info["manifest"]["weight_bytes"]))
            process.stdin.close()
        return counts

    def only_chosen_experts(self, weights):
        """Experts that no row chooses are not read. Of eight experts the gate chooses the second or the last: its rows are zero except for
        these two, one of which is the negative of the other, so that one of the scores is positive."""
        config = {**MOE, "n_routed_experts": 8, "num_experts_per_tok": 1, "n_shared_experts": 0,
                  "intermediate_size": {"bf16": 8192, "int8": 16384, "int4": 32768}[weights]}
        plain, place = random_model(config, 2, "bf16"), os.path.join(harness.folder("gates"), "gates")
        rng = np.random.default_rng(7)

        def choose(tensors):
            for name in tensors:
                if name.endswith("mlp.gate.weight"):
                    rows = np.zeros(tensors[name].shape, "<f4")
                    rows[1] = rng.standard_normal(rows.shape[1])
                    rows[7] = -rows[1]
                    tensors[name] = (rows.view("u4") >> 16).astype("<u2")

        checkpoint.edited(plain, place, tensors=choose)
        stored = [(name, int(begin), int(size)) for name, begin, size in re.findall(
            r"mica\.weight @(\S+) .*\bat (\d+) bytes (\d+) ", harness.emit(place, "loops", "--weights", weights))]
        stacks = [matrix for matrix in stored if ".experts." in matrix[0]]
        expert = sum(size for _, _, size in stacks) / (2 * 8)
        rest = sum(size for _, _, size in stored) - 2 * 8 * expert

        def max_read(choices):
            """Bytes of the huge pages that contain a part of these experts of the layers, or of weights outside of experts."""
            parts = [(begin, size) for name, begin, size in stored if ".experts." not in name]
            for layer, chosen in enumerate(choices):
                parts += [(begin + number * size // 8, size // 8) for name, begin, size in stacks
                          if f".layers.{layer}." in name for number in chosen]
            return resident.LARGE_PAGE * len({page for begin, size in parts for page in range(
                begin // resident.LARGE_PAGE, (begin + size - 1) // resident.LARGE_PAGE + 1)})

        ids = rng.integers(3, 2000, 64).tolist()
        steps = self.touched(program(place, "--weights", weights), [[i] for i in ids[:32]] + [ids])
        note(self, f"{weights}: 16 experts of {expert / 1e6:.1f} MB and {rest / 1e6:.1f} MB of others; {steps[0] / 1e6:.1f} MB "
                   f"are read by the first id, {steps[-2] / 1e6:.1f} by 32 ids, {steps[-1] / 1e6:.1f} with a prompt")
        # One or both experts of each layer, and weights that share a huge page with them.
        one, both = max(max_read([[a], [b]]) for a in (1, 7) for b in (1, 7)), max_read([[1, 7], [1, 7]])
        for read, minimum, bound in ((steps[0], 2, one), (steps[-2], 2, both), (steps[-1], 4, both)):
            self.assertGreaterEqual(read, minimum * expert)
            self.assertLessEqual(read, bound)
        for chosen, bound in ((2, one), (4, both)):
            self.assertLess(bound, (chosen + 2) * expert, "one more of each layer would be seen")
        # A random gate chooses many of them.
        self.assertGreater(self.touched(program(plain, "--weights", weights), [ids])[0], 8 * expert)

    def test_program_size_is_close_to_its_weights(self):
        for weights in ("f32", "bf16", "int4"):
            compiled = program(harness.BUNDLED / "minimind-moe", "--weights", weights)
            info = json.loads(compiled.run("info", "--json").stdout)
            rest = os.path.getsize(compiled.path) - info["manifest"]["weight_bytes"]
            note(self, f"{weights}: {rest / 1e6:.1f} MB beside the weights")
            self.assertLess(rest, 30e6)

    def test_large_weights_are_mapped_in_huge_pages(self):
        place = harness.folder("pages")
        checkpoint.random(place, {**CONFIG, "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 3}, "bf16")
        compiled = harness.Program(os.path.join(place, "program"))
        execute([harness.mica, "compile", place, "-o", compiled.path])
        info = json.loads(compiled.run("info", "--json").stdout)
        offset = next(s["offset"] for s in info["sections"] if s["name"] == "weights")
        self.assertEqual(offset % resident.LARGE_PAGE, 0)
        bench = json.loads(compiled.run("bench", "--prompt", 0, "--gen", 1, "--repeat", 1, "--json").stdout)
        weights, large = info["manifest"]["weight_bytes"], bench["weights_in_huge_pages"]
        note(self, f"{large / 1e6:.1f} MB of {weights / 1e6:.1f} MB in huge pages")
        self.assertLessEqual(large, weights)
        if not resident.files_have_huge_pages(place):
            self.skipTest("this file system keeps no huge pages")
        self.assertGreater(large, 0.8 * weights)

    def test_huge_pages_change_no_token(self):
        compiled = program(harness.BUNDLED / "minimind-dense")
        command = [compiled.path, "--tokens", "1,5,9", "-n", "12", "--temperature", "0", "--print-tokens"]
        mapped = execute(command)
        note = ("note: --huge-pages: the kernel provides few or no huge pages (see /sys/kernel/mm/transparent_hugepage/enabled); weights use small pages\n")
        large = execute([*command, "--huge-pages"])
        self.assertEqual(large.stdout, mapped.stdout)
        self.assertIn(large.stderr.decode().removeprefix("mica: "), ("", note))
        # If the process cannot get huge pages at all, the test says so.
        prctl = ctypes.CDLL(None).prctl
        refused = subprocess.run([*command, "--huge-pages"], capture_output=True, check=True,
                                 preexec_fn=lambda: prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0))
        self.assertEqual((refused.stdout, refused.stderr.decode().removeprefix("mica: ")), (mapped.stdout, note))

    def test_memory_at_run_time_is_close_to_weights_and_caches(self):
        """The peak of resident memory, including the pages of the program's file that were read: a prompt in chunks of 512, then single
        ids."""
        for weights in ("f32", "bf16", "int8", "int4"):
            compiled = program(harness.BUNDLED / "minimind-moe", "--weights", weights)
            info = json.loads(compiled.run("info", "--json").stdout)
            prompt = [i % info["vocab"] for i in range(info["max_seq"] - 20)]
            requests = [(0, prompt)] + [(len(prompt) + i, [i]) for i in range(20)]
            with subprocess.Popen([compiled.path, "score"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
                for length, ids in requests:
                    process.stdin.write(f"{length} {len(ids) - 1} {' '.join(map(str, ids))}\n".encode())
                    process.stdin.flush()
                    self.assertEqual(len(process.stdout.read(4 * info["vocab"])), 4 * info["vocab"])
                with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
                    peak = next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))
                read = resident.pages_of(process.pid, compiled.path, info["manifest"]["weight_bytes"])
                process.stdin.close()
            caches = info["max_seq"] * info["cache_bytes_per_token"]
            rest = peak - read - caches
            note(self, f"{weights}: {peak / 1e6:.1f} MB at the peak, {rest / 1e6:.1f} of it neither weights nor caches")
            self.assertGreater(read, 0.5 * info["manifest"]["weight_bytes"])
            self.assertGreater(rest, 1e6)
            self.assertLess(rest, 64e6)

    def test_memory_does_not_grow_with_sequences(self):
        """The logits of 256 sequences at once would take 128 MB, and the sampler's copy as much again."""
        built = program(random_model({**CONFIG, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 1,
                                      "vocab_size": 128000}, 1, "bf16"), "--max-seq", 64)
        info = json.loads(built.run("info", "--json").stdout)
        requests = os.path.join(harness.folder("requests"), "requests.jsonl")
        with open(requests, "w", encoding="utf-8") as file:
            file.writelines(json.dumps({"tokens": [i, 3]}) + "\n" for i in range(256))
        texts = ("-n", 3, "--temperature", 0.8, "--repetition-penalty", 1.1, "--seed", 1, "--ignore-eos")
        alone = [json.loads(line)["tokens"] for line in built.run("-f", requests, "--batch", 3, *texts).stdout.splitlines()]
        for what in (("bench", "--batch", 256, "--prompt", 8, "--gen", 3, "--repeat", 1),
                     ("-f", requests, "--batch", 256, *texts)):
            done, peaks = resident.run([built.path, *what])
            self.assertEqual(done.returncode, 0, done.stderr)
            rest = resident.beside_weights(peaks, built.path, info, cache=0)
            note(self, f"{what[0]}: {rest / 1e6:.1f} MB with the caches, without the weights")
            self.assertGreater(rest, 40e6)
            self.assertLess(rest, 80e6)
        self.assertEqual([json.loads(line)["tokens"] for line in done.stdout.splitlines()], alone)
