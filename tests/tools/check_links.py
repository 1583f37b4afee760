#!/usr/bin/env python3
"""Checks the links between the pages of the tree.

    check_links.py TREE

Checks all .md files except those of build folders and of test inputs. A relative link must name a file or a folder, and its fragment
a heading of that page, with GitHub's anchors of headings. Text between backticks is not a link. Addresses with a scheme are not
checked.
"""

import argparse
import os
import pathlib
import re
import sys
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/docs"))
import markdown

SKIPPED = {"build", "Inputs"}
LINK = re.compile(r"!?\[[^\]]*\]\(<?([^)\s>]+)>?(?: \"[^\"]*\")?\)")
IMAGE_LINK = re.compile(r"\[!\[[^\]]*\]\([^)]*\)\]\(([^)\s]+)\)")


def pages(tree):
    for folder, folders, files in os.walk(tree):
        folders[:] = sorted(f for f in folders if f not in SKIPPED and not f.startswith("."))
        for name in sorted(files):
            if name.endswith(".md"):
                yield pathlib.Path(folder, name)


def links(text):
    """(line number, target) of all links."""
    for number, line in markdown.lines_outside_code(text):
        line = re.sub(r"`+[^`]*`+", lambda code: "`" * len(code[0]), line)
        for target in IMAGE_LINK.findall(line) + LINK.findall(line):
            yield number + 1, target


def problem(tree, page, target, anchors_of):
    """Describes a problem with a link; nothing if there is none."""
    path, _, fragment = urllib.parse.unquote(target).partition("#")
    if re.match(r"[a-z][a-z+.-]*:", path):
        return None
    file = (page.parent / path).resolve() if path else page.resolve()
    if not file.exists():
        return "there is no such file"
    if not file.is_relative_to(tree.resolve()):
        return "leaves the tree"
    if fragment and file.suffix == ".md" and fragment not in anchors_of(file):
        return "the page has no such heading"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=pathlib.Path)
    tree, known, count, wrong = parser.parse_args().tree, {}, 0, []

    def anchors_of(file):
        if file not in known:
            known[file] = markdown.anchors(file.read_text(encoding="utf-8"))
        return known[file]

    for page in pages(tree):
        for line, target in links(page.read_text(encoding="utf-8")):
            count += 1
            if found := problem(tree, page, target, anchors_of):
                wrong.append(f"{page.relative_to(tree)}:{line}: {target}: {found}")
    print("\n".join(wrong))
    if wrong:
        sys.exit(f"{len(wrong)} links lead nowhere")
    print(f"all {count} links lead somewhere")


if __name__ == "__main__":
    main()
