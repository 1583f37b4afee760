#!/usr/bin/python3
"""rpc_peer.py with fakes of programs, servers and llama-bench."""

import contextlib
import io
import json
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/bench"))
import engines  # noqa: E402
import ranks  # noqa: E402
import rpc_peer  # noqa: E402

#: Writes a program of two ranks with 30 tokens/s.
MICA = r"""
import sys
words = sys.argv
assert words[1] == "compile" and words[words.index("--shard") + 1] == "tensor=2", words
with open(words[words.index("-o") + 1], "w") as file:
    file.write(PROGRAM)
"""
PROGRAM = r"""#!/usr/bin/python3
import json, sys
words = sys.argv
if words[1] == "info":
    print(json.dumps({"version": "9.9", "max_seq": 1024, "weights": "q8_0", "manifest": {"weight_bytes": 100}}))
else:
    assert words[words.index("--threads") + 1] == "1", words
    print(json.dumps({"results": [{"test": "x", "tokens_per_s": 30.0, "runs": [30.0], "gb_per_s": 1.0}]}))
"""
SERVER = r"""
import socket, sys
words = sys.argv
assert words[words.index("-t") + 1] == "1", words
server = socket.create_server((words[words.index("-H") + 1], int(words[words.index("-p") + 1])))
while True:
    server.accept()[0].close()
"""
#: Connects to both servers; 16 tokens/s, a first run that does not count.
BENCH = r"""
import json, socket, sys
words = sys.argv
if "--help" in words:
    print("  -rpc, --rpc <rpc_servers>   register\n  --no-warmup   skip")
else:
    addresses = words[words.index("--rpc") + 1].split(",")
    assert len(addresses) == 2 and words[words.index("-ngl") + 1] == "99", words
    for address in addresses:
        host, port = address.split(":")
        socket.create_connection((host, int(port))).close()
    print(json.dumps([{"build_commit": "abc", "build_number": 7, "backends": BACKENDS, "samples_ts": [1.0, 16.0, 16.0]}]))
"""


class Peer(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.program("mica", MICA.replace("PROGRAM", repr(PROGRAM)))
        self.program("ggml-rpc-server", SERVER)
        self.program("llama-bench", BENCH.replace("BACKENDS", '"RPC"'))

    def program(self, name, text):
        path = self.folder / name
        path.write_text("#!/usr/bin/python3\n" + text, encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def run_script(self, *options):
        """(JSON, Markdown) of a run; ranks are started by /usr/bin/env, and what was compiled is executable."""
        def executable(path, make, once=rpc_peer.shapes.once):
            once(path, make).chmod(0o755)
            return path

        with (mock.patch.object(ranks, "starter", autospec=True, return_value=["/usr/bin/env"]), mock.patch.object(rpc_peer.shapes, "once", executable),
              contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO())):
            rpc_peer.main([str(self.folder / "out"), str(self.folder / "model.gguf"), "--peer", str(self.folder), "--mica",
                           str(self.folder / "mica"), "--rounds", "2", "--json", str(self.folder / "r.json"), *options])
        return json.loads((self.folder / "r.json").read_text(encoding="utf-8")), out.getvalue()

    def test_ratios(self):
        result, text = self.run_script()
        self.assertEqual([row["test"] for row in result["rows"]], ["decode", "prefill"])
        for row in result["rows"]:
            self.assertEqual(row["ratio"]["values"], [1.875, 1.875], "the first round is dropped")
        self.assertIn("| model.gguf | prefill 512 | 30.0 (30.0 - 30.0) | 16.0 (16.0 - 16.0) | 1.88x (1.88 - 1.88) | >= 1.5: reached |", text)
        self.assertIn("- llama.cpp: abc (7)", text)
        self.assertIn("- Mica: mica 9.9, weights q8_0", text)

    def test_servers_end(self):
        self.run_script()
        found = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        self.assertNotIn(str(self.folder / "ggml-rpc-server"), found)

    def test_a_bench_that_does_not_use_the_servers(self):
        self.program("llama-bench", BENCH.replace("BACKENDS", '"CPU"'))
        result, text = self.run_script()
        self.assertIsNone(result["rows"][0]["ratio"])
        self.assertIn("| model.gguf | decode | 30.0 (30.0 - 30.0) | failed | - | >= 1.5: - |", text)
        self.assertIn("- llama.cpp: llama-bench used CPU, not the RPC servers", text)

    def test_a_peer_without_rpc(self):
        self.program("llama-bench", "print('  --no-warmup   skip')")
        with self.assertRaisesRegex(SystemExit, "has no --rpc: build llama.cpp with -DGGML_RPC=ON"):
            self.run_script()
        (self.folder / "ggml-rpc-server").unlink()
        with self.assertRaisesRegex(SystemExit, "has no ggml-rpc-server; build the target ggml-rpc-server"):
            self.run_script()

    def test_a_server_that_does_not_listen(self):
        self.program("ggml-rpc-server", "raise SystemExit(1)")
        with self.assertRaisesRegex(SystemExit, "does not listen at its port"):
            self.run_script()

    def test_usage(self):
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()) as err:
            rpc_peer.parse(["out", "x.gguf", "--peer", "bin", "--rounds", "0"])
        self.assertIn("--rounds must be at least 1", err.getvalue())

    def test_failed_is_what_engines_raise(self):
        with self.assertRaises(engines.Failed), rpc_peer.servers(self.folder / "mica", 1):
            self.fail("a program that is not a server")


if __name__ == "__main__":
    unittest.main()
