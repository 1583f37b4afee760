#!/usr/bin/python3
"""Tests compiled programs.

    run.py --mica PATH [--junit FILE] [--figures FILE] [-j N] [FILTER...]

Runs the tests whose names contain one of the FILTERs (default: all). Needs python3 and numpy. Prints each failure in full, then
measured figures, and finally a line of counts; exits with 1 if a test failed. `--figures` also writes the figures of the tests that
passed, and the conditions, as JSON.
"""

import argparse
import concurrent.futures
import contextlib
import json
import os
import shutil
import sys
import tempfile
import time
import unittest
from xml.sax.saxutils import escape, quoteattr

SYSTEM = "/usr/bin/python3"
try:
    import numpy as _
except ImportError:
    # Another python3 than Debian's may come first in PATH and lack the packages.
    if os.path.realpath(sys.executable) == os.path.realpath(SYSTEM) or not os.path.exists(SYSTEM):
        sys.exit("mica: error: numpy is missing; install Debian's package python3-numpy")
    os.execv(SYSTEM, [SYSTEM, *sys.argv])

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness

sys.path.append(str(harness.ROOT / "tests/bench"))
import load


def leaves(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from leaves(test)
        else:
            yield test


def run_one(case, keep):
    """(name, kind, text, seconds) where kind is passed, failed or skipped."""
    result, start = unittest.TestResult(), time.monotonic()
    with contextlib.nullcontext() if keep else harness.removing():
        case.run(result)
    seconds = time.monotonic() - start
    bad = result.failures + result.errors
    if bad or result.unexpectedSuccesses:
        return case.id(), "failed", "\n".join(text for _, text in bad) or "unexpected success", seconds
    if result.skipped:
        return case.id(), "skipped", result.skipped[0][1], seconds
    return case.id(), "passed", "", seconds


def write_junit(path, results):
    def body(kind, text):
        if kind == "failed":
            return f"<failure message={quoteattr(text.strip().splitlines()[-1][:200])}>{escape(text)}</failure>"
        return f"<skipped message={quoteattr(text)}/>" if kind == "skipped" else ""

    count = {kind: sum(r[1] == kind for r in results) for kind in ("failed", "skipped")}
    with open(path, "w", encoding="utf-8") as f:
        f.write(f'<testsuite name="e2e" tests="{len(results)}" failures="{count["failed"]}" '
                f'skipped="{count["skipped"]}">\n')
        for name, kind, text, seconds in results:
            group, _, test = name.rpartition(".")
            f.write(f'<testcase classname={quoteattr("e2e." + group)} name={quoteattr(test)} time="{seconds:.3f}">'
                    f"{body(kind, text)}</testcase>\n")
        f.write("</testsuite>\n")


def write_figures(path, results, condition):
    """What tests that passed have measured, {name of the test: [text, ...]}, and how it was measured."""
    passed = {name for name, kind, *_ in results if kind == "passed"}
    figures = {}
    for name, text in harness.figures():
        if name in passed:
            figures.setdefault(name, []).append(text)
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"command": load.command_line(sys.argv[1:]), "commit": load.commit(), "machine": load.machine(), "load": condition,
                   "figures": figures}, f, indent=1)
        f.write("\n")


def show(result):
    name, kind, text, seconds = result
    # Tests that run meanwhile may redirect sys.stdout.
    if kind == "failed":
        print(f"\nFAILED {name} ({seconds:.1f} s)\n{text}", file=sys.__stdout__, flush=True)
    elif kind == "skipped":
        print(f"SKIPPED {name}: {text}", file=sys.__stdout__, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mica", required=True, help="the compiler driver")
    parser.add_argument("--junit", help="write the results as JUnit XML")
    parser.add_argument("--figures", help="write the measured figures as JSON")
    parser.add_argument("-j", type=int, default=min(4, os.cpu_count() or 1), help="tests at once")
    parser.add_argument("--keep", action="store_true", help="keep all files of the tests")
    parser.add_argument("filter", nargs="*")
    args = parser.parse_args()
    harness.mica = os.path.abspath(args.mica)
    if not os.access(harness.mica, os.X_OK):
        parser.error(f"{harness.mica} is not a program")
    harness.scratch = tempfile.mkdtemp(prefix="mica-e2e-")
    cases = [c for c in leaves(unittest.defaultTestLoader.discover(os.path.dirname(os.path.abspath(__file__))))
             if not args.filter or any(word in c.id() for word in args.filter)]
    start, results, condition = time.monotonic(), [], load.Load()
    try:
        with concurrent.futures.ThreadPoolExecutor(max(1, args.j)) as pool:
            for job in concurrent.futures.as_completed([pool.submit(run_one, c, args.keep) for c in cases]):
                results.append(job.result())
                show(results[-1])
    finally:
        if args.keep:
            print(f"kept {harness.scratch}")
        else:
            shutil.rmtree(harness.scratch, ignore_errors=True)
    results.sort()
    for name, text in harness.figures():
        print(f"{name}: {text}")
    if args.junit:
        write_junit(args.junit, results)
    if args.figures:
        write_figures(args.figures, results, condition.report())
    count = {kind: sum(r[1] == kind for r in results) for kind in ("passed", "failed", "skipped")}
    print(f"e2e: {count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped "
          f"in {time.monotonic() - start:.0f} s")
    return 1 if count["failed"] or not results else 0


if __name__ == "__main__":
    sys.exit(main())
