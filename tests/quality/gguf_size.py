"""The number of bytes of the tensors in a GGUF file."""

import math
import struct

SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
STRING, ARRAY = 8, 9


class Reader:
    def __init__(self, file):
        self.file = file

    def number(self, kind):
        return struct.unpack("<" + kind, self.file.read(struct.calcsize(kind)))[0]

    def text(self):
        return self.file.read(self.number("Q"))

    def skip(self, kind):
        if kind == STRING:
            self.text()
        elif kind == ARRAY:
            inner, count = self.number("I"), self.number("Q")
            if inner in SIZES:
                self.file.seek(SIZES[inner] * count, 1)
            else:
                for _ in range(count):
                    self.skip(inner)
        else:
            self.file.seek(SIZES[kind], 1)


def weights(path):
    """(parameters, bytes of the tensors including padding) of a file."""
    with open(path, "rb") as f:
        reader = Reader(f)
        if reader.file.read(4) != b"GGUF":
            raise ValueError(f"{path} is not a GGUF file")
        reader.number("I")
        tensors, keys = reader.number("Q"), reader.number("Q")
        alignment = 32
        for _ in range(keys):
            name, kind = reader.text(), reader.number("I")
            if name == b"general.alignment":
                alignment = reader.number("I")
            else:
                reader.skip(kind)
        parameters = 0
        for _ in range(tensors):
            reader.text()
            parameters += math.prod(reader.number("Q") for _ in range(reader.number("I")))
            reader.number("I"), reader.number("Q")
        begin = f.tell() + -f.tell() % alignment
        return parameters, f.seek(0, 2) - begin


def bits(path):
    """Bits per weight, over all tensors of a file."""
    parameters, size = weights(path)
    return 8 * size / parameters
