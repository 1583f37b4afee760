"""`PROGRAM serve` under tests/bench/serve/clients.py."""

import json
import os
import sys

import harness
from harness import Case
from test_serve import Server

CLIENTS = harness.ROOT / "tests/bench/serve/clients.py"
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
