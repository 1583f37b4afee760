#!/usr/bin/env python3
"""Writes the pages of docs/ that are made from TableGen descriptions and from the families, and the files that others quote
whole.

    generate.py --tblgen PATH --include DIR --mica PATH [--check]

With --check nothing is written: the exit status is 1 where a page is not what it would become.
"""

import argparse
import concurrent.futures
import difflib
import json
import pathlib
import re
import subprocess
import sys
import textwrap

import features

ROOT = pathlib.Path(__file__).resolve().parents[2]

# page -> the TableGen files it is made of, each with its generator.
PAGES = {
    "docs/dialect.md": [("ir/Mica/MicaOps.td", ["-gen-dialect-doc", "-dialect=mica"])],
    "docs/exec-dialect.md": [("ir/Exec/ExecOps.td", ["-gen-dialect-doc", "-dialect=exec"])],
    "docs/cpu-dialect.md": [("backends/cpu/target/CpuDialect.td", ["-gen-dialect-doc", "-dialect=cpu"])],
    "docs/passes.md": [
        ("passes/Passes.td", ["-gen-pass-doc"]),
        ("backends/cpu/target/Passes.td", ["-gen-pass-doc"]),
        ("backends/cpu/dispatch/Passes.td", ["-gen-pass-doc"]),
        ("backends/cpu/lowering/Passes.td", ["-gen-pass-doc"]),
        ("backends/cpu/codegen/Passes.td", ["-gen-pass-doc"]),
    ],
}

# Pages written by hand that quote a test file whole: its text is between two comments that name it.
QUOTES = {"docs/handwritten-model.md": "tests/lit/ir/tiny-model.mlir"}

# The page of the command line: written by hand, with the options as `mica reference` prints them in place of this line.
CLI_PAGE, CLI_TEMPLATE, CLI_PLACE = "docs/cli.md", "tools/docs/cli.md", "<!-- option reference -->\n"

# Where families are registered: what errors, docs/families.md and README.md list.
REGISTRY = "frontend/families/Families.h"

# What is refused although its meaning could be guessed.
REFUSED = [
    "| `bloom` | `slow_but_exact` with `pretraining_tp` above 1 | The products of slices that transformers adds up leave out their "
    "biases. |",
    "| `deepseek_v2`, `deepseek_v3` | `num_key_value_heads` other than `num_attention_heads` | A latent makes a key and a value for "
    "every head; transformers repeats them for groups that there are not, and fails to multiply them with the queries. |",
    "| `deepseek_v2` | `topk_method: noaux_tc` | It needs a correction for every expert, which this generation's tensors and class do "
    "not have. transformers chooses no experts then and fails. The model that has it is `deepseek_v3`. |",
    "| `gemma2`, `gemma3_text` | `hidden_activation: null` | The class wants a name and fails. Where the key is absent, it is "
    "`gelu_pytorch_tanh`. |",
    "| `xglm` | `pad_token_id` beyond `vocab_size` or `max_position_embeddings` + 2 | That row of the embeddings and of the sinusoidal "
    "positions is set to zero; transformers fails where there is no such row. |",
    "| those without partial rope | `partial_rotary_factor` other than 1 | Their code rotates whole heads whatever it says, or fails. |",
]


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


def between(page_name, what, passage):
    """The page with `passage` between the two comments that name it."""
    begin, end = f"<!-- {what}, put here by `ninja mica-docs` -->\n", f"<!-- end of {what} -->\n"
    text = (ROOT / page_name).read_text(encoding="utf-8")
    if text.count(begin) != 1 or text.count(end) != 1:
        sys.exit(f"{page_name}: the lines {begin!r} and {end!r} must occur in it once each")
    return text[:text.index(begin)] + begin + passage + text[text.index(end):]


def quoted(page_name, source):
    """The page with `source` as it stands today, without the lines that are only for the test."""
    lines = (ROOT / source).read_text(encoding="utf-8").splitlines()
    model = "\n".join(line for line in lines if not re.match(r"\s*// (RUN|CHECK)", line)).strip()
    return between(page_name, source, f"```mlir\n{model}\n```\n")


def registered():
    """(model_type, the name after `choose`) of every family."""
    return re.findall(r'FAMILY\("(\w+)", (\w+)\)', (ROOT / REGISTRY).read_text(encoding="utf-8"))


def model_types():
    names = ", ".join(f"`{kind}`" for kind, _ in registered())
    return textwrap.fill(names, 124, break_long_words=False, break_on_hyphens=False) + "\n"


def command_line(mica):
    """The page of the command line."""
    reference = subprocess.run([mica, "reference"], check=True, capture_output=True, text=True).stdout
    text = (ROOT / CLI_TEMPLATE).read_text(encoding="utf-8")
    if text.count(CLI_PLACE) != 1:
        sys.exit(f"{CLI_TEMPLATE}: the line {CLI_PLACE!r} must stand in it once")
    return (f"<!-- Made from {CLI_TEMPLATE} and the command line of mica and of programs by `ninja mica-docs`: edit there. -->\n\n"
            + text.replace(CLI_PLACE, reference))


def emitted(mica, folder):
    """The IR of a model's folder as it was imported."""
    return subprocess.run([mica, "compile", str(folder), "--emit", "model", "-o", "-"], check=True, capture_output=True,
                          text=True).stdout


def few(names, most=4):
    rest = len(names) - most
    return ", ".join(names) if rest <= 1 else f"{', '.join(names[:most])} and {rest} others"


def ignored_rows(text, table, reasons):
    """(key, why) of each row of the last table of that name in `text`; a row may be one of another table."""
    rows = []
    for key, why, other, index in re.findall(r'\{"(\w+)",\s*([^{}]+)\}|(\w+)\[(\d+)\]',
                                             re.findall(rf"IgnoredKeyRow {table}\[\] = (.*?);", text, re.S)[-1]):
        if other:
            rows.append(ignored_rows(text, other, reasons)[int(index)])
        else:
            rows.append((key, "".join(re.findall(r'"(.*?)"', why)) or reasons[why.strip().removeprefix("reasons::")]))
    return rows


def ignored_keys(text, name, reasons):
    """The keys without influence on the family that choose`name` of the file `text` chooses."""
    begin = text.index(f"choose{name}(")
    end = text.index("\n}\n", begin)
    # A file of one model_type may describe its families before it chooses.
    alone = len(re.findall(r"\bchoose\w+\(const FamilyEvidence", text)) == 1
    table = re.search(r"\.ignoredKeys = (\w+)", text[:end] if alone else text[begin:end])
    return ignored_rows(text[:end], table[1], reasons) if table else []


def families_without(sources):
    """Lines of a table of the keys that single families accept and do not read."""
    reasons = dict(re.findall(r'StringLiteral (\w+) =\s*"([^"]+)";',
                              (ROOT / "frontend/families/IrrelevantKeys.h").read_text(encoding="utf-8")))
    kinds = {}
    for kind, name in registered():
        text = next(text for text in sources.values() if f"choose{name}(" in text)
        for row in ignored_keys(text, name, reasons):
            kinds.setdefault(row, []).append(f"`{kind}`")
    return [f"| {', '.join(found)} | `{key}` | {why} |" for (key, why), found in kinds.items()]


def families(mica):
    """The page of model families: the registry, the sentences above each family, the goldens of its type, and what is in
    their IR."""
    folder, goldens = ROOT / "frontend/families", ROOT / "tests/goldens/models"
    sources = {path: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.cpp"))}
    architectures = dict(pair for text in sources.values()
                         for pair in re.findall(r'GgufArchitecture gguf(\w+) = {\s*\.name = "([\w-]+)"', text))
    configs = sorted(goldens.glob("*/config.json"))
    with concurrent.futures.ThreadPoolExecutor() as pool:
        found = dict(zip((path.parent.name for path in configs),
                         map(features.features_of, pool.map(lambda path: emitted(mica, path.parent), configs))))
    names = {}
    for path in configs:
        kind = json.loads(path.read_text(encoding="utf-8"))["model_type"]
        names.setdefault(kind, []).append(path.parent.name)
    rows, known = [], [feature.name for feature in features.FEATURES]
    for kind, name in registered():
        text = next(text for text in sources.values() if f"choose{name}(" in text)
        said = re.findall(rf"((?:^// .*\n)+)llvm::Expected<const Family \*> choose{name}\(", text, re.M)
        what = re.sub(r"\n// ", " ", said[-1].strip())[3:] if said else ""
        proven = names.get(kind) or sys.exit(f"docs/families.md: no golden is of the type {kind}: make one")
        own = [f for f in known if any(f in found[golden] for golden in proven)]
        rows.append(f"| `{kind}` | {what} | {', '.join(own)} | {architectures.get(name, '')} | {', '.join(proven)} |")
    proofs = []
    for feature in features.FEATURES:
        proven = [g for g in found if feature.name in found[g]] or sys.exit(
            f"docs/families.md: no golden's IR has the feature '{feature.name}': make one or correct its test")
        proofs.append(f"| {feature.name} | {feature.written} | {few(proven)} |")
    return ("<!-- Made from frontend/config, tests/goldens/models and their IR (tools/docs/features.py) by `ninja mica-docs`:\n"
            "edit there. -->\n\n"
            "# Model families\n\nThe supported values of `model_type`, the properties of each family, the features that the IR of its goldens has, its\n"
            "architecture in GGUF files, and its goldens: small models (tests/goldens) whose logits and greedy text the compiled program\n"
            "matches (logits within 1e-5 in f32, every id).\n\n"
            "| model_type | the family | features | GGUF | verified by |\n|---|---|---|---|---|\n" + "\n".join(rows) + "\n\n"
            "Rope scaling: linear, yarn, llama3, longrope and dynamic. LongRoPE and dynamic scaling depend on sequence length: longrope has\n"
            "factors for texts up to its original length and others for longer ones, dynamic increases theta above\n"
            "`max_position_embeddings` (`--max-seq` may exceed it). A prompt uses the frequencies of its whole length. When a sequence\n"
            "crosses the threshold (shown by `info`) in either direction, its KV cache is recomputed once with the new frequencies; `-v`\n"
            "reports it. Above the threshold, the frequencies of each new token follow its position, as in transformers' cached generation.\n\n"
            "A sliding window saves time, not memory: such a layer keeps the keys and values of the whole context, and the cache per token\n"
            "that `inspect`, `info` and `compile -v` report counts every layer alike.\n\n"
            "## Keys that are refused\n\n"
            "Unknown keys are refused by name, and so are values that are not supported. These are refused although their meaning could be\n"
            "guessed:\n\n"
            "| model_type | refused | why |\n|---|---|---|\n" + "\n".join(REFUSED) + "\n\n"
            "## Keys without influence\n\n"
            "These are accepted, with any value, and not read, as in transformers, whose classes may store them and apply them\n"
            "nowhere. `compile -v` names each one that a model has, with the reason, and those that no family reads.\n\n"
            "| model_type | key | why |\n|---|---|---|\n" + "\n".join(families_without(sources)) + "\n\n"
            "## Features\n\nHow a feature is expressed in the IR of stage `model` (dialect.md has the ops), and the goldens that have it.\n\n"
            "| feature | in the IR | verified by |\n|---|---|---|\n" + "\n".join(proofs) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tblgen", required=True)
    parser.add_argument("--include", required=True)
    parser.add_argument("--mica", required=True)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    stale = False
    pages = {name: page(args.tblgen, args.include, parts) for name, parts in PAGES.items()}
    pages["docs/families.md"] = families(args.mica)
    pages[CLI_PAGE] = command_line(args.mica)
    pages.update({name: quoted(name, source) for name, source in QUOTES.items()})
    pages["README.md"] = between("README.md", "model types", model_types())
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
