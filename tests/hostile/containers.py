"""Other forms of a model's files: torch's checkpoints, sentencepiece's models and GGUF, in parts that a test can spoil."""
import io
import struct
import zipfile


class Torch:
    """A folder's weights as pytorch_model.bin: a zip archive of a pickle and the tensors' bytes."""

    def __init__(self, folder):
        self.tensors = [(name, entry["shape"], folder.data[slice(*entry["data_offsets"])])
                        for name, entry in folder.header.items() if name != "__metadata__"]
        self.rebuild = ("torch._utils", "_rebuild_tensor_v2")
        self.storage_offset = 0
        self.left_out = None  # the number of a tensor whose bytes are not there
        self.compression = zipfile.ZIP_STORED

    def entry(self, key, shape, data):
        strides, count = [], 1
        for extent in reversed(shape):
            strides.insert(0, count)
            count *= extent
        storage = tuple_of(text("storage"), name("torch", "FloatStorage"), text(key), text("cpu"), integer(len(data) // 4))
        return name(*self.rebuild) + tuple_of(
            storage + b"Q", integer(self.storage_offset), tuple_of(*map(integer, shape)), tuple_of(*map(integer, strides)), b"\x89",
            name("collections", "OrderedDict") + b")R") + b"R"

    def pickle(self):
        items = b"".join(text(key) + self.entry(str(i), shape, data) for i, (key, shape, data) in enumerate(self.tensors))
        return b"\x80\x02}(" + items + b"u."

    def bytes(self):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", self.compression) as archive:
            archive.writestr("model/data.pkl", self.pickle())
            for i, (_, _, data) in enumerate(self.tensors):
                if i != self.left_out:
                    archive.writestr(f"model/data/{i}", data)
        return file.getvalue()


def text(word):
    return b"X" + struct.pack("<I", len(word.encode())) + word.encode()


def integer(number):
    return b"J" + struct.pack("<i", number)


def name(module, word):
    return f"c{module}\n{word}\n".encode()


def tuple_of(*parts):
    return b"(" + b"".join(parts) + b"t"


def varint(number):
    out = b""
    while number >= 128:
        out += bytes([number % 128 + 128])
        number //= 128
    return out + bytes([number])


def field(number, content):
    """A field of bytes of a protocol buffer."""
    return varint(number * 8 + 2) + varint(len(content)) + content


def piece(word, score, kind):
    return field(1, field(1, word.encode()) + b"\x15" + struct.pack("<f", score) + b"\x18" + varint(kind))


def sentencepiece(size, kinds=None):
    """A BPE model of `size` pieces; `kinds` changes the types of some."""
    kinds = {0: 2, 1: 3, 2: 3, **(kinds or {})}
    words = ["<unk>", "<s>", "</s>", "\u2581"] + [chr(ord("a") + i % 26) * (1 + i // 26) for i in range(size - 4)]
    return b"".join(piece(word, -float(i), kinds.get(i, 1)) for i, word in enumerate(words)) + field(2, b"\x18\x02")
