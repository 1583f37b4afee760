"""`PROGRAM serve`: HTTP, hosts, keys, sockets, and clients that are slow or leave."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import socket
import stat

import harness
from harness import for_each, program
from served import ENDLESS, MODEL, PROGRAMS, QUESTION, ServeCase, Server, server


@for_each(PROGRAMS, "clients_that_leave")
class Http(ServeCase):
    def test_encoded_bodies(self):
        for size in (0, 100000):
            body = json.dumps({"prompt": "a", "max_tokens": 1}) + " " * size
            status, _, text = server().ask("POST", "/v1/completions", body, {"Content-Encoding": "gzip"})
            self.assertEqual(status, 415)
            self.assertIn("Content-Encoding gzip is not supported", json.loads(text)["error"]["message"])
            self.assertEqual(server().ask("POST", "/v1/completions", body, {"Content-Encoding": "Identity"})[0], 200)

    def test_large_json(self):
        """The work of rejecting a body is proportional to its size, whatever it consists of."""
        def objects(size):
            return '{"messages":[' + "{}," * (size // 3 - 10) + "{}]}"

        def keys(size):
            return "{" + ",".join(f'"k{i}":null' for i in range(size // 15)) + "}"

        def messages(size):
            return json.dumps({"messages": QUESTION * (size // 44)})

        def arguments(size):
            call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": keys(size)}}
            return json.dumps({"messages": [{"role": "assistant", "tool_calls": [call]}]})

        def biases(size):
            return json.dumps({"prompt": "a", "logit_bias": {str(i): 1 for i in range(size // 12)}})

        with Server("--sequences", "1") as own:
            def work(body, mention):
                path = "/v1/completions" if "logit_bias" in body[:100] else "/v1/chat/completions"
                before = own.processor_seconds()
                status, answer = own.post(path, body)
                self.assertEqual(status, 400, answer)
                self.assertIn(mention, answer["error"]["message"])
                return own.processor_seconds() - before

            # Quadratic work would be 256 times as much.
            factor = 16
            for make, mention, size in ((objects, "more than 1048576 strings and objects", 16 << 20), (objects, "messages, more than the context", 1 << 20),
                                        (keys, "'messages' is missing", 8 << 20), (messages, "messages, more than the context", 6 << 20),
                                        (arguments, "", 4 << 20), (biases, "is not the id of a token", 11 << 20)):
                with self.subTest(make=make.__name__, size=size):
                    some = max(work(make(size // factor), "") for _ in range(2))
                    more = work(make(size), mention)
                    harness.note(self, f"{make.__name__}: {some:.4f} s for {size // factor} bytes, {more:.4f} s for {size} bytes")
                    self.assertLess(more, 4 * factor * some)

    def test_hosts_and_origins(self):
        """A web page cannot use a server without keys through the browser of its visitor."""
        body = json.dumps({"prompt": "a", "max_tokens": 1})
        def status(own, host, origin=None, **more):
            headers = {"Host": host, "Content-Type": "text/plain", **({"Origin": origin} if origin else {}), **more}
            return own.ask("POST", "/v1/completions", body, headers)[::2]

        own = server()
        here = f"127.0.0.1:{own.port}"
        for host, origin in (("localhost", None), ("LOCALHOST:80", None), (here, None), (here, f"http://{here}"), ("[::1]:1", None), ("127.0.0.2", None),
                             ("[fe80::1]:8080", None), ("10.0.0.1:8080", "http://10.0.0.1:8080")):
            self.assertEqual(status(own, host, origin)[0], 200, (host, origin))
        for host in ("evil.example", "evil.example:80", "localhost.evil.example", "127.evil.example", "10.0.0.1.evil.example", "[::1].evil.example",
                     "10.0.0", "::1", "[x]"):
            code, text = status(own, host)
            self.assertEqual(code, 403, host)
            self.assertRegex(json.loads(text)["error"]["message"], "requests to the host .* are not allowed; .*--allowed-host")
            self.assertEqual(own.ask("GET", "/", headers={"Host": host})[0], 403)
        for origin in ("http://evil.example", "null", "http://localhost:3000", f"http://localhost:{own.port}", "http://127.0.0.1", "http://10.0.0.1"):
            code, text = status(own, here, origin)
            self.assertEqual(code, 403, origin)
            self.assertIn(f"cross-origin requests from {origin} are not allowed", json.loads(text)["error"]["message"])
        # Preflight requests, which browsers send before requests with an API key.
        preflight = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
        self.assertEqual(own.ask("OPTIONS", "/v1/completions", headers={"Host": here, **preflight})[0], 403)
        with Server("--sequences", "1", "--api-key", "secret") as keyed:
            code, headers, _ = keyed.ask("OPTIONS", "/v1/completions", headers={"Host": here, **preflight})
            self.assertEqual((code, headers["Allow"], headers.get("Access-Control-Allow-Origin")), (405, "POST", None))
        with Server("--sequences", "1", "--allowed-host", "models.Example.org", "--allowed-host", "other") as own:
            for host, origin, code in (("models.example.org", None, 200), ("Other", "https://models.example.org:8443", 200), ("localhost", None, 200),
                                       ("evil.example", None, 403), ("other", "https://evil.example", 403)):
                self.assertEqual(status(own, host, origin)[0], code, (host, origin))
        # A page does not know the key.
        with Server("--sequences", "1", "--api-key", " secret ") as own:
            self.assertEqual(status(own, "models.example.org", "https://models.example.org", Authorization="Bearer secret")[0], 200)

    def test_a_server_that_other_machines_can_reach(self):
        """Without keys it warns, and web pages cannot use it through a name that resolves to its address."""
        body = {"prompt": "a", "max_tokens": 1}
        with Server("--sequences", "1", "--host", "0.0.0.0") as own:
            self.assertRegex(own.process.stderr.readline().decode(), r"^mica: warning: no API key is required: .* http://0\.0\.0\.0:\d+ .*--api-key-file\n$")
            for host, code in (("localhost", 200), (f"192.168.1.5:{own.port}", 200), ("evil.example", 403)):
                self.assertEqual(own.ask("POST", "/v1/completions", body, {"Host": host})[0], code, host)
        for options in (("--host", "0.0.0.0", "--api-key", "secret"), ("--host", "127.0.0.2"), ("--unix-socket", harness.folder("socket") + "/s")):
            with Server("--sequences", "1", *options) as own:
                self.assertEqual(own.ask("GET", "/health", headers={"Host": "a.example"})[0], 403 if "127.0.0.2" in options else 200)
                text, status = own.terminate()
                self.assertEqual((status, "warning" in text), (0, False), text)

    def test_chunked_and_pipelined_requests(self):
        asked = {"prompt": "count from 7 to 12:", "max_tokens": 12, "temperature": 0}
        head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n%s\r\n\r\n"
        padded = [json.dumps({**asked, "max_tokens": count}).encode() + b" " * size for count, size in ((12, 0), (3, 10000), (5, 200000))]

        def chunked(body, size):
            pieces = [body[at:at + size] for at in range(0, len(body), size)]
            return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (*pieces, b""))

        def texts(request, count):
            with server().connect() as connection, connection.makefile("rb") as file:
                connection.sendall(request)
                answers = []
                for _ in range(count):
                    status = int(file.readline().split()[1])
                    length = int(http.client.parse_headers(file)["Content-Length"])
                    answers.append((status, json.loads(file.read(length))["choices"][0]["text"]))
                return answers

        wanted = [(200, server().complete(**{**asked, "max_tokens": count})["choices"][0]["text"]) for count in (12, 3, 5)]
        for body, answer in zip(padded, wanted):
            for size in (7, 4096, len(body)):
                if len(body) / size < 10000:
                    self.assertEqual(texts(head % b"Transfer-Encoding: chunked" + chunked(body, size), 1), [answer])
        # Several requests at once, answered in their order.
        several = [head % (b"Content-Length: %d" % len(body)) + body for body in padded[:2]]
        self.assertEqual(texts(several[0] + several[1] + several[0], 3), [wanted[0], wanted[1], wanted[0]])
        self.assertEqual(texts(head % b"Transfer-Encoding: chunked" + chunked(padded[0], 9) + several[1], 2), wanted[:2])

    def test_bad_http(self):
        def raw(request, half=False):
            with server().connect() as connection:
                connection.sendall(request)
                if half:
                    connection.shutdown(socket.SHUT_WR)
                received = b""
                while piece := connection.recv(4096):
                    received += piece
                return received

        self.assertRegex(raw(b"nonsense\r\n\r\n"), rb"^HTTP/1.1 400 ")
        self.assertRegex(raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 20000), rb"^HTTP/1.1 431 ")
        self.assertRegex(raw(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n"), rb"^HTTP/1.1 413 ")
        for coding in (b"gzip", b"gzip, chunked", b"identity"):
            self.assertRegex(raw(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: " + coding + b"\r\n\r\n0\r\n\r\n"), rb"^HTTP/1.1 501 ", coding)
        # A client that sends all of a too large body before it reads the response.
        many = 20 << 20
        self.assertRegex(raw(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % many + b"a" * many, half=True),
                         rb'^HTTP/1.1 413 [^{]*\{"error":')
        self.assertEqual(raw(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{", half=True), b"")
        # A client that closes its direction before it has the answer has left.
        endless = json.dumps(ENDLESS).encode()
        self.assertEqual(raw(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(endless) + endless, half=True), b"")
        self.assertRegex(raw(b"GET /health HTTP/1.0\r\n\r\n"), rb'^HTTP/1.1 200 [^{]*\{"status":"ready"\}$')
        # A message is sent to a client that expects the connection to be closed, although it stays open.
        kept = raw(b"GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /health HTTP/1.0\r\n\r\n")
        self.assertRegex(kept, rb"(?s)^HTTP/1.1 200 .*Connection: keep-alive\r\n.*HTTP/1.1 200 .*Connection: close\r\n")
        self.assertNotIn(b"Connection: keep-alive", raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"))
        # HEAD returns the headers of GET.
        head, body = raw(b"HEAD /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").split(b"\r\n\r\n")
        whole, text = raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").split(b"\r\n\r\n")
        self.assertEqual((head, body, text), (whole, b"", b'{"status":"ready"}'))
        # Proxies and the server must not decide by different fields.
        post = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 29\r\n%s\r\n\r\n" + b'{"prompt":"a","max_tokens":1}'
        for request, status in ((b"GET /health HTTP/1.1\r\n\r\n", b"400"),
                                (b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", b"400"),
                                (b"GET /health HTTP/1.0\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", b"400"),
                                (b"GET http:///health HTTP/1.1\r\nHost: localhost\r\n\r\n", b"400"),
                                (b"GET http://evil.example/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", b"403"),
                                (b"GET http://localhost/health HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", b"200"),
                                (post % b"Content-Encoding: identity", b"200"),
                                (post % b"Content-Encoding: identity\r\nContent-Encoding: gzip", b"415"),
                                (post % b"Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip", b"(400|501)"),
                                (post % b"Expect: 200-ok", b"417"),
                                (post % b"Expect: 100-continue\r\nExpect: 200-ok", b"417")):
            self.assertRegex(raw(request), rb"^HTTP/1.1 " + status, request)
        # HTTP/1.0 has no expectations.
        self.assertRegex(raw((post % b"Expect: 100-continue").replace(b"HTTP/1.1", b"HTTP/1.0")), rb"^HTTP/1.1 200 ")
        # Targets as sent by proxies and some clients.
        for target in (b"http://localhost/health?x=/", b"HTTP://localhost:80/%68ealt%68", b"/health?a=b?c"):
            self.assertRegex(raw(b"GET " + target + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"), rb"^HTTP/1.1 200 ", target)
        for target in (b"http://localhost", b"http://localhost?x=/health"):
            self.assertRegex(raw(b"GET " + target + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"), rb"(?s)^HTTP/1.1 200 .*<html", target)
        for target in (b"/health%2", b"/health%zz", b"http://localhost/x/health", b"*"):
            self.assertRegex(raw(b"GET " + target + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"), rb"^HTTP/1.1 404 ", target)
        body = b'{"prompt": "27", "max_tokens": 2, "stream": true}'
        old = raw(b"POST /v1/completions HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        self.assertRegex(old, rb"\r\n\r\ndata: ")
        self.assertTrue(old.endswith(b"data: [DONE]\n\n"))
        with server().connect() as connection:
            connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body))
            self.assertRegex(connection.recv(4096), rb"^HTTP/1.1 100 ")
            connection.sendall(body)
            self.assertRegex(connection.recv(4096), rb"^HTTP/1.1 200 ")
        # Two requests on one connection.
        connection = server().connection()
        for _ in range(2):
            connection.request("GET", "/health")
            self.assertEqual(connection.getresponse().read(), b'{"status":"ready"}')
        connection.close()
        # The second one is not HTTP.
        self.assertRegex(raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nnonsense\r\n\r\n"), rb"(?s)^HTTP/1.1 200 .*HTTP/1.1 400 ")
        self.assertEqual(server().ask("GET", "/health")[0], 200)

    def clients_that_leave(self, name):
        for stream, more in ((True, b""), (False, b""), (False, b"\r\n"), (False, b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"), (False, b"\r\n" * 20000)):
            with self.subTest(stream=stream, more=more), Server("--sequences", "1", command=PROGRAMS[name]()) as own:
                connection = own.connection()
                connection.request("POST", "/v1/completions", json.dumps({**ENDLESS, "stream": stream}))
                if stream:
                    connection.getresponse().readline()
                own.wait_for_metric("mica_completions_running", 1)
                connection.sock.sendall(more)
                connection.sock.shutdown(socket.SHUT_RDWR)
                connection.close()
                own.wait_for_metric('mica_requests_total{outcome="canceled"}', 1)
                own.wait_for_metric("mica_completions_running", 0)
                self.assertEqual(len(own.complete("27 + 15 =", max_tokens=2)["choices"]), 1)

    def test_client_disconnects(self):
        with Server("--sequences", "1") as own:
            first, second = own.connection(), own.connection()
            first.request("POST", "/v1/completions", json.dumps(ENDLESS))
            own.wait_for_metric("mica_completions_running", 1)
            waiting = own.metric("mica_completions_waiting")
            second.request("POST", "/v1/completions", json.dumps({**ENDLESS, "n": 127}))
            harness.until(lambda: own.metric("mica_completions_waiting") > waiting, "the second request does not wait")
            second.close()
            own.wait_for_metric('mica_requests_total{outcome="canceled"}', 1)
            self.assertEqual(own.metric("mica_completions_running"), 1)
            # Tokens are counted as they are generated, prompts at the end of their completions: of the first request's, which have 900
            # tokens, and of one of the second request if it has had the sequence, but not of those that have waited.
            harness.until(lambda: own.metric("mica_generated_tokens_total") % 900, "tokens are counted at the ends of completions")
            text = own.ask("GET", "/metrics")[2]
            prompts, generated = (int(re.search(rf"^mica_{name}_tokens_total (\d+)$", text, re.M)[1]) for name in ("prompt", "generated"))
            length = len(own.post("/tokenize", {"content": "27", "add_special": True})[1]["tokens"])
            self.assertEqual(prompts % length, 0)
            self.assertIn(prompts // length, range(max(generated // 900 - 1, 0), generated // 900 + 3))
            first.close()
            own.wait_for_metric("mica_completions_running", 0)
            self.assertEqual(len(own.complete("27 + 15 =", max_tokens=2)["choices"]), 1)

    def test_connections_above_the_limit(self):
        with Server("--max-connections", "2", "--receive-timeout", "600") as own, contextlib.ExitStack() as clients:
            request = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
            opened = [clients.enter_context(own.connect()) for _ in range(2)]
            for client in opened:
                client.sendall(request)
                self.assertRegex(client.recv(4096), rb"^HTTP/1.1 200 ")
            for _ in range(2):
                with own.connect() as third:
                    third.sendall(request)
                    self.assertRegex(third.makefile("rb").read(), rb"(?s)^HTTP/1.1 503 .*Retry-After: 1\r\n.*the server has 2 open connections, .*--max-connections")
            # If there are many more, some are closed without a reply: the server has only a few open.
            files = pathlib.Path(f"/proc/{own.process.pid}/fd")
            before, rejected = len(list(files.iterdir())), 0
            more = [clients.enter_context(own.connect()) for _ in range(100)]
            for client in more:
                with contextlib.suppress(ConnectionResetError):
                    rejected += client.recv(4096).startswith(b"HTTP/1.1 503 ")
            self.assertGreater(rejected, 0)
            self.assertLessEqual(len(list(files.iterdir())), before + 33)
            for client in (opened[0], *more):
                client.close()

            def answered():
                with own.connect() as another, contextlib.suppress(ConnectionResetError, BrokenPipeError):
                    another.sendall(request)
                    return another.recv(4096).startswith(b"HTTP/1.1 200 ")

            harness.until(answered, "a closed connection is still counted")
            opened[1].close()
            # Rejected ones may take a moment to be closed.
            harness.until(lambda: own.metric('mica_rejected_requests_total{status="503"}') >= 2 + rejected, "rejections are not counted")

    def test_keys(self):
        keys = pathlib.Path(harness.folder("keys")) / "keys"
        keys.write_text("first\r\n\r\n second \t\n")
        with Server("--api-key-file", keys) as own:
            self.assertEqual(own.ask("GET", "/health")[0], 200)
            for header in ({}, {"Authorization": "Bearer third"}, {"Authorization": "Bearer "}, {"Authorization": "first"},
                           {"Authorization": "Bearer firstfirst"}):
                status, headers, text = own.ask("GET", "/v1/models", headers=header)
                self.assertEqual((status, headers["WWW-Authenticate"]), (401, "Bearer"), header)
                self.assertEqual(json.loads(text)["error"]["code"], "invalid_api_key")
            # Without a key, a large body is not received.
            with own.connect() as connection:
                connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 1000000\r\n\r\n")
                self.assertRegex(connection.recv(4096), rb"(?s)^HTTP/1.1 401 .*WWW-Authenticate: Bearer\r\n")
            for key in ("Bearer first", "Bearer second", "bearer first", "BEARER  second"):
                self.assertEqual(own.ask("GET", "/v1/models", headers={"Authorization": key})[0], 200)

    def test_a_unix_socket(self):
        path = os.path.join(harness.folder("socket"), "s")
        with Server("--unix-socket", path) as own:
            self.assertEqual(own.ask("GET", "/health")[0], 200)
            own.process.kill()
            own.process.wait()
        # A socket left by a killed server is replaced, one in use is not.
        with Server("--unix-socket", path) as own:
            self.assertEqual(own.ask("GET", "/health")[0], 200)
            done = program(MODEL).run("serve", "--unix-socket", path, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"choose another --unix-socket", done.stderr)
            self.assertEqual(own.terminate()[1], 0)
        self.assertFalse(os.path.exists(path))
        with Server("--unix-socket", path, command=["sh", "-c", 'umask 007; exec "$0" "$@"', program(MODEL).path]):
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o770)

    def test_slow_clients(self):
        def sent(connection, earlier):
            """False on a busy machine: a second was over before the earlier request was sent."""
            try:
                if earlier:
                    connection.sendall(earlier)
                    if not (answer := connection.recv(4096)):
                        return False
                    self.assertRegex(answer, rb"^HTTP/1.1 200 ")
                connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: ")
                self.assertEqual(connection.recv(4096), b"", "the time for a header is over")
            except (ConnectionResetError, BrokenPipeError):
                return False
            return True

        with Server("--receive-timeout", "1", "--idle-timeout", "600") as own:
            for earlier in (b"", b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"):
                def attempt(earlier=earlier):
                    with own.connect() as connection:
                        return sent(connection, earlier)

                harness.until(attempt, "all connections are closed too early")
        with Server("--receive-timeout", "600", "--idle-timeout", "1") as own, own.connect() as connection:
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertRegex(connection.recv(4096), rb"^HTTP/1.1 200 ")
            self.assertEqual(connection.recv(4096), b"", "the connection has been idle")

    def test_large_bodies(self):
        """Large bodies are read on a separate thread: all kinds of responses, and a client that does not wait for one."""
        words = "count from 7 to 12: " * 5000
        status, tokens = server().post("/tokenize", {"content": words})
        self.assertEqual(status, 200)
        self.assertEqual(server().post("/detokenize", tokens)[1]["content"].strip(), words.strip())
        self.refused(400, "'tokens' is not an array of token ids", "/detokenize", {"tokens": [1 << 40] * 20000}, "tokens")
        self.refused(400, "more than the context", "/v1/completions", {"prompt": words}, "prompt")
        self.refused(400, "not JSON at byte 100002: unexpected end of input", "/v1/completions", "[" + "1," * 50000)
        # Most of the body is whitespace.
        padded = json.dumps({"prompt": "count from 7 to 12:", "max_tokens": 12, "temperature": 0}) + " " * 100000
        self.assertEqual(server().post("/v1/completions", padded)[1]["choices"], server().complete("count from 7 to 12:", max_tokens=12)["choices"])
        with Server("--sequences", "1") as own:
            with own.connect() as connection:
                connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(padded) + padded.encode())
            own.wait_for_metric("mica_completions_running", 0)
            self.assertEqual(own.post("/v1/completions", {"prompt": "a", "max_tokens": 1})[0], 200)
