#!/usr/bin/env python3
"""Creates the inputs for comparing block formats with peers, from one GGUF file: its quantized files and a program for each.

    blocks.py OUT --mica MICA --quantize LLAMA_QUANTIZE --source MODEL.gguf [--formats Q4_K_M ...] [--text FILE]
              [--published MODEL...] [--peer NAME LLAMA_BENCH]... [--max-seq 8448]

For each format, OUT/FORMAT.gguf is the file, which peers run too, OUT/FORMAT the program with default options, and OUT/FORMAT-int8 the
program with `--rows int8`; with --text also OUT/FORMAT-f32, the same file computed in f32, from which `compare.py` measures the KL
divergence of both. OUT/cases.json is the input of `compare.py --config`. Existing files are not created again. The format `source` is
the file itself.
"""

import argparse
import json
import pathlib
import subprocess
import sys

from shapes import add_published, once

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from quality.gguf_formats import FORMATS  # noqa: E402

ROWS = {"": [], "-int8": ["--rows", "int8"]}
SOURCE = "source"


def quantized(args, kind, out):
    """Creates the file of a format."""
    if kind == SOURCE:
        return args.source

    def make(part):
        stored, options = FORMATS[kind]
        subprocess.run([args.quantize, "--allow-requantize", *options, args.source, part, stored], check=True, stdout=subprocess.DEVNULL)
    return once(out / f"{kind}.gguf", make)


def cases_of(args, kind, out):
    file = quantized(args, kind, out)

    def program(name, *options):
        def make(part):
            subprocess.run([args.mica, "compile", file, "--max-seq", str(args.max_seq), *options, "-o", part], check=True)
        return once(out / name, make)

    for suffix, options in ROWS.items():
        stored = args.stored if kind == SOURCE and args.stored else kind
        case = {"name": " ".join([stored, *options]), "mica": str(program(kind + suffix, *options)),
                "models": {peer: str(file) for peer, _ in args.peer}}
        if suffix:
            case["tests"] = ["prefill"]  # decode rows are the same
        if args.text:
            case["quality"] = {"reference": str(program(f"{kind}-f32", "--weights", "f32")), "text": str(args.text)}
        elif args.published:
            case["quality"] = {"published": args.published, "format": stored}
        yield case


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--mica", required=True)
    parser.add_argument("--quantize", required=True, help="llama.cpp's llama-quantize")
    parser.add_argument("--source", required=True, type=pathlib.Path, help="what the files are made of")
    parser.add_argument("--formats", nargs="+", default=["Q4_0", "Q4_K_M", "Q6_K", "Q8_0"], choices=[SOURCE, *FORMATS])
    parser.add_argument("--text", type=pathlib.Path, help="measure the KL divergence on this text; of a trained model only")
    add_published(parser)
    parser.add_argument("--stored", metavar="FORMAT", help="the format of `source`")
    parser.add_argument("--peer", nargs=2, action="append", default=[], metavar=("NAME", "LLAMA_BENCH"))
    parser.add_argument("--max-seq", type=int, default=8448, help="positions that programs hold (default 8448)")
    args = parser.parse_args(argv)
    out = args.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    config = {"peers": {name: {"bench": bench} for name, bench in args.peer},
              "cases": [case for kind in args.formats for case in cases_of(args, kind, out)]}
    (out / "cases.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
