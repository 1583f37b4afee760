#!/usr/bin/env python3
"""Writes the pages of docs/ that are generated from TableGen descriptions and from the families, and the files and tables quoted in other
pages, among them those of the cost model of docs/scale.md.

    generate.py --tblgen PATH --include DIR --mica PATH [--check]

With --check nothing is written: the exit status is 1 if a page is stale.
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

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/scale"))

import failure_page  # noqa: E402
import features  # noqa: E402
import markdown  # noqa: E402
import scale_page as scale  # noqa: E402

# Dialects: page -> TableGen file and name of the dialect. Ops are grouped by the files that it includes.
DIALECTS = {
    "docs/dialect.md": ("ir/Mica/MicaOps.td", "mica"),
    "docs/exec-dialect.md": ("ir/Exec/ExecOps.td", "exec"),
    "docs/cpu-dialect.md": ("backends/cpu/target/CpuDialect.td", "cpu"),
}

# docs/passes.md: where passes are described, and where pipelines are built; the table of stages is last.
PASSES = ["passes/Passes.td", "backends/cpu/target/Passes.td", "backends/cpu/dispatch/Passes.td",
          "backends/cpu/lowering/Passes.td", "backends/cpu/codegen/Passes.td"]
PIPELINES = ["passes/pipelines/Stages.cpp", "backends/cpu/dispatch/Pipeline.cpp", "backends/cpu/lowering/Pipeline.cpp",
             "backends/cpu/codegen/Pipeline.cpp", "backends/cpu/driver/Compiler.cpp"]

# Manually written pages that quote a test file: its text is between two comments that name it.
QUOTES = {"docs/handwritten-model.md": "tests/lit/ir/tiny-model.mlir"}

# The page of the command line: written manually; the output of `mica reference` replaces this line.
CLI_PAGE, CLI_TEMPLATE, CLI_PLACE = "docs/cli.md", "tools/docs/cli.md", "<!-- option reference -->\n"

# Where families are registered: used for errors, docs/families.md and README.md.
REGISTRY = "frontend/families/Families.h"

# Rejected although the meaning could be guessed.
REFUSED = [
    "| `bloom` | `slow_but_exact` with `pretraining_tp` above 1 | transformers sums the products of "
    "slices without their biases. |",
    "| `deepseek_v2`, `deepseek_v3` | `num_key_value_heads` other than `num_attention_heads` | A latent yields a key and a value for "
    "every head; transformers would repeat them once more, and fails in the product with the queries. |",
    "| `deepseek_v2` | `topk_method: noaux_tc` | It needs `e_score_correction_bias`, which only `deepseek_v3` has; transformers selects "
    "no experts and fails. |",
    "| `gemma2`, `gemma3_text` | `hidden_activation: null` | transformers fails. If the key is absent, the default is "
    "`gelu_pytorch_tanh`. |",
    "| `xglm` | `pad_token_id` beyond `vocab_size` or `max_position_embeddings` + 2 | That row of the embedding and of the "
    "sinusoidal positions is set to zero; transformers fails if there is no such row. |",
    "| those without partial rope | `partial_rotary_factor` other than 1 | Their code ignores the key and rotates whole heads, or fails. |",
]

# Ignored although transformers' code uses them: (model_type, key) -> the difference, instead of a row among the ignored keys.
DIFFERENCES = {
    ("nemotron_h", "time_step_min"): "In transformers, the minimum time step of Mamba in prompts, but not in decode, so that logits depend on how "
    "a text is split: by up to 0.7 % for the sizes of the goldens, if time steps are initialized as usual (0.001 to 0.1) and the minimum is "
    "0.001 as published. NVIDIA's code has no minimum, and neither do programs.",
}

# docs/add-a-family.md: the families with state by the commits that added them, from the first to the last one: commit -> [(family, name
# after `choose`, headers that it is the first to use, new ops, new traits)].
STATE_FAMILIES = {
    "cfae1096": [("LFM2", "Lfm2", [], ["causal_conv1d"], [])],
    "ed95782e": [("LFM2 with experts", "Lfm2Moe", [], [], ["normalizeEps"])],
    "9827f625": [
        ("Mamba 2", "Mamba2", ["Mamba.h"], ["linear_attention", "softplus", "decay", "scale_heads"], ["otherMixer"]),
        ("Bamba", "Bamba", [], [], []),
        ("Granite 4", "GraniteMoeHybrid", [], [], []),
    ],
    "bba5049c": [("Qwen3-Next", "Qwen3Next", ["Qwen3Next.h", "QwenExperts.h"], ["l2norm", "sigmoid"], ["outputGate"])],
    "ec8c390a": [
        ("Qwen3.5", "Qwen35Text", [], [], ["imagePositions"]),
        ("Qwen3.5 with a vision encoder", "Qwen35", [], [], []),
        ("Qwen3.5 with experts", "Qwen35MoeText", [], [], []),
        ("Qwen3.5 with experts and a vision encoder", "Qwen35Moe", [], [], []),
    ],
    "bc6f3a07": [("Falcon H1", "FalconH1", [], ["scale_parts"], ["parallelToAttention"])],
    "4d6b001a": [("Nemotron-H", "NemotronH", [], [], ["isOneBlock"])],
    "3b8668af": [
        ("Gemma 4", "Gemma4Text", [], ["select_head"], ["valueNorm", "layerScalar", "denseBesideExperts", "proportionalRope"]),
        ("Gemma 4 with encoders", "Gemma4", [], [], []),
    ],
}

FAMILIES = """\
<!-- Generated from frontend/families, tests/goldens/models and their IR (tools/docs/features.py) by `ninja mica-docs`;
do not edit. -->

# Model families

- [Families](#families)
- [Features](#features)
- [Sequence length: rope scaling and windows](#sequence-length-rope-scaling-and-windows)
- [Rejected keys](#rejected-keys)
- [Differences from transformers](#differences-from-transformers)
- [Ignored keys](#ignored-keys)
- [Features in the IR](#features-in-the-ir)

## Families

The supported values of `model_type`, with the architecture name in GGUF files and the goldens that verify the family: small models in
tests/goldens/models for which the compiled program reproduces the logits within 1e-5 in f32, and the greedy output exactly.

| model_type | description | GGUF | verified by |
|---|---|---|---|
{families}

Not supported: `kimi_linear` (Kimi Linear), because the decay of its delta rule has a number per channel of a key
([state.md](state.md#recurrent-states)), and encoders of images, video and sound, which are omitted or rejected.

## Features

An x means that the IR of at least one golden of the family has the feature, so it is verified end to end. Many features depend on
configuration keys, which a family without an x may also accept.

{matrices}
## Sequence length: rope scaling and windows

Linear, YaRN, Llama 3, LongRoPE and dynamic scaling are supported. LongRoPE and dynamic scaling depend on the sequence length: LongRoPE
has one set of factors up to the original length and another one for longer sequences; dynamic scaling changes theta beyond
`max_position_embeddings` (`--max-seq` may exceed it). A prompt uses the frequencies for its total length. When a sequence crosses the
threshold (shown by `info`), its KV cache is recomputed once with the new frequencies; `-v` reports it. Past the threshold, each new token
uses the frequencies for its own position, as in transformers' cached generation; with dynamic scaling, the next turn therefore computes
the whole text again.

Layers with a sliding window cache the window and the positions needed to rewind a turn, not the whole context ([state.md](state.md));
`info` and `compile -v` show the cache size of a full-length sequence.

## Rejected keys

Keys that are neither supported nor known to be irrelevant are rejected with an error that names them, as are values that are not
implemented. The following are rejected although their meaning could be guessed:

| model_type | rejected | reason |
|---|---|---|
{refused}

## Differences from transformers

Logits differ from those of transformers where its code uses these keys, which are ignored:

| model_type | key | difference |
|---|---|---|
{differences}

## Ignored keys

These keys are accepted with any value and ignored: as in transformers, whose classes may store them, they have no effect. `compile -v`
lists the ignored keys of a model with the reason, including keys that are irrelevant for every family.

| model_type | key | reason |
|---|---|---|
{unread}

## Features in the IR

How a feature appears in the IR at stage `model` (see [dialect.md](dialect.md)), and the goldens that have it.

| feature | in the IR | verified by |
|---|---|---|
{features}
"""


def generate(tblgen, include, source, generator):
    path = ROOT / source
    command = [tblgen, *generator, f"-I{include}", f"-I{path.parent}", str(path)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = [line.rstrip() for line in text.splitlines() if line not in ("[TOC]",) and not line.startswith("<!--")]
    return "\n".join(lines).strip() + "\n"


def made_from(*sources):
    return f"<!-- Generated from {', '.join(sources)} by `ninja mica-docs`; do not edit. -->\n\n"


def link(title):
    """A heading as the item of a table of contents."""
    return f"[{title}](#{markdown.anchor(title)})"


def summary(section):
    """The first line of a description: the first sentence in italics, without a period."""
    return re.search(r"^_(.*)_$", section, re.M)[1].rstrip(".")


def topics_of(source):
    """(title, mnemonics) of the files of ops included by a TableGen file, or of that file. The title is the first comment."""
    path = ROOT / source
    files = [path.parent / name for name in re.findall(r'^include "(\w+Ops\.td)"', path.read_text(encoding="utf-8"), re.M)]
    for file in files or [path]:
        text = file.read_text(encoding="utf-8")
        title = re.match(r"// ([^.\n]+)", text)[1] if files else ""
        yield title, re.findall(r'^def \w+Op : \w+<"(\w+)"', text, re.M)


def dialect(tblgen, include, source, name):
    """The page of a dialect: ops by topic, in the order of their files, after a table of contents."""
    text = generate(tblgen, include, source, ["-gen-dialect-doc", f"-dialect={name}"])
    head, parts = markdown.sections(text, 2)
    contents, page = [], []
    for title, part in parts.items():
        contents.append(f"- {link(title)}")
        own, entries = markdown.sections(part, 3)
        if title != "Operations":
            contents += [f"  - {link(entry)}" for entry in entries]
            page.append(part)
            continue
        page.append(own)
        ops = {re.match(rf"`{name}\.(\w+)`", entry)[1]: entry for entry in entries}
        for topic, mnemonics in topics_of(source):
            if topic:
                contents.append(f"  - {link(topic)}: " + ", ".join(f"[`{m}`](#{markdown.anchor(ops[m])})" for m in mnemonics))
                page.append(f"### {topic}\n")
            else:
                contents += [f"  - {link(ops[m])}" for m in mnemonics]
            page += [re.sub(r"^(?=#{3,4} )", "#", entries[ops.pop(m)], flags=re.M) if topic else entries[ops.pop(m)]
                     for m in mnemonics]
        if ops:
            sys.exit(f"{source}: {', '.join(ops)} is defined in none of its files of ops")
    return made_from(source) + "\n".join([head, "## Contents\n", "\n".join(contents) + "\n", *page])


class Pipelines:
    """The passes of each stage, read from the functions that build pipelines."""

    def __init__(self, sources):
        self.text = "\n".join((ROOT / source).read_text(encoding="utf-8") for source in sources)

    def calls(self, text, names):
        """The passes of `names` (the names after `create`) that a piece of code adds, through the functions that it calls."""
        for found in re.finditer(r"\bcreate(\w+)\(|\b(build\w+|add\w+Passes)\b", text):
            if found[1] in names:
                yield found[1]
            elif found[2] and (body := re.search(rf"^(?:static )?void (?:\w+::)*{found[2]}\((.*?)^}}", self.text, re.M | re.S)):
                yield from self.calls(body[1].partition("{")[2], names)

    def stages(self, names):
        """(stage, its passes) in order."""
        for stage, built in re.findall(r"\.set\(Stage::(\w+),\s(.*?)(?=\.set\(Stage::|^}|return)", self.text, re.M | re.S):
            yield stage.lower(), list(self.calls(built, names))


def passes(tblgen, include):
    """The page of passes, in the order in which programs are compiled. A pass is listed where it first runs."""
    described, names = {}, {}
    for source in PASSES:
        described |= markdown.sections(generate(tblgen, include, source, ["-gen-pass-doc"]), 3)[1]
        names |= dict(re.findall(r'^def (\w+) : Pass<"([\w-]+)"', (ROOT / source).read_text(encoding="utf-8"), re.M))
    contents, page, last, left = [], [], "model", dict(described)
    for stage, run in Pipelines(PIPELINES).stages(names):
        title = f"From `{last}` to `{stage}`"
        contents.append(f"- {link(title)}")
        page.append(f"## {title}\n")
        for name in run:
            heading = f"`-{names[name]}`"
            contents.append(f"  1. {link(heading)}: {summary(described[heading])}")
            page += [left.pop(heading)] if heading in left else []
        last = stage
    if left:
        sys.exit(f"docs/passes.md: no pipeline runs {', '.join(left)}")
    return (made_from(*PASSES) + "# Passes\n\nIn the order in which they run. MLIR's own passes between them, such as bufferization, are in "
            "`Pipeline.cpp` of each folder.\n`mica-opt --help` lists these passes and the pipelines of the stages; every example is run by a test.\n\n"
            "## Contents\n\n" + "\n".join(contents) + "\n\n" + "\n".join(page))


def between(page_name, passages):
    """The page with each of `passages` between the two comments that name it."""
    text = (ROOT / page_name).read_text(encoding="utf-8")
    for what, passage in passages.items():
        begin, end = f"<!-- {what}, put here by `ninja mica-docs` -->\n", f"<!-- end of {what} -->\n"
        if text.count(begin) != 1 or text.count(end) != 1:
            sys.exit(f"{page_name}: the lines {begin!r} and {end!r} must occur in it once each")
        text = text[:text.index(begin)] + begin + passage + text[text.index(end):]
    return text


def quoted(page_name, source):
    """The page with the current text of `source`, without the lines that only the test needs."""
    lines = (ROOT / source).read_text(encoding="utf-8").splitlines()
    model = "\n".join(line for line in lines if not re.match(r"\s*// (RUN|CHECK)", line)).strip()
    return between(page_name, {source: f"```mlir\n{model}\n```\n"})


def registered():
    """(model_type, the name after `choose`) of every family."""
    return re.findall(r'FAMILY\("(\w+)", (\w+)\)', (ROOT / REGISTRY).read_text(encoding="utf-8"))


def line_counts(text):
    """The lines of config and tensors, and of GGUF files, of each family in the file `text`, by the name after `choose`: those up to the end
    of choose`name`, and of gguf`name`, after the previous of such definitions. The sum is the whole file."""
    definitions = list(re.finditer(r"^llvm::Expected<const Family \*> choose(\w+)\([\s\S]*?^}$|"
                                   r"^constexpr GgufArchitecture gguf(\w+) =[\s\S]*?};$", text, re.M))
    counts, last = {}, 0
    for found in definitions:
        line = text.count("\n", 0, found.end() if found is not definitions[-1] else len(text))
        counts.setdefault(found[1] or found[2], [0, 0])[0 if found[1] else 1] += line - last
        last = line
    return counts


def state_families():
    """The table of docs/add-a-family.md."""
    folder = ROOT / "frontend/families"
    sources = {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.iterdir()) if path.suffix in (".cpp", ".h")}
    defined = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "ir/Mica").glob("*.td"))), sources["Family.h"]
    rows, of_commits = [], [(commit, *each) for commit, added in STATE_FAMILIES.items() for each in added]
    for commit, family, name, headers, ops, traits in of_commits:
        for new, pattern, text in ((ops, r'Op<"{}"', defined[0]), (traits, r"\b{} =", defined[1])):
            if unknown := [each for each in new if not re.search(pattern.format(each), text)]:
                raise ValueError(f"{family}: not defined: {', '.join(unknown)}")
        file = next(file for file, text in sources.items() if f"choose{name}(" in text)
        lines, gguf = line_counts(sources[file])[name]
        files = [f"`{file}`", *(f"`{header}` ({sources[header].count(chr(10))})" for header in headers)]
        added = [", ".join(f"`{each}`" for each in new) or "-" for new in (ops, traits)]
        rows.append(f"| {family} | {', '.join(files)} | {lines} | {gguf or '-'} | {' | '.join(added)} | {commit} |")
    return f"| family | file | config and tensors | GGUF | new ops | new traits | commit |\n{'|---' * 7}|\n" + "\n".join(rows) + "\n"


def model_types():
    names = ", ".join(f"`{kind}`" for kind, _ in registered())
    return textwrap.fill(names, 124, break_long_words=False, break_on_hyphens=False) + "\n"


def block_types(mica):
    """What README.md lists, and the tables of docs/gguf.md and docs/quantization.md: the types of GGUF files, the sizes of their blocks, and
    those of Mica's own formats."""
    types = json.loads(subprocess.run([mica, "reference", "--formats"], check=True, capture_output=True, text=True).stdout)
    rows = [f"| {t['name']} | {t['elements']} | {t['file_bits']:g} | {t['program_bits']:g} |" for t in types["blocks"]]
    own = [f"| `{t['name']}` | {t['elements']} | {t['group']} | {t['program_bits']:g} |" for t in types["own"]]
    return (types["readable"] + "\n",
            "| format | block size | bits per weight in the file | bits per weight in a program |\n|---|---|---|---|\n" + "\n".join(rows) + "\n",
            "| format | block size | group size | bits per weight in a program |\n|---|---|---|---|\n" + "\n".join(own) + "\n")


def command_line(mica):
    """The page of the command line."""
    reference = subprocess.run([mica, "reference"], check=True, capture_output=True, text=True).stdout
    text = (ROOT / CLI_TEMPLATE).read_text(encoding="utf-8")
    if text.count(CLI_PLACE) != 1:
        sys.exit(f"{CLI_TEMPLATE}: the line {CLI_PLACE!r} must occur in it once")
    return (f"<!-- Generated from {CLI_TEMPLATE} and the command line of mica and of programs by `ninja mica-docs`; do not edit. -->\n\n"
            + text.replace(CLI_PLACE, reference))


def emitted(mica, folder):
    """The IR of a model's folder at stage `model`."""
    return subprocess.run([mica, "compile", str(folder), "--emit", "model", "-o", "-"], check=True, capture_output=True,
                          text=True).stdout


def shortened(names, limit=4):
    rest = len(names) - limit
    return ", ".join(names) if rest <= 1 else f"{', '.join(names[:limit])} and {rest} others"


def ignored_rows(text, table, reasons):
    """(key, reason) of each row of the last table of that name in `text`; a row may be one of another table."""
    rows = []
    for key, why, other, index in re.findall(r'\{"(\w+)",\s*([^{}]+)\}|(\w+)\[(\d+)\]',
                                             re.findall(rf"IgnoredKeyRow {table}\[\] = (.*?);", text, re.S)[-1]):
        if other:
            rows.append(ignored_rows(text, other, reasons)[int(index)])
        else:
            rows.append((key, "".join(re.findall(r'"(.*?)"', why)) or reasons[why.strip().removeprefix("reasons::")]))
    return rows


def ignored_keys(text, name, reasons):
    """The keys without effect on the family selected by choose`name` in the file `text`."""
    begin = text.index(f"choose{name}(")
    end = text.index("\n}\n", begin)
    # A file of one model_type may describe its families before it selects one, a file of several ones in a function `describe`.
    anywhere = len(re.findall(r"\bchoose\w+\(const FamilyEvidence", text)) == 1 or re.search(r"=\s+describe\(", text[begin:end])
    table = re.search(r"\.ignoredKeys = (\w+)", text[:end] if anywhere else text[begin:end])
    return ignored_rows(text[:end], table[1], reasons) if table else []


def families_without(sources):
    """Lines of a table of keys that single families accept and ignore, and of one of those that transformers uses."""
    reasons = dict(re.findall(r'StringLiteral (\w+) =\s*"([^"]+)";',
                              (ROOT / "frontend/families/IrrelevantKeys.h").read_text(encoding="utf-8")))
    kinds, differences = {}, []
    for kind, name in registered():
        text = next(text for text in sources.values() if f"choose{name}(" in text)
        for row in ignored_keys(text, name, reasons):
            if difference := DIFFERENCES.get((kind, row[0])):
                differences.append(f"| `{kind}` | `{row[0]}` | {difference} |")
            else:
                kinds.setdefault(row, []).append(f"`{kind}`")
    if len(differences) != len(DIFFERENCES):
        sys.exit("docs/families.md: a key of DIFFERENCES is not ignored: correct the list")
    return [f"| {', '.join(found)} | `{key}` | {why} |" for (key, why), found in kinds.items()], differences


def matrix(topic, has):
    """The families with the features of a topic, without families that have none of them."""
    names = [feature.name for feature in features.FEATURES if feature.topic == topic]
    rows = [f"| `{kind}` | " + " | ".join("x" if name in own else "" for name in names) + " |"
            for kind, own in has.items() if own & set(names)]
    return f"### {topic}\n\n| model_type | {' | '.join(names)} |\n|---|{':-:|' * len(names)}\n" + "\n".join(rows) + "\n"


def families(mica):
    """The page of model families: the registry, the sentences above each family, the goldens of its type, and the features in their IR."""
    folder, goldens = ROOT / "frontend/families", ROOT / "tests/goldens/models"
    sources = {path: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.cpp"))}
    architecture = r'GgufArchitecture gguf(\w+) = {\s*\.name = "([\w-]+)"(?:,\s*\.sparseName = "([\w-]+)")?'
    architectures = {own: ", ".join(filter(None, names)) for text in sources.values()
                     for own, *names in re.findall(architecture, text)}
    configs = sorted(goldens.glob("*/config.json"))
    with concurrent.futures.ThreadPoolExecutor() as pool:
        found = dict(zip((path.parent.name for path in configs),
                         map(features.features_of, pool.map(lambda path: emitted(mica, path.parent), configs))))
    names = {}
    for path in configs:
        kind = json.loads(path.read_text(encoding="utf-8"))["model_type"]
        names.setdefault(kind, []).append(path.parent.name)
    rows, has = [], {}
    for kind, name in registered():
        text = next(text for text in sources.values() if f"choose{name}(" in text)
        said = re.findall(rf"((?:^// .*\n)+)llvm::Expected<const Family \*> choose{name}\(", text, re.M)
        what = re.sub(r"\n// ", " ", said[-1].strip())[3:] if said else ""
        proven = names.get(kind) or sys.exit(f"docs/families.md: no golden is of the type {kind}: make one")
        has[kind] = set().union(*(found[golden] for golden in proven))
        rows.append(f"| `{kind}` | {what} | {architectures.get(name, '')} | {shortened(proven, 6)} |")
    proofs = []
    for feature in features.FEATURES:
        proven = [g for g in found if feature.name in found[g]] or sys.exit(
            f"docs/families.md: no golden's IR has the feature '{feature.name}': make one or correct its test")
        proofs.append(f"| {feature.name} | {feature.written} | {shortened(proven)} |")
    unread, differences = families_without(sources)
    return FAMILIES.format(families="\n".join(rows), matrices="\n".join(matrix(topic, has) for topic in features.topics()),
                           refused="\n".join(REFUSED), differences="\n".join(differences), unread="\n".join(unread),
                           features="\n".join(proofs))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tblgen", required=True)
    parser.add_argument("--include", required=True)
    parser.add_argument("--mica", required=True)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    stale = False
    pages = {name: dialect(args.tblgen, args.include, *source) for name, source in DIALECTS.items()}
    pages["docs/passes.md"] = passes(args.tblgen, args.include)
    pages["docs/families.md"] = families(args.mica)
    pages[CLI_PAGE] = command_line(args.mica)
    pages.update({name: quoted(name, source) for name, source in QUOTES.items()})
    names, table, own = block_types(args.mica)
    pages["README.md"] = between("README.md", {"model types": model_types(), "types of GGUF files": names})
    pages["docs/add-a-family.md"] = between("docs/add-a-family.md", {"families with state": state_families()})
    pages["docs/gguf.md"] = between("docs/gguf.md", {"block formats": table})
    pages["docs/quantization.md"] = between("docs/quantization.md", {"own formats": own})
    measured = scale.load()
    pages["docs/scale.md"] = between("docs/scale.md", {"cost model": scale.passage(measured, scale.load(scale.DELAYED)),
                                                       "failure times": failure_page.passage(failure_page.load()),
                                                       "RPC": scale.rpc_passage()})
    pages["docs/scale.svg"] = scale.picture(measured)
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
