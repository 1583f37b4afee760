"""Writes torch checkpoints: a zip archive with a pickle and the tensors' data, not compressed."""

import struct
import sys
import zipfile

import harness

sys.path.insert(0, str(harness.ROOT / "tests/tools"))
import torch_pickle

STORAGES = {"<f4": "FloatStorage", "<f2": "HalfStorage", "<u2": "BFloat16Storage", "<i8": "LongStorage"}


def pickled(tensors, *trailing):
    """Arrays in their memory layout: a transposed one keeps its strides. `trailing` ends the description of each storage."""
    return torch_pickle.dictionary(
        (key, torch_pickle.tensor(torch_pickle.storage(str(i), STORAGES[array.dtype.str], array.size, *trailing), array.shape,
                                  [s // array.itemsize for s in array.strides]))
        for i, (key, array) in enumerate(tensors.items()))


def write(path, tensors):
    """{name: array}; arrays of 16-bit integers are bf16."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("model/data.pkl", pickled(tensors))
        for i, array in enumerate(tensors.values()):
            archive.writestr(f"model/data/{i}", array.ravel("K").tobytes())


def write_old(path, tensors):
    """As torch before 1.6: pickles and storages, concatenated."""
    magic = b"\x80\x02\x8a\x0a" + 0x1950A86A20F9469CFC6C.to_bytes(10, "little") + b"."
    keys = [str(i) for i in range(len(tensors))]
    with open(path, "wb") as f:
        f.write(magic + b"\x80\x02M\xe9\x03." + b"\x80\x02}" + torch_pickle.text("little_endian") + b"\x88s.")
        f.write(pickled(tensors, b"N") + b"\x80\x02](" + b"".join(map(torch_pickle.text, keys)) + b"e.")
        for array in tensors.values():
            f.write(struct.pack("<Q", array.size) + array.ravel("K").tobytes())
