"""A running server (`PROGRAM serve`), and what its tests share."""

import atexit
import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import time

import harness
from harness import BUNDLED, Case, program

MODEL = BUNDLED / "minimind-dense"
#: A request that does not finish during a test.
ENDLESS = {"prompt": "27", "max_tokens": 900, "n": 128, "ignore_eos": True, "temperature": 1}
NAME = "minimind-dense"
#: The sanitizer of the launcher, set by tests/sanitize_serve.sh.
SANITIZER = os.environ.get("MICA_SANITIZER")
QUESTION = [{"role": "user", "content": "27 + 15"}]


def ask(connection, method, path, body=None, headers=None):
    """(status, headers, text) of a request on `connection`, which is closed; a body that is not a text is sent as JSON."""
    if body is not None and not isinstance(body, (str, bytes)):
        body = json.dumps(body)
    connection.request(method, path, body, headers or {})
    answer = connection.getresponse()
    result = answer.status, dict(answer.getheaders()), answer.read().decode()
    connection.close()
    return result


def settled_size(pid):
    """The bytes of a process's address space when they no longer change: memory of a request may be freed after its reply."""
    sizes = []
    while len(sizes) < 4 or len(set(sizes[-4:])) > 1:
        time.sleep(0.1)
        status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
        sizes.append(1024 * int(re.search(r"^VmSize:\s+(\d+) kB", status, re.M)[1]))
    return sizes[-1]


#: For tests that limit memory: that of further arenas of malloc is reserved in advance, so that the limit would not apply to it.
ONE_ARENA = {"MALLOC_ARENA_MAX": "1"}


def error_of(stream):
    """The error with which a stream ends, from its text, which may lack the beginning of the first event. The error may be the first event or
    a later one."""
    *_, last = stream.split("\n\n")[:-1] or [""]
    errors = [json.loads(line.removeprefix("data: "))["error"] for line in stream.split("\n") if line.startswith('data: {"error"')]
    if len(errors) != 1 or not last.strip().startswith('data: {"error"'):
        raise AssertionError(f"the stream does not end with its only error: {stream}")
    [error] = errors
    return error


class Server:
    """A running server; `with` stops it."""

    def __init__(self, *options, model=MODEL, env=None, command=None):
        self.process = subprocess.Popen([*(command or [program(model).path]), "serve", *options] + ([] if "--unix-socket" in options else ["--port", "0"]),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        env={**os.environ, **(env or {})})
        line = self.process.stderr.readline().decode()
        found = re.search(r" at (?:http://([\d.]+):(\d+)|unix:(\S+)) \((\d+) sequences?", line)
        if not found:
            self.process.kill()
            raise AssertionError(f"the server says {line!r}{self.process.stderr.read().decode()!r}")
        self.host, self.port, self.path, self.sequences = found[1], int(found[2] or 0), found[3], int(found[4])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()

    def connect(self):
        """A connected socket."""
        if self.path:
            connected = socket.socket(socket.AF_UNIX)
            connected.settimeout(harness.SECONDS)
            connected.connect(self.path)
            return connected
        return socket.create_connection((self.host, self.port), timeout=harness.SECONDS)

    def connection(self):
        made = http.client.HTTPConnection("localhost", timeout=harness.SECONDS)
        made.sock = self.connect()
        return made

    def ask(self, method, path, body=None, headers=None):
        """(status, headers, text) of a request; see ask."""
        return ask(self.connection(), method, path, body, headers)

    def post(self, path, body, headers=None):
        """(status, JSON)."""
        status, _, text = self.ask("POST", path, body, headers)
        return status, json.loads(text)

    def chat(self, messages=None, **fields):
        status, answer = self.post("/v1/chat/completions", {"messages": messages or QUESTION, "temperature": 0, **fields})
        if status != 200:
            raise AssertionError(f"{status}: {answer}")
        return answer

    def complete(self, prompt, **fields):
        status, answer = self.post("/v1/completions", {"prompt": prompt, "temperature": 0, **fields})
        if status != 200:
            raise AssertionError(f"{status}: {answer}")
        return answer

    def events(self, path, body):
        """The events of a stream, parsed; the last one is [DONE]."""
        status, headers, text = self.ask("POST", path, body)
        if status != 200 or headers["Content-Type"] != "text/event-stream":
            raise AssertionError(f"{status} {headers}: {text}")
        lines = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
        if lines.pop() != "[DONE]":
            raise AssertionError(f"the stream ends with {lines[-1:]}")
        return [json.loads(line) for line in lines]

    def metric(self, name, headers=None):
        text = self.ask("GET", "/metrics", headers=headers)[2]
        found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.M)
        return float(found[1]) if found else 0

    def wait_for_metric(self, name, value, headers=None):
        harness.until(lambda: self.metric(name, headers) == value,
                      lambda: f"{name} is {self.metric(name, headers)} instead of {value}")

    @contextlib.contextmanager
    def busy(self, headers=None, count=100):
        """Other clients, whose requests are served before those in the block and take far longer together than a second."""
        with contextlib.ExitStack() as clients:
            for _ in range(count):
                client = clients.enter_context(contextlib.closing(self.connection()))
                client.request("POST", "/v1/completions", json.dumps({**ENDLESS, "n": 1}), headers or {})
            harness.until(lambda: self.metric("mica_completions_waiting", headers) > count / 2, "the clients do not wait")
            yield

    def processor_seconds(self):
        """The time that all threads together have used, which does not depend on other processes as wall-clock time does."""
        return time.clock_gettime(~self.process.pid << 3 | 2)  # as clock_getcpuclockid

    def terminate(self):
        """Sends SIGTERM; returns the output of the server after it, and its exit status."""
        self.process.send_signal(signal.SIGTERM)
        text = self.process.stderr.read().decode()
        return text, self.process.wait(harness.SECONDS)


def server():
    """A server for all tests that do not change it."""

    def make():
        made = Server("--sequences", "4")
        atexit.register(made.__exit__)
        return made

    return harness.once("serve", make)


#: Programs in which prompts join the call that decodes, and in which calls for prompts are interrupted to decode: with `--rows int8`, prefill
#: has other arithmetic than decode on every processor.
PROGRAMS = {"joined": lambda: [program(MODEL).path],
            "interrupted": lambda: [program(MODEL, "--weights", "int8", "--rows", "int8").path]}


class ServeCase(Case):
    """Tests of the server that all tests share."""

    def refused(self, status, mention, path, body, param=None):
        got, answer = server().post(path, body)
        self.assertEqual(got, status, answer)
        self.assertEqual(set(answer["error"]), {"message", "type", "param", "code"})
        self.assertIn(mention, answer["error"]["message"])
        if param:
            self.assertEqual(answer["error"]["param"], param)
