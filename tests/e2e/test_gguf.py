"""GGUF files as models: the same programs as from folders."""

import collections
import json
import os
import pathlib
import re
import struct

import numpy as np

import checkpoint
import gguf_blocks
import gguf_families
import gguf_file
import harness
from harness import BUNDLED, GOLDENS, Case, note, program
from test_bundled import golden
from test_calibrate import imatrix
from test_eval import bundled_text, evaluate, file_of
from test_goldens import Golden
from test_integers import divergence, rows_of

MODELS = {"minimind-dense": BUNDLED / "minimind-dense"}
MODELS |= {name: GOLDENS / "models" / name for name in ("llama-gqa", "qwen3-dense", "qwen3-moe")}
# Golden models changed to what their architectures can represent.
FAMILIES = {name: {} for name in ("gemma", "granite", "olmo2", "phi3")}
FAMILIES |= {
    "gemma2": {"query_pre_attn_scalar": 16},
    "mixtral": {"sliding_window": None},
    "qwen2": {"use_sliding_window": False, "layer_types": None},
    "qwen2-moe": {"num_hidden_layers": 1, "decoder_sparse_step": 1, "mlp_only_layers": [], "layer_types": None},
}
# The same for architectures with other tensor layouts; unchanged models must match the golden's logits.
LAID = {name: {} for name in ("bloom", "cohere", "deepseek", "glm4", "gpt-neox", "gpt-neox-sequential", "gpt2", "stablelm")}
YARN = {"rope_type": "yarn", "rope_theta": 100.0, "factor": 4.0, "original_max_position_embeddings": 16,
        "beta_fast": 4.0, "beta_slow": 0.5, "mscale": 0.9, "mscale_all_dim": 0.9}
LAID |= {
    "deepseek-v2": {"rope_parameters": YARN},
    "deepseek-v3": {"rope_parameters": YARN},
    "gemma3-text": {"layer_types": None, "sliding_window_pattern": 3, "query_pre_attn_scalar": 16},
    "gpt-oss": {"swiglu_limit": 7.0},
    "lfm2": {"conv_bias": False},
    "lfm2-moe": {},
    "starcoder2": {"sliding_window": None},
}
# Tensors that GGUF files of these families cannot contain.
WITHOUT = {"lfm2": r"\.conv\..*bias"}
PROMPTS = [[1, 5, 9, 33, 2, 60, 17, 8], [4, 4, 31]]
#: Upper bounds of the error of experts (NMSE of logits), of prompts and of decoding.
EXPERT_BOUNDS = (6e-5, 1e-7)
#: Formats with each size of groups, a mixture of experts, and prompts of integers: the blocks, options, whether it is a mixture.
CUTS = {
    "q8_0": ("Q8_0", (), False), "q4_k": ("Q4_K", (), False), "q6_k": ("Q6_K", (), False),
    "experts": ("Q4_K", (), True), "rows_int8": ("Q4_K", ("--rows", "int8"), False),
}


def converted(name, kind):
    """The model as a file with matrices of type `kind`, and the converter."""

    def make():
        converter = gguf_file.Converter(MODELS[name], kind)
        path = pathlib.Path(harness.folder("gguf")) / f"{name}.gguf"
        return converter.convert().write(path), converter

    return harness.once(("gguf", name, kind), make)


def numbers_folder(name, kind):
    """A folder with f32 weights equal to the file's dequantized tensors."""

    def make():
        target = os.path.join(harness.folder("numbers"), name)
        return converted(name, kind)[1].numbers_folder(target)

    return harness.once(("numbers", name, kind), make)


def family(name):
    """The golden model with its changes; with several layers, the second one if there is to be only one."""

    def only_second(tensors):
        for other in [t for t in tensors if ".layers." in t and ".layers.1." not in t]:
            del tensors[other]
        for second in [t for t in tensors if ".layers.1." in t]:
            tensors[second.replace(".layers.1.", ".layers.0.")] = tensors.pop(second)

    def make():
        single = "num_hidden_layers" in FAMILIES[name]
        return checkpoint.edited(GOLDENS / "models" / name, os.path.join(harness.folder("family"), name),
                                 lambda config: config.update(FAMILIES[name]), only_second if single else None)

    return harness.once(("family", name), make)


def logits(built):
    return np.concatenate(built.generate(PROMPTS, 4)[1])


@harness.for_each(MODELS, "f32")
@harness.for_each(("minimind-dense", "qwen3-dense", "qwen3-moe"), "q8_0")
@harness.for_each(("minimind-dense", "qwen3-dense", "qwen3-moe"), "q4_0")
@harness.for_each(("qwen3-dense", "qwen3-moe"), "f16")
@harness.for_each(FAMILIES, "families")
@harness.for_each(LAID, "laid")
@harness.for_each(("int8", "int4", "bf16"), "packed")
@harness.for_each(gguf_blocks.BLOCKS, "experts")
@harness.for_each(CUTS, "cuts")
class Gguf(Case):
    def same(self, name, kind, reference):
        """In f32. Bit-identical, unless rows of q and k are summed in another order (llama) or a family's norm rounds differently (MiniMind
        becomes Qwen3)."""
        got = logits(program(converted(name, kind)[0], "--weights", "f32"))
        wanted = logits(program(reference, "--weights", "f32"))
        self.close(got, wanted, 1e-5, f"logits of {name} as {kind}")
        if name.startswith("qwen3"):
            self.assertTrue((got == wanted).all())

    def f32(self, name):
        self.same(name, "BF16" if name.startswith("minimind") else "F32", MODELS[name])

    def families(self, name):
        folder = family(name)
        path = gguf_file.Converter(folder, "F32").convert().write(os.path.join(folder, "converted.gguf"))
        got, wanted = (logits(program(p, "--weights", "f32")) for p in (path, folder))
        self.close(got, wanted, 1e-5, f"logits of {name}")

    def laid(self, name):
        golden = Golden(name)
        folder = golden.folder
        if LAID[name]:
            folder = checkpoint.edited(folder, os.path.join(harness.folder("laid"), name),
                                       lambda config: config.update(LAID[name]),
                                       lambda tensors: [tensors.pop(n) for n in list(tensors)
                                                        if name in WITHOUT and re.search(WITHOUT[name], n)])
        path = gguf_families.convert(folder).write(os.path.join(harness.folder("laid"), f"{name}.gguf"))
        built = program(path)
        _, (got,) = built.generate([golden.prompt], 1)
        if "deepseek-v" in name:
            # Whatever the file contains, caches hold latents.
            sizes = [json.loads(b.run("info", "--json").stdout)["cache_bytes_per_token"] for b in (built, program(folder))]
            self.assertEqual(sizes[0], sizes[1])
        wanted = program(folder).generate([golden.prompt], 1)[1][0] if LAID[name] else golden.logits
        self.close(got, wanted, 1e-5, f"logits of {name}")

    def test_factors_of_short_and_long_texts(self):
        """Above and across the threshold: the factors in the file's tensors equal those of the folder."""
        golden = GOLDENS / "models/phi3-longrope"
        path = gguf_file.Converter(golden, "F32").convert().write(os.path.join(harness.folder("longrope"), "phi3.gguf"))
        built = program(path)
        self.assertIn("change beyond 64 positions", built.run("info").stdout.decode())
        for kind in ("above", "across"):
            said = json.loads((golden / f"golden.{kind}.json").read_text(encoding="utf-8"))
            ids, (got,) = built.generate([said["prompt"]], len(said["greedy"]))
            self.assertEqual(ids, [said["greedy"]], kind)
            wanted = np.load(golden / f"golden.{kind}.logits.npy")
            self.close(got[:len(wanted)] if kind == "above" else got[-len(wanted):], wanted, 1e-5, kind)

    def f16(self, name):
        self.same(name, "F16", numbers_folder(name, "F16"))

    def q8_0(self, name):
        self.same(name, "Q8_0", numbers_folder(name, "Q8_0"))

    def q4_0(self, name):
        self.same(name, "Q4_0", numbers_folder(name, "Q4_0"))

    def packed(self, weights):
        """Packed weights of blocks equal those of their dequantized numbers."""
        for kind in ("Q8_0", "Q4_0"):
            got = logits(program(converted("qwen3-dense", kind)[0], "--weights", weights))
            wanted = logits(program(numbers_folder("qwen3-dense", kind), "--weights", weights, "--kv", "bf16"))
            self.assertTrue((got == wanted).all(), kind)

    def test_text(self):
        """The tokenizer in the metadata equals the one of the folder."""
        name = "minimind-dense"
        built = program(converted(name, "BF16")[0], "--weights", "f32")
        for run in golden(name)["runs"]:
            prompt = ["-p", run["text"], "-n", len(run["greedy"]), "--temperature", 0]
            self.assertEqual(built.run(*prompt).stdout,
                             program(MODELS[name], "--weights", "f32").run(*prompt).stdout)

    def test_a_file_without_a_tokenizer(self):
        """Compiling names the key, whether it is missing or has a value that means none."""
        for says in (None, "none"):
            file = gguf_file.Converter(MODELS["qwen3-dense"], "F32").convert()
            self.assertNotIn("tokenizer.ggml.model", [key[0] for key in file.keys])
            if says:
                file.key("tokenizer.ggml.model", gguf_file.STRING, says)
            path = file.write(os.path.join(harness.folder("wordless"), "m.gguf"))
            self.assertEqual(harness.compile_messages(path, "-o", f"{path}.program"),
                             f'mica: warning: {path}: has no tokenizer (the key "tokenizer.ggml.model" is missing or "none"): '
                             "the program only accepts token ids (--tokens), no text and no chat\n")

    def test_settings_of_sampling(self):
        """Missing settings have llama.cpp's defaults; compiling names those that are only available as options of programs."""
        file = gguf_file.Converter(MODELS["minimind-dense"], "F32").convert()
        file.key("general.sampling.temp", gguf_file.F32, 0.5)
        file.key("general.sampling.mirostat", gguf_file.U32, 2)
        path = file.write(os.path.join(harness.folder("sampling"), "m.gguf"))
        done = harness.execute([harness.mica, "compile", path, "-o", f"{path}.program"])
        self.assertIn(f'mica: warning: {path}: "general.sampling.mirostat" changes which tokens are chosen, but is only supported '
                      "as --mirostat\n", done.stderr.decode())
        info = json.loads(harness.execute([f"{path}.program", "info", "--json"]).stdout)["sampling"]
        self.assertEqual([info[key] for key in ("temperature", "top_k", "top_p", "min_p")], [0.5, 40, 0.95, 0.05])

    def test_split_files(self):
        whole, converter = converted("qwen3-dense", "F32")
        count = len(converter.file.tensors)
        first = converter.file.write_parts(os.path.join(harness.folder("parts"), "m"), [0, 5, count - 5])
        self.assertTrue((logits(program(first)) == logits(program(whole))).all())

    def test_ir_finds_its_weights_in_a_file_of_its_name(self):
        path, _ = converted("qwen3-dense", "Q4_0")
        place = pathlib.Path(harness.folder("ir"))
        os.symlink(path, place / "m.gguf")
        (place / "m.mlir").write_text(harness.emit(path, "model"), encoding="utf-8")
        got, wanted = (logits(program(p, "--weights", "f32")) for p in (place / "m.mlir", path))
        self.assertTrue((got == wanted).all())

    def test_default_precision_of_tensors_without_blocks(self):
        for kind, weights in {"F32": "f32", "F16": "bf16", "BF16": "bf16", "Q8_0": "bf16", "Q4_0": "bf16"}.items():
            name = "minimind-dense" if kind == "BF16" else "qwen3-dense"
            built = program(converted(name, kind)[0])
            self.assertEqual(json.loads(built.run("info", "--json").stdout)["weights"], weights, kind)

    def test_inspect_and_verbose_name_the_stored_type(self):
        path, _ = converted("qwen3-dense", "Q4_0")
        out = harness.execute([harness.mica, "inspect", path]).stdout.decode()
        self.assertRegex(out, r"model +qwen3-dense \(qwen3\)")
        self.assertRegex(out, r"stored as +Q4_0, 4\.50 bits per weight \(most weights\)")
        self.assertRegex(out, r"of weights \(q4_0 x 15, f32 x 9\)")
        said = harness.execute([harness.mica, "compile", "-v", path, "--emit", "fused", "-o",
                                os.path.join(harness.scratch, "fused.mlir")]).stderr.decode()
        self.assertIn("most weights are Q4_0 (4.50 bits each), the program's are bf16", said)
        self.assertNotIn('"general.architecture"', said, "it chose the family")

    def counted(self, file, path, *unpreserved):
        """What `inspect` and `info` count: the file's tensors by the types that they have in the program."""
        kinds = {number: kind.lower() for kind, (number, *_) in gguf_blocks.BLOCKS.items()}
        # Numbers of a matrix become bf16, unless it is a router.
        wanted = collections.Counter("bf16" if name in unpreserved else kinds.get(kind) or
                                     ("f32" if len(shape) == 1 or "ffn_gate_inp" in name else "bf16")
                                     for name, shape, kind, _ in file.tensors)
        facts = json.loads(harness.execute([harness.mica, "inspect", path, "--json"]).stdout)
        info = json.loads(program(path).run("info", "--json").stdout)["manifest"]
        for said in (facts, info):
            self.assertEqual({**said["block_formats"], **said["float_types"]}, dict(wanted))
        self.assertEqual(facts["tensors"], len(file.tensors))
        blocks, floats = ([f"{name} x {count}" for name, count in sorted(said.items())] for said in (info["block_formats"], info["float_types"]))
        text = harness.execute([harness.mica, "inspect", path]).stdout.decode()
        self.assertIn(f"in {len(file.tensors)} tensors\n", text)
        self.assertIn(f" of weights ({', '.join(blocks + floats)}), ", text)
        self.assertIn(f"weights       {', '.join(blocks + floats)}\n", program(path).run("info").stdout.decode())
        return wanted

    def test_tensors_are_counted_by_type(self):
        """Those of the file, not the parts that a program makes of them: the experts of a layer are one tensor, as are q, k and v."""
        file = gguf_file.Converter(self.wide_experts(), "Q8_0").convert()
        wanted = self.counted(file, file.write(os.path.join(harness.folder("counted"), "moe.gguf")))
        self.assertEqual(wanted["q8_0"] + wanted["bf16"] + wanted["f32"], len(file.tensors))
        self.assertGreaterEqual(wanted["q8_0"], 13)

        def widen(tensors):
            shapes = {"qkv_proj": (128, 64), "o_proj": (64, 64), "gate_up_proj": (128, 64), "down_proj": (64, 64)}
            rng = np.random.default_rng(0)
            for name, array in tensors.items():
                shape = (64,) if array.ndim == 1 else shapes.get(name.split(".")[-2], (64, 64))
                tensors[name] = (rng.standard_normal(shape) / 8 + (array.ndim == 1)).astype("f4")
        folder = checkpoint.edited(GOLDENS / "models/phi3", os.path.join(harness.folder("wider"), "phi3"),
                                   lambda config: config.update(hidden_size=64, intermediate_size=64, num_attention_heads=4,
                                                                num_key_value_heads=2), widen)
        file = gguf_file.Converter(folder, "Q4_1").convert()
        wanted = self.counted(file, file.write(os.path.join(harness.folder("counted"), "fused.gguf")))
        self.assertEqual(wanted, {"q4_1": 10, "f32": 5})

    def test_run_compiles_into_the_cache(self):
        path, _ = converted("minimind-dense", "Q8_0")
        env = {"XDG_CACHE_HOME": harness.folder("cache")}
        arguments = [harness.mica, "run", path, "--tokens", "1,2,3", "-n", "4", "--temperature", "0", "--print-tokens"]
        first = harness.execute(arguments, env=env).stdout
        self.assertEqual(harness.execute(arguments, env=env).stdout, first)
        self.assertEqual(len(list(pathlib.Path(env["XDG_CACHE_HOME"], "mica").glob("minimind-dense-*[0-9a-f]"))), 1)

    def test_blocks_are_preserved_by_default(self):
        """The default's distance from the numbers of the same file, and that of requantized blocks."""
        name = "minimind-dense"
        for kind, weights in (("Q8_0", "int8"), ("Q4_0", "int4")):
            path, _ = converted(name, kind)
            exact = rows_of(program(path, "--weights", "f32"), name)
            kept, anew = (divergence(exact, rows_of(program(path, *options), name))
                          for options in ((), ("--weights", weights)))
            note(self, f"{kind}: KL {kept:.1e} of blocks kept, {anew:.1e} of {weights}")
            self.assertLess(kept, 1e-4)
            self.assertLess(kept, anew)

    def test_eval_measures_the_loss(self):
        """`mica eval` of the default compared with the same file in f32, and of a requantized file."""
        text = file_of(bundled_text())
        for kind, weights in (("Q8_0", "int8"), ("Q4_0", "int4")):
            path, _ = converted("minimind-dense", kind)
            exact = program(path, "--weights", "f32")
            kept, anew = (evaluate(program(path, *options).path, "--text", text, "--context", 256, "--reference", exact.path)
                          for options in ((), ("--weights", weights)))
            for found in (kept, anew):
                self.assertGreater(found["positions"], 1000)
                self.assertEqual(found["reference"], kept["reference"])
            note(self, f"{kind}: KL {kept['kl']['mean']:.1e}, same top {kept['same_top']:.3f}; as {weights} "
                 f"{anew['kl']['mean']:.1e}, {anew['same_top']:.3f}")
            self.assertTrue(0 < kept["kl"]["mean"] < min(1e-4, anew["kl"]["mean"]))
            # Half of this text are random numbers, so the bounds are not those of the design.
            self.assertGreaterEqual(kept["same_top"], 0.97)
            ratio = kept["program"]["perplexity"] / kept["reference"]["perplexity"]
            self.assertAlmostEqual(ratio, 1, 2)

    def test_blocks_of_several_kinds_in_one_file(self):
        """Layers, and matrices of one layer, with different types; tensors that are not block-quantized are bf16."""
        class Mixed(gguf_file.Converter):
            def put(self, name, values, kind):
                kinds = {"blk.0.attn_v.weight": "Q8_0", "blk.1.ffn_down.weight": "Q8_0", "blk.2.attn_q.weight": "F16"}
                return super().put(name, values, kinds.get(name, kind))
        model = MODELS["minimind-dense"]
        path = Mixed(model, "Q4_0").convert().write(os.path.join(harness.folder("mixed"), "mixed.gguf"))
        done = harness.execute([harness.mica, "verify", path, "--json", "--positions", "48"])
        self.assertTrue(json.loads(done.stdout)["passed"])
        fused = harness.emit(path, "fused")
        # All matrices but one keep their blocks: there are three layer types.
        for name, blocks in (("0.self_attn.v_proj", "q8_0"), ("0.self_attn.qk_proj", "q4_0"), ("1.self_attn.qkv_proj", "q4_0"),
                             ("1.mlp.down_proj", "q8_0"), ("2.mlp.down_proj", "q4_0")):
            self.assertRegex(fused, rf"mica\.weight @[^\n]*layers\.{name}\.[^\n]*x!mica\.block<{blocks}>>\n")
        built = program(path).run("info").stdout.decode()
        self.assertRegex(built, r"weights       q4_0 x 19, q8_0 x 2, bf16 x 1, f32 x 13\ncache         bf16\n")
        self.assertRegex(fused, r"layers\.2\.self_attn\.q_proj\.[^\n]*xbf16>\n")

    def verified(self, path, name):
        """Compares each op with the interpreter's result for its inputs, and the logits of each token alone with those of the same file in
        f32, within the error of two-limb rows."""
        done = harness.execute([harness.mica, "verify", path, "--json", "--positions", "48"], check=False)
        self.assertEqual(done.returncode, 0, (done.stdout + done.stderr).decode()[-2000:])
        self.assertTrue(json.loads(done.stdout)["passed"])
        tokens = [[i] for i in range(16)]
        got, wanted = (program(path, "--kv", "f32", *options).generate(tokens, 2)[1] for options in ((), ("--weights", "f32")))
        errors = sorted(harness.nmse(g, w) for g, w in zip(got, wanted))
        note(self, f"{name}: NMSE of a token's logits: {errors[8]:.1e}, of the worst {errors[-1]:.1e} (bound 1e-03)")
        self.assertLessEqual(errors[-1], 1e-3)

    def test_plain_numbers_with_some_blocks(self):
        """A file in F32 with one block-quantized matrix: everything else is f32, and its activations are integers."""
        class Mixed(gguf_file.Converter):
            def put(self, name, values, kind):
                return super().put(name, values, "Q8_0" if name == "blk.1.ffn_up.weight" else kind)
        path = Mixed(MODELS["qwen3-dense"], "F32").convert().write(os.path.join(harness.folder("mixed"), "mixed.gguf"))
        fused = harness.emit(path, "fused")
        self.assertRegex(fused, r"layers\.1\.mlp\.up_proj\.[^\n]*: tensor<32x32x!mica\.block<q8_0>>\n")
        self.assertRegex(fused, r"layers\.1\.mlp\.down_proj\.[^\n]*: tensor<32x32xf32>\n")
        self.verified(path, "F32 and Q8_0")

    def mixture(self, name, kinds):
        """A layer whose matrices have the types `kinds`; the last one is that of the tied embedding."""
        class Mixed(gguf_file.Converter):
            def put(self, name, values, kind):
                part = name.split(".")[-2]
                return super().put(name, values, kinds[part] if kind != "F32" and part in kinds else "F32")
        model = checkpoint.edited(MODELS["minimind-dense"], os.path.join(harness.folder("single"), "model"),
                                  lambda config: config.update(num_hidden_layers=1),
                                  lambda tensors: [tensors.pop(n) for n in list(tensors) if re.search(r"layers\.[^0]", n)])
        path = Mixed(model, "Q8_0").convert().write(os.path.join(harness.folder("mixed"), "mixed.gguf"))
        fused = harness.emit(path, "fused")
        for kind in kinds.values():
            self.assertIn(f"x!mica.block<{kind.lower()}>>", fused)
        self.assertNotRegex(fused, r"mica\.weight [^\n]*_proj[^\n]*xbf16>")
        self.verified(path, name)

    def test_mixture_of_k_quants(self):
        """As in Q4_K_M and similar mixtures: q, k and v have three types, the embedding is in Q6_K."""
        self.mixture("K quants", {"attn_q": "Q4_K", "attn_k": "Q5_K", "attn_v": "Q6_K", "attn_output": "IQ4_XS",
                                  "ffn_gate": "Q2_K", "ffn_up": "Q3_K", "ffn_down": "Q6_K", "token_embd": "Q6_K"})

    def test_mixture_of_small_blocks(self):
        self.mixture("small blocks", {"attn_q": "Q4_1", "attn_k": "Q4_1", "attn_v": "Q5_1", "attn_output": "Q5_0",
                                      "ffn_gate": "IQ4_NL", "ffn_up": "IQ4_NL", "ffn_down": "MXFP4", "token_embd": "Q4_1"})

    def wide_experts(self):
        """A mixture of experts whose rows are all whole blocks."""
        def widen(tensors):
            for name in [n for n in tensors if ".experts." in n]:
                tensors[name] = np.concatenate([tensors[name], -tensors[name][::-1]], 1 if "down_proj" in name else 0)
        return checkpoint.edited(MODELS["qwen3-moe"], os.path.join(harness.folder("wider"), "model"),
                                 lambda config: config.update(moe_intermediate_size=32), widen)

    def test_experts_of_two_types(self):
        """Gate and up of one type and down of another, as in mixtures."""
        class Mixed(gguf_file.Converter):
            def put(self, name, values, kind):
                return super().put(name, values, "Q8_0" if "ffn_down" in name else kind)

        path = Mixed(self.wide_experts(), "Q4_0").convert().write(os.path.join(harness.folder("mixed"), "mixed.gguf"))
        fused = harness.emit(path, "fused")
        self.assertRegex(fused, r"experts\.gate_up_proj[^\n]*x!mica\.block<q4_0>>\n")
        self.assertRegex(fused, r"experts\.down_proj[^\n]*x!mica\.block<q8_0>>\n")
        done = harness.execute([harness.mica, "verify", path, "--json", "--positions", "48"], check=False)
        self.assertEqual(done.returncode, 0, (done.stdout + done.stderr).decode()[-2000:])

    def said(self, path, *options):
        """The messages of compiling the file, without the warning that it has no tokenizer."""
        said = harness.compile_messages(path, *options, "-o", os.path.join(harness.folder("said"), "out"))
        return [line for line in said.splitlines() if "has no tokenizer" not in line]

    def test_blocks_that_are_not_preserved(self):
        """Experts whose gate and up have different formats: a warning names the resulting type, once for all layers, in `compile` and
        `inspect`. The down matrix keeps its blocks, and so do gate and up if the down matrix is not block-quantized."""
        why = "gate and up of the experts are stored in different formats"
        for kinds, lost in (({"down": "F16"}, {}), ({"gate": "Q4_0"}, {"gate": "q4_0", "up": "q8_0"})):
            class Mixed(gguf_file.Converter):
                def put(self, name, values, kind):
                    part = re.search("ffn_(gate|up|down)_exps", name)
                    return super().put(name, values, kinds.get(part[1], kind) if part else kind)
            converter = Mixed(self.wide_experts(), "Q8_0")
            file = converter.convert()
            path = file.write(os.path.join(harness.folder("mixed"), "mixed.gguf"))
            wanted = [f"mica: warning: {path}: blk.*.ffn_{part}_exps.weight (2): blocks of {blocks} become bf16: {why}"
                      for part, blocks in lost.items()]
            self.assertEqual(sorted(self.said(path)), sorted(wanted))
            done = harness.execute([harness.mica, "inspect", path])
            self.assertEqual(sorted(done.stderr.decode().splitlines()), sorted(wanted))
            self.counted(file, path, *(f"blk.{layer}.ffn_{part}_exps.weight" for layer in (0, 1) for part in lost))
            fused = harness.emit(path, "fused")
            of_down = "bf16" if "down" in kinds else "!mica.block<q8_0>"
            self.assertRegex(fused, rf"experts\.down_proj[^\n]*x{of_down}>\n")
            self.assertRegex(fused, rf"experts\.gate_up_proj[^\n]*x{'bf16' if lost else '!mica.block<q8_0>'}>\n")
            # In every role, and where processors lack products of bf16.
            for options in ((), ("--rows", "int8"), ("--target", "x86-64-v3")):
                done = harness.execute([harness.mica, "verify", path, "--json", "--positions", "24", *options], check=False)
                self.assertEqual(done.returncode, 0, (kinds, options, (done.stdout + done.stderr).decode()[-2000:]))
            folder = converter.numbers_folder(os.path.join(harness.folder("numbers"), "mixed"))
            exact, found = (np.array(program(each, *options, "--kv", "f32").generate([[i] for i in range(32)], 2)[1])
                            for each, options in ((folder, ("--weights", "f32")), (path, ())))
            errors = sorted(harness.nmse(got, wanted) for got, wanted in zip(found, exact))
            # Rounding may change another token's choice of experts.
            note(self, f"{kinds}: NMSE of a token's logits {errors[16]:.1e}, of the worst {errors[-1]:.1e} (bound of nine in ten 1e-3)")
            self.assertLessEqual(errors[28], 1e-3)

    def test_requantizing_has_a_price(self):
        """The warning quotes docs/quality.md: for calibrated weights the figure of those."""
        path, _ = converted("minimind-dense", "Q8_0")
        statistics = imatrix({"blk.0.attn_output.weight": [1.0] * 512})
        for options, figure in (((), None), (("--weights", "bf16"), None), (("--weights", "int8"), ".0016"),
                                (("--weights", "int4"), ".084, or .020 with --calibrate"),
                                (("--weights", "int8", "--imatrix", statistics), ".0016 without calibration"),
                                (("--weights", "int4", "--imatrix", statistics), ".020"),
                                (("--weights", "int4", "--calibrate", file_of(bundled_text()[:4000])), ".020")):
            wanted = [] if not figure else [
                f"mica: warning: {path}: --weights {options[1]} requantizes weights that are stored in blocks: on SmolLM2-135M this "
                f"adds a KL divergence of {figure} (docs/quality.md); leave --weights out to preserve the blocks"]
            # What is said of few statistics is tested with calibration.
            said = [line for line in self.said(path, *options) if "has statistics for 1 of" not in line and "statistics cover only" not in line]
            self.assertEqual(said, wanted)

    def test_rows_are_stated_in_the_ir(self):
        """`--rows int8` is an attribute of the module; IR with the attribute compiles to the same program as the file with the option."""
        path, _ = converted("minimind-dense", "Q8_0")
        place = pathlib.Path(harness.folder("rows"))
        os.symlink(path, place / "m.gguf")
        text = harness.emit(path, "model", "--rows", "int8")
        self.assertIn('mica.prompt_rows = "int8"', text)
        (place / "m.mlir").write_text(text, encoding="utf-8")
        for options, rows in (((), "int8 per 32"), (("--rows", "exact"), "bf16")):
            facts = json.loads(harness.execute([harness.mica, "inspect", place / "m.mlir", "--json", "--target", "znver4",
                                                *options]).stdout)
            self.assertEqual((facts["rows"]["prompt"], facts["prompt_rows"]), (rows, options[1] if options else "int8"))
        done = harness.execute([harness.mica, "verify", place / "m.mlir", "--json", "--positions", "24"])
        self.assertTrue(json.loads(done.stdout)["passed"])

    def test_blocks_of_several_kinds_in_no_order(self):
        """Three layer types, one loop that calls each: results equal the interpreter's."""
        kinds = [{"8": "Q8_0", "4": "Q4_0", "x": "F16"}[c] for c in "848844x4x884844488x48x44"]

        class Mixed(gguf_file.Converter):
            def put(self, name, values, kind):
                return super().put(name, values, kinds[int(name.split(".")[1])] if name.startswith("blk.") and kind != "F32" else kind)

        def repeat(weights):
            for name in [n for n in weights if n.startswith("model.layers.0.")]:
                for layer in range(len(kinds)):
                    weights[name.replace(".0.", f".{layer}.", 1)] = weights[name]
        model = checkpoint.edited(MODELS["minimind-dense"], os.path.join(harness.folder("deeper"), "model"),
                                  lambda config: config.update(num_hidden_layers=len(kinds)), repeat)
        path = Mixed(model, "Q4_0").convert().write(os.path.join(harness.folder("mixed"), "mixed.gguf"))
        main = harness.emit(path, "kernels").split("func.func @main_decode_few(")[1].split("func.func ")[0]
        calls = re.findall(r"call @(\w+)\(", main)
        self.assertEqual((len(calls), len(set(calls))), (3, 3), calls)
        self.assertTrue(json.loads(harness.execute([harness.mica, "verify", path, "--json", "--positions", "32"]).stdout)["passed"])

    def test_rows_follow_their_role(self):
        """A prompt is computed identically for all chunk sizes, and eval uses the arithmetic of prefill or of decoding."""
        prompt = [int(i) for i in np.random.default_rng(3).integers(3, 500, 70)]
        for kind in ("Q8_0", "Q4_0"):
            path, _ = converted("minimind-dense", kind)
            built = program(path)
            facts = json.loads(built.run("info", "--json").stdout)
            self.assertTrue(facts["manifest"]["depends_on_role"])
            names = set(facts["manifest"]["ops"])
            self.assertTrue({f"main_{name}" for name in ("decode_few", "decode_many", "prompt_several", "prompt_many")} <= names, names)
            wanted = built.generate([prompt], 1, "--prefill-chunk", 1)[1][0]
            for chunk in (2, 7, 16, 17, 32):
                rows = built.generate([prompt], 1, "--prefill-chunk", chunk)[1][0]
                self.assertTrue(np.array_equal(rows, wanted), f"{kind}, chunks of {chunk}")
            line = f"0 0 {' '.join(map(str, prompt))}\n".encode()
            fed = {options: np.frombuffer(built.run("score", "--prefill-chunk", *options, stdin=line).stdout, "f4")
                   for options in (("1",), ("1", "--as-decode"), ("16", "--as-decode"), ("32", "--as-decode"))}
            self.assertTrue(np.array_equal(fed["1",], wanted.ravel()))
            for chunk in ("16", "32"):
                self.assertTrue(np.array_equal(fed[chunk, "--as-decode"], fed["1", "--as-decode"]), f"{kind}, {chunk}")
            text = file_of(bundled_text()[:3000])
            results = [evaluate(built.path, "--text", text, "--context", "64", *options) for options in ((), ("--as-decode",))]
            self.assertEqual([r["as_decode"] for r in results], [False, True])
            for result in results:
                self.assertAlmostEqual(result["program"]["perplexity"] / results[0]["program"]["perplexity"], 1, 2)
        other = json.loads(program(MODELS["minimind-dense"]).run("info", "--json").stdout)["manifest"]
        self.assertNotIn("depends_on_role", other)
        self.assertIn("main_several", other["ops"])

    def experts_of(self, kind):
        """A mixture whose rows are whole blocks of every format, as a file all of whose matrices are of `kind`."""

        def make():
            config = {"model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], "hidden_size": 256, "intermediate_size": 256,
                      "moe_intermediate_size": 256, "num_experts": 4, "num_experts_per_tok": 2, "norm_topk_prob": True,
                      "decoder_sparse_step": 1, "mlp_only_layers": [], "num_hidden_layers": 1, "num_attention_heads": 4,
                      "num_key_value_heads": 1, "head_dim": 64, "vocab_size": 64, "max_position_embeddings": 128, "rms_norm_eps": 1e-6,
                      "rope_theta": 10000.0, "tie_word_embeddings": False, "hidden_act": "silu", "bos_token_id": 1, "eos_token_id": 2}
            folder = harness.once("experts", lambda: checkpoint.random(harness.folder("experts"), config, "f32"))
            return gguf_file.Converter(folder, kind).convert().write(os.path.join(harness.folder("experts"), f"{kind}.gguf"))

        return harness.once(("experts", kind), make)

    def lost(self, kind, *options):
        """The errors of the logits of single tokens against the same file in f32, of prompts and of decoding. Each token alone: no row
        sees another's choice of experts, which rounding may change; nine tokens in ten have none that are near."""
        lines = "".join(f"0 0 {i}\n" for i in range(64)).encode()

        def rows(options, role):
            built = program(self.experts_of(kind), "--kv", "f32", *options)
            return np.frombuffer(built.run("score", *role, stdin=lines).stdout, "f4").reshape(64, 64)
        return [sorted(map(harness.nmse, rows(options, role), rows(("--weights", "f32"), ())))[57] for role in ((), ("--as-decode",))]

    def experts(self, kind):
        """Both roles compute with the file's own blocks."""
        fused = harness.emit(self.experts_of(kind), "fused")
        for part in ("gate_up", "down"):
            self.assertRegex(fused, rf"experts\.{part}_proj[^\n]*x!mica\.block<{kind.lower()}>>\n")
        prompt, decode = self.lost(kind)
        note(self, f"{kind}: NMSE of nine tokens in ten: prompts {prompt:.1e} (bound {EXPERT_BOUNDS[0]:.0e}), decoding {decode:.1e} "
             f"(bound {EXPERT_BOUNDS[1]:.0e})")
        self.assertLessEqual(prompt, EXPERT_BOUNDS[0])
        self.assertLessEqual(decode, EXPERT_BOUNDS[1])

    def test_bounds_of_experts_exclude_other_arithmetic(self):
        """8-bit activations exceed the bound of prefill, requantized weights that of decoding."""
        for kind, options, role in (("Q8_0", ("--rows", "int8"), 0), ("Q4_K", ("--rows", "int8"), 0), ("Q8_0", ("--weights", "int8"), 1),
                                    ("Q4_K", ("--weights", "int8"), 1), ("Q4_K", ("--weights", "int4"), 1)):
            lost = self.lost(kind, *options)
            note(self, f"{kind} {' '.join(options)}: NMSE {lost[0]:.1e}, {lost[1]:.1e}")
            self.assertGreater(lost[role], 1.5 * EXPERT_BOUNDS[role], (kind, options))

    def cuts(self, case):
        """Wherever a text is cut into calls, its rows are the same bits in the arithmetic of prefill, and in that of decode, and these
        two differ where the program says so."""
        kind, options, is_mixture = CUTS[case]
        path, vocabulary = (self.experts_of(kind), 64) if is_mixture else (converted("minimind-dense", kind)[0], 500)
        built, rng, count = program(path, *options), np.random.default_rng(sorted(CUTS).index(case)), 90
        text = rng.integers(3, vocabulary, count).tolist()
        whole = []
        for role in ((), ("--as-decode",)):
            def rows(cuts):
                parts = zip([0, *cuts], [*cuts, count])
                lines = "".join(f"{first} 0 {' '.join(map(str, text[first:last]))}\n" for first, last in parts)
                return np.frombuffer(built.run("score", "--prefill-chunk", "96", *role, stdin=lines.encode()).stdout, "f4")
            whole.append(rows([]))
            self.assertEqual(len(whole[-1]) % count, 0)
            for number in (89, *rng.integers(1, 16, 5)):
                cuts = sorted(rng.choice(np.arange(1, count), number, replace=False).tolist())
                self.assertTrue(np.array_equal(rows(cuts), whole[-1]), (role, cuts))
        # Processors without products of bf16 multiply the same integers in both roles.
        activations = json.loads(built.run("info", "--json").stdout)["manifest"]["rows"]
        self.assertEqual(np.array_equal(*whole), activations["prompt"] == activations["decode"])
        # Beside another sequence, chunk by chunk.
        other = rng.integers(3, vocabulary, 37).tolist()
        batch = built.generate([text, other], 1, "--prefill-chunk", 23)[1][0]
        self.assertTrue(np.array_equal(batch.ravel(), whole[0]))


class Refused(Case):
    """Broken files: one line that names the file and a hint, and no remaining files."""

    def refuse(self, data, mention, *options):
        place = pathlib.Path(harness.folder("refused"))
        path = place / "m.gguf"
        path.write_bytes(data if isinstance(data, bytes) else data.bytes())
        done = harness.execute([harness.mica, "compile", path, "-o", place / "program", *options], check=False)
        error = done.stderr.decode()
        self.assertEqual(done.returncode, 1, error)
        self.assertRegex(error, rf"\Amica: error: {path}: [^\n]*; [a-z]+ [^\n]*\n\Z")
        self.assertIn(mention, error)
        self.assertEqual(os.listdir(place), ["m.gguf"])

    def file(self):
        return gguf_file.Converter(MODELS["qwen3-dense"], "F32").convert()

    def test_cut(self):
        whole = self.file().bytes()
        for size in (3, 4, 8, 23, 24, 100, len(self.file().header()) - 1, len(whole) // 2, len(whole) - 40):
            self.refuse(whole[:size], "fetch it again")

    def test_rows_that_are_not_whole_blocks(self):
        """A row that is not a multiple of the block, and a tensor with too few bytes, for every type."""
        for kind, (number, elements, size) in gguf_blocks.BLOCKS.items():
            file = self.file()
            index = next(i for i, (name, *_) in enumerate(file.tensors) if name == "blk.0.ffn_up.weight")
            name, _, _, _ = file.tensors[index]
            file.tensors[index] = name, (32, elements - 16), number, bytes(32 * size)
            self.refuse(file, f'tensor "{name}" has rows of {elements - 16} elements')
        whole = self.file()
        name, shape, _, _ = whole.tensors[-1]
        number, _, size = gguf_blocks.BLOCKS["Q5_1"]
        whole.tensors[-1] = name, (shape[0], 32), number, bytes(shape[0] * size)
        whole = whole.bytes()
        self.refuse(whole[:-33], "fetch it again")

    def test_lengths_that_lie(self):
        file = self.file()
        file.keys.append(("s", struct.pack("<IQ", gguf_file.STRING, 1 << 63)))
        self.refuse(file, 'has a value of 9223372036854775808 bytes for the key "s"')
        file = self.file()
        file.keys.append(("s", struct.pack("<IIQ", gguf_file.ARRAY, gguf_file.F64, 1 << 61)))
        self.refuse(file, 'declares 2305843009213693952 elements for the key "s"')

    def test_versions(self):
        file = self.file()
        file.version = 1
        self.refuse(file, "has the GGUF version 1")
        file.version = 3 << 24
        self.refuse(file, "is a big-endian GGUF file")
        self.refuse(b"junk that ends in .gguf", "is not a GGUF file")

    def test_unknown_keys_and_types(self):
        file = self.file()
        file.key("qwen3.trick", gguf_file.F32, 1)
        self.refuse(file, 'has the key "qwen3.trick", which is unknown for qwen3')
        file = self.file()
        file.tensor("blk.0.attn_sinks.weight", (4,), "F32", bytes(16))
        self.refuse(file, 'tensor "blk.0.attn_sinks.weight" [4] does not belong to qwen3')
        file = self.file()
        file.key("tokenizer.ggml.model", gguf_file.STRING, "bert")
        file.list("tokenizer.ggml.tokens", gguf_file.STRING, ["a"])
        self.refuse(file, 'the tokenizer "bert" is not known')

    def test_invalid_numbers(self):
        file = self.file()
        name, shape, kind, data = file.tensors[3]
        file.tensors[3] = name, shape, kind, struct.pack("<f", np.nan) + data[4:]
        self.refuse(file, "holds NaN")

    def test_nonfinite_scales(self):
        """The tensor is named as in the file, and its block."""
        file = gguf_file.Converter(BUNDLED / "minimind-dense", "Q8_0").convert()
        names = [name for name, *_ in file.tensors]
        index = names.index("blk.1.ffn_down.weight")
        name, shape, kind, data = file.tensors[index]
        broken = bytearray(data)
        broken[34 * 1234:34 * 1234 + 2] = struct.pack("<e", np.nan)
        file.tensors[index] = name, shape, kind, bytes(broken)
        self.refuse(file, 'tensor "blk.1.ffn_down.weight" holds NaN or infinity in block 1234')

    def test_a_type_that_is_not_that_of_the_bytes(self):
        """A tensor of a smaller type ends before the next one begins."""
        data = gguf_file.Converter(MODELS["qwen3-dense"], "Q8_0").convert().bytes()
        name = b"blk.0.ffn_down.weight"
        place = data.index(name) + len(name)
        place += 4 + 8 * struct.unpack_from("<I", data, place)[0]
        self.assertEqual(struct.unpack_from("<I", data, place), (8,), "Q8_0")
        self.refuse(data[:place] + struct.pack("<I", 20) + data[place + 4:], "bytes that belong to no tensor between the tensor")

    def test_the_epsilon_of_norms(self):
        file = self.file()
        file.keys = [key for key in file.keys if not key[0].endswith("layer_norm_rms_epsilon")]
        self.refuse(file, 'has no key "qwen3.attention.layer_norm_rms_epsilon", which qwen3 needs')

    def test_the_model_is_not_overwritten(self):
        place = pathlib.Path(harness.folder("own"))
        first = self.file().write_parts(str(place / "m"), [3, len(self.file().tensors) - 3])
        for path in (first, first.replace("00001-of", "00002-of")):
            done = harness.execute([harness.mica, "compile", first, "-o", path], check=False)
            self.assertIn("is a file of the model, which would be replaced", done.stderr.decode())


del Case  # unittest would treat it as a test
