#!/usr/bin/env python3
"""Checks that every header in the folders has an include guard named after its path: MICA_IR_MICA_MICA_H for ir/Mica/Mica.h.

    check_header_guards.py --root DIR FOLDER...
"""

import argparse
import pathlib
import re
import sys


def problem(path, root):
    guard = "MICA_" + re.sub(r"[/.-]", "_", str(path.relative_to(root))).upper()
    text = path.read_text(encoding="utf-8")
    if f"#ifndef {guard}\n#define {guard}\n" not in text or not text.endswith(f"\n#endif // {guard}\n"):
        return f"{path.relative_to(root)}: expected the include guard {guard}, closed by '#endif // {guard}'"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    headers = [path for folder in arguments.folders for path in sorted(folder.rglob("*.h"))]
    problems = [text for path in headers if (text := problem(path, arguments.root))]
    if problems:
        sys.exit("\n".join(problems))
    print(f"{len(headers)} include guards are named after their files")


if __name__ == "__main__":
    main()
