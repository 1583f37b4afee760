"""`PROGRAM serve` in a memory cgroup, which kills it if it takes more."""

import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import socket
import time
import unittest

import harness
from harness import Case, program
from served import MODEL, QUESTION, SANITIZER, Server

#: Of the memory cgroup, for a model of 1 MB.
LIMIT = 256 << 20


@contextlib.contextmanager
def memory_cgroup(limit):
    """The folder of a new memory cgroup (version 1 or 2); skips the test if none can be made."""
    old = pathlib.Path("/sys/fs/cgroup/memory")
    place = (old if old.is_dir() else old.parent) / f"mica-test-{os.getpid()}-{time.monotonic_ns()}"
    try:
        place.mkdir()
    except OSError as error:
        raise unittest.SkipTest(f"no memory cgroup can be made: {error}") from error
    try:
        try:
            (place / ("memory.limit_in_bytes" if old.is_dir() else "memory.max")).write_text(str(limit))
        except OSError as error:
            raise unittest.SkipTest(f"the memory of a cgroup cannot be limited: {error}") from error
        yield place
    finally:
        harness.until(lambda: not (place / "cgroup.procs").read_text().split(), "processes are left in the cgroup")
        place.rmdir()


@unittest.skipIf(SANITIZER, "sanitizers take memory of their own")
class Memory(Case):
    """A server in a memory cgroup, which kills it if it takes more."""

    def clients(self, own):
        """Functions of clients; each returns the statuses of its replies."""

        def posts(path, bodies):
            return lambda: [own.ask("POST", path, body)[0] for body in bodies]

        def ids(count):
            return "[" + "5," * (count - 1) + "5]"

        sizes = [1 << 18, 1 << 20, 3 << 20, 7 << 20]
        yield posts("/v1/completions", ['{"prompt":%s}' % ids(size) for size in sizes])
        yield posts("/v1/completions", ['{"prompt":"a","max_tokens":1}' + " " * size for size in sizes])
        yield posts("/v1/completions", [json.dumps({"prompt": [[]] * size}) for size in (1 << 18, 1 << 20)])
        yield posts("/v1/chat/completions", [json.dumps({"messages": [{**QUESTION[0], "content": "27 " * (size // 2)}]}) for size in sizes])
        yield posts("/tokenize", [json.dumps({"content": "ab, " * (size // 4)}) for size in (1 << 20, 4 << 20, 12 << 20)])
        yield posts("/detokenize", ['{"tokens":%s}' % ids(size) for size in sizes])
        answers = {"prompt": "27", "max_tokens": 900, "ignore_eos": True, "temperature": 1, "logprobs": 20}
        yield posts("/v1/completions", [{**answers, "n": n} for n in (1, 8, 16, 32, 128)])

        def streams():
            """Clients that do not read."""
            with contextlib.ExitStack() as clients:
                opened = []
                for _ in range(40):
                    client = clients.enter_context(socket.socket())
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                    client.connect((own.host, own.port))
                    body = json.dumps({**answers, "n": 4, "stream": True})
                    client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body.encode()))
                    opened.append(client)
                time.sleep(20)
            return []

        def bodies():
            """Clients that do not send the end of a body."""
            with contextlib.ExitStack() as clients:
                for _ in range(40):
                    client = clients.enter_context(own.connect())
                    with contextlib.suppress(ConnectionError):
                        client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % (16 << 20))
                        client.sendall(b" " * (15 << 20))
                time.sleep(5)
            return []

        yield streams
        yield bodies

    def inside(self, group):
        """The command of the program in a cgroup."""
        return ["sh", "-c", 'echo $$ > "$0/cgroup.procs"; exec "$@"', str(group), program(MODEL).path]

    def attempt(self, client):
        with contextlib.suppress(ConnectionError, http.client.HTTPException):
            return client()
        return []

    def test_a_small_cgroup(self):
        with memory_cgroup(LIMIT) as group:
            with Server("--sequences", "4", command=self.inside(group)) as own:
                with concurrent.futures.ThreadPoolExecutor(16) as pool:
                    statuses = [status for found in pool.map(self.attempt, self.clients(own)) for status in found]
                peak = next(path for name in ("max_usage_in_bytes", "peak", "current") if (path := group / f"memory.{name}").exists())
                harness.note(self, f"{int(peak.read_text()) / 1e6:.0f} MB of {LIMIT / 1e6:.0f} MB; statuses {sorted(set(statuses))}")
                self.assertIsNone(own.process.poll(), "the server has been killed")
                self.assertLessEqual(set(statuses), {200, 400, 413, 429, 503})
                self.assertIn(413, statuses)
                own.wait_for_metric("mica_completions_running", 0)
                self.assertEqual(own.metric('mica_requests_total{outcome="failed"}'), 0)
                self.assertEqual(own.complete("27 + 15 =", max_tokens=2)["usage"]["completion_tokens"], 2)
                self.assertEqual(own.terminate()[1], 0)

    def test_shares_follow_the_cgroup(self):
        """A request that never fits is told so; in more memory, it is read."""
        body = '{"prompt":[' + "5," * (5 << 20) + "5]}"
        with memory_cgroup(LIMIT) as group:
            with Server("--sequences", "1", command=self.inside(group)) as own:
                status, answer = own.post("/v1/completions", body)
                self.assertEqual(status, 413, answer)
                self.assertRegex(answer["error"]["message"], r"takes \d+ bytes of memory, more than the server has for requests; send less")
                self.assertEqual(own.metric('mica_requests_total{outcome="invalid"}'), 1)
        with Server("--sequences", "1") as own:
            status, answer = own.post("/v1/completions", body)
            self.assertEqual((status, answer["error"]["param"]), (400, "prompt"))
