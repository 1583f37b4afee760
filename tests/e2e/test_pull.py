"""`mica pull`, `run OWNER/NAME`, `list` and `rm` with a local hub."""

import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import time

import gguf_file
import harness
import hub_server
from harness import BUNDLED, Case, GOLDENS, execute, note, program

NAME = "mica-test/mini.mind_1"
MODEL = BUNDLED / "minimind-dense"
PROMPT = ("-p", "count from 2 to 9:", "--temperature", 0)
PULLED = ("chat_template.jinja", "config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")


def model_files():
    files = {name: (MODEL / name).read_bytes() for name in PULLED}
    return files | {"README.md": b"# mini", "pytorch_model.bin": b"a twin", "onnx/model.onnx": b"another", "consolidated.safetensors": b"a third",
                    "pytorch_model.bin.index.json": b"{}", ".gitattributes": b""}


class Pull(Case):
    def setUp(self):
        self.hub = self.enterContext(hub_server.Hub())
        self.hub.repositories[NAME] = self.repository = hub_server.Repository(model_files())
        self.home = pathlib.Path(harness.folder("hub-home"))
        self.place = self.home / "hub/models--mica-test--mini.mind_1"
        self.env = self.hub.environment(self.home, harness.folder("hub-cache"))

    def mica(self, *arguments, env=None, **how):
        return execute([harness.mica, *arguments], env={**self.env, **(env or {})}, **how)

    def pull(self, name=NAME, **how):
        done = self.mica("pull", name, **how)
        self.assertEqual(done.stderr, b"")
        return pathlib.Path(done.stdout.decode().removesuffix("\n"))

    def refused(self, *words, arguments=("pull", NAME), env=None, **how):
        """One line, status 1, and nothing under a final name."""
        done = self.mica(*arguments, env=env, check=False, **how)
        error = done.stderr.decode()
        self.assertEqual((done.returncode, done.stdout, error.count("\n")), (1, b"", 1), error)
        self.assertTrue(error.startswith("mica: error: "), error)
        for word in words:
            self.assertIn(word, error)
        return error

    def large_requests(self):
        return [headers for host, _, headers in self.hub.requests if host == "cdn"]

    def blobs(self):
        return sorted(os.listdir(self.place / "blobs")) if (self.place / "blobs").exists() else []

    def check_whole(self, path):
        """The snapshot at `path` equals one written by huggingface_hub."""
        self.assertEqual(path, self.place / "snapshots" / self.repository.commit)
        self.assertEqual((self.place / "refs/main").read_text(), self.repository.commit)
        self.assertEqual(sorted(os.listdir(path)), sorted(PULLED))
        for name in PULLED:
            blob = hub_server.blob_name(name, self.repository.files[name])
            self.assertEqual(os.readlink(path / name), f"../../blobs/{blob}")
            self.assertEqual((path / name).read_bytes(), self.repository.files[name])
        self.assertEqual(self.blobs(), sorted({hub_server.blob_name(n, self.repository.files[n]) for n in PULLED}))

    def test_pulls_and_runs(self):
        self.check_whole(self.pull())
        weights = len(self.repository.files["model.safetensors"])
        self.assertEqual(self.hub.sent, {"model.safetensors": weights})
        # Again: existing files are not downloaded.
        self.check_whole(self.pull())
        self.assertEqual(self.hub.sent, {"model.safetensors": weights})
        before = len(self.hub.requests)
        expected = program(MODEL).run(*PROMPT).stdout
        self.assertEqual(self.mica("run", NAME, *PROMPT).stdout, expected)
        output = pathlib.Path(harness.folder("pulled")) / "program"
        self.mica("compile", NAME, "-o", output)
        self.assertEqual(harness.Program(output).run(*PROMPT).stdout, expected)
        self.assertIn(b"mini.mind_1", harness.Program(output).run("info").stdout)
        self.assertEqual(len(self.hub.requests), before, "no request for existing files")
        # Both caches are listed, and removed.
        listed = json.loads(self.mica("list", "--json").stdout)
        (model,), (built,) = listed["models"]["list"], listed["programs"]["list"]
        (snapshot,) = model["snapshots"]
        self.assertEqual((model["model"], snapshot["commit"], snapshot["main"]), (NAME, self.repository.commit, True))
        self.assertEqual(snapshot["bytes"], sum(len(self.repository.files[n]) for n in PULLED))
        self.assertEqual(listed["programs"]["limit_bytes"], 16 << 30)
        self.assertTrue(built["program"].startswith("mini_mind_1-"), built)
        self.assertEqual(built["bytes"], os.path.getsize(built["path"]))
        text = self.mica("list").stdout.decode()
        for words in (NAME, built["program"], str(self.home / "hub"), "of 16.00 GiB"):
            self.assertIn(words, text)
        self.refused(f"mini: is not a compiled program in {self.env['XDG_CACHE_HOME']}/mica; see `mica list`", arguments=("rm", "mini"))
        self.assertIn(built["path"].encode(), self.mica("rm", "mini_mind_1").stderr)
        self.assertEqual(os.listdir(os.path.dirname(built["path"])), [])
        self.assertIn(str(self.place).encode(), self.mica("rm", NAME).stderr)
        self.assertFalse(self.place.exists())
        self.refused(f"{NAME}: is not among the pulled models in {self.home}/hub; see `mica list`", arguments=("rm", NAME))

    def test_run_pulls_missing_models(self):
        expected = program(MODEL).run(*PROMPT).stdout
        done = self.mica("run", NAME, *PROMPT)
        self.assertEqual((done.stdout, done.stderr), (expected, b""))
        self.check_whole(self.place / "snapshots" / self.repository.commit)
        self.assertEqual(self.mica("rm", "--programs").returncode, 0)
        self.assertEqual(json.loads(self.mica("list", "--json").stdout)["programs"]["list"], [])
        # A partially downloaded model is not run.
        os.unlink(self.place / "blobs" / hub_server.blob_name("model.safetensors", self.repository.files["model.safetensors"]))
        self.assertEqual(self.mica("run", NAME, *PROMPT).stdout, expected)

    def test_models_pulled_by_other_tools_are_found(self):
        """A folder as written by huggingface_hub 1.0; no server is needed."""
        self.hub.respond = lambda path, headers: (500,)
        snapshot = self.place / "snapshots" / ("a" * 40)
        for folder in (snapshot, self.place / "refs", self.place / "blobs"):
            folder.mkdir(parents=True)
        (self.place / "refs/main").write_text("a" * 40)
        for name in PULLED:
            blob = hub_server.blob_name(name, self.repository.files[name])
            shutil.copy(MODEL / name, self.place / "blobs" / blob)
            os.symlink(f"../../blobs/{blob}", snapshot / name)
        self.assertEqual(self.mica("run", NAME, *PROMPT).stdout, program(MODEL).run(*PROMPT).stdout)
        self.assertEqual(self.hub.requests, [])
        os.unlink(snapshot / "model.safetensors")
        self.refused(f"{NAME}: is neither a path nor among the pulled models in {self.home}/hub; unset HF_HUB_OFFLINE to pull it",
                     arguments=("run", NAME), env={"HF_HUB_OFFLINE": "1"})
        self.refused(f"{NAME}: HF_HUB_OFFLINE is set; unset it to pull", env={"HF_HUB_OFFLINE": "true"})
        self.assertEqual(self.hub.requests, [])

    def test_the_token_goes_to_the_hub_only(self):
        self.hub.token = "hf_secret"
        self.refused(f"{NAME}: does not exist at {self.hub.endpoint} or is private; check the name, or set HF_TOKEN")
        self.refused(f"{NAME}: is not accessible with this token at {self.hub.endpoint}; check the name and HF_TOKEN", env={"HF_TOKEN": "hf_other"})
        (self.home / "token").write_text("hf_secret\n")
        self.hub.requests.clear()
        self.check_whole(self.pull())
        for host, path, headers in self.hub.requests:
            self.assertEqual(headers.get("authorization"), "Bearer hf_secret" if host == "hub" else None, path)
        self.assertEqual(len(self.large_requests()), 1)
        self.refused("HF_TOKEN: does not contain a Hugging Face token; correct or remove it", env={"HF_TOKEN": "a\r\nX-Other: b"})

    def test_redirects_within_the_hub_keep_the_token(self):
        """As for renamed repositories."""
        self.hub.token = "t"
        old = "mica-test/old"
        self.hub.respond = lambda path, headers: (307, {"Location": path.replace(old, NAME)}) if old in path else None
        path = self.pull(old, env={"HF_TOKEN": "t"})
        self.assertTrue(all(headers.get("authorization") for host, _, headers in self.hub.requests if host == "hub"))
        self.assertEqual(path.parent.parent.name, "models--mica-test--old")
        self.assertEqual((path / "config.json").read_bytes(), self.repository.files["config.json"])

    def test_interrupted_connections_are_resumed(self):
        self.hub.cut = lambda path, start: 1_000_000
        self.check_whole(self.pull())
        weights = len(self.repository.files["model.safetensors"])
        starts = [int(headers.get("range", "bytes=0-").removeprefix("bytes=").removesuffix("-")) for headers in self.large_requests()]
        self.assertEqual((starts[0], starts), (0, sorted(set(starts))))
        self.assertGreater(len(starts), 3)
        self.assertEqual(self.hub.sent["model.safetensors"], weights, "no byte was sent twice")
        note(self, f"{weights} bytes in {len(starts)} requests")

    def test_a_server_without_ranges_starts_over(self):
        cuts = iter((100_000, 200_000))
        self.hub.cut = lambda path, start: next(cuts, None)
        self.hub.knows_ranges = False
        self.check_whole(self.pull())
        self.assertEqual(len(self.large_requests()), 3)

    def test_repeated_interruptions_are_an_error(self):
        self.hub.cut = lambda path, start: 0
        self.refused("model.safetensors", "; try again later")
        self.assertEqual(len(self.large_requests()), 5)
        self.assertFalse((self.place / "refs").exists())

    def test_an_interrupted_pull_is_resumed(self):
        """By SIGKILL in the middle of the large file, and by Ctrl-C."""
        size = len(self.repository.files["model.safetensors"])
        unfinished = self.place / "blobs" / (hub_server.blob_name("model.safetensors", self.repository.files["model.safetensors"]) + ".incomplete")
        self.hub.pause = lambda path, sent: time.sleep(0.05 if sent else 0)
        reached = 0
        for signal_ in (signal.SIGKILL, signal.SIGINT):
            process = subprocess.Popen([harness.mica, "pull", NAME], env={**os.environ, **self.env}, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            start = reached
            harness.until(lambda: unfinished.exists() and unfinished.stat().st_size > start, "no byte is written")
            process.send_signal(signal_)
            self.assertEqual((process.communicate(timeout=harness.SECONDS), process.returncode), ((b"", b""), -signal_))
            self.assertGreater(unfinished.stat().st_size, reached)
            reached = unfinished.stat().st_size
            self.assertLess(reached, size)
            self.assertFalse((self.place / "refs").exists())
        listed = self.mica("list").stdout.decode()
        self.assertIn(f"{NAME} (interrupted)", listed)
        self.hub.pause = lambda path, sent: None
        self.hub.requests.clear()
        self.check_whole(self.pull())
        self.assertEqual([headers["range"] for headers in self.large_requests()], [f"bytes={reached}-"])

    def test_a_damaged_partial_file_is_downloaded_again(self):
        data = self.repository.files["model.safetensors"]
        blob = self.place / "blobs" / hub_server.blob_name("model.safetensors", data)
        blob.parent.mkdir(parents=True)
        for damaged in (b"x" * 1000, b"x" * len(data), b"x" * (len(data) + 1), data[:5000]):
            blob.unlink(missing_ok=True)
            blob.with_name(blob.name + ".incomplete").write_bytes(damaged)
            self.check_whole(self.pull())

    def test_a_wrong_hash_is_refused(self):
        for name in ("config.json", "model.safetensors"):  # config.json comes first
            whole = self.repository.files[name]
            expected = hub_server.blob_name(name, whole)
            entries = self.repository.listing()
            self.hub.listing = lambda _, entries=entries: entries
            self.repository.files[name] = whole[:-1] + bytes([whole[-1] ^ 1])
            self.hub.respond = lambda path, headers: None
            if name == "model.safetensors":
                # The redirect already contains the hash; without its header, it is computed from the bytes.
                self.refused(name, "differs from the hub's listing")
                self.assertEqual((self.place / "blobs" / f"{expected}.incomplete").stat().st_size, 0)
                location = {"Location": f"{self.hub.cdn}/{NAME}/{name}"}
                self.hub.respond = lambda path, headers: (302, location) if path.endswith(name) else None
            error = self.refused(f"mica: error: {NAME}: {name}: does not match the hash in the hub's listing", "try again")
            self.assertNotIn("secret", error)
            self.assertFalse(any(blob.startswith(expected) for blob in self.blobs()), self.blobs())
            self.assertFalse((self.place / "refs").exists())
            self.repository.files[name] = whole
        self.hub.respond = lambda path, headers: None
        self.check_whole(self.pull())

    def test_a_wrong_size_is_refused(self):
        real = self.repository.listing()
        for more in (1, -1):
            entries = json.loads(json.dumps(real))
            for entry in entries:
                if entry["path"] == "model.safetensors":
                    entry["lfs"]["size"] += more
            self.hub.listing = lambda _, entries=entries: entries
            size = len(self.repository.files["model.safetensors"])
            self.refused(f"model.safetensors: has {size} bytes, but the hub's listing says {size + more}; try again, or check HF_ENDPOINT")
            (unfinished,) = (self.place / "blobs").glob("*.incomplete")
            self.assertEqual(unfinished.stat().st_size, 0)

    def test_another_part_is_refused(self):
        size = len(self.repository.files["config.json"])
        self.hub.respond = lambda path, headers: ((206, {"Content-Range": f"bytes 3-{size + 2}/{size + 3}"}, b" " * size)
                                                  if path.endswith("/config.json") else None)
        self.refused("config.json: is not the part that was requested; try again, or check HF_ENDPOINT")

    def test_responses_larger_than_announced(self):
        longer = self.repository.files["config.json"] + b" "
        self.hub.respond = lambda path, headers: (200, {"Connection": "close"}, longer) if path.endswith("/config.json") else None
        self.refused("config.json: has more bytes than the hub's listing says; try again, or check HF_ENDPOINT")
        self.hub.respond = lambda path, headers: (200, {}, b" " * ((32 << 20) + 1)) if "/revision/" in path else None
        self.refused(f"{self.hub.endpoint}/api/models/{NAME}/revision/main: answers with too many bytes; check HF_ENDPOINT")

    def test_a_model_that_is_larger_than_the_disk(self):
        self.hub.listing = lambda entries: [entry | {"lfs": entry["lfs"] | {"size": 1 << 45}} if entry["path"] == "model.safetensors" else entry
                                            for entry in entries]
        error = self.refused(f"mica: error: {NAME}: {self.home}/hub: has ")
        free, needed = re.search(r"has (.*) free of the (.*) that", error).groups()
        self.assertIn(f"has {free} free of the {needed} that {NAME} needs; free space or set HF_HOME to a folder with free space", error)
        self.assertIn("32.00 TiB", needed)

    def test_a_home_that_is_a_file(self):
        file = self.home / "file"
        file.touch()
        locks = f"{file}/hub/.locks/models--mica-test--mini.mind_1"
        self.refused(f"{locks}: cannot be created (Not a directory); set HF_HOME to another folder", env={"HF_HOME": str(file)})

    def test_statuses(self):
        answers = []
        self.hub.respond = lambda path, headers: answers.pop(0) if answers else None
        for answer, *words in (((403,), f"{NAME}: is gated, or the token may not read it; accept its terms at {self.hub.endpoint}/{NAME} and set HF_TOKEN"),
                               ((401, {"X-Error-Code": "GatedRepo"}), "is gated"),
                               ((404,), f"{NAME}: does not exist at {self.hub.endpoint}; check the name"),
                               ((400,), "answers with status 400; check HF_ENDPOINT"),
                               ((429, {"Retry-After": "3600"}), "status 429", "; try again in 3600 seconds")):
            answers[:] = [answer]
            self.refused(*words)
        # Gated repositories can be listed, but not downloaded.
        self.hub.respond = lambda path, headers: (403, {"X-Error-Code": "GatedRepo"}) if "/resolve/" in path else None
        self.refused("is gated", "HF_TOKEN")
        self.hub.respond = lambda path, headers: (503,)
        self.hub.requests.clear()
        self.refused("status 503", "try again later")
        self.assertEqual(len(self.hub.requests), 5)
        # Temporary errors.
        answers[:] = [(429, {"Retry-After": "1"}), (502,), (500,)]
        self.hub.respond = lambda path, headers: answers.pop(0) if answers else None
        start = time.monotonic()
        self.check_whole(self.pull())
        self.assertGreater(time.monotonic() - start, 1)

    def test_unreachable_hub(self):
        error = self.refused("mica-test/none: is not a path, and cannot be pulled from the hub:", "127.0.0.1:9",
                             arguments=("compile", "mica-test/none", "-o", self.home / "out"), env={"HF_ENDPOINT": "http://127.0.0.1:9"})
        reason = re.search(r"cannot be read [(](.*)[)];", error)[1]
        self.assertIn(f"cannot be read ({reason}); check the network and HF_ENDPOINT", error)
        self.refused('HF_ENDPOINT: is "file:///etc", which is not an http(s) address; set it to one such as https://huggingface.co',
                     env={"HF_ENDPOINT": "file:///etc"})
        self.refused('HF_HUB_DOWNLOAD_TIMEOUT: is "0", which is not a number of seconds; set it to a whole number from 1',
                     env={"HF_HUB_DOWNLOAD_TIMEOUT": "0"})

    def test_redirects_elsewhere_are_refused(self):
        for target in ("file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://127.0.0.1/x"):
            self.hub.respond = lambda path, headers, target=target: (302, {"Location": target})
            self.refused(f'redirects to "{target}", which is not followed; check HF_ENDPOINT')
        self.hub.respond = lambda path, headers: (302, {"Location": path})
        self.hub.requests.clear()
        self.refused("redirects too often; check HF_ENDPOINT")
        self.assertLess(len(self.hub.requests), 20)

    def test_hostile_listings(self):
        good = {"type": "file", "path": "config.json", "size": 2, "oid": "a" * 40}
        for change, *words in (({"path": "../../../evil"}, 'lists "../../../evil"; do not use this repository'), ({"path": "/etc/evil"}, '"/etc/evil"'), ({"path": "a//b"}, '"a//b"'),
                               ({"path": "a/.."}, '"a/.."'), ({"path": "a\\b"}, "lists"), ({"path": "a\nb"}, "lists"), ({"path": ""}, "lists"),
                               ({"path": 3}, "without a path"), ({"path": "x" * 300}, "lists"), ({"size": -1}, 'lists "config.json" without a size and a hash; try again, or check HF_ENDPOINT'),
                               ({"size": 1 << 60}, "without a size"), ({"size": "2"}, "without a size"), ({"oid": "../x"}, "and a hash"),
                               ({"oid": "A" * 40}, "and a hash"), ({"lfs": {"oid": "a" * 40, "size": 2}}, "and a hash")):
            self.hub.listing = lambda entries, change=change: [good | change]
            self.refused(*words)
        self.hub.listing = lambda entries: ["x"]
        self.refused("is not a list of files")
        for body in (b"", b"{", b"[]", b'{"sha": "main"}', b'{"sha": "../x"}', b"[" * 100_000, b'{"a":' * 1000):
            self.hub.respond = lambda path, headers, body=body: (200, {}, body) if "/revision/" in path else None
            self.refused("/revision/main")
        self.hub.respond = lambda path, headers: (200, {"Link": f'<{self.hub.endpoint}{path}>; rel="next"'}, b"[]") if "/tree/" in path else None
        self.refused(f"{NAME}: has too many files; choose another repository")
        self.assertEqual(self.blobs(), [])
        self.assertEqual([p.name for p in self.home.rglob("*evil*")], [])

    def test_names_are_validated(self):
        for name in ("model", "a/b/c", "../x", "a/..", "a/.b", "a/b--c", "a/b c", "a/b:", "a/b:../c", "a/b:/c", "/a/b", "a/", "a/b:c\n"):
            self.refused("write OWNER/NAME", arguments=("pull", name))
        self.refused("a/b:../c: does not name a file of a/b; write OWNER/NAME:FILE or, for instance, OWNER/NAME:Q4_K_M", arguments=("pull", "a/b:../c"))
        self.assertEqual(self.hub.requests, [])
        # As before if it cannot be such a name.
        for path in ("a/b/c", "./a/b", "a/b.gguf", "a/b.mlir", "/a/b"):
            self.refused(f"mica: error: {path}: ", "does not exist; pass a model folder, a GGUF file, a .mlir file, or OWNER/NAME on the Hugging Face hub", arguments=("compile", path, "-o", self.home / "out"))
        self.assertEqual(self.hub.requests, [])

    def test_gguf(self):
        """By quantization, by file, in parts; the candidates of an ambiguous name are listed."""
        converter = gguf_file.Converter(GOLDENS / "models/llama-gqa", "F32").convert()
        whole = pathlib.Path(converter.write(os.path.join(harness.folder("hub-gguf"), "whole.gguf")))
        first = pathlib.Path(converter.write_parts(os.path.join(harness.folder("hub-gguf"), "parts"), (len(converter.tensors) - 3, 3)))
        parts = sorted(first.parent.iterdir())
        name = "mica-test/mini-GGUF"
        files = {"mini-Q8_0.gguf": whole.read_bytes(), "mini.q4_k_m.gguf": b"GGUF4", "mini-UD-Q4_K_XL.gguf": b"GGUF5", "mini-Q4_K_XL.gguf": b"GGUF6",
                 "mmproj-Q8_0.gguf": b"no", "README.md": b"", "F16/mini-F16-00002-of-00002.gguf": b"two",
                 **{f"F32/mini-F32-{i + 1:05}-of-{len(parts):05}.gguf": part.read_bytes() for i, part in enumerate(parts)}}
        self.hub.repositories[name] = hub_server.Repository(files)
        tokens = ("--tokens", "5,6,7", "-n", 4, "--temperature", 0, "--print-tokens", "--ignore-eos")
        expected = program(whole).run(*tokens).stdout
        self.assertEqual(self.pull(f"{name}:q8_0").name, "mini-Q8_0.gguf")
        self.assertEqual(self.pull(f"{name}:Q4_K_M").read_bytes(), b"GGUF4")
        self.assertEqual(self.pull(f"{name}:UD-Q4_K_XL").read_bytes(), b"GGUF5")
        self.assertEqual(self.pull(f"{name}:mini-Q4_K_XL.gguf").read_bytes(), b"GGUF6")
        self.assertEqual(self.mica("run", f"{name}:Q8_0", *tokens).stdout, expected)
        self.assertEqual(self.mica("run", f"{name}:F32", *tokens).stdout, expected)
        self.assertEqual(len(list((self.home / "hub/models--mica-test--mini-GGUF/snapshots").rglob("*F32*.gguf"))), len(parts))
        for selection, *words in ((":Q4_K_XL", f"could be any of mini-UD-Q4_K_XL.gguf, mini-Q4_K_XL.gguf; choose one with {name}:FILE"),
                                  (":Q9", "is not a file of the repository, nor the end of a GGUF file's name; choose one of mini-Q8_0.gguf"), ("", "could be any of mini-Q8_0.gguf"), (":8_0", "choose one of"),
                                  (":mini-Q3.gguf", "choose one of"), (":F16", "choose one of")):
            self.refused(*words, arguments=("pull", name + selection))
        self.assertEqual(self.pull(f"{name}:README.md").name, "README.md")
        # Files are removed one by one, and only blobs that no other file needs.
        blobs = self.home / "hub/models--mica-test--mini-GGUF/blobs"
        before = set(os.listdir(blobs))
        self.mica("rm", f"{name}:F32")
        gone = before - set(os.listdir(blobs))
        self.assertEqual(gone, {hub_server.blob_name("x.gguf", part.read_bytes()) for part in parts})
        self.assertNotIn("mini-F32", self.mica("list").stdout.decode())
        self.assertIn(f"{name}:mini-Q8_0.gguf", self.mica("list").stdout.decode())
        folder = self.home / "hub/models--mica-test--mini-GGUF"
        self.refused(f"{name}:F32: is not among the pulled files in {folder}; see `mica list`", arguments=("rm", f"{name}:F32"))

    def test_shards(self):
        files = model_files()
        data = files.pop("model.safetensors")
        files["model-00001-of-00001.safetensors"] = data
        files["model.safetensors.index.json"] = json.dumps({"weight_map": {"a": "model-00001-of-00001.safetensors"}}).encode()
        self.hub.repositories[NAME] = hub_server.Repository(files)
        expected = program(MODEL).run(*PROMPT).stdout
        self.assertEqual(self.mica("run", NAME, *PROMPT).stdout, expected)
        (snapshot,) = (self.place / "snapshots").iterdir()
        self.assertEqual(sorted(os.listdir(snapshot)), sorted({*PULLED, "model-00001-of-00001.safetensors", "model.safetensors.index.json"} - {"model.safetensors"}))
        os.unlink(snapshot / "model-00001-of-00001.safetensors")
        before = len(self.hub.requests)
        self.assertEqual(self.mica("run", NAME, *PROMPT).stdout, expected)
        self.assertGreater(len(self.hub.requests), before, "a missing shard is noticed")
        for shard, why in (("../x.safetensors", "model.safetensors.index.json"),
                           ("x.safetensors", f'{NAME}: names "x.safetensors", which is not in the repository; choose another repository')):
            files["model.safetensors.index.json"] = json.dumps({"weight_map": {"a": shard}}).encode()
            self.hub.repositories[NAME] = hub_server.Repository(files)
            self.refused(why)

    def test_concurrent_pulls(self):
        """The second one waits, and downloads nothing twice."""
        self.hub.pause = lambda path, sent: time.sleep(0.01)
        processes = [subprocess.Popen([harness.mica, "pull", NAME], env={**os.environ, **self.env}, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
        for process in processes:
            out, error = process.communicate(timeout=harness.SECONDS)
            self.assertEqual((process.returncode, error), (0, b""))
            self.check_whole(pathlib.Path(out.decode().strip()))
        self.assertEqual(self.hub.sent["model.safetensors"], len(self.repository.files["model.safetensors"]))

    def test_a_model_that_is_being_pulled_is_not_removed(self):
        self.hub.pause = lambda path, sent: time.sleep(0.05)
        process = subprocess.Popen([harness.mica, "pull", NAME], env={**os.environ, **self.env}, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        harness.until(lambda: self.hub.sent, "nothing is sent")
        self.refused(f"{NAME}: is being pulled; try again later", arguments=("rm", NAME))
        self.hub.pause = lambda path, sent: None
        process.communicate(timeout=harness.SECONDS)
        self.assertEqual(process.returncode, 0)

    def test_a_full_disk(self):
        limit = 1 << 17
        done = subprocess.run([harness.mica, "pull", NAME], env={**os.environ, **self.env}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        error = done.stderr.decode()
        self.assertEqual((done.returncode, error.count("\n")), (1, 1), error)
        self.assertIn("cannot be written (File too large); raise the limit (ulimit -f) or set HF_HOME to a folder with free space", error)
        self.assertFalse((self.place / "refs").exists())
        self.check_whole(self.pull())

    def test_a_stalled_transfer_is_retried(self):
        stops = iter((10,))  # libcurl's mean is that of the last five seconds
        self.hub.pause = lambda path, sent: time.sleep(next(stops, 0)) if sent > 100_000 else None
        self.check_whole(self.pull(env={"HF_HUB_DOWNLOAD_TIMEOUT": "1"}))
        self.assertGreater(len(self.large_requests()), 1)

    def test_a_newer_commit(self):
        """Shares unchanged files with the old snapshot, which can still be removed."""
        old = self.pull()
        changed = dict(self.repository.files, **{"generation_config.json": b'{"temperature": 0.5}'})
        self.hub.repositories[NAME] = self.repository = hub_server.Repository(changed)
        self.hub.sent.clear()
        new = self.pull()
        self.assertNotEqual(new, old)
        self.assertEqual(self.hub.sent, {}, "the weights are the same")
        self.assertEqual((self.place / "refs/main").read_text(), new.name)
        (model,) = json.loads(self.mica("list", "--json").stdout)["models"]["list"]
        self.assertEqual({s["commit"]: s["main"] for s in model["snapshots"]}, {old.name: False, new.name: True})
        self.assertIn(f"{NAME} ({old.name[:8]})", self.mica("list").stdout.decode())
        self.mica("rm", NAME)
        self.assertFalse(self.place.exists())

    def test_progress(self):
        """A bar on a terminal, where nothing of it is left."""
        self.hub.pause = lambda path, sent: time.sleep(0.01)
        *shown, last = harness.screen_of([harness.mica, "pull", NAME], "stderr", self.env).split(b"\r\x1b[K")
        self.assertEqual(last, b"")
        bars = [re.fullmatch(rb"#*\.* +(\d+) % (.+)", line) for line in shown[1:]]
        self.assertTrue(all(bars), shown)
        large = [int(bar[1]) for bar in bars if bar[2].startswith(b"model.safetensors (")]
        self.assertGreater(len(set(large)), 1)
        self.assertEqual(large, sorted(large))
