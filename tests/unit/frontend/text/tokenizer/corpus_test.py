#!/usr/bin/env python3
"""Compares the results of mica-tokenize for tests/goldens/tokenizer_corpus.py with the digests of the reference packages.

    corpus_test.py --tool mica-tokenize

Each tokenizer reads all eleven megabytes, in two to four seconds. Tokenizers whose files are in ../shared are skipped, with a message,
if it is not available.
"""

import argparse
import array
import base64
import concurrent.futures
import hashlib
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[5]
GOLDENS = ROOT / "tests/goldens"
sys.path.insert(0, str(GOLDENS))
import tokenizer_corpus  # noqa: E402  pylint: disable=wrong-import-position

ROOTS = {"data": ROOT / "tests/data/tokenizers", "models": ROOT / "tests/models", "shared": ROOT / "../shared"}


def blocks(texts, size):
    """Numbers of texts per block of `size` bytes."""
    counts, count, made = [], 0, 0
    for text in texts:
        count, made = count + 1, made + len(text)
        if made >= size:
            counts.append(count)
            count, made = 0, 0
    return counts + ([count] if count else [])


def digests(path, counts, first, more):
    """Digests per block, as computed by make_corpus_goldens.py, of a file by mica-tokenize."""
    out = []
    with open(path, "rb") as file:
        for count in counts:
            ids, text = hashlib.sha256(), hashlib.sha256()
            for _ in range(count):
                for digest, width in ((ids, 4), (text, 1)):
                    head = file.read(4)
                    body = file.read(struct.unpack("<I", head)[0] * width)
                    if more and width == 4:
                        body = array.array("i", (i - more if i >= first else i for i in array.array("i", body))).tobytes()
                    digest.update(head + body)
            out.append({"ids": ids.hexdigest()[:32], "text": text.hexdigest()[:32]})
        assert not file.read(1), "more than was asked for"
    return out


def publish(path, place):
    """Writes the rank file with the length of the published one; returns its original number of ranks and the number of added ones."""
    text = path.read_bytes()
    count, wanted = text.count(b"\n"), {"o200k_base.tiktoken": 199998, "qwen.tiktoken": 151643}.get(place.name, 100256)
    more = (base64.b64encode(b"\xff\xfe" + struct.pack("<I", rank)) + b" %d\n" % rank for rank in range(count, wanted))
    place.write_bytes(text + b"".join(more))
    return count, wanted - count


def compare(tool, place, name, golden, corpus, counts):
    """Lines about what differs."""
    paths = {key: ROOTS[value.split(":")[0]] / value.split(":")[1] for key, value in golden["files"].items()}
    if not all(path.exists() for path in paths.values()):
        return [f"{name}: SKIPPED, its files are not there"], 0
    folder = place / name
    folder.mkdir()
    first, more = 1 << 30, 0  # special tokens follow the ranks
    for key, path in paths.items():
        if key.endswith(".tiktoken"):
            first, more = publish(path, folder / key)
        else:
            (folder / key).symlink_to(path.resolve())
    done = subprocess.run([tool, folder, corpus, folder / "out"], capture_output=True, text=True, check=False)
    if done.returncode:
        return [f"{name}: {done.stderr.strip()}"], 1
    got = digests(folder / "out", counts, first, more)
    os.remove(folder / "out")
    assert len(got) == len(golden["blocks"]), name
    wrong = [f"{name}: megabyte {i}: the {key} differ" for i, (a, b) in enumerate(zip(got, golden["blocks"])) for key in a if a[key] != b[key]]
    return wrong or [f"{name}: {len(got)} MB alike"], len(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    arguments = parser.parse_args()
    golden = json.loads((GOLDENS / "tokenizers/corpus.json").read_text())
    texts = list(tokenizer_corpus.texts(golden["bytes"]))
    counts = blocks(texts, golden["block"])
    with tempfile.TemporaryDirectory(prefix="mica-corpus-") as name:
        place = pathlib.Path(name)
        corpus = place / "corpus"
        corpus.write_bytes(b"".join(struct.pack("<I", len(text)) + text for text in texts))
        if hashlib.sha256(corpus.read_bytes()).hexdigest() != golden["corpus"]:
            return "this Python makes another text of the seed"
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            results = list(pool.map(lambda item: compare(arguments.tool, place, *item, corpus, counts), golden["tokenizers"].items()))
    print("\n".join(line for lines, _ in results for line in lines))
    return 1 if any(wrong for _, wrong in results) else 0


if __name__ == "__main__":
    sys.exit(main())
