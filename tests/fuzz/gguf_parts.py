#!/usr/bin/env python3
"""Models with experts in two and three files, valid and broken: the corpus gguf-parts, written by make_seeds.py. Uses only the standard
library."""
import struct

MARK = b"--next part--"
F32, Q8_0, IQ4_NL = 0, 8, 20
U16, U32, I32, FLOAT, TEXT, ARRAY = 2, 4, 5, 6, 8, 9


def text(word):
    return struct.pack("<Q", len(word.encode())) + word.encode()


def u16(number):
    return U16, struct.pack("<H", number)


def u32(number):
    return U32, struct.pack("<I", number)


def i32(number):
    return I32, struct.pack("<i", number)


def f32(number):
    return FLOAT, struct.pack("<f", number)


def word(value):
    return TEXT, text(value)


def words(values):
    return ARRAY, struct.pack("<IQ", TEXT, len(values)) + b"".join(map(text, values))


def size(shape, kind):
    count = 1
    for extent in shape:
        count *= extent
    return count * 4 if kind == F32 else count // 32 * 34


def part(keys, tensors):
    """A file of keys {name: (kind, bytes)} and tensors [(name, row-major shape, type)], which may also contain their bytes."""
    head, data = b"", b""
    for name, (kind, value) in keys.items():
        head += text(name) + struct.pack("<I", kind) + value
    for name, shape, kind, *content in tensors:
        data += b"\0" * (-len(data) % 32)
        head += text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *reversed(shape))
        head += struct.pack("<IQ", kind, len(data))
        data += content[0] if content else bytes(i % 7 for i in range(size(shape, kind)))
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)) + head
    return head + b"\0" * (-len(head) % 32) + data + b"\0" * (-len(data) % 32)


HIDDEN, INNER, EXPERTS, VOCAB = 32, 32, 2, 8

MODEL = {
    "general.architecture": word("qwen3moe"),
    "qwen3moe.context_length": u32(16),
    "qwen3moe.embedding_length": u32(HIDDEN),
    "qwen3moe.block_count": u32(1),
    "qwen3moe.feed_forward_length": u32(INNER),
    "qwen3moe.attention.head_count": u32(2),
    "qwen3moe.attention.head_count_kv": u32(1),
    "qwen3moe.attention.key_length": u32(16),
    "qwen3moe.attention.value_length": u32(16),
    "qwen3moe.attention.layer_norm_rms_epsilon": f32(1e-6),
    "qwen3moe.rope.freq_base": f32(1e4),
    "qwen3moe.expert_count": u32(EXPERTS),
    "qwen3moe.expert_used_count": u32(1),
    "qwen3moe.expert_feed_forward_length": u32(INNER),
    "tokenizer.ggml.model": word("gpt2"),
    "tokenizer.ggml.pre": word("qwen2"),
    "tokenizer.ggml.tokens": words(["a", "b", "c", "d", "ab", "cd", "abcd", "<|end|>"]),
    "tokenizer.ggml.merges": words(["a b", "c d", "ab cd"]),
}

ROUTER = [("token_embd.weight", (VOCAB, HIDDEN), F32), ("output_norm.weight", (HIDDEN,), F32),
          ("blk.0.attn_norm.weight", (HIDDEN,), F32), ("blk.0.attn_q.weight", (32, HIDDEN), F32),
          ("blk.0.attn_k.weight", (16, HIDDEN), F32), ("blk.0.attn_v.weight", (16, HIDDEN), F32),
          ("blk.0.attn_output.weight", (HIDDEN, 32), F32), ("blk.0.attn_q_norm.weight", (16,), F32),
          ("blk.0.attn_k_norm.weight", (16,), F32), ("blk.0.ffn_norm.weight", (HIDDEN,), F32),
          ("blk.0.ffn_gate_inp.weight", (EXPERTS, HIDDEN), F32)]
UP = [("blk.0.ffn_gate_exps.weight", (EXPERTS, INNER, HIDDEN), Q8_0), ("blk.0.ffn_up_exps.weight", (EXPERTS, INNER, HIDDEN), Q8_0)]
DOWN = [("blk.0.ffn_down_exps.weight", (EXPERTS, HIDDEN, INNER), Q8_0)]


def split(number, count, tensors):
    return {"split.no": u16(number), "split.count": u16(count), "split.tensors.count": i32(tensors)}


def parts(*groups, keys=MODEL, change=lambda number, given: given):
    """One file per group of tensors; `change` modifies the keys of a part."""
    total = sum(map(len, groups))
    return [part(change(n, {**(keys if n == 0 else {}), **split(n, len(groups), total)}), group) for n, group in enumerate(groups)]


def models():
    whole = parts(ROUTER, UP + DOWN)
    yield "seed-two", MARK.join(whole)
    yield "seed-three", MARK.join(parts(ROUTER, UP, DOWN))
    yield "seed-second-missing", MARK.join(whole[:1])
    yield "seed-second-cut", MARK.join([whole[0], whole[1][:-100]])
    yield "seed-swapped", MARK.join(whole[::-1])
    yield "seed-tensor-in-both", MARK.join(parts(ROUTER, ROUTER[:1]))
    yield "seed-number-repeated", MARK.join(parts(ROUTER, UP, change=lambda n, keys: {**keys, "split.no": u16(0)}))
    yield "seed-count-of-others", MARK.join(parts(ROUTER, UP, change=lambda n, keys: {**keys, "split.count": u16(2 + n)}))
    yield "seed-keys-in-the-second", MARK.join(parts(ROUTER, UP, change=lambda n, keys: {**keys, "qwen3moe.expert_count": u32(n + 2)}))
    yield "seed-experts-of-no-number", MARK.join(parts(ROUTER, UP + DOWN, keys={**MODEL, "qwen3moe.expert_count": u32(0xFFFFFFFF)}))
    yield "seed-more-used-than-there-are", MARK.join(parts(ROUTER, UP + DOWN, keys={**MODEL, "qwen3moe.expert_used_count": u32(9)}))
    yield "seed-experts-of-two-dimensions", MARK.join(parts(ROUTER, [("blk.0.ffn_gate_exps.weight", (INNER, HIDDEN), Q8_0)]))
    # With the name of a smaller type, a tensor ends before the next one begins.
    yield "seed-gap-between-tensors", MARK.join([whole[0], whole[1].replace(struct.pack("<IQ", Q8_0, 0), struct.pack("<IQ", IQ4_NL, 0), 1)])
