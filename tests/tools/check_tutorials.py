#!/usr/bin/env python3
"""Whether the tutorials of docs/ still fit the tree.

    check_tutorials.py TREE PAGE...

Applies the patches of each page (blocks ```diff) and runs its scripts (blocks ```python), in their order, in a copy of the tree. A
page that continues another one begins with `This page continues [OTHER](OTHER)`: that one's come first. A patch that does not apply, also
one whose context has changed, is an error with its page and line. Nothing is built.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
CONTINUES = re.compile(r"^This page continues \[([\w-]+\.md)\]", re.M)


def steps(tree, page):
    """(page, line, language, text) of the patches and scripts up to the end of the page."""
    text = (tree / "docs" / page).read_text(encoding="utf-8")
    if earlier := CONTINUES.search(text):
        yield from steps(tree, earlier[1])
    for block in BLOCK.finditer(text):
        if block[1] in ("diff", "python"):
            yield page, text[:block.start()].count("\n") + 1, block[1], block[2]


def take(copy, language, text):
    """Takes a step in the copy; what went wrong otherwise."""
    command = ["patch", "-p1", "--fuzz=0", "--forward", "--no-backup-if-mismatch"] if language == "diff" else [sys.executable, "-"]
    done = subprocess.run(command, cwd=copy, input=text, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.stdout.strip() if done.returncode else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=pathlib.Path)
    parser.add_argument("pages", nargs="+", metavar="PAGE")
    args = parser.parse_args()
    count = 0
    for page in args.pages:
        with tempfile.TemporaryDirectory(prefix="mica-tutorial-") as place:
            copy = pathlib.Path(place, "tree")
            shutil.copytree(args.tree, copy, symlinks=True, ignore=lambda folder, names: {
                name for name in names if name in (".git", "__pycache__") or (name == "build" and folder == str(args.tree))})
            for name, line, language, text in steps(args.tree, page):
                count += 1
                if wrong := take(copy, language, text):
                    sys.exit(f"docs/{name}:{line}: does not apply\n{wrong}")
        print(f"{page}: applies")
    if not count:
        sys.exit("no page has a patch")


if __name__ == "__main__":
    main()
