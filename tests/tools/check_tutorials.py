#!/usr/bin/env python3
"""Checks that the tutorials of docs/ match the tree.

    check_tutorials.py [--build CONFIGURE] TREE PAGE...

Applies the patches of each page (blocks ```diff) and runs its scripts (blocks ```python), in order, in a copy of the tree. The steps of
a page that begins with `This page continues [OTHER](OTHER)` follow those of the other page. A patch that does not apply, or whose context
has changed, is an error with its page and line.

With --build, the copy is configured by CONFIGURE, such as `cmake --preset release`, after the first page's patches, and the pages'
commands (blocks without a language) are run as well, in order: they build the change and run its tests. A command
that fails is an error with its page, line and last output.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
CONTINUES = re.compile(r"^This page continues \[([\w-]+\.md)\]", re.M)
LAST_LINES = 40


def steps(tree, page):
    """(page, line, language, text) of the patches, scripts and commands up to the end of the page."""
    text = (tree / "docs" / page).read_text(encoding="utf-8")
    if earlier := CONTINUES.search(text):
        yield from steps(tree, earlier[1])
    for block in BLOCK.finditer(text):
        if block[1] in ("diff", "python", ""):
            yield page, text[:block.start()].count("\n") + 1, block[1], block[2]


def take(copy, language, text):
    """Runs a step in the copy; returns a description of a failure."""
    command = {"diff": ["patch", "-p1", "--fuzz=0", "--forward", "--no-backup-if-mismatch"], "python": [sys.executable, "-"],
               "": ["bash", "-euo", "pipefail", "-c", text]}[language]
    # Commands use the Python that runs this script, and a filter that selects no test is an error.
    path = os.pathsep.join((os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)))
    done = subprocess.run(command, cwd=copy, input=text if language else "", text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, env={**os.environ, "PATH": path})
    if done.returncode:
        return "\n".join(done.stdout.strip().splitlines()[-LAST_LINES:]) or f"status {done.returncode}"
    if not language and "No tests were found!!!" in done.stdout:
        return "ctest found no tests"
    return None


def follow(tree, page, copy, configure):
    """Runs the steps of a page in the copy; returns their number."""
    count, configured = 0, False
    for name, line, language, text in steps(tree, page):
        if not language:
            if configure is None:
                continue
            if not configured and (wrong := take(copy, "", configure)):
                sys.exit(f"{page}: cannot be configured\n{wrong}")
            configured = True
        count += 1
        start = time.monotonic()
        if wrong := take(copy, language, text):
            sys.exit(f"docs/{name}:{line}: {'does not apply' if language else 'fails'}\n{wrong}")
        if not language:
            print(f"docs/{name}:{line}: done in {time.monotonic() - start:.0f} s", flush=True)
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", metavar="CONFIGURE", help="run the pages' commands as well, after this one")
    parser.add_argument("tree", type=pathlib.Path)
    parser.add_argument("pages", nargs="+", metavar="PAGE")
    args = parser.parse_args()
    count = 0
    for page in args.pages:
        with tempfile.TemporaryDirectory(prefix="mica-tutorial-") as place:
            copy = pathlib.Path(place, "tree")
            shutil.copytree(args.tree, copy, symlinks=True, ignore=lambda folder, names: {
                name for name in names if name in (".git", "__pycache__") or (name == "build" and folder == str(args.tree))})
            count += follow(args.tree, page, copy, args.build)
        print(f"{page}: {'applies' if args.build is None else 'works'}")
    if not count:
        sys.exit("no page has a patch")


if __name__ == "__main__":
    main()
