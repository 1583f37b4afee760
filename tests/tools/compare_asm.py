#!/usr/bin/env python3
"""Checks that two compilers generate the same assembly for the bundled models, except for the names of symbols.

    compare_asm.py [--models MODEL,...] [--weights FORMAT,...] [--targets CPU,CPU] [-j N] OLD-MICA NEW-MICA
    compare_asm.py --files OLD.s NEW.s

Compiles every model with every weight format for every target CPU; nothing is run. FORMAT is a value of --weights, a block format of
GGUF files (q4_k), in which block_models.py writes the same models, or `blocks`: all of these. Before two files are compared

- comments, indentation, and the directives .file and .ident are dropped,
- local symbols and labels are numbered in the order in which they appear; exported and undefined symbols keep their names, because
  they are the interface between the object and its runtime,
- of the table of kernel names (mica_kernel_names) only the number of names counts.

Prints one line per program, `identical`, `different` with the first difference, or `refused` if neither compiler accepts the
model, for the same reason. Exits with 0 if there is an identical program and no different one.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import block_models

TESTS = pathlib.Path(__file__).resolve().parents[1]
GOLDENS = TESTS / "goldens/models"
MODELS = {
    "dense": TESTS / "models/minimind-dense",
    "experts": TESTS / "models/minimind-moe",
    "latent": GOLDENS / "deepseek-v3",  # latent attention, experts in groups
    "window": GOLDENS / "gpt-oss",  # layers of two types, attention sinks, biased experts
    "positions": GOLDENS / "gpt2",  # no rope, layer norms, biases
}
WEIGHTS = ("f32", "bf16", "int8", "int4")
TARGETS = ("x86-64-v3", "sapphirerapids")
NAMES = "mica_kernel_names"

STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
COMMENT = re.compile(r'^((?:[^"#]|"(?:[^"\\]|\\.)*")*)#.*')
LABEL = re.compile(r'^("(?:[^"\\]|\\.)*"|[\w.$]+):')
EXPORT = re.compile(r"^\.(?:globl|weak)\s+(\S+)")
DROPPED = re.compile(r"^\.(?:file|ident)\b")
# A register is not a symbol, nor is a part of a longer word.
SYMBOL = re.compile(r'(?<![%\w.$])("(?:[^"\\]|\\.)*"|[A-Za-z_.$][\w.$]*)')
TEXT = re.compile(r"^\.(?:ascii|asciz|string)\b")


def statements(text):
    """Yields (line number, statement without comment and indentation), without empty ones."""
    for number, line in enumerate(text.splitlines(), 1):
        statement = " ".join(COMMENT.sub(r"\1", line).split()) if not STRING.search(line) else COMMENT.sub(r"\1", line).strip()
        if statement and not DROPPED.match(statement):
            yield number, statement


def normalized(text):
    """A list of (line number, symbol that it belongs to, statement with numbers instead of names of local symbols)."""
    lines = list(statements(text))
    exported = {match[1] for _, line in lines if (match := EXPORT.match(line))}
    local = {match[1] for _, line in lines if (match := LABEL.match(line))} - exported
    numbers = {}

    def renamed(match):
        name = match[1]
        if name not in local:
            return name
        kind = "label" if name.startswith(".L") else "symbol"
        return f"{kind}{numbers.setdefault(name, len(numbers))}"

    found, owner = [], ""
    for number, line in lines:
        label = LABEL.match(line)
        if label and not label[1].startswith(".L"):
            owner = label[1]
        if owner == NAMES and TEXT.match(line):
            line = f"{line.split()[0]} {line.count(chr(92) + '000')} names"
        elif line.startswith(f".size {NAMES},"):
            line = f".size {NAMES}"
        elif not TEXT.match(line):
            line = SYMBOL.sub(renamed, line)
        found.append((number, owner, line))
    return found


def first_difference(old, new):
    """The first difference between two texts of assembly, in one line; None if they are equal."""
    one, other = normalized(old), normalized(new)
    for (line, owner, left), (other_line, other_owner, right) in zip(one, other):
        if left != right:
            places = owner if owner == other_owner else f"{owner} and {other_owner}"
            return f"in {places}, lines {line} and {other_line}: `{left}` and `{right}`"
    if len(one) != len(other):
        longer, which = (one, "the old") if len(one) > len(other) else (other, "the new")
        line, owner, left = longer[min(len(one), len(other))]
        return f"only {which} has, in {owner}, line {line}: `{left}`"
    return None


def assembly(mica, model, target):
    """(status, assembly or error output); a model is a path with options."""
    done = subprocess.run([mica, "compile", *model, "--emit", "asm", "--target", target],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout if done.returncode == 0 else done.stderr.strip()


def verdict(old, new, *program):
    """identical, different or refused, and the reason."""
    (old_status, one), (new_status, other) = assembly(old, *program), assembly(new, *program)
    if old_status or new_status:
        if (old_status, one) == (new_status, other):
            return "refused", one
        return "different", f"exit status {old_status} and {new_status}: {one if old_status else other}"
    if not normalized(one):
        return "different", "the old compiler writes no assembly"
    difference = first_difference(one, other)
    return ("different", difference) if difference else ("identical", "")


def listed(known):
    """An option type: some of the known words, separated by commas."""

    def parse(text):
        words = text.split(",")
        for word in words:
            if word not in known:
                raise argparse.ArgumentTypeError(f"{word} is none of {', '.join(known)}")
        return words

    return parse


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", action="store_true", help="compare two files of assembly")
    parser.add_argument("--models", type=listed(MODELS), default=list(MODELS), help=f"of {','.join(MODELS)} (default: all)")
    parser.add_argument("--weights", type=listed((*WEIGHTS, "blocks", *block_models.FORMATS)), default=list(WEIGHTS),
                        help=f"of {','.join(WEIGHTS)} (default: these), blocks, {','.join(block_models.FORMATS)}")
    parser.add_argument("--targets", type=lambda text: text.split(","), default=list(TARGETS), metavar="CPU,CPU",
                        help=f"(default: {','.join(TARGETS)})")
    parser.add_argument("-j", type=int, default=os.cpu_count(), metavar="N", help="programs at once (default: processors)")
    parser.add_argument("old")
    parser.add_argument("new")
    args = parser.parse_args()
    if args.files:
        difference = first_difference(*(pathlib.Path(path).read_text(encoding="utf-8") for path in (args.old, args.new)))
        print(f"different {difference}" if difference else "identical")
        sys.exit(bool(difference))
    weights = [form for word in args.weights for form in (block_models.FORMATS if word == "blocks" else (word,))]
    programs = [(model, form, target) for model in args.models for form in weights for target in args.targets]
    counts = dict.fromkeys(("identical", "different", "refused"), 0)
    with concurrent.futures.ThreadPoolExecutor(args.j) as pool, tempfile.TemporaryDirectory() as folder:
        files = block_models.write_all(args.models, [form for form in weights if form not in WEIGHTS], folder)
        inputs = {(model, form): [files[model, form]] if (model, form) in files else [MODELS[model], "--weights", form]
                  for model, form, _ in programs}
        verdicts = pool.map(lambda program: verdict(args.old, args.new, inputs[program[:2]], program[2]), programs)
        for program, (found, reason) in zip(programs, verdicts):
            counts[found] += 1
            print(f"{found:9} {' '.join(program)}{': ' + reason if reason else ''}", flush=True)
    print(", ".join(f"{count} {found}" for found, count in counts.items()))
    sys.exit(counts["different"] > 0 or counts["identical"] == 0)


if __name__ == "__main__":
    main()
