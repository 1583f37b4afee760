#!/usr/bin/python3
"""measure.py with fakes of all tools: their command lines, the cache, and the use of their output."""

import contextlib
import io
import json
import pathlib
import re
import stat
import sys
import tempfile
import unittest
import unittest.mock
import xml.etree.ElementTree as ET

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "e2e")]
import engines  # noqa: E402
import gguf_file  # noqa: E402
import gguf_size  # noqa: E402
import load  # noqa: E402
import measure  # noqa: E402
import precision_goals  # noqa: E402
import published  # noqa: E402
import report  # noqa: E402
import speeds  # noqa: E402

LOG = r"""
import json, os, sys
a = sys.argv[1:]
print(json.dumps([__file__.rsplit("/", 1)[-1]] + a), file=open(__file__.rsplit("/", 1)[0] + "/log", "a"))
"""
MICA = LOG + r"""
if a == ["--version"]:
    print("mica 9.9")
elif a == ["eval", "--help"]:
    print("EVAL_HELP")
elif a == ["compile", "--help"]:
    print("COMPILE_HELP")
elif a[0] == "compile":
    program = a[a.index("-o") + 1]
    rows = {"prompt": "int8 per 32" if "--rows" in a else "PROMPT_ROWS", "decode": "int16 per 32"}
    info = json.dumps({"target": {"cpu": "znver9"}, "manifest": {} if {"f32", "bf16"} & set(a) else {"rows": rows}})
    log = __file__.rsplit("/", 1)[0] + "/benches"
    print("#!/bin/sh", f'[ "$1" = bench ] || exec echo {info!r}', f'echo "$0 $*" >>{log}', "BENCH", "# " + " ".join(a[:2] + a[4:]),
          sep=chr(10), file=open(program, "w"))
    os.chmod(program, 0o755)
else:
    decode = "--as-decode" in a or "--prefill-chunk" in a
    print(json.dumps({"kl": {"mean": 0.002 if decode else 0.001, "error": 1e-5, "p99": 0.01, "p99_9": 0.1, "max": 0.5},
                      "same_top": 0.975, "rms_delta_p": 1.5, "positions": 510,
                      "program": {"perplexity": 20.5, "bits": 4.5, "parameters": 100}, "reference": {"perplexity": 20.0}}))
"""
QUANTIZE = LOG + r"""
if "Q5_1" in a:
    sys.exit(print("cannot", file=sys.stderr) or 3)
open(a[-3], "wb").write(open(a[-4], "rb").read() + a[-2].encode())
"""
PERPLEXITY = LOG + r"""
if "--version" in a:
    print("version: 7 (abc)", file=sys.stderr)
elif "--kl-divergence" in a:
    print("Mean PPL(Q)                   :  20.700000 ±   0.1\nMean PPL(base)                :  20.010000 ±   0.1\n"
          "Mean    KLD:   0.003000 ±   0.0001\nMaximum KLD:   0.600000\n99.9%   KLD:   0.200000\n99.0%   KLD:   0.020000\n"
          "RMS Δp    :  1.700 ± 0.1 %\nSame top p: 96.500 ± 0.5 %")
else:
    open(a[a.index("--kl-divergence-base") + 1], "w").write("logits")
"""


def executable(path, code, **replaced):
    for name, value in replaced.items():
        code = code.replace(name, value)
    path.write_text(f"#!{sys.executable}\n{code}", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


#: PROGRAM bench.
BENCH = """case $* in *--prompt*) speed=500;; *) speed=50;; esac; echo '{\\"results\\": [{\\"tokens_per_s\\": '$speed'}]}'"""


class Measure(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = pathlib.Path(place.name)
        self.mica = self.made_mica()
        executable(self.folder / "llama-quantize", QUANTIZE)
        executable(self.folder / "llama-perplexity", PERPLEXITY)
        executable(self.folder / "llama-imatrix", LOG + 'open(a[a.index("-o") + 1], "w").write("matrix")')
        small = self.folder / "work/small/trained"
        small.mkdir(parents=True)
        (small / "config.json").write_text("{}", encoding="utf-8")
        file = gguf_file.File()
        file.key("general.architecture", gguf_file.STRING, "llama")
        file.list("tokenizer.ggml.tokens", gguf_file.STRING, ["a", "bc"])
        file.list("some.numbers", gguf_file.I32, [1, 2, 3])
        file.tensor("x", (4, 8), "F32", bytes(128))
        self.gguf = file.write(small.parent / "trained.gguf")
        self.text = self.folder / "text.txt"
        self.text.write_bytes(b"x" * 30000)
        self.commit_is("abc1234")

    def commit_is(self, commit):
        patch = unittest.mock.patch.object(load, "commit", lambda: commit)
        patch.start()
        self.addCleanup(patch.stop)

    def made_mica(self, evals="", compiles="", prompt_rows="bf16", bench=BENCH):
        return executable(self.folder / "mica", MICA, EVAL_HELP=evals, COMPILE_HELP=compiles, PROMPT_ROWS=prompt_rows, BENCH=bench)

    def run_it(self, *options, status=0):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            got = measure.main([str(self.folder / "work"), "--mica", str(self.mica), "--llama", str(self.folder), "--models",
                                "trained", "--text", str(self.text), *options])
        self.assertEqual(got, status, out.getvalue())
        return out.getvalue()

    def asked(self, tool, word):
        lines = (self.folder / "log").read_text(encoding="utf-8").splitlines()
        return [words for words in map(json.loads, lines) if words[0] == tool and word in words]

    def test_sizes(self):
        parameters, size = gguf_size.weights(self.gguf)
        self.assertEqual((parameters, size, gguf_size.bits(self.gguf)), (32, 128, 32))

    def test_tables(self):
        out = self.run_it("--tables-only", "Q4_K_M", "Q8_0", "--docs", str(self.folder / "docs"))
        self.assertIn("0.00100 / 97.5 % / 20.50", out)
        self.assertIn("0.00200 / 97.5 % / 20.50", out)
        self.assertIn("0.00300 / 96.5 % / 20.70", out)
        self.assertIn("0.0200 / 0.200 / 0.600 / 1.70", out)
        self.assertIn("| Q4_K_M, imatrix |", out)
        page = (self.folder / "docs/quality.md").read_text(encoding="utf-8")
        self.assertIn("mica 9.9 (abc1234)", page)
        self.assertIn("importance matrices: the rest of text.txt", page)
        self.assertIn("| Mica, prefill (bf16) | Mica, decode (int16) | llama.cpp, prefill | llama.cpp, decode |", page)
        self.assertIn("| cache | bits per weight | perplexity of the reference | Mica, prefill | Mica, decode |", page, "without blocks")
        self.assertIn("7 (abc)", page)
        self.assertIn("Reference: the same file computed in f32", page)
        self.assertIn("Reference: the checkpoint in f32", page)
        # Every table follows a line that names its reference.
        self.assertEqual(self.headings_without_reference(page), [])
        self.assertEqual([page.count(f"\n| {row} |") for row in ("Q4_K_M", "Q8_0", "Q4_K_M, imatrix", "Q4_0")], [4, 4, 2, 0],
                         "in both tables and their tails; with an importance matrix in one")
        root = ET.parse(self.folder / "docs/quality.svg").getroot()
        marks = [e for e in root.iter("{http://www.w3.org/2000/svg}g")]
        self.assertEqual(len(marks), 2 * 2 + 3 * 4, "two own formats (bf16 is not drawn), three of llama.cpp")
        self.assertEqual(self.titles(root), ["Small Llama trained in f32: KL divergence from the checkpoint in f32"])
        # The held-out text begins at the end of the calibration text.
        self.assertEqual((self.folder / "work/text-20000.txt").stat().st_size, 20000)
        self.assertEqual([w[w.index("-f") + 1] for w in self.asked("llama-imatrix", "-f")], [str(self.folder / "work/text-rest.txt")])
        asked = self.asked("llama-perplexity", "-f")
        self.assertNotEqual(asked, [])
        for words in asked:
            self.assertEqual(words[words.index("-f") + 1], str(self.folder / "work/text-20000.txt"))
            self.assertIn("f32", words, "the reference has a cache in f32")

    def headings_without_reference(self, page):
        """The paragraphs before the tables of a page that do not name a reference; the table of choices is followed by its references."""
        models = page[page.index("The reference of block-quantized files"):]
        return [text for text in re.findall(r"^(.*)\n\n\| ", models, re.MULTILINE) if "eference" not in text]

    def test_page_and_picture_are_made_from_the_published_figures(self):
        docs = measure.ROOT / "docs"
        runs = published.read()
        self.assertEqual((docs / "quality.md").read_text(encoding="utf-8"), report.page(runs, published.speeds()),
                         "measure.py --page docs makes it")
        self.assertEqual((docs / "quality.svg").read_text(encoding="utf-8"), report.picture(runs), "measure.py --page docs makes it")
        self.assertEqual(published.FILE.read_text(encoding="utf-8"), published.text_of(runs))

    def test_page_of_a_folder(self):
        """Nothing is measured."""
        docs = self.folder / "docs"
        self.run_it("--tables-only", "Q4_0", "--docs", str(docs))
        wanted = [(docs / name).read_text(encoding="utf-8") for name in ("quality.md", "quality.svg")]
        before = (self.folder / "log").read_text(encoding="utf-8")
        for name in ("quality.md", "quality.svg"):
            (docs / name).unlink()
        self.assertEqual(measure.main(["--page", str(docs)]), 0)
        self.assertEqual([(docs / name).read_text(encoding="utf-8") for name in ("quality.md", "quality.svg")], wanted)
        self.assertEqual((self.folder / "log").read_text(encoding="utf-8"), before)

    def test_uncommitted_changes_are_not_published(self):
        self.commit_is("abc1234" + load.CHANGED)
        error = io.StringIO()
        with contextlib.redirect_stderr(error), self.assertRaises(SystemExit):
            self.run_it("--tables-only", "Q4_0", "--docs", str(self.folder / "docs"))
        self.assertIn("--docs publishes figures of a commit, but the tree has uncommitted changes; commit them first", error.getvalue())
        self.assertFalse((self.folder / "docs").exists() or (self.folder / "log").exists())
        self.run_it("--tables-only", "Q4_0")

    def test_prefill_in_another_arithmetic_is_a_column(self):
        """A run replaces one with the same arithmetic, and keeps the prefill of others."""
        docs, heads = self.folder / "docs", []
        for commit, prompt_rows in (("first", "bf16"), ("second", "int16 per 32"), ("third", "int16 per 32")):
            self.commit_is(commit)
            self.mica = self.made_mica(prompt_rows=prompt_rows)
            self.run_it("--tables-only", "Q4_0", "--no-own", "--docs", str(docs))
            page = (docs / "quality.md").read_text(encoding="utf-8")
            heads.append(re.search(r"\| file \|.* the reference \| (.*) \| llama.cpp, prefill", page)[1])
        self.assertEqual(heads, ["Mica, prefill (bf16) | Mica, decode (int16)"] +
                         2 * ["Mica, prefill (int16) | Mica, prefill (bf16) | Mica, decode (int16)"])
        self.assertIn("\n\nSmall Llama trained in f32: `", page)
        self.assertIn("\n\nThe column Mica, prefill (bf16) of Small Llama trained in f32: `", page)
        self.assertEqual([text in page for text in ("(first)", "(second)", "(third)")], [True, False, True])
        self.assertIn("| Q4_0 |", page)

    def test_programs_of_one_machine_have_one_arithmetic(self):
        bench = measure.Bench(measure.parse([str(self.folder / "work"), "--mica", str(self.mica), "--llama", str(self.folder)]))
        for rows in ({"prompt": "bf16"}, {}, {"prompt": "bf16"}):
            bench.note_arithmetic("mica prefill", "prompt", {"rows": rows})
        self.assertEqual(bench.arithmetic, {"mica prefill": "bf16"})
        with self.assertRaisesRegex(engines.Failed, "activations are int16, those of the programs before bf16"):
            bench.note_arithmetic("mica prefill", "prompt", {"rows": {"prompt": "int16 per 32"}})

    def test_quoted_costs_are_the_worst(self):
        def run(arithmetic, prefill, decode, perplexity=20.004, int8_rows=1e-5, more=()):
            cells = {name: {"kl": kl, "reference_perplexity": perplexity}
                     for name, kl in (("mica prefill", prefill), ("mica decode", decode), ("mica int8 rows", int8_rows))}
            row = {"cells": cells, "bits": 8.3}
            worse = {"format": "MXFP4", "bits": 4.3, "cells": {"mica int8 rows": {"kl": 0.004, "reference_perplexity": perplexity}}}
            model = {"rows": [{**row, "format": "Q8_0"}, worse], "caches": [{**row, "format": "`--kv int8`"}],
                     "own": [{**row, "format": f"`--weights {name}`"} for name in ("bf16", "int8", "int4", "int4 --calibrate TEXT", *more)]}
            return {"arithmetic": {"mica prefill": arithmetic}, "models": [{**model, "name": "trained"}]}
        names = ["bf16", "int8", "int4", "int4 calibrated", "int8, int8 rows", "int4, int8 rows", "int4 calibrated, int8 rows", "int8 cache"]
        self.assertEqual(published.costs("floats", [run("bf16", 2e-5, 0.00255)]),
                         {**dict.fromkeys(names, ".00255"), "int8 rows": ".00400"}, "of all formats")
        with_imatrix = published.costs("floats", [run("bf16", 2e-5, 1e-5, int8_rows=3e-5, more=["int4 --imatrix FILE"])])
        self.assertEqual([with_imatrix[name] for name in ("int4 imatrix", "int4 imatrix, int8 rows")], [".000020", ".000030"])
        with_rows = published.costs("floats", [run("bf16", 2e-5, 1e-5, int8_rows=3e-5)])
        self.assertEqual([with_rows[name] for name in ("int8", "int8, int8 rows")], [".000020", ".000030"])
        runs = [run("int16", 1e-5, 1e-5), run("bf16", 2e-5, 1e-5, perplexity=20)]
        self.assertEqual(published.costs("floats", runs)["int4"], ".000020")
        runs[1:] = [run("bf16", 3e-5, 1e-5, perplexity=20.5), run("bf16", 9e-5, 9e-5, perplexity=20.5), run("int16", 9e-5, 9e-5, perplexity=20.5)]
        self.assertEqual(published.costs("floats", runs)["int4"], ".000030", "other weights count for arithmetics of which nothing else is known")
        runs.insert(1, run("bf16", 2e-5, 1e-5))
        self.assertEqual(published.costs("floats", runs)["int4"], ".000020")

    def test_published_figures_prefer_the_newest_weights(self):
        def run(arithmetic, kl, perplexity):
            cells = {name: {"kl": kl, "same_top": 99.0, "reference_perplexity": perplexity} for name in ("mica prefill", "mica decode")}
            return {"arithmetic": {"mica prefill": arithmetic, "mica decode": "int16"}, "models": [
                {"name": "trained", "rows": [{"format": "Q8_0", "bits": 8.5, "cells": cells}], "own": [], "caches": []}]}
        runs = [run("int16", 1e-5, 20), run("bf16", 2e-5, 20.5)]
        found = {rows: published.figures_of("trained", "Q8_0", rows, runs) for rows in ("int16", "bf16", "int8")}
        self.assertEqual([(rows, {role: each["kl"] for role, each in roles.items()}) for rows, roles in found.items()],
                         [("int16", {"prefill": 1e-5, "decode": 1e-5}), ("bf16", {"prefill": 2e-5, "decode": 1e-5}), ("int8", {"decode": 1e-5})])
        self.assertIsNone(published.figures_of("hybrid", "Q8_0", "int16", runs))

    def test_runs_of_other_weights_are_summarized(self):
        def row(name, *kls, same_top=99.0):
            cells = {cell: {"kl": kl, "same_top": same_top, "perplexity": 20, "reference_perplexity": 20.5, "p99": 1, "p99_9": 1, "max": 1,
                            "rms_delta_p": 1}
                     for cell, kl in zip(("mica prefill", "mica decode", "mica int8 rows", "llama prefill"), kls)}
            return {"format": name, "bits": 8.0, "cells": cells}
        older = {"name": "trained", "rows": [row("Q8_0", 2e-5, 1e-6, 3e-4, 9), row("Q4_0", 1e-5, 2e-6, 4e-4, 9, same_top=98.5)],
                 "own": [row("`--weights int4`", 1e-3, 2e-3, 3e-3), row("Q4_K_M", 9, 1e-3, 9)], "caches": [], "requantized": False}
        old = {"arithmetic": {"mica prefill": "bf16", "mica decode": "int16", "mica int8 rows": "int8"}, "mica": "mica 1", "models": [older]}
        newest = {**older, "rows": [row("Q8_0", 1e-6, 1e-6)], "own": []}
        for cell in newest["rows"][0]["cells"].values():
            cell["reference_perplexity"] = 30
        runs = [{"arithmetic": {"mica prefill": "int16"}, "models": [newest]}, old]
        joined = report.joined(runs)[0]
        self.assertEqual(list(joined["rows"][0]["cells"]), ["mica prefill:int16", "mica decode"])
        self.assertEqual(joined["missed"], ["`--weights int4`, KL below that of Q4_K_M at no more bits; Mica, decode (int16): 0.00200 at 8.00 bits "
                                            "against 0.00100 at 8.00 bits (run with prefill in bf16, with other weights)"])
        text = report.of_model(joined)
        self.assertIn(" mica 1 was measured on a processor where prefill is in bf16, with the references above.", text)
        self.assertEqual(text.splitlines()[-4:], [
            "| weights | Mica, prefill (bf16) | Mica, decode (int16) | Mica, prefill (int8) |", "|---|---|---|---|",
            "| blocks preserved, worst of 2 files | 2.0e-05 / 98.5 % | 2.0e-06 / 98.5 % | 4.0e-04 / 98.5 % |",
            "| `--weights int4` | 0.00100 / 99.0 % | 0.00200 / 99.0 % | 0.00300 / 99.0 % |"])
        self.assertNotIn("other weights", report.of_model(report.joined(runs[:1])[0]))

    def test_runs_of_another_model_add_no_column(self):
        def run(arithmetic, kl, perplexity):
            figures = {"kl": kl, "same_top": 99.0, "perplexity": 20.0, "reference_perplexity": perplexity}
            row = {"format": "Q8_0", "bits": 8.5, "cells": {"mica prefill": figures}}
            return {"arithmetic": {"mica prefill": arithmetic}, "mica": "mica", "llama": "8", "machine": {"cpu": "A", "processors": 2, "kernel": "6"},
                    "target": None, "command": None, "text": "a text", "calibration": "another", "mica_decode": "-d", "llama_decode": "-ub 1",
                    "mica_rows": None, "models": [{"name": "trained", "rows": [row], "own": [], "caches": [], "requantized": False}]}
        for perplexity, part in ((20.004, "The column Mica, prefill (bf16) of"), (20.5, "The summary of other weights at the end of")):
            runs = [run("int16", 1e-5, 20), run("bf16", 2e-5, perplexity)]
            cells = report.joined(runs)[0]["rows"][0]["cells"]
            self.assertEqual("mica prefill:bf16" in cells, perplexity < 20.1)
            paragraphs = list(report.conditions(runs))
            self.assertEqual([text.partition(" Small Llama trained in f32: mica")[0] for text in paragraphs[2:3]], [part])
            self.assertEqual(any("measured different weights" in text for text in paragraphs), perplexity > 20.1)

    def test_each_model_is_of_its_newest_run(self):
        def run(name, commit, kl, arithmetic="bf16"):
            figures = {"kl": kl, "same_top": 99.0, "perplexity": 20.0, "reference_perplexity": 20.0}
            return {"arithmetic": {"mica prefill": arithmetic}, "mica": commit, "models": [{"name": name, "own": [], "caches": [], "requantized": False, "rows": [
                {"format": "Q8_0", "bits": 8.5, "cells": {"mica prefill": figures}}]}]}
        runs = [run("smollm2", "new", 1e-5), run("trained", "old", 2e-5), run("smollm2", "older", 3e-5, "int16")]
        self.assertEqual([(model["name"], [cell["kl"] for cell in model["rows"][0]["cells"].values()]) for model in report.joined(runs)],
                         [("trained", [2e-5]), ("smollm2", [1e-5, 3e-5])])
        self.assertEqual(published.figures_of("trained", "Q8_0", "bf16", runs)["prefill"]["kl"], 2e-5)
        # Rows that the newest run lacks are those of an older one.
        runs[2]["arithmetic"]["mica prefill"] = "bf16"
        more = {"format": "Q4_0", "bits": 4.5, "cells": {"mica prefill": {"kl": 0.5, "same_top": 50, "reference_perplexity": 20}}}
        runs[2]["models"][0]["rows"].append(more)
        [joined] = [model for model in report.joined(runs) if model["name"] == "smollm2"]
        self.assertEqual([(row["format"], [cell["kl"] for cell in row["cells"].values()]) for row in joined["rows"]], [("Q8_0", [1e-5]), ("Q4_0", [0.5])])
        self.assertEqual([line.partition(";")[0] for line in joined["missed"]], ["blocks preserved, KL at most 0.001", "blocks preserved, same top at least 98 %"])
        self.assertEqual(list(report.parts_of(runs[2], runs)), ["rows of SmolLM2-135M-Instruct that those above lack"])
        self.assertEqual(measure.without_measured(runs[2], run("smollm2", "next", 1e-5)), runs[2])
        runs[2]["models"][0]["rows"].pop()
        runs[2]["arithmetic"]["mica prefill"] = "int16"
        # Another run replaces what it measured, with the same arithmetic.
        left = [[model["name"] for model in measure.without_measured(old, run("smollm2", "next", 1e-5))["models"]] for old in runs]
        self.assertEqual(left, [[], ["trained"], ["smollm2"]])

    def test_decode_with_the_arithmetic_of_prefill(self):
        """Is not measured for llama.cpp's formats from the source, whose prefill shows the decode arithmetic."""
        for prompt_rows, measured in (("bf16", True), ("int16 per 32", False)):
            self.mica = self.made_mica("  --as-decode   as in generation", prompt_rows=prompt_rows)
            docs = self.folder / prompt_rows.split()[0]
            self.run_it("--tables-only", "Q4_K_M", "--docs", str(docs))
            [run] = published.read(docs / "quality.json")
            rows = {part: {row["format"]: "mica decode" in row["cells"] for row in run["models"][0][part]} for part in ("rows", "own")}
            self.assertEqual(rows, {"rows": {"Q4_K_M": True}, "own": {"`--weights bf16`": True, "`--weights int8`": True, "`--weights int4`": True,
                                                                      "Q4_K_M": measured, "Q4_K_M, imatrix": measured}})
            self.assertEqual("Not measured: Mica's decode of llama.cpp's formats relative to the checkpoint in f32, whose arithmetic is that of prefill" in
                             (docs / "quality.md").read_text(encoding="utf-8"), not measured)
            row = report.row_of(report.joined([run])[0], "own", "Q4_K_M")
            self.assertEqual(row["decode"]["kl"], 0.002 if measured else 0.001)

    def test_equal_columns_are_merged(self):
        rows = [{"cells": {"mica prefill:int16": {"kl": kl}, "mica decode:int16": {"kl": kl}, "llama prefill": {"kl": 1}}} for kl in (1e-5, 2e-5)]
        self.assertEqual(report.merged_columns(rows),
                         [("Mica, prefill and decode (int16)", "mica prefill:int16"), ("llama.cpp, prefill", "llama prefill")])
        rows[1]["cells"]["mica decode:int16"] = {"kl": 3e-5}
        self.assertEqual([name for _, name in report.merged_columns(rows)], ["mica prefill:int16", "mica decode:int16", "llama prefill"])

    def test_missing_measurements_are_named(self):
        rows = [{"format": "Q4_1", "cells": {"llama prefill": {}}}]
        own = [{"format": "`--weights int4`", "cells": {}, "decode": None}]
        self.assertEqual(report.unmeasured({"rows": rows, "own": own, "requantized": True}),
                         "Not measured: llama.cpp's decode; llama.cpp's formats relative to the published file in f32.")
        rows[0]["cells"]["llama decode"] = {}
        own.append({"format": "Q4_0", "cells": {}, "decode": None})
        self.assertEqual(report.unmeasured({"rows": rows, "own": own, "requantized": True}), "")

    def test_tables_of_the_published_page_name_their_references(self):
        page = (measure.ROOT / "docs/quality.md").read_text(encoding="utf-8")
        self.assertEqual(self.headings_without_reference(page), [])
        self.assertGreater(page.count("\nSame reference. "), 3)

    def titles(self, root):
        return [e.text for e in root.iter("{http://www.w3.org/2000/svg}text") if e.get("class") == "title"]

    def test_titles_of_the_published_picture(self):
        """Page and picture name the same references: for a model that is a block-quantized file, that file."""
        docs = measure.ROOT / "docs"
        sections = (docs / "quality.md").read_text(encoding="utf-8").split("\n## ")
        titles = [f"{section.partition(chr(10))[0]}: KL divergence from the {found}" for section in sections
                  for found in re.findall(r"Reference: the ((?:file|checkpoint) in f32), so that", section)]
        self.assertEqual(self.titles(ET.parse(docs / "quality.svg").getroot()), titles)

    def test_titles_of_a_requantized_file(self):
        cells = {"mica prefill": {"kl": 0.001}, "mica decode": {"kl": 0.002}}
        row = {"format": "int8", "bits": 8.3, "cells": cells}
        for requantized, reference in ((True, "the file in f32"), (False, "the checkpoint in f32")):
            model = {"name": "trained", "rows": [], "own": [row], "caches": [], "requantized": requantized, "stored": ""}
            root = ET.fromstring(report.picture([{"models": [model], "arithmetic": {}}]))
            self.assertEqual(self.titles(root), [f"Small Llama trained in f32: KL divergence from {reference}"])

    def test_a_second_run_measures_nothing(self):
        first = self.run_it("--tables-only", "Q4_0")
        before = len(self.asked("mica", "--reference")), len(self.asked("mica", "compile")), len(self.asked("llama-perplexity", "-m"))
        self.assertEqual(self.run_it("--tables-only", "Q4_0"), first)
        after = len(self.asked("mica", "--reference")), len(self.asked("mica", "compile")) - 1, len(self.asked("llama-perplexity", "-m"))
        self.assertEqual(after, before, "but for compile --help")

    def test_another_compiler_or_processor_measures_again(self):
        """The compiler computes the figures, and its programs and llama.cpp choose kernels for the processor."""
        def counts():
            self.run_it("--tables-only", "Q4_0", "--no-own")
            return len(self.asked("mica", "--reference")), len(self.asked("llama-perplexity", "--kl-divergence"))

        first = counts()
        self.assertEqual(counts(), first)
        self.mica.write_text(self.mica.read_text(encoding="utf-8") + "# new\n", encoding="utf-8")
        self.assertEqual(counts(), (2 * first[0], first[1]))
        with unittest.mock.patch.object(load, "cpu", lambda: "another"):
            self.assertEqual(counts(), (3 * first[0], 2 * first[1]))
        self.assertEqual(counts(), (3 * first[0], 2 * first[1]))

    def test_a_processor_is_its_model_and_features(self):
        def cpu(text):
            with unittest.mock.patch("builtins.open", unittest.mock.mock_open(read_data=text)):
                return load.cpu()
        same = "processor\t: 0\nmodel name\t: A\nflags\t\t: fma avx2\ncpu MHz\t: {}\n"
        self.assertEqual(cpu(same.format(1)), cpu(same.format(2)))
        self.assertNotEqual(cpu(same), cpu(same.replace("avx2", "avx512f")))
        self.assertNotEqual(cpu(same), cpu(same.replace(": A", ": B")))

    def test_options_of_newer_compilers(self):
        self.run_it("--tables-only", "Q4_0", "--no-own")
        self.assertEqual((len(self.asked("mica", "--prefill-chunk")), len(self.asked("mica", "--rows"))), (1, 0))
        self.mica = self.made_mica("  --as-decode   as in generation", "  --rows TEXT   how rows are rounded")
        out = self.run_it("--tables-only", "Q4_0", "--no-own")
        self.assertEqual((len(self.asked("mica", "--as-decode")), len(self.asked("mica", "--rows"))), (1, 1))
        self.assertIn("| Mica, prefill (int8) |", out)

    def test_calibration_and_caches(self):
        self.mica = self.made_mica("  --as-decode   as in generation", "  --rows TEXT\\n  --calibrate TEXT")
        out = self.run_it("--tables-only", "Q8_0")
        self.assertIn("| `--weights int4 --calibrate TEXT` |", out)
        self.assertIn("| `--weights int4 --imatrix FILE` |", out)
        (statistics,) = {words[words.index("--imatrix") + 1] for words in self.asked("mica", "--imatrix")}
        self.assertEqual(pathlib.Path(statistics).read_text(encoding="utf-8"), "matrix", "as written by llama-imatrix")
        self.assertIn("| `--kv int8` |", out)
        texts = [words[words.index("--calibrate") + 1] for words in self.asked("mica", "--calibrate")]
        self.assertEqual(set(texts), {str(self.folder / "work/text-rest.txt")}, "never the text that is measured on")
        asked = self.asked("mica", "--kv")
        self.assertNotEqual(asked, [])
        for words in asked:
            self.assertNotIn("--rows", words)
            self.assertEqual(words[words.index("--weights") + 1], "f32")

    def measure_speeds(self, *options, status=0, evaluated=2):
        """Measures the published model, of which some formats were measured before; returns what is printed."""
        docs = self.folder / "docs"
        published_model = self.folder / "work/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
        published_model.parent.mkdir(exist_ok=True)
        published_model.write_bytes(pathlib.Path(self.gguf).read_bytes())
        self.run_it("--tables-only", "Q4_1", "Q4_K_M", "Q8_0", "--models", "smollm2", "--docs", str(docs))
        before = self.asked("mica", "--reference")
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            got = speeds.main([str(self.folder / "work"), "--mica", str(self.mica), "--llama", str(self.folder), "--text", str(self.text),
                               "--docs", str(docs), "--rounds", "3", *options])
        self.assertEqual(got, status, out.getvalue())
        after = self.asked("mica", "--reference")
        self.assertEqual(len(after) - len(before), evaluated, "only the divergence of the cache types had not been measured")
        return out.getvalue()

    def page_of(self, **changes):
        """The page of the folder, after changes of the figures: a choice -> a test -> its divergence."""
        docs = self.folder / "docs"
        found = published.speeds(docs)
        for choice, kl in changes.items():
            found[0]["choices"][choice]["kl"] |= kl
        return report.page(published.read(docs / "quality.json"), found)

    def test_speeds_of_the_choices(self):
        self.mica = self.made_mica("  --as-decode   as in generation", "  --rows TEXT\\n  --calibrate TEXT")
        self.measure_speeds()
        page = (self.folder / "docs/quality.md").read_text(encoding="utf-8")
        table = page[page.index("| choice | KL, decode |"):].split("\n\n")[0].splitlines()[2:]
        self.assertEqual(table, [f"| {title} | - | - | 0.00100 | 1.00 |" if "--rows" in title else f"| {title} | 0.00200 | 1.00 | 0.00100 | 1.00 |"
                                 for title, part, *_ in report.CHOICE_ROWS if part != "caches"])
        table = page[page.index("decode of 64 tokens after 4096 tokens in the context, relative to Q4_1, preserved, `--kv bf16`."):].split("\n\n")[1]
        self.assertEqual(table.splitlines()[2:], [f"| Q4_1, preserved, `--kv {kind}` | 0.00200 | 1.00 |" for kind in ("bf16", "int8")])
        self.assertIn("(references as above): decode of 64 tokens, and prefill of 512 tokens, with bf16 activations of blocks unless `--rows int8` is given. Ratios "
                      "of medians of 3 alternating rounds: ", page)
        self.assertIn(" --rounds 3` at commit abc1234, ", page)
        self.assertIn("differed by up to a factor of 1.0 between rounds", page)
        self.assertEqual(self.page_of(), page)

    def test_speeds_of_other_processors_are_kept(self):
        self.measure_speeds()
        docs = self.folder / "docs"
        (run,) = published.speeds(docs)
        other = {**run, "commit": "0000000", "machine": {**run["machine"], "cpu": "another"}}
        (docs / published.SPEEDS).write_text(published.text_of([other, {**run, "commit": "1111111"}]), encoding="utf-8")
        self.measure_speeds(evaluated=0)
        self.assertEqual([each["commit"] for each in published.speeds(docs)], ["abc1234", "0000000"])
        self.assertEqual((docs / "quality.md").read_text(encoding="utf-8").count("| choice | KL, decode | speed of decode | KL, prefill |"), 2)

    def test_speeds_have_the_divergence_of_their_programs(self):
        """Also if those of the page were measured again."""
        self.measure_speeds()
        page = self.page_of(**{"Q8_0, preserved": {"decode": 0.00345}, report.BASELINE: {"prefill": 0.00567}})
        self.assertIn("\n| Q8_0, preserved | 0.00345 | 1.00 | 0.00100 | 1.00 |\n", page)
        self.assertIn("and prefill of 512 tokens. Ratios of medians", page, "no run has such programs")

    def test_rounds_of_speeds_alternate(self):
        """Without options of newer compilers there are fewer choices."""
        self.measure_speeds()
        benches = [line.split() for line in (self.folder / "benches").read_text(encoding="utf-8").splitlines()]
        order = [words[0] for words in benches if "--gen" in words]
        count = len(order) // 3
        deep = [words for words in benches if "--depth" in words]
        self.assertEqual(len(deep), 3 * 2, "of two cache types")
        self.assertEqual(len(benches), 2 * len(order) - len(deep), "others decode and prefill")
        self.assertGreater(len(set(order)), 3)
        self.assertEqual(order, order[:count] + order[:count][::-1] + order[:count])

    def test_failing_benches_are_left_out(self):
        self.mica = self.made_mica(bench="exit 7")
        out = self.measure_speeds(status=1)
        self.assertIn("FAILED: Q8_0, preserved: Failed('exit status 7", out)
        self.assertFalse((self.folder / "docs/speeds.json").exists())

    def test_speeds_are_medians(self):
        choice = speeds.Choice.__new__(speeds.Choice)
        choice.kl, choice.speeds = {"prefill": 1.0, "decode": 2.0}, {"decode": [3.0, 9.0, 4.0]}
        self.assertEqual(choice.figures(), {"kl": choice.kl, "decode": {"median": 4.0, "min": 3.0, "max": 9.0}})

    def test_speeds_are_related_to_the_baseline(self):
        figures = {"kl": {"decode": 1e-3, "prefill": 2e-3}, "decode": {"median": 30, "min": 20, "max": 50}, "prefill": {"median": 9, "min": 9, "max": 9}}
        measured = {"choices": {report.BASELINE: {"decode": {"median": 40, "min": 30, "max": 45}}, "Q8_0, preserved": figures}}
        self.assertEqual(list(report.speed_cells(measured, "Q8_0, preserved", report.BASELINE, "decode", "prefill")), ["0.00100", "0.75", "-", "-"])
        self.assertEqual(report.spread(measured), 2.5)

    def test_equal_prefill_and_decode_are_stated(self):
        def run(arithmetic, prefill, decode):
            row = {"format": "Q8_0", "cells": {"mica prefill": {"kl": prefill}, "mica decode": {"kl": decode}}}
            return {"arithmetic": {"mica prefill": arithmetic}, "models": [{"name": "trained", "rows": [row], "own": [], "caches": []}]}
        self.assertTrue(report.prefill_is_decode(run("int16", 1e-5, 1e-5)))
        self.assertFalse(report.prefill_is_decode(run("bf16", 2e-5, 1e-5)))
        self.assertFalse(report.prefill_is_decode({"models": []}))

    def test_missed_goals(self):
        def figures(kl, same_top):
            return {"kl": kl, "same_top": same_top}

        def row(name, bits=8.0, **cells):
            return {"format": name, "bits": bits, "cells": {f"mica {cell.replace('_', ' ')}": found for cell, found in cells.items()}}
        rows = [row("Q8_0", prefill=figures(1e-4, 99), decode=figures(0.001, 98), int8_rows=figures(0.0035, 96)),
                row("MXFP4", prefill=figures(0.0011, 97.9), int8_rows=figures(0.0036, 95.96)), row("Q4_0", int8_rows=figures(0.001, 95.8))]
        own = [row("`--weights int8`", prefill=figures(0.001, 97.2)), row("`--weights int4`", 4.8, decode=figures(0.00105, 96)),
               row("Q4_K_M", 4.8, decode=figures(0.00106, 96))]
        model = {"name": "trained", "requantized": False, "rows": rows, "own": own, "caches": [row("`--kv int8`", decode=figures(0.002, 90))]}

        def missed(**changes):
            return list(precision_goals.missed({**model, **changes}, {}, lambda cell: cell))
        self.assertEqual(missed(), [
            "blocks preserved, KL at most 0.001; mica prefill: MXFP4 0.00110", "blocks preserved, same top at least 98 %; mica prefill: MXFP4 97.90 %",
            "blocks preserved, `--rows int8`, KL at most 0.0035; mica int8 rows: MXFP4 0.00360",
            "blocks preserved, `--rows int8`, same top at least 96 %; mica int8 rows: MXFP4 95.96 %, Q4_0 95.80 %",
            "`--weights int8`, same top at least 97.5 %; mica prefill: 97.20 %", "`--kv int8`, KL at most 0.001; mica decode: 0.00200"])
        own[2]["bits"] = 4.7
        self.assertEqual(missed(rows=[], caches=[], requantized=True), [
            "`--weights int8`, same top at least 97.5 % (set for checkpoints in f32); mica prefill: 97.20 %",
            "`--weights int4`, KL below that of Q4_K_M at no more bits (set for checkpoints in f32); mica decode: 0.00105 at 4.80 bits against "
            "0.00106 at 4.70 bits"])
        runs = [{"arithmetic": {"mica prefill": kind}, "models": [{**model, "rows": rows[:1], "own": own, "caches": []}]} for kind in ("bf16", "int16")]
        for run in runs:
            for each in (*rows, *own):
                for cell in each["cells"].values():
                    cell["reference_perplexity"] = 20.0
        runs[1]["models"] = [{**model, "own": [], "caches": []}]
        lines = list(report.missed_goals("trained", runs))
        self.assertEqual(lines[0], "`--weights int8`, same top at least 97.5 %; Mica, prefill (bf16): 97.20 %")
        self.assertIn("blocks preserved, KL at most 0.001; Mica, prefill (int16): MXFP4 0.00110 (run with prefill in int16)", lines)

    def test_published_goals_are_in_the_page(self):
        page = (measure.ROOT / "docs/quality.md").read_text(encoding="utf-8")
        self.assertIn(precision_goals.table(), page)
        self.assertIn("\n- blocks preserved, `--rows int8`, KL at most 0.0035; Mica, prefill (int8): MXFP4 0.00369 (run with prefill in bf16)\n", page)

    def test_divergences_of_several_arithmetics_are_named(self):
        row = {"cells": {"mica prefill:int16": {"kl": 5e-5}, "mica prefill:bf16": {"kl": 2e-4}, "mica decode:int16": {"kl": 5e-5}}}
        self.assertEqual(report.divergences(report.cells_of(row, "mica prefill")), "5.0e-05 (int16), 2.0e-04 (bf16)")
        self.assertEqual(report.divergences(report.cells_of(row, "mica decode")), "5.0e-05")

    def own(self, name, bits, kl, llama=None):
        decode = {"kl": kl, "kl_error": 3e-5}
        return {"format": name, "bits": bits, "decode": decode,
                "cells": {"mica decode:int16": decode} | ({"llama decode": {"kl": llama}} if llama else {})}

    def test_verdict_names_neighbors(self):
        """The most precise of no more bits, not the closest, and the next larger one; with calibration also those with imatrix."""
        rows = [self.own("`--weights int4`", 4.77, 0.001), self.own("`--weights int4 --calibrate TEXT`", 4.77, 0.0012),
                self.own("IQ4_XS", 4.4, 0.0011, 0.00123), self.own("Q4_0", 4.6, 0.002), self.own("Q4_K_M", 4.83, 0.00101),
                self.own("Q4_K_M, imatrix", 4.83, 0.0009), self.own("Q8_0", 8.5, 1e-5)]
        _, _, plain, calibrated = report.verdict({"own": rows}).split("\n")
        self.assertEqual(plain, "- `--weights int4` with 4.77 bits, 0.00100 ± 3.0e-05. Of llama.cpp's formats, the most precise with no more "
                         "bits is IQ4_XS with 4.40 bits, 0.00110 ± 3.0e-05 (0.00123 by llama.cpp), higher by 2.4 standard errors; the next "
                         "larger one is Q4_K_M with 4.83 bits, 0.00101 ± 3.0e-05, not significantly different (0.2 standard errors).")
        self.assertIn("IQ4_XS with 4.40 bits, 0.00110 ± 3.0e-05 (0.00123 by llama.cpp), lower by 2.4 standard errors", calibrated)
        self.assertIn("the next larger one is Q4_K_M, imatrix with 4.83 bits, 9.0e-04 ± 3.0e-05, lower by 7.1 standard errors", calibrated)
        self.assertEqual(report.verdict({"own": rows[:2]}), "")
        del rows[0]["cells"]["mica decode:int16"]["kl_error"]
        self.assertNotIn("`--weights int4` with", report.verdict({"own": rows}))

    def test_a_published_file_is_in_the_picture(self):
        """With the reference of the formats made from it; lines do not begin at it."""
        row = {"format": "Q4_1", "bits": 5.7, "cells": {"llama prefill": {"kl": 0.003}}}
        model = {"rows": [row], "own": [{"format": "Q8_0", "bits": 8.5, "cells": {"llama prefill": {"kl": 0.004}}}], "stored": "Q4_1"}
        self.assertEqual([row["format"] for row in report.drawn_rows({**model, "requantized": False})], ["Q8_0"])
        rows = report.drawn_rows({**model, "requantized": True})
        self.assertEqual([row["format"] for row in rows], ["Q8_0", "Q4_1, as published"])
        self.assertEqual(report.front(rows, "llama prefill"), [(8.5, 0.004)])

    def test_pareto_front(self):
        def row(format, bits, kl):
            return {"format": format, "bits": bits, "cells": {"llama prefill": {"kl": kl}}}

        rows = [row("Q8_0", 8.5, 0.001), row("Q4_0", 4.5, 0.02), row("MXFP4", 4.6, 0.3), row("Q4_K_M, imatrix", 4.7, 0.01),
                row("Q5_0", 5.5, 0.005), row("`--weights int4`", 4.4, 0.001)]
        self.assertEqual(report.front(rows, "llama prefill"), [(4.5, 0.02), (5.5, 0.005), (8.5, 0.001)])
        self.assertEqual(report.front(rows, "mica prefill"), [])

    def test_a_failure_does_not_end_the_run(self):
        out = self.run_it("--tables-only", "Q5_1", "Q8_0", "--no-own", status=1)
        self.assertIn("FAILED: trained Q5_1: ", out)
        self.assertIn("| Q8_0 |", out)
        with self.assertRaises(engines.Failed):
            engines.figures_of("nothing")

    def test_statistics_belong_to_a_model_a_text_and_a_tool(self):
        """llama-imatrix runs again if one of them has changed, and only then."""
        def runs():
            self.run_it("--tables-only", "Q4_K_M")
            return len(self.asked("llama-imatrix", "-m"))

        self.assertEqual([runs(), runs()], [1, 1])
        for count, changed in enumerate((pathlib.Path(self.gguf), self.folder / "llama-imatrix", self.text), 2):
            with open(changed, "ab") as file:
                file.write(b"\n")
            self.assertEqual([runs(), runs()], [count, count], changed.name)

    def test_a_missing_text_is_an_error(self):
        """No model is measured, and published tables remain."""
        docs = self.folder / "docs"
        docs.mkdir()
        (docs / "quality.md").write_text("published", encoding="utf-8")
        out = self.run_it("--text", str(self.folder / "none.txt"), "--docs", str(docs), status=1)
        self.assertIn("!!!!", out)
        self.assertIn(f"the model trained: {self.folder / 'none.txt'}: No such file or directory; pass the text to measure on with --text", out)
        self.assertEqual((docs / "quality.md").read_text(encoding="utf-8"), "published")

    def test_a_missing_model_is_an_error(self):
        out = self.run_it("--models", "outlier", status=1)
        self.assertIn("!!!!", out)
        self.assertIn("train.py", out)

    def test_choices_name_their_references(self):
        models = [{"title": "A", "requantized": False, "stored": ""}, {"title": "B", "requantized": True, "stored": "Q4_1"}]
        self.assertEqual(report.choice_references(models[:1]), "The reference of block-quantized files is the same file in f32. For weights "
                         "that Mica quantizes it is the checkpoint in f32.")
        self.assertTrue(report.choice_references(models).endswith("the checkpoint in f32, and for B the Q4_1 file in f32, whose blocks are "
                                                                  "requantized."))
        models[1]["title"] = "SmolLM2-135M-Instruct"
        self.assertIn(report.choice_references(models), (measure.ROOT / "docs/quality.md").read_text(encoding="utf-8"))

    def test_numbers(self):
        numbers = (0, 2.345e-5, 0.001234, 0.2723, 3.456)
        self.assertEqual([published.small(x) for x in numbers], ["0", "2.3e-05", "0.00123", "0.272", "3.46"])
        self.assertEqual([published.quoted(x) for x in numbers[1:]], [".000023", ".00123", ".272", "3.46"])


if __name__ == "__main__":
    unittest.main()
