#!/usr/bin/env python3
"""Runs the examples in the descriptions of ops by the reference interpreter.

    run_op_examples.py [--mica-interpret PATH] FOLDER FILE.td...

Dynamic extents are 4, numbers are those of make_npy.py, all indices count from 0, but all rows belong to sequence 0. Each example must
compute its op, with finite results. Ops on symbols, which have no value, and functions of integers with scales, which .npy files cannot
contain, are skipped and named. FOLDER is for the inputs.
"""

import argparse
import os
import re
import subprocess
import sys

sys.path += [os.path.dirname(os.path.abspath(__file__)), os.path.join(os.path.dirname(__file__), "../../../tools")]
import make_npy
from extract_examples import DIALECT, examples_of

FUNCTION = re.compile(r"func\.func @(\w+)\((.*?)\)\s*(?:->[^{]*)?\{", re.S)
ARGUMENT = re.compile(r"%(\w+): (tensor<([\dx?]*?)x?(f32|bf16|f16|i32|i1)>|index|!mica\.kv_cache<[^>]*>)")
EXTENT = 4


def write_argument(folder, name, kind, shape, element):
    """The path of a file with numbers for an argument."""
    path = os.path.join(folder, name + ".npy")
    extents = [EXTENT if n == "?" else int(n) for n in shape.split("x")] if shape else []
    if kind == "index":
        make_npy.write(path, name, "i32:0")
    elif name == "sequences":
        make_npy.write(path, name, "i32:" + ",".join(["0"] * extents[0]), shape=tuple(extents))
    elif element == "i32":
        count = extents[-1] if len(extents) > 1 else EXTENT
        rows = ",".join(str(i % count) for i in range(extents[0] * (count if len(extents) > 1 else 1)))
        make_npy.write(path, name, "i32:" + rows, shape=tuple(extents))
    elif element == "i1":
        make_npy.write(path, name, "i32:" + ",".join(["1"] * (extents[0] * extents[1])), shape=tuple(extents))
    else:
        make_npy.write(path, name, "x".join(map(str, extents)))
    return path


def run(tool, folder, op, text):
    """Describes a problem with an example, or nothing; None if it cannot be run."""
    function = FUNCTION.search(text)
    if not function or "!mica.int" in function.group(2):
        return None
    place = os.path.join(folder, op)
    os.makedirs(place, exist_ok=True)
    source = os.path.join(place, "example.mlir")
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    command = [tool, source, "--function", function.group(1), "--trace", "--cache", f"{EXTENT}x{EXTENT}",
               "--weights", place]
    for name, shape in make_npy.weights_of(source):
        make_npy.write(os.path.join(place, name + ".npy"), name, shape)
    for name, kind, shape, element in ARGUMENT.findall(function.group(2)):
        if not kind.startswith("!mica"):
            command += ["--input", write_argument(place, name, kind, shape, element)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr.strip()
    computed = [line for line in done.stderr.splitlines() if line.startswith(f"mica.{op} ")]
    if not computed:
        return "the op was not computed"
    return "".join(line[:200] for line in computed if re.search(r"\b(nan|inf)\b", line))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mica-interpret", default="mica-interpret")
    parser.add_argument("folder")
    parser.add_argument("sources", nargs="+")
    args = parser.parse_args()
    dialects = [found.group(1) for path in args.sources if (found := DIALECT.search(open(path, encoding="utf-8").read()))]
    count, left_out, wrong = 0, [], 0
    for source in args.sources:
        for op, text in examples_of(source, dialects[0]):
            problem = run(args.mica_interpret, args.folder, op, text)
            if problem is None:
                left_out.append(op)
                continue
            count += 1
            if problem:
                print(f"{source}: {op}: {problem}")
                wrong += 1
    print("left out:", *left_out)
    if wrong or not count:
        sys.exit(f"{wrong} of {count} examples do not run")
    print(f"{count} examples run")


if __name__ == "__main__":
    main()
