"""`PROGRAM serve` seen by others' clients, which PyPI has."""

import json
import os
import subprocess
import sys
import unittest

import harness
from harness import Case
from test_serve import NAME, Server


def client_python(*packages):
    """A Python with these packages; skips the test where they cannot be fetched."""

    def make():
        place = harness.folder("clients")
        python = os.path.join(place, "bin/python")
        for command in ([sys.executable, "-m", "venv", place], [python, "-m", "pip", "install", "-q", *packages]):
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=harness.SECONDS, check=False)
            if done.returncode:
                return None
        return python

    made = harness.once(("clients", packages), make)
    if made is None:
        raise unittest.SkipTest(f"needs {' and '.join(packages)} from PyPI, which cannot be reached")
    return made


OPENAI = r"""
import sys
import openai

client = openai.OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0)
model = client.models.list().data[0].id
messages = [{"role": "user", "content": "27 + 15"}]
whole = client.chat.completions.create(model=model, messages=messages, temperature=0, max_tokens=20)
assert whole.choices[0].message.content.strip() == "42", whole
assert whole.choices[0].finish_reason == "stop" and whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens
events = list(client.chat.completions.create(model=model, messages=messages, temperature=0, max_tokens=20, stream=True,
                                             stream_options={"include_usage": True}, logprobs=True, top_logprobs=2))
assert "".join(event.choices[0].delta.content or "" for event in events[:-1]) == whole.choices[0].message.content, events
assert events[-1].usage.completion_tokens == whole.usage.completion_tokens and not events[-1].choices
assert all(len(token.top_logprobs) == 2 for event in events[:-1] if event.choices[0].logprobs for token in event.choices[0].logprobs.content)
texts = client.completions.create(model=model, prompt=["count from 7 to 9:", "sort: c a b\n->"], temperature=0, max_tokens=8, logprobs=1)
assert [choice.index for choice in texts.choices] == [0, 1] and texts.choices[0].text.strip().startswith("7 8 9"), texts
for error, fields in ((openai.NotFoundError, {"model": "other"}), (openai.BadRequestError, {"user": "me"}),
                      (openai.BadRequestError, {"temperature": 3}),
                      (openai.BadRequestError, {"tools": [{"type": "function", "function": {"name": "f"}}]})):
    try:
        client.chat.completions.create(**{"model": model, "messages": messages, **fields})
    except error as refused:
        assert refused.body["message"], refused
    else:
        raise AssertionError(f"{fields} is accepted")
print(model)
"""


class Clients(Case):
    def test_openai(self):
        python = client_python("openai")
        with Server("--sequences", "2") as server:
            done = harness.execute([python, "-c", OPENAI, f"http://{server.host}:{server.port}/v1"])
            self.assertEqual(done.stdout.decode().strip(), NAME)
            self.assertEqual(server.terminate()[1], 0)


class Description(Case):
    def test_openapi(self):
        """The description has the fields that the server takes, and no other."""
        with Server("--sequences", "1") as server:
            status, _, text = server.ask("GET", "/openapi.json")
            self.assertEqual(status, 200)
            described = json.loads(text)
            schema = lambda path: described["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
            self.assertEqual(set(described["paths"]), {"/", "/app.js", "/style.css", "/health", "/metrics", "/openapi.json", "/v1/models",
                                                       "/v1/chat/completions", "/v1/completions", "/tokenize", "/detokenize"})
            for path, required in (("/v1/chat/completions", {"messages": [{"role": "user", "content": "27 + 15"}]}),
                                   ("/v1/completions", {"prompt": "a"})):
                fields = schema(path)["properties"]
                self.assertEqual(schema(path)["required"], list(required))
                self.assertIn("temperature", fields)
                for field in [*fields, "nonsense"]:
                    # No field can be an object with this key.
                    status, answer = server.post(path, {**required, field: {"nonsense": 1}})
                    self.assertEqual((status, f"the field '{field}' is not implemented" in answer["error"]["message"]),
                                     (400, field == "nonsense"), answer)

    def test_schemathesis(self):
        """No status that is not described, none of the server's own errors; and what the description rules out is refused."""
        python = client_python("schemathesis")
        with Server("--sequences", "2") as server:
            url = f"http://{server.host}:{server.port}"
            done = harness.execute([os.path.join(os.path.dirname(python), "schemathesis"), "run", f"{url}/openapi.json", "--url", url, "--seed", "1",
                                    "--max-examples", "20", "--no-color", "--mode", "all",
                                    "--checks", "not_a_server_error,status_code_conformance,content_type_conformance,negative_data_rejection"],
                                   check=False, cwd=harness.folder("schemathesis"))
            self.assertIn("Test cases:", done.stdout.decode())
            self.assertEqual(done.returncode, 0, done.stdout.decode()[-6000:] + done.stderr.decode()[-2000:])
            self.assertEqual(server.ask("GET", "/health")[0], 200)
