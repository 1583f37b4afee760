#!/usr/bin/env python3
"""Runs the examples in the descriptions of passes.

    run_pass_examples.py [--mica-opt PATH] FILE.td...

A description shows either one block ```mlir with `expected-error` comments, which the pass must reject, or two blocks:
its input and its output. The second is a whole module, or an excerpt, which has a line `...`: then each of its lines must be
in the output, in this order; values may have other names there, and `...` stands for any text.
The pass runs with the options of a first line `// mica-opt OPTIONS`, or without any.
"""

import argparse
import re
import shlex
import subprocess
import sys
import tempfile

from extract_examples import BLOCK, DEFINITION

COMMAND = re.compile(r"\s*// mica-opt (.*)")
PIECE = re.compile(r"(\.\.\.|%[\w$-]+)")


class Wrong(Exception):
    """An example is wrong."""


def run(mica_opt, text, *options):
    """The output of mica-opt for `text`."""
    with tempfile.NamedTemporaryFile("w", suffix=".mlir", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        done = subprocess.run([mica_opt, file.name, *options], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Wrong(done.stderr.strip() or f"exit status {done.returncode}")
    return done.stdout


def match_line(wanted, line, names):
    """The names of values, extended by those that differ between `wanted` and `line`; None if the lines do not match."""
    new, pattern = {}, ""
    for piece in PIECE.split(wanted):
        if piece == "...":
            pattern += ".*"
        elif not piece.startswith("%"):
            pattern += re.escape(piece)
        elif piece in names:
            pattern += re.escape(names[piece]) + r"\b"
        elif piece in new:
            pattern += f"(?P={new[piece]})"
        else:
            new[piece] = f"v{len(new)}"
            pattern += rf"(?P<{new[piece]}>%[\w$-]+)"
    found = re.fullmatch(pattern, line)
    return {**names, **{name: found.group(group) for name, group in new.items()}} if found else None


def check_excerpt(excerpt, output):
    """Checks that the lines of the excerpt are in the output, in order."""
    lines, names = iter(output.splitlines()), {}
    for wanted in map(str.strip, excerpt.splitlines()):
        if wanted in ("", "...") or wanted.startswith("//"):
            continue
        for line in lines:
            extended = match_line(wanted, line.strip(), names)
            if extended is not None:
                names = extended
                break
        else:
            raise Wrong(f"no line is, at its place,\n  {wanted}\nin\n{output}")


def check(mica_opt, name, blocks):
    """Checks that the pass does what its example shows."""
    if not blocks:
        raise Wrong("has no example")
    command = COMMAND.match(blocks[0])
    options = shlex.split(command.group(1)) if command else ["--" + name]
    if not any(option.startswith("--" + name) for option in options):
        raise Wrong(f"the example does not run --{name}")
    if len(blocks) == 1 and "expected-error" in blocks[0]:
        run(mica_opt, blocks[0], *options, "--verify-diagnostics")
    elif len(blocks) != 2:
        raise Wrong("the example is neither an error nor before and after")
    elif re.search(r"^ *\.\.\.$", blocks[1], re.M):
        check_excerpt(blocks[1], run(mica_opt, blocks[0], *options))
    else:
        made, wanted = run(mica_opt, blocks[0], *options), run(mica_opt, blocks[1])
        if made != wanted:
            raise Wrong(f"makes\n{made}\nand not\n{wanted}")
        if run(mica_opt, blocks[0]) == wanted:
            raise Wrong("changes nothing in its example")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mica-opt", default="mica-opt")
    parser.add_argument("sources", nargs="+")
    args = parser.parse_args()
    total, wrong = 0, 0
    for source in args.sources:
        with open(source, encoding="utf-8") as file:
            definitions = [match for match in DEFINITION.finditer(file.read()) if match.group(1) == "Pass"]
        for definition in definitions:
            total += 1
            try:
                check(args.mica_opt, definition.group(2), BLOCK.findall(definition.group(0)))
            except Wrong as error:
                print(f"{source}: {definition.group(2)}: {error}")
                wrong += 1
    if wrong or not total:
        sys.exit(f"{wrong} of {total} passes do not do what their examples show")
    print(f"all {total} passes do what their examples show")


if __name__ == "__main__":
    main()
