"""`PROGRAM serve` seen by others' clients, which PyPI has."""

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
