#!/usr/bin/env python3
"""Writes the pages of docs/ that are made from TableGen descriptions, and the files that others quote whole.

    generate.py --tblgen PATH --include DIR [--check]

With --check nothing is written: the exit status is 1 where a page is not what it would become.
"""

import argparse
import difflib
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# page -> the TableGen files it is made of, each with its generator.
PAGES = {
    "docs/dialect.md": [("ir/Mica/MicaOps.td", ["-gen-dialect-doc", "-dialect=mica"])],
    "docs/exec-dialect.md": [("ir/Exec/ExecOps.td", ["-gen-dialect-doc", "-dialect=exec"])],
    "docs/passes.md": [
        ("passes/Passes.td", ["-gen-pass-doc"]),
        ("backends/cpu/lowering/Passes.td", ["-gen-pass-doc"]),
        ("backends/cpu/codegen/Passes.td", ["-gen-pass-doc"]),
    ],
}

# Pages written by hand that quote a test file whole: its text stands between two comments that name it.
QUOTES = {"docs/handwritten-model.md": "tests/lit/ir/tiny-model.mlir"}


def generate(tblgen, include, source, generator):
    path = ROOT / source
    command = [tblgen, *generator, f"-I{include}", f"-I{path.parent}", str(path)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = [line.rstrip() for line in text.splitlines() if line not in ("[TOC]",) and not line.startswith("<!--")]
    return "\n".join(lines).strip() + "\n"


def page(tblgen, include, parts):
    sources = ", ".join(source for source, _ in parts)
    head = f"<!-- Made from {sources} by `ninja mica-docs`: edit there. -->\n\n"
    return head + "\n".join(generate(tblgen, include, *part) for part in parts)


def quoted(page_name, source):
    """The page with `source` as it stands today, without the lines that are only for the test."""
    lines = (ROOT / source).read_text(encoding="utf-8").splitlines()
    model = "\n".join(line for line in lines if not re.match(r"\s*// (RUN|CHECK)", line)).strip()
    begin, end = f"<!-- {source}, put here by `ninja mica-docs` -->\n", f"<!-- end of {source} -->\n"
    text = (ROOT / page_name).read_text(encoding="utf-8")
    if text.count(begin) != 1 or text.count(end) != 1:
        sys.exit(f"{page_name}: the lines {begin!r} and {end!r} must stand in it once each")
    return text[:text.index(begin)] + f"{begin}```mlir\n{model}\n```\n" + text[text.index(end):]


def families():
    """The page of model families: the registry, the sentences above each family, and the goldens of its type."""
    folder = ROOT / "frontend/config/families"
    sources = {path: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.cpp"))}
    goldens = {}
    for config in sorted((ROOT / "tests/goldens/models").glob("*/config.json")):
        kind = json.loads(config.read_text(encoding="utf-8"))["model_type"]
        goldens.setdefault(kind, []).append(config.parent.name)
    rows = []
    for kind, name in re.findall(r'FAMILY\("(\w+)", (\w+)\)', (folder / "Families.h").read_text(encoding="utf-8")):
        path = next(p for p, text in sources.items() if f"choose{name}(" in text)
        text = sources[path]
        said = re.findall(rf"((?:^// .*\n)+)llvm::Expected<const Family \*> choose{name}\(", text, re.M)
        what = re.sub(r"\n// ", " ", said[-1].strip())[3:] if said else ""
        rows.append(f"| `{kind}` | {what} | {', '.join(goldens.get(kind, [])) or 'none yet'} |")
    return ("<!-- Made from frontend/config/families and tests/goldens/models by `ninja mica-docs`: edit there. -->\n\n"
            "# Model families\n\nWhat `model_type` may say, what is special about the family, and the small models (tests/goldens) "
            "whose logits and greedy\ntext the compiled program matches: within 1e-5 in f32, every id.\n\n"
            "| model_type | the family | verified by |\n|---|---|---|\n" + "\n".join(rows) + "\n\n"
            "Ropes scale as linear, yarn, llama3, longrope and dynamic. The frequencies of the last two follow the length of the\n"
            "text: longrope has factors for texts up to its original length and others for longer ones, dynamic's theta grows behind\n"
            "`max_position_embeddings` (`--max-seq` may go beyond it). A prompt is read with the frequencies of its whole length. Where\n"
            "a text crosses that border, while it is generated or from turn to turn of a chat, forwards or back, its tokens are read\n"
            "again, once, with those of the new length (`-v` says so, `info` where the border lies); behind it, each new token, of later\n"
            "turns as well, follows its own position, as in transformers' cached generation.\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tblgen", required=True)
    parser.add_argument("--include", required=True)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    stale = False
    pages = {name: page(args.tblgen, args.include, parts) for name, parts in PAGES.items()}
    pages["docs/families.md"] = families()
    pages.update({name: quoted(name, source) for name, source in QUOTES.items()})
    for name, new in pages.items():
        path = ROOT / name
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        if not args.check:
            path.write_text(new, encoding="utf-8")
        elif old != new:
            stale = True
            sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), name, "would be"))
    if stale:
        sys.exit("pages in docs/ are stale: run `ninja -C build/release mica-docs` and commit them")


if __name__ == "__main__":
    main()
