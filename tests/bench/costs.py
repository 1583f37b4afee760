#!/usr/bin/env python3
"""Measures the cost of a program: time and memory of compiling, its size, the time to its first token when run directly and by `mica run`
without and with the program in its cache, and the memory for a long prompt.

    costs.py MICA MODEL --text FILE [--weights bf16,int8,int4] [--runs 20] [--prompt 2048] [-- OPTIONS OF mica compile]
    costs.py --programs PROGRAM... [--prompt 2048]

The KL divergence of each program from the model in f32 is measured on FILE. The first compilation reads the model from disk, so
compilation is repeated with cached files. Memory figures are peaks: of the
process ("anonymous"), of the file pages that it maps ("mapped": the model during compilation, the weights while the program runs),
and of a program in addition to its weights and cached positions. The second form measures existing programs.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import resident


def output(done):
    """The output of a process, which must succeed."""
    if done.returncode:
        sys.exit(done.stderr.decode().strip())
    return done.stdout


def run(command, **environment):
    return output(subprocess.run([str(c) for c in command], capture_output=True, check=False,
                                 env={**os.environ, **environment}))


def compiled(mica, model, weights, program, options):
    """(seconds, report, peak mapped bytes) of the second compilation."""
    for _ in range(2):
        start = time.monotonic()
        done, peaks = resident.run([mica, "compile", model, "-o", program, "--weights", weights, "--json", *options])
        seconds = time.monotonic() - start
    return seconds, json.loads(output(done)), peaks["RssFile"]


def divergence(mica, program, reference, text):
    """The KL divergence of a program in prefill and in decode, as a table cell."""
    means = [json.loads(run([mica, "eval", program, "--text", text, "--reference", reference, "--json", *options]))["kl"]["mean"]
             for options in ((), ("--as-decode",))]
    return " / ".join(f"{mean:.2g}" for mean in means)


def memory(program, prompt):
    """Table cells with the memory for a prompt with that many tokens and 16 generated ones."""
    info = json.loads(run([program, "info", "--json"]))
    prompt = min(prompt, info["max_seq"] - 16)
    ids = ",".join(str(3 + i * 7 % (info["vocab"] - 3)) for i in range(prompt))
    done, peaks = resident.run([program, "--tokens", ids, "-n", 16, "--ignore-eos", "--print-tokens"])
    output(done)
    cache = (prompt + 16) * info["cache_bytes_per_token"]
    rest = resident.beside_weights(peaks, program, info, cache)
    return [str(prompt), *(f"{size / 1e6:.0f}" for size in (peaks["RssAnon"], peaks["RssFile"], cache, rest))]


MEMORY = ("prompt", "anonymous, MB", "mapped, MB", "cache, MB", "beside weights and cache, MB")


def head(*titles):
    print("| " + " | ".join(titles) + " |\n" + "|---" * len(titles) + "|")


ONE_TOKEN = ("--tokens", "1", "-n", 1, "--ignore-eos", "--print-tokens")


def first_token(command, runs, **environment):
    """Median of the milliseconds from start to end of a process that generates one token."""
    times = []
    for _ in range(runs):
        start = time.monotonic()
        run([*command, *ONE_TOKEN], **environment)
        times.append(1e3 * (time.monotonic() - start))
    return statistics.median(times)


def by_mica_run(command, runs):
    """(seconds without, seconds with the program in the cache)"""
    with tempfile.TemporaryDirectory() as cache:
        return [first_token(command, count, XDG_CACHE_HOME=cache) / 1e3 for count in (1, runs)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mica", nargs="?")
    parser.add_argument("model", nargs="?")
    parser.add_argument("--programs", nargs="+", default=[])
    parser.add_argument("--text", help="measure the KL divergence on this file")
    parser.add_argument("--weights", default="bf16,int8,int4")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--prompt", type=int, default=2048)
    parser.add_argument("options", nargs="*")
    # Compilation is measured.
    os.environ.pop("MICA_OBJECT_CACHE", None)
    args = parser.parse_args()
    if bool(args.programs) == bool(args.model):
        parser.error("expects either MICA and MODEL or --programs")
    if bool(args.model) != bool(args.text):
        parser.error("MICA and MODEL need --text, and programs are measured without")
    if args.programs:
        head("program", *MEMORY)
        for program in args.programs:
            print("| " + " | ".join([os.path.basename(program), *memory(program, args.prompt)]) + " |", flush=True)
        return
    head("weights", "KL, prefill / decode", "compiling, s", "anonymous, MB", "mapped, MB", "program, MB", "beside weights, MB",
         "first token, ms", "mica run cold, s", "warm, s", *MEMORY)
    with tempfile.TemporaryDirectory() as folder:
        reference, program = (os.path.join(folder, name) for name in ("reference", "program"))
        run([args.mica, "compile", args.model, "-o", reference, "--weights", "f32", *args.options])
        for weights in args.weights.split(","):
            seconds, report, mapped = compiled(args.mica, args.model, weights, program, args.options)
            size = os.path.getsize(program)
            cells = [divergence(args.mica, program, reference, args.text), f"{seconds:.2f}",
                     f"{report['peak_anonymous_bytes'] / 1e6:.0f}", f"{mapped / 1e6:.0f}", f"{size / 1e6:.1f}",
                     f"{(size - report['weight_bytes']) / 1e6:.1f}", f"{first_token([program], args.runs):.1f}"]
            mica_run = [args.mica, "run", args.model, "--weights", weights, *args.options]
            cells += [f"{each:.3f}" for each in by_mica_run(mica_run, args.runs)]
            print("| " + " | ".join([weights, *cells, *memory(program, args.prompt)]) + " |", flush=True)


if __name__ == "__main__":
    main()
