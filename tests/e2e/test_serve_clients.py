"""`PROGRAM serve` with third-party clients from PyPI."""

import json
import os
import re
import select
import shutil
import subprocess
import sys
import unittest

import harness
from harness import Case, program
from served import MODEL, NAME, Server
from test_serve_fields import REFERENCE
from test_serve_tools import FORMATS, TOOLS, model_of


#: The versions that are tested.
VERSIONS = {"openai": "3.57.0", "schemathesis": "4.32.5", "jsonschema": "4.26.0", "pydantic-ai-slim[openai]": "2.68.0"}
#: What pip and the resolver say if PyPI cannot be reached.
UNREACHABLE = re.compile(r"NewConnectionError|Failed to establish a new connection|Temporary failure in name resolution|Name or service not known|"
                         r"Network is unreachable|Connection (refused|reset|aborted)|ConnectTimeoutError|ReadTimeoutError|ProxyError|Max retries exceeded")


def from_pypi(key, make, what):
    """What `make` returns, the same for all tests with `key`: it returns this and "", or None and the output of a failed command. Skips the
    test if PyPI cannot be reached."""
    made, problem = harness.once(key, make)
    if made is None and UNREACHABLE.search(problem):
        raise unittest.SkipTest(f"needs {what} from PyPI, which cannot be reached")
    if made is None:
        raise AssertionError(f"{what} cannot be installed: {problem}")
    return made


def client_python(*packages):
    """A Python with these packages; skips the test if PyPI cannot be reached."""

    def make():
        place = harness.folder("clients")
        python = os.path.join(place, "bin/python")
        for command in ([sys.executable, "-m", "venv", place], [python, "-m", "pip", "install", "-q", *(f"{name}=={VERSIONS[name]}" for name in packages)]):
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=harness.SECONDS, check=False)
            if done.returncode:
                return None, (done.stdout + done.stderr).decode()
        return python, ""

    return from_pypi(("clients", packages), make, " and ".join(packages))


#: Prints the fields of requests that the package has types for.
FIELDS = r"""
import json
from openai.types import completion_create_params as text
from openai.types.chat import completion_create_params as chat

kinds = lambda module: (module.CompletionCreateParamsNonStreaming, module.CompletionCreateParamsStreaming)
fields = lambda module: sorted({field for kind in kinds(module) for field in kind.__annotations__})
print(json.dumps({"/v1/chat/completions": fields(chat), "/v1/completions": fields(text)}))
"""
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
assert client.models.retrieve(model).id == model
texts = client.completions.create(model=model, prompt=["count from 7 to 9:", "sort: c a b\n->"], temperature=0, max_tokens=8, logprobs=1)
assert [choice.index for choice in texts.choices] == [0, 1] and texts.choices[0].text.strip().startswith("7 8 9"), texts
assert texts.choices[0].logprobs.tokens and texts.choices[0].logprobs.text_offset[0] == 0, texts
several = client.chat.completions.create(model=model, messages=messages, n=3, temperature=1, seed=1, max_tokens=20)
assert [choice.index for choice in several.choices] == [0, 1, 2] and several.usage.completion_tokens > 3, several
streamed = {}
for event in client.completions.create(model=model, prompt=["count from 7 to 9:", "sort: c a b\n->"], temperature=0, max_tokens=8, stream=True):
    for choice in event.choices:
        streamed[choice.index] = streamed.get(choice.index, "") + choice.text
assert streamed == {choice.index: choice.text for choice in texts.choices}, streamed
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

# Clients that cancel: the server must notice.
CANCEL = r"""
import asyncio
import sys
import openai

client = openai.AsyncOpenAI(base_url=sys.argv[1], api_key="none", max_retries=0)

def endless(**fields):
    return client.completions.create(model=sys.argv[2], prompt="27", max_tokens=900, n=64, temperature=1, extra_body={"ignore_eos": True}, **fields)

async def main():
    task = asyncio.create_task(endless())
    await asyncio.to_thread(sys.stdin.readline)  # it is running
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        print("canceled", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    async with await endless(stream=True) as stream:
        async for event in stream:
            assert event.choices[0].text is not None
            break
    print("left", flush=True)
    await asyncio.to_thread(sys.stdin.readline)

asyncio.run(main())
"""

# A stream that begins with comments, because it waits.
WAITING = r"""
import sys
import openai

client = openai.OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0)
stream = client.completions.create(model=sys.argv[2], prompt="count from 7 to 9:", temperature=0, max_tokens=8, stream=True)
print("begun", flush=True)
print("".join(event.choices[0].text for event in stream).strip(), flush=True)
"""


class Curl(Case):
    def curl(self):
        found = shutil.which("curl")
        if not found:
            self.skipTest("needs curl, which is not installed")
        return found

    def test_events_as_they_come(self):
        """What the server sends is printed while the stream continues; without -N, curl itself holds it back."""
        curl = self.curl()
        with Server("--sequences", "1", "--sse-ping-interval", "1") as server, server.busy():
            def started(*options):
                return subprocess.Popen([curl, "-sS", *options, f"http://{server.host}:{server.port}/v1/completions",
                                         "-d", json.dumps({"prompt": "27", "stream": True})], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)

            with started("-N") as process:
                self.assertEqual(process.stdout.readline(), b": waiting\n")
                self.assertGreater(server.metric("mica_completions_waiting"), 0)
                with started() as other:
                    # Two more comments have arrived at the first client; both were sent after the other one had begun.
                    for _ in range(3):
                        self.assertEqual([process.stdout.readline() for _ in range(2)], [b"\n", b": waiting\n"])
                    self.assertEqual(select.select([other.stdout], [], [], 0)[0], [])
                    other.kill()
                process.kill()

    def test_events(self):
        """The command of docs/serve.md."""
        curl = self.curl()
        with Server("--sequences", "1") as server:
            body = {"messages": [{"role": "user", "content": "27 + 15"}], "temperature": 0, "max_tokens": 20, "stream": True}
            url = f"http://{server.host}:{server.port}/v1/chat/completions"
            done = harness.execute([curl, "-sSN", "--fail-with-body", url, "-d", json.dumps(body)])
            *events, last, rest = done.stdout.decode().split("\n\n")
            self.assertEqual((last, rest), ("data: [DONE]", ""))
            text = "".join(json.loads(event.removeprefix("data: "))["choices"][0]["delta"].get("content", "") for event in events)
            self.assertEqual(text, server.chat(max_tokens=20)["choices"][0]["message"]["content"])
            self.assertEqual(server.terminate()[1], 0)


class Clients(Case):
    def test_openai(self):
        python = client_python("openai")
        with Server("--sequences", "2") as server:
            done = harness.execute([python, "-c", OPENAI, f"http://{server.host}:{server.port}/v1"])
            self.assertEqual(done.stdout.decode().strip(), NAME)
            self.assertEqual(server.terminate()[1], 0)

    def started(self, script, server):
        python = client_python("openai")
        return subprocess.Popen([python, "-c", script, f"http://{server.host}:{server.port}/v1", NAME], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, text=True)

    def test_openai_cancels(self):
        with Server("--sequences", "1") as server, self.started(CANCEL, server) as client:
            # The second request, a stream, begins when the first one was canceled.
            server.wait_for_metric("mica_completions_running", 1)
            for number, said in enumerate(("canceled\n", "left\n"), 1):
                client.stdin.write("\n")
                client.stdin.flush()
                self.assertEqual(client.stdout.readline(), said)
                server.wait_for_metric('mica_requests_total{outcome="canceled"}', number)
            server.wait_for_metric("mica_completions_running", 0)
            client.communicate("\n", timeout=harness.SECONDS)
            self.assertEqual(client.returncode, 0)

    def test_openai_waits(self):
        with Server("--sequences", "1", "--sse-ping-interval", "1") as server:
            with server.busy():
                client = self.started(WAITING, server)
                # The client has the header, although there is no token.
                self.assertEqual(client.stdout.readline(), "begun\n")
                self.assertGreater(server.metric("mica_completions_waiting"), 0)
            self.assertEqual(client.communicate(timeout=harness.SECONDS)[0].strip()[:5], "7 8 9")
            self.assertEqual(client.returncode, 0)


# An agent of pydantic-ai: the model calls a tool, gets the result, and answers.
AGENT = r"""
import asyncio
import sys
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai import OpenAIProvider

model = OpenAIChatModel(sys.argv[2], provider=OpenAIProvider(base_url=sys.argv[1], api_key="none"),
                        profile=OpenAIModelProfile(openai_supports_strict_tool_definition=False))
agent = Agent(model, model_settings={"temperature": 0})
calls = []

@agent.tool_plain
def add(a: int, b: int) -> int:
    'Adds.'
    calls.append((a, b))
    return a + b

def kinds(messages):
    return [part.part_kind for message in messages for part in message.parts if part.part_kind != "text" or part.content]

async def streamed():
    events = []
    async def listen(_, stream):
        async for event in stream:
            events.append(event.event_kind)
    run = await agent.run("27 + 15", event_stream_handler=listen)
    assert events.count("part_delta") > 2, events
    return run.output, run.all_messages()

whole = agent.run_sync("27 + 15")
text, messages = asyncio.run(streamed())
assert calls == [(27, 15)] * 2, calls
assert whole.output == text == "It is 42.", (whole.output, text)
assert kinds(messages) == kinds(whole.all_messages()), messages
print(*kinds(messages))
"""

# The deltas of a call, joined by openai's own client.
DELTAS = r"""
import sys
import openai

client = openai.OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0)
tools = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {
    "a": {"type": "number"}, "b": {"type": "number"}}}}}]
with client.chat.completions.stream(model=sys.argv[2], messages=[{"role": "user", "content": "27 + 15"}], tools=tools, temperature=0) as stream:
    events = list(stream)
    message = stream.get_final_completion().choices[0].message
deltas = [event.arguments_delta for event in events if event.type == "tool_calls.function.arguments.delta"]
[call] = message.tool_calls
assert (call.function.name, call.function.arguments) == ("add", "".join(deltas)), message
print(len([delta for delta in deltas if delta]), call.function.arguments)
"""


# Counts the pairs of (name of a schema, value) that conform to it, and those of changed values.
CONFORM = r"""
import json
import sys
import jsonschema

components, pairs = json.load(sys.stdin)
conforms = {name: jsonschema.Draft202012Validator({"components": components, "$ref": "#/components/schemas/" + name}).is_valid
            for name in components["schemas"]}
changed = [(name, {**value, "other": 1}) for name, value in pairs]
changed += [(name, {key: each for key, each in value.items() if key != left_out}) for name, value in pairs for left_out in value if left_out != "usage"]
changed += [(name, {**value, "choices": [{**choice, "index": "0"} for choice in value["choices"]]})
            for name, value in pairs if value.get("choices")]
print(*(sum(conforms[name](value) for name, value in each) for each in (pairs, changed)))
"""


class Agents(Case):
    def run_by(self, packages, script, family):
        python = client_python(*packages)
        with Server("--sequences", "1", model=model_of(family, FORMATS[family])) as server:
            done = harness.execute([python, "-c", script, f"http://{server.host}:{server.port}/v1", family])
            self.assertEqual(server.terminate()[1], 0)
            return done.stdout.decode().strip()

    def test_agent_calls_a_tool(self):
        for family in FORMATS:
            with self.subTest(family=family):
                self.assertRegex(self.run_by(["pydantic-ai-slim[openai]"], AGENT, family),
                                 "user-prompt (text )?tool-call tool-return text$")

    def test_streamed_tool_call(self):
        self.assertEqual(self.run_by(["openai"], DELTAS, "qwen2"), '2 {"a": 27, "b": 15}')


class Description(Case):
    def test_openapi(self):
        """The description has exactly the fields that the server accepts."""
        with Server("--sequences", "1") as server:
            status, _, text = server.ask("GET", "/openapi.json")
            self.assertEqual(status, 200)
            described = json.loads(text)
            schema = lambda path: described["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
            self.assertEqual(set(described["paths"]), {"/", "/app.js", "/style.css", "/health", "/metrics", "/openapi.json", "/v1/models",
                                                       "/v1/models/{model}", "/v1/chat/completions", "/v1/completions", "/tokenize", "/detokenize"})
            for path, methods in described["paths"].items():
                for operation in methods.values():
                    self.assertLessEqual({"200", "405", "408", "413", "431", "503"}, set(operation["responses"]), path)
            for path, required in (("/v1/chat/completions", {"messages": [{"role": "user", "content": "27 + 15"}]}),
                                   ("/v1/completions", {"prompt": "a"})):
                fields = schema(path)["properties"]
                self.assertEqual(schema(path)["required"], list(required))
                self.assertIn("temperature", fields)
                self.assertEqual(fields["logprobs"]["anyOf"][0]["type"], "boolean" if path.startswith("/v1/chat") else "integer")
                for field in [*fields, "nonsense"]:
                    # No field accepts an object with this key.
                    status, answer = server.post(path, {**required, field: {"nonsense": 1}})
                    self.assertEqual((status, f"the field '{field}' is not supported" in answer["error"]["message"]),
                                     (400, field == "nonsense"), answer)

    def test_replies_are_described(self):
        """Replies and events with all their parts conform to the schemas, which are strict; and examples are accepted."""
        python = client_python("jsonschema")
        with Server("--sequences", "2") as server:
            described = json.loads(server.ask("GET", "/openapi.json")[2])
            pairs = []
            for path in ("/v1/chat/completions", "/v1/completions"):
                operation = described["paths"][path]["post"]
                examples = operation["requestBody"]["content"]["application/json"]["examples"]
                self.assertLessEqual({"stream", "logprobs", "sampling"}, set(examples))
                whole = operation["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].rsplit("/")[-1]
                for name, example in examples.items():
                    if name == "stream":
                        pairs += [(whole + "Chunk", event) for event in server.events(path, example["value"])]
                    else:
                        status, answer = server.post(path, example["value"])
                        self.assertEqual(status, 200, (name, answer))
                        pairs.append((whole, answer))
                pairs += [(whole + "Chunk", event) for event in server.events(path, {**examples["logprobs"]["value"], "stream": True})]
                pairs.append(("Error", server.post(path, {"nonsense": 1})[1]))
            pairs += [(name, json.loads(server.ask("GET", path)[2])) for name, path in (
                ("Health", "/health"), ("ModelList", "/v1/models"), ("Model", f"/v1/models/{NAME}"))]
            tokens = server.post("/tokenize", {"content": "27 + 15"})[1]
            pairs += [("Tokens", tokens), ("Text", server.post("/detokenize", tokens)[1])]
        # Chats with calls and reasoning.
        with Server("--sequences", "1", model=model_of("qwen2", FORMATS["qwen2"])) as server:
            asked = {"messages": [{"role": "user", "content": "both"}], "tools": TOOLS, "temperature": 0}
            pairs.append(("ChatCompletion", server.chat(**asked)))
            self.assertIn("tool_calls", pairs[-1][1]["choices"][0]["message"])
            pairs += [("ChatCompletionChunk", event) for event in server.events("/v1/chat/completions", {**asked, "stream": True})]
            self.assertIn("tools", json.loads(server.ask("GET", "/openapi.json")[2])["paths"]["/v1/chat/completions"]["post"]["requestBody"]["content"]
                          ["application/json"]["examples"])
        self.assertEqual({name for name, _ in pairs}, set(described["components"]["schemas"]) - {"Usage"})
        done = harness.execute([python, "-c", CONFORM], stdin=json.dumps([described["components"], pairs]).encode())
        self.assertEqual(done.stdout.decode().split(), [str(len(pairs)), "0"], "all conform, and none with another field or without one")

    def schemathesis(self, server, description, *options):
        """All statuses are described, none is a server error; replies have their schema; and requests that the description excludes are
        rejected."""
        tool, place = os.path.join(os.path.dirname(client_python("schemathesis")), "schemathesis"), harness.folder("schemathesis")
        file = os.path.join(place, "openapi.json")
        with open(file, "w", encoding="utf-8") as out:
            out.write(description)
        done = harness.execute([tool, "run", file, "--url", f"http://{server.host}:{server.port}", "--seed", "1", "--no-color", "--mode", "all",
                                "--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
                                "negative_data_rejection", *options], check=False, cwd=place)
        self.assertIn("Test cases:", done.stdout.decode())
        self.assertEqual(done.returncode, 0, done.stdout.decode()[-6000:] + done.stderr.decode()[-2000:])

    def test_schemathesis(self):
        # With a short context, answers without a limit take little time.
        with Server("--sequences", "2", command=[program(MODEL, "--max-seq", "64").path]) as server:
            self.schemathesis(server, server.ask("GET", "/openapi.json")[2], "--max-examples", "50")
            self.assertEqual(server.ask("GET", "/health")[0], 200)

    def test_schemathesis_with_tools_and_a_key(self):
        """The same with a model that calls functions; with another key, nothing is computed."""
        built, key = program(model_of("qwen2", FORMATS["qwen2"]), "--max-seq", "512"), {"Authorization": "Bearer secret"}
        with Server("--sequences", "2", "--api-key", "secret", command=[built.path]) as server:
            description = server.ask("GET", "/openapi.json", headers=key)[2]
            chat = json.loads(description)["paths"]["/v1/chat/completions"]["post"]
            self.assertIn("401", chat["responses"])
            self.assertIn("tools", chat["requestBody"]["content"]["application/json"]["examples"])
            refused = ("--max-examples", "5", "--header", "Authorization: Bearer another")
            self.schemathesis(server, description, *refused)
            self.assertEqual(server.metric("mica_generated_tokens_total", key), 0)
            self.schemathesis(server, description, "--max-examples", "25", "--header", "Authorization: Bearer secret")
            self.assertGreater(server.metric("mica_generated_tokens_total", key), 0)

    def test_the_fields_of_the_reference_are_those_of_the_package(self):
        """test_serve_fields tests that each of them has an effect or is refused."""
        done = harness.execute([client_python("openai"), "-c", FIELDS])
        self.assertEqual({path: sorted(fields) for path, fields in REFERENCE.items()}, json.loads(done.stdout))
