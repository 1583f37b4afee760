#!/usr/bin/env python3
"""Whether every diagnostic of C++ files has a test.

    check_diagnostics.py --tests FOLDER FILE.cpp|FOLDER...

Every emitOpError/emitError and every requireSize (whose message is `WHAT has size A, expected B (WHY)`) must be met by an
expected-error or expected-warning of a .mlir file below FOLDER: its string literals appear there in this order.
Prints what is missing.
"""

import argparse
import pathlib
import re
import sys

CALL = re.compile(r"\b(?P<name>emit(?:Op)?Error|requireSize)\(")
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
METHOD = re.compile(r"^LogicalResult (?:\w+::)*(\w+)Op::\w+\(", re.M)
EXPECTED = re.compile(r"expected-(?:error|warning)(?:-re)?\s*(?:@[^{]*)?\{\{(.*?)\}\}")


def closing(text, begin):
    """The index behind the parenthesis that closes the one before `begin`."""
    depth = 1
    while depth and begin < len(text):
        depth += {"(": 1, ")": -1}.get(text[begin], 0)
        begin += 1
    return begin


def statement_end(text, begin):
    """The index of the semicolon that ends the statement."""
    return text.index(";", begin)


def op_prefix(text, position):
    """`'dialect.some_name' op ` where position is in a method of SomeNameOp, else nothing."""
    methods = [match for match in METHOD.finditer(text, 0, position)]
    if not methods or "\n}" in text[methods[-1].start() : position]:
        return ""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_?", methods[-1].group(1)).lower()
    return rf"'\w+\.{snake}' op .*"


def patterns_of(text):
    """Yields (line, regular expression) for every diagnostic of a C++ file."""
    for match in CALL.finditer(text):
        prefix = op_prefix(text, match.start())
        if match.group("name") == "requireSize":
            literals = LITERAL.findall(text[match.end() : closing(text, match.end())])
            if not literals:
                continue  # the declaration
            what, *why = map(re.escape, literals)
            pattern = what + " has size .* " + rf"\((?:{'|'.join(why)})\)"
        else:
            literals = LITERAL.findall(text[match.end() : statement_end(text, match.end())])
            if not literals:
                continue
            pattern = ".*".join(map(re.escape, literals))
        yield line_of(text, match), prefix + pattern


def line_of(text, match):
    return text.count("\n", 0, match.start()) + 1


def files_of(paths):
    """The files themselves, and all .cpp files below the folders."""
    for path in paths:
        yield from sorted(path.rglob("*.cpp")) if path.is_dir() else [path]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests", type=pathlib.Path, required=True)
    parser.add_argument("sources", type=pathlib.Path, nargs="+")
    args = parser.parse_args()
    expected = []
    for test in args.tests.rglob("*.mlir"):
        expected += EXPECTED.findall(test.read_text(encoding="utf-8"))
    total, missing = 0, 0
    for source in files_of(args.sources):
        for line, pattern in patterns_of(source.read_text(encoding="utf-8")):
            total += 1
            if not any(re.search(pattern, message) for message in expected):
                print(f"{source}:{line}: no expected-error matches {pattern}")
                missing += 1
    if missing or not total:
        sys.exit(f"{missing} of {total} diagnostics are not tested")
    print(f"all {total} diagnostics are tested")


if __name__ == "__main__":
    main()
