"""Limits of `PROGRAM serve`: memory, and deadlines during long steps."""

import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import signal
import socket
import time
import unittest

import checkpoint
import harness
from harness import Case, program
from test_serve import MODEL, QUESTION, SANITIZER, Server

#: Of the memory cgroup, for a model of 1 MB.
LIMIT = 256 << 20
#: At least this long, a step must take: far more than a reply.
STEP_SECONDS = 6


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


def long_context():
    """A small model whose long prompts take seconds."""

    def make():
        place = pathlib.Path(harness.folder("long")) / "long"
        checkpoint.edited(MODEL, place, lambda config: config.update(max_position_embeddings=1 << 17))
        return program(place, "--max-seq", str(1 << 17)).path

    return harness.once("long context", make)


def long_prompt():
    """The ids of a prompt that takes more than STEP_SECONDS, computed alone in one step, and the seconds."""

    def make():
        with LongSteps() as own:
            for exponent in range(12, 17):
                # No prompt is a prefix of another one.
                prompt = [exponent] + [5] * (1 << exponent)
                begin = time.monotonic()
                own.complete(prompt, max_tokens=1)
                seconds = time.monotonic() - begin
                if seconds > STEP_SECONDS:
                    return prompt, seconds
        raise AssertionError(f"a step of {len(prompt)} tokens takes only {seconds:.1f} s")

    return harness.once("long prompt", make)


class LongSteps(Server):
    """A server that computes a prompt in one step, on one thread."""

    def __init__(self, *options, chunk=1 << 17):
        super().__init__("--sequences", "1", "--threads", "1", "--prefill-chunk", str(chunk), *options, command=[long_context()])

    def begin(self, **fields):
        """A connection whose request's prompt is being computed, and when it was sent."""
        connection, prompt = self.connection(), long_prompt()[0]
        sent = time.monotonic()
        connection.request("POST", "/v1/completions", json.dumps({"prompt": prompt, "max_tokens": 1, **fields}))
        return connection, sent


class Deadlines(Case):
    """An error at a deadline does not wait for the step in progress, which takes far longer."""

    def error_of(self, connection):
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, json.loads(text.strip().split("\n\n")[-1].removeprefix("data: "))["error"]["message"]

    def test_request_timeout(self):
        usual = long_prompt()[1]
        for stream in (False, True):
            with LongSteps("--request-timeout", "1", "--sse-ping-interval", "0") as own:
                running, sent = own.begin(stream=stream)
                own.wait_for_metric("mica_completions_running", 1)
                waiting, _ = own.begin(stream=stream)
                for connection in (running, waiting):
                    self.assertEqual(self.error_of(connection), (504, "the request took longer than the server allows"))
                elapsed = time.monotonic() - sent
                harness.note(self, f"status 504 after {elapsed:.1f} s, in a step of {usual:.1f} s")
                self.assertLess(elapsed, usual / 2)
                self.assertEqual(own.metric('mica_requests_total{outcome="timeout"}'), 2)
                # Their sequence is free after the step.
                own.wait_for_metric("mica_completions_running", 0)
                self.assertEqual(own.complete("27", max_tokens=1)["usage"]["completion_tokens"], 1)

    def test_draining(self):
        usual = long_prompt()[1]
        with LongSteps("--drain-seconds", "1") as own:
            running, sent = own.begin()
            own.wait_for_metric("mica_completions_running", 1)
            own.process.send_signal(signal.SIGTERM)
            self.assertEqual(self.error_of(running), (503, "the server is shutting down"))
            replied = time.monotonic() - sent
            self.assertEqual(own.process.wait(harness.SECONDS), 0)
            ended = time.monotonic() - sent
            harness.note(self, f"status 503 after {replied:.1f} s, end after {ended:.1f} s, in a step of {usual:.1f} s")
            self.assertLess(replied, usual / 2)
            self.assertLess(ended, usual * 0.75)

    def test_a_client_that_leaves_is_gone_after_a_step(self):
        prompt, usual = long_prompt()
        with LongSteps(chunk=len(prompt) // 64) as own:
            connection, _ = own.begin()
            own.wait_for_metric("mica_completions_running", 1)
            connection.close()
            left = time.monotonic()
            own.wait_for_metric("mica_completions_running", 0)
            elapsed = time.monotonic() - left
            harness.note(self, f"gone after {elapsed:.2f} s of about {usual:.1f} s")
            self.assertLess(elapsed, usual / 3)


class Connections(Case):
    def test_hosts_that_vanish(self):
        """The end of a host that sends nothing any more is noticed by keepalive probes: its connections have their timer."""
        with Server("--sequences", "1") as own, own.connect() as client:
            client.sendall(b"GET /health HTTP/1.1\r\n\r\n")
            self.assertRegex(client.recv(4096), rb"^HTTP/1.1 200 ")
            ends = f":{own.port:04X}", f":{client.getsockname()[1]:04X}"

            def timer():
                """The number of the kernel's timer, and its seconds."""
                rows = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
                [row] = [row for row in rows if (row[1][-5:], row[2][-5:]) == ends]
                kind, ticks = row[5].split(":")
                return int(kind), int(ticks, 16) / os.sysconf("SC_CLK_TCK")

            # 2: keepalive. Before, there is one until the reply is acknowledged.
            harness.until(lambda: timer()[0] == 2, "there is no timer")
            self.assertLessEqual(timer()[1], 60)

    def test_localhost(self):
        with Server("--sequences", "1", "--host", "localhost") as own:
            self.assertEqual(own.host, "127.0.0.1")
            self.assertEqual(own.ask("GET", "/health")[0], 200)


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
                    client.sendall(b"POST /v1/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body.encode()))
                    opened.append(client)
                time.sleep(20)
            return []

        def bodies():
            """Clients that do not send the end of a body."""
            with contextlib.ExitStack() as clients:
                for _ in range(40):
                    client = clients.enter_context(own.connect())
                    with contextlib.suppress(ConnectionError):
                        client.sendall(b"POST /v1/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (16 << 20))
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
