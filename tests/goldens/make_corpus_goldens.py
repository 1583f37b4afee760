#!/usr/bin/env python3
"""Digests of the reference packages' results for the eleven megabytes of tokenizer_corpus.py.

    make_corpus_goldens.py [--shared DIR] [--only NAME]... [--keep DIR]

Writes tests/goldens/tokenizers/corpus.json: for each tokenizer of make_tokenizer_goldens.py and of the bundled models its
`files` and `blocks`, one per megabyte: SHA-256 over u32 count + i32 ids of each text, and over u32 length + bytes of the
decoded text, both little-endian. Tokenizers whose files are missing keep their entries. --keep writes the digested data
to DIR/NAME, in the format of `mica-tokenize`, to find the first difference.
"""

import argparse
import hashlib
import json
import pathlib
import struct

import make_tokenizer_goldens as goldens
import tokenizer_corpus as corpus

SIZE, BLOCK = 10_000_000, 1_000_000
OUT = goldens.OUT / "corpus.json"
BUNDLED = {f"bundled_{kind}": {file: f"models:minimind-{kind}/{file}" for file in ("tokenizer.json", "tokenizer_config.json")}
           for kind in ("dense", "moe")}


def records(engine, texts):
    """Bytes of the ids and of the decoded text of each of `texts`."""
    if isinstance(engine, goldens.HuggingFace):
        rows = [encoding.ids for encoding in engine.tokenizer.encode_batch(texts, add_special_tokens=False)]
        decoded = engine.tokenizer.decode_batch(rows)
    elif isinstance(engine, goldens.Tiktoken):
        rows = [engine.encode(text) for text in texts]
        decoded = [engine.decode(row) for row in rows]
    else:
        rows = engine.processor.encode(texts)
        decoded = [engine.decode(row) for row in rows]
    for row, text in zip(rows, decoded):
        data = text.encode()
        yield struct.pack(f"<I{len(row)}i", len(row), *row), struct.pack("<I", len(data)) + data


def blocks_of(texts):
    """The texts in blocks of a megabyte."""
    block, size = [], 0
    for text in texts:
        block.append(text.decode())
        size += len(text)
        if size >= BLOCK:
            yield block
            block, size = [], 0
    if block:
        yield block


def digests(engine, keep):
    out = []
    for block in blocks_of(corpus.texts(SIZE)):
        ids, text = hashlib.sha256(), hashlib.sha256()
        for row, decoded in records(engine, block):
            ids.update(row)
            text.update(decoded)
            if keep:
                keep.write(row + decoded)
        out.append({"ids": ids.hexdigest()[:32], "text": text.hexdigest()[:32]})
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=pathlib.Path, default=goldens.HERE.parents[1] / ".." / "shared")
    parser.add_argument("--only", action="append")
    parser.add_argument("--keep", type=pathlib.Path)
    arguments = parser.parse_args()
    roots = {"data": goldens.DATA, "shared": arguments.shared, "models": goldens.HERE.parent / "models"}
    made = json.loads(OUT.read_text())["tokenizers"] if OUT.exists() else {}
    for name, files in {**goldens.all_files(), **BUNDLED}.items():
        paths = {key: roots[value.split(":")[0]] / value.split(":")[1] for key, value in files.items()}
        if (arguments.only and name not in arguments.only) or not all(path.exists() for path in paths.values()):
            continue
        keep = open(arguments.keep / name, "wb") if arguments.keep else None
        made[name] = {"files": files, "blocks": digests(goldens.reference(paths), keep)}
        print(name, flush=True)
    whole = hashlib.sha256()
    for text in corpus.texts(SIZE):
        whole.update(struct.pack("<I", len(text)) + text)
    OUT.write_text(json.dumps({"tokenizers_package": goldens.tokenizers.__version__, "sentencepiece_package": goldens.sentencepiece.__version__,
                               "bytes": SIZE, "block": BLOCK, "corpus": whole.hexdigest(), "tokenizers": dict(sorted(made.items()))},
                              indent=1) + "\n")


if __name__ == "__main__":
    main()
