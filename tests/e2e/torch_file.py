"""Writes checkpoints of torch: a zip archive of a pickle and the tensors' data, nothing compressed."""

import struct
import zipfile

import numpy as np

STORAGES = {"<f4": "FloatStorage", "<f2": "HalfStorage", "<u2": "BFloat16Storage", "<i8": "LongStorage"}


def text(word):
    return b"X" + struct.pack("<I", len(word.encode())) + word.encode()


def integer(number):
    return b"J" + struct.pack("<i", number)


def name(module, word):
    return f"c{module}\n{word}\n".encode()


def a_tuple(*parts):
    return b"(" + b"".join(parts) + b"t"


def tensor(key, array, *behind):
    """As it lies in memory: a transposed array keeps its strides. `behind` ends what is said of the storage."""
    strides = [s // array.itemsize for s in array.strides]
    storage = a_tuple(text("storage"), name("torch", STORAGES[array.dtype.str]), text(key), text("cpu"), integer(array.size),
                      *behind)
    return (name("torch._utils", "_rebuild_tensor_v2") +
            a_tuple(storage + b"Q", integer(0), a_tuple(*map(integer, array.shape)), a_tuple(*map(integer, strides)), b"\x89",
                    name("collections", "OrderedDict") + b")R") + b"R")


def pickled(tensors, *behind):
    entries = b"".join(text(key) + tensor(str(i), array, *behind) for i, (key, array) in enumerate(tensors.items()))
    return b"\x80\x02}(" + entries + b"u."


def write(path, tensors):
    """{name: array}; arrays of 16-bit integers are bf16."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("model/data.pkl", pickled(tensors))
        for i, array in enumerate(tensors.values()):
            archive.writestr(f"model/data/{i}", array.ravel("K").tobytes())


def write_old(path, tensors):
    """As torch before 1.6: pickles and storages one behind the other."""
    magic = b"\x80\x02\x8a\x0a" + 0x1950A86A20F9469CFC6C.to_bytes(10, "little") + b"."
    keys = [str(i) for i in range(len(tensors))]
    with open(path, "wb") as f:
        f.write(magic + b"\x80\x02M\xe9\x03." + b"\x80\x02}" + text("little_endian") + b"\x88s.")
        f.write(pickled(tensors, b"N") + b"\x80\x02](" + b"".join(map(text, keys)) + b"e.")
        for array in tensors.values():
            f.write(struct.pack("<Q", array.size) + array.ravel("K").tobytes())
