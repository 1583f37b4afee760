#!/usr/bin/env python3
"""Changes single bytes of a compiled program and runs it: each change is reported as an error or has no effect.

    mutants.py MICA MODEL [--seconds S] [--seed N]

All bytes of header and footer are changed, and as many others of manifest, tokenizer, code and the padding between them as the time
allows, from both ends of each part and anywhere within it. Weights are changed as well, and checked by --verify-weights. MODEL is a
folder whose program answers environment.PROMPT.
"""
import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time

import environment
import hostile

PAGE = 4096
# Structures of backends/runtime/program/Format.h.
HEADER, FOOTER, INTERPRETER = 32 + 32 * 16, 32, 3840


class Program:
    """A program in a separate file, of which a byte is changed for a run."""

    def __init__(self, path):
        self.path = path
        with open(path, "rb") as file:
            self.bytes = file.read()
        info = json.loads(hostile.run([path, "info", "--json"]).stdout)
        self.sections = {section["name"]: (section["offset"], section["bytes"]) for section in info["sections"]}
        self.header = -(-self.sections["launcher"][1] // PAGE) * PAGE
        self.used = [(offset, offset + size) for offset, size in self.sections.values()]
        self.used += [(self.header, self.header + PAGE), (len(self.bytes) - FOOTER, len(self.bytes))]

    def write(self, offset, value):
        with open(self.path, "r+b", buffering=0) as file:
            os.pwrite(file.fileno(), bytes([value]), offset)

    def run(self, *arguments, offset, value):
        self.write(offset, value)
        try:
            return hostile.run([self.path, *arguments], timeout=20)
        except OSError as error:  # the kernel does not start it
            return error
        finally:
            self.write(offset, self.bytes[offset])

    def padding(self):
        """Ranges of bytes that belong to no part."""
        end = 0
        for first, last in sorted(self.used):
            if first > end:
                yield end, first
            end = max(end, last)


def changed(byte, chance):
    """Another value: one flipped bit, or any value."""
    return byte ^ (1 << chance.randrange(8)) if chance.random() < 0.5 else byte ^ chance.randrange(1, 256)


def faults_of_run(result, answer, harmless):
    """`harmless`: whether the correct answer is an allowed result."""
    if isinstance(result, OSError):
        return
    if result.returncode == 0:
        if not harmless:
            yield "is not refused"
        elif result.stdout != answer:
            yield f"another answer: {result.stdout[:80]!r}"
        return
    error = result.stderr.decode("utf-8", "replace")
    if result.returncode != 1 or not re.fullmatch(r"mica: error: [^\n]*\n", error):
        yield f"exit status {result.returncode}: {error[:200]!r}"


def places(first, size, chance):
    """An endless sequence of positions in a range: its ends, then random ones."""
    for i in range(16):
        yield first + min(i, size - 1)
        yield first + max(size - 1 - i, 0)
    while True:
        yield first + chance.randrange(size)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("mica")
    parser.add_argument("model")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    chance, failures, counts = random.Random(arguments.seed), [], {}
    with tempfile.TemporaryDirectory(prefix="mica-mutants-") as scratch:
        path = os.path.join(scratch, "program")
        subprocess.run([arguments.mica, "compile", arguments.model, "-o", path], check=True, stdin=subprocess.DEVNULL)
        program = Program(path)
        answer = environment.ANSWER

        def attempt(part, offset, command, harmless):
            value = changed(program.bytes[offset], chance)
            result = program.run(*command, offset=offset, value=value)
            counts[part] = counts.get(part, 0) + 1
            failures.extend(f"{part}, byte {offset} changed from {program.bytes[offset]} to {value}: {fault}"
                            for fault in faults_of_run(result, answer, harmless))

        run = environment.PROMPT
        for offset in range(program.header, program.header + HEADER):
            attempt("header", offset, run, False)
        for offset in range(len(program.bytes) - FOOTER, len(program.bytes)):
            attempt("footer", offset, run, False)
        # The path of the ELF interpreter, which the kernel reads: zeros around it have no meaning.
        for offset in range(program.header + INTERPRETER, program.header + INTERPRETER + 40):
            attempt("interpreter", offset, run, True)
        parts = {name: (places(*program.sections[name], chance), run, False) for name in ("manifest", "tokenizer", "code")}
        parts["padding"] = ((place for first, last in program.padding() for place in (first, last - 1)), run, True)
        parts["weights"] = (places(*program.sections["weights"], chance), [*run, "--verify-weights"], False)
        end = time.monotonic() + arguments.seconds
        while parts and time.monotonic() < end:
            for name, (offsets, command, harmless) in list(parts.items()):
                offset = next(offsets, None)
                if offset is None:
                    del parts[name]
                else:
                    attempt(name, offset, command, harmless)
        # The last run, without a change.
        failures.extend(faults_of_run(hostile.run([path, *run]), answer, True))
        if hostile.run([path, "info", "--check"]).returncode != 0:
            failures.append("the program has not been restored")
    for name in ("manifest", "tokenizer", "code", "weights"):
        if counts.get(name, 0) < 20:
            failures.append(f"{name}: only {counts.get(name, 0)} changes, allow more --seconds")
    for failure in failures[:50]:
        print(f"mutants: {failure}")
    print(f"mutants: {sum(counts.values())} changes, {len(failures)} failures: {counts}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
