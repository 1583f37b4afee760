#!/usr/bin/env python3
"""Checks the names of declarations: readability-identifier-naming of clang-tidy, with the styles of .clang-tidy.

    check_names.py BUILD [FILES...]

All sources would take half an hour, so without FILES only the headers are checked, as one translation unit. To check the sources that a
change touches: check_names.py BUILD $(git diff --name-only main -- '*.cpp').

BUILD is the folder of a complete build, for its compile commands, generated headers and precompiled header. Without the clang-tidy of
tools/setup/packages.txt the check is skipped (status 77).
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("ir", "frontend", "passes", "backends", "tools")
FINDING = re.compile(r"^(.*?:\d+:\d+): (?:error|warning): (.*?)(?: \[.*\])?$", re.M)


class Tidy:
    def __init__(self, program, build):
        self.program, self.build = program, build
        self.commands = {os.path.realpath(entry["file"]): entry for entry in json.loads((build / "compile_commands.json").read_text())}

    def flags(self):
        """Those of a file that may include any header."""
        flags = {}
        for entry in self.commands.values():
            words = iter(shlex.split(entry["command"]))
            for word in words:
                if word == "-isystem":
                    flags[word, next(words)] = None
                elif word.startswith(("-I", "-D")):
                    flags[word,] = None
        return ["-std=c++20", *(word for flag in flags for word in flag)]

    def run(self, file):
        """The findings in a file and in the headers of the tree that it includes, and other errors."""
        place = ["-p", self.build] if os.path.realpath(file) in self.commands else []
        done = subprocess.run([self.program, "--quiet", "--checks=-*,readability-identifier-naming", f"--config-file={ROOT}/.clang-tidy", *place,
                               file, *([] if place else ["--", *self.flags()])], capture_output=True, text=True, check=False)
        found = [f"{os.path.relpath(where, ROOT)}: {what}" for where, what in FINDING.findall(done.stdout)]
        if done.returncode != 0 and not found:
            found = [f"{file}: clang-tidy fails: {(done.stderr or done.stdout).strip()}"]
        return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    program = re.search(r"^clang-tidy-\d+$", (ROOT / "tools/setup/packages.txt").read_text(), re.M).group()
    if not shutil.which(program):
        # In GoogleTest's format, which count_results.py reads.
        print(f"tests/tools/check_names.py: Skipped\n{program} is not installed")
        sys.exit(77)
    tidy = Tidy(program, arguments.build)
    headers = [path.resolve() for path in arguments.files if path.suffix == ".h"]
    sources = [path.resolve() for path in arguments.files if path.suffix != ".h"]
    if not arguments.files:
        headers = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.h"))]
    with tempfile.TemporaryDirectory() as folder:
        unit = pathlib.Path(folder) / "headers.cpp"
        unit.write_text("".join(f'#include "{path}"\n' for path in headers), encoding="utf-8")
        with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("MICA_JOBS") or os.cpu_count())) as pool:
            found = {line for lines in pool.map(tidy.run, ([unit] if headers else []) + sources) for line in lines}
    if found:
        sys.exit("\n".join([*sorted(found), f"{len(found)} findings; names must have the style of .clang-tidy"]))
    print(f"the names in {len(headers)} headers and {len(sources)} sources are in the style of .clang-tidy")


if __name__ == "__main__":
    main()
