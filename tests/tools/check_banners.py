#!/usr/bin/env python3
"""Checks that the banners of C++ and TableGen files, lines `//===- TEXT -===//`, are 80 columns wide.

    check_banners.py [--fix] FOLDER...

With --fix, dashes are added or removed; a marker `-*- C++ -*-` that leaves no room is dropped. A text that is too long remains an error.
"""

import argparse
import pathlib
import re
import sys

WIDTH = 80
BANNER = re.compile(r"//===-+(?: (?P<text>.*?))? ?-*(?P<marker>-\*- C\+\+ -\*-)?-*===//$")


def fixed(line):
    """The banner in WIDTH columns; the line itself if its text is too long."""
    banner = BANNER.fullmatch(line)
    text = banner["text"] or ""
    if not text:
        return "//===" + "-" * (WIDTH - 10) + "===//"
    for marker in (banner["marker"], None) if banner["marker"] else (None,):
        dashes = WIDTH - len(f"//===- {text} {marker or ''}===//")
        if dashes >= (0 if marker else 1):
            return f"//===- {text} {'-' * dashes}{marker or ''}===//"
    return line


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fix", action="store_true")
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    count, problems = 0, []
    for folder in arguments.folders:
        for path in sorted(path for path in folder.rglob("*") if path.suffix in (".h", ".cpp", ".td")):
            lines = path.read_text(encoding="utf-8").split("\n")
            banners = [n for n, line in enumerate(lines) if line.startswith("//===")]
            count += len(banners)
            changed = False
            for n in banners:
                if not BANNER.fullmatch(lines[n]):
                    problems.append(f"{path}:{n + 1}: expected '//===- TEXT -===//' in {WIDTH} columns")
                    continue
                if arguments.fix and len(lines[n]) != WIDTH:
                    lines[n] = fixed(lines[n])
                    changed = True
                if len(lines[n]) != WIDTH:
                    problems.append(f"{path}:{n + 1}: the banner has {len(lines[n])} columns; expected {WIDTH}")
            if changed:
                path.write_text("\n".join(lines), encoding="utf-8")
    if problems:
        sys.exit("\n".join(problems))
    print(f"{count} banners are {WIDTH} columns wide")


if __name__ == "__main__":
    main()
