#!/usr/bin/env python3
"""Writes seeds of the fuzzers config, torch-file, sentencepiece, gguf, gguf-parts and imatrix: small files, valid and nearly valid, named
after their content.

    make_seeds.py             writes them to tests/fuzz/corpus
    make_seeds.py --check     fails if the corpus lacks one or contains a different one

Uses only Python's standard library and numpy; files written by torch itself are created by make_torch_corpus.py.
"""

import io
import json
import pathlib
import random
import struct
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[1:1] = [str(HERE.parent / "tools"), str(HERE.parent / "e2e")]
import gguf_blocks
import gguf_families
import gguf_parts
import pieces
from torch_pickle import a_tuple, dictionary, integer, name, storage, tensor, text

NUMBERS = struct.pack("<6f", *range(6))


def archive(pickle, storages, root="archive", compression=zipfile.ZIP_STORED, **others):
    """A reproducible zip archive."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        entries = {"data.pkl": pickle, **others, **{f"data/{key}": data for key, data in storages.items()}}
        for key, data in entries.items():
            made.writestr(zipfile.ZipInfo(f"{root}/{key}"), data, compression)
    return file.getvalue()


def one(kind="FloatStorage", count=6, shape=(2, 3), **view):
    """The pickle of one tensor `a`."""
    return dictionary([("a", tensor(storage("0", kind, count), shape, **view))])


def torch_files():
    good = archive(one(), {"0": NUMBERS})
    yield "seed-one.bin", good
    yield "seed-empty.bin", archive(dictionary([]), {})
    yield "seed-scalar.bin", archive(one(count=1, shape=()), {"0": NUMBERS[:4]})
    yield "seed-no-elements.bin", archive(one(count=0, shape=(0, 3)), {"0": b""})
    yield "seed-rows-of-a-storage.bin", archive(one(shape=(2, 2), strides=(3, 1), offset=1), {"0": NUMBERS})
    yield "seed-types.bin", archive(dictionary(
        (kind, tensor(storage(str(i), kind + "Storage", 2), (2,)))
        for i, kind in enumerate(("Half", "BFloat16", "Double", "Long", "Int", "Short", "Char", "Byte", "Bool"))),
        {str(i): bytes(2 * size) for i, size in enumerate((2, 2, 8, 8, 4, 2, 1, 1, 1))})
    yield "seed-byteorder.bin", archive(one(), {"0": NUMBERS}, byteorder=b"little", version=b"3\n")
    # Nearly valid.
    yield "seed-big-endian.bin", archive(one(), {"0": NUMBERS}, byteorder=b"big")
    yield "seed-cut.bin", good[:-30]
    yield "seed-pickle-compressed.bin", archive(one(), {"0": NUMBERS}, compression=zipfile.ZIP_DEFLATED)
    yield "seed-storage-missing.bin", archive(one(), {})
    yield "seed-storage-short.bin", archive(one(), {"0": NUMBERS[:-1]})
    yield "seed-storage-counts-less.bin", archive(one(count=5), {"0": NUMBERS})
    yield "seed-offset-past-its-end.bin", archive(one(offset=1), {"0": NUMBERS})
    yield "seed-offset-negative.bin", archive(one(offset=-1), {"0": NUMBERS})
    yield "seed-extent-negative.bin", archive(one(shape=(-2, 3)), {"0": NUMBERS})
    yield "seed-strides-of-another-rank.bin", archive(one(strides=(1,)), {"0": NUMBERS})
    yield "seed-strides-overlap.bin", archive(one(strides=(0, 1)), {"0": NUMBERS})
    yield "seed-type-unknown.bin", archive(one("QuaternionStorage"), {"0": NUMBERS})
    yield "seed-checksum-wrong.bin", good.replace(NUMBERS, NUMBERS[::-1])
    # Pickles only, after the letter by which the fuzzer recognizes them.
    alone = {
        "one": one(), "rank-of-nine": one(shape=(1,) * 9), "extents-overflow": one(shape=(2**31 - 1,) * 4, strides=(1,) * 4),
        "ends-early": one()[:-1], "goes-on": one() + b"N.",
        "name-of-no-tensor": one(rebuild=("torch._utils", "_rebuild_sparse_tensor")),
        "key-repeated": dictionary([("a", tensor(storage("0", "FloatStorage", 6), (2, 3)))] * 2),
        "key-no-text": b"\x80\x02}(" + integer(1) + integer(2) + b"u.",
        "list": b"\x80\x02](" + text("a") + b"e.", "mark-missing": b"\x80\x02}" + text("a") + b"u.",
        "memo-of-nothing": b"\x80\x02h\x07.", "call-of-a-text": b"\x80\x02" + text("a") + a_tuple() + b"R.",
        "parameter": b"\x80\x02}(" + text("p") + name("torch._utils", "_rebuild_parameter") + a_tuple(
            tensor(storage("0", "FloatStorage", 6), (6,)), b"\x88", name("collections", "OrderedDict") + b")R") + b"Ru.",
        "dictionary-in-itself": b"\x80\x02}q\x00(" + text("a") + b"h\x00u.",
        "tuples-in-tuples": b"\x80\x02" + b")" + b"\x85" * 300 + b".",
    }
    for what, pickle in alone.items():
        yield f"seed-{what}.pkl", b"p" + pickle


def piece_models():
    bpe, unigram = pieces.number_field(3, 2), pieces.number_field(3, 1)

    def normalizer(*fields):
        return pieces.field(3, b"".join(fields))

    good = pieces.model(24)
    yield "seed-bpe", good
    yield "seed-unigram", pieces.model(24, trainer=unigram)
    yield "seed-all-kinds", pieces.model(12, {4: 4, 5: 5}) + pieces.piece("<0x41>", 0, 6)
    yield "seed-bytes", pieces.model(8, trainer=bpe + pieces.number_field(35, 1), trailer=b"".join(
        pieces.piece(f"<0x{byte:02X}>", 0, 6) for byte in range(256)))
    yield "seed-no-prefix", pieces.model(8, trailer=normalizer(pieces.number_field(3, 0), pieces.number_field(4, 0),
                                                              pieces.number_field(5, 0)))
    yield "seed-suffix", pieces.model(8, trainer=bpe + pieces.number_field(24, 1))
    yield "seed-unknown-surface", pieces.model(8, trainer=bpe + pieces.field(44, b" ? "))
    yield "seed-fields-unknown", pieces.model(8, trailer=pieces.field(99, b"later") + pieces.number_field(100, 1 << 40))
    # Nearly valid.
    yield "seed-empty", b""
    yield "seed-words", pieces.model(8, trainer=pieces.number_field(3, 3))
    yield "seed-cut", good[:-1]
    yield "seed-cut-in-a-piece", good[:len(good) // 2]
    yield "seed-kind-unknown", pieces.model(8, {5: 7})
    yield "seed-two-unknown", pieces.model(8, {5: 2})
    yield "seed-none-unknown", pieces.model(8, {0: 1})
    yield "seed-repeated", pieces.model(8) + pieces.piece("a", 0, 1)
    yield "seed-piece-empty", pieces.model(8) + pieces.piece("", 0, 1)
    yield "seed-piece-no-utf8", pieces.model(8) + pieces.field(1, pieces.field(1, b"\xff\xfe"))
    yield "seed-score-infinite", pieces.model(8) + pieces.piece("zz", float("inf"), 1)
    yield "seed-score-no-number", pieces.model(8) + pieces.piece("zz", float("nan"), 1)
    yield "seed-byte-misspelled", pieces.model(8) + pieces.piece("<0xG1>", 0, 6)
    yield "seed-byte-without-fallback", pieces.model(8) + pieces.piece("<0x41>", 0, 6)
    yield "seed-length-too-large", pieces.model(8) + b"\x0a" + pieces.varint(1 << 62)
    yield "seed-varint-endless", pieces.model(8) + b"\x0a" + b"\xff" * 11
    yield "seed-wire-type-unknown", pieces.model(8) + b"\x0f\x00"
    yield "seed-map-cut", pieces.model(8, trailer=normalizer(pieces.field(2, b"\x08\x00\x00")))
    yield "seed-map-larger-than-it-is", pieces.model(8, trailer=normalizer(pieces.field(2, struct.pack("<I", 4096) + bytes(5))))
    yield "seed-map-points-outside", pieces.model(8, trailer=normalizer(pieces.field(2, struct.pack("<I", 8) + b"\xff" * 8 + b"\0")))
    yield "seed-denormalizer", pieces.model(8, trailer=pieces.field(5, pieces.field(2, bytes(8))))


def floats(*numbers):
    return struct.pack(f"<{len(numbers)}f", *numbers)


def imatrix(*entries, kind=gguf_parts.F32):
    """The current format of llama-imatrix: two tensors for each (name, sums by matrix, counts of rows)."""
    tensors = []
    for name, sums, counts in entries:
        numbers = [number for row in sums for number in row]
        tensors += [(name + ".in_sum2", (len(sums), len(sums[0])), kind, floats(*numbers)),
                    (name + ".counts", (len(counts), 1), gguf_parts.F32, floats(*counts))]
    return gguf_parts.part({"general.type": gguf_parts.word("imatrix")}, tensors)


def old_imatrix(*entries):
    """The older format: (name, calls, sums of means), concatenated."""
    return struct.pack("<i", len(entries)) + b"".join(
        struct.pack("<i", len(name)) + name + struct.pack("<ii", calls, len(sums)) + floats(*sums)
        for name, calls, sums in entries)


def imatrices():
    experts = ("blk.0.ffn_down_exps.weight", [[1, 2, 3, 4], [5, 6, 7, 8]], [2, 4])
    yield "seed-experts.gguf", imatrix(experts, ("output.weight", [[1, 2]], [3]))
    yield "seed-expert-never-chosen.gguf", imatrix((*experts[:2], [2, 0]))
    yield "seed-experts.dat", old_imatrix((b"blk.0.ffn_down_exps.weight", 3, range(8)), (b"output.weight", 0, [1, 2]))
    yield "seed-what-follows.dat", old_imatrix((b"a", 1, [1])) + struct.pack("<ii", 5, 4) + b"text"
    # Nearly valid.
    yield "seed-count-negative.gguf", imatrix((*experts[:2], [-1, 4]))
    yield "seed-count-infinite.gguf", imatrix((*experts[:2], [float("inf"), 4]))
    yield "seed-count-not-a-number.gguf", imatrix((*experts[:2], [float("nan"), 4]))
    yield "seed-sum-infinite.gguf", imatrix(("a", [[float("inf")]], [1]))
    yield "seed-sum-overflows.gguf", imatrix(("a", [[3e38]], [1e-30]))
    yield "seed-experts-do-not-divide.gguf", imatrix((*experts[:2], [1, 2, 3]))
    yield "seed-cut.gguf", imatrix(experts)[:-40]
    yield "seed-name-empty.gguf", imatrix(("", [[1]], [1]))
    yield "seed-name-empty.dat", old_imatrix((b"", 1, [1]))
    yield "seed-entries-negative.dat", struct.pack("<i", -1)
    yield "seed-entries-more-than-there-are.dat", struct.pack("<i", 1 << 30) + old_imatrix((b"a", 1, [1]))[4:]
    yield "seed-calls-negative.dat", old_imatrix((b"a", -1, [1]))
    yield "seed-sums-of-2-31.dat", struct.pack("<ii", 1, 1) + b"a" + struct.pack("<ii", 1, (1 << 31) - 1)
    yield "seed-sums-none.dat", old_imatrix((b"a", 1, []))


#: Models with states, windows or layers of several kinds, by family.
HYBRIDS = ("bamba", "falcon-h1", "gemma4-moe", "gemma4-shared", "gemma4-vision", "granite-hybrid", "lfm2", "lfm2-moe", "mamba2", "nemotron-h",
           "nemotron-h-moe", "qwen3-5", "qwen3-5-moe-vision", "qwen3-next")
#: Of which GGUF files have keys of their own.
HYBRIDS_OF_FILES = ("falcon-h1", "gemma4-shared", "granite-hybrid", "nemotron-h", "qwen3-5")
#: Configs that are nearly valid: name -> (model, changes).
NEARLY = {
    "convolution-of-one-tap": ("lfm2", {"conv_L_cache": 1}),
    "groups-do-not-divide": ("mamba2", {"n_groups": 4}),
    "heads-do-not-divide": ("qwen3-5", {"linear_num_value_heads": 3}),
    "too-few-layer-types": ("qwen3-5", {"layer_types": ["linear_attention"]}),
    "unknown-layer-type": ("granite-hybrid", {"layer_types": ["mamba", "rwkv"]}),
    "block-types-and-a-pattern": ("nemotron-h", {"hybrid_override_pattern": "M-M*-"}),
    "sizes-of-a-missing-layer": ("gemma4-shared", {"per_layer_config": {"9": {"head_dim": 8}}}),
    "all-layers-share": ("gemma4-shared", {"num_kv_shared_layers": 4}),
    "state-of-2-31": ("falcon-h1", {"mamba_d_state": 1 << 31}),
}


def golden(model):
    return HERE.parent / "goldens/models" / model


def configs():
    """The configs of hybrids, with nested ones, lists of layer types and a pattern of letters."""
    read = {model: json.loads((golden(model) / "config.json").read_text(encoding="utf-8")) for model in HYBRIDS}
    made = read | {name: read[model] | changes for name, (model, changes) in NEARLY.items()}
    pattern = {key: value for key, value in read["nemotron-h"].items() if key not in ("layers_block_type", "num_hidden_layers")}
    made["pattern"] = pattern | {"hybrid_override_pattern": "M-M*-", "num_hidden_layers": 5}
    for name, config in made.items():
        yield f"seed-{name}.json", json.dumps(config).encode()


def hybrid_files():
    """Metadata and tensors as of published files; the tensors are zero."""
    for model in HYBRIDS_OF_FILES:
        file = gguf_families.convert(golden(model))
        file.tensors = [(*described, bytes(len(data))) for *described, data in file.tensors]
        with tempfile.TemporaryDirectory() as folder:
            yield f"seed-{model}.gguf", pathlib.Path(file.write(f"{folder}/made")).read_bytes()


def gguf_files():
    """Two random blocks of every type, and hybrids."""
    yield from hybrid_files()
    yield "seed-all-block-types.gguf", gguf_parts.part(gguf_parts.MODEL, [
        (f"blk.0.{name}", (2 * elements,), number, random.Random(number).randbytes(2 * size))
        for name, (number, elements, size) in gguf_blocks.BLOCKS.items()])


def main():
    wrong = 0
    for folder, seeds in (("config", configs()), ("torch-file", torch_files()), ("sentencepiece", piece_models()), ("gguf", gguf_files()),
                          ("gguf-parts", gguf_parts.models()), ("imatrix", imatrices())):
        made = dict(seeds)
        there = {path.name for path in (HERE / "corpus" / folder).glob("seed-*")}
        for seed in sorted({*made, *there}):
            path = HERE / "corpus" / folder / seed
            if sys.argv[1:] == ["--check"]:
                if seed not in made or not path.exists() or path.read_bytes() != made[seed]:
                    print(f"{path}: is not what make_seeds.py writes, run it")
                    wrong += 1
            elif seed in made:
                path.write_bytes(made[seed])
            else:
                path.unlink()
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
