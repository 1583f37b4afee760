"""Sentencepiece models as protocol buffers, in parts that a test can corrupt."""

import struct


def varint(number):
    out = b""
    while number >= 128:
        out += bytes([number % 128 + 128])
        number //= 128
    return out + bytes([number])


def field(number, content):
    """A field of bytes."""
    return varint(number * 8 + 2) + varint(len(content)) + content


def number_field(number, value):
    return varint(number * 8) + varint(value)


def piece(word, score, kind):
    return field(1, field(1, word.encode()) + b"\x15" + struct.pack("<f", score) + number_field(3, kind))


def model(size, kinds=None, trainer=number_field(3, 2), trailer=b""):
    """A model with `size` pieces, of BPE unless the trainer's fields state otherwise; `kinds` changes the types of some, `trailer` are
    further fields."""
    kinds = {0: 2, 1: 3, 2: 3, **(kinds or {})}
    words = ["<unk>", "<s>", "</s>", "\u2581"] + [chr(ord("a") + i % 26) * (1 + i // 26) for i in range(size - 4)]
    return b"".join(piece(word, -float(i), kinds.get(i, 1)) for i, word in enumerate(words)) + field(2, trainer) + trailer
