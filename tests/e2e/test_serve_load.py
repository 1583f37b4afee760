"""`PROGRAM serve` under tests/bench/serve/clients.py."""

import contextlib
import json
import os
import pathlib
import re
import resource
import statistics
import sys

import harness
from harness import Case, for_each, program
from served import MODEL, PROGRAMS, SANITIZER, Server

IDLE = 5000
BENCH = harness.ROOT / "tests/bench/serve"
CLIENTS = BENCH / "clients.py"
#: Serves a program with the options of llama-server.
STAND_IN = """#!/bin/sh
[ "$1" != --version ] || { echo "version: 9 (abc)" >&2; echo "built with a shell" >&2; exit; }
while [ $# -gt 0 ]; do
  case $1 in
    -m) model=$2;; --port) port=$2;; -np) sequences=$2;; -t) threads=$2;;
    --no-*) shift; continue;;
  esac
  shift 2
done
exec "$model" serve --port "$port" --sequences "$sequences" --threads "$threads"
"""
SECONDS = os.environ.get("MICA_SOAK_SECONDS", "60")


@for_each(PROGRAMS, "misbehaving_clients")
class Load(Case):
    def clients(self, server, *options):
        return json.loads(harness.execute([sys.executable, CLIENTS, f"http://{server.host}:{server.port}", *options],
                                          seconds=harness.SECONDS + float(SECONDS)).stdout)

    def test_closed_loop(self):
        with Server("--sequences", "4") as server:
            found = self.clients(server, "--clients", "3", "--seconds", "2", "--long", "600")
            self.assertGreater(found["requests"], 2)
            self.assertEqual(found["errors"], [])
            harness.note(self, f"{found['tokens_per_second']} tokens/s, gaps {found['gaps']}")

    def misbehaving_clients(self, name):
        with Server("--sequences", "4", "--send-timeout", "10", command=PROGRAMS[name]()) as server:
            # What is used once is no growth: caches, and oneDNN's primitives, of which those for the last numbers of rows are kept.
            server.complete([7], max_tokens=1000, n=4, ignore_eos=True)
            for length in range(40, 140):
                server.complete([length] * length, max_tokens=1)
            found = self.clients(server, "--garbage", "--clients", "8", "--seconds", SECONDS, "--pid", server.process.pid, "--unread-seconds", "25")
            self.assertEqual(set(found["done"]), {"half_sent", "noise", "wrong", "leave", "good"})
            # 25 s suffice to fill the buffers of the kernel, and then to send nothing for 10 s; 4 MiB of unread events take minutes on a busy machine.
            self.assertGreater(found["slow"].get("unread disconnected", 0), 0, found["slow"])
            if float(SECONDS) >= 1800:
                self.assertGreater(found["slow"].get("trickle disconnected", 0), 0, found["slow"])
            # Flat after the first third of the time; a large body takes memory for a moment, unread events for as long as they are kept.
            memory = found["resident_bytes"]
            early, late = (statistics.median(memory[len(memory) * begin // 3:len(memory) * (begin + 1) // 3]) for begin in (1, 2))
            harness.note(self, f"{sum(found['done'].values())} actions in {found['seconds']} s, {found['different_requests']} different valid requests; "
                               f"slow readers: {found['slow']}; at most {max(memory) / 1e6:.1f} MB; medians {early / 1e6:.1f} MB, then {late / 1e6:.1f} MB")
            # Sanitizers keep freed memory, or data about all memory that was used; that for addresses reports leaks when the server ends.
            if not SANITIZER:
                # However many actions there were: what slow readers have not read changes, and so do the sizes of primitives.
                self.assertLess(late, early + (8 << 20), memory)
            # Every accepted request has ended, none by an error of the server.
            server.wait_for_metric("mica_completions_running", 0)
            server.wait_for_metric("mica_completions_waiting", 0)
            outcomes = {outcome: server.metric(f'mica_requests_total{{outcome="{outcome}"}}')
                        for outcome in ("ok", "failed", "timeout", "shutdown")}
            self.assertEqual({**outcomes, "ok": None}, {"ok": None, "failed": 0, "timeout": 0, "shutdown": 0})
            self.assertGreater(outcomes["ok"], 0)
            self.assertEqual(server.terminate()[1], 0)

    def test_idle_connections(self):
        """Idle connections take little memory, stay open, and do not end a stream."""
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
            self.assertGreater(found["requests"], 0)
            self.assertEqual(server.terminate()[1], 0)
        if count < IDLE:
            self.skipTest(f"{count} connections instead of {IDLE} were tested: the limit of open files is {hard}")

    def test_idle_connections_cost_no_time(self):
        """The processor time of an answer and of a new connection does not depend on them. It depends less on other processes than the gaps of a
        stream."""
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        count = min(IDLE, hard - 500)
        with Server("--sequences", "1", "--receive-timeout", "600") as server, contextlib.ExitStack() as clients:
            def seconds():
                before = server.processor_seconds()
                server.complete("27", max_tokens=900, ignore_eos=True)
                return server.processor_seconds() - before

            alone = min(seconds() for _ in range(3))
            fds = pathlib.Path(f"/proc/{server.process.pid}/fd")
            opening = []
            for opened in (count // 2, count):
                before, missing = server.processor_seconds(), opened - len(opening) * (count // 2)
                for _ in range(missing):
                    clients.enter_context(server.connect())
                harness.until(lambda opened=opened: len(list(fds.iterdir())) > opened, "connections are not accepted")
                opening.append(server.processor_seconds() - before)
            self.assertLess(opening[1], 3 * opening[0])
            # Other processes that share a core or its caches make single measurements slower.
            meanwhile = seconds()
            for _ in range(15):
                if meanwhile < 1.5 * alone:
                    break
                meanwhile = min(meanwhile, seconds())
            harness.note(self, f"{count} idle connections: {meanwhile:.3f} s for an answer, {alone:.3f} s without them; opened in {opening} s of processor time")
            self.assertLess(meanwhile, 1.5 * alone)


class Measurements(Case):
    def test_goals(self):
        place = pathlib.Path(harness.folder("goals"))
        stand_in, figures = place / "bin/llama-server", place / "figures.json"
        stand_in.parent.mkdir()
        stand_in.write_text(STAND_IN)
        (place / "CMakeCache.txt").write_text("CMAKE_BUILD_TYPE:STRING=Release\nGGML_NATIVE:BOOL=ON\nGGML_RPC:BOOL=OFF\n")
        stand_in.chmod(0o755)
        built = program(MODEL).path
        done = harness.execute([sys.executable, BENCH / "goals.py", built, "--peer", stand_in, built, "--short", "--loop-scale", "2", "--rounds", "1", "--json", figures])
        found = json.loads(figures.read_text())
        table = found["table"]
        weights = json.loads(program(MODEL).run("info", "--json").stdout)["weights"]
        conditions = found["conditions"]
        self.assertEqual((conditions["threads"], conditions["weights"]), (2, weights))
        self.assertRegex(conditions["cpu"], r"\(family \w+, model \w+, ")
        self.assertEqual((conditions["peer"], conditions["peer_build"]), ("9 (abc)", "built with a shell"))
        self.assertEqual(conditions["peer_options"], {"CMAKE_BUILD_TYPE": "Release", "GGML_NATIVE": "ON"})
        self.assertEqual("changes" in conditions, conditions["mica"].endswith("+changes"))
        self.assertEqual({line["work"] for line in table}, {"streams", "arrival", "loop", "turn", "idle", "batch"})
        for line in table:
            self.assertGreaterEqual(line["mica"], 0, line)
            self.assertEqual(line["peer"] is not None, line["work"] in ("streams", "arrival", "loop"), line)
            # The clients of the short loop may send a single request.
            self.assertTrue(line["work"] == "loop" or (line["goal"] is not None) == (line["reached"] is not None), line)
        for engine in ("Mica", "llama-server"):
            [round] = found["rounds"]["loop"][engine]
            self.assertEqual((round["clients"], round["requests per client"]), (4, round["requests"] / 4))
            self.assertEqual([round[f"{end} {what}"] for what in ("prompt", "answer") for end in ("shortest", "longest")], [16, 51, 8, 8])
        self.assertEqual(len(done.stdout.decode().splitlines()), 2 + len(table))
        # The last answer is in the cache, or has been recomputed in the time before the second turn.
        self.assertEqual([line["mica"] for line in table if line["figure"] == "computed"], [3 + 1])

    def test_mixed_steps(self):
        done = harness.execute([sys.executable, BENCH / "mixed_step.py", program(MODEL, "--weights", "int8").path, "--rounds", "1", "--chunks", "32",
                                "--streams", "1,2", "--depth", "16"])
        self.assertEqual([re.match(r"\| 32 \| (\d) (\| [\d.]+ ){5}\|$", line)[1] for line in done.stdout.decode().splitlines()[2:]], ["1", "2"])
