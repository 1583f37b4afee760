#!/usr/bin/env python3
"""What a program costs before it answers: the time and the memory of compiling it, its size, the time to its first token.

    costs.py MICA MODEL [--weights bf16,int8,int4] [--runs 20] [-- OPTIONS OF mica compile]

The first compile reads the model from the disk, so it is repeated: times are of files that are in memory.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time


def run(command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr.strip())
    return done.stdout


def compiled(mica, model, weights, program, options):
    """(seconds, the report of the second compile)"""
    for _ in range(2):
        start = time.monotonic()
        report = run([mica, "compile", model, "-o", program, "--weights", weights, "--json", *options])
        seconds = time.monotonic() - start
    return seconds, json.loads(report)


def first_token(program, runs):
    """Milliseconds from the start of the process to its end after one token, the median."""
    times = []
    for _ in range(runs):
        start = time.monotonic()
        run([program, "--tokens", "1", "-n", 1, "--ignore-eos", "--print-tokens"])
        times.append(1e3 * (time.monotonic() - start))
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mica")
    parser.add_argument("model")
    parser.add_argument("--weights", default="bf16,int8,int4")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("options", nargs="*")
    args = parser.parse_args()
    print("| weights | compiling, s | peak, MB | program, MB | beside weights, MB | first token, ms |\n|---|---|---|---|---|---|")
    for weights in args.weights.split(","):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "program")
            seconds, report = compiled(args.mica, args.model, weights, program, args.options)
            size = os.path.getsize(program)
            cells = [f"{seconds:.2f}", f"{report['peak_anonymous_bytes'] / 1e6:.0f}", f"{size / 1e6:.1f}",
                     f"{(size - report['weight_bytes']) / 1e6:.1f}", f"{first_token(program, args.runs):.1f}"]
            print("| " + " | ".join([weights, *cells]) + " |", flush=True)


if __name__ == "__main__":
    main()
