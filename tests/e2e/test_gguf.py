"""GGUF files as models: the same programs as from folders."""

import collections
import json
import os
import pathlib
import re

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
from test_integers import add_head, divergence, rows_of

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
    "bamba": {"mamba_proj_bias": False},
    "deepseek-v2": {"rope_parameters": YARN},
    "deepseek-v3": {"rope_parameters": YARN},
    "gemma3-text": {"layer_types": None, "sliding_window_pattern": 3, "query_pre_attn_scalar": 16},
    "gpt-oss": {"swiglu_limit": 7.0},
    "lfm2": {"conv_bias": False},
    "lfm2-moe": {},
    "mamba2": {"use_bias": False},
    "nemotron-h-moe": {"use_bias": False, "mlp_bias": False},
    "qwen3-next": {"num_hidden_layers": 2, "layer_types": ["linear_attention", "full_attention"], "mlp_only_layers": [],
                   "attention_bias": False},
    "starcoder2": {"sliding_window": None},
}
LAID |= {name: {} for name in ("falcon-h1", "gemma4-moe", "gemma4-shared", "gemma4-text", "granite-hybrid", "granite-hybrid-dense", "nemotron-h", "nemotron-h-latent", "qwen3-5", "qwen3-5-moe")}
# Tensors that GGUF files of these families cannot contain.
WITHOUT = {"bamba": r"\.mamba\..*_proj\.bias", "lfm2": r"\.conv\..*bias", "mamba2": r"_proj\.bias", "nemotron-h-moe": r"_proj\.bias",
           "qwen3-next": r"layers\.2\.|self_attn\..*bias"}
PROMPTS = [[1, 5, 9, 33, 2, 60, 17, 8], [4, 4, 31]]
#: Upper bounds of the error of experts (NMSE of logits), of prompts and of decoding.
EXPERT_BOUNDS = (6e-5, 1e-7)
#: The same for the worst of some tokens of other models, of prompts with bf16 activations and of 16-bit integers.
TOKEN_BOUNDS = (6e-5, 1e-6)
#: The model and the options of each arithmetic: eight formats in a file, which are all formats with "round robin from Q4_0", with rows of
#: prompts in bf16, 8 and 16 bits, experts, and Mica's own formats.
CUTS = {
    "round_robin": ("round robin", ()), "round_robin_from_q4_0": ("round robin from Q4_0", ()),
    "rows_int8": ("round robin", ("--rows", "int8")), "avx2": ("round robin", ("--target", "x86-64-v3")),
    "experts": ("experts", ()), "int8": ("single layer", ("--weights", "int8")), "int4": ("single layer", ("--weights", "int4")),
}


def single_layer(untied=False):
    """A bundled model reduced to its first layer; its embedding and lm_head share weights unless `untied`."""
    def single(tensors):
        for name in [n for n in tensors if re.search(r"layers\.[^0]", n)]:
            del tensors[name]
        if untied:
            add_head(tensors)

    return harness.once(("single layer", untied), lambda: checkpoint.edited(
        MODELS["minimind-dense"], os.path.join(harness.folder("single"), "model"),
        lambda config: config.update(num_hidden_layers=1, tie_word_embeddings=not untied), single))


def round_robin(folder, first="Q2_K"):
    """A layer and its tied embedding in eight types from `first` on, a matrix in each: from Q2_K to MXFP4, or from Q4_0 to Q4_K."""
    converter = gguf_file.RoundRobin(folder, list(gguf_blocks.BLOCKS).index(first))
    file = converter.convert()
    assert len(set(converter.assigned.values())) == 8, converter.assigned
    return file


def round_robin_path(first="Q2_K"):
    """The file of `round_robin` of a single layer."""
    return harness.once(("round robin", first),
                        lambda: round_robin(single_layer(), first).write(os.path.join(harness.folder("round-robin"), "m.gguf")))


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
    """The golden model with its changes; if they set num_hidden_layers, only the second layer is kept."""

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


def experts_folder():
    """A mixture of experts whose rows are whole blocks of every format."""
    config = {"model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], "hidden_size": 256, "intermediate_size": 256,
              "moe_intermediate_size": 256, "num_experts": 4, "num_experts_per_tok": 2, "norm_topk_prob": True,
              "decoder_sparse_step": 1, "mlp_only_layers": [], "num_hidden_layers": 1, "num_attention_heads": 4,
              "num_key_value_heads": 1, "head_dim": 64, "vocab_size": 64, "max_position_embeddings": 128, "rms_norm_eps": 1e-6,
              "rope_theta": 10000.0, "tie_word_embeddings": False, "hidden_act": "silu", "bos_token_id": 1, "eos_token_id": 2}
    return harness.once("experts", lambda: checkpoint.random(harness.folder("experts"), config, "f32"))


def logits(built):
    return np.concatenate(built.generate(PROMPTS, 4)[1])


def logits_alone(path, numbers, count, *options):
    """The logits of a file's program for `count` tokens alone, as prompts, and for the token that is decoded after each, and the
    interpreter's for the folder `numbers`: each as an array [2, vocabulary] per token."""
    ids, got = program(path, *options).generate([[i] for i in range(count)], 2)
    texts = [[i, following[0]] for i, following in enumerate(ids)]
    return got, harness.interpreted(harness.compile_file(numbers, emit="model")[0], texts, numbers)


def verify(case, path, name, got, wanted, outliers=0, bounds=TOKEN_BOUNDS):
    """Compares each op with the interpreter's result for its inputs, and checks the error of the logits of each token alone, as a prompt
    and of the one decoded after it, against the bounds of their arithmetic, except for `outliers` of them, if rounding may change a choice
    of experts."""
    done = harness.execute([harness.mica, "verify", path, "--json", "--positions", "48"], check=False)
    case.assertEqual(done.returncode, 0, (done.stdout + done.stderr).decode()[-2000:])
    case.assertTrue(json.loads(done.stdout)["passed"])
    rows = json.loads(program(path, "--kv", "f32").run("info", "--json").stdout)["manifest"]["rows"]
    for index, role in enumerate(("prompt", "decode")):
        errors = sorted(harness.nmse(a[index], b[index]) for a, b in zip(got, wanted))
        bound = bounds[0 if rows[role] == "bf16" else 1]
        note(case, f"{name}, {role} ({rows[role]}): NMSE of a token's logits: {errors[8]:.1e}, of the worst "
             f"{' '.join(f'{error:.1e}' for error in errors[-1 - outliers:])} (bound {bound:.0e})")
        case.assertLessEqual(errors[-1 - outliers], bound, role)


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
            # Caches contain latents, also for files with separate keys and values.
            sizes = [json.loads(b.run("info", "--json").stdout)["cache_bytes_per_token"] for b in (built, program(folder))]
            self.assertEqual(sizes[0], sizes[1])
        wanted = program(folder).generate([golden.prompt], 1)[1][0] if LAID[name] else golden.logits
        self.close(got, wanted, 1e-5, f"logits of {name}")

    def test_rates_of_decay(self):
        """Stored as -exp(x): another sign has no such x."""
        file = gguf_families.convert(GOLDENS / "models/falcon-h1")
        file.tensors = [(name, shape, kind, np.ones(shape, "<f4").tobytes() if name == "blk.1.ssm_a" else data)
                        for name, shape, kind, data in file.tensors]
        path = file.write(os.path.join(harness.folder("rates"), "m.gguf"))
        done = harness.execute([harness.mica, "inspect", path], check=False)
        self.assertEqual(done.stderr.decode(), f'mica: error: {path}: tensor "blk.1.ssm_a" does not consist of finite F32 values of at '
                         "most 0, which determine the decay of states; download it again\n")

    def test_factors_of_short_and_long_texts(self):
        """Above and across the threshold: the factors in the file's tensors equal those of the folder."""
        golden = GOLDENS / "models/phi3-longrope"
        path = gguf_file.Converter(golden, "F32").convert().write(os.path.join(harness.folder("longrope"), "phi3.gguf"))
        built = program(path)
        self.assertIn("change beyond 64 positions", built.run("info").stdout.decode())
        for kind in ("above", "across"):
            expected = json.loads((golden / f"golden.{kind}.json").read_text(encoding="utf-8"))
            ids, (got,) = built.generate([expected["prompt"]], len(expected["greedy"]))
            self.assertEqual(ids, [expected["greedy"]], kind)
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
        """The warning names the key, whether it is missing or "none"."""
        for says in (None, "none"):
            file = gguf_file.Converter(MODELS["qwen3-dense"], "F32").convert()
            self.assertNotIn("tokenizer.ggml.model", [key[0] for key in file.keys])
            if says:
                file.key("tokenizer.ggml.model", gguf_file.STRING, says)
            path = file.write(os.path.join(harness.folder("wordless"), "m.gguf"))
            self.assertEqual(harness.compile_messages(path, "-o", f"{path}.program"),
                             f'mica: warning: {path}: has no tokenizer (the key "tokenizer.ggml.model" is missing or "none"); '
                             "the program only accepts token ids (--tokens), no text and no chat\n")

    def test_settings_of_sampling(self):
        """Missing settings have llama.cpp's defaults; compiling names those that are only available as options of programs."""
        file = gguf_file.Converter(MODELS["minimind-dense"], "F32").convert()
        file.key("general.sampling.temp", gguf_file.F32, 0.5)
        file.key("general.sampling.mirostat", gguf_file.U32, 2)
        path = file.write(os.path.join(harness.folder("sampling"), "m.gguf"))
        done = harness.execute([harness.mica, "compile", path, "-o", f"{path}.program"])
        self.assertIn(f'mica: warning: {path}: "general.sampling.mirostat" is ignored; it changes which tokens are chosen, '
                      "but is only supported as --mirostat\n", done.stderr.decode())
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
            info = json.loads(built.run("info", "--json").stdout)
            self.assertEqual(info["manifest"]["weights"], weights, kind)
            # There are no other matrices.
            self.assertEqual((info["weights"], "other_weights" in info), (kind.lower() if kind in gguf_blocks.BLOCKS else weights, False))

    def test_inspect_and_verbose_name_the_stored_type(self):
        path, _ = converted("qwen3-dense", "Q4_0")
        out = harness.execute([harness.mica, "inspect", path]).stdout.decode()
        self.assertRegex(out, r"model +qwen3-dense \(qwen3\)")
        self.assertRegex(out, r"stored as +Q4_0, 4\.50 bits per weight \(most weights\)")
        self.assertRegex(out, r"of weights \(q4_0 x 15, f32 x 9\)")
        def messages(*options):
            return harness.execute([harness.mica, "compile", "-v", path, "--emit", "fused", "-o",
                                    os.path.join(harness.scratch, "fused.mlir"), *options]).stderr.decode()
        self.assertIn("most weights are Q4_0 (4.50 bits each), the program's are int8\n", messages("--weights", "int8"))
        self.assertNotIn("most weights are", messages(), "blocks are preserved")
        self.assertNotIn('"general.architecture"', messages(), "it chose the family")

    def counted(self, file, path, f32=()):
        """`inspect` and `info` count the file's tensors by their types in the program. Blocks of the tensors in `f32` are not preserved."""
        kinds = {number: kind.lower() for kind, (number, *_) in gguf_blocks.BLOCKS.items()}
        # Float matrices become bf16, except for routers.
        wanted = collections.Counter("f32" if name in f32 else kinds.get(kind) or
                                     ("f32" if len(shape) == 1 or "ffn_gate_inp" in name else "bf16")
                                     for name, shape, kind, _ in file.tensors)
        facts = json.loads(harness.execute([harness.mica, "inspect", path, "--json"]).stdout)
        info = json.loads(program(path).run("info", "--json").stdout)["manifest"]
        for described in (facts, info):
            self.assertEqual({**described.get("block_formats", {}), **described["float_types"]}, dict(wanted))
        self.assertEqual(facts["tensors"], len(file.tensors))
        blocks, floats = ([f"{name} x {count}" for name, count in sorted(info.get(types, {}).items())] for types in ("block_formats", "float_types"))
        text = harness.execute([harness.mica, "inspect", path]).stdout.decode()
        self.assertIn(f"in {len(file.tensors)} tensors\n", text)
        self.assertIn(f" of weights ({', '.join(blocks + floats)}), ", text)
        self.assertIn(f"weights       {', '.join(blocks + floats)}, ", program(path).run("info").stdout.decode())
        return wanted

    def test_tensors_are_counted_by_type(self):
        """The file's tensors are counted, not a program's weights: the experts of a layer are one tensor, and q, k and v are separate."""
        file = gguf_file.Converter(self.wide_experts(), "Q8_0").convert()
        wanted = self.counted(file, file.write(os.path.join(harness.folder("counted"), "moe.gguf")))
        self.assertEqual(wanted["q8_0"] + wanted["bf16"] + wanted["f32"], len(file.tensors))
        self.assertGreaterEqual(wanted["q8_0"], 13)
        # The same without a block.
        file = gguf_file.Converter(self.wide_experts(), "F16").convert()
        matrices = self.counted(file, file.write(os.path.join(harness.folder("counted"), "numbers.gguf")))
        self.assertEqual(matrices, {"bf16": wanted["q8_0"] + wanted["bf16"], "f32": wanted["f32"]})

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
            preserved, requantized = (divergence(exact, rows_of(program(path, *options), name))
                                      for options in ((), ("--weights", weights)))
            note(self, f"{kind}: KL {preserved:.1e} of preserved blocks, {requantized:.1e} of {weights}")
            self.assertLess(preserved, 1e-4)
            self.assertLess(preserved, requantized)

    def test_eval_measures_the_loss(self):
        """`mica eval` of the default compared with the same file in f32, and of a requantized file."""
        text = file_of(bundled_text())
        for kind, weights in (("Q8_0", "int8"), ("Q4_0", "int4")):
            path, _ = converted("minimind-dense", kind)
            exact = program(path, "--weights", "f32")
            preserved, requantized = (evaluate(program(path, *options).path, "--text", text, "--context", 256, "--reference", exact.path)
                                      for options in ((), ("--weights", weights)))
            for found in (preserved, requantized):
                self.assertGreater(found["positions"], 1000)
                self.assertEqual(found["reference"], preserved["reference"])
            note(self, f"{kind}: KL {preserved['kl']['mean']:.1e}, same top {preserved['same_top']:.3f}; as {weights} "
                 f"{requantized['kl']['mean']:.1e}, {requantized['same_top']:.3f}")
            self.assertTrue(0 < preserved["kl"]["mean"] < min(1e-4, requantized["kl"]["mean"]))
            # Half of this text are random numbers, so the bounds are not those of the design.
            self.assertGreaterEqual(preserved["same_top"], 0.97)
            ratio = preserved["program"]["perplexity"] / preserved["reference"]["perplexity"]
            self.assertAlmostEqual(ratio, 1, 2)

    def test_several_block_formats_in_one_file(self):
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
        self.assertRegex(built, r"weights       q4_0 x 19, q8_0 x 2, bf16 x 1, f32 x 13, [\d.]+ bits per weight\ncache         bf16\n")
        self.assertRegex(fused, r"layers\.2\.self_attn\.q_proj\.[^\n]*xbf16>\n")

    def verified(self, converter, name):
        """The converter's file, after `verify` with the interpreter's logits for the dequantized numbers."""
        path = converter.file.write(os.path.join(harness.folder("mixed"), "mixed.gguf"))
        numbers = converter.numbers_folder(os.path.join(harness.folder("numbers"), "mixed"))
        verify(self, path, name, *logits_alone(path, numbers, 16, "--kv", "f32"))
        return path

    def test_float_and_block_tensors_in_one_file(self):
        """A file in F32 with one block-quantized matrix: everything else is f32, and its activations are integers."""
        class Mixed(gguf_file.Converter):
            def put(self, name, values, kind):
                return super().put(name, values, "Q8_0" if name == "blk.1.ffn_up.weight" else kind)
        converter = Mixed(MODELS["qwen3-dense"], "F32")
        converter.convert()
        fused = harness.emit(self.verified(converter, "F32 and Q8_0"), "fused")
        self.assertRegex(fused, r"layers\.1\.mlp\.up_proj\.[^\n]*: tensor<32x32x!mica\.block<q8_0>>\n")
        self.assertRegex(fused, r"layers\.1\.mlp\.down_proj\.[^\n]*: tensor<32x32xf32>\n")

    def layer_of(self, kinds, untied=False):
        """The converter of a layer whose matrices have the types `kinds`, by parts of their names."""
        class Mixed(gguf_file.Converter):
            def put(self, name, values, kind):
                part = name.split(".")[-2]
                return super().put(name, values, kinds[part] if kind != "F32" and part in kinds else "F32")
        converter = Mixed(single_layer(untied), "Q8_0")
        converter.convert()
        return converter

    def mixture(self, name, kinds):
        """A layer whose matrices have the types `kinds`; the last one is that of the tied embedding."""
        fused = harness.emit(self.verified(self.layer_of(kinds), name), "fused")
        for kind in kinds.values():
            self.assertIn(f"x!mica.block<{kind.lower()}>>", fused)
        self.assertNotRegex(fused, r"mica\.weight [^\n]*_proj[^\n]*xbf16>")

    def test_mixture_of_k_quants(self):
        """As in Q4_K_M and similar mixtures: q, k and v have three types, the embedding is in Q6_K."""
        self.mixture("K quants", {"attn_q": "Q4_K", "attn_k": "Q5_K", "attn_v": "Q6_K", "attn_output": "IQ4_XS",
                                  "ffn_gate": "Q2_K", "ffn_up": "Q3_K", "ffn_down": "Q6_K", "token_embd": "Q6_K"})

    def test_mixture_of_small_blocks(self):
        self.mixture("small blocks", {"attn_q": "Q4_1", "attn_k": "Q4_1", "attn_v": "Q5_1", "attn_output": "Q5_0",
                                      "ffn_gate": "IQ4_NL", "ffn_up": "IQ4_NL", "ffn_down": "MXFP4", "token_embd": "Q4_1"})

    def test_subnormal_scales(self):
        """Blocks whose scales and offsets are subnormal numbers of f16 have the values that they have in f32, in prefill and decode.
        Matrices whose products are added to larger rows have other types, so that each op's result depends on its blocks. MXFP4 has no
        f16: every other block has one of the two smallest powers of two, which are subnormal in f32."""
        parts = ("attn_q", "attn_k", "attn_v", "ffn_gate", "ffn_up", "output")
        tested = [kind for kind in gguf_blocks.BLOCKS if kind != "MXFP4"]
        files = -(-len(tested) // len(parts))
        for first in range(files):
            kinds = dict(zip(parts, tested[first::files])) | {"ffn_down": "MXFP4"}
            file = self.layer_of({**kinds, "attn_output": "Q8_0"}, untied=True).file
            for index, (name, shape, number, data) in enumerate(file.tensors):
                if (kind := kinds.get(name.split(".")[-2])) and len(shape) == 2:
                    blocks = np.frombuffer(data, "u1").reshape(-1, gguf_blocks.BLOCKS[kind][2]).copy()
                    for at in gguf_blocks.SCALES[kind]:
                        if kind == "MXFP4":
                            blocks[::4, at], blocks[2::4, at] = 0, 1
                        else:
                            blocks[:, at:at + 2] = np.array([0x01ff], "<u2").view("u1")
                    file.tensors[index] = name, shape, number, blocks.tobytes()
            path = file.write(os.path.join(harness.folder("subnormal"), "m.gguf"))
            fused = harness.emit(path, "fused")
            for kind in kinds.values():
                self.assertIn(f"x!mica.block<{kind.lower()}>>", fused)
            lines = "".join(f"0 0 {i} {i + 1}\n" for i in range(8)).encode()
            exact, *kept = (np.frombuffer(program(path, "--kv", "f32", *options).run("score", *role, stdin=lines).stdout, "f4")
                            for options, role in ((("--weights", "f32"), ()), ((), ()), ((), ("--as-decode",))))
            self.assertTrue(np.isfinite(exact).all())
            self.assertGreater(np.abs(exact).max(), 0)
            for role, rows in zip(("prefill", "decode"), kept):
                lost = harness.nmse(rows, exact)
                note(self, f"{' '.join(kinds.values())}, {role}: NMSE {lost:.1e} (bound 1e-4)")
                self.assertLessEqual(lost, 1e-4, (kinds, role))
            done = harness.execute([harness.mica, "verify", path, "--json", "--positions", "24"], check=False)
            self.assertEqual(done.returncode, 0, (done.stdout + done.stderr).decode()[-2000:])

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

    def messages(self, path, *options):
        """The messages of compiling the file, without the warning that it has no tokenizer."""
        return [line for line in harness.compile_warnings(path, *options).splitlines() if "has no tokenizer" not in line]

    def mixed_experts(self, *layers):
        """A mixture of experts in Q8_0 whose layers repeat `layers`: the types of the matrices `gate`, `up`, `down` or `gate_inp`, the
        router's, that have others; the file, its path and a folder with its numbers."""
        class Mixed(gguf_file.Converter):
            def put(self, name, values, kind):
                part = re.search(r"blk\.(\d+)\.ffn_(gate_inp|(?:gate|up|down)(?=_exps))", name)
                return super().put(name, values, layers[int(part[1]) % len(layers)].get(part[2], kind) if part else kind)

        def deepen(tensors):
            for name in list(tensors):
                for layer in range(2, len(layers)):
                    tensors[name.replace(f".layers.{layer % 2}.", f".layers.{layer}.")] = tensors[name]
        wide = self.wide_experts()
        model = checkpoint.edited(wide, os.path.join(harness.folder("deeper"), "model"),
                                  lambda config: config.update(num_hidden_layers=max(2, len(layers))), deepen)
        converter = Mixed(model, "Q8_0")
        file = converter.convert()
        return (file, file.write(os.path.join(harness.folder("mixed"), "mixed.gguf")),
                converter.numbers_folder(os.path.join(harness.folder("numbers"), "mixed")))

    def rounded(self, path, what):
        return f"mica: warning: {path}: {what} bits; --weights f32 keeps their precision, but expands all blocks to f32"

    def test_blocks_that_are_not_preserved(self):
        """A warning names the new type and the reason, once for all layers, in `compile` and `inspect`."""
        file, path, _ = self.mixed_experts({"gate_inp": "Q8_0"})
        wanted = [f"mica: warning: {path}: blk.*.ffn_gate_inp.weight (2): blocks of q8_0 become f32: it is used by an op other than a matmul or an embedding lookup"]
        self.assertEqual(self.messages(path), [self.rounded(path, "2 matrices in F32 are rounded to bf16, which has 8 of their 24")] + wanted)
        self.assertEqual(harness.execute([harness.mica, "inspect", path]).stderr.decode().splitlines(), wanted)
        self.counted(file, path, f32=[f"blk.{layer}.ffn_gate_inp.weight" for layer in (0, 1)])

    def test_experts_stored_in_different_types(self):
        """Each matrix of experts keeps its blocks whatever the others are stored in; numbers become bf16, or f32 if that is requested."""
        layers = ({"down": "F16"}, {"gate": "Q4_0"}, {"gate": "F16"}, {"up": "BF16"}, {"up": "F32", "down": "Q4_1"},
                  {"gate": "F16", "up": "BF16", "down": "IQ4_NL"})
        file, path, folder = self.mixed_experts(*layers)
        self.assertEqual(self.messages(path), [self.rounded(path, "3 matrices in F16 are rounded to bf16, which has 8 of their 11"),
                                               self.rounded(path, "7 matrices in F32 are rounded to bf16, which has 8 of their 24")])
        self.counted(file, path)
        for options in ((), ("--weights", "int8")):
            fused = harness.emit(path, "fused", *options)
            for layer, kinds in enumerate(layers):
                types = {part: "bf16" if kinds.get(part, "Q8_0") in gguf_file.NUMBERS else f"!mica.block<{kinds.get(part, 'Q8_0').lower()}>"
                         for part in ("gate", "up", "down")}
                if options:
                    types = dict.fromkeys(types, "!mica.block<int8_g32>")
                if types["gate"] == types["up"]:
                    types["gate_up"] = types["gate"]
                    del types["gate"], types["up"]
                for part, kind in types.items():
                    self.assertRegex(fused, rf"mica\.weight @[^\n]*layers\.{layer}\.[^\n]*experts\.{part}_proj[^\n]*x{kind}>\n")
            # In every role, and where processors lack products of bf16.
            for also in ((), ("--rows", "int8"), ("--target", "x86-64-v3")):
                done = harness.execute([harness.mica, "verify", path, "--json", "--positions", "24", *options, *also], check=False)
                self.assertEqual(done.returncode, 0, (also, (done.stdout + done.stderr).decode()[-2000:]))
            errors = sorted(map(harness.nmse, *logits_alone(path, folder, 32, *options)))
            # Rounding may change another token's choice of experts.
            note(self, f"{' '.join(options) or 'preserved'}: NMSE of a token's logits {errors[16]:.1e}, of the worst {errors[-1]:.1e} "
                 "(bound of nine in ten 1e-3)")
            self.assertLessEqual(errors[28], 1e-3)

    def test_logits_of_experts_do_not_depend_on_the_call(self):
        """Gate and up of different types: wherever a text is cut into calls, its rows are the same bits in each role."""
        for kinds in ({"gate": "Q4_0"}, {"gate": "F16"}):
            _, path, _ = self.mixed_experts(kinds)
            built = program(path)
            text = [int(i) for i in np.random.default_rng(5).integers(3, 60, 40)]
            for role in ((), ("--as-decode",)):
                def rows(cuts):
                    lines = "".join(f"{first} 0 {' '.join(map(str, text[first:last]))}\n" for first, last in zip([0, *cuts], [*cuts, 40]))
                    return np.frombuffer(built.run("score", "--prefill-chunk", "64", *role, stdin=lines.encode()).stdout, "f4")
                for cuts in ([1, 2, 3, 20], [7, 39], list(range(1, 40))):
                    self.assertTrue(np.array_equal(rows(cuts), rows([17])), (kinds, role, cuts))

    def test_requantization_increases_divergence(self):
        """The warning quotes docs/quality.md, with the figure for calibrated weights if the model was run on a text: statistics of
        llama-imatrix may be of one tensor, as here."""
        path, _ = converted("minimind-dense", "Q8_0")
        statistics, text, costs = imatrix({"blk.0.attn_output.weight": [1.0] * 512}), file_of(bundled_text()[:4000]), harness.costs("blocks")
        int8, int4, calibrated = (costs[name] for name in ("int8", "int4", "int4 calibrated"))
        for options, figure in (((), None), (("--weights", "f32"), None), (("--weights", "int8"), int8),
                                (("--weights", "int4"), f"{int4} ({calibrated} with --calibrate)"),
                                (("--weights", "int8", "--imatrix", statistics), f"{int8} without statistics"),
                                (("--weights", "int8", "--calibrate", text), f"{int8} without statistics"),
                                (("--weights", "int4", "--imatrix", statistics), f"{int4} without statistics"),
                                (("--weights", "int4", "--calibrate", text), calibrated)):
            wanted = [] if not figure else [
                f"mica: warning: {path}: --weights {options[1]} requantizes block-quantized weights; on SmolLM2-135M, this costs a KL "
                f"divergence of {figure}, see docs/quality.md; leave --weights out to preserve the blocks"]
            # Warnings about few statistics are tested with calibration.
            found = [line for line in self.messages(path, *options) if "has statistics for 1 of" not in line and "statistics cover only" not in line]
            self.assertEqual(found, wanted)

    def test_prompt_activations_are_an_attribute_of_the_ir(self):
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

    def test_several_block_formats_in_irregular_order(self):
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
        main = re.split(r"func\.func @main_(?:decode_)?small\(", harness.emit(path, "kernels"))[1].split("func.func ")[0]
        calls = re.findall(r"call @(\w+)\(", main)
        self.assertEqual((len(calls), len(set(calls))), (3, 3), calls)
        self.assertTrue(json.loads(harness.execute([harness.mica, "verify", path, "--json", "--positions", "32"]).stdout)["passed"])

    def test_activations_depend_on_prefill_or_decoding(self):
        """A prompt is computed identically for all chunk sizes, and eval uses the arithmetic of prefill or of decoding."""
        prompt = [int(i) for i in np.random.default_rng(3).integers(3, 500, 70)]
        for kind in ("Q8_0", "Q4_0"):
            path, _ = converted("minimind-dense", kind)
            built = program(path)
            facts = json.loads(built.run("info", "--json").stdout)
            rows, names = facts["manifest"]["rows"], set(facts["manifest"]["ops"])
            differs = rows["prompt"] != rows["decode"]
            self.assertEqual(facts["manifest"].get("depends_on_role", False), differs)
            phases = ("decode_small", "decode_large", "prompt_medium", "prompt_large") if differs else ("small", "large")
            self.assertTrue({f"main_{name}" for name in phases} <= names, names)
            wanted = built.generate([prompt], 1, "--prefill-chunk", 1)[1][0]
            for chunk in (2, 7, 16, 17, 32):
                rows = built.generate([prompt], 1, "--prefill-chunk", chunk)[1][0]
                self.assertTrue(np.array_equal(rows, wanted), f"{kind}, chunks of {chunk}")
            line = f"0 0 {' '.join(map(str, prompt))}\n".encode()
            fed = {options: np.frombuffer(built.run("score", "--prefill-chunk", *options, stdin=line).stdout, "f4")
                   for options in (("1",), ("1", "--as-decode"), ("16", "--as-decode"), ("32", "--as-decode"))}
            self.assertTrue(np.array_equal(fed["1",], wanted.ravel()))
            self.assertEqual(np.array_equal(fed["1",], fed["1", "--as-decode"]), not differs)
            for chunk in ("16", "32"):
                self.assertTrue(np.array_equal(fed[chunk, "--as-decode"], fed["1", "--as-decode"]), f"{kind}, {chunk}")
            text = file_of(bundled_text()[:3000])
            results = [evaluate(built.path, "--text", text, "--context", "64", *options) for options in ((), ("--as-decode",))]
            self.assertEqual([r["as_decode"] for r in results], [False, True])
            for result in results:
                self.assertAlmostEqual(result["program"]["perplexity"] / results[0]["program"]["perplexity"], 1, 2)
        other = json.loads(program(MODELS["minimind-dense"]).run("info", "--json").stdout)["manifest"]
        self.assertNotIn("depends_on_role", other)
        self.assertIn("main_medium", other["ops"])

    def experts_of(self, kind):
        """`experts_folder` as a file all of whose matrices are of `kind`, and the logits of each token alone for its numbers in f32."""

        def make():
            converter = gguf_file.Converter(experts_folder(), kind)
            path = converter.convert().write(os.path.join(harness.folder("experts"), f"{kind}.gguf"))
            numbers = converter.numbers_folder(os.path.join(harness.folder("numbers"), "experts"))
            ir = harness.compile_file(experts_folder(), emit="model")[0]
            return path, np.concatenate(harness.interpreted(ir, [[i] for i in range(64)], numbers))

        return harness.once(("experts", kind), make)

    def lost(self, kind, *options):
        """The error (NMSE) of the logits that nine tokens in ten do not exceed, compared with the interpreter's for the same numbers in
        f32, for prefill and decoding. Each token is a separate text, so that no row depends on another row's choice of experts. Rounding
        may change the choice if scores are nearly equal, which nine tokens in ten do not have."""
        lines = "".join(f"0 0 {i}\n" for i in range(64)).encode()
        path, exact = self.experts_of(kind)
        built = program(path, "--kv", "f32", *options)
        return [sorted(map(harness.nmse, np.frombuffer(built.run("score", *role, stdin=lines).stdout, "f4").reshape(64, 64), exact))[57]
                for role in ((), ("--as-decode",))]

    def experts(self, kind):
        """Both roles compute with the file's own blocks."""
        fused = harness.emit(self.experts_of(kind)[0], "fused")
        for part in ("gate_up", "down"):
            self.assertRegex(fused, rf"experts\.{part}_proj[^\n]*x!mica\.block<{kind.lower()}>>\n")
        prompt, decode = self.lost(kind)
        note(self, f"{kind}: NMSE of nine tokens in ten: prompts {prompt:.1e} (bound {EXPERT_BOUNDS[0]:.0e}), decoding {decode:.1e} "
             f"(bound {EXPERT_BOUNDS[1]:.0e})")
        self.assertLessEqual(prompt, EXPERT_BOUNDS[0])
        self.assertLessEqual(decode, EXPERT_BOUNDS[1])
        file, report = gguf_file.Converter(experts_folder(), kind).convert(), harness.compile_file(self.experts_of(kind)[0], "--kv", "f32")[1]
        stored, packed = sum(len(data) for *_, data in file.tensors), report["weight_bytes"]
        note(self, f"{kind}: {packed} bytes of weights in the program, {packed / stored:.4f} of the file's")
        # The router's four columns become 64, which takes 60 KiB; the rest is alignment.
        self.assertLessEqual(packed - 80 * 1024, 1.05 * stored)

    def test_bounds_of_experts_detect_other_arithmetic(self):
        """8-bit activations exceed the bound of prefill, requantized weights that of decoding."""
        for kind, options, role in (("Q8_0", ("--rows", "int8"), 0), ("Q4_K", ("--rows", "int8"), 0), ("Q8_0", ("--weights", "int8"), 1),
                                    ("Q4_K", ("--weights", "int8"), 1), ("Q4_K", ("--weights", "int4"), 1)):
            lost = self.lost(kind, *options)
            note(self, f"{kind} {' '.join(options)}: NMSE {lost[0]:.1e}, {lost[1]:.1e}")
            self.assertGreater(lost[role], 1.5 * EXPERT_BOUNDS[role], (kind, options))

    def cuts(self, case):
        """For any split of a text into calls, rows are bit-identical in the arithmetic of prefill and in that of decoding; the two
        differ if the program's manifest says so."""
        model, options = CUTS[case]
        path = {"round robin": round_robin_path, "round robin from Q4_0": lambda: round_robin_path("Q4_0"), "single layer": single_layer,
                "experts": lambda: self.experts_of("Q4_K")[0]}[model]()
        vocabulary = 64 if model == "experts" else 500
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
        # Without bf16 dot products, both roles use the same integers.
        activations = json.loads(built.run("info", "--json").stdout)["manifest"]["rows"]
        self.assertEqual(np.array_equal(*whole), activations["prompt"] == activations["decode"])
        # Beside another sequence, chunk by chunk.
        other = rng.integers(3, vocabulary, 37).tolist()
        batch = built.generate([text, other], 1, "--prefill-chunk", 23)[1][0]
        self.assertTrue(np.array_equal(batch.ravel(), whole[0]))


del Case  # unittest would treat it as a test
