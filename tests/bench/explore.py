#!/usr/bin/env python3
"""Measures pages of `mica explore`: size, time in addition to compiling, time until the page is interactive.

    explore.py --mica MICA [--shape NAME | --model MODEL] [--weights bf16,int4] [--loads 10] [--keep FOLDER]

The shape is one of shapes.py, by default Llama 3.2 1B; its weights are zeros in a sparse file. Exits with 1 if a page exceeds 5 MB,
10 s in addition to compiling, or one second until it is interactive. Needs Debian's packages chromium and chromium-driver.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import checkpoint  # noqa: E402
import shapes  # noqa: E402
from browser import Browser  # noqa: E402

READY = "return document.documentElement.dataset.ready"


def seconds_of(command):
    begin = time.monotonic()
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return time.monotonic() - begin


def milliseconds_of_loads(page, count):
    with Browser() as browser:
        for _ in range(count):
            browser.open("about:blank")
            browser.open(f"file://{page}")
            yield int(browser.wait(READY, "the page"))


def measure(args, model, weights, work):
    """A line of figures, and whether all are within their limits."""
    page, options = os.path.join(work, f"{weights}.html"), ["--weights", weights]
    compiling = seconds_of([args.mica, "compile", model, *options, "--emit", "obj", "-o", os.path.join(work, "object")])
    exploring = seconds_of([args.mica, "explore", model, *options, "-o", page])
    size, ready = os.path.getsize(page), statistics.median(milliseconds_of_loads(page, args.loads))
    print(f"{weights}: {size / 1e6:.2f} MB, {exploring - compiling:.1f} s beyond the {compiling:.1f} s of the compile, "
          f"interactive after {ready:.0f} ms (median of {args.loads})", flush=True)
    return size <= 5e6 and exploring - compiling <= 10 and ready <= 1000


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mica", required=True)
    parser.add_argument("--shape", default="llama-3.2-1b", choices=list(shapes.SHAPES))
    parser.add_argument("--model", help="a model instead of a shape")
    parser.add_argument("--weights", default="bf16,int4")
    parser.add_argument("--loads", type=int, default=10)
    parser.add_argument("--keep", help="an existing folder for the pages")
    args = parser.parse_args(argv)
    # Both commands compile everything.
    os.environ.pop("MICA_OBJECT_CACHE", None)
    with tempfile.TemporaryDirectory() as temporary:
        model = args.model or os.path.join(temporary, args.shape)
        if not args.model:
            os.mkdir(model)
            checkpoint.sparse(model, shapes.SHAPES[args.shape])
        results = [measure(args, model, weights, args.keep or temporary) for weights in args.weights.split(",")]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
