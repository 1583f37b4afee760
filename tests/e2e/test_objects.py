"""The cache of compiled code, $MICA_OBJECT_CACHE."""

import json
import os
import pathlib
import unittest

import harness

MODEL = harness.BUNDLED / "minimind-dense"


class Objects(unittest.TestCase):
    def setUp(self):
        self.cache = pathlib.Path(harness.folder("objects"))

    def compiled(self, *options, model=MODEL):
        """The program's bytes, and whether its code was cached."""
        path = pathlib.Path(harness.folder("program")) / "program"
        report = harness.execute([harness.mica, "compile", model, "-o", path, "--json", *options],
                                 env={"MICA_OBJECT_CACHE": str(self.cache)}).stdout
        return path.read_bytes(), json.loads(report)["code_cached"]

    def test_code_is_reused(self):
        first, cached = self.compiled()
        self.assertFalse(cached)
        second, cached = self.compiled()
        self.assertTrue(cached)
        self.assertEqual(first, second)
        # Other code is compiled.
        self.assertFalse(self.compiled("--weights", "int8")[1])

    def test_code_depends_on_shapes_only(self):
        """Another model of the same shapes has the same code."""
        other = pathlib.Path(harness.folder("model"))
        for file in MODEL.iterdir():
            if file.name != "model.safetensors":
                os.symlink(file.resolve(), other / file.name)
        weights = bytearray((MODEL / "model.safetensors").read_bytes())
        weights[-2] ^= 1  # a mantissa of the last tensor
        (other / "model.safetensors").write_bytes(weights)
        first, _ = self.compiled()
        second, cached = self.compiled(model=other)
        self.assertTrue(cached)
        self.assertNotEqual(first, second)

    def damage(self, file):
        with file.open("r+b") as opened:
            harness.flip_byte(opened, file.stat().st_size // 2)

    def test_damaged_code_is_compiled_again(self):
        first, _ = self.compiled()
        for file in self.cache.iterdir():
            self.damage(file)
        second, cached = self.compiled()
        self.assertFalse(cached)
        self.assertEqual(first, second)
        self.assertTrue(self.compiled()[1])

    def test_either_entry_is_enough(self):
        """Code is found by the module at stage kernels, or else by its LLVM IR."""
        first, _ = self.compiled()
        files = list(self.cache.iterdir())
        self.assertEqual(len(files), 2)
        for file in files:
            whole = file.read_bytes()
            self.damage(file)
            second, cached = self.compiled()
            self.assertTrue(cached)
            self.assertEqual(first, second)
            file.write_bytes(whole)

    def test_code_depends_on_the_target(self):
        self.compiled()
        self.assertFalse(self.compiled("--target", "x86-64-v3")[1])

    def test_missing_folder(self):
        done = harness.execute([harness.mica, "compile", MODEL, "-o", self.cache / "program"],
                               env={"MICA_OBJECT_CACHE": "/nowhere"}, check=False)
        self.assertEqual((done.returncode, done.stderr.decode()),
                         (1, "mica: error: MICA_OBJECT_CACHE: /nowhere is not a folder; create it or set another one\n"))
