#!/usr/bin/python3
"""compare.py with fakes of all engines: their command lines and the use of their output."""

import contextlib
import io
import json
import pathlib
import re
import stat
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import compare  # noqa: E402
import goals  # noqa: E402
import hybrids  # noqa: E402
import report  # noqa: E402
from quality import published  # noqa: E402

MICA = r"""
import json, sys
a = sys.argv
print(json.dumps(a), file=open(__file__ + ".log", "a"))
if a[1] == "eval":
    print(json.dumps({"kl": {"mean": 0.0005 if "--as-decode" in a else 0.002}, "same_top": 0.985}))
elif a[1] == "info":
    print(json.dumps({"max_seq": 4096, "version": "9.9", "weights": "bf16", "other_weights": "bf16",
                      "manifest": {"parameters": PARAMETERS, **json.loads('BLOCKS')}}))
elif "--batch" in a:
    sys.exit(print("mica: error: unknown --batch", file=sys.stderr) or 2)
elif "--profile" in a:
    kernels = [{"kernel": "linear", "flops": 3e9, "seconds": 0.5}, {"kernel": "gated", "flops": 5e9, "seconds": 0.5},
               {"kernel": "attention", "flops": 9e9, "seconds": 9.0}, {"kernel": "norm", "flops": 0, "seconds": 9.0}]
    print(json.dumps({"results": [{"test": "x", "tokens_per_s": 30.0, "runs": [30], "gb_per_s": 40.0,
                                   "profile": {"kernels": kernels, "limits": {"gflop_per_s": 10.0}}}]}))
else:
    print(json.dumps({"results": [{"test": "x", "tokens_per_s": 30.0, "runs": [29, 30, 31], "gb_per_s": 40.0}],
                      "weights_in_huge_pages": 7340032}))
"""
PEER = r"""
import json, sys
if "--help" in sys.argv:
    sys.exit(print("options:\n  -fa, --flash-attn <0|1>\n  -rtr, --run-time-repack\n  -gp <pp,tg>\n"))
print(json.dumps(sys.argv), file=open(__file__ + ".log", "a"))
count = int(sys.argv[sys.argv.index("-r") + 1])
print(json.dumps([{"samples_ts": [1.0] + [20.0] * (count - 1), "build_commit": "abc", "build_number": 7}]))
"""
PERPLEXITY = r"""
import sys
if "--kl-divergence" in sys.argv:
    kl = 0.003 if "-ub" in sys.argv else 0.004
    print(f"Mean    KLD:   {kl}\nMaximum KLD: 1\n99.9%   KLD: 1\n99.0%   KLD: 1\nSame top p: 96.0\nRMS dp : 1\n"
          "Mean PPL(Q) : 9\nMean PPL(base) : 9")
elif "--kl-divergence-base" in sys.argv:
    open(sys.argv[sys.argv.index("--kl-divergence-base") + 1], "w").close()
else:
    print("version: 1 (abc)")
"""
BROKEN = r"""
import sys
print("error: unable to load model", file=sys.stderr)
sys.exit(0 if "--help" in sys.argv else 1)
"""
BANDWIDTH = "print('{\"gb_per_s\": 50.0}')"


class CompareTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    parameters = "1e9"
    blocks = {}

    def mica(self):
        text = MICA.replace("PARAMETERS", self.parameters).replace("BLOCKS", json.dumps(self.blocks))
        return self.program("mica", text)

    def program(self, name, text):
        path = self.folder / name
        path.write_text(f"#!{sys.executable}\n{text}", encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    def compare(self, *options, peer=PEER):
        """(report, table) of a case with one peer."""
        out = self.folder / "out.json"
        text = io.StringIO()
        with contextlib.redirect_stdout(text), contextlib.redirect_stderr(io.StringIO()):
            compare.main(["--mica", self.mica(), "--peer", "peer", self.program("peer", peer), "m.gguf",
                          "--bandwidth", self.program("bandwidth", BANDWIDTH), "--pairs", "2", "--threads", "2",
                          "--json", str(out), *options])
        return json.loads(out.read_text(encoding="utf-8")), text.getvalue()

    def rows(self, *options, **peers):
        return {row["test"]: row for row in self.compare(*options, **peers)[0]["cases"][0]["rows"]}

    def calls(self, engine="peer"):
        return [json.loads(line) for line in (self.folder / f"{engine}.log").read_text(encoding="utf-8").splitlines()]

    def test_ratio_and_share_are_medians_over_rounds(self):
        row = self.rows("--tests", "decode")["decode"]
        self.assertEqual(row["ratios"]["peer"]["median"], 1.5)
        self.assertEqual(row["share_of_bandwidth"]["median"], 0.8)
        self.assertEqual(row["runs"]["Mica"], [[29, 30, 31]] * 2)

    def test_prompts_report_the_share_of_peak_flops(self):
        result, text = self.compare("--tests", "prefill")
        row = result["cases"][0]["rows"][0]
        self.assertEqual((row["share_of_bandwidth"], row["share_of_peak"]["median"]), (None, 0.8))
        self.assertIn("| 0.80 (0.80 - 0.80) |", text)

    def test_the_first_round_and_the_first_run_are_dropped(self):
        row = self.rows("--tests", "decode")["decode"]
        self.assertEqual(len(self.calls()), 3)
        self.assertEqual(row["runs"]["peer"], [[20.0] * 3] * 2)

    def test_peer_gets_the_flags_listed_in_its_help(self):
        self.rows("--tests", "decode")
        command = " ".join(self.calls()[0])
        self.assertIn("-w 0 -fa 1 -rtr 1 -p 0 -n 64", command)

    def test_mica_gets_its_flags(self):
        result, text = self.compare("--tests", "prefill", "--huge-pages")
        benches = [call for call in self.calls("mica") if call[1] == "bench"]
        self.assertEqual({"--huge-pages" in call for call in benches}, {True}, benches)
        self.assertIn("mica 9.9, weights bf16, 7 MB of them in huge pages, --huge-pages", text)

    def test_depth_falls_back_to_the_older_option(self):
        self.rows("--tests", "deep")
        self.assertIn("-gp 8192,32", " ".join(self.calls()[0]))

    def test_batches_are_short_prompts_of_the_peer(self):
        self.rows("--tests", "batch")
        self.assertIn("-p 8 -n 0", " ".join(self.calls()[0]))

    def test_unsupported_tests_are_skipped_with_a_reason(self):
        rows = self.rows("--tests", "batch,long")
        self.assertEqual(rows["batch"]["trouble"]["Mica"],
                         {"state": "skipped", "message": "mica: error: unknown --batch"})
        self.assertIn("compiled for 4096 positions", rows["long"]["trouble"]["Mica"]["message"])
        self.assertEqual(rows["batch"]["tokens_per_s"]["peer"]["median"], 20.0)
        self.assertIsNone(rows["batch"]["ratios"]["peer"])

    def test_a_failing_peer_is_shown_with_its_message(self):
        result, text = self.compare("--tests", "decode", peer=BROKEN)
        self.assertEqual(result["cases"][0]["rows"][0]["trouble"]["peer"]["state"], "failed")
        self.assertIn("decode 64, peer: failed: exit status 1: error: unable to load model", text)
        self.assertIn("| decode 64 | 30.0 (30.0 - 30.0) | failed | - |", text)

    def test_a_missing_engine_is_shown(self):
        _, text = self.compare("--tests", "decode", "--peer", "other", str(self.folder / "absent"), "m.gguf")
        self.assertIn("decode 64, other: failed: [Errno 2]", text)

    def test_many_cases_from_a_file(self):
        config = self.folder / "config.json"
        mica, peer = self.mica(), self.program("peer", PEER)
        config.write_text(json.dumps({
            "peers": {"peer": {"bench": peer, "flags": ["-x"]}, "absent": {"bench": peer}},
            "cases": [{"name": "one", "mica": mica, "models": {"peer": "a.gguf"}, "tests": ["decode"]},
                      {"name": "two", "mica": mica, "models": {}}]}), encoding="utf-8")
        text = io.StringIO()
        with contextlib.redirect_stdout(text), contextlib.redirect_stderr(io.StringIO()):
            compare.main(["--config", str(config), "--case", "^one$", "--pairs", "1", "--bandwidth", ""])
        self.assertIn("### one", text.getvalue())
        self.assertNotIn("### two", text.getvalue())
        self.assertIn("absent: skipped: the case names no model for it", text.getvalue())
        self.assertIn("-x", self.calls()[0])

    def test_one_table_of_all_cases(self):
        config = self.folder / "config.json"
        mica, peer = self.mica(), self.program("peer", PEER)
        quality = {"published": ["trained", "smollm2"], "format": "`--weights bf16`"}
        config.write_text(json.dumps({
            "peers": {"peer": {"bench": peer}},
            "cases": [{"name": name, "mica": mica, "models": {"peer": "a.gguf"}, "tests": [test], "quality": quality}
                      for name, test in (("one", "decode"), ("two", "prefill"))]}), encoding="utf-8")
        text = io.StringIO()
        with contextlib.redirect_stdout(text), contextlib.redirect_stderr(io.StringIO()):
            compare.main(["--config", str(config), "--pairs", "1", "--bandwidth", "", "--brief"])
        kl = [f"{published.figures_of(model, quality['format'], '')['decode']['kl']:.2g}" for model in quality["published"]]
        self.assertIn(f"| one | decode 64 | {kl[0]} | {kl[1]} | 30.0 (30.0 - 30.0) | 20.0 (20.0 - 20.0) | 1.50x (1.50 - 1.50) |", text.getvalue())
        self.assertIn(f"| two | prefill 512 | {kl[0]} | {kl[1]} |", text.getvalue())
        self.assertIn("- peer: abc (7)", text.getvalue())
        self.assertIn(f"- KL divergences are those of docs/quality.json: {published.read()[0]['mica']}", text.getvalue())

    def test_committed_measurements_of_hybrids_can_be_printed(self):
        folder = pathlib.Path(__file__).parent
        speeds, others, rewinds = (hybrids.markdown(json.loads((folder / name).read_text(encoding="utf-8")))
                                   for name in ("hybrids.json", "hybrids-depth.json", "hybrids-rewind.json"))
        self.assertRegex(speeds, r"### granite-4\.0-h-micro-int4\n\n.*\n.*\n\| decode 32 \|")
        self.assertIn("| qwen3.5-4b-mtp-int4 | 1.90 | 2.97 | 3.81 |", others)
        self.assertIn("| granite-4.0-h-micro, 32768 tokens | 258, 81, 174 | 1, 224, 224, 480 | 31 | same tokens; <= 512: reached |", rewinds)

    def test_rejected_drafts_change_no_token(self):
        def judged(drafted, accepted, calls, same=True):
            return hybrids.rejects_without_cost({"drafted": drafted, "accepted": accepted, "calls": calls, "tokens": 256, "same": same})
        self.assertTrue(judged(11, 3, 252))
        self.assertFalse(judged(11, 3, 252, same=False), "other tokens")
        self.assertFalse(judged(11, 3, 253), "another pass")
        self.assertFalse(judged(11, 11, 244), "nothing was rejected")

    def test_one_table_says_what_failed(self):
        config = self.folder / "config.json"
        config.write_text(json.dumps({
            "peers": {"peer": {"bench": self.program("peer", BROKEN)}},
            "cases": [{"name": "one", "mica": self.mica(), "models": {"peer": "a.gguf"}, "tests": ["decode"],
                       "quality": {"reference": "absent", "text": "absent"}}]}), encoding="utf-8")
        text = io.StringIO()
        with contextlib.redirect_stdout(text), contextlib.redirect_stderr(io.StringIO()):
            compare.main(["--config", str(config), "--pairs", "1", "--bandwidth", "", "--brief"])
        self.assertIn("- one, decode 64, peer: failed: ", text.getvalue())
        self.assertIn("- one, KL divergence of Mica: failed: ", text.getvalue())

    def test_divergences_in_the_documentation(self):
        """Tables with speeds quote the divergences of docs/quality.json: columns "KL of MODEL" or "KL of MODEL (ROWS)", with the type of the
        activations in prefill by default. Words in prefill are multiplied as in decode."""
        models, found = [], 0
        for line in (compare.ROOT / "docs/benchmarks.md").read_text(encoding="utf-8").splitlines():
            cells = [cell.strip() for cell in line.split("|")[1:-1]]
            if cells[:2] == ["program", "test"] and cells[2].startswith("KL of "):
                models = [re.fullmatch(r"KL of (\w+)(?: \((\w+)\))?", cell).groups("bf16") for cell in cells if cell.startswith("KL of ")]
            elif not cells:
                models = []
            elif models and not set(cells[0]) <= {"-"}:
                program, _, rows = cells[0].partition(" --rows ")
                own = re.fullmatch(r".*-(bf16|int8|int4)", program)
                format = f"`--weights {own[1]}`" if own else program
                role = "prefill" if cells[1].startswith("prefill") else "decode"
                for (model, exact), cell in zip(models, cells[2:]):
                    kind = rows or exact * (not own or own[1] != "bf16")
                    known = published.figures_of(model, format, kind, preferred=exact) or {}
                    figures = known.get(role) or (known.get("decode") if kind == "int16" else None)
                    self.assertEqual(cell, f"{figures['kl']:.2g}" if figures else "-", line)
                    found += figures is not None
        self.assertGreater(found, 30)

    def test_unknown_tests_are_refused(self):
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
            compare.parse(["--mica", "m", "--tests", "decode,nothing"])

    def test_ratios_pair_the_rounds_that_both_have(self):
        self.assertEqual(report.pairwise({1: 4.0, 2: 9.0, 3: 1.0}, {1: 2.0, 2: 3.0})["values"], [2.0, 3.0])
        self.assertIsNone(report.pairwise({1: 4.0}, {}))

    def test_the_better_peer_is_that_of_each_round(self):
        self.assertEqual(report.best_of([{1: 2.0, 2: 5.0, 3: 1.0}, {1: 3.0, 2: 4.0}]), {1: 3.0, 2: 5.0})
        self.assertEqual(report.best_of([]), {})

    def test_a_peer_without_results_is_never_the_better_one(self):
        self.assertEqual(report.best_of([{1: 2.0}, {}]), {1: 2.0})
        rows = self.rows("--tests", "decode", "--peer", "other", self.program("other", BROKEN), "m.gguf")
        self.assertEqual(rows["decode"]["better"]["median"], 1.5)

    def test_goals_are_reached_or_missed(self):
        result, text = self.compare("--tests", "decode,prefill,batch")
        decode, prefill, batch = (row["goals"] for row in result["cases"][0]["rows"])
        self.assertEqual([(g["median"], g["reached"]) for g in decode], [(1.5, True), (0.8, False)])
        self.assertEqual([(g["median"], g["reached"]) for g in prefill], [(1.5, True), (0.8, False)])
        self.assertEqual(batch, [], "of blocks alone")
        self.assertIn("| >= 1x the better peer: reached; >= 0.92 of the bandwidth: short, 0.80 |", text)

    def test_goals_of_blocks_depend_on_format_and_prompt_activations(self):
        def texts(test, rows, *formats):
            info = {"weights": "int8", "manifest": {"parameters": 1e9, "rows": {"decode": "int16 per 32", "prompt": rows},
                                                    "block_formats": {name: 9 - place for place, name in enumerate(formats)}}}
            return [goal.text() for goal in goals.goals_of(test, info)]
        self.assertEqual(texts("prefill", "bf16", "q4_k"), [">= 1.05x the better peer"])
        self.assertEqual(texts("prefill", "int8 per 32", "q4_k"), [">= 1.5x the better peer"])
        self.assertEqual(texts("decode", "bf16", "q4_k", "q6_k")[1], ">= 0.92 of the bandwidth")
        self.assertEqual(texts("decode", "bf16", "q3_k", "q4_k")[1], ">= 0.85 of the bandwidth", "of most matrices")
        self.assertEqual(texts("decode", "bf16", "q4_k", "q3_k")[1], ">= 0.92 of the bandwidth")
        self.assertEqual(texts("decode", "bf16", "mxfp4")[1], ">= 0.92 of the bandwidth")
        self.assertEqual(texts("batch", "bf16", "int8_g32"), [">= 1.5x the better peer"])
        self.assertEqual(texts("batch", "bf16", "q8_0"), [])

    def test_goals_of_small_block_quantized_models_are_relative_to_the_better_peer(self):
        def goals_with(rows, **options):
            self.parameters, self.blocks = "100e6", {"block_formats": {"q4_1": 7}, "rows": {"decode": "int16 per 32", "prompt": rows}}
            result, _ = self.compare("--tests", "decode,prefill", **options)
            return [[(g["goal"], g["reached"]) for g in row["goals"]] for row in result["cases"][0]["rows"]]
        slower = PEER.replace("20.0", "25.0")  # a ratio of 1.2
        self.assertEqual(goals_with("bf16", peer=slower), [[(">= 1x the better peer", True)], [(">= 1.05x the better peer", True)]])
        self.assertEqual(goals_with("int8 per 32", peer=slower), [[(">= 1x the better peer", True)], [(">= 1.5x the better peer", False)]])

    def test_block_formats_and_activations_are_named(self):
        self.blocks = {"block_formats": {"q4_1": 7, "q6_k": 1}, "rows": {"decode": "int16 per 32", "prompt": "bf16"}}
        result, text = self.compare("--tests", "prefill")
        self.assertIn("mica 9.9, weights q4_1 x 7, q6_k x 1, others bf16, rows decode int16 per 32, prefill bf16, 7 MB", text)
        self.assertEqual(result["cases"][0]["rows"][0]["share_of_peak"]["median"], 0.8)

    def test_int8_activations_have_no_share_of_peak_flops(self):
        self.blocks = {"block_formats": {"q4_1": 7}, "rows": {"decode": "int16 per 32", "prompt": "int8 per 32"}}
        result, text = self.compare("--tests", "prefill")
        self.assertIsNone(result["cases"][0]["rows"][0]["share_of_peak"])
        self.assertFalse([call for call in self.calls("mica") if "--profile" in call])
        self.assertIn("| 50.0 (50.0 - 50.0) | - |", text)

    def test_speeds_have_the_divergence_of_their_program(self):
        quality = ["--reference", "exact", "--text", "t.txt", "--eval", str(self.folder / "mica")]
        result, text = self.compare("--tests", "decode", *quality)
        self.assertIn("- KL divergence of Mica from its reference in f32: prefill 0.002 (same top 98.5 %), decode 0.0005 (same top 98.5 %)",
                      text)
        evals = [call for call in self.calls("mica") if call[1] == "eval"]
        self.assertEqual(["--as-decode" in call for call in evals], [False, True])
        self.assertEqual(evals[0][2:7], [str(self.folder / "mica"), "--text", "t.txt", "--reference", "exact"])
        self.assertIsNone(self.compare("--tests", "decode")[0]["cases"][0]["quality"])
        quality[-1] = self.program("broken", BROKEN)
        self.assertIn("- KL divergence of Mica from its reference in f32: failed: exit status 1: error: unable",
                      self.compare("--tests", "decode", *quality)[1])

    def test_the_divergence_of_a_peer_is_measured_by_its_own_tools(self):
        text, model = self.folder / "t.txt", self.folder / "m.gguf"
        for file in text, model:
            file.write_text("some", encoding="utf-8")
        self.program("llama-quantize", "import sys; open(sys.argv[3], 'w').close()")
        self.program("llama-perplexity", PERPLEXITY)
        quality = ["--reference", "exact", "--text", str(text), "--eval", str(self.folder / "mica"), "--work", str(self.folder / "work"),
                   "--peer", "same", self.program("peer", PEER), str(model)]
        _, table = self.compare("--tests", "decode", *quality)
        self.assertIn("- KL divergence of same from its reference in f32: prefill 0.004 (same top 96.0 %), decode 0.003 (same top 96.0 %)",
                      table)
        self.assertIn("- KL divergence of peer from its reference in f32: failed: [Errno 2] No such file or directory: 'm.gguf'", table)

    def test_goals_of_small_models_are_to_each_peer(self):
        self.parameters = "26e6"
        result, text = self.compare("--tests", "decode,prefill", "--peer", "llama.cpp", self.program("other", PEER), "m.gguf")
        decode, prefill = (row["goals"] for row in result["cases"][0]["rows"])
        self.assertEqual([(g["median"], g["reached"]) for g in decode], [(1.5, True), (None, False)])
        self.assertEqual(prefill, [])
        self.assertIn("| >= 1.5x llama.cpp: reached; >= 1.1x ik_llama.cpp: - |", text)

    def test_shares_of_small_models_have_no_goal(self):
        """They are printed with the reason."""
        self.assertNotIn("`share` has no goal", self.compare("--tests", "decode")[1])
        self.parameters, self.blocks = "100e6", {"block_formats": {"q4_1": 7}, "rows": {"decode": "int16 per 32", "prompt": "int8 per 32"}}
        text = self.compare("--tests", "decode")[1]
        self.assertIn("| 50.0 (50.0 - 50.0) | 0.80 (0.80 - 0.80) | >= 1x the better peer: reached |", text)
        self.assertIn("- `share` has no goal for a model of fewer than 300 million parameters: norms,", text)
        self.assertNotIn("`share` has no goal", self.compare("--tests", "prefill")[1], "integers have no share")

    def test_mica_runs_first_in_every_other_round(self):
        order = self.folder / "order"
        for name, text in (("mica", MICA.replace("PARAMETERS", "7").replace("BLOCKS", "{}")), ("peer", PEER)):
            note = f'import sys\nif not {{"info", "--help"}} & set(sys.argv): print("{name}", file=open("{order}", "a"))\n'
            self.program(name, note + text)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            compare.main(["--mica", str(self.folder / "mica"), "--peer", "peer", str(self.folder / "peer"), "m.gguf",
                          "--pairs", "2", "--bandwidth", "", "--tests", "decode"])
        self.assertEqual(order.read_text(encoding="utf-8").split(), ["peer", "mica", "mica", "peer", "peer", "mica"])


if __name__ == "__main__":
    unittest.main()
