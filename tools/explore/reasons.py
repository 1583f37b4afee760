#!/usr/bin/env python3
"""Extracts the comments `a => b` of patterns from C++ files.

    reasons.py OUTPUT FILE...

Writes a line `{"NAME", "a => b"},` for each struct or class whose comment contains an arrow.
"""

import json
import re
import sys

BLOCK = re.compile(r"((?:^//[^\n]*\n)+)(?:template <[^\n]*>\s)?(?:struct|class) (\w+)", re.MULTILINE)


def reasons(text):
    for comment, name in BLOCK.findall(text):
        words = " ".join(line.lstrip("/").strip() for line in comment.splitlines())
        if " => " in words:
            yield name, words


def main():
    output, *files = sys.argv[1:]
    lines = []
    for file in sorted(files):
        with open(file, encoding="utf-8") as f:
            lines += [f"{{{json.dumps(name)}, {json.dumps(words)}}},\n" for name, words in reasons(f.read())]
    with open(output, "w", encoding="utf-8") as f:
        f.writelines(lines)


main()
