#!/usr/bin/env python3
"""Writes tests/fuzz/corpus/torch-file: small dictionaries, valid and malicious, as saved by torch.save (torch 2.15.0).

    python tests/fuzz/make_torch_corpus.py [FOLDER]

NAME.pkl is the pickle in NAME.bin after the p by which the fuzzer recognizes it.
"""

import collections
import os
import pathlib
import sys
import zipfile

import torch


class Evil:
    """Code execution by a pickle."""

    def __reduce__(self):
        return os.system, ("true",)


def module():
    linear = torch.nn.Linear(2, 1)
    with torch.no_grad():
        linear.weight.copy_(torch.tensor([[1.0, 2.0]]))
        linear.bias.fill_(3)
    return linear.state_dict()


def files():
    numbers = torch.arange(12, dtype=torch.float32)
    yield "plain", collections.OrderedDict(
        a=torch.arange(6, dtype=torch.float32).reshape(2, 3), b=torch.arange(4, dtype=torch.bfloat16),
        half=torch.arange(5, dtype=torch.float16), n=torch.tensor(7))
    yield "shared", {"rows": numbers[4:10].reshape(3, 2), "all": numbers, "again": numbers,
                     "p": torch.nn.Parameter(torch.ones(2))}
    yield "module", module()
    yield "evil", {"e": Evil()}
    yield "transposed", {"t": torch.arange(6, dtype=torch.float32).reshape(2, 3).T}
    yield "nested", {"state": {"a": torch.arange(6, dtype=torch.float32).reshape(2, 3)}}


def old_files():
    """As written by torch before 1.6."""
    numbers = torch.arange(12, dtype=torch.float32)
    yield "legacy", collections.OrderedDict(
        a=torch.arange(6, dtype=torch.float32).reshape(2, 3), b=torch.arange(4, dtype=torch.bfloat16),
        rows=numbers[4:10].reshape(3, 2), transposed=torch.arange(6, dtype=torch.float32).reshape(2, 3).T)


def main(folder):
    for name, value in old_files():
        torch.save(value, folder / f"{name}.bin", _use_new_zipfile_serialization=False)
    for name, value in files():
        path = folder / f"{name}.bin"
        torch.save(value, path)
        if name in ("plain", "shared", "evil"):
            with zipfile.ZipFile(path) as archive:
                (folder / f"{name}.pkl").write_bytes(b"p" + archive.read(f"{name}/data.pkl"))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "corpus/torch-file")
