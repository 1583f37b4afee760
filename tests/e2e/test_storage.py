"""How a checkpoint and its caches are stored: types, shards, tied heads, the precision of the cache."""

import json
import os

import numpy as np

import checkpoint
import harness
import torch_file
from harness import Case, difference, nmse, note, program
from test_goldens import Golden

NAME = "llama-mha-untied"


def to_bf16(a):
    """The bits of the nearest bf16, ties to even."""
    u = np.ascontiguousarray(a, "<f4").view("<u4")
    return ((u + 0x7FFF + ((u >> 16) & 1)) >> 16).astype("<u2")


def from_bf16(bits):
    return (bits.astype("<u4") << 16).view("<f4")


class Storage(Case):
    def setUp(self):
        self.golden = Golden(NAME)

    def folder(self, change=None, config=None):
        return checkpoint.edited(self.golden.folder, os.path.join(harness.folder("stored"), NAME), config=config,
                                 tensors=change)

    def rows(self, folder, *options):
        return program(folder, *options).generate([self.golden.prompt], 1)[1][0]

    def converted(self, convert):
        """Applies `convert` to each tensor of a copy."""
        return self.folder(lambda w: w.update({n: convert(a) for n, a in w.items()}))

    def test_bf16_file_is_read_exactly(self):
        stored = self.rows(self.converted(to_bf16), "--weights", "f32")
        rounded = self.rows(self.converted(lambda a: from_bf16(to_bf16(a))), "--weights", "f32")
        self.assertTrue(np.array_equal(stored, rounded))
        self.assertGreater(difference(stored, self.golden.logits), 1e-4, "rounding shows")

    def test_f16_file_is_read_exactly(self):
        stored = self.rows(self.converted(lambda a: a.astype("<f2")), "--weights", "f32")
        rounded = self.rows(self.converted(lambda a: a.astype("<f2").astype("<f4")), "--weights", "f32")
        self.assertTrue(np.array_equal(stored, rounded))
        self.assertGreater(difference(stored, self.golden.logits), 1e-5, "rounding shows")

    def test_default_precision_is_the_checkpoints(self):
        """f32 stays f32, bf16 stays bf16, f16 becomes bf16; rounding to bf16 is to nearest even."""
        files = {"f32": self.golden.folder, "bf16": self.converted(to_bf16),
                 "f16": self.converted(lambda a: a.astype("<f2"))}
        for stored, expected in (("f32", "f32"), ("bf16", "bf16"), ("f16", "bf16")):
            info = json.loads(program(files[stored]).run("info", "--json").stdout)
            self.assertEqual((info["weights"], info["kv"]), (expected, expected), stored)
        # Norm weights are f32 in both, so they are not rounded.
        narrow = self.folder(lambda w: w.update({n: from_bf16(to_bf16(a)) for n, a in w.items() if a.ndim == 2}))
        self.assertTrue(np.array_equal(self.rows(self.golden.folder, "--weights", "bf16"),
                                       self.rows(narrow, "--weights", "bf16")))

    def test_cache_precision(self):
        """A cache whose precision is not that of the weights: it is stored in the manifest and has an effect."""
        config = checkpoint.config_of(self.golden.folder)
        heads = config["num_hidden_layers"] * config["num_attention_heads"]
        width = config["hidden_size"] // config["num_attention_heads"]
        bytes_of_head = {"f32": 4 * width, "bf16": 2 * width, "int8": width + 4}
        for weights, kv, other in (("f32", "bf16", "f32"), ("bf16", "f32", "bf16"), ("f32", "int8", "f32")):
            built = program(self.golden.folder, "--weights", weights, "--kv", kv)
            info = json.loads(built.run("info", "--json").stdout)
            self.assertEqual((info["weights"], info["kv"]), (weights, kv))
            self.assertEqual({c["element"] for c in info["manifest"]["caches"]}, {kv})
            self.assertEqual(info["cache_bytes_per_token"], 2 * heads * bytes_of_head[kv])
            rows = self.rows(self.golden.folder, "--weights", weights, "--kv", kv)
            error = nmse(rows, self.rows(self.golden.folder, "--weights", weights, "--kv", other))
            note(self, f"{weights} weights: NMSE {error:.1e} between caches (bound 1e-03)")
            self.assertTrue(1e-8 < error <= 1e-3, error)

    def test_shards(self):
        folder = self.folder()
        tensors = checkpoint.read(folder)
        os.unlink(os.path.join(folder, "model.safetensors"))
        names, place = list(tensors), {}
        for i in range(3):
            file = f"model-{i + 1:05}-of-00003.safetensors"
            checkpoint.write_tensors(os.path.join(folder, file), {n: tensors[n] for n in names[i::3]})
            place.update({n: file for n in names[i::3]})
        with open(os.path.join(folder, "model.safetensors.index.json"), "w", encoding="utf-8") as f:
            json.dump({"metadata": {}, "weight_map": place}, f)
        self.assertTrue(np.array_equal(self.rows(folder), self.rows(self.golden.folder)))

    def test_tied_head_stored_twice(self):
        """A tied head that is also stored must equal the embedding."""
        def tie(config):
            config["tie_word_embeddings"] = True

        def head(weights, value):
            weights["lm_head.weight"] = value

        tied = self.rows(self.folder(lambda w: w.pop("lm_head.weight"), tie))
        twice = self.rows(self.folder(lambda w: head(w, w["model.embed_tokens.weight"]), tie))
        self.assertTrue(np.array_equal(tied, twice))
        self.assertGreater(difference(tied, self.golden.logits), 1e-2)
        done = harness.execute([harness.mica, "compile", self.folder(None, tie), "-o",
                                os.path.join(harness.folder("twice"), "out")], check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"lm_head.weight", done.stderr)

    def test_checkpoints_of_torch(self):
        """pytorch_model.bin, as one file and in shards, in f32 and bf16."""
        expected = self.rows(self.golden.folder)
        tensors = checkpoint.read(self.golden.folder)
        names = sorted(tensors)
        for convert, shards in ((lambda a: a, 1), (lambda a: a, 2), (to_bf16, 1)):
            folder = self.folder()
            os.unlink(os.path.join(folder, "model.safetensors"))
            files = {f"pytorch_model-{i + 1:05}-of-{shards:05}.bin": names[i::shards] for i in range(shards)}
            if shards == 1:
                files = {"pytorch_model.bin": names}
            else:
                with open(os.path.join(folder, "pytorch_model.bin.index.json"), "w", encoding="utf-8") as f:
                    json.dump({"metadata": {}, "weight_map": {n: file for file, held in files.items() for n in held}}, f)
            for file, held in files.items():
                torch_file.write(os.path.join(folder, file), {n: convert(tensors[n]) for n in held})
            rows = self.rows(folder, "--weights", "f32")
            if convert is to_bf16:
                self.assertTrue(np.array_equal(rows, self.rows(self.converted(to_bf16), "--weights", "f32")))
            else:
                self.assertTrue(np.array_equal(rows, expected), f"{shards} shards")
            refused = harness.execute([harness.mica, "compile", folder, "-o", os.path.join(folder, min(files))], check=False)
            self.assertIn(b"is a file of the model, which would be replaced", refused.stderr)

    def test_torch_files_of_other_layouts(self):
        """Matrices that are stored transposed, and files from before torch 1.6."""
        expected = self.rows(self.golden.folder)
        tensors = checkpoint.read(self.golden.folder)
        transposed = {n: np.asfortranarray(a) if a.ndim == 2 else a for n, a in tensors.items()}
        for write, stored in ((torch_file.write, transposed), (torch_file.write_old, tensors),
                              (torch_file.write_old, transposed)):
            folder = self.folder()
            os.unlink(os.path.join(folder, "model.safetensors"))
            write(os.path.join(folder, "pytorch_model.bin"), stored)
            self.assertTrue(np.array_equal(self.rows(folder), expected), write.__name__)

    def test_f64_is_rounded_to_f32(self):
        exact = self.rows(self.golden.folder)
        self.assertTrue(np.array_equal(self.rows(self.converted(lambda a: a.astype("<f8"))), exact))
        nearby = self.converted(lambda a: a.astype("<f8") * (1 + 1e-12))
        self.assertTrue(np.array_equal(self.rows(nearby), exact), "less than f32 shows")

    def test_merged_matmuls_of_different_types(self):
        """q, k and v, and their biases, become one matmul, each converted from its own type."""
        changes = {"k_proj": (to_bf16, lambda a: from_bf16(to_bf16(a))),
                   "v_proj": (lambda a: a.astype("<f2"), lambda a: a.astype("<f2").astype("<f4"))}

        def change(which):
            def apply(tensors):
                for name in list(tensors):
                    for part, converts in changes.items():
                        if part in name:
                            tensors[name] = converts[which](tensors[name])
            return apply

        golden = Golden("llama-biases")
        rows = []
        for which, kind in enumerate(("mixed", "rounded")):
            folder = checkpoint.edited(golden.folder, os.path.join(harness.folder(kind), "llama-biases"), tensors=change(which))
            rows.append([program(folder, *options).generate([golden.prompt], 1)[1][0]
                         for options in ((), ("--weights", "f32"), ("--weights", "int8", "--kv", "f32"))])
        self.close(rows[0][0], rows[1][0], 1e-6, "the checkpoint's own precision")
        for mixed, rounded in zip(rows[0][1:], rows[1][1:]):
            self.assertTrue(np.array_equal(mixed, rounded))
        self.assertGreater(difference(rows[0][1], golden.logits), 1e-5, "rounding shows")

    def test_names_without_the_model_prefix(self):
        """Saved from the model without its head, with the head separately."""
        def strip(tensors):
            for name in list(tensors):
                tensors[name.removeprefix("model.")] = tensors.pop(name)

        self.assertTrue(np.array_equal(self.rows(self.folder(strip)), self.rows(self.golden.folder)))

    def test_a_tied_embedding_under_the_name_of_the_head(self):
        golden = Golden("llama-gqa")
        folder = checkpoint.edited(
            golden.folder, os.path.join(harness.folder("head"), "llama-gqa"),
            tensors=lambda w: w.update({"lm_head.weight": w.pop("model.embed_tokens.weight")}))
        self.assertTrue(checkpoint.config_of(folder)["tie_word_embeddings"])
        rows = [program(f).generate([golden.prompt], 1)[1][0] for f in (folder, golden.folder)]
        self.assertTrue(np.array_equal(*rows))

    def test_a_length_beyond_the_scaling(self):
        """YaRN limits the length of texts. Longer contexts are compiled with a warning."""
        folder = checkpoint.edited(harness.GOLDENS / "models/llama-rope-yarn", os.path.join(harness.folder("yarn"), "yarn"),
                                   lambda c: c.update(max_position_embeddings=256))
        compiled = [folder, "--emit", "kernels", "-o", os.path.join(folder, "out")]
        self.assertEqual(harness.compile_messages(*compiled),
                         f"mica: warning: {folder}: the program supports 256 positions, but the model's rope scaling is made for 128; choose --max-seq 128\n")
        self.assertEqual(harness.compile_messages(*compiled, "--max-seq", 128), "")

    def test_ignored_keys_and_tensors_are_listed(self):
        """-v lists keys and tensors known to be irrelevant, each with the reason; without it there is no output."""
        freqs = "model.layers.0.self_attn.rotary_emb.inv_freq"
        folder = self.folder(lambda w: w.update({freqs: np.zeros(4, "<f4")}),
                             lambda c: c.update(attention_dropout=0.5, use_cache=False))
        compiled = [harness.mica, "compile", folder, "-o", os.path.join(harness.folder("listed"), "out")]
        lines = harness.execute([*compiled, "-v"]).stderr.decode().splitlines()
        for line in (f'{folder}/config.json: "attention_dropout" is ignored (reason: only affects training)',
                     f'{folder}/config.json: "use_cache" is ignored (reason: the cache is always used)',
                     f'{folder}: tensor "{freqs}" is ignored (reason: table of rope, which is computed from the config)'):
            self.assertEqual(lines.count(line), 1, lines)
        self.assertNotIn("q_proj", "".join(lines))
        self.assertRegex("\n".join(lines), r"\nKV cache: [\d.]+ \w+ per token, [\d.]+ \w+ for all \d+ positions\n")
        quiet = harness.execute([*compiled, "--json"])
        self.assertRegex(quiet.stderr.decode(), r"^mica: warning: [^\n]* has no tokenizer [^\n]*\n$", "without the lists of -v")
        said = json.loads(quiet.stdout)
        self.assertEqual(said["left_out"],
                         [{"tensor": freqs, "reason": "table of rope, which is computed from the config"}])
        self.assertEqual(said["cache_bytes"], said["cache_bytes_per_token"] * said["max_seq"])
        self.assertTrue(np.array_equal(self.rows(folder), self.rows(self.golden.folder)))
