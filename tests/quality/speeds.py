#!/usr/bin/python3
"""Measures the speeds of the choices in docs/quality.md on SmolLM2, of the programs whose precision measure.py has measured, and writes
docs/speeds.json and, from it, a table of the page.

    speeds.py WORK --mica MICA --llama BIN [--rounds 5] [--docs DIR]

The arguments are those of measure.py, from whose results in WORK programs and KL divergences are taken; what is missing there is
measured first. Each round runs `PROGRAM bench` of each program once in decode and once in prefill, those of a cache type once in decode
after a long text, each in a new process that warms up first; every other round in the reverse order. Figures are medians over the rounds.
The machine should be idle: the load by other processes is recorded. A run replaces that of the same type of processor. --docs needs a
tree without uncommitted changes.
"""

import argparse
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(ROOT / "tests")]
import bench.engines as runs  # noqa: E402
import engines  # noqa: E402
import load  # noqa: E402
import measure  # noqa: E402
import models  # noqa: E402
import published  # noqa: E402
import report  # noqa: E402
from engines import say  # noqa: E402

MODEL = "smollm2"
TESTS = {"decode": runs.Test("decode", "decode", gen=64), "prefill": runs.Test("prefill", "prefill", prompt=512),
         "deep": runs.Test("deep", "decode after a long text", gen=64, depth=4096)}
SECONDS = 300  #: that one process may take


def inputs(bench, model, part, name):
    """(file, options of `mica compile`) of a row of measure.py's tables."""
    if part == "rows":
        return bench.file_of(model, name), []
    return model.checkpoint or model.gguf, bench.given(model, name.strip("`").split())


class Choice:
    """A choice of docs/quality.md as a program."""

    def __init__(self, bench, title, source, options, evaluations):
        """`evaluations`: the options of `mica eval` with the arithmetic of each test."""
        self.title = title
        self.program = bench.mica.compile(source, *options)
        reference = bench.mica.compile(source, "--weights", "f32")
        self.kl = {test: bench.mica.evaluate(self.program, reference, bench.text, *given)["kl"] for test, given in evaluations.items()}
        self.engine = runs.Mica(self.program.path(), [], bench.args.threads, SECONDS)
        self.speeds = {test: [] for test in self.kl}

    def measure(self):
        for name, values in self.speeds.items():
            (result,) = runs.json_of(self.engine.command(TESTS[name]), SECONDS)["results"]
            values.append(result["tokens_per_s"])

    def figures(self):
        return {"kl": self.kl, **{test: {"median": statistics.median(values), "min": min(values), "max": max(values)}
                                  for test, values in self.speeds.items()}}


def choice_of(bench, model, title, part, name, prompt, _decode):
    """The program of a row of report.CHOICE_ROWS."""
    if part == "caches":
        # The model's file itself: with f32 weights, as measured for the row, a cache would hardly matter.
        return Choice(bench, report.cache_title(name), model.gguf, name.strip("`").split(), {"deep": bench.mica.decode})
    source, options = inputs(bench, model, part, name)
    # Only changes prefill, so that measure.py measures the decode arithmetic of the program without it.
    rows = bench.mica.rows if prompt == "mica int8 rows" else []
    return Choice(bench, title, source, [*options, *rows], {"prefill": []} | ({} if rows else {"decode": bench.mica.decode}))


def measure_all(choices, rounds):
    """Runs the rounds. A choice that fails is left out; returns the others and the reasons."""
    failed = {}
    for number in range(rounds):
        for choice in choices[::-1 if number % 2 else 1]:
            if choice.title in failed:
                continue
            try:
                choice.measure()
                say(f"round {number + 1}, {choice.title}: " + ", ".join(
                    f"{test} {values[-1]:.1f}" for test, values in choice.speeds.items()))
            except (runs.Failed, KeyError, ValueError) as error:
                failed[choice.title] = f"{choice.title}: {error!r}"
    return [choice for choice in choices if choice.title not in failed], list(failed.values())


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work")
    parser.add_argument("--mica", required=True)
    parser.add_argument("--llama", required=True, help="the folder of llama.cpp's binaries")
    parser.add_argument("--text", help="as for measure.py")
    parser.add_argument("--threads", default="2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--docs", type=pathlib.Path, help="write speeds.json and quality.md into this folder")
    args = parser.parse_args(argv)
    if args.rounds < 1:
        parser.error("--rounds must be at least 1")
    if args.docs and load.commit().endswith(load.CHANGED):
        parser.error("--docs publishes figures of a commit, but the tree has uncommitted changes; commit them first")
    return args


def main(argv):
    args = parse(argv)
    text = ["--text", args.text] if args.text else []
    bench = measure.Bench(measure.parse([args.work, "--mica", args.mica, "--llama", args.llama, "--threads", args.threads, *text]))
    try:
        bench.text, bench.rest = models.texts(bench.args.text, bench.args.work)
        model = models.MODELS[MODEL](bench.args.work)
        choices = [choice_of(bench, model, *row) for row in report.CHOICE_ROWS
                   if (bench.mica.rows or "mica int8 rows" not in row) and bench.has_options(row[0].strip("`").split())]
    except (models.Missing, engines.Failed, runs.Failed) as error:
        sys.exit(str(error))
    begun = load.Load()
    choices, failed = measure_all(choices, args.rounds)
    result = {"model": MODEL, "machine": load.machine(), "load": begun.report(), "threads": bench.args.threads, "rounds": args.rounds,
              "gen": TESTS["decode"].gen, "prompt": TESTS["prefill"].prompt, "depth": TESTS["deep"].depth,
              "command": load.command_line(argv), "commit": load.commit(),
              "choices": {choice.title: choice.figures() for choice in choices}}
    print(published.json_of(result), end="")
    if args.docs and choices:
        others = [run for run in published.speeds(args.docs) if run["machine"]["cpu"] != result["machine"]["cpu"]]
        (args.docs / published.SPEEDS).write_text(published.text_of([result, *others]), encoding="utf-8")
        measure.write_page(args.docs)
    for line in failed:
        say(f"FAILED: {line}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
