"""`PROGRAM serve` under tests/bench/serve/clients.py."""

import json
import os
import pathlib
import re
import resource
import sys

import harness
from harness import Case, program
from test_serve import MODEL, Server

IDLE = 5000
BENCH = harness.ROOT / "tests/bench/serve"
CLIENTS = BENCH / "clients.py"
#: Serves a program with the options of llama-server.
STAND_IN = """#!/bin/sh
while [ $# -gt 0 ]; do
  case $1 in
    -m) model=$2;; --port) port=$2;; -np) sequences=$2;; -t) threads=$2;;
    --no-*) shift; continue;;
  esac
  shift 2
done
exec "$model" serve --port "$port" --sequences "$sequences" --threads "$threads"
"""
SECONDS = os.environ.get("MICA_SOAK_SECONDS", "10")


class Load(Case):
    def clients(self, server, *options):
        return json.loads(harness.execute([sys.executable, CLIENTS, f"http://{server.host}:{server.port}", *options],
                                          seconds=harness.SECONDS + float(SECONDS)).stdout)

    def test_a_closed_loop(self):
        with Server("--sequences", "4") as server:
            found = self.clients(server, "--clients", "3", "--seconds", "2", "--long", "600")
            self.assertGreater(found["requests"], 2)
            self.assertEqual(found["errors"], [])
            harness.note(self, f"{found['tokens_per_second']} tokens/s, gaps {found['gaps']}")

    def test_clients_that_misbehave(self):
        with Server("--sequences", "4") as server:
            found = self.clients(server, "--garbage", "--clients", "8", "--seconds", SECONDS, "--pid", server.process.pid)
            self.assertEqual(set(found["done"]), {"half_sent", "noise", "wrong", "leave", "slow", "good"})
            early, late = found["resident_bytes"]
            self.assertLess(late, early + (16 << 20))
            server.wait_for_metric("mica_requests_running", 0)
            self.assertEqual(server.terminate()[1], 0)

    def test_connections_that_wait(self):
        """Idle connections take little memory and do not slow down a stream."""
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        count = min(IDLE, hard - 500)
        # A typical soft limit of shells: the server raises it.
        with Server("--sequences", "2", command=["prlimit", f"--nofile=1024:{hard}", "--", program(MODEL).path]) as server:
            limits = pathlib.Path(f"/proc/{server.process.pid}/limits").read_text(encoding="ascii")
            self.assertEqual(int(re.search(r"^Max open files +(\d+)", limits, re.M)[1]), min(8192 + 64, hard))
            found = self.clients(server, "--idle", count, "--clients", "1", "--seconds", "6", "--answer", "50:200", "--pid", server.process.pid)
            self.assertEqual((found["errors"], found["idle"]), ([], count))
            before, after = found["resident_bytes"]
            harness.note(self, f"{count} idle connections: {(after - before) / 1e6:.1f} MB more, opened in {found['opened_after']} s; gaps of a "
                               f"stream before {found['gaps']}, meanwhile {found['gaps_idle']}")
            self.assertLess(after - before, 50e6)
            self.assertEqual(server.terminate()[1], 0)
        if count < IDLE:
            self.skipTest(f"{count} connections instead of {IDLE} were tested: the limit of open files is {hard}")


class Measurements(Case):
    def test_goals(self):
        place = pathlib.Path(harness.folder("goals"))
        stand_in, figures = place / "llama-server", place / "figures.json"
        stand_in.write_text(STAND_IN)
        stand_in.chmod(0o755)
        built = program(MODEL).path
        done = harness.execute([sys.executable, BENCH / "goals.py", built, "--peer", stand_in, built, "--short", "--rounds", "1", "--json", figures])
        table = json.loads(figures.read_text())["table"]
        self.assertEqual({line["work"] for line in table}, {"streams", "arrival", "loop", "turn", "idle"})
        for line in table:
            self.assertGreaterEqual(line["mica"], 0, line)
            self.assertEqual(line["peer"] is not None, line["work"] in ("streams", "arrival", "loop"), line)
            self.assertEqual(line["goal"] is not None, line["reached"] is not None, line)
        self.assertEqual(len(done.stdout.decode().splitlines()), 2 + len(table))
        self.assertEqual([line["mica"] for line in table if line["figure"] == "computed over new"], [1])

    def test_mixed_steps(self):
        done = harness.execute([sys.executable, BENCH / "mixed_step.py", program(MODEL, "--weights", "int8").path, "--rounds", "1", "--chunks", "32",
                                "--streams", "1,2", "--depth", "16"])
        self.assertEqual([re.match(r"\| 32 \| (\d) (\| [\d.]+ ){5}\|$", line)[1] for line in done.stdout.decode().splitlines()[2:]], ["1", "2"])
