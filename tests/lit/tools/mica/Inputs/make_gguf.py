"""make_gguf.py OUT ARCHITECTURE KEY=VALUE...: a GGUF file with the metadata of a small model and no weights but the
embedding. A VALUE is JSON and replaces that of the model; null removes the key. Keys without a leading dot are relative
to the architecture, `.general.type` is the key general.type."""
import json
import struct
import sys

U32, F32, BOOL, STRING = 4, 6, 7, 8


def text(word):
    return struct.pack("<Q", len(word)) + word.encode()


def pair(key, value):
    kind, data = {bool: lambda v: (BOOL, struct.pack("<?", v)), int: lambda v: (U32, struct.pack("<I", v)),
                  float: lambda v: (F32, struct.pack("<f", v)), str: lambda v: (STRING, text(v))}[type(value)](value)
    return text(key) + struct.pack("<I", kind) + data


out, architecture, *changes = sys.argv[1:]
model = {"context_length": 128, "embedding_length": 32, "block_count": 2, "feed_forward_length": 64,
         "attention.head_count": 4, "attention.layer_norm_rms_epsilon": 1e-5}
model |= {key: json.loads(value) for key, value in (change.split("=", 1) for change in changes)}
keys = [pair("general.architecture", architecture)]
keys += [pair(key[1:] if key.startswith(".") else f"{architecture}.{key}", value)
         for key, value in model.items() if value is not None]
tensor = text("token_embd.weight") + struct.pack("<IQQIQ", 2, 32, 64, 0, 0)
head = b"GGUF" + struct.pack("<IQQ", 3, 1, len(keys)) + b"".join(keys) + tensor
with open(out, "wb") as file:
    file.write(head + bytes(-len(head) % 32) + bytes(4 * 32 * 64))
