"""`PROGRAM serve`: start, signals, logs, metrics, and a program file that changes."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

import harness
from harness import for_each, program
from served import ENDLESS, MODEL, PROGRAMS, ServeCase, Server, ask, error_of, server


@for_each(PROGRAMS, "sigterm_while_streaming")
@for_each(PROGRAMS, "sigterm_during_a_request")
class Process(ServeCase):
    def test_prompts_are_logged_if_asked(self):
        with Server("--sequences", "1", "--log-prompts") as own:
            chat = own.chat([{"role": "user", "content": "Ada \u009b2J\x7f\n\"fox\""}], max_tokens=1)
            status, _ = own.post("/v1/completions", {"prompt": "a refused secret", "nonsense": 1})
            self.assertEqual(status, 400)
            several = own.complete(["count", [5, 6]], n=2, max_tokens=1)
            events = own.events("/v1/completions", {"prompt": "27", "max_tokens": 1, "stream": True})
            text, status = own.terminate()
            *lines, last = text.splitlines()
            self.assertEqual((status, "shutting down" in last, "secret" in text), (0, True, False))
            self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f\x7f-\x9f]")
            logged = [json.loads(line) for line in lines]
            self.assertEqual([entry["id"] for entry in logged], [chat["id"], several["id"], events[0]["id"]])
            self.assertEqual([entry["endpoint"] for entry in logged], ["/v1/chat/completions", "/v1/completions", "/v1/completions"])
            self.assertEqual([entry["prompt_tokens"] for entry in logged[:2]], [answer["usage"]["prompt_tokens"] for answer in (chat, several)])
            self.assertEqual(logged[0]["prompts"], ["Ada \u009b2J\x7f\n\"fox\""])
            self.assertEqual(logged[1]["prompts"][0].strip(), "count")
            self.assertEqual((len(logged[1]["prompts"]), len(logged[2]["prompts"])), (2, 1))

    def test_waiting_streams_get_comments(self):
        """A stream that waits begins with comments, so that its connection does not look dead."""
        with Server("--sequences", "1", "--sse-ping-interval", "1") as own:
            asked = {"prompt": "27 + 15 =", "max_tokens": 20, "temperature": 0}
            connection = own.connection()
            with own.busy():
                connection.request("POST", "/v1/completions", json.dumps({**asked, "stream": True}))
                answer = connection.getresponse()
                self.assertEqual((answer.status, answer.getheader("Content-Type")), (200, "text/event-stream"))
                for _ in range(2):
                    self.assertEqual((answer.readline(), answer.readline()), (b": waiting\n", b"\n"))
                self.assertGreater(own.metric("mica_completions_waiting"), 0)
            *parts, last, end = answer.read().decode().split("\n\n")
            self.assertEqual((last, end), ("data: [DONE]", ""))
            events = [json.loads(part.removeprefix("data: ")) for part in parts if part != ": waiting"]
            self.assertEqual("".join(event["choices"][0]["text"] for event in events), own.complete(**asked)["choices"][0]["text"])
            connection.close()
        # An error after a comment is an event. Requests that are not streamed get no comments.
        with Server("--sequences", "1", "--sse-ping-interval", "1", "--drain-seconds", "0") as own, own.busy():
            whole, stream = own.connection(), own.connection()
            whole.request("POST", "/v1/completions", json.dumps(asked))
            stream.request("POST", "/v1/completions", json.dumps({**asked, "stream": True}))
            answer = stream.getresponse()
            self.assertEqual(answer.readline(), b": waiting\n")
            own.process.send_signal(signal.SIGTERM)
            self.assertEqual(error_of(answer.read().decode())["message"], "the server is shutting down")
            answer = whole.getresponse()
            self.assertEqual((answer.status, json.loads(answer.read())["error"]["message"]), (503, "the server is shutting down"))
            for connection in (whole, stream):
                connection.close()

    def test_metrics(self):
        with Server("--sequences", "2") as own:
            answers = [own.complete("27 + 15 =", max_tokens=5, ignore_eos=True), own.chat(max_tokens=3),
                       own.complete("27 + 15 =", max_tokens=1, n=2)]
            self.assertEqual(own.post("/v1/completions", {"prompt": "a", "nonsense": 1})[0], 400)
            status, headers, text = own.ask("GET", "/metrics")
            self.assertEqual((status, headers["Content-Type"]), (200, "text/plain; version=0.0.4"))
            *lines, end = text.split("\n")
            self.assertEqual(end, "")
            described, values = {"HELP": set(), "TYPE": set()}, {}
            for line in lines:
                if line.startswith("# "):
                    _, kind, name, _ = line.split(" ", 3)
                    described[kind].add(name)
                else:
                    name, value = line.split(" ")
                    values[name] = float(value)
                    self.assertIn(re.sub(r"(_bucket|_sum|_count)?(\{.*\})?$", "", name), described["TYPE"], line)
            self.assertEqual(described["HELP"], described["TYPE"])
            used = lambda field: sum(answer["usage"][field] for answer in answers)
            cached = sum(answer["usage"]["prompt_tokens_details"]["cached_tokens"] for answer in answers)
            # The prompt of two completions is computed or reused twice, but counted once in the usage.
            prompts = used("prompt_tokens") + answers[2]["usage"]["prompt_tokens"]
            self.assertGreaterEqual(values["mica_cached_tokens_total"], cached)
            self.assertLessEqual(values["mica_cached_tokens_total"], cached + answers[2]["usage"]["prompt_tokens"])
            wanted = {'mica_requests_total{outcome="ok"}': 3, 'mica_requests_total{outcome="invalid"}': 1, "mica_prompt_tokens_total": prompts,
                      "mica_generated_tokens_total": used("completion_tokens"),
                      "mica_completions_running": 0, "mica_completions_waiting": 0}
            self.assertEqual({name: values[name] for name in wanted}, wanted)
            self.assertGreater(values["mica_cache_used_bytes"], 0)
            self.assertLess(values["mica_cache_used_bytes"], values["mica_cache_capacity_bytes"] / 4)
            # Once per request, or for each token of a completion but the first.
            for name, count in (("mica_queue_time_seconds", 3), ("mica_time_to_first_token_seconds", 3), ("mica_request_duration_seconds", 3),
                                ("mica_inter_token_latency_seconds", used("completion_tokens") - 4)):
                # A request may wait for a long time.
                self.assertIn(name + '_bucket{le="2560.0"}', values)
                buckets = [value for key, value in values.items() if key.startswith(name + "_bucket")]
                self.assertEqual((buckets, buckets[-1], values[name + "_count"]), (sorted(buckets), count, count))
                self.assertGreater(values[name + "_sum"], 0)
            for path, status in (("/nothing", 404), ("/v1/completions", 405)):
                self.assertEqual(own.ask("GET", path)[0], status)
                self.assertEqual(own.metric(f'mica_rejected_requests_total{{status="{status}"}}'), 1)
            with own.connect() as connection:
                connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n")
                self.assertRegex(connection.recv(4096), rb"^HTTP/1.1 413 ")
            self.assertEqual(own.metric('mica_rejected_requests_total{status="413"}'), 1)
        with Server("--sequences", "1", "--receive-timeout", "1") as own:
            with own.connect() as connection:
                connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
                self.assertRegex(connection.recv(4096), rb'(?s)^HTTP/1.1 408 .*"the body has not arrived within 1 s; .*--receive-timeout"')
            self.assertEqual(own.metric('mica_rejected_requests_total{status="408"}'), 1)

    def test_latencies_begin_with_the_arrival(self):
        """Reading a large body, and waiting for those of others, is part of the time to the first token."""
        with Server("--sequences", "1", "--receive-timeout", "600") as own, contextlib.ExitStack() as clients:
            slow = json.dumps({"content": "a b " * 3900000}).encode()
            # Neither the oldest nor the smallest: the others are parsed before it.
            quick = json.dumps({"prompt": "a", "max_tokens": 1}).encode().ljust(len(slow) + 1000)
            requests, opened = [(b"/tokenize", slow)] * 3 + [(b"/v1/completions", quick)], []
            for path, body in requests:
                opened.append(clients.enter_context(own.connect()))
                opened[-1].sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % (path, len(body)) + body[:-1])
            for client, (_, body) in zip(opened, requests):
                client.sendall(body[-1:])
            sent = time.monotonic()
            self.assertRegex(opened[-1].recv(4096), rb"^HTTP/1.1 200 ")
            elapsed = time.monotonic() - sent
            for name in ("queue_time", "time_to_first_token", "request_duration"):
                self.assertGreater(own.metric(f"mica_{name}_seconds_sum"), elapsed / 2, name)

    def test_served_by_mica_run(self):
        with Server("--sequences", "1", command=[harness.mica, "run", MODEL], env={"XDG_CACHE_HOME": harness.folder("cache")}) as own:
            self.assertEqual(own.chat(max_tokens=20)["choices"], server().chat(max_tokens=20)["choices"])

    def sigterm_while_streaming(self, name):
        with Server("--sequences", "1", "--drain-seconds", "600", command=PROGRAMS[name]()) as own:
            connection = own.connection()
            connection.request("POST", "/v1/completions",
                               json.dumps({"prompt": "27", "max_tokens": 600, "ignore_eos": True, "stream": True}))
            answer = connection.getresponse()
            answer.readline()
            own.process.send_signal(signal.SIGTERM)
            text = answer.read().decode()
            self.assertTrue(text.endswith("data: [DONE]\n\n"), text[-200:])
            self.assertEqual(own.process.wait(harness.SECONDS), 0)
            self.assertIn(b"shutting down", own.process.stderr.read())

    def test_draining(self):
        """Until the requests in progress have ended, open connections learn that the server drains. Prompts are not logged."""
        with Server("--sequences", "1", "--drain-seconds", "600") as own:
            busy, *others = (own.connection() for _ in range(3))
            for other in others:
                other.request("GET", "/health")
                self.assertEqual(other.getresponse().read(), b'{"status":"ready"}')
            busy.request("POST", "/v1/completions", json.dumps({**ENDLESS, "prompt": "secret"}))
            own.wait_for_metric("mica_completions_running", 1)
            own.process.send_signal(signal.SIGTERM)
            self.assertIn(b"shutting down", own.process.stderr.readline())
            status, _, text = ask(others[0], "GET", "/health")
            self.assertEqual((status, json.loads(text)), (503, {"status": "draining"}))
            status, headers, text = ask(others[1], "POST", "/v1/completions", {"prompt": "a"})
            self.assertEqual((status, headers["Retry-After"], json.loads(text)["error"]["message"]), (503, "5", "the server is shutting down"))
            with self.assertRaises(ConnectionRefusedError):
                own.connect()
            busy.close()
            self.assertEqual((own.process.stderr.read(), own.process.wait(harness.SECONDS)), (b"", 0))

    def sigterm_during_a_request(self, name):
        for stream in (False, True):
            with Server("--sequences", "1", "--drain-seconds", "0", command=PROGRAMS[name]()) as own:
                connection = own.connection()
                connection.request("POST", "/v1/completions", json.dumps({**ENDLESS, "stream": stream}))
                own.wait_for_metric("mica_completions_running", 1)
                own.process.send_signal(signal.SIGTERM)
                answer = connection.getresponse()
                text = answer.read().decode()
                error = error_of(text) if stream else json.loads(text)["error"]
                self.assertEqual((error["type"], error["message"]), ("server_error", "the server is shutting down"), text[-300:])
                self.assertEqual(answer.status, 200 if stream and text.startswith("data: {\"id") else 503)
                self.assertEqual(own.process.wait(harness.SECONDS), 0)

    def test_second_signal(self):
        with Server("--sequences", "1", "--drain-seconds", "600") as own:
            connection = own.connection()
            connection.request("POST", "/v1/completions", json.dumps(ENDLESS))
            own.wait_for_metric("mica_completions_running", 1)
            own.process.send_signal(signal.SIGTERM)
            self.assertIn(b"shutting down", own.process.stderr.readline())
            own.process.send_signal(signal.SIGINT)
            self.assertEqual((own.process.stderr.read(), own.process.wait(harness.SECONDS)), (b"", 0))
            connection.close()

    def test_health_while_loading(self):
        """The server listens before the model is loaded; here loading waits for the chat template."""
        folder = pathlib.Path(harness.folder("loading"))
        template = (MODEL / "chat_template.jinja").read_text()
        for finishes in (True, False):
            pipe, path = folder / f"template{finishes}", folder / f"socket{finishes}"
            os.mkfifo(pipe)
            process = subprocess.Popen([program(MODEL).path, "serve", "--unix-socket", path, "--chat-template", pipe],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            try:
                def connected():
                    made = socket.socket(socket.AF_UNIX)
                    if made.connect_ex(str(path)) == 0:
                        return made
                    made.close()
                    return None

                def get(where):
                    connection = http.client.HTTPConnection("localhost", timeout=harness.SECONDS)
                    connection.sock = harness.until(connected, "the server does not listen")
                    return ask(connection, "GET", where)

                status, _, text = get("/health")
                self.assertEqual((status, json.loads(text)), (503, {"status": "loading"}))
                status, headers, text = get("/v1/models")
                self.assertEqual((status, headers["Retry-After"], json.loads(text)["error"]["message"]),
                                 (503, "1", "the model is being loaded; try again later"))
                if not finishes:
                    # It does not wait for the template.
                    process.send_signal(signal.SIGTERM)
                    self.assertEqual((process.stderr.read(), process.wait(harness.SECONDS)), (b"", 0))
                    self.assertFalse(path.exists(), "the socket is left")
                    continue
                pipe.write_text(template)
                self.assertIn(b"serving", process.stderr.readline())
                self.assertEqual(get("/health")[0], 200)
            finally:
                process.kill()
                process.wait()
                process.stderr.close()

    def test_sigterm_while_bodies_are_read(self):
        with Server("--sequences", "1", "--drain-seconds", "0") as own:
            large = json.dumps({"prompt": "a b " * 3900000})
            clients = [own.connection() for _ in range(8)]
            for client in clients:
                client.request("POST", "/v1/completions", large)
            own.process.send_signal(signal.SIGTERM)
            for client in clients:
                answer = client.getresponse()
                message = json.loads(answer.read())["error"]["message"]
                self.assertIn(answer.status, (400, 503), message)
                self.assertRegex(message, "the server is shutting down" if answer.status == 503 else "more than the context")
                client.close()
            self.assertEqual(own.process.wait(harness.SECONDS), 0)

    def test_sigterm_while_requests_arrive(self):
        """Whatever has arrived of a request, it gets a reply that says that it can be repeated elsewhere, also of an idle server."""
        body = json.dumps({"prompt": "27", "max_tokens": 1}).encode()
        whole = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body

        def reply(client):
            received = b""
            while piece := client.recv(4096):
                received += piece
            return received.decode()

        def begin(own, clients, *sent):
            opened = []
            for size in sent:
                opened.append(clients.enter_context(own.connect()))
                opened[-1].sendall(whole[:size])
            # The server has read what was sent before this.
            for _ in range(3):
                self.assertEqual(own.ask("GET", "/health")[0], 200)
            return opened

        unavailable = r"(?s)^HTTP/1.1 503 .*the server is shutting down"
        with Server("--sequences", "1", "--drain-seconds", "600") as own, contextlib.ExitStack() as clients:
            late, stalled, idle = begin(own, clients, 20, len(whole) - 1, 0)
            own.process.send_signal(signal.SIGTERM)
            self.assertIn(b"shutting down", own.process.stderr.readline())
            # A part of a body: at once. A part of a header: when it is complete.
            self.assertRegex(reply(stalled), unavailable)
            late.sendall(whole[20:])
            self.assertRegex(reply(late), unavailable)
            late.close()
            stalled.close()
            self.assertEqual((reply(idle), own.process.wait(harness.SECONDS)), ("", 0))
        # At the deadline, without the rest.
        with Server("--sequences", "1", "--drain-seconds", "0") as own, contextlib.ExitStack() as clients:
            opened = begin(own, clients, 20, len(whole) - len(body), len(whole) - 1)
            own.process.send_signal(signal.SIGTERM)
            for client in opened:
                self.assertRegex(reply(client), unavailable)
                client.close()
            self.assertEqual(own.process.wait(harness.SECONDS), 0)

    def test_a_program_file_that_shrinks(self):
        """SIGBUS does not end the server: requests get an error, and /health says that it has failed."""
        place = pathlib.Path(harness.folder("shrinks"))
        for name in ("files", "others", "mounted"):
            (place / name).mkdir()
        path = shutil.copy(program(MODEL).path, place / "files/model")
        # Linux protects the file of a running program, but not below an overlay.
        apart = ["unshare", "--user", "--map-root-user", "--mount", "--propagation", "private", "sh", "-c",
                 f'mount -t overlay overlay -o lowerdir={place}/files:{place}/others {place}/mounted && exec "$@"', "sh"]
        allowed = harness.execute([*apart, "true"], check=False)
        if allowed.returncode:
            self.skipTest(f"needs an overlay in a namespace, which this machine refuses: {allowed.stderr.decode().strip()}")
        [weights] = [section for section in json.loads(program(MODEL).run("info", "--json").stdout)["sections"] if section["name"] == "weights"]
        with Server("--sequences", "1", command=[*apart, place / "mounted/model"]) as own:
            self.assertEqual(own.complete("27 + 15 =", max_tokens=2)["choices"], server().complete("27 + 15 =", max_tokens=2)["choices"])
            connection = own.connection()
            connection.request("POST", "/v1/completions", json.dumps({**ENDLESS, "stream": True}))
            answer = connection.getresponse()
            self.assertTrue(answer.readline().startswith(b"data: {"))
            os.truncate(path, weights["offset"])
            message = "the program file could not be read"
            self.assertIn(message, error_of(answer.read().decode())["message"])
            connection.close()
            for stream in (False, True):
                status, answer = own.post("/v1/completions", {"prompt": "a", "stream": stream})
                self.assertEqual((status, message in answer["error"]["message"], answer["error"]["type"]), (503, True, "server_error"))
            status, _, text = own.ask("GET", "/health")
            self.assertEqual((status, json.loads(text)), (503, {"status": "failed"}))
            self.assertEqual(own.metric('mica_requests_total{outcome="failed"}'), 3)
            self.assertEqual(own.terminate()[1], 0)

    def test_programs_that_cannot_be_served(self):
        def refused(mention, *options):
            done = program(MODEL).run("serve", *options, check=False)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertRegex(done.stderr.decode(), mention)

        refused("1024 sequences of 1024 positions need [0-9]+ bytes of cache, but only 1000000 are available; lower --sequences", "--sequences", "1024",
                "--cache-bytes", "1000000")
        refused("1 sequence of 1024 positions needs [0-9]+ bytes of cache, but only 1000 are available; raise --cache-bytes, or compile", "--cache-bytes", "1000")
        refused("--host nowhere is not an IP address", "--host", "nowhere")
        refused(r"cannot listen on [\d.]+:\d+: .*; choose another --port or --host", "--port", str(server().port))
        empty = pathlib.Path(harness.folder("keys")) / "none"
        empty.write_text("\n")
        refused("holds no key", "--api-key-file", empty)
        refused("--api-key is empty", "--api-key", " ")
