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


def tensor(key, array):
    strides = [s // array.itemsize for s in np.ascontiguousarray(array).strides]
    storage = a_tuple(text("storage"), name("torch", STORAGES[array.dtype.str]), text(key), text("cpu"), integer(array.size))
    return (name("torch._utils", "_rebuild_tensor_v2") +
            a_tuple(storage + b"Q", integer(0), a_tuple(*map(integer, array.shape)), a_tuple(*map(integer, strides)), b"\x89",
                    name("collections", "OrderedDict") + b")R") + b"R")


def write(path, tensors):
    """{name: array}; arrays of 16-bit integers are bf16."""
    entries = b"".join(text(key) + tensor(str(i), array) for i, (key, array) in enumerate(tensors.items()))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("model/data.pkl", b"\x80\x02}(" + entries + b"u.")
        for i, array in enumerate(tensors.values()):
            archive.writestr(f"model/data/{i}", np.ascontiguousarray(array).tobytes())
