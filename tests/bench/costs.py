#!/usr/bin/env python3
"""What a program costs before it answers: time and memory of compiling, its size, the time to its first token,
by itself and by `mica run` without and with the program in its cache, in brackets how much of that is the processor's,
which other work beside it hardly changes.

    costs.py MICA MODEL [--weights bf16,int8,int4] [--runs 20] [-- OPTIONS OF mica compile]

The first compile reads the model from the disk, so it is repeated: times are of files that are in memory.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time


def run(command, **environment):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False,
                          env={**os.environ, **environment})
    if done.returncode:
        sys.exit(done.stderr.strip())
    return done.stdout


def processor():
    """Seconds that the processor has spent on this script's processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def compiled(mica, model, weights, program, options):
    """(seconds, the processor's, the report) of the second compile"""
    for _ in range(2):
        start, used = time.monotonic(), processor()
        report = run([mica, "compile", model, "-o", program, "--weights", weights, "--json", *options])
        seconds, used = time.monotonic() - start, processor() - used
    return seconds, used, json.loads(report)


ONE_TOKEN = ("--tokens", "1", "-n", 1, "--ignore-eos", "--print-tokens")


def first_token(command, runs, **environment):
    """Seconds from the start of the process to its end after one token, and the processor's: the medians."""
    times = []
    for _ in range(runs):
        start, used = time.monotonic(), processor()
        run([*command, *ONE_TOKEN], **environment)
        times.append((time.monotonic() - start, processor() - used))
    return [statistics.median(column) for column in zip(*times)]


def by_mica_run(command, runs):
    """first_token without the program in the cache and with it"""
    with tempfile.TemporaryDirectory() as cache:
        return [first_token(command, count, XDG_CACHE_HOME=cache) for count in (1, runs)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mica")
    parser.add_argument("model")
    parser.add_argument("--weights", default="bf16,int8,int4")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("options", nargs="*")
    args = parser.parse_args()
    print("| weights | compiling, s | peak, MB | program, MB | beside weights, MB | first token, ms "
          "| mica run cold, s | warm, s |\n|---|---|---|---|---|---|---|---|")
    for weights in args.weights.split(","):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "program")
            seconds, used, report = compiled(args.mica, args.model, weights, program, args.options)
            size = os.path.getsize(program)
            cells = [f"{seconds:.2f} ({used:.2f})", f"{report['peak_anonymous_bytes'] / 1e6:.0f}", f"{size / 1e6:.1f}",
                     f"{(size - report['weight_bytes']) / 1e6:.1f}", f"{1e3 * first_token([program], args.runs)[0]:.1f}"]
            mica_run = [args.mica, "run", args.model, "--weights", weights, *args.options]
            cells += [f"{wall:.3f} ({used:.3f})" for wall, used in by_mica_run(mica_run, args.runs)]
            print("| " + " | ".join([weights, *cells]) + " |", flush=True)


if __name__ == "__main__":
    main()
