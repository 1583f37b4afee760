"""tests/bench/compare.py with real programs: `bench`, `info` and the bandwidth helper provide what it needs."""

import contextlib
import io
import json
import os
import pathlib
import sys
import unittest.mock

import gguf_file
import harness
from harness import Case, note, program
from test_eval import bundled_text


sys.path.insert(0, str(harness.ROOT / "tests/bench"))
import engines  # noqa: E402
import hybrids  # noqa: E402
import shapes  # noqa: E402


class Hybrids(Case):
    """tests/bench/hybrids.py with small models instead of whole ones."""

    def test_measurements_without_a_peer(self):
        made = pathlib.Path(harness.folder("hybrids"))
        figures, out = made / "figures.json", io.StringIO()
        narrow = {name: shapes.SHAPES[name + "-narrow"] for name in shapes.HYBRIDS}
        small = {name + suffix: shape for name, shape in narrow.items() for suffix in ("", "-period", "-narrow")}
        with unittest.mock.patch.dict(shapes.SHAPES, small), contextlib.redirect_stdout(out):
            hybrids.main([str(made / "out"), "--mica", str(harness.mica), "--measure", "depth,rewind,mtp", "--depth", "2048", "--threads", "1",
                          "--pairs", "1", "--json", str(figures)])
        result = json.loads(figures.read_text(encoding="utf-8"))
        self.assertEqual([each["name"] for each in result["rewind"]], list(shapes.HYBRIDS))
        for each in result["rewind"]:
            note(self, f"{each}")
            self.assertTrue(each["reached"], each)
            self.assertEqual(each["edits"]["whole"], 2048)
            self.assertGreater(each["drafts"]["drafted"], each["drafts"]["accepted"])
        for each in result["depth"]:
            self.assertGreater(each["bytes"], 1)
            self.assertAlmostEqual(each["time over bytes"], each["time"] / each["bytes"])
        self.assertIn("| qwen3.5-4b, 2048 tokens |", out.getvalue())
        self.assertEqual([each["name"] for each in result["mtp"]], ["qwen3.5-4b-mtp-int4"])
        self.assertEqual(list(result["mtp"][0]["cost"]), ["1", "2", "4"])
        self.assertIn("| qwen3.5-4b-mtp-int4 |", out.getvalue())

    def test_time_over_bytes(self):
        """Twice the time for 1.6 times the bytes."""
        found = hybrids.over_bytes(engines.Sample(10, [], 4), engines.Sample(5, [], 3.2))
        self.assertEqual(found, {"time": 2, "bytes": 1.6, "time over bytes": 1.25})

    def test_files_for_peers(self):
        """The file for the peer has the same weights: both programs predict the same."""
        for name in shapes.HYBRIDS:
            with self.subTest(name):
                made = pathlib.Path(harness.folder("hybrid-files"))
                folder = shapes.once(made / name, shapes.folder_of(shapes.SHAPES[name + "-narrow"]))
                file = shapes.once(made / f"{name}.gguf", shapes.gguf_of(folder, "BF16"))
                ids, rows = program(folder, "--weights", "f32").generate([[5, 6, 7, 8, 9]], 4)
                same, others = program(file, "--weights", "f32").generate([[5, 6, 7, 8, 9]], 4)
                self.assertEqual(same, ids)
                self.close(others[0], rows[0], 1e-4, name)


class Compare(Case):
    def test_shapes_and_their_cases(self):
        """One of the shapes: programs, files for peers and the cases with both."""
        out = os.path.join(harness.folder("shapes"), "out")
        command = ["/usr/bin/python3", harness.ROOT / "tests/bench/shapes.py", out, "--mica", harness.mica, "--only", "26m",
                   "--peer", "peer", "llama-bench", "--max-seq", 64]
        made = harness.execute(command).stdout.decode().splitlines()
        with open(os.path.join(out, "cases.json"), encoding="utf-8") as file:
            config = json.load(file)
        self.assertEqual(config["peers"], {"peer": {"bench": "llama-bench"}})
        self.assertEqual([case["name"] for case in config["cases"]],
                         ["minimind-26m-int8", "minimind-26m-int4", "minimind-26m-bf16"])
        for case in config["cases"]:
            info = json.loads(harness.execute([case["mica"], "info", "--json"]).stdout)
            self.assertEqual((case["name"].rpartition("-")[2], info["max_seq"]), (info["weights"], 64))
            described = harness.execute([harness.mica, "inspect", case["models"]["peer"]]).stdout.decode()
            self.assertIn("26", described)
        before = os.stat(config["cases"][0]["mica"]).st_mtime_ns
        self.assertEqual(harness.execute(command).stdout.decode().splitlines(), made)
        self.assertEqual(os.stat(config["cases"][0]["mica"]).st_mtime_ns, before, "existing files are not created again")

    def test_formats_of_a_file_with_their_divergence(self):
        """Programs of a file with both activation types in prefill, and their precision as reported by compare.py."""
        folder = harness.folder("blocks")
        source, quantize, text = (os.path.join(folder, name) for name in ("source.gguf", "llama-quantize", "text"))
        gguf_file.Converter(harness.BUNDLED / "minimind-dense", "Q8_0", keep_numbers=False).convert().write(source)
        pathlib.Path(quantize).write_text('#!/bin/sh\ncp "$2" "$3"\n', encoding="utf-8")
        os.chmod(quantize, 0o755)
        pathlib.Path(text).write_text(bundled_text()[:3000], encoding="utf-8")
        out = os.path.join(folder, "out")
        harness.execute(["/usr/bin/python3", harness.ROOT / "tests/bench/blocks.py", out, "--mica", harness.mica, "--quantize", quantize,
                         "--source", source, "--formats", "Q8_0", "--text", text, "--max-seq", 512])
        done = harness.execute(["/usr/bin/python3", harness.ROOT / "tests/bench/compare.py", "--config", out + "/cases.json", "--pairs", 1,
                                "--gen", 8, "--threads", 2, "--bandwidth", "", "--tests", "decode", "--eval", harness.mica,
                                "--json", folder + "/result.json"])
        with open(folder + "/result.json", encoding="utf-8") as file:
            default, int8 = json.load(file)["cases"]
        self.assertEqual((default["name"], int8["name"]), ("Q8_0", "Q8_0 --rows int8"))
        for rows in ("prefill", "decode"):
            self.assertLess(default["quality"]["Mica"][rows]["kl"], 1e-3)
        self.assertLess(default["quality"]["Mica"]["prefill"]["kl"], int8["quality"]["Mica"]["prefill"]["kl"])
        self.assertEqual(default["quality"]["Mica"]["decode"], int8["quality"]["Mica"]["decode"])
        self.assertIn("- KL divergence of Mica from its reference in f32: prefill ", done.stdout.decode())

    def test_program_without_a_peer(self):
        built = program(harness.BUNDLED / "minimind-dense", "--weights", "int8")
        out = os.path.join(harness.folder("compared"), "out.json")
        bandwidth = os.path.join(os.path.dirname(harness.mica), "mica-bandwidth")
        options = ("--bandwidth", bandwidth if os.path.exists(bandwidth) else "")
        done = harness.execute(["/usr/bin/python3", harness.ROOT / "tests/bench/compare.py", "--mica", built.path, "--pairs", 1,
                                "--gen", 8, "--threads", 2, "--json", out, *options])
        with open(out, encoding="utf-8") as file:
            (case,) = json.load(file)["cases"]
        rows = {row["test"]: row for row in case["rows"]}
        self.assertEqual(sorted(rows), ["batch", "decode", "deep", "long", "prefill"])
        for name in ("deep", "long"):
            self.assertIn("was compiled for", rows[name]["trouble"]["Mica"]["message"])
        for name in ("decode", "prefill", "batch"):
            note(self, f"{name}: {rows[name]['tokens_per_s']['Mica']['median']:.0f} tokens/s")
            self.assertEqual(rows[name]["trouble"], {})
            self.assertGreater(rows[name]["tokens_per_s"]["Mica"]["min"], 0)
        # The peak is that of float matmuls, which integer matmuls may exceed.
        rows_of_prompts = json.loads(built.run("info", "--json").stdout)["manifest"]["rows"]["prompt"]
        share = rows["prefill"]["share_of_peak"]
        self.assertEqual(share is None, rows_of_prompts.startswith("int"))
        if share:
            self.assertGreater(share["median"], 0)
        self.assertGreater(rows["decode"]["gb_per_s"]["median"], 0)
        self.assertEqual(rows["decode"]["memory_gb_per_s"] is None, options[1] == "")
        self.assertEqual([goal["goal"] for goal in rows["decode"]["goals"]], [">= 1x the better peer"])
        self.assertIn("tokens/s | Mica | better | memory GB/s | share | goals |", done.stdout.decode())
