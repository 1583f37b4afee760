"""Chat templates of published models, from the source of a package on PyPI that contains them."""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

import harness
from harness import Case, for_each
from scripted import scripted
from served import Server
from test_serve_clients import from_pypi
from test_serve_tools import CHAT, FORMATS, QUESTION, START, TEMPLATES, TOOLS, ToolCase

PACKAGE = "llama-cpp-python==0.3.36"
FOLDER = "vendor/llama.cpp/models/templates/"
#: Models whose templates contain calls, and the format of their answers.
CALLS = {"Qwen-Qwen2.5-7B-Instruct": "qwen2",
         "Qwen-Qwen3-0.6B": "qwen2",
         "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use": "qwen2",
         "NousResearch-Hermes-3-Llama-3.1-8B-tool_use": "qwen2",
         "meta-llama-Llama-3.1-8B-Instruct": "llama3",
         "meta-llama-Llama-3.2-3B-Instruct": "llama3",
         "meta-llama-Llama-3.3-70B-Instruct": "llama3",
         "mistralai-Mistral-Nemo-Instruct-2407": "mistral",
         "ibm-granite-granite-4.0": "qwen2",
         "ibm-granite-granite-4.1": "qwen2"}
#: Models whose templates contain calls in a format that is not supported.
OTHERS = ["Mistral-Small-3.2-24B-Instruct-2506", "deepseek-ai-DeepSeek-V3.1", "openai-gpt-oss-120b", "Qwen3.5-4B", "LFM2-8B-A1B",
          "LFM2.5-8B-A1B", "NVIDIA-Nemotron-Nano-v2", "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "google-gemma-4-31B-it"]


def published():
    """The folder of the templates; skips the test if PyPI cannot be reached."""

    def make():
        place = pathlib.Path(harness.folder("published"))
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", "llama-cpp-python", "--dest", str(place), PACKAGE]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=harness.SECONDS, check=False)
        if done.returncode:
            return None, (done.stdout + done.stderr).decode()
        [archive] = place.glob("*.tar.gz")
        with tarfile.open(archive) as source:
            for member in source:
                if FOLDER in member.name and member.name.endswith(".jinja"):
                    (place / pathlib.PurePath(member.name).name).write_bytes(source.extractfile(member).read())
        archive.unlink()
        return place, ""

    return from_pypi(("published", PACKAGE), make, PACKAGE)


def model_of(name, scripts):
    def with_start(template):
        # Some templates change `messages`.
        return "{%- set given = messages %}" + template + START.replace("messages[-1]", "given[-1]")

    def make():
        template = with_start((published() / f"{name}.jinja").read_text(encoding="utf-8"))
        place = scripted(name, template, scripts, ("<|python_tag|>", "[TOOL_CALLS]"))
        if name.endswith("-tool_use"):
            # It is used for tools only, beside a default one.
            (place / "chat_template.jinja").unlink()
            settings = json.loads((place / "tokenizer_config.json").read_text(encoding="utf-8"))
            default = with_start((TEMPLATES / "chatml.jinja").read_text(encoding="utf-8").rstrip("\n"))
            settings["chat_template"] = [{"name": "default", "template": default}, {"name": "tool_use", "template": template}]
            (place / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
        return place

    return harness.once(("published", name), make)


@for_each(CALLS, "calls")
class PublishedTools(ToolCase):
    def calls(self, name):
        scripts = FORMATS[CALLS[name]]
        self.check_calls(model_of(name, scripts), scripts)


@for_each(OTHERS, "refused")
class PublishedRefusals(Case):
    def refused(self, name):
        with Server("--sequences", "1", model=model_of(name, FORMATS["qwen2"])) as server:
            status, answer = server.post(CHAT, {"messages": QUESTION, "tools": TOOLS})
            self.assertEqual((status, answer["error"]["param"]), (400, "tools"), answer)
            self.assertIn("none of the supported call formats", answer["error"]["message"])


class Published(Case):
    def test_texts_equal_those_of_jinja2(self):
        place = pathlib.Path(harness.folder("templates"))
        for path in published().glob("*.jinja"):
            if "from_json" not in path.read_text(encoding="utf-8"):  # a filter that transformers does not have
                shutil.copy(path, place)
        shutil.copy(harness.ROOT / "tests/jinja/templates/conversations.json", place)
        runner = pathlib.Path(harness.mica).with_name("mica-jinja-run")
        done = harness.execute([sys.executable, harness.ROOT / "tests/jinja/compare.py", runner, "templates", place], check=False)
        if done.returncode == 77:
            self.skipTest(done.stdout.decode().splitlines()[-1])
        self.assertEqual(done.returncode, 0, done.stdout.decode()[-5000:])
        rendered = re.fullmatch(r"\d+ templates: (\d+) rendered alike, 0 refused by Mica alone, 0 differ", done.stdout.decode().strip())
        self.assertGreater(int(rendered[1]), 500)
