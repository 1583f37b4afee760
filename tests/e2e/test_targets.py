"""Programs for CPUs other than this one."""

import shutil
import unittest

import numpy as np

import harness
from harness import BUNDLED, Case, GOLDENS, program, shared
from test_goldens import Golden

AVX2 = {"ONEDNN_MAX_CPU_ISA": "AVX2"}
# The names of x86-64-v4's features in oneDNN and in /proc/cpuinfo.
AVX512 = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE"}
AVX512_FLAGS = ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
OTHERS = ("llama-biases", "minimind2-moe", "minimind3-dense", "qwen3-moe-mixed")


@harness.for_each(OTHERS, "avx2_golden")
@harness.for_each(OTHERS, "avx512_golden")
@harness.for_each(("minimind-dense", "minimind-moe"), "avx2_bundled")
@harness.for_each(("minimind-dense", "minimind-moe"), "avx512_bundled")
class Targets(Case):
    def avx2_golden(self, name):
        self.golden(name, "x86-64-v3", AVX2)

    def avx2_bundled(self, name):
        self.bundled(name, "x86-64-v3", AVX2)

    def avx512_golden(self, name):
        """AVX-512 without its bf16 instructions: oneDNN for f32, generated kernels for bf16."""
        harness.needs_cpu(*AVX512_FLAGS)
        self.golden(name, "x86-64-v4", AVX512)

    def avx512_bundled(self, name):
        harness.needs_cpu(*AVX512_FLAGS)
        self.bundled(name, "x86-64-v4", AVX512)

    def golden(self, name, target, env):
        g = Golden(name)
        built = program(g.folder, "--target", target)
        _, rows = built.generate([g.prompt], 1, env=env)
        self.close(rows[0], g.logits, 1e-5, "logits")
        ids, _ = built.generate([g.prompt], len(g.greedy), env=env)
        self.assertEqual(ids, [g.greedy])

    def bundled(self, name, target, env):
        """The same ids as the native program in all precisions and with an int8 cache, after a prompt of many rows. Prefill multiplies
        block-quantized weights by bf16 rows if the CPU supports that, otherwise by 16-bit integers, which decoding uses everywhere."""
        prompt = np.random.default_rng(1).integers(3, 500, 150).tolist()
        for weights, kv in (("f32", "f32"), ("bf16", "bf16"), ("f32", "int8"), ("int8", "f32"), ("int4", "f32")):
            native = program(BUNDLED / name, "--weights", weights, "--kv", kv)
            other = program(BUNDLED / name, "--weights", weights, "--kv", kv, "--target", target)
            expected, rows = native.generate([prompt], 16)
            ids, others = other.generate([prompt], 16, env=env)
            exact = kv == "f32" and weights == "f32"
            if exact or "moe" not in name:
                self.close(others[0], rows[0], 1e-5 if exact else 2e-2, f"{weights} and {kv}: logits against native")
            else:
                # If two experts have nearly equal scores, rounding may change the choice: in a few rows of a prompt.
                off = [row for row in range(len(rows[0])) if harness.difference(others[0][row], rows[0][row]) > 0.05]
                self.assertLessEqual(len(off), len(rows[0]) // 20, f"{weights} and {kv}: rows that differ: {off}")
            self.assertEqual(ids, expected, (weights, kv))
            if weights.startswith("int"):
                line = f"0 0 {' '.join(map(str, prompt[:40]))}\n".encode()
                decoded = [np.frombuffer(built.run("score", "--as-decode", stdin=line, env=env).stdout, "f4")
                           for built, env in ((native, None), (other, env))]
                self.close(decoded[1], decoded[0], 1e-5, f"{weights}: logits as of decoding against native")

    def test_avx2_stories(self):
        """bf16 sums in another order diverge if two ids are within rounding: half as many ids."""
        folder = shared("models/stories260K")
        for weights, n in (("f32", 256), ("bf16", 128)):
            native = program(folder, "--weights", weights)
            other = program(folder, "--weights", weights, "--target", "x86-64-v3")
            expected, _ = native.generate([[1]], n)
            ids, _ = other.generate([[1]], n, env=AVX2)
            self.assertEqual(ids, expected, weights)

    def refused(self, built, cpu, *words):
        emulator = shutil.which("qemu-x86_64") or shutil.which("qemu-x86_64-static")
        if not emulator:
            raise unittest.SkipTest("needs qemu-x86_64, which is not there")
        done = harness.execute([emulator, "-cpu", cpu, built.path, "--tokens", "1,5", "-n", "1"], check=False)
        error = done.stderr.decode()
        self.assertEqual((done.returncode, done.stdout), (1, b""), error)
        self.assertEqual(error.count("\n"), 1, error)
        self.assertTrue(error.startswith("mica: error: "), error)
        for word in words:
            self.assertIn(word, error)
        for word in ("avx2", "avx512", "aes", "amx", "rdseed"):
            self.assertNotIn(" " + word, error, "implied, or not used by the code")

    def test_native_refuses_an_old_cpu(self):
        self.refused(program(GOLDENS / "models/llama-gqa"), "Nehalem", "Nehalem", "lacks avx, bmi", "--target")

    def test_v3_refuses_an_old_cpu(self):
        self.refused(program(GOLDENS / "models/llama-gqa", "--target", "x86-64-v3"), "Nehalem", "x86-64-v3", "lacks avx, bmi")

    def test_unknown_target(self):
        done = harness.execute([harness.mica, "compile", GOLDENS / "models/llama-gqa", "-o",
                                harness.folder("target") + "/out", "--target", "pentium-pro-max"], check=False)
        self.assertIn(done.returncode, (1, 2))
        self.assertIn("pentium-pro-max", done.stderr.decode())
        self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)
