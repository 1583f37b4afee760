#!/usr/bin/python3
"""ranks.py with fakes of programs, and the cost model of docs/scale.md, whose figures it checks."""

import contextlib
import dataclasses
import io
import json
import math
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ET
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/bench"), str(ROOT / "tools/scale"), str(ROOT / "tests/quality")]
import cost_model  # noqa: E402
import failure_page  # noqa: E402
import published  # noqa: E402
import scale_page  # noqa: E402
import ranks  # noqa: E402
import shapes  # noqa: E402

#: In the tables of the page.
BF16_KL = published.small(published.figures_of("trained", "`--weights bf16`", "")["decode"]["kl"])
MACHINE = {"cpu": "Fake (family 1)", "processors": 4, "kernel": "6.0"}
#: A program: 30 tokens/s of one process; of ranks, 27 through shared memory, 26 with the cable, and less with a limit or a latency. Its ids
#: are those of one process, except for the link WRONG; none with the link FAILS.
MICA = r"""
import json, os, sys
a = sys.argv
if a[1] == "info":
    print(json.dumps({"version": "9.9", "max_seq": 1024, "weights": "bf16", "manifest": {"weight_bytes": 100}}))
elif "--tokens" in a:
    link = os.environ.get("LINK", "")
    if link == os.environ.get("FAILS", "-"):
        sys.exit("cannot connect")
    count = int(a[a.index("-n") + 1])
    print(*(sum(map(int, a[a.index("--tokens") + 1].split(","))) + i for i in range(count - 1)), -1 if link == os.environ.get("WRONG", "-") else 7)
else:
    speed = {None: 30.0, "shared memory": 27.0, "cable": 26.0, "cable 10gbit": 25.5}.get(os.environ.get("LINK"), 24.0)
    print(json.dumps({"results": [{"test": "x", "tokens_per_s": speed, "runs": [speed], "gb_per_s": 1.0}]}))
"""
#: Exchanges: 2 us each, 5 us over the cable, more with a limit or a latency; twice as long between four ranks.
EXCHANGES = r"""
import json, os, sys
for text in sys.argv[2::2]:
    us = {"shared memory": 2.0, "cable": 5.0, "cable 10gbit": 6.0, "cable +20us": 25.0}.get(os.environ["LINK"], 10.0)
    us *= len(text.split(",")) * (2 if os.environ["COUNT"] == "4" else 1)
    print(json.dumps({"exchange": text, "median_us": us, "p10_us": us, "p90_us": us, "mean_us": us}))
"""


class Measure(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def peaks_of(self, command, program, _):
        """300 MB of one process, 150 and 120 of two ranks."""
        self.assertIn(program, command)
        return [300e6] if program.endswith("one") else [150e6, 120e6]

    def program(self, name, text):
        path = self.folder / name
        path.write_text("#!/usr/bin/python3\n" + text, encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    def measure(self, *options, processors=4):
        """(JSON, Markdown) of a run; a link starts ranks by /usr/bin/env."""
        one, two = (self.program(name, MICA) for name in ("one", "two"))
        exchange = self.program("exchange", EXCHANGES)
        self.started = []

        def starter(link, mpi, count, folder=None):
            self.started.append((link, mpi, count, folder))
            return ["/usr/bin/env", f"LINK={link}", f"COUNT={count}"]

        with (mock.patch.object(ranks, "starter", autospec=True, side_effect=starter), mock.patch.object(ranks, "version", lambda _: "4.9"),
              mock.patch.object(ranks, "programs", lambda *_: [("bf16", one, two)]),
              mock.patch.object(ranks.load, "machine", lambda: {**MACHINE, "processors": processors}),
              mock.patch.object(ranks, "Tools", lambda *_: mock.Mock(program=lambda *_: exchange)),
              mock.patch.object(ranks, "build_delays", lambda *_: None), mock.patch.object(ranks, "peaks_of", self.peaks_of),
              contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO())):
            ranks.main([str(self.folder / "out"), "--rounds", "2", "--json", str(self.folder / "r.json"), *options])
        return json.loads((self.folder / "r.json").read_text(encoding="utf-8")), out.getvalue()

    def test_ratios_and_goals(self):
        result, text = self.measure()
        self.assertEqual(len(result["speeds"]), 2 * (1 + 1 + 2 + 2), "two tests of one process and five ways to start ranks")
        goals = {(each["link"], each["test"]): each["goal"] for each in result["speeds"]}
        self.assertEqual([goals[key] for key in (("shared memory", "prefill"), ("cable", "decode"), ("cable", "prefill"), ("one process", "decode"))],
                         [0.93, 0.85, None, None])
        self.assertEqual([each["goal"] for each in result["memory"]], [None, 0.55, 0.55])
        ratios = {"one process": 1, "shared memory": 27 / 30, "cable": 26 / 30, "cable 10gbit": 25.5 / 30, "cable 1gbit": 24 / 30}
        for each in result["speeds"]:
            self.assertEqual(each["ratio"]["median"], ratios[each["link"]])
            self.assertEqual(len(each["tokens_per_s"]["values"]), 2, "the first round is dropped")
        self.assertIn("| bf16 | decode | shared memory, openmpi | 27.0 (27.0 - 27.0) | 0.90x (0.90 - 0.90) | >= 0.93: short |", text)
        self.assertIn("| bf16 | decode | cable, mpich | 26.0 (26.0 - 26.0) | 0.87x (0.87 - 0.87) | >= 0.85: reached |", text)
        self.assertEqual(text.count("Goal of one gather of 16 KiB through shared memory, median of 1000, <= 10 us: reached"), 1)
        self.assertEqual(text.count("Goal of "), 1)
        self.assertIn("| bf16 | one process | 300 | 1.00 | - |\n| bf16 | openmpi | 150, 120 | 0.50 | <= 0.55: reached |", text)

    def ids(self, **env):
        """(JSON, Markdown) if only ids are compared."""
        with mock.patch.dict(os.environ, env):
            return self.measure("--parts", "ids")

    def test_ids(self):
        result, text = self.ids()
        self.assertEqual([(each["link"], each["mpi"], each["equal"], each["trouble"]) for each in result["ids"]],
                         [(link, mpi, True, None) for link in ("shared memory", "cable") for mpi in ("openmpi", "mpich")])
        self.assertIn("| bf16 | cable, mpich | equal |", text)
        words = " ".join(scale_page.passage(scale_page.merged([result])).split())
        self.assertIn("Ids equal to those of one process (32 ids, generated after a prompt of 300 random ids): bf16 with the link shared memory, "
                      "openmpi; bf16 with the link shared memory, mpich; bf16 with the link cable, openmpi; bf16 with the link cable, mpich.", words)
        self.assertNotIn("Ids not equal", words)

    def test_ids_that_differ(self):
        result, text = self.ids(WRONG="cable", FAILS="shared memory")
        self.assertEqual([each["equal"] for each in result["ids"]], [None, None, False, False])
        self.assertIn("| bf16 | shared memory, openmpi | - |\n", text)
        self.assertIn("| bf16 | cable, openmpi | different |\n", text)
        self.assertIn('- "exit status 1: cannot connect"', text)
        words = " ".join(scale_page.passage(scale_page.merged([result])).split())
        self.assertIn("Ids not equal to those of one process (32 ids, generated after a prompt of 300 random ids): bf16 with the link cable, "
                      "openmpi; bf16 with the link cable, mpich.", words)
        self.assertNotIn("Ids equal", words)

    def test_ids_of_one_process_are_required(self):
        result, _ = self.ids(FAILS="")
        self.assertEqual({each["trouble"] for each in result["ids"]}, {"exit status 1: cannot connect"})

    def test_files_without_ids(self):
        result, _ = self.measure("--parts", "memory")
        del result["ids"]
        self.assertNotIn("Ids ", scale_page.passage(scale_page.merged([result])))

    def test_exchanges_of_each_link(self):
        result, text = self.measure("--parts", "exchanges")
        keys = {(each["link"], each["by"], each["mpi"], each["ranks"]) for each in result["exchanges"]}
        self.assertEqual(len(keys), 2 * (4 * 4 - 1), "shared memory of programs is the same for both implementations")
        gathers = next(each for each in result["exchanges"] if each["exchange"] == "four gathers, bf16 and f32")
        self.assertEqual((gathers["latencies"], gathers["bytes"]), (4, 2 * 2048 + 4 * 2048 + 2 * 8192 + 4 * 2048))
        self.assertEqual(gathers["median_us"]["median"], 8)
        many = next(each for each in result["exchanges"] if each["exchange"] == "four gathers, bf16 and f32, 32 rows")
        self.assertEqual((many["bytes"], many["repeat"]), (32 * gathers["bytes"], 50))
        self.assertEqual((gathers["link"], gathers["ranks"], gathers["repeat"]), ("shared memory", 2, 200))
        self.assertIn("| two reductions, f32 | 16384 | cable 1gbit | Mica, openmpi | 20.0 (20.0 - 20.0) | 40.0 (40.0 - 40.0) |", text)
        self.assertIn("| one gather of 16 KiB | 16384 | cable | mpich | 5.0 (5.0 - 5.0) | 10.0 (10.0 - 10.0) |", text)
        self.assertIn("4 processors, Linux 6.0, openmpi 4.9, mpich 4.9; llama-3.2-1b; medians of 2 alternating rounds", text)

    def test_mpi_has_no_more_ranks_than_processors(self):
        result, text = self.measure("--parts", "exchanges", "--hasty", "10", processors=2)
        keys = {(each["link"], each["by"], each["mpi"], each["ranks"]) for each in result["exchanges"]}
        self.assertEqual(len(keys), (4 * 4 - 1) + (4 * 2 - 1))
        self.assertIn("| one gather of 16 KiB | 16384 | cable | mpich | 5.0 (5.0 - 5.0) | - |", text)
        self.assertIn("median of 100, <= 10 us", text)

    def test_memory_alone(self):
        result, text = self.measure("--parts", "memory")
        self.assertEqual((result["load"], result["speeds"], result["exchanges"]), ({}, [], []))
        self.assertNotIn("| exchange", text)
        self.assertNotIn("\n\n\n", text)

    def test_versions(self):
        for said, expected in (("mpirun.openmpi (OpenRTE) 4.1.4\n\nReport", "4.1.4"),
                               ("HYDRA build:\n    Version:      4.0.2\n", "4.0.2"), ("", "unknown")):
            with mock.patch.object(ranks.subprocess, "run", return_value=mock.Mock(stdout=said)):
                self.assertEqual(ranks.version("openmpi"), expected)

    def test_what_fails_is_reported(self):
        with mock.patch.dict(globals(), EXCHANGES="import sys\nsys.exit('no such network')\n"):
            result, text = self.measure("--parts", "exchanges")
        self.assertIsNone(result["exchanges"][0]["median_us"])
        self.assertIn("exit status 1: no such network", text)

    def test_commands_that_start_ranks(self):
        folder = pathlib.Path("/there")
        self.assertEqual(ranks.starter("shared memory", "mpich", 2, folder), ["mpirun.mpich", "-n", "2"])
        self.assertEqual(ranks.starter("cable 1gbit", "mpich", 4, folder)[1:], ["--mpi", "mpich", "-n", "4", "--rate", "1gbit"])
        self.assertEqual(ranks.starter("cable 1gbit +20us", "mpich", 2, folder),
                         ["/usr/bin/env", "LD_PRELOAD=/there/delay-mpich.so", "MICA_DELAY_US=20",
                          *ranks.starter("cable 1gbit", "mpich", 2, folder)])

    def test_links(self):
        with contextlib.redirect_stderr(io.StringIO()) as err:
            for links in ("cable +20", "shared memory +20us", "cable 10", "wire"):
                with self.assertRaises(SystemExit):
                    ranks.parse(["out", "--links", f"cable,{links}"])
                self.assertIn(f"unknown: {links}\n", err.getvalue())

    def test_sizes_of_processes(self):
        program = shutil.copy("/bin/sleep", self.folder / "program")
        [size] = ranks.peaks_of([program, "0.3"], program, 60)
        self.assertGreater(size, 100_000)
        self.assertEqual(ranks.peaks_of([program, "now"], program, 60), [], "it has failed")

    def test_the_page_has_what_was_measured(self):
        result, _ = self.measure()
        merged = scale_page.merged([result])
        text = scale_page.passage(merged)
        # 16 layers of 8 us and four exchanges of 2 us, in addition to 1/30 s.
        self.assertIn(f"| bf16 | {BF16_KL} | shared memory | 27.0 (27.0 - 27.0) | 0.90 (0.90 - 0.90) | 0.93: missed | 1.00 | 1.00 |", text)
        self.assertIn(f"| bf16 | {BF16_KL} | cable | 26.0 (26.0 - 26.0) | 0.87 (0.87 - 0.87) | 0.85: reached | 0.99 | - |", text)
        self.assertIn(f"| bf16 | {BF16_KL} | 512 tokens | shared memory | openmpi | 27.0 (27.0 - 27.0) | 0.90 (0.90 - 0.90) | 0.93: missed |", text)
        self.assertIn(f"| bf16 | {BF16_KL} | decode | cable | mpich | 26.0 (26.0 - 26.0) | 0.87 (0.87 - 0.87) | 0.85: reached |", text)
        self.assertIn("| bf16 | openmpi | 150, 120 | 0.50 | 0.55: reached |", text)
        words = " ".join(text.split())
        self.assertIn("Goals missed: 2 of 7: decode in bf16 with the link shared memory, openmpi (0.90 (0.90 - 0.90) in 2 rounds, at least "
                      "0.93); prefill in bf16 with the link shared memory, openmpi (0.90 (0.90 - 0.90) in 2 rounds, at least 0.93). Undecided, "
                      "because some rounds reach the goal and some do not: 0 of 7.", words)
        self.assertNotIn("Not measured", words)
        self.assertIn("Fake (family 1), 4 processors, Linux 6.0, openmpi 4.9, mpich 4.9; medians of 2 rounds", words)
        root = ET.fromstring(scale_page.picture(merged))
        marks = [each[0].text for each in root.iter("{http://www.w3.org/2000/svg}g")]
        self.assertIn("bf16, 10 Gb/s, two ranks: 25.5 tokens/s", marks)
        self.assertIn("bf16, cable, one process: 30.0 tokens/s", marks)
        self.assertEqual(len(marks), 2 * 4)

    def test_the_page_does_not_decide_by_noise(self):
        """A goal is reached, or missed, if it is in all rounds."""
        result, _ = self.measure("--links", "shared memory", "--mpi", "openmpi")
        for each in result["speeds"]:
            if each["goal"]:
                each["ratio"] = {"median": 0.95, "min": 0.93 if each["test"] == "prefill" else 0.91, "max": 0.99, "values": [0.91, 0.95, 0.99]}
        for each in result["exchanges"]:
            each["median_us"].update(min=8, max=11)
        text = scale_page.passage(scale_page.merged([result]))
        words = " ".join(text.split())
        self.assertIn("0.95 (0.91 - 0.99) | 0.93: undecided |", text)
        self.assertIn("0.95 (0.93 - 0.99) | 0.93: reached |", text)
        self.assertIn("Goals missed: 0 of 4. Undecided, because some rounds reach the goal and some do not: 2 of 4: decode in bf16 with the link "
                      "shared memory, openmpi (0.95 (0.91 - 0.99) in 3 rounds, at least 0.93); one gather of 16 KiB, median of 1000 (2.00 (8.00 - "
                      "11.0) us in 2 rounds, at most 10).", words)
        self.assertIn("Not measured: tokens per second with mpich, exchanges with mpich, memory of processes with mpich.", words)
        self.assertNotIn("other implementations of MPI", words)

    def test_the_page_has_the_exchanges(self):
        result, _ = self.measure("--parts", "exchanges", "--links", "shared memory,cable")
        text = scale_page.passage(scale_page.merged([result]))
        # Half of 36 KiB; four latencies of 1 us and 18 KiB with 10 GB/s.
        self.assertIn("Between 2 ranks started by mpich:\n\n| exchange | KiB | shared memory | cable |", text)
        self.assertEqual(text.count("| four gathers, bf16 and f32 | 18 | 5.84 / 8.00 / 8.00 | - / 20.0 / 20.0 |"), 2, "for both implementations")
        # Of sums, 2 (N - 1) / N rows are received.
        self.assertIn("| two reductions, f32 | 24 | ", text)
        self.assertNotIn("they share", text)
        ET.fromstring(scale_page.picture(scale_page.merged([result])))

    def test_the_page_has_no_mpi_on_shared_processors(self):
        result, _ = self.measure("--parts", "exchanges", "--links", "cable")
        result["machine"]["processors"] = 2
        text = scale_page.passage(scale_page.merged([result]))
        self.assertIn("Between 4 ranks started by mpich, by Mica only: they share 2 processors:", text)
        self.assertIn("| one gather of 16 KiB | 12 | 10.0 |", text)

    def test_the_page_merges_files(self):
        speeds, exchanges = (self.measure("--parts", part)[0] for part in ("speeds", "exchanges"))
        text = scale_page.passage(scale_page.merged([speeds, exchanges]))
        self.assertIn(f"| bf16 | {BF16_KL} | shared memory | 27.0 (27.0 - 27.0) | 0.90 (0.90 - 0.90) | 0.93: missed | 1.00 | 1.00 |", text)
        self.assertEqual(text.count("Measured with `"), 2)
        self.assertIn("Not measured: memory of processes.", " ".join(text.split()))
        self.assertIn("A round is the median of 1000 repetitions (one gather of 16 KiB), 200 (one row), 50 (32 rows), 10 (512 rows).",
                      " ".join(text.split()))

    def test_the_page_has_no_conditions_of_memory(self):
        """It is measured once, without other processes being observed."""
        result, _ = self.measure("--parts", "memory")
        words = " ".join(scale_page.passage(scale_page.merged([result])).split())
        self.assertIn("4 processors, Linux 6.0, openmpi 4.9, mpich 4.9. Peak resident memory", words)
        self.assertNotIn("medians of", words)
        self.assertNotIn("other processes", words)

    def test_replicas_depend_on_the_bandwidth_of_long_exchanges(self):
        shared, fast, _ = cost_model.LINKS
        eight, int4 = cost_model.SHAPES[1], cost_model.FORMATS[2]
        measured, reached = map(int, scale_page.replica_cell(eight, int4, fast, 8).split(" / "))
        self.assertLess(measured, reached)
        self.assertNotIn("/", scale_page.replica_cell(eight, int4, shared, 8))

    def test_the_page_has_added_latencies(self):
        result, _ = self.measure("--links", "cable,cable +20us", "--ranks", "2")
        text = "\n".join(scale_page.check_latency(scale_page.merged([result])))
        # Four exchanges of 5 us and four of 25; 16 layers and four exchanges of a step, in addition to 1/30 s.
        self.assertIn(f"| bf16 | {BF16_KL} | 0 | 26.0 (26.0 - 26.0) | 0.87 (0.87 - 0.87) | 0.99 |\n"
                      f"| bf16 | {BF16_KL} | 20 | 24.0 (24.0 - 24.0) | 0.80 (0.80 - 0.80) | 0.95 |", text)

    def test_divergences_are_of_the_arithmetic(self):
        figures = published.figures_of("trained", "`--weights int8`", "int16")
        self.assertEqual([scale_page.divergence("int8", role) for role in figures], [published.small(each["kl"]) for each in figures.values()])
        with_bf16 = published.figures_of("trained", "`--weights int8`", "")["prefill"]["kl"]
        self.assertEqual(scale_page.divergence("int8", "prefill", "Fake (family 1, avx512_bf16)"), published.small(with_bf16))
        text = " ".join(scale_page.passage(None).split())
        self.assertIn(f"of the small Llama trained in f32: bf16 {BF16_KL}, int8 {scale_page.divergence('int8')}, int4 ", text)


class Model(unittest.TestCase):
    one, eight, _, seventy = cost_model.SHAPES
    bf16, int8, int4 = cost_model.FORMATS
    shared, fast, slow = cost_model.LINKS

    def test_shapes_are_those_of_the_benchmarks(self):
        published = shapes.SHAPES["llama-3.2-1b"]
        keys = ("num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim",
                "vocab_size", "tie_word_embeddings")
        self.assertEqual(tuple(published[key] for key in keys), dataclasses.astuple(self.one)[1:])

    def test_sizes_of_published_models(self):
        """Parameters without norms and biases: 1.236, 8.030, 32.76 and 70.55 billion."""
        for shape, billions in zip(cost_model.SHAPES, (1.236, 8.030, 32.76, 70.55), strict=True):
            self.assertAlmostEqual(cost_model.weight_bytes(shape, self.bf16) / 2e9 / billions, 1, delta=1e-3)

    def test_exchanges_are_those_of_the_measured_layer(self):
        for form in (self.bf16, self.int8):
            for kind in ("gather", "reduce"):
                listed = ranks.layer({**shapes.SHAPES["llama-3.2-1b"]}, form.name, 1, kind).partition(":")[2].split(",")
                found = cost_model.exchanges(self.one, form, 2, reductions=kind == "reduce")
                rest = cost_model.exchanges(dataclasses.replace(self.one, layers=0), form, 2)
                self.assertEqual(found.latencies - rest.latencies, 16 * len(listed))
                # A reduction receives the rows of both ranks.
                self.assertEqual(found.bytes - rest.bytes, 16 * sum(map(int, listed)) * (2 if kind == "reduce" else 1))

    def test_one_rank_exchanges_nothing(self):
        speeds = {cost_model.tokens_per_s(self.eight, self.int8, link, 1) for link in cost_model.LINKS}
        self.assertEqual(len(speeds), 1)
        # All weights but the embedding, and the cache.
        read = (7.505e9 * 8.3 / 8) + 2 * 2 * 32 * 1024 * 1024
        self.assertAlmostEqual(speeds.pop() * read / cost_model.MACHINE.bandwidth, 1, delta=0.01)

    def test_possible_ranks(self):
        """32B has 40 heads; 70B in bf16 has 141 GB."""
        _, _, thirty_two, seventy = cost_model.SHAPES
        self.assertEqual([cost_model.is_possible(thirty_two, self.int8, ranks) for ranks in (1, 2, 4, 8, 16)], [True, True, True, True, False])
        self.assertEqual([cost_model.is_possible(seventy, self.bf16, ranks) for ranks in (1, 2, 16)], [False, True, True])
        twelve = dataclasses.replace(self.one, heads=24, kv_heads=12)
        self.assertEqual([cost_model.is_possible(twelve, self.int8, ranks) for ranks in (4, 8, 12, 24)], [True, False, True, True])

    def test_time_of_an_exchange(self):
        link = cost_model.Link("", 1e-3, 1e6, 1e5)
        found = cost_model.Exchanges(3, 8000)
        self.assertEqual(cost_model.exchange_time(found, link, 1), 0)
        self.assertAlmostEqual(cost_model.exchange_time(found, link, 2), 3e-3 + 4e-3)
        self.assertAlmostEqual(cost_model.exchange_time(found, link, 16), 12e-3 + 7.5e-3)
        # What exceeds 64 KiB is slower.
        self.assertAlmostEqual(cost_model.exchange_time(cost_model.Exchanges(1, 2 * 65536 + 2000), link, 2), 1e-3 + 65.536e-3 + 10e-3)

    def test_what_exactness_costs(self):
        """Of a 70B model in bf16 nothing between two ranks, of a small one with 4 bits nearly half between eight with a slow link."""
        self.assertGreater(cost_model.speed_of_gathers(self.seventy, self.bf16, self.slow, 2), 0.98)
        self.assertLess(cost_model.speed_of_gathers(self.one, self.int4, self.slow, 8), 0.65)
        latencies, sums = (cost_model.exchanges(self.one, self.int4, 8, reductions=each) for each in (False, True))
        time = cost_model.compute_time(self.one, self.int4, 8, 1, cost_model.MACHINE)
        both = [time + cost_model.exchange_time(each, self.slow, 8) for each in (latencies, sums)]
        self.assertAlmostEqual(cost_model.speed_of_gathers(self.one, self.int4, self.slow, 8), both[1] / both[0])

    def test_the_model_agrees_with_measured_exchanges(self):
        """Within a factor of two, for the gathers between two ranks of OpenMPI on links that the model has, if the machine was idle. If this
        fails after a new measurement, the assumptions of cost_model.LINKS are wrong."""
        measured = [each for each in (scale_page.load() or {"exchanges": []})["exchanges"] if each["by"] == "mica" and each["ranks"] == 2
                    and each["mpi"] == "openmpi" and "gather" in each["exchange"] and each["median_us"] and scale_page.model_of(each["link"])
                    and each["load"]["others"] < 0.3]  # the kernel's work for TCP counts as well
        if not measured:
            self.skipTest("nothing was measured")
        for each in measured:
            ratio = scale_page.model_us(each) / each["median_us"]["median"]
            self.assertTrue(0.5 <= ratio <= 2, (each["exchange"], each["link"], ratio))

    def test_replicas(self):
        self.assertEqual(cost_model.replicas_from(self.seventy, self.bf16, self.fast, 2), 0, "they do not fit")
        self.assertEqual(cost_model.replicas_from(self.one, self.int4, self.slow, 8), 1, "exchanges take longer than all weights")
        many = cost_model.replicas_from(self.eight, self.bf16, self.shared, 2)
        for sequences, replicas_are_faster in ((many - 1, False), (many, True)):
            faster = (cost_model.replicas_per_s(self.eight, self.bf16, 2, sequences)
                      > cost_model.tokens_per_s(self.eight, self.bf16, self.shared, 2, sequences))
            self.assertEqual(faster, replicas_are_faster)
        # About as many as make a replica compute longer than it reads.
        ridge = cost_model.MACHINE.flops / cost_model.MACHINE.bandwidth
        self.assertLess(abs(math.log2(many / 2 / ridge)), 0.5)

    def test_a_measured_machine(self):
        seconds = cost_model.measured_exchange_time(500, 200, self.one)
        self.assertAlmostEqual(seconds, 1e-6 * (16 * 500 + 4 * 200))
        self.assertAlmostEqual(cost_model.predicted_ratio(100, seconds), 1 / (1 + 100 * seconds))


class FailureTimes(unittest.TestCase):
    """The passage of docs/scale.md on ranks that have failed."""

    def test_the_page_has_what_was_measured(self):
        test = "test_ranks_failure.Failure.test_ends_"
        figures = {test + "openmpi_decode_killed_0": ["1.2 s"], test + "openmpi_serve_idle_killed_1": ["0.4 s"],
                   test + "hosts_mpich_serve_streaming_cut_1": ["2.3 s"], test + "openmpi_decode_without_mpirun": ["9.0 s"],
                   "test_serve.Serve.test_time": ["9 s"]}
        text = failure_page.passage({"command": "run.py", "commit": "0123abc", "load": {"others": 0.1}, "figures": figures,
                                     "machine": {"cpu": "Fake (family 1)", "processors": 4, "kernel": "6.0"}})
        self.assertIn("commit 0123abc: Fake (family 1), 4 processors, Linux 6.0; 3 tests; other processes used 0.10 processors.",
                      " ".join(text.split()))
        self.assertEqual([line for line in text.splitlines() if line.startswith("| ")][1:],
                         ["| two ranks on one host, a rank is killed | 0.4 to 1.2 s | - |", "| two hosts, the cable is down | - | 2.3 s |"])

    def test_every_test_has_a_place_in_it(self):
        """But for those in which mpirun fails, not a rank."""
        measured = failure_page.load()["figures"]
        apart = [name for name in measured if not failure_page.NAME.fullmatch(name)]
        self.assertEqual([name for name in apart if not name.endswith("_without_mpirun")], [])
        self.assertGreater(len(measured), 50)


class Exchanges(unittest.TestCase):
    """MpiBenchmarks.c and MpiDelay.c, as far as they do not need several processes."""

    def test_it_measures(self):
        compiler = "/usr/bin/mpicc.openmpi"
        if not pathlib.Path(compiler).exists():
            self.skipTest(f"needs {compiler}")
        with tempfile.TemporaryDirectory() as folder:
            program = folder + "/program"
            subprocess.run([compiler, "-O2", "-Wall", "-Werror", ROOT / "tests/bench/MpiBenchmarks.c", "-o", program], check=True)

            def run(*arguments):
                return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
            results = [json.loads(line) for line in run("3", "gather:4096,8192", "1", "reduce:64").stdout.splitlines()]
            self.assertEqual([each["exchange"] for each in results], ["gather:4096,8192", "reduce:64"])
            for arguments in ((), ("3",), ("0", "gather:4"), ("1", "gather:"), ("1", "scatter:4"), ("1", "gather:0"), ("1", "reduce:6")):
                self.assertNotEqual(run(*arguments).returncode, 0, arguments)
            # It does not leave MPI_Finalize.
            paused = folder + "/paused.so"
            subprocess.run(["cc", "-shared", "-fPIC", ROOT / "tests/e2e/PausedRank.c", "-o", paused], check=True)
            done = subprocess.run([program, "3", "gather:4096"], capture_output=True, text=True, check=True, timeout=60,
                                  env={**os.environ, "LD_PRELOAD": paused, "MICA_TEST_PAUSE": "shutdown", "PMI_RANK": "0"})
            self.assertEqual(json.loads(done.stdout)["exchange"], "gather:4096")
            place = pathlib.Path(folder)
            ranks.build_delays(place, mock.Mock(mpi=["openmpi"], links=["cable +3000us"]))
            env = {**os.environ, "LD_PRELOAD": str(ranks.delay_of(place, "openmpi")), "MICA_DELAY_US": "3000"}
            done = subprocess.run([program, "3", "gather:4096,8192", "3", "reduce:64"], capture_output=True, text=True, check=True, env=env)
            for line, least in zip(done.stdout.splitlines(), (6000, 3000), strict=True):
                self.assertGreaterEqual(json.loads(line)["median_us"], least)


if __name__ == "__main__":
    unittest.main()
