#!/usr/bin/env python3
"""Whether every diagnostic of C++ files has a test.

    check_diagnostics.py --tests FOLDER FILE.cpp|FOLDER...

Every emitOpError/emitError and every requireSize (whose message is `WHAT has size A, expected B (WHY)`) must be met by an
expected-error or expected-warning of a .mlir file below FOLDER: its string literals appear there in this order, with
those that later statements add to a diagnostic that has a name. A message without any literal cannot be checked.
Prints what is missing.
"""

import argparse
import pathlib
import re
import sys

CALL = re.compile(r"\b(?P<name>emit(?:Op)?Error|requireSize)\(")
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
NAMED = re.compile(r"InFlightDiagnostic (\w+) =\s*$")
METHOD = re.compile(r"^LogicalResult (?:\w+::)*(\w+)Op::\w+\(", re.M)
EXPECTED = re.compile(r"expected-(?:error|warning)(?:-re)?\s*(?:@[^{]*)?\{\{(.*)\}\}")


def without_strings(text):
    """`text` with spaces for what stands between quotes, so that what is left is code."""
    return LITERAL.sub(lambda match: '"' + " " * (len(match[0]) - 2) + '"', text)


def closing(text, begin):
    """The index behind the parenthesis that closes the one before `begin`."""
    code, depth = without_strings(text[begin:]), 1
    for index, character in enumerate(code):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if not depth:
            return begin + index + 1
    return len(text)


def statement_end(text, begin):
    """The index of the semicolon that ends the statement."""
    return without_strings(text[begin:]).index(";") + begin


def messages_of(text, match):
    """The literals of each message that the call at `match` begins: of its own statement, and where it names a
    diagnostic, of each later statement of the function that adds to that one."""
    end = statement_end(text, match.end())
    begin = text.rfind(";", 0, match.start()) + 1
    if text[match.end() : end] == ")" and re.search(r"\{\s*return [\w.>-]*$", text[begin : match.start()]):
        return []  # a callback: who calls it says what is wrong
    own = LITERAL.findall(text[match.end() : end])
    named = NAMED.search(re.sub(r"[\w>.-]*$", "", text[begin : match.start()]))
    if not named:
        return [own]
    function = text[end : text.index("\n}", end)]
    added = [LITERAL.findall(function[m.end() : statement_end(function, m.end())])
             for m in re.finditer(rf"(?<!\w){named[1]} <<", function)]
    return [own + more for more in added if more] or [own]


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
            for literals in messages_of(text, match):
                yield line_of(text, match), prefix + ".*".join(map(re.escape, literals)) if literals else None
            continue
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
            if pattern is None:
                print(f"{source}:{line}: nothing is known of what this says")
                missing += 1
            elif not any(re.search(pattern, message) for message in expected):
                print(f"{source}:{line}: no expected-error matches {pattern}")
                missing += 1
    if missing or not total:
        sys.exit(f"{missing} of {total} diagnostics are not tested")
    print(f"all {total} diagnostics are tested")


if __name__ == "__main__":
    main()
