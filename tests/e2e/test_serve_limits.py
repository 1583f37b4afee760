"""`PROGRAM serve`: limits of the queue, of time and of memory."""

import contextlib
import http.client
import json
import pathlib
import random
import re
import resource
import signal
import socket
import time
import unittest

import harness
from served import ENDLESS, ONE_ARENA, QUESTION, SANITIZER, ServeCase, Server, server, settled_size


class Limits(ServeCase):
    def test_full_queue(self):
        with Server("--sequences", "1", "--queue", "127") as own, own.connect() as client:
            request = json.dumps(ENDLESS).encode()
            client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(request) + request)
            own.wait_for_metric("mica_completions_running", 1)
            # The queue is full if none of the 128 completions has ended; otherwise it has fewer places than this request needs.
            status, headers, text = own.ask("POST", "/v1/completions", ENDLESS)
            self.assertEqual((status, json.loads(text)["error"]["type"]), (429, "rate_limit_error"))
            self.assertIn(int(headers["Retry-After"]), range(1, 61))
            # An estimate from the rate at which others have ended: more than a second if there are many.
            harness.until(lambda: own.metric("mica_completions_waiting") < 127, "no completion ends")

            def estimated():
                status, headers, _ = own.ask("POST", "/v1/completions", ENDLESS)
                self.assertEqual(status, 429)
                self.assertIn(int(headers["Retry-After"]), range(1, 61))
                return int(headers["Retry-After"]) > 1

            harness.until(estimated, "the estimate is always a second")
            client.close()
            own.wait_for_metric("mica_completions_running", 0)
            self.assertEqual(own.post("/v1/completions", {"prompt": "a", "max_tokens": 1})[0], 200)

    def test_slow_chat_templates(self):
        """A chat template, which may take seconds for a small body, does not use the thread that serves all connections."""
        path = pathlib.Path(harness.folder("slow-template")) / "template.jinja"
        path.write_text("{% if messages | length > 3 %}{% for a in range(1000) %}{% for b in range(500) %}{% endfor %}{% endfor %}{% endif %}"
                        "{% for m in messages %}{{ m.role ~ ':' ~ m.content ~ '<|im_end|>' }}{% endfor %}"
                        "{% if add_generation_prompt %}{{ 'assistant:' }}{% endif %}")
        with Server("--sequences", "1", "--chat-template", path) as own:
            # That of the process's first thread, in nanoseconds.
            serving = lambda: int(pathlib.Path(f"/proc/{own.process.pid}/task/{own.process.pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e9
            before = serving(), own.processor_seconds()
            for _ in range(4):
                own.chat([{"role": "user", "content": "27"}, {"role": "assistant", "content": "a"}] * 2 + QUESTION, max_tokens=1)
            used, total = serving() - before[0], own.processor_seconds() - before[1]
            harness.note(self, f"{used:.4f} s on the server's thread of {total:.2f} s")
            self.assertGreater(total, 0.1)
            self.assertLess(used, total / 10)

    def test_requests_that_never_fit_into_the_queue(self):
        with Server("--sequences", "1", "--queue", "1") as own:
            for param, fields in (("n", {"prompt": "a", "n": 3}), ("prompt", {"prompt": ["a"] * 3}), ("n", {"prompt": ["a"] * 2, "n": 2})):
                status, answer = own.post("/v1/completions", {"max_tokens": 1, **fields})
                self.assertEqual((status, answer["error"]["param"]), (400, param), answer)
                self.assertIn("at most 2 at once", answer["error"]["message"])
            self.assertEqual(len(own.complete(["a"] * 2, max_tokens=1)["choices"]), 2)

    @unittest.skipIf(SANITIZER, "sanitizers take memory of their own")
    def test_large_answers(self):
        """An answer that is not streamed takes at most three times its size in memory."""
        with Server("--sequences", "8") as own:
            status = pathlib.Path(f"/proc/{own.process.pid}/status")
            peak = lambda: int(re.search(r"^VmHWM:\s+(\d+) kB", status.read_text(encoding="ascii"), re.M)[1]) * 1024
            own.complete("27", max_tokens=20, n=8, ignore_eos=True)
            before = peak()
            asked = {"prompt": "27", "n": 64, "max_tokens": 900, "ignore_eos": True, "temperature": 1, "logprobs": 20}
            status_code, _, text = own.ask("POST", "/v1/completions", asked)
            self.assertEqual(status_code, 200, text[:300])
            more, answer = peak() - before, json.loads(text)
            self.assertEqual([choice["index"] for choice in answer["choices"]], list(range(64)))
            self.assertEqual({len(choice["logprobs"][name]) for choice in answer["choices"]
                              for name in ("tokens", "token_logprobs", "top_logprobs", "text_offset")}, {900})
            self.assertEqual(answer["usage"]["completion_tokens"], 64 * 900)
            self.assertGreater(len(text), 20e6)
            harness.note(self, f"an answer of {len(text) / 1e6:.1f} MB takes {more / 1e6:.1f} MB")
            self.assertLess(more, 3 * len(text) + (16 << 20))

    @unittest.skipIf(SANITIZER, "sanitizers take memory of their own")
    def test_out_of_memory(self):
        """A request for which there is not enough memory ends with an error; the server keeps running."""
        with Server("--sequences", "8", env=ONE_ARENA) as own:
            own.complete("27", max_tokens=20, n=8, ignore_eos=True)
            own.chat(max_tokens=3)
            size = settled_size(own.process.pid)
            resource.prlimit(own.process.pid, resource.RLIMIT_AS, (size + (12 << 20), resource.RLIM_INFINITY))
            for number in range(2):
                asked = {"prompt": "27", "n": 32, "max_tokens": 900, "ignore_eos": True, "temperature": 1, "logprobs": 20}
                status, answer = own.post("/v1/completions", asked)
                self.assertEqual((status, answer.get("error")),
                                 (500, {"message": "the server is out of memory", "type": "server_error", "param": None, "code": None}), number)
                self.assertEqual(own.ask("GET", "/health")[0], 200)
                self.assertEqual(own.complete("27 + 15 =", max_tokens=2)["choices"], server().complete("27 + 15 =", max_tokens=2)["choices"])
            own.wait_for_metric("mica_completions_running", 0)
            self.assertEqual(own.metric('mica_requests_total{outcome="failed"}'), 2)
            self.assertEqual(own.terminate()[1], 0)

    @unittest.skipIf(SANITIZER, "sanitizers take memory of their own")
    def test_out_of_memory_while_a_body_is_read(self):
        with Server("--sequences", "1", env=ONE_ARENA) as own:
            # Afterwards, malloc may keep the memory of the first large request.
            size = settled_size(own.process.pid)
            # An array of ids takes eight times as much memory as its text.
            large = '{"prompt":[' + "5," * 3000000 + "5]}"
            self.assertEqual(own.post("/v1/completions", large)[0], 400)
            resource.prlimit(own.process.pid, resource.RLIMIT_AS, (size + (32 << 20), resource.RLIM_INFINITY))
            status, answer = own.post("/v1/completions", large)
            self.assertEqual((status, answer["error"]["message"], answer["error"]["type"]), (500, "the server is out of memory", "server_error"))
            self.assertEqual(own.metric('mica_requests_total{outcome="failed"}'), 1)
            self.assertEqual(own.metric('mica_rejected_requests_total{status="500"}'), 0)
            self.assertEqual(own.complete("27 + 15 =", max_tokens=2)["choices"], server().complete("27 + 15 =", max_tokens=2)["choices"])

    @unittest.skipIf(SANITIZER, "sanitizers take memory of their own")
    def test_out_of_memory_while_a_body_arrives(self):
        """The client gets a reply, and the server keeps running."""
        with Server("--sequences", "1", env=ONE_ARENA) as own:
            small = {"prompt": "27 + 15 =", "max_tokens": 2, "temperature": 0}
            expected = own.post("/v1/completions", small)[1]["choices"]
            limited = settled_size(own.process.pid)
            resource.prlimit(own.process.pid, resource.RLIMIT_AS, (limited + (12 << 20), resource.RLIM_INFINITY))
            body = json.dumps(small).encode() + b" " * (15 << 20)
            chunked = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(body)
            for number, header in enumerate((b"Content-Length: %d\r\n\r\n" % len(body), chunked), 1):
                with own.connect() as connection, connection.makefile("rb") as file:
                    connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n" + header)
                    with contextlib.suppress(ConnectionError):
                        connection.sendall(body)
                    line = file.readline()
                    if int(line.split()[1]) != 503:
                        self.fail((header, line, file.read()))
                    headers = http.client.parse_headers(file)
                    error = json.loads(file.read(int(headers["Content-Length"])))["error"]
                    self.assertEqual((headers["Retry-After"], error["type"], set(error)), ("1", "server_error", {"message", "type", "param", "code"}))
                    self.assertIn("too many large requests at once", error["message"])
                self.assertEqual(own.metric('mica_rejected_requests_total{status="503"}'), number)
                self.assertEqual(own.post("/v1/completions", small)[1]["choices"], expected)
            self.assertEqual(own.terminate()[1], 0)

    def test_answers_that_never_fit_into_memory(self):
        chat = {"messages": QUESTION, "n": 128, "ignore_eos": True, "temperature": 1}
        large = {**chat, "logprobs": True, "top_logprobs": 20}
        with Server("--sequences", "1") as own:
            status, answer = own.post("/v1/chat/completions", large)
            self.assertEqual((status, answer["error"]["param"]), (400, "max_tokens"), answer)
            self.assertRegex(answer["error"]["message"], r"the answer may have \d+ bytes, but the server buffers at most \d+ .*lower 'max_tokens'")
            limit = int(re.search(r"at most (\d+) ", answer["error"]["message"])[1])
            each = int(re.search(r"may have (\d+) ", answer["error"]["message"])[1]) / 1024
            # The size of two requests together is limited as well; a stream, or one without log probabilities, is small.
            fitting = {**large, "max_tokens": max(1, int(limit * 0.6 / each))}
            first = own.connection()
            first.request("POST", "/v1/chat/completions", json.dumps(fitting))
            own.wait_for_metric("mica_completions_running", 1)
            status, headers, text = own.ask("POST", "/v1/chat/completions", fitting)
            self.assertEqual((status, int(headers["Retry-After"]) in range(1, 61)), (429, True), text)
            self.assertIn("too many large answers", json.loads(text)["error"]["message"])
            for accepted in ({**large, "stream": True}, chat):
                second = own.connection()
                second.request("POST", "/v1/chat/completions", json.dumps(accepted))
                own.wait_for_metric("mica_completions_waiting", 255)
                second.close()
                own.wait_for_metric("mica_completions_waiting", 127)
            first.close()
            own.wait_for_metric("mica_completions_running", 0)

            def answered():
                status, _ = own.post("/v1/chat/completions", {**fitting, "n": 1})
                return status == 200

            harness.until(answered, "nothing is released")

    def test_many_large_bodies(self):
        """The size of the large bodies of all clients together is limited, as far as they have arrived."""
        size = 16 << 20
        head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % size
        large = json.dumps({"prompt": "a", "max_tokens": 1}) + " " * 100000
        with Server("--sequences", "1", "--receive-timeout", "600") as own, contextlib.ExitStack() as clients:
            # Clients that send nothing of what they announce take nothing from others.
            opened = [clients.enter_context(own.connect()) for _ in range(64)]
            for number, client in enumerate(opened):
                client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{" if number % 2 else head + b"{")
            self.assertEqual(own.post("/v1/completions", large)[0], 200)
            for client in opened[:32:2]:
                client.sendall(b" " * (size - 2))

            def unread():
                """The bytes in the queues of the sockets at both ends."""
                rows = [row.split() for row in pathlib.Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
                return sum(int(count, 16) for row in rows if f":{own.port:04X}" in (row[1][-5:], row[2][-5:]) and row[3] == "01"
                           for count in row[4].split(":"))

            # Otherwise one more might be accepted instead of the last part of another.
            harness.until(lambda: unread() == 0, "the bodies do not arrive")

            def refused():
                with own.connect() as one_more, contextlib.suppress(ConnectionError):
                    one_more.sendall(head + b" " * (1 << 20))
                    one_more.shutdown(socket.SHUT_WR)
                    return one_more.recv(65536)
                return b""

            answer = harness.until(refused, "one more is accepted")
            self.assertRegex(answer, rb"(?s)^HTTP/1.1 503 .*Retry-After: 1\r\n.*too many large requests at once")
            self.assertEqual(own.post("/v1/completions", {"prompt": "a", "max_tokens": 1})[0], 200, "small ones are answered")
            for client in opened:
                client.close()
            harness.until(lambda: own.post("/v1/completions", large)[0] == 200, "nothing is released")

    @unittest.skipIf(SANITIZER, "sanitizers take memory of their own")
    def test_memory_of_waiting_completions(self):
        """The completions of a request share its prompt, its settings and its stop strings."""
        with Server("--sequences", "1", "--queue", "1200") as own:
            own.complete([5] * 1000, max_tokens=2, ignore_eos=True)
            status = pathlib.Path(f"/proc/{own.process.pid}/status")
            resident = lambda: int(re.search(r"^VmRSS:\s+(\d+) kB", status.read_text(encoding="ascii"), re.M)[1]) * 1024
            before = resident()
            fields = {"prompt": [number % 512 for number in range(1000)], "n": 128, "stop": [f"{number}" * 500 for number in range(10, 26)],
                      "logit_bias": {str(number): -1 for number in range(512)}, "max_tokens": 20, "ignore_eos": True, "stream": True}
            clients = [own.connection() for _ in range(9)]
            for client in clients:
                client.request("POST", "/v1/completions", json.dumps(fields))
            harness.until(lambda: own.metric("mica_completions_waiting") + own.metric("mica_completions_running") > 1024, "the requests do not wait")
            more = resident() - before
            harness.note(self, f"{9 * 128} completions with 1000 tokens, 16 stop strings of 1000 bytes and 512 biases take {more / 1e6:.1f} MB")
            self.assertLess(more, 16 << 20)
            for client in clients:
                client.close()
            own.wait_for_metric("mica_completions_running", 0)

    def test_request_timeout(self):
        with Server("--sequences", "1", "--request-timeout", "1") as own:
            status, answer = own.post("/v1/completions", ENDLESS)
            self.assertEqual((status, answer["error"]["type"]), (504, "server_error"))
            own.wait_for_metric("mica_completions_running", 0)
        # Parsing and waiting for other bodies are part of the time. The server is stopped until the time is over, on most attempts while
        # it parses a body whose prompt does not fit.
        with Server("--sequences", "1", "--request-timeout", "2", "--receive-timeout", "600") as own:
            large = json.dumps({"prompt": "a b " * 3900000}).encode()

            def is_late():
                with contextlib.ExitStack() as clients:
                    opened = [clients.enter_context(own.connect()) for _ in range(2)]
                    for client in opened:
                        client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(large) + large[:-1])
                    for client in opened:
                        client.sendall(large[-1:])
                    time.sleep(random.uniform(0, 0.04))
                    own.process.send_signal(signal.SIGSTOP)
                    time.sleep(2.1)
                    own.process.send_signal(signal.SIGCONT)
                    statuses = {int(client.makefile("rb").readline().split()[1]) for client in opened}
                    self.assertLessEqual(statuses, {400, 504})
                    return 504 in statuses

            harness.until(is_late, "the time of parsing is not limited")
