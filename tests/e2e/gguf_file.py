"""Writes GGUF files, and converts model folders to GGUF as llama.cpp does, using only numpy."""

import itertools
import json
import math
import os
import struct

import numpy as np

import checkpoint
import gguf_blocks

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
FORMATS = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "?", U64: "Q", I64: "q", F64: "d"}
#: Q4_0 with scales that minimize the error.
SEARCHED = "Q4_0, searched"
#: Types that are not blocks.
NUMBERS = {"F32": 0, "F16": 1, "BF16": 30}
#: Elements that are quantized at a time, several times as fast as many more.
IN_CACHE = 1 << 16
TYPES = NUMBERS | {SEARCHED: 2} | {name: block[0] for name, block in gguf_blocks.BLOCKS.items()}


def text(value):
    data = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(data)) + data


def number(kind, value):
    return struct.pack("<" + FORMATS[kind], value)


def element(kind, value):
    return text(value) if kind == STRING else number(kind, value)


class Zeros:
    """Zero bytes of a file, which take no memory."""

    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size


class File:
    """Keys and tensors in order. `bytes()` returns the file; tests may corrupt any part before calling it."""

    def __init__(self):
        self.keys, self.tensors, self.alignment, self.version, self.magic = [], [], 32, 3, b"GGUF"

    def key(self, name, kind, value):
        self.keys.append((name, struct.pack("<I", kind) + element(kind, value)))

    def list(self, name, kind, values):
        head = struct.pack("<IIQ", ARRAY, kind, len(values))
        self.keys.append((name, head + b"".join(element(kind, v) for v in values)))

    def tensor(self, name, shape, kind, data):
        self.tensors.append((name, tuple(shape), TYPES.get(kind, kind), data))

    def header(self):
        entries, offset = b"", 0
        for name, shape, kind, data in self.tensors:
            entries += text(name) + struct.pack("<I", len(shape))
            entries += b"".join(struct.pack("<Q", extent) for extent in reversed(shape))
            entries += struct.pack("<IQ", kind, offset)
            offset += len(data) + -len(data) % self.alignment
        keys = b"".join(text(name) + value for name, value in self.keys)
        counts = struct.pack("<IQQ", self.version, len(self.tensors), len(self.keys))
        return self.magic + counts + keys + entries

    def bytes(self):
        out = self.header()
        out += b"\0" * (-len(out) % self.alignment)
        for *_, data in self.tensors:
            out += data + b"\0" * (-len(data) % self.alignment)
        return out

    def write(self, path):
        with open(path, "wb") as f:
            head = self.header()
            f.write(head + b"\0" * (-len(head) % self.alignment))
            for *_, data in self.tensors:
                if isinstance(data, Zeros):
                    f.truncate(f.seek(len(data), os.SEEK_CUR))
                else:
                    f.write(data)
                f.write(b"\0" * (-len(data) % self.alignment))
        return path

    def write_parts(self, prefix, sizes):
        """Writes several files with a given number of tensors each; returns the path of the first one."""
        first, paths = 0, []
        for index, size in enumerate(sizes):
            part = File()
            part.keys = list(self.keys) if index == 0 else []
            part.key("split.no", U16, index)
            part.key("split.count", U16, len(sizes))
            part.key("split.tensors.count", I32, len(self.tensors))
            part.tensors = self.tensors[first:first + size]
            first += size
            paths.append(part.write(f"{prefix}-{index + 1:05}-of-{len(sizes):05}.gguf"))
        return paths[0]


# ---------------------------------------------------------------- numbers


def to_f32(array):
    """The tensor of a folder as f32; bf16 is passed as its bits."""
    if array.dtype == np.uint16:
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32)


def nibbles(scale, q, shape):
    """Q4_0 blocks with scales in f16 and numbers from -8 to 7: their bytes, and the dequantized numbers."""
    halves = (q + 8).astype(np.uint8)
    data = np.concatenate([scale.view(np.uint8), halves[:, :16] | halves[:, 16:] << 4], 1)
    return data.tobytes(), (scale.astype(np.float32) * q.astype(np.float32)).reshape(shape)


def searched(values):
    """Like `quantized` for Q4_0, with the best scale of each block among many: a bound for blocks of 32."""
    blocks = values.reshape(-1, 32).astype(np.float32)
    largest = np.take_along_axis(blocks, np.abs(blocks).argmax(1)[:, None], 1)
    best = np.full((len(blocks), 1), np.inf, np.float32)
    scale, q = np.zeros((len(blocks), 1), np.float16), np.zeros(blocks.shape, np.int8)
    for end in (-8, 7):
        for part in np.linspace(0.75, 1.1, 15, dtype=np.float32):
            tried = largest * part / np.float32(end)
            for _ in range(2):  # the second time with the scale that fits these numbers best
                inverse = np.divide(np.float32(1), tried, out=np.zeros_like(tried), where=tried != 0)
                numbers = np.clip(np.rint(blocks * inverse), -8, 7)
                squares = (numbers * numbers).sum(1, keepdims=True)
                tried = np.divide((blocks * numbers).sum(1, keepdims=True), squares, out=np.zeros_like(tried), where=squares != 0)
            stored = tried.astype(np.float16)
            lost = ((blocks - stored.astype(np.float32) * numbers) ** 2).sum(1, keepdims=True)
            better = lost < best
            best, scale = np.where(better, lost, best), np.where(better, stored, scale)
            q = np.where(better, numbers.astype(np.int8), q)
    return nibbles(scale, q, values.shape)


def quantized(values, kind):
    """Bytes of `values` [..., columns] as blocks as written by llama.cpp, and the dequantized numbers."""
    rows = values.reshape(-1, values.shape[-1])
    count = max(1, IN_CACHE // rows.shape[1])
    parts = [quantized_rows(rows[first:first + count], kind) for first in range(0, len(rows), count)]
    return b"".join(data for data, _ in parts), np.concatenate([numbers for _, numbers in parts]).reshape(values.shape)


def quantized_rows(values, kind):
    if kind == SEARCHED:
        return searched(values)
    if kind not in ("Q8_0", "Q4_0"):
        return gguf_blocks.encode(values, kind)
    blocks = values.reshape(-1, 32)
    largest = np.take_along_axis(blocks, np.abs(blocks).argmax(1)[:, None], 1)
    wide = np.abs(largest) / np.float32(127) if kind == "Q8_0" else largest / np.float32(-8)
    inverse = np.divide(np.float32(1), wide, out=np.zeros_like(wide), where=wide != 0)
    scale = wide.astype(np.float16)
    if kind == "Q8_0":
        scaled = blocks * inverse
        q = (np.sign(scaled) * np.floor(np.abs(scaled) + np.float32(0.5))).astype(np.int8)
        data = np.concatenate([scale.view(np.uint8), q.view(np.uint8)], 1)
    else:
        # Fused multiply-add, as in builds for processors that have it.
        shifted = (blocks.astype(np.float64) * inverse + 8.5).astype(np.float32)
        return nibbles(scale, np.minimum(15, np.trunc(shifted)).astype(np.int8) - np.int8(8), values.shape)
    return data.tobytes(), (scale.astype(np.float32) * q.astype(np.float32)).reshape(values.shape)


def stored(values, kind):
    """The type, the bytes and the dequantized numbers of `values` in f32 as a tensor of type `kind`."""
    if kind == "F16":
        half = values.astype(np.float16)
        return kind, half.tobytes(), half.astype(np.float32)
    if kind == "BF16":
        bits = (values.view(np.uint32) >> 16).astype(np.uint16)  # the folder's own type, so that nothing is lost
        return kind, bits.tobytes(), to_f32(bits)
    if kind == "F32" or values.shape[-1] % gguf_blocks.BLOCKS.get(kind, (0, 32))[1]:
        return "F32", values.tobytes(), values  # rows that are not whole blocks are not quantized
    return kind, *quantized(values, kind)


# ---------------------------------------------------------------- models

LAYER = {
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "mlp.gate": "ffn_gate_inp",
    "self_attn.qkv_proj": "attn_qkv", "mlp.gate_up_proj": "ffn_up", "block_sparse_moe.gate": "ffn_gate_inp",
    "pre_feedforward_layernorm": "ffn_norm", "post_feedforward_layernorm": "post_ffw_norm",
    "mlp.shared_expert.gate_proj": "ffn_gate_shexp", "mlp.shared_expert.up_proj": "ffn_up_shexp",
    "mlp.shared_expert.down_proj": "ffn_down_shexp", "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
}
PRODUCTS = {"gate_proj": "gate", "up_proj": "up", "down_proj": "down", "w1": "gate", "w3": "up", "w2": "down"}
# For families whose architecture has another name, and for those not covered by llama and qwen3.
ARCHITECTURES = {"mixtral": "llama", "qwen2_moe": "qwen2moe"}
ARCHITECTURES |= {name: name for name in ("gemma", "gemma2", "granite", "olmo2", "phi3", "qwen2")}
SCALES = {
    "granite": {"attention.scale": "attention_multiplier", "embedding_scale": "embedding_multiplier",
                "residual_scale": "residual_multiplier", "logit_scale": "logits_scaling"},
    "gemma2": {"attn_logit_softcapping": "attn_logit_softcapping",
               "final_logit_softcapping": "final_logit_softcapping"},
}
TOP = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def name_of(name, post_norms=False):
    """llama.cpp's name of a tensor that it does not rename by rule; whether norms follow blocks."""
    module, _, part = name.rpartition(".")
    if module in TOP:
        return f"{TOP[module]}.{part}"
    _, _, layer, module = module.split(".", 3)
    if post_norms and module == "post_attention_layernorm":
        return f"blk.{layer}.post_attention_norm.{part}"
    return f"blk.{layer}.{LAYER[module]}.{part}"


def interleaved(array, heads):
    """Rows of q or k with the halves of each head interleaved."""
    return array.reshape(heads, 2, len(array) // heads // 2, *array.shape[1:]).swapaxes(1, 2).reshape(array.shape)


def add_tokenizer(file, folder):
    """Adds the byte-level BPE of tokenizer.json, if the folder has one."""
    path = os.path.join(folder, "tokenizer.json")
    if not os.path.exists(path):
        return
    with open(path, encoding="utf-8") as f:
        tokenizer = json.load(f)
    vocabulary = dict(tokenizer["model"]["vocab"])
    added = {token["id"]: token for token in tokenizer["added_tokens"]}
    for number_, token in added.items():
        vocabulary[token["content"]] = number_
    names = {i: t for t, i in vocabulary.items()}
    size = max(names) + 1
    file.key("tokenizer.ggml.model", STRING, "gpt2")
    file.key("tokenizer.ggml.pre", STRING, "gpt-2")
    file.list("tokenizer.ggml.tokens", STRING, [names.get(i, f"[PAD{i}]") for i in range(size)])
    file.list("tokenizer.ggml.token_type", I32,
              [5 if i not in names else 1 if i not in added else 3 if added[i]["special"] else 4
               for i in range(size)])
    merges = tokenizer["model"]["merges"]
    file.list("tokenizer.ggml.merges", STRING, [m if isinstance(m, str) else " ".join(m) for m in merges])
    config = checkpoint.config_of(folder)
    for key in ("bos_token_id", "eos_token_id"):
        if isinstance(config.get(key), int):
            file.key(f"tokenizer.ggml.{key}", U32, config[key])
    file.key("tokenizer.ggml.add_bos_token", BOOL, False)


class Converter:
    """Converts a folder with the names of transformers. `kind` is the type of its matrices: F32, BF16, F16, SEARCHED or a type of
    gguf_blocks. Dequantized tensors are kept for `numbers_folder`, unless the model is too large."""

    def __init__(self, folder, kind, keep_numbers=True, table=None):
        self.folder, self.kind, self.keeps = str(folder), kind, keep_numbers
        self.table = table or kind  # the types of the embedding and of an untied head
        self.config = checkpoint.config_of(folder)
        self.tensors = checkpoint.read(folder)
        self.file, self.numbers = File(), {}  # dequantized tensors, by the folder's names
        norms = "model.layers.0.self_attn.q_norm.weight" in self.tensors
        self.experts = sum(name.startswith("model.layers.0.") and name.endswith((".up_proj.weight", ".w3.weight"))
                           and ".experts." in name for name in self.tensors)
        self.family = self.config["model_type"]
        self.architecture = ARCHITECTURES.get(self.family) or (
            ("qwen3moe" if self.experts else "qwen3") if norms else "llama")
        self.post_norms = "model.layers.0.post_feedforward_layernorm.weight" in self.tensors

    def convert(self):
        self.keys()
        add_tokenizer(self.file, self.folder)
        done = set()
        for name, array in sorted(self.tensors.items()):
            values = to_f32(array)
            if ".experts." in name:
                self.stack(name, done)
                continue
            if self.architecture in ("llama", "granite") and ".q_proj." in name:
                values = interleaved(values, self.config["num_attention_heads"])
            if self.architecture in ("llama", "granite") and ".k_proj." in name:
                values = interleaved(values, self.config["num_key_value_heads"])
            if name.endswith("shared_expert_gate.weight"):
                values = values[0]
            if self.family.startswith("gemma") and values.ndim == 1:
                values = values + np.float32(1)
            plain = values.ndim == 1 or name.endswith(("mlp.gate.weight", "block_sparse_moe.gate.weight"))
            kind = self.table if name.startswith(("model.embed_tokens.", "lm_head.")) else self.kind
            numbers = self.put(name_of(name, self.post_norms), values, "F32" if plain else kind)
            if self.keeps:
                self.numbers[name] = numbers
        return self.file

    def keys(self):
        c, a = self.config, self.architecture
        file = self.file
        file.key("general.architecture", STRING, a)
        file.key("general.quantization_version", U32, 2)
        heads = c["num_attention_heads"]
        head_dim = c.get("head_dim") or c["hidden_size"] // heads
        for key, value in {"context_length": c["max_position_embeddings"], "embedding_length": c["hidden_size"],
                           "block_count": c["num_hidden_layers"], "attention.head_count": heads,
                           "attention.head_count_kv": c["num_key_value_heads"],
                           "attention.key_length": head_dim, "attention.value_length": head_dim,
                           "feed_forward_length": self.inner()}.items():
            file.key(f"{a}.{key}", U32, value)
        self.scales()
        if self.experts:
            file.key(f"{a}.expert_count", U32, self.experts)
            file.key(f"{a}.expert_used_count", U32, c["num_experts_per_tok"])
        if self.experts and a != "llama":
            file.key(f"{a}.expert_feed_forward_length", U32, c.get("moe_intermediate_size") or self.inner())
        if "shared_expert_intermediate_size" in c:
            file.key(f"{a}.expert_shared_feed_forward_length", U32, c["shared_expert_intermediate_size"])
        file.key(f"{a}.attention.layer_norm_rms_epsilon", F32, c["rms_norm_eps"])
        file.key(f"{a}.rope.freq_base", F32, c.get("rope_theta") or c["rope_parameters"]["rope_theta"])

    def inner(self):
        if self.family in ARCHITECTURES:
            return self.config["intermediate_size"]
        return next(len(array) for name, array in self.tensors.items() if "gate_proj.weight" in name)

    def scales(self):
        """Scales, soft-caps and windows of single families."""
        c, a = self.config, self.architecture
        for key, name in SCALES.get(a, {}).items():
            self.file.key(f"{a}.{key}", F32, c[name])
        if a in ("gemma2", "phi3"):
            self.file.key(f"{a}.attention.sliding_window", U32, c["sliding_window"] or 0)
        self.long_rope()
        part = c.get("rope_parameters", {}).get("partial_rotary_factor")
        if part:
            size = c["hidden_size"] // c["num_attention_heads"]
            self.file.key(f"{a}.rope.dimension_count", U32, int(size * part))

    def long_rope(self):
        """Factors per pair, for short and for long sequences."""
        rope = self.config.get("rope_parameters", {})
        if rope.get("rope_type") != "longrope":
            return
        a, original = self.architecture, rope["original_max_position_embeddings"]
        longer = self.config["max_position_embeddings"] / original
        self.file.key(f"{a}.rope.scaling.original_context_length", U32, original)
        self.file.key(f"{a}.rope.scaling.attn_factor", F32, (1 + math.log(longer) / math.log(original)) ** 0.5)
        for kind in ("short", "long"):
            factors = np.array(rope[f"{kind}_factor"], "<f4")
            self.file.tensor(f"rope_factors_{kind}.weight", factors.shape, "F32", factors.tobytes())

    def stack(self, name, done):
        before, _, rest = name.partition(".experts.")
        product = rest.split(".")[1]
        if (before, product) in done:
            return
        done.add((before, product))
        names = [f"{before}.experts.{i}.{product}.weight" for i in range(self.experts)]
        layer = before.split(".")[2]
        to = f"blk.{layer}.ffn_{PRODUCTS[product]}_exps.weight"
        numbers = self.put(to, np.stack([to_f32(self.tensors[n]) for n in names]), self.kind)
        if self.keeps:
            self.numbers.update(zip(names, numbers))

    def put(self, name, values, kind):
        kind, data, numbers = stored(values, kind)
        self.file.tensor(name, values.shape, kind, data)
        return numbers

    def numbers_folder(self, target):
        """A folder with f32 weights equal to the file's dequantized tensors."""

        def replace(tensors):
            for name, values in self.numbers.items():
                if self.architecture == "llama" and (".q_proj." in name or ".k_proj." in name):
                    heads = self.config["num_attention_heads" if ".q_proj." in name else "num_key_value_heads"]
                    half = len(values) // heads // 2
                    values = values.reshape(heads, half, 2, *values.shape[1:]).swapaxes(1, 2).reshape(values.shape)
                tensors[name] = np.ascontiguousarray(values, "<f4")

        checkpoint.edited(self.folder, target, tensors=replace)
        return target


class RoundRobin(Converter):
    """Assigns all formats to the matrices of a dense model in turn, beginning with number `first`."""

    def __init__(self, folder, first):
        super().__init__(folder, "F32")
        self.kinds = itertools.islice(itertools.cycle(gguf_blocks.BLOCKS), first, None)
        self.assigned = {}

    def put(self, name, values, kind):
        if values.ndim == 2:
            kind = self.assigned[name] = next(self.kinds)
        return super().put(name, values, kind)
