"""The pickle of a checkpoint by instructions, as written by torch.save, in parts that a test can corrupt."""

import struct


def text(word):
    return b"X" + struct.pack("<I", len(word.encode())) + word.encode()


def integer(number):
    return b"J" + struct.pack("<i", number)


def name(module, word):
    return f"c{module}\n{word}\n".encode()


def a_tuple(*parts):
    return b"(" + b"".join(parts) + b"t"


def strides_of(shape):
    """The strides of an array that is stored row by row."""
    strides, count = [], 1
    for extent in reversed(shape):
        strides.insert(0, count)
        count *= extent
    return strides


def storage(key, kind, count, *trailing):
    """`count` numbers of a type such as FloatStorage; `trailing` ends their description."""
    return a_tuple(text("storage"), name("torch", kind), text(key), text("cpu"), integer(count), *trailing)


def tensor(stored, shape, strides=None, offset=0, rebuild=("torch._utils", "_rebuild_tensor_v2")):
    """A view of the result of `storage`."""
    strides = strides_of(shape) if strides is None else strides
    return name(*rebuild) + a_tuple(
        stored + b"Q", integer(offset), a_tuple(*map(integer, shape)), a_tuple(*map(integer, strides)), b"\x89",
        name("collections", "OrderedDict") + b")R") + b"R"


def dictionary(entries):
    """The complete pickle of pairs of a tensor's name and its pickled form."""
    return b"\x80\x02}(" + b"".join(text(key) + value for key, value in entries) + b"u."
