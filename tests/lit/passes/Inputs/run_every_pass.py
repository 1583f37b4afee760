#!/usr/bin/env python3
"""Runs every pass of mica-opt on the files of every stage and compares the outcomes with verdicts.txt.

    run_every_pass.py MICA-OPT MICA MODEL.mlir [--write]

A pass changes a file or leaves it unchanged, and the result parses and verifies, or it rejects the file itself with the
error in the table. `--write` rewrites the table: review the difference.
"""

import os
import re
import subprocess
import sys
import tempfile

STAGES = ("model", "fused", "kernels", "loops", "llvm")
TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "verdicts.txt")
# So that the files are the same on every machine.
OPTIONS = ("--target", "sapphirerapids", "--weights", "bf16")
CHANGED, UNCHANGED = "changed", "unchanged"
# Outcomes that are wrong whatever the table contains.
FAULTS = ("status ", "result is rejected: ", "made invalid IR: ")


def run(command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
                          check=False)


def error_of(done):
    """The first printed error; "status N" if it failed without an error."""
    said = re.search(r"error: (.*)", done.stderr.decode())
    return said[1].rstrip() if done.returncode == 1 and said else f"{FAULTS[0]}{done.returncode}"


def verdict(opt, name, path, made):
    """The outcome of the pass `name` for the file at `path`, which mica-opt has written."""
    done = run([opt, path, "--" + name, "-o", made])
    if done.returncode:
        # The pass itself rejects the file: an error of the verifier afterwards means that it made invalid IR.
        unverified = run([opt, path, "--" + name, "--verify-each=false", "-o", made])
        return error_of(done) if unverified.returncode else FAULTS[2] + error_of(done)
    again = run([opt, made, "-o", os.devnull])
    if again.returncode:
        return FAULTS[1] + error_of(again)
    with open(path, "rb") as before, open(made, "rb") as after:
        return UNCHANGED if before.read() == after.read() else CHANGED


def read_table():
    """Lines `PASS STAGE... VERDICT`, as {(pass, stage): verdict}; stages are separated by commas."""
    table = {}
    with open(TABLE, encoding="utf-8") as file:
        for line in file:
            name, stages, expected = line.rstrip("\n").split(" ", 2)
            table.update({(name, stage): expected for stage in stages.split(",")})
    return table


def write_table(verdicts):
    lines = {}
    for (name, stage), found in verdicts.items():
        lines.setdefault((name, found), []).append(stage)
    with open(TABLE, "w", encoding="utf-8") as file:
        file.writelines(f"{name} {','.join(stages)} {found}\n" for (name, found), stages in lines.items())


def main():
    opt, mica, model = sys.argv[1:4]
    names = re.findall(r"^ +--((?:mica|cpu)-[\w-]+)", run([opt, "--help"]).stdout.decode(), re.MULTILINE)
    verdicts = {}
    with tempfile.TemporaryDirectory() as folder:
        paths = {stage: os.path.join(folder, stage + ".mlir") for stage in STAGES}
        for stage, path in paths.items():
            written = os.path.join(folder, "written.mlir")
            subprocess.run([mica, "compile", model, *OPTIONS, "--emit", stage, "-o", written], check=True)
            subprocess.run([opt, written, "-o", path], check=True)
        for name in sorted(names):
            for stage, path in paths.items():
                verdicts[name, stage] = verdict(opt, name, path, os.path.join(folder, "made.mlir"))
    if "--write" in sys.argv[4:]:
        write_table(verdicts)
    expected = read_table()
    wrong = [key for key in sorted({*verdicts, *expected})
             if verdicts.get(key) != expected.get(key) or expected[key].startswith(FAULTS)]
    for key in wrong:
        print(f"--{key[0]} on stage {key[1]}: {verdicts.get(key)!r} instead of {expected.get(key)!r}")
    print(f"{len(verdicts)} runs of {len(names)} passes, {len(wrong)} wrong")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
