"""The files of docs/serve: a systemd service, a proxy, an image."""

import http.client
import json
import os
import pathlib
import pwd
import re
import shutil
import socket
import ssl
import subprocess
import sys
import unittest

import harness
from harness import Case, program
from served import MODEL, NAME, Server, ask

sys.path.insert(0, str(harness.ROOT / "tests/bench"))
import ports  # noqa: E402

FILES = harness.ROOT / "docs/serve"
ASKED = {"prompt": "27", "max_tokens": 400, "ignore_eos": True, "temperature": 0}


def tool(name):
    """The path of a command, also of administration commands; skips the test if it is missing."""
    found = shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    if not found:
        raise unittest.SkipTest(f"needs {name}, which is not installed")
    return found


def changed(text, *changes):
    """`text` with each of `changes`, (old, new), applied; old must occur."""
    for what, by in changes:
        assert what in text, what
        text = text.replace(what, by)
    return text


def accepts(port):
    """Whether something listens on the address."""
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


class Systemd(Case):
    def unit(self):
        return (FILES / "mica.service").read_text(encoding="utf-8")

    def verify(self, text):
        path = pathlib.Path(harness.folder("unit")) / "mica.service"
        path.write_text(text, encoding="utf-8")
        done = harness.execute([tool("systemd-analyze"), "verify", "--man=no", path], check=False)
        # It also verifies files that the unit refers to, which depend on the machine.
        return done.returncode, [line for line in done.stderr.decode().splitlines() if "mica" in line]

    def test_unit(self):
        built = program(MODEL).path
        self.assertEqual(self.verify(changed(self.unit(), ("/opt/mica/model", str(built))))[1], [])
        # An error would be reported.
        self.assertRegex(self.verify(changed(self.unit(), ("Restart=on-failure", "Restart=perhaps")))[1][0], "restart specifier")

    def test_command(self):
        """The command of the unit serves."""
        [line] = re.findall("^ExecStart=/opt/mica/model serve (.*)$", self.unit(), re.M)
        keys = pathlib.Path(harness.folder("keys"))
        (keys / "keys").write_text("secret\n")
        options = changed(line, ("--port 8080 ", ""), ("${CREDENTIALS_DIRECTORY}", str(keys))).split()
        with Server(*options) as server:
            self.assertEqual(server.ask("GET", "/v1/models")[0], 401)
            self.assertEqual(server.ask("GET", "/v1/models", headers={"Authorization": "Bearer secret"})[0], 200)
            self.assertEqual(server.terminate()[1], 0)
        drain, stop = (int(re.search(pattern, self.unit())[1]) for pattern in (r"--drain-seconds (\d+)", r"TimeoutStopSec=(\d+)"))
        self.assertGreater(stop, drain)


class Nginx:
    """nginx with the configuration of the docs and `changes`, see changed, as a proxy of a server; stops with its context."""

    def __init__(self, upstream, *changes):
        nginx, openssl = tool("nginx"), tool("openssl")
        place = pathlib.Path(harness.folder("nginx"))
        self.certificate, self.port = place / "certificate.pem", ports.free_ports()[0]
        harness.execute([openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=models.example.org", "-addext",
                         "subjectAltName=DNS:models.example.org", "-keyout", place / "key.pem", "-out", self.certificate])
        example = changed((FILES / "nginx.conf").read_text(encoding="utf-8"), ("listen 443 ", f"listen 127.0.0.1:{self.port} "),
                          ("server 127.0.0.1:8080;", f"server 127.0.0.1:{upstream};"),
                          ("/etc/ssl/certs/models.example.org.pem", str(self.certificate)),
                          ("/etc/ssl/private/models.example.org.key", str(place / "key.pem")), *changes)
        paths = "".join(f"{kind}_temp_path {place}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (place / "nginx.conf").write_text(f"daemon off; user {pwd.getpwuid(os.getuid()).pw_name}; pid {place}/pid; error_log stderr;\nevents {{}}\n"
                                          f"http {{ access_log off;\n{paths}{example} }}\n", encoding="utf-8")
        self.process = subprocess.Popen([nginx, "-p", place, "-c", place / "nginx.conf"], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        harness.until(lambda: self.process.poll() is not None or accepts(self.port), "nginx does not listen")
        if self.process.poll() is not None:
            raise AssertionError(self.process.stderr.read().decode())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(harness.SECONDS)
        self.process.stderr.close()

    def connection(self):
        context = ssl.create_default_context(cafile=self.certificate)
        made = http.client.HTTPSConnection("models.example.org", context=context, timeout=harness.SECONDS)
        made.sock = context.wrap_socket(socket.create_connection(("127.0.0.1", self.port)), server_hostname="models.example.org")
        return made

    def ask(self, method, path, body=None, headers=None):
        """(status, text) of a request."""
        status, _, text = ask(self.connection(), method, path, body, headers)
        return status, text


class Proxy(Case):
    def test_nginx(self):
        with Server("--sequences", "1", "--api-key", "secret") as server, Nginx(server.port) as nginx:
            key = {"Authorization": "Bearer secret"}
            self.assertEqual(nginx.ask("GET", "/v1/models")[0], 401)
            status, models = nginx.ask("GET", "/v1/models", headers=key)
            self.assertEqual((status, json.loads(models)["data"][0]["id"]), (200, NAME))
            self.assertEqual(nginx.ask("GET", "/metrics", headers=key)[0], 403)
            whole = json.loads(nginx.ask("POST", "/v1/completions", ASKED, key)[1])["choices"][0]["text"]
            # A body larger than nginx's default of 1 MiB, but not a request.
            status, error = nginx.ask("POST", "/v1/completions", {**ASKED, "prompt": "a" * (2 << 20)}, key)
            self.assertEqual((status, json.loads(error)["error"]["code"]), (400, "context_length_exceeded"))

            # A stream is the same as without a proxy.
            connection = nginx.connection()
            connection.request("POST", "/v1/completions", json.dumps({**ASKED, "stream": True}), key)
            answer, text = connection.getresponse(), ""
            self.assertEqual(answer.getheader("Content-Type"), "text/event-stream")
            while line := answer.readline():
                if line.startswith(b"data: {"):
                    text += json.loads(line[6:])["choices"][0]["text"]
            self.assertEqual(text, whole)
            connection.close()

            # A client that disconnects ends its request.
            connection = nginx.connection()
            connection.request("POST", "/v1/completions", json.dumps({**ASKED, "n": 128, "max_tokens": 900, "temperature": 1, "stream": True}),
                               key)
            answer = connection.getresponse()
            self.assertTrue(answer.readline().startswith(b"data: {"))
            self.assertGreater(server.metric("mica_completions_running", key), 0)
            connection.sock.close()
            connection.close()
            server.wait_for_metric("mica_completions_running", 0, key)

    def test_nginx_does_not_buffer(self):
        """What the server sends arrives while the stream continues, however little it is; with buffers, nothing arrives."""
        key = {"Authorization": "Bearer secret"}
        with Server("--sequences", "1", "--sse-ping-interval", "1", "--api-key", "secret") as server, server.busy(key):
            def asked(nginx):
                connection = nginx.connection()
                connection.request("POST", "/v1/completions", json.dumps({**ASKED, "stream": True}), key)
                return connection

            with Nginx(server.port) as direct, Nginx(server.port, ("proxy_buffering off;", "proxy_ignore_headers X-Accel-Buffering;")) as buffering:
                late, connection = asked(buffering), asked(direct)
                answer = connection.getresponse()
                # Those of the other stream were sent as well.
                for _ in range(3):
                    self.assertEqual([answer.readline() for _ in range(2)], [b": waiting\n", b"\n"])
                self.assertGreater(server.metric("mica_completions_waiting", key), 1)
                late.sock.setblocking(False)
                with self.assertRaises(ssl.SSLWantReadError):
                    late.sock.recv(1)
                for each in (late, connection):
                    each.close()


class Image(Case):
    def test_root(self):
        """The files of the image suffice to serve: its root contains nothing else."""
        root = pathlib.Path(harness.folder("image")) / "root"
        harness.execute([FILES / "image-root.sh", program(MODEL).path, root])
        for line in (FILES / "Dockerfile").read_text().splitlines():
            self.assertRegex(line, r"^#|^(FROM scratch|COPY root/ /|USER \d+:\d+|EXPOSE 8080|ENTRYPOINT \[\"/model\"\]|CMD \[\"serve\".*\])$")
        # A separate root, as in a container.
        apart = [tool("unshare"), "--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child", f"--mount-proc={root}/proc"]
        allowed = harness.execute([*apart, "true"], check=False)
        if allowed.returncode:
            self.skipTest(f"needs namespaces, which this machine refuses: {allowed.stderr.decode().strip()}")
        into = [*apart, tool("chroot"), root]
        self.assertEqual(harness.execute([*into, "/model", "info", "--check"]).returncode, 0)
        # The command of the image requires a key.
        dockerfile = (FILES / "Dockerfile").read_text()
        options = json.loads(re.search(r"^CMD (\[.*\])$", dockerfile, re.M)[1])
        (root / "keys").write_text("secret\n")
        with Server(*options[1:], "--sequences", "1", command=[*into, "/model"]) as server:
            self.assertEqual((options[0], server.host), ("serve", "0.0.0.0"))
            self.assertEqual(server.ask("GET", "/v1/models")[0], 401)
            self.assertEqual(server.ask("GET", "/v1/models", headers={"Authorization": "Bearer secret"})[0], 200)
        path = root / "socket"
        with Server("--unix-socket", "/socket", command=[*into, "/model"]) as server:
            server.path = str(path)
            self.assertEqual(server.complete(**ASKED)["usage"]["completion_tokens"], ASKED["max_tokens"])
        refused = harness.execute([*into, "/bin/sh", "-c", "true"], check=False)
        self.assertNotEqual(refused.returncode, 0)
