"""Deadlines of `PROGRAM serve` during long steps, and hosts that vanish."""

import json
import os
import pathlib
import signal
import time

import checkpoint
import harness
from harness import Case, program
from served import MODEL, Server

#: At least this long, a step must take: far more than a reply.
STEP_SECONDS = 6
#: Of a prompt that is computed in steps, of about STEP_SECONDS together.
STEPS = 64


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
        return answer.status, json.loads(text)["error"]["message"]

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
        prompt, _ = long_prompt()
        with LongSteps(chunk=len(prompt) // STEPS) as own:
            connection, _ = own.begin()
            own.wait_for_metric("mica_completions_running", 1)
            begin = own.processor_seconds()
            connection.close()
            own.wait_for_metric("mica_completions_running", 0)
            used = own.processor_seconds() - begin
            begin = own.processor_seconds()
            own.complete(prompt[1:], max_tokens=1)
            step = (own.processor_seconds() - begin) / STEPS
            harness.note(self, f"gone after {used:.3f} s of the processor, in steps of {step:.3f} s")
            # The rest of the step in progress, and part of another one on a busy machine. The first steps are shorter than the average.
            self.assertLess(used, 2 * step)


class Connections(Case):
    def test_hosts_that_vanish(self):
        """The end of a host that sends nothing any more is noticed by keepalive probes: its connections have their timer."""
        with Server("--sequences", "1") as own, own.connect() as client:
            client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
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
