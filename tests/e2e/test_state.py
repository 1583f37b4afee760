"""Sequence state in programs with sliding windows or fixed-size states."""

import json
import pathlib
import re
import sys

import numpy as np

import checkpoint
import harness
from harness import BUNDLED, Case, execute, note, program
from test_handwritten import interpreted
from served import Server

sys.path.insert(0, str(harness.ROOT / "tests/bench"))
import shapes  # noqa: E402

MODELS = harness.ROOT / "tests/goldens/models"
# Windows of 12 positions, and 2048 that can be removed again: rings of 33 blocks of 64.
RING, CONTEXT = 2112, 4096

GEMMA3_12B = {"hidden_size": 3840, "intermediate_size": 15360, "num_attention_heads": 16, "num_key_value_heads": 8,
              "head_dim": 256, "query_pre_attn_scalar": 256, "num_hidden_layers": 48, "sliding_window": 1024,
              "max_position_embeddings": 131072, "vocab_size": 262208,
              "layer_types": [f"{'full' if (i + 1) % 6 == 0 else 'sliding'}_attention" for i in range(48)]}
GPT_OSS_20B = {"hidden_size": 2880, "intermediate_size": 2880, "num_attention_heads": 64, "num_key_value_heads": 8,
               "head_dim": 64, "num_hidden_layers": 24, "sliding_window": 128, "max_position_embeddings": 131072,
               "vocab_size": 201088, "num_local_experts": 32, "num_experts_per_tok": 4,
               "layer_types": [f"{'full' if i % 2 else 'sliding'}_attention" for i in range(24)]}


def with_long_context(name):
    """A golden model, for texts that are longer than its rings."""
    return harness.once((name, "long"), lambda: checkpoint.edited(
        MODELS / name, pathlib.Path(harness.folder(f"{name}-long"), "model"), lambda c: c.update(max_position_embeddings=CONTEXT)))


class Windows(Case):
    def test_published_shapes(self):
        """Bytes of the caches at 32 Ki positions, and of caches with all positions in every layer."""
        for name, config, window, bound in (("gemma3-text", GEMMA3_12B, 40, 0.3), ("gpt-oss", GPT_OSS_20B, 12, 0.6)):
            folder = pathlib.Path(harness.folder("config")) / "published"
            folder.mkdir()
            config = checkpoint.config_of(MODELS / name) | config
            (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
            options = [folder, "--weights", "bf16", "--kv", "bf16"]
            done = execute([harness.mica, "compile", *options, "--max-seq", 32768, "--emit", "kernels", "-o",
                            folder / "out.mlir", "--json"])
            said = json.loads(done.stdout)
            row = 2 * 2 * config["num_key_value_heads"] * config["head_dim"]
            self.assertEqual(said["cache_bytes_per_token"], config["num_hidden_layers"] * row)
            share = said["cache_bytes"] / (said["max_seq"] * said["cache_bytes_per_token"])
            note(self, f"{name}: {said['cache_bytes'] / 2 ** 20:.0f} MiB, {share:.3f} of all positions in all layers (bound {bound})")
            self.assertLessEqual(share, bound)
            facts = json.loads(execute([harness.mica, "inspect", *options, "--json"]).stdout)
            self.assertEqual(facts["layers"], config["num_hidden_layers"])
            self.assertEqual(facts["caches"], [
                {"layers": facts["layers"] - window, "bytes_per_token": (facts["layers"] - window) * row},
                {"layers": window, "bytes_per_token": window * row, "window": config["sliding_window"]}])

    def test_sizes_of_states(self):
        """Those of docs/state.md."""
        documented = re.findall(r"^\| ([\w.-]+) \| (\d+) \| (\d+) \|$", (harness.ROOT / "docs/state.md").read_text(encoding="utf-8"), re.M)
        sizes = []
        for name, (config, *_) in shapes.HYBRIDS.items():
            folder = pathlib.Path(harness.folder("config")) / name
            folder.mkdir()
            (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
            done = execute([harness.mica, "compile", folder, "--weights", "int8", "--emit", "kernels", "-o", folder / "out.mlir", "--json"])
            said = json.loads(done.stdout)
            sizes.append((name, *(f"{said[key] / 2 ** 20:.0f}" for key in ("state_bytes", "checkpoint_bytes"))))
        self.assertEqual(documented, sizes)

    def pair(self, *options):
        """A program whose windows save memory, and one without."""
        folder = with_long_context("gemma3-text")
        text = harness.emit(folder, "model")
        whole = re.sub(r"( x f32) window\(12\)>", r"\1>", text)
        self.assertIn("window(12)", whole, "of attention")
        self.assertNotIn("f32 window", whole)
        return [harness.compile_ir(t, folder, *options, "--max-seq", CONTEXT) for t in (text, whole)]

    def test_rings_are_bit_identical(self):
        """Prompts and steps beyond the ring, for all chunk sizes, with two sequences."""
        ids = np.random.default_rng(0).integers(3, 64, 2600).tolist()
        for chunks, *options in (((64, 512),), ((200,), "--weights", "bf16", "--kv", "bf16"), ((64,), "--kv", "int8")):
            ring, whole = self.pair(*options)
            sizes = [json.loads(p.run("info", "--json").stdout) for p in (ring, whole)]
            per_token = sizes[0]["cache_bytes_per_token"]
            self.assertEqual(sizes[1]["cache_bytes"], CONTEXT * per_token)
            self.assertEqual(sizes[0]["cache_bytes"], (CONTEXT + 3 * RING) * per_token // 4, "3 of 4 layers have windows")
            self.assertIn(f"; layers with a window of 12 cache {RING}\n", ring.run("info").stdout.decode())
            for chunk in chunks:
                arguments = ("--prefill-chunk", chunk)
                got, expected = (p.generate([ids, ids[70:]], 4, *arguments) for p in (ring, whole))
                self.assertEqual(got[0], expected[0])
                for a, b in zip(got[1], expected[1]):
                    self.assertTrue(np.array_equal(a, b), (options, chunk))

    def test_rewinding(self):
        """A text is truncated by little, by a turn and by more than a ring holds: rows equal those of a full cache."""
        rng = np.random.default_rng(1)
        first, other = (rng.integers(3, 64, 2700).tolist() for _ in range(2))
        requests = [(0, first), (2600, other[2600:]), (700, other[700:760]), (2, other[2:300]), (290, first[290:300])]
        lines = "".join(f"{length} 0 {' '.join(map(str, ids))}\n" for length, ids in requests).encode()
        # Calls with so few rows that results do not depend on their number.
        rows = [p.run("score", "--prefill-chunk", 16, stdin=lines).stdout for p in self.pair()]
        self.assertEqual(len(rows[0]), 4 * 64 * sum(len(ids) for _, ids in requests))
        self.assertTrue(rows[0] == rows[1])


class Rewinding(Case):
    """A text that is truncated repeatedly."""

    def check_rewinds(self, built, seed, cuts):
        """After each truncation to `length` positions, `count` new tokens have the rows of a text computed at once, with and without
        checkpoints."""
        rng = np.random.default_rng(seed)
        text, requests, texts = rng.integers(3, 64, 300).tolist(), [], []
        for length, count in cuts:
            ids = text if length == 0 else rng.integers(3, 64, count).tolist()
            text = text[:length] + ids
            requests.append(f"{length} 0 {' '.join(map(str, ids))}\n")
            texts.append((length, text))
        # Calls with so few rows that results do not depend on their number.
        arguments = ("score", "--prefill-chunk", 16)
        each = json.loads(built.run("info", "--json").stdout)["checkpoint_bytes"]
        got = {budget: built.run(*arguments, "--checkpoint-bytes", budget, stdin="".join(requests).encode()).stdout
               for budget in (0, each, 1 << 30)}
        expected = b"".join(
            built.run(*arguments, stdin=f"0 {length} {' '.join(map(str, ids))}\n".encode()).stdout
            for length, ids in texts)
        self.assertEqual(len(expected), 4 * 64 * sum(len(ids) - length for length, ids in texts))
        for budget, rows in got.items():
            self.assertTrue(rows == expected, f"{budget} bytes of checkpoints")

    def check_chunks(self, built, seed, *chunks, length=300, tolerance=1e-5):
        """Two sequences of different lengths have the same tokens and logits as each of them alone, in chunks of any size."""
        ids = np.random.default_rng(seed).integers(3, 64, length).tolist()
        prompts = [ids, ids[70:]]
        alone = [built.generate([prompt], 4) for prompt in prompts]
        for arguments in ((), *(("--prefill-chunk", chunk) for chunk in chunks)):
            tokens, rows = built.generate(prompts, 4, *arguments)
            for i, ((wanted,), (logits,)) in enumerate(alone):
                self.assertEqual(tokens[i], wanted, f"sequence {i} {arguments}")
                self.close(rows[i], logits, tolerance, f"sequence {i} of two {arguments}")


class ShortConvolutions(Rewinding):
    """Layers with a convolution keep a ring of 64 rows; attention layers, all positions."""

    STATE = 2 * 64 * 24 * 4

    def program(self, *options):
        return harness.program(with_long_context("lfm2"), *options, "--max-seq", CONTEXT)

    def test_size_of_the_state(self):
        """Bytes per token of two attention layers, and a state of fixed size."""
        program = self.program()
        said = json.loads(program.run("info", "--json").stdout)
        self.assertEqual(said["cache_bytes_per_token"], 2 * 2 * 8 * 4)
        self.assertEqual(said["state_bytes"], self.STATE)
        self.assertEqual(said["cache_bytes"], CONTEXT * said["cache_bytes_per_token"] + self.STATE)
        self.assertIn("state         12.00 KiB per sequence, of any length\n", program.run("info").stdout.decode())
        written = json.loads(execute([harness.mica, "compile", MODELS / "lfm2", "-o", pathlib.Path(harness.folder("lfm2-json"), "out"),
                                      "--json"]).stdout)
        self.assertEqual(written["cache_bytes"], written["max_seq"] * written["cache_bytes_per_token"] + self.STATE)
        facts = json.loads(execute([harness.mica, "inspect", MODELS / "lfm2", "--json"]).stdout)
        self.assertEqual((facts["layers"], facts["state_bytes"]), (4, self.STATE))
        self.assertEqual(facts["caches"], [{"layers": 2, "bytes_per_token": 128}])
        self.assertIn("state         12.00 KiB per sequence of any length\n",
                      execute([harness.mica, "inspect", MODELS / "lfm2"]).stdout.decode())

    def test_chunk_sizes(self):
        """Chunks that do not divide anything."""
        self.check_chunks(self.program(), 2, 1, 7, 63, 64, 65, 200)

    def test_rewinding(self):
        """A text is truncated by a draft and by more than the ring holds: rows equal those of a text computed at once."""
        self.check_rewinds(self.program(), 3, ((0, 300), (292, 30), (261, 5), (205, 100), (100, 20), (3, 200), (200, 1)))


# Heads of q and k, heads of v, keys and values of a head: less than a vector, not whole vectors, Mamba 2; also with the delta
# rule.
SIZES = {"odd": (1, 3, 5, 7), "groups": (2, 8, 16, 12), "own-keys": (4, 4, 17, 33), "wide": (1, 2, 128, 64)}
SCANS = SIZES | {f"{name}-delta": sizes for name, sizes in SIZES.items()}


def scan(name):
    """A model of two layers of linear attention, with a decay per token and head from 0 to 1."""
    return harness.once(("scan", name), lambda: write_scan(harness.folder(f"scan-{name}"), name.endswith("-delta"), *SCANS[name]))


def write_scan(folder, delta, groups, heads, keys, values):
    """Beta is per token as well; keys are small, because only short ones keep the state of the delta rule bounded."""
    weights = {"embed.weight": (64, 24), "decay.weight": (64, heads), "norm.weight": (24,)}
    if delta:
        weights["beta.weight"] = (64, heads)
    own = {"norm": (24,), "q": (groups * keys, 24), "k": (groups * keys, 24), "v": (heads * values, 24), "o": (24, heads * values)}
    weights |= {f"layers.{i}.{name}.weight": shape for i in range(2) for name, shape in own.items()}

    def tensor(*shape):
        return f"tensor<{'x'.join(map(str, shape))}xf32>"

    state, rows, tokens = f"!mica.recurrent_state<2 x {heads} x {keys} x {values} x f32>", tensor("?", 24), "tensor<?xi32>"
    q, v, decay = tensor("?", groups, keys), tensor("?", heads, values), tensor("?", heads)
    flat_q, flat_v = tensor("?", groups * keys), tensor("?", heads * values)
    arguments = ", ".join(f"%{name}: {tensor(*shape)}" for name, shape in own.items())
    types = ", ".join([rows, decay, *[decay] * delta, state, "index", tokens, tokens, *(tensor(*shape) for shape in own.values())])
    roles = ", ".join(f'%{role}: {tokens} {{mica.role = "{role}"}}' for role in ("tokens", "sequences", "positions", "logit_indices"))
    text = [f"""module @scan attributes {{mica.model = {{max_positions = {CONTEXT} : i64, bos = 1 : i64, eos = [2 : i64]}}}} {{
  {chr(10).join(f'mica.weight @"{name}" : {tensor(*shape)}' for name, shape in weights.items())}
  func.func private @layer(%x: {rows}, %decay: {decay}, {f"%beta: {decay}, " if delta else ""}%state: {state}, %layer: index, %s: {tokens}, %p: {tokens}, {arguments})
      -> ({rows}, {state}) {{
    %n = mica.rmsnorm %x, %norm eps(1.0e-05) : {rows}, tensor<24xf32> -> {rows}
    %q1 = mica.linear %n, %q : {rows}, {tensor(*own["q"])} -> {flat_q}
    %k1 = mica.linear %n, %k : {rows}, {tensor(*own["k"])} -> {flat_q}
    %v1 = mica.linear %n, %v : {rows}, {tensor(*own["v"])} -> {flat_v}
    %q2 = mica.split_heads %q1 : {flat_q} to {q}
    %k2 = mica.split_heads %k1 : {flat_q} to {q}
    %v2 = mica.split_heads %v1 : {flat_v} to {v}
    %y, %next = mica.linear_attention %q2, %k2, %v2 decay(%decay : {decay}) {f"beta(%beta : {decay})" if delta else ""}, %state[%layer]
        at(%s, %p : {tokens}, {tokens}) : {q}, {v}, {state}
    %y1 = mica.merge_heads %y : {v} to {flat_v}
    %y2 = mica.linear %y1, %o : {flat_v}, {tensor(*own["o"])} -> {rows}
    %sum = mica.add %x, %y2 : {rows}
    return %sum, %next : {rows}, {state}
  }}
  func.func @main({roles}, %state0: {state} {{mica.role = "cache"}})
      -> ({tensor("?", 64)} {{mica.role = "logits"}}, {state} {{mica.role = "cache"}}) {{
    %table = mica.get_weight @"embed.weight" : {tensor(64, 24)}
    %decays = mica.get_weight @"decay.weight" : {tensor(64, heads)}
    %x0 = mica.embedding %tokens, %table : {tokens}, {tensor(64, 24)} -> {rows}
    %decay = mica.embedding %tokens, %decays : {tokens}, {tensor(64, heads)} -> {decay}"""]
    if delta:
        text += [f"""%betas = mica.get_weight @"beta.weight" : {tensor(64, heads)}
    %beta = mica.embedding %tokens, %betas : {tokens}, {tensor(64, heads)} -> {decay}"""]
    factors = "%decay, %beta" if delta else "%decay"
    for i in range(2):
        text += [f'%{name}_{i} = mica.get_weight @"layers.{i}.{name}.weight" : {tensor(*shape)}' for name, shape in own.items()]
        text += [f"%layer{i} = arith.constant {i} : index",
                 f"%x{i + 1}, %state{i + 1} = func.call @layer(%x{i}, {factors}, %state{i}, %layer{i}, %sequences, %positions, "
                 + ", ".join(f"%{name}_{i}" for name in own) + f") : ({types}) -> ({rows}, {state})"]
    text += [f"""%chosen = mica.select_rows %x2, %logit_indices : {rows}, {tokens} -> {rows}
    %norm = mica.get_weight @"norm.weight" : tensor<24xf32>
    %n = mica.rmsnorm %chosen, %norm eps(1.0e-05) : {rows}, tensor<24xf32> -> {rows}
    %logits = mica.lm_head %n, %table : {rows}, {tensor(64, 24)} -> {tensor("?", 64)}
    return %logits, %state2 : {tensor("?", 64)}, {state}
  }}
}}
"""]
    rng, tensors = np.random.default_rng(5), {}
    for name, shape in weights.items():
        x = rng.standard_normal(shape)
        tensors[name] = (1 + 0.2 * x if len(shape) == 1 else x / np.sqrt(shape[-1])).astype("<f4")
    # Mostly near one, as in trained models; one token forgets everything, another one nothing.
    decays = 1 - 10 ** rng.uniform(-4, -0.1, (64, heads))
    decays[3], decays[4] = 0, 1
    tensors["decay.weight"] = decays.astype("<f4")
    if delta:
        tensors["beta.weight"] = rng.uniform(0, 1, (64, heads)).astype("<f4")
        for i in range(2):
            tensors[f"layers.{i}.k.weight"] /= np.float32(np.sqrt(keys))
    checkpoint.write_tensors(pathlib.Path(folder) / "model.safetensors", tensors)
    path = pathlib.Path(folder) / "model.mlir"
    path.write_text("\n".join(text), encoding="utf-8")
    return str(path)


@harness.for_each(SCANS, "equals_the_interpreter")
class LinearAttention(Rewinding):
    """A matrix per head at multiples of 32 positions, and a ring of 64 rows."""

    def equals_the_interpreter(self, name):
        """Over two matrices and rings, in one call and in steps of one row."""
        prompt = np.random.default_rng(6).integers(3, 64, 150).tolist()
        (ids,), (rows,) = program(scan(name), "--weights", "f32").generate([prompt], 20)
        self.close(rows, interpreted(scan(name), prompt + ids[:-1]), 1e-5, f"logits of {name}")

    def test_chunk_sizes(self):
        """Chunks around those of the matrices."""
        for name in ("groups", "groups-delta"):
            with self.subTest(name):
                self.check_chunks(program(scan(name), "--weights", "f32"), 7, 1, 7, 31, 32, 33, 63, 64, 65, 200)

    def test_size_of_the_state(self):
        """Bytes of two layers with eight heads, whatever the length."""
        said = json.loads(program(scan("groups"), "--weights", "f32").run("info", "--json").stdout)
        state = 2 * 8 * (2 * 16 * 12 + 64 * (16 + 12 + 1)) * 4
        self.assertEqual((said["cache_bytes_per_token"], said["state_bytes"], said["cache_bytes"]), (0, state, state))
        facts = json.loads(execute([harness.mica, "inspect", scan("groups"), "--json"]).stdout)
        self.assertEqual((facts["layers"], facts["state_bytes"]), (2, state))

    def test_rewinding(self):
        """A text is truncated by a draft, by the whole ring and by more: rows equal those of a text computed at once."""
        for name in ("groups", "groups-delta"):
            self.check_rewinds(program(scan(name), "--weights", "f32"), 8,
                               ((0, 300), (292, 30), (289, 5), (260, 70), (297, 3), (100, 20), (96, 1), (64, 90), (96, 33), (96, 1), (3, 200)))


class Mamba(Rewinding):
    """Two states per layer, and no cache that grows."""

    STATE = 2 * (64 * (48 + 2 * 2 * 10) + 6 * (2 * 10 * 8 + 64 * (10 + 8 + 1))) * 4

    def test_size_of_the_state(self):
        """A ring of the convolution and matrices of six heads in each of two layers."""
        said = json.loads(program(MODELS / "mamba2").run("info", "--json").stdout)
        self.assertEqual((said["cache_bytes_per_token"], said["state_bytes"], said["cache_bytes"]), (0, self.STATE, self.STATE))
        facts = json.loads(execute([harness.mica, "inspect", MODELS / "mamba2", "--json"]).stdout)
        self.assertEqual((facts["layers"], facts["state_bytes"]), (2, self.STATE))

    def test_words(self):
        """States are not called a cache, neither by programs nor by the compiler."""
        text = program(MODELS / "mamba2").run("info").stdout.decode()
        self.assertRegex(text, r"\ncontext +\d+ positions\nstate +[\d.]+ KiB per sequence, of any length\n")
        for name, has_cache in (("mamba2", False), ("lfm2", True)):
            done = execute([harness.mica, "compile", MODELS / name, "-v", "--emit", "kernels", "-o", pathlib.Path(harness.folder("words")) / "out.mlir"])
            lines = done.stderr.decode().splitlines()
            self.assertEqual([line for line in lines if line.startswith("KV cache:")],
                             ["KV cache: 128 bytes per token, 16.00 KiB for all 128 positions"] if has_cache else [])
            self.assertEqual(sum(line.startswith("state: ") and " per sequence, of any length, and " in line for line in lines), 1)

    def test_chunk_sizes(self):
        """Chunks around those of the matrices."""
        self.check_chunks(program(MODELS / "mamba2"), 9, 1, 7, 63, 64, 65, 200)

    def test_rewinding(self):
        """A text is truncated by a draft, by the whole rings and by more: rows equal those of a text computed at once."""
        self.check_rewinds(program(MODELS / "mamba2"), 10,
                           ((0, 300), (292, 30), (289, 5), (260, 70), (297, 3), (100, 20), (64, 90), (96, 33), (96, 1), (3, 200)))


class Hybrids(Rewinding):
    """Layers with a cache that grows, with states that do not, or with both."""

    DELTA = 2 * (64 * 44 + 4 * (2 * 6 * 5 + 64 * (6 + 5 + 1))) * 4
    FALCON = 2 * (64 * (48 + 2 * 2 * 10) + 6 * (2 * 10 * 8 + 64 * (10 + 8 + 1))) * 4
    # Nemotron-H's two Mamba layers have the same sizes.
    SIZES = {"qwen3-5": (2 * 16 * 4, DELTA), "falcon-h1": (2 * 2 * 8 * 4, FALCON), "nemotron-h": (2 * 10 * 4, FALCON)}

    def program(self, name):
        return harness.program(with_long_context(name), "--max-seq", CONTEXT)

    def test_cache_and_state_sizes(self):
        """Bytes per token of layers with attention, and those of states."""
        for name, (per_token, states) in self.SIZES.items():
            said = json.loads(self.program(name).run("info", "--json").stdout)
            self.assertEqual((said["cache_bytes_per_token"], said["state_bytes"], said["cache_bytes"]),
                             (per_token, states, CONTEXT * per_token + states))

    def test_chunk_sizes(self):
        """Chunks around those of the matrices."""
        for name in self.SIZES:
            with self.subTest(name):
                self.check_chunks(self.program(name), 11, 1, 7, 63, 64, 65, 200)

    def test_rewinding(self):
        """A text is truncated by a draft, by the whole rings and by more: rows equal those of a text computed at once."""
        for name in self.SIZES:
            self.check_rewinds(self.program(name), 12,
                               ((0, 300), (292, 30), (289, 5), (260, 70), (297, 3), (100, 20), (64, 90), (96, 33), (96, 1), (3, 200)))


@harness.for_each(["bamba", "gemma4-moe", "gemma4-text", "granite-hybrid", "granite-hybrid-dense", "lfm2-moe", "nemotron-h-latent", "nemotron-h-moe",
                   "qwen3-5-moe", "qwen3-next"], "cuts_and_rewinds")
@harness.for_each(["falcon-h1", "granite-hybrid-dense", "lfm2"], "rewinds_in_int8")
class Families(Rewinding):
    """The other families with states or windows; in int8 one of each kind of state but Qwen's, which test_serve_schedules rewinds."""

    def cuts_and_rewinds(self, name):
        built = harness.program(with_long_context(name), "--max-seq", CONTEXT)
        self.check_chunks(built, 13, 7, 64, 200)
        self.check_rewinds(built, 14, ((0, 300), (292, 30), (289, 5), (100, 20), (96, 33), (3, 200)))

    def rewinds_in_int8(self, name):
        """Texts that are truncated by a draft, by the rings and by more."""
        self.check_rewinds(harness.program(with_long_context(name), "--weights", "int8", "--max-seq", CONTEXT), 15,
                           ((0, 300), (292, 30), (289, 5), (205, 100), (100, 20), (96, 33), (3, 200)))


@harness.for_each(["falcon-h1", "granite-hybrid-dense", "lfm2", "mamba2", "nemotron-h", "qwen3-5"], "long_text")
class LongTexts(Case):
    """Texts of which the last matrices were computed from earlier ones, compared with transformers."""

    def long_text(self, name):
        golden = json.loads((MODELS / name / "golden.long.json").read_text(encoding="utf-8"))
        logits = np.load(MODELS / name / "golden.long.logits.npy")
        # Mamba 2 has no positions, and no limit of them in its config.
        built = program(MODELS / name) if name == "mamba2" else program(with_long_context(name), "--max-seq", CONTEXT)
        for chunk in (512, 50, 1):
            ids, rows = built.generate([golden["prompt"]], len(golden["greedy"]), "--prefill-chunk", chunk)
            self.close(rows[0][:len(logits)], logits, 1e-5, f"chunks of {chunk}")
            self.assertEqual(ids, [golden["greedy"]])


class SharedCaches(Rewinding):
    """Layers that read the caches of earlier ones, one with a window and one without."""

    def program(self, *options):
        return harness.program(with_long_context("gemma4-shared"), *options, "--max-seq", CONTEXT)

    def test_cache_sizes(self):
        """Two of four layers have caches."""
        said = json.loads(self.program().run("info", "--json").stdout)
        self.assertEqual(said["cache_bytes_per_token"], (4 + 8) * 2 * 4)
        self.assertEqual(said["cache_bytes"], (CONTEXT * 8 + RING * 4) * 2 * 4)
        # Each of them is read by its own layer and a later one.
        self.assertEqual({(cache["bytes_per_token"], cache["bytes_read_per_position"]) for cache in said["manifest"]["caches"]},
                         {(4 * 4, 2 * 4 * 4), (8 * 4, 2 * 8 * 4)})

    def test_chunk_sizes(self):
        """Two sequences of uneven lengths, beyond the window and beyond the rings, in odd chunks, compared with each of them alone."""
        for options in ((), ("--weights", "bf16", "--kv", "bf16"), ("--kv", "int8")):
            with self.subTest(options=options):
                self.check_chunks(self.program(*options), 13, 7, 63, 200, length=2600, tolerance=2e-2 if options else 1e-5)

    def test_rewinding(self):
        """A text is truncated by a draft and by more: rows equal those of a text computed at once."""
        self.check_rewinds(self.program(), 14, ((0, 300), (292, 30), (261, 5), (205, 100), (100, 20), (3, 200), (200, 1)))


#: Tensors whose sizes follow from those of a state: (model, tensor, its shape, a wrong one). The tensors of the same layer in other
#: families have the same names but for the module's. Messages name the shape that the program needs: filters without the dimension of
#: one, Mamba's norm by group.
STATE_TENSORS = (
    ("lfm2", "model.layers.0.conv.conv.weight", (24, 1, 4), (24, 1, 3)),
    ("lfm2", "model.layers.0.conv.conv.bias", (24,), (23,)),
    ("lfm2", "model.layers.0.conv.in_proj.weight", (72, 24), (48, 24)),
    ("mamba2", "backbone.layers.0.mixer.A_log", (6,), (5,)),
    ("mamba2", "backbone.layers.0.mixer.D", (6,), (6, 8)),
    ("mamba2", "backbone.layers.0.mixer.dt_bias", (6,), (12,)),
    ("mamba2", "backbone.layers.0.mixer.norm.weight", (48,), (8,)),
    ("mamba2", "backbone.layers.0.mixer.conv1d.weight", (88, 1, 4), (48, 1, 4)),
    ("mamba2", "backbone.layers.0.mixer.conv1d.bias", (88,), (48,)),
    ("mamba2", "backbone.layers.0.mixer.in_proj.weight", (142, 24), (136, 24)),
    ("falcon-h1", "model.layers.0.mamba.conv1d.weight", (88, 1, 4), (88, 1, 5)),
    ("nemotron-h", "backbone.layers.0.mixer.A_log", (6,), (3,)),
    ("granite-hybrid-dense", "model.layers.0.mamba.dt_bias", (6,), (5,)),
    ("qwen3-5", "model.layers.0.linear_attn.A_log", (4,), (2,)),
    ("qwen3-5", "model.layers.0.linear_attn.dt_bias", (4,), (8,)),
    ("qwen3-5", "model.layers.0.linear_attn.norm.weight", (5,), (6,)),
    ("qwen3-5", "model.layers.0.linear_attn.conv1d.weight", (44, 1, 4), (44, 1, 3)),
    ("qwen3-5", "model.layers.0.linear_attn.in_proj_qkv.weight", (44, 24), (32, 24)),
    ("qwen3-next", "model.layers.0.linear_attn.in_proj_ba.weight", (8, 24), (4, 24)),
)


@harness.for_each([f"{model} {tensor}" for model, tensor, *_ in STATE_TENSORS], "is_refused")
class WrongSizes(Case):
    """Tensors that do not have the sizes of the config's states."""

    def is_refused(self, name):
        model, tensor, shape, wrong = next(row for row in STATE_TENSORS if " ".join(row[:2]) == name)

        def change(tensors):
            self.assertEqual(tensors[tensor].shape, shape)
            tensors[tensor] = np.resize(tensors[tensor], wrong)

        folder = checkpoint.edited(MODELS / model, pathlib.Path(harness.folder("wrong"), "model"), tensors=change)
        done = execute([harness.mica, "compile", folder, "--emit", "model", "-o", f"{folder}.mlir"], check=False)
        self.assertEqual(done.returncode, 1)
        needed = [2, shape[0] // 2] if tensor.endswith("mixer.norm.weight") else [shape[0], shape[2]] if len(shape) == 3 else list(shape)
        self.assertEqual(done.stderr.decode(), f'mica: error: {folder}/model.safetensors: tensor "{tensor}" has the shape {list(wrong)}, expected '
                         f"{needed}; download the config and the weights of one model\n")


#: The positions of a long conversation, and most that an edit of its last turn computes.
LONG, MAX_COMPUTED = 36864, 512


def with_a_tokenizer():
    """A hybrid of gated delta nets and attention, with long context and the tokenizer of a bundled model."""
    return harness.once("qwen3-5-served", lambda: checkpoint.with_tokenizer(
        MODELS / "qwen3-5", pathlib.Path(harness.folder("qwen3-5-served"), "model"), BUNDLED / "minimind-dense",
        ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"), 13, max_position_embeddings=LONG))


class Checkpoints(Case):
    """What edits of served conversations compute."""

    def usage(self, server, prompt):
        """The text, the tokens of the prompt, and those computed."""
        answer = server.complete(prompt, max_tokens=8, ignore_eos=True)
        tokens = answer["usage"]["prompt_tokens"]
        return answer["choices"][0]["text"], tokens, tokens - answer["usage"]["prompt_tokens_details"]["cached_tokens"]

    def test_an_edit_of_the_last_turn(self):
        """Of 32 Ki tokens, an edit recomputes at most 512; answers are those of a server without checkpoints."""
        words = [str(n) for n in np.random.default_rng(14).integers(10, 99, 11000)]
        edits = [(words, 60), (words, 3), (words, 100)]
        texts = []
        long = program(with_a_tokenizer(), "--max-seq", LONG)
        for options in ((), ("--checkpoint-bytes", "0")):
            with Server("--sequences", "1", *options, command=[long.path]) as own:
                got, tokens, computed = self.usage(own, " ".join(words))
                self.assertGreaterEqual(tokens, 32768)
                self.assertEqual(computed, tokens)
                answers = [got]
                for given, count in edits[:1] if options else edits:
                    changed = given[:-count] + [str(100 - int(word)) for word in given[-count:]]
                    got, tokens, computed = self.usage(own, " ".join(changed))
                    answers.append(got)
                    if options:
                        self.assertEqual(computed, tokens, "without checkpoints")
                    else:
                        note(self, f"{computed} of {tokens} tokens computed after an edit of the last {count} words")
                        self.assertLessEqual(computed, MAX_COMPUTED)
                taken = own.metric("mica_checkpoint_bytes")
                self.assertEqual(taken == 0, bool(options), taken)
                texts.append(answers)
        self.assertEqual(texts[0][:2], texts[1])

    def test_conversations_share_the_budget(self):
        """Five checkpoints per conversation, as in docs/state.md: edits of last turns, after turns of the others, compute at most 512."""
        built = program(with_a_tokenizer(), "--max-seq", LONG)
        budget = 5 * 4 * json.loads(built.run("info", "--json").stdout)["checkpoint_bytes"]
        rng, turn = np.random.default_rng(15), 130
        texts = [rng.integers(10, 99, size).tolist() for size in (400, 500, 600, 700)]
        with Server("--sequences", "4", "--checkpoint-bytes", str(budget), command=[built.path]) as own:
            for words in texts:
                self.usage(own, " ".join(map(str, words)))
            self.assertEqual(own.metric("mica_checkpoint_bytes"), budget, "it is exhausted")
            for kept in (None, None, -turn, None, -turn):
                for i, words in enumerate(texts):
                    texts[i] = words[:kept] + rng.integers(10, 99, turn).tolist()
                    _, tokens, computed = self.usage(own, " ".join(map(str, texts[i])))
                    note(self, f"{computed} of {tokens} tokens computed for {'an edit' if kept else 'a turn'}")
                    self.assertLessEqual(computed, MAX_COMPUTED)

    def test_budgets(self):
        """A budget that is too small, and one of a single checkpoint."""
        each = json.loads(program(with_a_tokenizer()).run("info", "--json").stdout)["checkpoint_bytes"]
        # Two layers of four heads with a matrix [6, 5], and three rows of the convolution.
        self.assertEqual(each, 2 * (4 * 6 * 5 + 3 * 44) * 4)
        self.assertIn("checkpoint    1.97 KiB of state each, see --checkpoint-bytes\n",
                      program(with_a_tokenizer()).run("info").stdout.decode())
        for command in ("serve", "chat", "score"):
            small = f"--checkpoint-bytes {each - 1} is too small for a single checkpoint of {each} bytes; raise it, or pass 0 for no checkpoints"
            for value, mention in ((each - 1, small), (-1, "--checkpoint-bytes"), ("1G", "--checkpoint-bytes")):
                done = program(with_a_tokenizer()).run(command, "--checkpoint-bytes", value, check=False)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(mention, done.stderr.decode())
        with Server("--checkpoint-bytes", str(each), model=with_a_tokenizer()) as own:
            prompt = "7 " * 400
            first, *_ = self.usage(own, prompt + "a")
            self.usage(own, prompt + "b")
            self.assertEqual(own.metric("mica_checkpoint_bytes"), each)
            self.assertEqual(self.usage(own, prompt + "a")[0], first)
        compiled = execute([harness.mica, "compile", with_a_tokenizer(), "-v", "-o", pathlib.Path(harness.folder("sizes")) / "out"])
        self.assertRegex(compiled.stderr.decode(), r"state: .* per sequence, of any length, and 1.97 KiB per checkpoint\n")
