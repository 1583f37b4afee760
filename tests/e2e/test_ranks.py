"""Programs for several ranks: the logits and tokens of one process, started by mpirun and as threads."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest
import urllib.request

import gguf_file
import harness
import test_families
from harness import BUNDLED, GOLDENS, Case, for_each
from test_gguf import converted, experts_folder, round_robin_path

sys.path.insert(0, str(harness.ROOT / "tests/tools"))
import resident

RESIZED = harness.ROOT / "tests/lit/passes/Inputs/resized.py"
#: As root in a container; more ranks than processors.
ENV = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}


def resized(golden, *sizes):
    """A model with the heads that several numbers of ranks need."""

    def make():
        folder = harness.folder(golden)
        harness.execute(["/usr/bin/env", "python3", RESIZED, GOLDENS / "models" / golden, folder, *sizes])
        return folder

    return harness.once((golden, sizes), make)


def two_types():
    """Experts whose gate and up have different types."""

    class Mixed(gguf_file.Converter):
        def put(self, name, values, kind):
            return super().put(name, values, "Q8_0" if "ffn_up" in name else kind)

    return harness.once("ranks of two types", lambda: Mixed(experts_folder(), "Q4_0").convert().write(
        os.path.join(harness.folder("two types"), "m.gguf")))


def deep():
    """A model whose MLPs have matrices with a long K: between rows of 256 and of 2080 numbers."""
    heads = ("num_attention_heads=4", "num_key_value_heads=4", "q_proj:0=256", "k_proj:0=256", "v_proj:0=256", "o_proj:0=256")
    hidden = [f"{name}:1=256" for name in ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "embed_tokens", "lm_head")]
    norms = [f"{name}:0=256" for name in ("input_layernorm", "post_attention_layernorm", "norm")]
    return resized("llama-mha-untied", "hidden_size=256", "intermediate_size=2080", "max_position_embeddings=512", *heads, *hidden, *norms,
                   "gate_proj:0=2080", "up_proj:0=2080", "down_proj:0=256", "down_proj:1=2080")


def mamba(groups):
    """Sizes of models with Mamba 2; groups have keys and queries of 10 numbers each."""
    return ("num_attention_heads=4", "num_key_value_heads=2", "k_proj:0=12", "v_proj:0=12", "mamba_n_heads=4", "mamba_d_head=12",
            f"mamba_n_groups={groups}", f"in_proj:0={100 + 20 * groups}", f"conv1d:0={48 + 20 * groups}", "A_log:0=4", "D:0=4", "dt_bias:0=4")


#: Models, options, and numbers of ranks.
MODELS = {
    "f32": lambda: (BUNDLED / "minimind-dense", ["--weights", "f32"], (2, 4)),
    "bf16": lambda: (BUNDLED / "minimind-dense", ["--weights", "bf16"], (2, 4)),
    "int8": lambda: (BUNDLED / "minimind-dense", ["--weights", "int8", "--kv", "int8"], (2, 4)),
    # Activations of 8 bits in prefill.
    "int8_rows": lambda: (BUNDLED / "minimind-dense", ["--weights", "int8", "--rows", "int8"], (2, 4)),
    "int4": lambda: (BUNDLED / "minimind-dense", ["--weights", "int4"], (2, 4)),
    "q8_0": lambda: (converted("minimind-dense", "Q8_0")[0], [], (2, 4)),
    "blocks": lambda: (round_robin_path(), [], (2, 4)),
    # Several segments along K, see sumSegment.
    "deep_f32": lambda: (deep(), ["--weights", "f32"], (2, 4)),
    "deep_bf16": lambda: (deep(), ["--weights", "bf16"], (2, 4)),
    "deep_int8": lambda: (deep(), ["--weights", "int8"], (2, 4)),
    "experts": lambda: (BUNDLED / "minimind-moe", ["--weights", "int8"], (2,)),
    "eight_heads": lambda: (resized("minimind3-moe", "num_attention_heads=8", "num_key_value_heads=2", "q_proj:0=48", "k_proj:0=12",
                                    "v_proj:0=12", "o_proj:1=48"), ["--weights", "int8"], (2, 4)),
    "two_types": lambda: (two_types(), [], (2, 4)),
    "three": lambda: (GOLDENS / "models/minimind2-moe", [], (3,)),
    "qwen3_moe": lambda: (resized("qwen3-moe", "num_attention_heads=8", "num_key_value_heads=4", "q_proj:0=64", "k_proj:0=32", "v_proj:0=32",
                                  "o_proj:1=64"), [], (2, 4, 8)),
    "latents": lambda: (resized("deepseek-v2-lite", "num_attention_heads=4", "num_key_value_heads=4", "q_proj:0=40", "kv_b_proj:0=56",
                                "o_proj:1=32"), [], (2, 4)),
    "delta": lambda: (resized("qwen3-5", "num_attention_heads=4", "num_key_value_heads=2", "q_proj:0=128", "k_proj:0=32", "v_proj:0=32",
                              "o_proj:1=64", "linear_num_key_heads=4", "linear_num_value_heads=8", "in_proj_qkv:0=88", "conv1d:0=88",
                              "in_proj_z:0=40", "in_proj_b:0=8", "in_proj_a:0=8", "A_log:0=8", "dt_bias:0=8", "out_proj:1=40"), [], (2, 4)),
    "mamba": lambda: (resized("granite-hybrid", *mamba(4)), [], (2, 4)),
    # The published models have one group, which all heads share.
    "mamba_one_group": lambda: (resized("granite-hybrid", *mamba(1)), [], (2, 4)),
    "parallel": lambda: (resized("falcon-h1", *mamba(4)), [], (2, 4)),
    "conv": lambda: (resized("lfm2", "num_attention_heads=4", "num_key_value_heads=2", "k_proj:0=12", "v_proj:0=12", "q_layernorm:0=6",
                             "k_layernorm:0=6"), [], (2, 4)),
    "sinks": lambda: (resized("gpt-oss", "num_attention_heads=4", "q_proj:0=40", "o_proj.weight:1=40", "sinks:0=4"), [], (2, 4)),
}


#: Models that are also tested with ranks of several threads: experts, and a hybrid.
SEVERAL_THREADS = {name: name for name in ("bf16", "int4", "qwen3_moe", "delta")}


@for_each(MODELS, "logits")
@for_each(SEVERAL_THREADS, "threads")
class Threads(Case):
    def check(self, name, count, *threads):
        """That the logits of this number of ranks are bit-identical to those of one process."""
        model, options, _ = MODELS[name]()
        one, several = (harness.program(model, *options, *shard).path for shard in ((), ("--shard", f"tensor={count}")))
        done = harness.execute([pathlib.Path(harness.mica).with_name("mica-ranks"), one, several, *threads])
        self.assertRegex(done.stdout.decode(), rf"^{count} ranks: [0-9]+ logits are the same\n$")

    def logits(self, name):
        """For each number of ranks, with one thread each."""
        for count in MODELS[name]()[2]:
            self.check(name, count)

    def threads(self, name):
        """Two ranks of 2 and of 3 threads."""
        for threads in (2, 3):
            self.check(name, 2, threads)


#: A model of each type, by type.
TYPES = {kind: GOLDENS / "models" / names[0] for kind, names in test_families.MODELS.items()}
#: Sizes of four query heads, and of models with the gated delta rule.
FOUR_HEADS = ("num_attention_heads=4", "num_key_value_heads=2", "q_proj:0=128", "k_proj:0=32", "v_proj:0=32", "o_proj:1=64")
#: Sizes for two ranks, of types whose golden has three heads of queries and other numbers of states.
FOR_TWO = {"bamba": (*mamba(2), "num_attention_heads=2", "num_key_value_heads=1"),
           "falcon_h1": mamba(2), "granitemoehybrid": mamba(2),
           "nemotron_h": ("num_attention_heads=4", "num_key_value_heads=2", "q_proj:0=40", "k_proj:0=20", "v_proj:0=20", "o_proj:1=40",
                          "mamba_num_heads=4", "mamba_head_dim=12", "in_proj:0=140", "A_log:0=4", "D:0=4", "dt_bias:0=4"),
           **dict.fromkeys(("qwen3_5", "qwen3_5_moe", "qwen3_5_moe_text", "qwen3_5_text", "qwen3_next"), FOUR_HEADS)}
#: Types that are also tested with integers, for which the rows of activations are quantized after they are gathered. One of each kind of
#: layer, because they take longer than with floats.
IN_INT8 = ("deepseek_v2", "gemma2", "gpt_oss", "granitemoehybrid", "lfm2", "qwen3_next")
#: The error of types whose golden has other numbers of heads.
DIFFERENT = re.compile(r"'mica\.[a-z_]+' op cannot be partitioned for 3 ranks: .*"
                       r"(?:; the heads of the model allow ([0-9]+)(?:(?:, [0-9]+)* or [0-9]+)? ranks|; no number of ranks is possible)\n")


@for_each(TYPES, "same_logits")
class Types(Case):
    def check(self, name, model, count):
        """That this number of ranks has the logits of one process."""
        for weights in ("f32", "int8") if name in IN_INT8 else ("f32",):
            one, several = (harness.program(model, "--weights", weights, *options).path for options in ((), ("--shard", f"tensor={count}")))
            checked = harness.execute([pathlib.Path(harness.mica).with_name("mica-ranks"), one, several])
            self.assertRegex(checked.stdout.decode(), rf"^{count} ranks: [0-9]+ logits are the same\n$")

    def same_logits(self, name):
        """Most goldens have three heads of queries and one of keys, for three ranks. For others, the compiler names the op and the numbers of
        ranks that are possible, of which the first one is tested."""
        done = harness.execute([harness.mica, "compile", TYPES[name], "--weights", "f32", "--shard", "tensor=3", "--emit", "kernels", "-o",
                                pathlib.Path(harness.folder("types")) / "three.mlir"], check=False)
        if done.returncode == 0:
            self.check(name, TYPES[name], 3)
        elif name == "bloom":
            self.assertIn("cannot be partitioned for 3 ranks: the slopes of alibi are one list for all ranks", done.stderr.decode())
        else:
            found = DIFFERENT.search(done.stderr.decode())
            self.assertTrue(found, done.stderr)
            # Without a possible number, another size of the model.
            self.assertEqual(found[1] is None, name in FOR_TWO, found[0])
            self.check(name, *((TYPES[name], int(found[1])) if found[1] else (resized(TYPES[name].name, *FOR_TWO[name]), 2)))


def mpirun(implementation):
    """The mpirun of an implementation; skips the test if it is not installed."""
    path = shutil.which(f"mpirun.{implementation}")
    if not path:
        raise unittest.SkipTest(f"needs mpirun.{implementation}")
    return path


def started(implementation, ranks, program, *arguments, **settings):
    return harness.execute([mpirun(implementation), "-n", ranks, program, *arguments], env=ENV, **settings)


IMPLEMENTATIONS = {name: name for name in ("openmpi", "mpich")}
PROMPT = ("-p", "Once upon a time", "-n", "24", "--temperature", "0")


def programs():
    model = BUNDLED / "minimind-dense"
    return harness.program(model).path, harness.program(model, "--shard", "tensor=2").path


def broken(case, phase, start):
    """The messages of a run in which MPI does not work."""
    _, two = programs()
    done = harness.execute([*start, "-n", "2", two, *PROMPT], check=False,
                           env={**ENV, "LD_PRELOAD": harness.library("PausedRank.c"), "MICA_TEST_PAUSE": phase})
    case.assertNotEqual(done.returncode, 0)
    return done.stderr.decode()


def of_other_version():
    """The program for two ranks as an installation compiles it whose launcher has other bytes: some behind its end, which have no effect."""

    def compiled():
        installed = pathlib.Path(harness.mica).parents[1]
        folder = pathlib.Path(harness.folder("other version"))
        (folder / "bin").mkdir()
        shutil.copy(harness.mica, folder / "bin")
        shutil.copytree(installed / "lib/mica", folder / "lib/mica")
        with open(folder / "lib/mica/mica-launcher", "ab") as launcher:
            launcher.write(b"another version")
        harness.execute([folder / "bin/mica", "compile", BUNDLED / "minimind-dense", "--shard", "tensor=2", "-o", folder / "program"])
        return str(folder / "program")

    return harness.once("ranks of another version", compiled)


@for_each(IMPLEMENTATIONS, "text")
@for_each(IMPLEMENTATIONS, "batch")
@for_each(IMPLEMENTATIONS, "chat")
@for_each(IMPLEMENTATIONS, "serve")
@for_each(IMPLEMENTATIONS, "bench")
@for_each(IMPLEMENTATIONS, "score")
@for_each(IMPLEMENTATIONS, "wrong_number")
@for_each(IMPLEMENTATIONS, "other_program")
@for_each(IMPLEMENTATIONS, "own_error")
@for_each(IMPLEMENTATIONS, "one_process")
@for_each(IMPLEMENTATIONS, "four")
@for_each(IMPLEMENTATIONS, "options")
@for_each(IMPLEMENTATIONS, "no_plugin")
@for_each(IMPLEMENTATIONS, "old_plugin")
@for_each(IMPLEMENTATIONS, "mpi_fails")
@for_each(IMPLEMENTATIONS, "never_starts")
@for_each(IMPLEMENTATIONS, "binding")
@for_each(IMPLEMENTATIONS, "usage")
class Mpi(Case):
    def text(self, name):
        one, two = programs()
        expected = harness.execute([one, *PROMPT]).stdout
        self.assertEqual(started(name, 2, two, *PROMPT).stdout.replace(b"\r\n", b"\n"), expected)

    def batch(self, name):
        one, two = programs()
        requests = os.path.join(harness.folder("batch"), "requests.jsonl")
        with open(requests, "w", encoding="utf-8") as file:
            for i in range(6):
                file.write(json.dumps({"prompt": "One, two, " * (i + 1), "id": i}) + "\n")
        results = []
        for run in (lambda *a: harness.execute([one, *a]), lambda *a: started(name, 2, two, *a)):
            output = requests + f".{len(results)}"
            run("-f", requests, "--batch", "3", "-o", output, "-n", "12", "--temperature", "0")
            with open(output, encoding="utf-8") as file:
                results.append(file.readlines())
        texts = [sorted((found["id"], found["text"]) for found in map(json.loads, lines)) for lines in results]
        self.assertEqual(len(texts[0]), 6)
        self.assertEqual(*texts)

    def chat(self, name):
        one, two = programs()
        messages = b"Hello\nWhat is a compiler?\n"
        arguments = ("chat", "--temperature", "0", "-n", "16", "--json")
        answers = [[json.loads(line)["content"] for line in done.stdout.splitlines()]
                   for done in (harness.execute([one, *arguments], stdin=messages), started(name, 2, two, *arguments, stdin=messages))]
        self.assertEqual(answers[0], answers[1])
        self.assertEqual(len(answers[0]), 2)

    def serve(self, name):
        """Rank 0 answers; SIGTERM to mpirun ends all ranks."""
        one, two = programs()
        expected = json.loads(harness.execute([one, *PROMPT, "--json"]).stdout)["sequences"][0]["text"]
        mark = f"MICA_TEST_RANKS={os.getpid()} serve {name}"
        with subprocess.Popen([mpirun(name), "-n", "2", two, "serve", "--port", "0"], env={**os.environ, **ENV, **dict([mark.split("=")])},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as run:
            try:
                address = next(match[0] for line in run.stdout if (match := re.search(r"http://[0-9.]+:[0-9]+", line.decode())))
                body = json.dumps({"prompt": PROMPT[1], "max_tokens": 24, "temperature": 0}).encode()
                for _ in range(2):
                    with urllib.request.urlopen(address + "/v1/completions", body, timeout=60) as answer:
                        self.assertEqual(json.load(answer)["choices"][0]["text"], expected)
            finally:
                run.terminate()
                run.communicate(timeout=60)
        harness.until(lambda: not processes_of(two, mark), "a rank is left", 10)

    def bench(self, name):
        """Tells the number of ranks; the profile has their exchanges."""
        _, two = programs()
        arguments = ("bench", "--prompt", "32", "--gen", "8", "--repeat", "1", "-t", "1", "--profile")
        done = started(name, 2, two, *arguments, "--json")
        self.assertTrue(done.stdout.startswith(b"{"), (done.stdout[:2000], done.stderr[-2000:]))
        found = json.loads(done.stdout)
        self.assertEqual((found["ranks"], found["threads"]), (2, 1))
        for result in found["results"]:
            kernels = {each["kernel"]: each for each in result["profile"]["kernels"]}
            for exchange in ("all_gather", "share_rows", "broadcast"):
                self.assertGreater(kernels[exchange]["exchanged_bytes"], 0)
                self.assertEqual(kernels[exchange]["bytes"], 0)
        text = started(name, 2, two, *arguments).stdout.decode()
        self.assertIn(", 2 ranks of 1 thread; GB/s and GFLOP/s are those of one rank", text.splitlines()[0])
        self.assertRegex(text, r"\n  all_gather  .* - ")

    def score(self, name):
        """Logits through mpirun's pipes."""
        one, two = programs()
        tokens = b"0 0 3 5 7 11 13\n5 0 2 4 6\n"
        expected = harness.execute([one, "score"], stdin=tokens).stdout
        self.assertGreater(len(expected), 0)
        self.assertEqual(started(name, 2, two, "score", stdin=tokens).stdout, expected)

    def wrong_number(self, name):
        _, two = programs()
        done = started(name, 3, two, *PROMPT, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stderr.count(b"the program is for 2 ranks, not for 3; start it with mpirun -n 2"), 1)

    def other_program(self, name):
        """A rank that runs a program with other weights, for another number of ranks, or of another version of Mica."""
        _, two = programs()
        others = [(harness.program(BUNDLED / "minimind-dense", *options).path, ending) for options, ending in
                  ((("--weights", "int8", "--shard", "tensor=2"), "; copy"), (("--shard", "tensor=4"), ", for 4 ranks; copy"))]
        for other, ending in [*others, (of_other_version(), "; copy")]:
            done = harness.execute([mpirun(name), "-n", "1", two, *PROMPT, ":", "-n", "1", other, *PROMPT], env=ENV, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(done.stderr.decode().count(
                f"rank 1 on host {os.uname().nodename} runs another program than rank 0{ending} the same file to all hosts"), 1)

    def own_error(self, name):
        """The error of a rank names the rank and its host: here, its copy of the weights is damaged."""
        _, two = programs()
        damaged = pathlib.Path(harness.folder("damaged"), "program")
        for file in (two, *pathlib.Path(two).parent.glob("mica-mpi-*.so")):
            shutil.copy(file, damaged.parent / (damaged.name if file == two else file.name))
        sections = {each["name"]: each for each in json.loads(harness.execute([two, "info", "--json"]).stdout)["sections"]}
        with open(damaged, "r+b") as file:
            harness.flip_byte(file, sections["weights"]["offset"] + 64)
        arguments = (*PROMPT, "--verify-weights")
        done = harness.execute([mpirun(name), "-n", "1", two, *arguments, ":", "-n", "1", damaged, *arguments], env=ENV, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr.decode(), rf"error: rank 1 on host {re.escape(os.uname().nodename)}: ")

    def one_process(self, name):
        """A program without --shard runs once for each process, with a note: these may be replicas."""
        one, _ = programs()
        expected = re.search(rb'"text": *("(?:[^"\\]|\\.)+")', harness.execute([one, *PROMPT, "--json"]).stdout)[1]
        note = b"note: each of 2 processes runs the whole model; compile it with --shard tensor=2 for parts of it"
        for count in (1, 2):
            done = started(name, count, one, *PROMPT, "--json")
            self.assertEqual(done.stdout.count(expected), count)
            self.assertEqual(done.stderr.count(note), int(count == 2))

    def test_server_of_a_script(self):
        """A server without --shard that a script of a job has started continues when the script has ended. OpenMPI's mpirun does not wait for
        the server, as MPICH's does."""
        one, _ = programs()
        folder = harness.folder("script")
        output, mark = os.path.join(folder, "output"), f"MICA_TEST_RANKS={os.getpid()} script"
        script = f"setsid \"$0\" serve --unix-socket {os.path.join(folder, 's')} > {output} 2>&1 < /dev/null & sleep 0.2"
        harness.execute([mpirun("openmpi"), "-n", "1", "sh", "-c", script, one], env={**ENV, **dict([mark.split("=")])})
        try:
            harness.until(lambda: b"serving" in pathlib.Path(output).read_bytes(), "the server does not run", 60)
            time.sleep(1)
            self.assertTrue(processes_of(one, mark), "it has ended with the script")
        finally:
            for process in processes_of(one, mark):
                os.kill(process, signal.SIGKILL)

    def four(self, name):
        """The ids of four ranks: experts, and a hybrid."""
        for model in ("qwen3_moe", "delta"):
            folder, options, _ = MODELS[model]()
            one, several = (harness.program(folder, *options, *shard).path for shard in ((), ("--shard", "tensor=4")))
            arguments = ("--tokens", "3,5,7,11", "-n", "8", "--temperature", "0", "--ignore-eos", "--print-tokens")
            self.assertEqual(started(name, 4, several, *arguments).stdout.split(), harness.execute([one, *arguments]).stdout.split())

    def options(self, name):
        """Options that change what ranks exchange, or how they read their parts, have the ids of one process."""
        one, two = programs()
        arguments = ("--tokens", ",".join(["11,12,13,14,15,16"] * 5), "-n", "60", "--temperature", "0", "--ignore-eos", "--json")
        expected = json.loads(harness.execute([one, *arguments]).stdout)["sequences"][0]["tokens"]
        self.assertEqual(len(expected), 60)
        found = [json.loads(started(name, 2, two, *arguments, *options).stdout) for options in (("--lookup", "15"), ("--huge-pages",))]
        self.assertEqual([each["sequences"][0]["tokens"] for each in found], [expected] * 2)
        self.assertGreater(found[0]["lookup"]["accepted"], 0)

    def alone(self):
        """A copy of the program for two ranks in a folder without plug-ins."""
        return shutil.copy(programs()[1], os.path.join(harness.folder("alone"), "program"))

    def refused_beside(self, name, program, message):
        """The run ends if one rank has another `program`, whose rank does not start MPI."""
        _, two = programs()
        begin = time.monotonic()
        done = harness.execute([mpirun(name), "-n", "1", two, *PROMPT, ":", "-n", "1", program, *PROMPT], env=ENV, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr.decode(), message)
        self.assertLess(time.monotonic() - begin, 30, "the other rank waits for a minute")

    def no_plugin(self, name):
        self.refused_beside(name, self.alone(), rf"error: .*: cannot use (OpenMPI|MPICH) \(.*mica-mpi-{name}\.so.*\); install it, and copy "
                                                rf"mica-mpi-{name}\.so from the folder of `mica-launcher` next to the program")

    def old_plugin(self, name):
        program = self.alone()
        plugin = os.path.join(os.path.dirname(program), f"mica-mpi-{name}.so")
        source = pathlib.Path(plugin).with_suffix(".c")
        source.write_text("const void *micaMpi(void) { static const long abi = 0; return &abi; }\n", encoding="ascii")
        harness.execute([harness.c_compiler(), "-shared", "-fPIC", source, "-o", plugin])
        self.refused_beside(name, program, rf"{re.escape(plugin)} is for another version of Mica; copy the file of the installation that has "
                                           "compiled the program")

    def mpi_fails(self, name):
        """A function of MPI returns an error on rank 1."""
        self.assertRegex(broken(self, "barrier 1", [mpirun(name)]), rf"error: .*rank 1 on host {re.escape(os.uname().nodename)}: MPI failed: \S")

    def never_starts(self, name):
        """Rank 1 does not leave MPI_Init; the minute that the other one waits is shortened to a second."""
        self.assertIn("error: MPI waits for another rank, which does not start or end; see the messages of the other ranks, and whether their "
                      "hosts reach each other", broken(self, "init 1", [mpirun(name)]))

    def binding(self, name):
        """Rank 0 prints a note if mpirun has bound the ranks to fewer processors than it may use. Here, taskset binds them."""
        _, two = programs()
        allowed = sorted(os.sched_getaffinity(0))
        if len(allowed) < 2:
            self.skipTest("needs two processors")
        note = (f"mica: note: mpirun has bound the ranks of this host to 1 of {len(allowed)} processors; with --bind-to none, they share all "
                "of them\n")
        bound = ("taskset", "--cpu-list", allowed[0], two)
        # A number of threads for which the processors are enough is what the user wants.
        for program, threads, count in ((bound, (), 1), (bound, ("-t", "1"), 1), ((two,), (), 0)):
            done = started(name, 2, *program, *PROMPT, *threads)
            self.assertEqual(done.stderr.decode().count(note), count, done.stderr)

    def usage(self, name):
        """Messages about the command line are those of one process."""
        _, two = programs()
        done = started(name, 2, two, "--no-such-option", check=False)
        self.assertEqual(done.stderr.count(b"--no-such-option"), harness.execute([two, "--no-such-option"], check=False)
                         .stderr.count(b"--no-such-option"))


def processes_of(program, mark):
    """The processes with `mark` in their environment that run a program; null: any."""
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        try:
            if (folder.name.isdigit() and (program is None or os.path.samefile(folder / "exe", program))
                    and mark.encode() in (folder / "environ").read_bytes()):
                found.append(int(folder.name))
        except OSError:
            pass
    return found


def rank_of(process):
    variables = pathlib.Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
    return next(int(v.split(b"=")[1]) for v in variables if v.startswith((b"OMPI_COMM_WORLD_RANK=", b"PMI_RANK=")))


@for_each(IMPLEMENTATIONS, "is_partitioned")
class Memory(Case):
    def measured(self, start, program, ranks, sequences, minimum=0):
        """(resident weights, anonymous memory) of each process that decodes with `sequences` sequences of 900 positions, when they have at
        least `minimum` bytes of anonymous memory."""
        weights = json.loads(harness.execute([program, "info", "--json"]).stdout)["manifest"]["weight_bytes"]
        mark = f"MICA_TEST_RANKS={os.getpid()} {self.id()} {ranks} {sequences}"
        command = [*map(str, start), program, "bench", "-t", "1", "--prompt", "0", "--gen", "100", "--depth", "900", "--batch", str(sequences),
                   "--repeat", "10000"]

        def found():
            each = [(resident.pages_of(process, program, weights), resident.of_process(process)["RssAnon"])
                    for process in processes_of(program, mark)]
            # All matrices have been read.
            return len(each) == ranks and all(read > 0.9 * weights and anonymous >= minimum for read, anonymous in each) and each

        with subprocess.Popen(command, env={**os.environ, **ENV, **dict([mark.split("=")])}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
            try:
                harness.until(found, "the ranks do not decode", 120)
                time.sleep(1)
                return found()
            finally:
                run.terminate()
                run.wait(timeout=60)
                harness.until(lambda: not processes_of(program, mark), "a rank is left", 10)

    def is_partitioned(self, name):
        """A rank of two has at most .55 of the weights, and of the caches of 16 sequences."""
        start = [mpirun(name), "-n", "2"]
        one, two = programs()

        def both(start, program, ranks):
            few = self.measured(start, program, ranks, 1)
            caches = 16 * 900 * json.loads(harness.execute([program, "info", "--json"]).stdout)["cache_bytes_per_token"]
            # Nearly all caches have been written.
            return zip(few, self.measured(start, program, ranks, 17, 0.95 * caches + max(anonymous for _, anonymous in few)), strict=True)

        [(few, many)] = both([], one, 1)
        for few_of_rank, many_of_rank in both(start, two, 2):
            self.assertLess(many_of_rank[0], 0.55 * many[0])
            self.assertLess(many_of_rank[1] - few_of_rank[1], 0.55 * (many[1] - few[1]))


class Refused(Case):
    def test_without_mpirun(self):
        _, two = programs()
        done = harness.execute([two, *PROMPT], check=False)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr.decode(), r"^mica: error: \S+: the program is for 2 ranks; start it with mpirun -n 2\n$")

    def test_info(self):
        _, two = programs()
        text = harness.execute([two, "info"]).stdout.decode()
        self.assertRegex(text, r"\nranks +2, each with [0-9.]+ [kMG]i?B of weights")
        self.assertRegex(text, r"\nreplicated +.*layers\.\*\.input_layernorm\.weight")
        self.assertRegex(text, r"\ncontext .* for all on each rank\n")
        json_of = [json.loads(harness.execute([p, "info", "--json"]).stdout) for p in programs()]
        self.assertEqual([info["ranks"] for info in json_of], [1, 2])
        one, half = (info["manifest"]["weight_bytes"] for info in json_of)
        self.assertLess(half, 0.55 * one)
        one, half = (info["cache_bytes"] for info in json_of)
        self.assertEqual(half, one // 2)

    def test_info_of_padding(self):
        """Matrices whose columns on a rank are not whole groups: `info` prints what fills these, and the bits per weight of the model."""
        model, options, _ = MODELS["experts"]()
        one, two = (harness.program(model, *options, *shard) for shard in ((), ("--shard", "tensor=2")))
        texts = [each.run("info").stdout.decode() for each in (one, two)]
        self.assertRegex(texts[1], r"\npadding +[0-9.]+ [KMG]iB on each rank, in groups of columns that are not full\n")
        self.assertNotIn("\npadding ", texts[0])
        bits = [float(re.search(r"([0-9.]+) bits per weight", text)[1]) for text in texts]
        self.assertAlmostEqual(bits[1] / bits[0], 1, delta=0.05)
        whole, rank = (json.loads(each.run("info", "--json").stdout)["manifest"] for each in (one, two))
        self.assertGreater(rank["weight_bytes"], 0.6 * whole["weight_bytes"])
        self.assertLess(rank["weight_bytes"] - rank["padding_bytes"], 0.55 * whole["weight_bytes"])

    def test_heads_that_do_not_divide(self):
        output = os.path.join(harness.folder("refused"), "program")
        done = harness.execute([harness.mica, "compile", GOLDENS / "models/minimind2-moe", "-o", output, "--shard", "tensor=2"], check=False)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr.decode(), r"layers.*cannot be partitioned for 2 ranks: 3 heads are neither a multiple nor a divisor")
        self.assertFalse(os.path.exists(output))

    def test_heads_of_linear_attention(self):
        output = os.path.join(harness.folder("refused"), "program")
        model = resized("qwen3-5", "num_attention_heads=4", "num_key_value_heads=2", "q_proj:0=128", "k_proj:0=32", "v_proj:0=32", "o_proj:1=64")
        done = harness.execute([harness.mica, "compile", model, "-o", output, "--shard", "tensor=4"], check=False)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr.decode(), r"layers.*'mica\.linear_attention' op cannot be partitioned for 4 ranks: the number of heads")

    def test_option(self):
        for text in ("2", "tensor=0", "tensor=x", "pipeline=2"):
            done = harness.execute([harness.mica, "compile", BUNDLED / "minimind-dense", "-o", "x", "--shard", text], check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"'{text}' is not tensor=N, with N from 1 to 4096", done.stderr.decode())
