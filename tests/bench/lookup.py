#!/usr/bin/env python3
"""Measures the effect of drafts from the text so far (`--lookup`) on repetitive texts.

    lookup.py PROGRAM [--lookup 15] [--pairs 5] [--threads N]

The texts are those of tests/data/repetitive, as ids of the program's own tokenizer: a list of records, code, and
answers that quote the prompt or change a name in its code. `bench` generates them with and without drafts, in
alternation, whatever the model predicts: the printed gain is that of a model that writes such a text. A pass takes 31
drafts at most; on these texts, more than 15 did not increase the number of accepted drafts.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

TEXTS = pathlib.Path(__file__).resolve().parents[1] / "data/repetitive"
#: name: (prompt, answer); the first ids are the prompt of a text without one.
CASES = {"list": ("", "list"), "code": ("", "code"), "code, edited": ("code", "edit"),
         "quoted passage": ("passage", "answer")}


class Failed(Exception):
    """The program's error."""


def answer(command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(done.stderr.strip())
    return json.loads(done.stdout)


def ids_of(program, text):
    return answer([program, "-p", text, "-n", 0, "--json"])["sequences"][0]["prompt_tokens"]


def text_of(program, prompt, rest):
    """(all ids, number of ids of the prompt)"""
    given = (TEXTS / f"{prompt}.txt").read_text() if prompt else ""
    whole = ids_of(program, given + (TEXTS / f"{rest}.txt").read_text())
    return whole, len(ids_of(program, given)) if given else 2


def measured(program, ids, given, lookup, *options):
    """A run of each: (tokens per second without drafts, with drafts, ids per call)."""
    made = len(ids) - given - 1
    plain, drafted = answer([program, "bench", "--prompt", 0, "--depth", given, "--gen", made, "--repeat", 1, "--json",
                             "--lookup", lookup, "--tokens", ",".join(map(str, ids)), *options])["results"]
    return plain["tokens_per_s"], drafted["tokens_per_s"], made / drafted["lookup"]["calls"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--lookup", type=int, default=15)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--threads", type=int)
    args = parser.parse_args()
    options = ["--threads", args.threads] if args.threads else []
    print("| text | ids | ids per call | plain, tokens/s | with drafts | times |\n|---|---|---|---|---|---|")
    failed = 0
    for name, case in CASES.items():
        try:
            print(row_of(name, case, args, options), flush=True)
        except Failed as why:
            print(f"{name}: {why}", file=sys.stderr)
            failed += 1
    sys.exit(1 if failed == len(CASES) else 0)


def row_of(name, case, args, options):
    ids, given = text_of(args.program, *case)
    runs = [measured(args.program, ids, given, args.lookup, *options) for _ in range(args.pairs)]
    plain, drafted = (statistics.median(r[i] for r in runs) for i in (0, 1))
    times = statistics.median(b / a for a, b, _ in runs)
    return f"| {name} | {len(ids) - given} | {runs[0][2]:.1f} | {plain:.1f} | {drafted:.1f} | {times:.2f} |"


if __name__ == "__main__":
    main()
