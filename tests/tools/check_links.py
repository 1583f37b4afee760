#!/usr/bin/env python3
"""Checks the links between the pages of the tree, their tables, and the names in the READMEs of folders.

    check_links.py TREE [--no-names]

Checks all .md files except those of build folders and of test inputs. A relative link must name a file or a folder, and its fragment
a heading of that page, with GitHub's anchors of headings. Text between backticks is not a link. Addresses with a scheme are not
checked. Every row of a table must have as many cells as its header. A capitalized name between backticks in a README.md must occur in a
source file, or be the name of one; --no-names leaves that out, for pages without sources.
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
SOURCES = {".c", ".cmake", ".cpp", ".h", ".in", ".inc", ".js", ".mlir", ".py", ".sh", ".td", ".txt"}
LINK = re.compile(r"!?\[[^\]]*\]\(<?([^)\s>]+)>?(?: \"[^\"]*\")?\)")
IMAGE_LINK = re.compile(r"\[!\[[^\]]*\]\([^)]*\)\]\(([^)\s]+)\)")


def files_of(tree):
    for folder, folders, files in os.walk(tree):
        folders[:] = sorted(f for f in folders if f not in SKIPPED and not f.startswith("."))
        for name in sorted(files):
            yield pathlib.Path(folder, name)


def names_of(sources):
    """All words of the files, and the files' names."""
    names = set()
    for path in sources:
        names.add(path.name.split(".")[0])
        names.update(re.findall(r"\w+", path.read_text(encoding="utf-8", errors="replace")))
    return names


def unknown_names(text, names):
    """(line number, problem) of names between backticks that are not among `names`."""
    for number, line in markdown.lines_outside_code(text):
        for name in re.findall(r"`([A-Z][a-z0-9]+\w*)`", line):
            if name not in names:
                yield number + 1, f"{name}: no source has this name"


def links(text):
    """(line number, target) of all links."""
    for number, line in markdown.lines_outside_code(text):
        line = re.sub(r"`+[^`]*`+", lambda code: "`" * len(code[0]), line)
        for target in IMAGE_LINK.findall(line) + LINK.findall(line):
            yield number + 1, target


def malformed_rows(text):
    """(line number, problem) of table rows with another number of cells than the header."""
    expected, previous = None, None
    for number, line in markdown.lines_outside_code(text):
        if not line.startswith("|"):
            continue
        if previous is None or number != previous + 1:
            expected = None
        previous = number
        # A bar splits cells unless it is escaped, even between backticks.
        cells = len(re.split(r"(?<!\\)\|", line.strip())) - 2
        if expected is None:
            expected = cells
        elif cells != expected:
            yield number + 1, f"the row has {cells} cells, expected {expected}"


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
    parser.add_argument("--no-names", action="store_true", help="do not check names in READMEs")
    arguments = parser.parse_args()
    tree, known, count, wrong = arguments.tree, {}, 0, []

    def anchors_of(file):
        if file not in known:
            known[file] = markdown.anchors(file.read_text(encoding="utf-8"))
        return known[file]

    files = list(files_of(tree))
    names = names_of(path for path in files if path.suffix in SOURCES)
    for page in (path for path in files if path.suffix == ".md"):
        text = page.read_text(encoding="utf-8")
        found = [*malformed_rows(text), *(unknown_names(text, names) if page.name == "README.md" and not arguments.no_names else [])]
        wrong += [f"{page.relative_to(tree)}:{line}: {what}" for line, what in found]
        for line, target in links(text):
            count += 1
            if found := problem(tree, page, target, anchors_of):
                wrong.append(f"{page.relative_to(tree)}:{line}: {target}: {found}")
    print("\n".join(wrong))
    if wrong:
        sys.exit(f"{len(wrong)} problems of links, tables and names")
    print(f"all {count} links lead somewhere")


if __name__ == "__main__":
    main()
