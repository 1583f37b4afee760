"""A local server with the API of the Hugging Face hub, which misbehaves on request."""

import hashlib
import http.server
import json
import threading
import urllib.parse

LFS = (".safetensors", ".gguf", ".bin", ".onnx")


def git_hash(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def blob_name(path, data):
    return hashlib.sha256(data).hexdigest() if path.endswith(LFS) else git_hash(data)


class Repository:
    """Files {path: bytes} at one commit."""

    def __init__(self, files):
        self.files = files
        self.commit = hashlib.sha1(repr(sorted((p, blob_name(p, d)) for p, d in files.items())).encode()).hexdigest()

    def listing(self):
        entries = [{"type": "directory", "oid": "0" * 40, "size": 0, "path": "onnx"}]
        for path, data in self.files.items():
            entry = {"type": "file", "path": path, "size": len(data), "oid": git_hash(data)}
            if path.endswith(LFS):
                entry["lfs"] = {"oid": blob_name(path, data), "size": len(data), "pointerSize": 134}
            entries.append(entry)
        return entries


class Hub:
    """The hub at `endpoint`, which redirects to another host for large files. `requests` are (host, path, headers) in order, `sent` the
    number of bytes of bodies of large files by path. `respond(path, headers)` may return another status and headers; `cut(path, start)`
    returns the number of bytes of a large file that are sent before the connection is closed, `pause(path, sent)` may wait."""

    def __init__(self):
        self.repositories, self.requests, self.sent = {}, [], {}
        self.token = None
        self.page_size = 3  # so that there are several pages
        self.knows_ranges = True
        self.respond = lambda path, headers: None
        self.listing = lambda entries: entries
        self.cut = lambda path, start: None
        self.pause = lambda path, sent: None
        self.servers = [self._server("hub", self._hub), self._server("cdn", self._cdn)]
        self.endpoint = f"http://127.0.0.1:{self.servers[0].server_port}"
        # Another name of this machine, and another port.
        self.cdn = f"http://localhost:{self.servers[1].server_port}"

    def __enter__(self):
        for server in self.servers:
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_):
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def environment(self, home, cache):
        """The variables with which mica uses this hub and these folders, whatever the user's are."""
        unset = ("HF_TOKEN", "HF_TOKEN_PATH", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_OFFLINE", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE",
                 "HF_HUB_DOWNLOAD_TIMEOUT")
        return {**dict.fromkeys(unset, ""), "HF_ENDPOINT": self.endpoint, "HF_HOME": str(home), "XDG_CACHE_HOME": str(cache), "no_proxy": "*"}

    def _server(self, name, handle):
        hub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                hub.requests.append((name, self.path, {k.lower(): v for k, v in self.headers.items()}))
                try:
                    handle(self, urllib.parse.unquote(self.path))
                except OSError:
                    self.close_connection = True

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        return server

    @staticmethod
    def answer(request, status, headers=(), body=b""):
        request.send_response(status)
        for key, value in dict(headers).items():
            request.send_header(key, value)
        if dict(headers).get("Connection") != "close":  # otherwise the body ends with the connection
            request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def _hub(self, request, path):
        wrong = self.respond(path, request.headers)
        if wrong:
            return self.answer(request, *wrong)
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            return self.answer(request, 401, {"X-Error-Code": "RepoNotFound"}, b'{"error": "Invalid username or password."}')
        address, _, query = path.partition("?")
        parts = address.strip("/").split("/")
        api = parts[:2] == ["api", "models"]
        name = "/".join(parts[2:4] if api else parts[:2])
        repository = self.repositories.get(name)
        if not repository:
            return self.answer(request, 404, {"X-Error-Code": "RepoNotFound"})
        if api and parts[4:] == ["revision", "main"]:
            body = {"id": name, "sha": repository.commit, "siblings": [{"rfilename": p} for p in repository.files]}
            return self.answer(request, 200, {"Content-Type": "application/json"}, json.dumps(body).encode())
        if api and parts[4:] == ["tree", repository.commit]:
            return self._tree(request, repository, address, query)
        if not api and parts[2:4] == ["resolve", repository.commit]:
            return self._resolve(request, repository, name, "/".join(parts[4:]))
        return self.answer(request, 404, {"X-Error-Code": "EntryNotFound"})

    def _tree(self, request, repository, address, query):
        options = urllib.parse.parse_qs(query)
        assert options["recursive"] == ["true"], options
        start = int(options.get("cursor", ["0"])[0])
        entries = self.listing(repository.listing())
        headers = {"Content-Type": "application/json"}
        if start + self.page_size < len(entries):
            headers["Link"] = f'<{self.endpoint}{address}?recursive=true&cursor={start + self.page_size}>; rel="next"'
        return self.answer(request, 200, headers, json.dumps(entries[start:start + self.page_size]).encode())

    def _resolve(self, request, repository, name, path):
        if path not in repository.files:
            return self.answer(request, 404, {"X-Error-Code": "EntryNotFound"})
        data = repository.files[path]
        if not path.endswith(LFS):
            return self.answer(request, 200, {"ETag": f'"{git_hash(data)}"', "X-Repo-Commit": repository.commit}, data)
        place = f"/{name}/{urllib.parse.quote(path)}?signature=secret"
        return self.answer(request, 302, {"Location": self.cdn + place, "X-Linked-ETag": f'"{blob_name(path, data)}"',
                                          "X-Linked-Size": str(len(data)), "X-Repo-Commit": repository.commit})

    def _cdn(self, request, path):
        owner, name, file = path.partition("?")[0].lstrip("/").split("/", 2)
        data = self.repositories[f"{owner}/{name}"].files[file]
        start, wanted = 0, request.headers.get("Range", "")
        if wanted and self.knows_ranges:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            if start >= len(data):
                return self.answer(request, 416, {"Content-Range": f"bytes */{len(data)}"})
            request.send_response(206)
            request.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        else:
            request.send_response(200)
        request.send_header("ETag", f'"{hashlib.md5(data).hexdigest()}"')
        request.send_header("Content-Length", str(len(data) - start))
        request.end_headers()
        end = self.cut(file, start)
        end = len(data) if end is None else min(len(data), start + end)
        piece = 1 << 14
        for at in range(start, end, piece):
            self.pause(file, at)
            request.wfile.write(data[at:min(end, at + piece)])
            self.sent[file] = self.sent.get(file, 0) + min(end, at + piece) - at
        if end < len(data):
            request.close_connection = True
        return None
