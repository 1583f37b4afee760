#!/usr/bin/env python3
"""Prints the examples in the descriptions of TableGen files as one file for `mica-opt --split-input-file`.

    extract_examples.py FILE.td...

An example is a block ```mlir ... ``` that parses by itself. Fails for an op or pass without an example, and for an op
whose example does not use it.
"""

import re
import sys

DEFINITION = re.compile(r"^def \w+\s*:\s*(\w+)<\"([\w.-]+)\".*?^}", re.M | re.S)
DIALECT = re.compile(r'let name = "(\w+)"')
BLOCK = re.compile(r"^ *```mlir\n(.*?)^ *```", re.M | re.S)


def is_documented_kind(base):
    """Ops and passes; attributes, types and enums are shown by the ops that use them."""
    return base == "Pass" or base.endswith("Op")


def examples_of(path, dialect):
    """Yields (name, text) for every example of the file."""
    text = open(path, encoding="utf-8").read()
    for match in DEFINITION.finditer(text):
        base, name = match.groups()
        if not is_documented_kind(base):
            continue
        blocks = BLOCK.findall(match.group(0))
        if not blocks:
            sys.exit(f"{path}: {name} has no example")
        if base != "Pass" and not any(f"{dialect}.{name}" in block for block in blocks):
            sys.exit(f"{path}: the example of {name} does not use {dialect}.{name}")
        for block in blocks:
            yield name, block


def main():
    paths = sys.argv[1:]
    dialects = [found.group(1) for path in paths if (found := DIALECT.search(open(path, encoding="utf-8").read()))]
    dialect = dialects[0] if dialects else ""
    parts = [f"// {name}\n{text}" for path in paths for name, text in examples_of(path, dialect)]
    if not parts:
        sys.exit("no examples found")
    print("// -----\n".join(parts))


if __name__ == "__main__":
    main()
