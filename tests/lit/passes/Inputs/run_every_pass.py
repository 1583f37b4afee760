#!/usr/bin/env python3
"""Runs every pass of mica-opt on the files of every stage: status 0 or 1 and, with 1, an error that says why.

    run_every_pass.py MICA-OPT MICA MODEL.mlir
"""

import os
import re
import subprocess
import sys
import tempfile

STAGES = ("model", "fused", "kernels", "loops", "llvm")


def run(command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
                          check=False)


def complaint(done):
    """What is wrong with how a pass ended, or nothing."""
    if done.returncode not in (0, 1):
        return f"status {done.returncode}"
    if done.returncode == 1 and b"error: " not in done.stderr:
        return "no error is printed"
    return None


def main():
    opt, mica, model = sys.argv[1:]
    names = re.findall(r"^ +--((?:mica|cpu)-[\w-]+)", run([opt, "--help"]).stdout.decode(), re.MULTILINE)
    runs, wrong = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for stage in STAGES:
            path = os.path.join(folder, stage + ".mlir")
            subprocess.run([mica, "compile", model, "--emit", stage, "-o", path], check=True)
            for name in names:
                runs += 1
                if said := complaint(run([opt, path, "--" + name, "-o", os.devnull])):
                    print(f"--{name} on stage {stage}: {said}")
                    wrong += 1
    print(f"{runs} runs of {len(names)} passes, {wrong} wrong")
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main()
