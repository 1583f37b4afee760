"""`PROGRAM serve`: the HTTP API, its limits, and that texts do not depend on other requests."""

import atexit
import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import socket
import stat
import subprocess
import time
import unittest

import checkpoint
import harness
from harness import BUNDLED, Case, for_each, program
from scripted import scripted

MODEL = BUNDLED / "minimind-dense"
#: A request that does not finish during a test.
ENDLESS = {"prompt": "27", "max_tokens": 900, "n": 128, "ignore_eos": True, "temperature": 1}
NAME = "minimind-dense"
#: The sanitizer of the launcher, set by tests/sanitize_serve.sh.
SANITIZER = os.environ.get("MICA_SANITIZER")
QUESTION = [{"role": "user", "content": "27 + 15"}]


class Refused:
    """A value that the server does not accept."""

    def __init__(self, value):
        self.value = value


#: The fields of OpenAI's reference, with values that have an effect or are refused.
REFERENCE = {
    "/v1/chat/completions": {
        "messages": [{"role": "user", "content": "sort: c a b"}], "model": NAME, "audio": Refused({"voice": "a", "format": "wav"}),
        "frequency_penalty": 2, "function_call": Refused("auto"), "functions": Refused([{"name": "f"}]), "logit_bias": {"20": 100},
        "logprobs": True, "max_completion_tokens": 1, "max_tokens": 1, "metadata": Refused({"a": "b"}), "modalities": Refused(["text", "audio"]),
        "n": 2, "parallel_tool_calls": Refused(False), "prediction": Refused({"type": "content", "content": "a"}), "presence_penalty": 2,
        "prompt_cache_key": Refused("a"), "prompt_cache_retention": Refused("24h"), "reasoning_effort": Refused("low"),
        "response_format": Refused({"type": "json_object"}), "safety_identifier": Refused("a"), "seed": 8, "service_tier": Refused("auto"),
        "stop": ["4"], "store": Refused(True), "stream": True, "stream_options": {"include_usage": True}, "temperature": 0,
        "tool_choice": Refused("required"), "tools": Refused([{"type": "function", "function": {"name": "f"}}]), "top_logprobs": 2, "top_p": 0.01,
        "user": Refused("me"), "verbosity": Refused("low"), "web_search_options": Refused({})},
    "/v1/completions": {
        "model": NAME, "prompt": "sort: c a b", "best_of": Refused(2), "echo": Refused(True), "frequency_penalty": 2, "logit_bias": {"20": 100},
        "logprobs": 1, "max_tokens": 1, "n": 2, "presence_penalty": 2, "seed": 8, "stop": ["a"], "stream": True,
        "stream_options": {"include_usage": True}, "suffix": Refused("a"), "temperature": 0, "top_p": 0.01, "user": Refused("me")},
}


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


def with_bos():
    """A model whose tokenizer adds the token 1, <|im_start|>, before prompts."""

    def make():
        place = pathlib.Path(harness.folder("bos")) / "bos"
        shutil.copytree(MODEL, place)
        file = place / "tokenizer_config.json"
        settings = json.loads(file.read_text(encoding="utf-8"))
        settings.update(add_bos_token=True, bos_token="<|im_start|>")
        file.write_text(json.dumps(settings), encoding="utf-8")
        return place

    return harness.once("bos", make)


def ended(text):
    """As in the program's output: with a final newline."""
    return text if text.endswith("\n") else text + "\n"


#: Programs in which prompts join the call that decodes, and in which calls for prompts are interrupted to decode: with `--rows int8`, prefill
#: has other arithmetic than decode on every processor.
PROGRAMS = {"joined": lambda: [program(MODEL).path],
            "interrupted": lambda: [program(MODEL, "--weights", "int8", "--rows", "int8").path]}


@for_each(PROGRAMS, "answers_do_not_depend_on_other_requests")
@for_each(PROGRAMS, "clients_that_leave")
@for_each(PROGRAMS, "sigterm_while_streaming")
@for_each(PROGRAMS, "sigterm_during_a_request")
class Serve(Case):
    def refused(self, status, mention, path, body, param=None):
        got, answer = server().post(path, body)
        self.assertEqual(got, status, answer)
        self.assertEqual(set(answer["error"]), {"message", "type", "param", "code"})
        self.assertIn(mention, answer["error"]["message"])
        if param:
            self.assertEqual(answer["error"]["param"], param)

    def test_paths(self):
        self.assertEqual(server().ask("GET", "/health")[::2], (200, '{"status":"ready"}'))
        [model] = json.loads(server().ask("GET", "/v1/models")[2])["data"]
        self.assertEqual((model["id"], model["object"]), (NAME, "model"))
        status, _, text = server().ask("GET", f"/v1/models/{NAME}")
        self.assertEqual((status, json.loads(text)), (200, model))
        status, _, text = server().ask("GET", "/v1/models/another")
        self.assertEqual((status, json.loads(text)["error"]["code"]), (404, "model_not_found"))
        status, _, text = server().ask("GET", "/nothing")
        self.assertEqual((status, json.loads(text)["error"]["message"]), (404, "unknown path '/nothing'"))
        status, headers, text = server().ask("GET", "/v1/completions")
        self.assertEqual((status, headers["Allow"], json.loads(text)["error"]["message"]),
                         (405, "POST", "the method is not allowed for /v1/completions; use POST"))

    def test_answers_end_when_the_context_is_full(self):
        """Even before `max_tokens`. The last token needs no position."""
        for prompt, tokens in ((1000, 25), (1023, 2), (1024, 1)):
            for stream in (False, True):
                asked = {"prompt": [5] * prompt, "max_tokens": 5000, "temperature": 0, "ignore_eos": True, "stream": stream}
                if stream:
                    *_, last, usage = server().events("/v1/completions", {**asked, "stream_options": {"include_usage": True}})
                else:
                    last = usage = server().post("/v1/completions", asked)[1]
                self.assertEqual((last["choices"][0]["finish_reason"], usage["usage"]["completion_tokens"]), ("length", tokens))
        self.refused(400, "the prompt has 1025 tokens, 1 more than the context of 1024 positions", "/v1/completions", {"prompt": [5] * 1025}, "prompt")

    def test_a_chat_equals_the_program(self):
        alone = program(MODEL).run("--chat", "-p", "27 + 15", "--temperature", "0", "-n", "20").stdout.decode()
        answer = server().chat(max_tokens=20)
        [choice] = answer["choices"]
        self.assertEqual(ended(choice["message"]["content"]), alone)
        self.assertEqual((choice["message"]["role"], choice["finish_reason"], answer["object"], answer["model"]),
                         ("assistant", "stop", "chat.completion", NAME))
        parts = [{"role": "user", "content": [{"type": "text", "text": "27 "}, {"type": "text", "text": "+ 15"}]}]
        self.assertEqual(server().chat(parts, max_tokens=20)["choices"], answer["choices"])

    def test_a_completion_equals_the_program(self):
        alone = program(MODEL).run("-p", "count from 7 to 12:", "--temperature", "0", "-n", "12").stdout.decode()
        answer = server().complete("count from 7 to 12:", max_tokens=12)
        self.assertEqual(ended(answer["choices"][0]["text"]), alone)
        status, tokens = server().post("/tokenize", {"content": "count from 7 to 12:"})
        self.assertEqual(status, 200)
        self.assertEqual(server().complete(tokens["tokens"], max_tokens=12)["choices"], answer["choices"])
        self.assertEqual(answer["usage"]["prompt_tokens"], len(tokens["tokens"]))
        both = server().complete(["count from 7 to 12:", "Q: 27 + 15 = ?\nA:"], max_tokens=12, n=2)["choices"]
        self.assertEqual([choice["index"] for choice in both], [0, 1, 2, 3])
        self.assertEqual([choice["text"] for choice in both[:2]], [answer["choices"][0]["text"]] * 2)
        self.assertNotEqual(both[2]["text"], both[0]["text"])

    def test_text_and_tokens(self):
        text = "Ada the red fox"
        _, tokens = server().post("/tokenize", {"content": text})
        self.assertEqual(server().post("/detokenize", tokens)[1]["content"].strip(), text)
        self.refused(400, "'tokens' is not an array of token ids", "/detokenize", {"tokens": [1 << 40]}, "tokens")
        self.refused(400, "'content' is missing", "/tokenize", {})

    def test_special_tokens(self):
        """As in llama-server: added if asked, recognized unless told otherwise; ids to text and back is lossless."""
        ids = lambda content, **fields: server().post("/tokenize", {"content": content, **fields})[1]["tokens"]
        text = lambda tokens: server().post("/detokenize", {"tokens": tokens})[1]["content"]
        written = "<|im_start|>user\n 27  + 15<|im_end|>\n"
        for fields in ({}, {"parse_special": True, "add_special": None}, {"parse_special": False}):
            self.assertEqual(text(ids(written, **fields)), written, fields)
        self.assertEqual(len(ids("<|im_end|>")), 1)
        self.assertGreater(len(ids("<|im_end|>", parse_special=False)), 1)
        self.refused(400, "'add_special' is not a boolean", "/tokenize", {"content": "a", "add_special": 1}, "add_special")
        self.refused(400, "the field 'with_pieces' is not supported", "/tokenize", {"content": "a", "with_pieces": True}, "with_pieces")
        # A model whose prompts begin with a token.
        with Server("--sequences", "1", model=with_bos()) as own:
            plain, added = (own.post("/tokenize", {"content": "27 + 15", **fields})[1]["tokens"] for fields in ({}, {"add_special": True}))
            self.assertEqual((added[0], added[1:]), (1, plain))
            self.assertEqual(own.complete("27 + 15", max_tokens=1)["usage"]["prompt_tokens"], len(added))
            self.assertEqual(own.post("/detokenize", {"tokens": added})[1]["content"], "<|im_start|>27 + 15")

    def test_streams(self):
        whole = server().chat(max_tokens=20)
        events = server().events("/v1/chat/completions", {"messages": QUESTION, "temperature": 0, "max_tokens": 20, "stream": True,
                                                          "stream_options": {"include_usage": True}})
        *chunks, usage = events
        self.assertEqual({event["object"] for event in events}, {"chat.completion.chunk"})
        self.assertEqual(chunks[0]["choices"][0]["delta"]["role"], "assistant")
        self.assertEqual("".join(event["choices"][0]["delta"].get("content", "") for event in chunks),
                         whole["choices"][0]["message"]["content"])
        self.assertEqual([event["choices"][0]["finish_reason"] for event in chunks], [None] * (len(chunks) - 1) + ["stop"])
        self.assertEqual(usage["choices"], [])
        self.assertEqual(usage["usage"]["completion_tokens"], whole["usage"]["completion_tokens"])
        self.assertGreater(len(chunks), 2)
        texts = server().events("/v1/completions", {"prompt": "count from 7 to 12:", "temperature": 0, "max_tokens": 12, "stream": True})
        self.assertEqual("".join(event["choices"][0]["text"] for event in texts),
                         server().complete("count from 7 to 12:", max_tokens=12)["choices"][0]["text"])

    def test_the_next_turn_uses_the_cache(self):
        with Server("--sequences", "2") as own:
            first = own.chat(max_tokens=20)
            self.assertEqual(first["usage"]["prompt_tokens_details"]["cached_tokens"], 0)
            said = QUESTION + [first["choices"][0]["message"] | {"refusal": None}, {"role": "user", "content": "26 + 16"}]
            said[1].pop("refusal")
            second = own.chat(said, max_tokens=20)
            cached = second["usage"]["prompt_tokens_details"]["cached_tokens"]
            self.assertGreaterEqual(cached, first["usage"]["prompt_tokens"])
            self.assertLess(cached, second["usage"]["prompt_tokens"])

    def test_answers_are_recomputed_between_turns(self):
        """With `--rows int8`, prefill has other arithmetic than decode on every processor."""
        command, answer = PROGRAMS["interrupted"](), [7] * 20
        asked = {"prompt": [1, 5, 3, *answer, 8], "max_tokens": 16}
        with Server("--sequences", "1", command=command) as own:
            fresh = own.complete(**asked)["choices"]
        with Server("--sequences", "1", command=command) as own:
            own.complete([1, 5, 3], max_tokens=len(answer), ignore_eos=True, logit_bias={"7": 100})
            own.wait_for_metric("mica_recomputed_answer_tokens_total", len(answer) - 1)
            second = own.complete(**asked)
            self.assertEqual(second["usage"]["prompt_tokens_details"]["cached_tokens"], 3 + len(answer) - 1)
            self.assertEqual(second["choices"], fresh)

    def test_every_field_has_an_effect(self):
        prompt = "Ada the red fox has 12 nuts and"
        plain = {"prompt": prompt, "max_tokens": 80, "ignore_eos": True, "seed": 7, "temperature": 1}
        text = lambda **fields: server().post("/v1/completions", {**plain, **fields})[1]["choices"][0]
        usual = text()
        self.assertEqual(text(), usual, "a seed says everything")
        for field, value in {"seed": 8, "temperature": 0, "top_p": 0.01, "top_k": 1, "min_p": 1, "repetition_penalty": 5,
                             "presence_penalty": 2, "frequency_penalty": 2, "max_tokens": 3,
                             "stop": [usual["text"][5:8]]}.items():
            self.assertNotEqual(text(**{field: value}), usual, field)
        first = server().post("/tokenize", {"content": usual["text"]})[1]["tokens"]
        bias = {str(token): -100 for token in first}
        self.assertNotEqual(text(logit_bias=bias)["text"], usual["text"])
        stopped = text(stop=usual["text"][5:8])
        self.assertEqual((stopped["text"], stopped["finish_reason"]), (usual["text"][:usual["text"].index(usual["text"][5:8])], "stop"))
        greedy = server().complete("27 + 15 =", max_tokens=200)["choices"][0]
        longer = server().complete("27 + 15 =", max_tokens=200, ignore_eos=True)["choices"][0]
        self.assertEqual((greedy["finish_reason"], longer["finish_reason"]), ("stop", "length"))

    def test_every_field_of_the_reference(self):
        """Each field of OpenAI's reference is effective, without effect by its value, or refused with its name."""
        sampled = {"max_tokens": 80, "ignore_eos": True, "seed": 7, "temperature": 1}
        asked = {"/v1/chat/completions": {"messages": QUESTION, **sampled},
                 "/v1/completions": {"prompt": "Ada the red fox has 12 nuts and", **sampled}}
        whole = lambda path, **fields: server().ask("POST", path, {**asked[path], **fields})
        choices = lambda path, **fields: json.loads(whole(path, **fields)[2])["choices"]
        for path, reference in REFERENCE.items():
            usual = choices(path)
            for field, value in reference.items():
                with self.subTest(path=path, field=field):
                    if isinstance(value, Refused):
                        self.refused(400, field, path, {**asked[path], field: value.value}, field)
                    elif field in ("stream", "stream_options"):
                        body = {**asked[path], "stream": True, field: value}
                        events = server().events(path, body)
                        self.assertEqual([event.get("usage", "absent") is None for event in events[:-1]], [field == "stream_options"] * (len(events) - 1))
                        self.assertEqual("usage" in events[-1], field == "stream_options")
                    elif field == "top_logprobs":
                        [choice] = choices(path, logprobs=True, top_logprobs=value)
                        self.assertEqual({len(entry["top_logprobs"]) for entry in choice["logprobs"]["content"]}, {value})
                    elif field == "max_completion_tokens":
                        status, _, text = server().ask("POST", path, {"messages": QUESTION, field: value})
                        self.assertEqual((status, json.loads(text)["usage"]["completion_tokens"]), (200, value))
                    elif field == "model":
                        self.assertEqual(whole(path, model=value)[0], 200)
                        self.assertEqual(whole(path, model=value + "x")[0], 404)
                    else:
                        self.assertNotEqual(choices(path, **{field: value}), usual)

    def test_log_probabilities_are_those_of_the_model(self):
        """They do not depend on sampling settings: those of the same first token, whatever makes it the first."""
        [usual] = server().complete("27 + 15 =", max_tokens=1, logprobs=5)["choices"]
        [token], [logprob] = usual["logprobs"]["tokens"], usual["logprobs"]["token_logprobs"]
        [likeliest] = usual["logprobs"]["top_logprobs"]
        ids = server().post("/tokenize", {"content": "27 + 15 ="})[1]["tokens"]
        for fields in ({"temperature": 2, "top_k": 1}, {"repetition_penalty": 5, "top_k": 1, "temperature": 2},
                       *({"logit_bias": {str(number): 100}} for number in (ids[0], 20))):
            [other] = server().complete("27 + 15 =", max_tokens=1, logprobs=5, **fields)["choices"]
            [top] = other["logprobs"]["top_logprobs"]
            self.assertEqual({name: top[name] for name in likeliest}, likeliest, fields)
            if other["logprobs"]["tokens"] == [token]:
                self.assertEqual(other["logprobs"]["token_logprobs"], [logprob], fields)
            else:
                self.assertLess(other["logprobs"]["token_logprobs"][0], logprob, fields)

    def test_log_probabilities_of_drafted_tokens(self):
        request = {"prompt": "27 + 15 = 42 " * 6, "max_tokens": 40, "logprobs": 2, "ignore_eos": True, "repetition_penalty": 1}
        with Server("--sequences", "1", "--lookup", "4") as own:
            self.assertEqual(own.complete(**request)["choices"], server().complete(**request)["choices"])
            self.assertGreater(own.metric("mica_accepted_tokens_total"), 0)
            self.assertGreaterEqual(own.metric("mica_drafted_tokens_total"), own.metric("mica_accepted_tokens_total"))

    def test_log_probabilities(self):
        [choice] = server().chat(max_tokens=4, logprobs=True, top_logprobs=3)["choices"]
        content = choice["logprobs"]["content"]
        self.assertGreater(len(content), 1)
        for entry in content:
            self.assertEqual(len(entry["top_logprobs"]), 3)
            # Greedy: the likeliest token is the chosen one.
            self.assertEqual((entry["top_logprobs"][0]["token"], entry["top_logprobs"][0]["logprob"]), (entry["token"], entry["logprob"]))
            self.assertEqual(bytes(entry["bytes"]).decode(), entry["token"])
        [legacy] = server().complete("27 + 15 =", max_tokens=3, logprobs=2)["choices"]
        self.assertEqual([len(top) for top in legacy["logprobs"]["top_logprobs"]], [2] * len(legacy["logprobs"]["tokens"]))
        self.offsets(legacy["text"], legacy["logprobs"])

    def offsets(self, text, logprobs):
        """Each token's text is at its offset."""
        self.assertEqual(len(logprobs["text_offset"]), len(logprobs["tokens"]))
        for token, offset in zip(logprobs["tokens"], logprobs["text_offset"]):
            if not token.startswith(("bytes:", "<|")):
                self.assertEqual(text[offset:offset + len(token)], token, (text, logprobs))

    def test_logprobs_of_parts_of_characters(self):
        """Tokens that are a byte of a character have that byte; offsets count characters, also in a stream."""
        text = "é漢🦊 x"
        tokens = server().post("/tokenize", {"content": text})[1]["tokens"]
        parts = []
        for token in tokens:
            [choice] = server().complete([1], max_tokens=1, logprobs=0, logit_bias={str(token): 100})["choices"]
            parts.append(choice["logprobs"]["tokens"][0])
            [choice] = server().chat(max_tokens=1, logprobs=True, logit_bias={str(token): 100})["choices"]
            [entry] = choice["logprobs"]["content"]
            part = bytes(entry["bytes"])
            self.assertEqual(parts[-1], "bytes:" + "".join(f"\\x{byte:02x}" for byte in part) if "\ufffd" in entry["token"] else entry["token"])
            parts[-1] = part
        self.assertEqual(b"".join(parts).decode().strip(), text)
        self.assertIn(b"\x8a", b"".join(part for part in parts if len(part) == 1))
        biased = {"logit_bias": {str(token): 50 for token in tokens}, "max_tokens": 24, "ignore_eos": True, "temperature": 2, "logprobs": 1}
        for seed in range(4):
            [whole] = server().complete("a", seed=seed, **biased)["choices"]
            self.offsets(whole["text"], whole["logprobs"])
            events = server().events("/v1/completions", {"prompt": "a", "seed": seed, "stream": True, **biased})
            streamed = [offset for event in events if event["choices"][0]["logprobs"] for offset in event["choices"][0]["logprobs"]["text_offset"]]
            self.assertEqual(streamed, whole["logprobs"]["text_offset"])

    def test_log_probabilities_list_every_token(self):
        """The chosen token as well, and parts of characters separately, although their text alone is the same."""
        longer = 0
        for count in (0, 2, 20):
            [choice] = server().complete("27 + 15 =", max_tokens=24, ignore_eos=True, temperature=2, seed=3, logprobs=count)["choices"]
            logprobs = choice["logprobs"]
            for token, logprob, top in zip(logprobs["tokens"], logprobs["token_logprobs"], logprobs["top_logprobs"]):
                *likeliest, last = top.values()
                self.assertEqual((top[token], likeliest), (logprob, sorted(likeliest, reverse=True)))
                self.assertEqual(len(top), count + (last == logprob and len(top) > count), top)
                longer += len(top) > count
        self.assertGreater(longer, 24)
        # A model whose likeliest tokens are parts of characters.
        ids = sorted(set(server().post("/tokenize", {"content": "éжλ漢字🦊🐧"})[1]["tokens"]))

        def tensors(weights):
            head = weights["lm_head.weight"] = weights["lm_head.weight"].copy()
            for rank, token in enumerate(ids):
                head[token, 0] = 2 + rank / 8

        place = pathlib.Path(harness.folder("bytes")) / "bytes"
        checkpoint.edited(scripted("bytes", "{{ messages[0].content }}", {"<|a|>": ["a b"]}), place, lambda config: None, tensors)
        with Server("--sequences", "1", model=place) as own:
            [choice] = own.complete("27", max_tokens=3, logprobs=5)["choices"]
            for token, top in zip(choice["logprobs"]["tokens"], choice["logprobs"]["top_logprobs"]):
                self.assertEqual((len(top), token), (5, list(top)[0]))
                self.assertTrue(all(re.fullmatch(r"bytes:\\x[89a-f][0-9a-f]", name) for name in top), top)
                self.assertEqual(list(top.values()), sorted(top.values(), reverse=True))

    def test_log_probabilities_end_with_the_text(self):
        """Tokens of a stop string have none, unless they begin before it."""
        asked = {"prompt": "Ada the red fox has 12 nuts and", "max_tokens": 60, "ignore_eos": True, "temperature": 1, "seed": 7, "logprobs": 1}
        [usual] = server().complete(**asked)["choices"]
        text, logprobs = usual["text"], usual["logprobs"]
        offsets = logprobs["text_offset"]

        def listed(count):
            return {name: values[:count] for name, values in logprobs.items()}

        tested = set()
        for i in range(4, len(offsets) - 2):
            # From the beginning of a token, or from its second character, to the second character of the next.
            for begin in (offsets[i], offsets[i] + 1):
                stop, count = text[begin:offsets[i + 1] + 1], sum(offset < begin for offset in offsets)
                if begin >= offsets[i + 1] or text.find(stop) != begin or offsets[i + 1] == offsets[i + 2]:
                    continue
                tested.add(count - i)
                [choice] = server().complete(**asked, stop=stop)["choices"]
                self.assertEqual((choice["text"], choice["logprobs"], choice["finish_reason"]), (text[:begin], listed(count), "stop"), stop)
                whole, joined = "", {name: [] for name in logprobs}
                for event in server().events("/v1/completions", {**asked, "stop": stop, "stream": True}):
                    [part] = event["choices"]
                    whole += part["text"]
                    for name, values in (part["logprobs"] or {}).items():
                        joined[name] += values
                    self.assertTrue(all(offset < len(whole) for offset in joined["text_offset"]), part)
                self.assertEqual((whole, joined), (text[:begin], listed(count)), stop)
        self.assertLessEqual({0, 1}, tested)
        # In a chat.
        asked = {"messages": QUESTION, "ignore_eos": True, "temperature": 1, "seed": 7, "max_tokens": 40, "logprobs": True}
        entries = server().chat(**asked)["choices"][0]["logprobs"]["content"]
        stop = "".join(entry["token"] for entry in entries[8:10])
        [choice] = server().chat(**asked, stop=stop)["choices"]
        said = choice["logprobs"]["content"]
        self.assertEqual((choice["finish_reason"], said), ("stop", entries[:len(said)]))
        self.assertTrue(0 < len(said) <= 8, said)
        self.assertEqual("".join(entry["token"] for entry in said if not entry["token"].startswith("<|")).strip(), choice["message"]["content"].strip())

    def test_prompts_of_a_list_are_sampled_independently(self):
        """Without a seed. With one, each prompt is completed as it would be alone."""
        asked = {"prompt": ["27"] * 3, "max_tokens": 80, "ignore_eos": True, "temperature": 2}
        texts = [choice["text"] for choice in server().complete(**asked, n=2)["choices"]]
        self.assertEqual(len(set(texts)), 6)
        texts = [choice["text"] for choice in server().complete(**asked, n=2, seed=5)["choices"]]
        self.assertEqual((texts[2:4], texts[4:]), (texts[:2], texts[:2]))
        alone = server().complete("27", max_tokens=80, ignore_eos=True, temperature=2, n=2, seed=5)["choices"]
        self.assertEqual([choice["text"] for choice in alone], texts[:2])

    def test_fields_that_would_be_ignored_are_refused(self):
        """Fields of OpenAI's reference that this server does not support, or with unsupported values."""
        chat, text = "/v1/chat/completions", "/v1/completions"
        for field, value in {"audio": {}, "function_call": "auto", "functions": [], "logit_bias": [], "metadata": {}, "modalities": ["audio"],
                             "parallel_tool_calls": True, "prediction": {}, "reasoning_effort": "low", "response_format": {"type": "json_object"},
                             "service_tier": "flex", "store": True, "tool_choice": "auto", "user": "me", "web_search_options": {},
                             "tools": [{"type": "function", "function": {"name": "f"}}], "nonsense": 1, "prompt": "a", "stop": "",
                             "max_tokens": 0, "max_completion_tokens": -1, "n": 0, "temperature": 2.1, "top_p": 1.5, "top_logprobs": 21,
                             "presence_penalty": 3, "frequency_penalty": "x", "seed": -1, "stream": 1, "logprobs": 3,
                             "stream_options": {"include_usage": True}, "min_p": -1, "top_k": 1.5}.items():
            with self.subTest(field=field):
                self.refused(400, field, chat, {"messages": QUESTION, field: value}, field)
        self.refused(400, "the value of '5' in 'logit_bias' is not a number from -100 to 100", text, {"prompt": "a", "logit_bias": {"5": "1"}}, "logit_bias")
        for field, value in {"best_of": 2, "echo": True, "suffix": "x", "logprobs": True, "messages": QUESTION, "logit_bias": {"x": 1}}.items():
            with self.subTest(field=field):
                self.refused(400, field, text, {"prompt": "a", field: value}, field)
        # Fields whose value has no effect are accepted.
        self.assertEqual(server().post(chat, {"messages": QUESTION, "max_tokens": 1, "response_format": {"type": "text"}, "store": False,
                                              "modalities": ["text"], "tools": [], "tool_choice": "none", "user": None, "model": NAME})[0], 200)

    def test_bad_requests(self):
        chat, text = "/v1/chat/completions", "/v1/completions"
        self.refused(400, "the body cannot be read: not JSON at byte 2: unexpected end of input; expected string literal", chat, "{")
        self.refused(400, "the body is empty; send a JSON object", chat, "")
        self.refused(400, "the number at byte 17 is beyond a double", chat, '{"temperature": 1e400}')
        self.refused(400, "users and assistants only); change the conversation", chat, {"messages": [{"role": "nobody", "content": "a"}]}, "messages")
        self.refused(400, "not a JSON object", chat, "[]")
        self.refused(400, "nested more than", chat, "[" * 1000)
        self.refused(400, "the key \"n\" occurs twice", text, '{"n": 1, "n": 2}')
        self.refused(400, "'messages' is missing", chat, {})
        self.refused(400, "not an array of messages", chat, {"messages": []}, "messages")
        self.refused(400, 'not an object with a "role"', chat, {"messages": [1]}, "messages")
        self.refused(400, "neither a string nor an array of parts", chat, {"messages": [{"role": "user", "content": 1}]})
        self.refused(400, '{"type": "text", "text": ...}', chat, {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})
        self.refused(400, 'a message of the role "user" has no "content"', chat, {"messages": [{"role": "user", "content": None}]}, "messages")
        for prompt in ([512], [-1], [3, 2 ** 64], ["a", [1.5]]):
            self.refused(400, "a token id in 'prompt' is not a whole number from 0 to 511", text, {"prompt": prompt}, "prompt")
        for number in (0, 5.0, 10 ** 22, "5"):
            self.refused(400, "'max_tokens' is not a whole number from 1 to 2147483647", text, {"prompt": "a", "max_tokens": number}, "max_tokens")
        for number in (2.5, -1, "1"):
            self.refused(400, "'temperature' is not a number from 0.0 to 2.0", text, {"prompt": "a", "temperature": number}, "temperature")
        self.refused(400, "mean the same", chat, {"messages": QUESTION, "max_tokens": 1, "max_completion_tokens": 1})
        self.refused(400, "requires \"logprobs\": true", chat, {"messages": QUESTION, "top_logprobs": 1}, "top_logprobs")
        self.refused(400, "more than the context", text, {"prompt": [5] * 2000}, "prompt")
        self.refused(404, "model 'other' not found", chat, {"messages": QUESTION, "model": "other"}, "model")

    def test_entries_of_logit_bias(self):
        """A token has one spelling, and one entry."""
        for key in ("01", "+1", "-0", " 1", "1.0", "512"):
            self.refused(400, f"'{key}' in 'logit_bias' is not the id of a token", "/v1/completions", {"prompt": "a", "logit_bias": {key: 1}}, "logit_bias")
        self.refused(400, 'the key "1" occurs twice', "/v1/completions", '{"prompt": "a", "logit_bias": {"1": 1, "1": 2}}')

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
        head = b"POST /v1/completions HTTP/1.1\r\n%s\r\n\r\n"
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
        self.assertRegex(raw(b"GET /health HTTP/1.1\r\nX: " + b"a" * 20000), rb"^HTTP/1.1 431 ")
        self.assertRegex(raw(b"POST /v1/completions HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n"), rb"^HTTP/1.1 413 ")
        for coding in (b"gzip", b"gzip, chunked", b"identity"):
            self.assertRegex(raw(b"POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: " + coding + b"\r\n\r\n0\r\n\r\n"), rb"^HTTP/1.1 501 ", coding)
        # A client that sends all of a too large body before it reads the response.
        many = 20 << 20
        self.assertRegex(raw(b"POST /v1/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % many + b"a" * many, half=True),
                         rb'^HTTP/1.1 413 [^{]*\{"error":')
        self.assertEqual(raw(b"POST /v1/completions HTTP/1.1\r\nContent-Length: 100\r\n\r\n{", half=True), b"")
        # A client that closes its direction before it has the answer has left.
        endless = json.dumps(ENDLESS).encode()
        self.assertEqual(raw(b"POST /v1/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(endless) + endless, half=True), b"")
        self.assertRegex(raw(b"GET /health HTTP/1.0\r\n\r\n"), rb'^HTTP/1.1 200 [^{]*\{"status":"ready"\}$')
        # A message is sent to a client that expects the connection to be closed, although it stays open.
        kept = raw(b"GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /health HTTP/1.0\r\n\r\n")
        self.assertRegex(kept, rb"(?s)^HTTP/1.1 200 .*Connection: keep-alive\r\n.*HTTP/1.1 200 .*Connection: close\r\n")
        self.assertNotIn(b"Connection: keep-alive", raw(b"GET /health HTTP/1.1\r\nConnection: close\r\n\r\n"))
        # HEAD returns the headers of GET.
        head, body = raw(b"HEAD /health HTTP/1.1\r\nConnection: close\r\n\r\n").split(b"\r\n\r\n")
        whole, text = raw(b"GET /health HTTP/1.1\r\nConnection: close\r\n\r\n").split(b"\r\n\r\n")
        self.assertEqual((head, body, text), (whole, b"", b'{"status":"ready"}'))
        # Targets as sent by proxies and some clients.
        for target in (b"http://localhost/health?x=/", b"HTTP://localhost:80/%68ealt%68", b"/health?a=b?c"):
            self.assertRegex(raw(b"GET " + target + b" HTTP/1.1\r\nConnection: close\r\n\r\n"), rb"^HTTP/1.1 200 ", target)
        for target in (b"http://localhost", b"http://localhost?x=/health"):
            self.assertRegex(raw(b"GET " + target + b" HTTP/1.1\r\nConnection: close\r\n\r\n"), rb"(?s)^HTTP/1.1 200 .*<html", target)
        for target in (b"/health%2", b"/health%zz", b"http://localhost/x/health", b"*"):
            self.assertRegex(raw(b"GET " + target + b" HTTP/1.1\r\nConnection: close\r\n\r\n"), rb"^HTTP/1.1 404 ", target)
        body = b'{"prompt": "27", "max_tokens": 2, "stream": true}'
        old = raw(b"POST /v1/completions HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        self.assertRegex(old, rb"\r\n\r\ndata: ")
        self.assertTrue(old.endswith(b"data: [DONE]\n\n"))
        with server().connect() as connection:
            connection.sendall(b"POST /v1/completions HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body))
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
        self.assertRegex(raw(b"GET /health HTTP/1.1\r\n\r\nnonsense\r\n\r\n"), rb"(?s)^HTTP/1.1 200 .*HTTP/1.1 400 ")
        self.assertEqual(server().ask("GET", "/health")[0], 200)

    def answers_do_not_depend_on_other_requests(self, name):
        """With more requests than sequences, so that they also wait, join and leave."""
        prompts = [f"count from {i} to {i + 7}:" * (1 + 20 * (i % 3 == 0)) for i in range(12)]
        with Server("--sequences", "4", command=PROGRAMS[name]()) as own:
            def answer(numbered):
                number, prompt = numbered
                body = {"prompt": prompt, "seed": number, "max_tokens": 24, "temperature": 1}
                if number % 2:
                    return own.post("/v1/completions", body)[1]["choices"]
                return "".join(event["choices"][0]["text"] for event in own.events("/v1/completions", {**body, "stream": True}))

            alone = [answer(numbered) for numbered in enumerate(prompts)]
            for _ in range(3):
                with concurrent.futures.ThreadPoolExecutor(12) as pool:
                    self.assertEqual(list(pool.map(answer, enumerate(prompts))), alone)

    def test_fairness_between_requests(self):
        """A request with many completions does not delay others until all of them are done."""
        with Server("--sequences", "1") as own:
            busy = own.connection()
            busy.request("POST", "/v1/completions", json.dumps(ENDLESS))
            own.wait_for_metric("mica_completions_running", 1)
            for _ in range(3):
                self.assertEqual(own.complete("27 + 15 =", max_tokens=2)["choices"], server().complete("27 + 15 =", max_tokens=2)["choices"])
            # Each waited for the completion that was running, not for all 128.
            self.assertLess(own.metric("mica_generated_tokens_total"), 900 * 64)
            self.assertGreater(own.metric("mica_completions_waiting"), 64)
            busy.close()
            own.wait_for_metric("mica_completions_running", 0)

    def test_prompts_are_logged_if_asked(self):
        with Server("--sequences", "1", "--log-prompts") as own:
            chat = own.chat([{"role": "user", "content": "Ada \u009b2J\x7f\n\"fox\""}], max_tokens=1)
            status, _ = own.post("/v1/completions", {"prompt": "a refused secret", "nonsense": 1})
            self.assertEqual(status, 400)
            several = own.complete(["count", [5, 6]], n=2, max_tokens=1)
            events = own.events("/v1/completions", {"prompt": "27", "max_tokens": 1, "stream": True})
            text, status = own.terminate()
            *lines, last = text.splitlines()
            self.assertEqual((status, "shutting down" in last, "secret" in text), (0, True, False))
            self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f\x7f-\x9f]")
            logged = [json.loads(line) for line in lines]
            self.assertEqual([entry["id"] for entry in logged], [chat["id"], several["id"], events[0]["id"]])
            self.assertEqual([entry["endpoint"] for entry in logged], ["/v1/chat/completions", "/v1/completions", "/v1/completions"])
            self.assertEqual([entry["prompt_tokens"] for entry in logged[:2]], [answer["usage"]["prompt_tokens"] for answer in (chat, several)])
            self.assertEqual(logged[0]["prompts"], ["Ada \u009b2J\x7f\n\"fox\""])
            self.assertEqual(logged[1]["prompts"][0].strip(), "count")
            self.assertEqual((len(logged[1]["prompts"]), len(logged[2]["prompts"])), (2, 1))

    def clients_that_leave(self, name):
        for stream, more in ((True, b""), (False, b""), (False, b"\r\n"), (False, b"GET /health HTTP/1.1\r\n\r\n"), (False, b"\r\n" * 20000)):
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

    def test_waiting_streams_get_comments(self):
        """A stream that waits begins with comments, so that its connection does not look dead."""
        with Server("--sequences", "1", "--sse-ping-interval", "1") as own:
            asked = {"prompt": "27 + 15 =", "max_tokens": 20, "temperature": 0}
            connection = own.connection()
            with own.busy():
                connection.request("POST", "/v1/completions", json.dumps({**asked, "stream": True}))
                answer = connection.getresponse()
                self.assertEqual((answer.status, answer.getheader("Content-Type")), (200, "text/event-stream"))
                for _ in range(2):
                    self.assertEqual((answer.readline(), answer.readline()), (b": waiting\n", b"\n"))
                self.assertGreater(own.metric("mica_completions_waiting"), 0)
            *parts, last, end = answer.read().decode().split("\n\n")
            self.assertEqual((last, end), ("data: [DONE]", ""))
            events = [json.loads(part.removeprefix("data: ")) for part in parts if part != ": waiting"]
            self.assertEqual("".join(event["choices"][0]["text"] for event in events), own.complete(**asked)["choices"][0]["text"])
            connection.close()
        # An error after a comment is an event. Requests that are not streamed get no comments.
        with Server("--sequences", "1", "--sse-ping-interval", "1", "--drain-seconds", "0") as own, own.busy():
            whole, stream = own.connection(), own.connection()
            whole.request("POST", "/v1/completions", json.dumps(asked))
            stream.request("POST", "/v1/completions", json.dumps({**asked, "stream": True}))
            answer = stream.getresponse()
            self.assertEqual(answer.readline(), b": waiting\n")
            own.process.send_signal(signal.SIGTERM)
            *_, last, end = answer.read().decode().split("\n\n")
            self.assertEqual((json.loads(last.strip().removeprefix("data: "))["error"]["message"], end), ("the server is shutting down", ""))
            answer = whole.getresponse()
            self.assertEqual((answer.status, json.loads(answer.read())["error"]["message"]), (503, "the server is shutting down"))
            for connection in (whole, stream):
                connection.close()

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

    def test_metrics(self):
        with Server("--sequences", "2") as own:
            answers = [own.complete("27 + 15 =", max_tokens=5, ignore_eos=True), own.chat(max_tokens=3),
                       own.complete("27 + 15 =", max_tokens=1, n=2)]
            self.assertEqual(own.post("/v1/completions", {"prompt": "a", "nonsense": 1})[0], 400)
            status, headers, text = own.ask("GET", "/metrics")
            self.assertEqual((status, headers["Content-Type"]), (200, "text/plain; version=0.0.4"))
            *lines, end = text.split("\n")
            self.assertEqual(end, "")
            described, values = {"HELP": set(), "TYPE": set()}, {}
            for line in lines:
                if line.startswith("# "):
                    _, kind, name, _ = line.split(" ", 3)
                    described[kind].add(name)
                else:
                    name, value = line.split(" ")
                    values[name] = float(value)
                    self.assertIn(re.sub(r"(_bucket|_sum|_count)?(\{.*\})?$", "", name), described["TYPE"], line)
            self.assertEqual(described["HELP"], described["TYPE"])
            used = lambda field: sum(answer["usage"][field] for answer in answers)
            cached = sum(answer["usage"]["prompt_tokens_details"]["cached_tokens"] for answer in answers)
            # The prompt of two completions is computed or reused twice, but counted once in the usage.
            prompts = used("prompt_tokens") + answers[2]["usage"]["prompt_tokens"]
            self.assertGreaterEqual(values["mica_cached_tokens_total"], cached)
            self.assertLessEqual(values["mica_cached_tokens_total"], cached + answers[2]["usage"]["prompt_tokens"])
            wanted = {'mica_requests_total{outcome="ok"}': 3, 'mica_requests_total{outcome="invalid"}': 1, "mica_prompt_tokens_total": prompts,
                      "mica_generated_tokens_total": used("completion_tokens"),
                      "mica_completions_running": 0, "mica_completions_waiting": 0}
            self.assertEqual({name: values[name] for name in wanted}, wanted)
            self.assertGreater(values["mica_cache_used_bytes"], 0)
            self.assertLess(values["mica_cache_used_bytes"], values["mica_cache_capacity_bytes"] / 4)
            # Once per request, or for each token of a completion but the first.
            for name, count in (("mica_queue_time_seconds", 3), ("mica_time_to_first_token_seconds", 3), ("mica_request_duration_seconds", 3),
                                ("mica_inter_token_latency_seconds", used("completion_tokens") - 4)):
                # A request may wait for a long time.
                self.assertIn(name + '_bucket{le="2560.0"}', values)
                buckets = [value for key, value in values.items() if key.startswith(name + "_bucket")]
                self.assertEqual((buckets, buckets[-1], values[name + "_count"]), (sorted(buckets), count, count))
                self.assertGreater(values[name + "_sum"], 0)
            for path, status in (("/nothing", 404), ("/v1/completions", 405)):
                self.assertEqual(own.ask("GET", path)[0], status)
                self.assertEqual(own.metric(f'mica_rejected_requests_total{{status="{status}"}}'), 1)
            with own.connect() as connection:
                connection.sendall(b"POST /v1/completions HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n")
                self.assertRegex(connection.recv(4096), rb"^HTTP/1.1 413 ")
            self.assertEqual(own.metric('mica_rejected_requests_total{status="413"}'), 1)
        with Server("--sequences", "1", "--receive-timeout", "1") as own:
            with own.connect() as connection:
                connection.sendall(b"POST /v1/completions HTTP/1.1\r\nContent-Length: 100\r\n\r\n{")
                self.assertRegex(connection.recv(4096), rb'(?s)^HTTP/1.1 408 .*"the body has not arrived within 1 s; .*--receive-timeout"')
            self.assertEqual(own.metric('mica_rejected_requests_total{status="408"}'), 1)

    def test_latencies_begin_with_the_arrival(self):
        """Reading a large body, and waiting for those of others, is part of the time to the first token."""
        with Server("--sequences", "1", "--receive-timeout", "600") as own, contextlib.ExitStack() as clients:
            slow = json.dumps({"content": "a b " * 3900000}).encode()
            # Neither the oldest nor the smallest: the others are parsed before it.
            quick = json.dumps({"prompt": "a", "max_tokens": 1}).encode().ljust(len(slow) + 1000)
            requests, opened = [(b"/tokenize", slow)] * 3 + [(b"/v1/completions", quick)], []
            for path, body in requests:
                opened.append(clients.enter_context(own.connect()))
                opened[-1].sendall(b"POST %s HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (path, len(body)) + body[:-1])
            for client, (_, body) in zip(opened, requests):
                client.sendall(body[-1:])
            sent = time.monotonic()
            self.assertRegex(opened[-1].recv(4096), rb"^HTTP/1.1 200 ")
            elapsed = time.monotonic() - sent
            for name in ("queue_time", "time_to_first_token", "request_duration"):
                self.assertGreater(own.metric(f"mica_{name}_seconds_sum"), elapsed / 2, name)

    def test_served_by_mica_run(self):
        with Server("--sequences", "1", command=[harness.mica, "run", MODEL], env={"XDG_CACHE_HOME": harness.folder("cache")}) as own:
            self.assertEqual(own.chat(max_tokens=20)["choices"], server().chat(max_tokens=20)["choices"])

    def test_full_queue(self):
        with Server("--sequences", "1", "--queue", "127") as own, own.connect() as client:
            request = json.dumps(ENDLESS).encode()
            client.sendall(b"POST /v1/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(request) + request)
            own.wait_for_metric("mica_completions_running", 1)
            # The queue is full if none of the 128 completions has ended; otherwise it has fewer places than this request needs.
            status, headers, text = own.ask("POST", "/v1/completions", ENDLESS)
            self.assertEqual((status, json.loads(text)["error"]["type"]), (429, "rate_limit_error"))
            self.assertIn(int(headers["Retry-After"]), range(1, 61))
            # An estimate from the rate at which others have ended: more than a second if there are many.
            harness.until(lambda: own.metric("mica_completions_waiting") < 127, "no completion ends")

            def estimated():
                status, headers, _ = own.ask("POST", "/v1/completions", ENDLESS)
                self.assertEqual(status, 429)
                self.assertIn(int(headers["Retry-After"]), range(1, 61))
                return int(headers["Retry-After"]) > 1

            harness.until(estimated, "the estimate is always a second")
            client.close()
            own.wait_for_metric("mica_completions_running", 0)
            self.assertEqual(own.post("/v1/completions", {"prompt": "a", "max_tokens": 1})[0], 200)

    def test_requests_that_never_fit_into_the_queue(self):
        with Server("--sequences", "1", "--queue", "1") as own:
            for param, fields in (("n", {"prompt": "a", "n": 3}), ("prompt", {"prompt": ["a"] * 3}), ("n", {"prompt": ["a"] * 2, "n": 2})):
                status, answer = own.post("/v1/completions", {"max_tokens": 1, **fields})
                self.assertEqual((status, answer["error"]["param"]), (400, param), answer)
                self.assertIn("at most 2 at once", answer["error"]["message"])
            self.assertEqual(len(own.complete(["a"] * 2, max_tokens=1)["choices"]), 2)

    @unittest.skipIf(SANITIZER, "sanitizers take memory of their own")
    def test_large_answers(self):
        """An answer that is not streamed takes at most three times its size in memory."""
        with Server("--sequences", "8") as own:
            status = pathlib.Path(f"/proc/{own.process.pid}/status")
            peak = lambda: int(re.search(r"^VmHWM:\s+(\d+) kB", status.read_text(encoding="ascii"), re.M)[1]) * 1024
            own.complete("27", max_tokens=20, n=8, ignore_eos=True)
            before = peak()
            asked = {"prompt": "27", "n": 64, "max_tokens": 900, "ignore_eos": True, "temperature": 1, "logprobs": 20}
            status_code, _, text = own.ask("POST", "/v1/completions", asked)
            self.assertEqual(status_code, 200, text[:300])
            more, answer = peak() - before, json.loads(text)
            self.assertEqual([choice["index"] for choice in answer["choices"]], list(range(64)))
            self.assertEqual({len(choice["logprobs"][name]) for choice in answer["choices"]
                              for name in ("tokens", "token_logprobs", "top_logprobs", "text_offset")}, {900})
            self.assertEqual(answer["usage"]["completion_tokens"], 64 * 900)
            self.assertGreater(len(text), 20e6)
            harness.note(self, f"an answer of {len(text) / 1e6:.1f} MB takes {more / 1e6:.1f} MB")
            self.assertLess(more, 3 * len(text) + (16 << 20))

    @unittest.skipIf(SANITIZER, "sanitizers take memory of their own")
    def test_out_of_memory(self):
        """A request for which there is not enough memory ends with an error; the server keeps running."""
        with Server("--sequences", "8", env=ONE_ARENA) as own:
            own.complete("27", max_tokens=20, n=8, ignore_eos=True)
            own.chat(max_tokens=3)
            size = settled_size(own.process.pid)
            resource.prlimit(own.process.pid, resource.RLIMIT_AS, (size + (12 << 20), resource.RLIM_INFINITY))
            for number in range(2):
                asked = {"prompt": "27", "n": 32, "max_tokens": 900, "ignore_eos": True, "temperature": 1, "logprobs": 20}
                status, answer = own.post("/v1/completions", asked)
                self.assertEqual((status, answer.get("error")),
                                 (500, {"message": "the server is out of memory", "type": "server_error", "param": None, "code": None}), number)
                self.assertEqual(own.ask("GET", "/health")[0], 200)
                self.assertEqual(own.complete("27 + 15 =", max_tokens=2)["choices"], server().complete("27 + 15 =", max_tokens=2)["choices"])
            own.wait_for_metric("mica_completions_running", 0)
            self.assertEqual(own.metric('mica_requests_total{outcome="failed"}'), 2)
            self.assertEqual(own.terminate()[1], 0)

    @unittest.skipIf(SANITIZER, "sanitizers take memory of their own")
    def test_out_of_memory_while_a_body_is_read(self):
        with Server("--sequences", "1", env=ONE_ARENA) as own:
            # Afterwards, malloc may keep the memory of the first large request.
            size = settled_size(own.process.pid)
            # An array of ids takes eight times as much memory as its text.
            large = '{"prompt":[' + "5," * 3000000 + "5]}"
            self.assertEqual(own.post("/v1/completions", large)[0], 400)
            resource.prlimit(own.process.pid, resource.RLIMIT_AS, (size + (32 << 20), resource.RLIM_INFINITY))
            status, answer = own.post("/v1/completions", large)
            self.assertEqual((status, answer["error"]["message"], answer["error"]["type"]), (500, "the server is out of memory", "server_error"))
            self.assertEqual(own.metric('mica_requests_total{outcome="failed"}'), 1)
            self.assertEqual(own.metric('mica_rejected_requests_total{status="500"}'), 0)
            self.assertEqual(own.complete("27 + 15 =", max_tokens=2)["choices"], server().complete("27 + 15 =", max_tokens=2)["choices"])

    @unittest.skipIf(SANITIZER, "sanitizers take memory of their own")
    def test_out_of_memory_while_a_body_arrives(self):
        """The client gets a reply, and the server keeps running."""
        with Server("--sequences", "1", env=ONE_ARENA) as own:
            small = {"prompt": "27 + 15 =", "max_tokens": 2, "temperature": 0}
            expected = own.post("/v1/completions", small)[1]["choices"]
            limited = settled_size(own.process.pid)
            resource.prlimit(own.process.pid, resource.RLIMIT_AS, (limited + (12 << 20), resource.RLIM_INFINITY))
            body = json.dumps(small).encode() + b" " * (15 << 20)
            chunked = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(body)
            for number, header in enumerate((b"Content-Length: %d\r\n\r\n" % len(body), chunked), 1):
                with own.connect() as connection, connection.makefile("rb") as file:
                    connection.sendall(b"POST /v1/completions HTTP/1.1\r\n" + header)
                    with contextlib.suppress(ConnectionError):
                        connection.sendall(body)
                    line = file.readline()
                    if int(line.split()[1]) != 503:
                        self.fail((header, line, file.read()))
                    headers = http.client.parse_headers(file)
                    error = json.loads(file.read(int(headers["Content-Length"])))["error"]
                    self.assertEqual((headers["Retry-After"], error["type"], set(error)), ("1", "server_error", {"message", "type", "param", "code"}))
                    self.assertIn("too many large requests at once", error["message"])
                self.assertEqual(own.metric('mica_rejected_requests_total{status="503"}'), number)
                self.assertEqual(own.post("/v1/completions", small)[1]["choices"], expected)
            self.assertEqual(own.terminate()[1], 0)

    def test_answers_that_never_fit_into_memory(self):
        chat = {"messages": QUESTION, "n": 128, "ignore_eos": True, "temperature": 1}
        large = {**chat, "logprobs": True, "top_logprobs": 20}
        with Server("--sequences", "1") as own:
            status, answer = own.post("/v1/chat/completions", large)
            self.assertEqual((status, answer["error"]["param"]), (400, "max_tokens"), answer)
            self.assertRegex(answer["error"]["message"], r"the answer may have \d+ bytes, but the server buffers at most \d+ .*lower 'max_tokens'")
            limit = int(re.search(r"at most (\d+) ", answer["error"]["message"])[1])
            each = int(re.search(r"may have (\d+) ", answer["error"]["message"])[1]) / 1024
            # The size of two requests together is limited as well; a stream, or one without log probabilities, is small.
            fitting = {**large, "max_tokens": max(1, int(limit * 0.6 / each))}
            first = own.connection()
            first.request("POST", "/v1/chat/completions", json.dumps(fitting))
            own.wait_for_metric("mica_completions_running", 1)
            status, headers, text = own.ask("POST", "/v1/chat/completions", fitting)
            self.assertEqual((status, int(headers["Retry-After"]) in range(1, 61)), (429, True), text)
            self.assertIn("too many large answers", json.loads(text)["error"]["message"])
            for accepted in ({**large, "stream": True}, chat):
                second = own.connection()
                second.request("POST", "/v1/chat/completions", json.dumps(accepted))
                own.wait_for_metric("mica_completions_waiting", 255)
                second.close()
                own.wait_for_metric("mica_completions_waiting", 127)
            first.close()
            own.wait_for_metric("mica_completions_running", 0)

            def answered():
                status, _ = own.post("/v1/chat/completions", {**fitting, "n": 1})
                return status == 200

            harness.until(answered, "nothing is released")

    def test_cached_tokens_of_several_choices(self):
        with Server("--sequences", "2") as own:
            prompt = "count from 7 to 12: " * 8
            # The first prompt is a prefix of the second one; afterwards both are cached.
            size = len(own.post("/tokenize", {"content": prompt, "add_special": True})[1]["tokens"])
            for cached in (size, 2 * size - 1):
                usage = own.complete([prompt, prompt + "7"], n=4, max_tokens=2)["usage"]
                self.assertEqual((usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]), (2 * size + 1, cached))
            self.assertEqual(own.complete("A new prompt", n=4, max_tokens=2)["usage"]["prompt_tokens_details"]["cached_tokens"], 0)
        # A prompt is computed once, whether its completions have sequences at the same time or one after the other.
        for sequences in (1, 4):
            with Server("--sequences", str(sequences)) as own:
                size = own.complete(prompt, n=4, max_tokens=2)["usage"]["prompt_tokens"]
                self.assertEqual((own.metric("mica_prompt_tokens_total"), own.metric("mica_cached_tokens_total")), (4 * size, 3 * (size - 1)))
                self.assertEqual(own.metric("mica_copied_tokens_total"), 3 * (size - 1) if sequences > 1 else 0)

    def test_many_large_bodies(self):
        """The size of the large bodies of all clients together is limited, as far as they have arrived."""
        size = 16 << 20
        head = b"POST /v1/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % size
        large = json.dumps({"prompt": "a", "max_tokens": 1}) + " " * 100000
        with Server("--sequences", "1", "--receive-timeout", "600") as own, contextlib.ExitStack() as clients:
            # Clients that send nothing of what they announce take nothing from others.
            opened = [clients.enter_context(own.connect()) for _ in range(64)]
            for number, client in enumerate(opened):
                client.sendall(b"POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{" if number % 2 else head + b"{")
            self.assertEqual(own.post("/v1/completions", large)[0], 200)
            for client in opened[:32:2]:
                client.sendall(b" " * (size - 2))

            def unread():
                """The bytes in the queues of the sockets at both ends."""
                rows = [row.split() for row in pathlib.Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
                return sum(int(count, 16) for row in rows if f":{own.port:04X}" in (row[1][-5:], row[2][-5:]) and row[3] == "01"
                           for count in row[4].split(":"))

            # Otherwise one more might be accepted instead of the last part of another.
            harness.until(lambda: unread() == 0, "the bodies do not arrive")

            def refused():
                with own.connect() as one_more, contextlib.suppress(ConnectionError):
                    one_more.sendall(head + b" " * (1 << 20))
                    one_more.shutdown(socket.SHUT_WR)
                    return one_more.recv(65536)
                return b""

            answer = harness.until(refused, "one more is accepted")
            self.assertRegex(answer, rb"(?s)^HTTP/1.1 503 .*Retry-After: 1\r\n.*too many large requests at once")
            self.assertEqual(own.post("/v1/completions", {"prompt": "a", "max_tokens": 1})[0], 200, "small ones are answered")
            for client in opened:
                client.close()
            harness.until(lambda: own.post("/v1/completions", large)[0] == 200, "nothing is released")

    @unittest.skipIf(SANITIZER, "sanitizers take memory of their own")
    def test_memory_of_waiting_completions(self):
        """The completions of a request share its prompt, its settings and its stop strings."""
        with Server("--sequences", "1", "--queue", "1200") as own:
            own.complete([5] * 1000, max_tokens=2, ignore_eos=True)
            status = pathlib.Path(f"/proc/{own.process.pid}/status")
            resident = lambda: int(re.search(r"^VmRSS:\s+(\d+) kB", status.read_text(encoding="ascii"), re.M)[1]) * 1024
            before = resident()
            fields = {"prompt": [number % 512 for number in range(1000)], "n": 128, "stop": [f"{number}" * 500 for number in range(10, 26)],
                      "logit_bias": {str(number): -1 for number in range(512)}, "max_tokens": 20, "ignore_eos": True, "stream": True}
            clients = [own.connection() for _ in range(9)]
            for client in clients:
                client.request("POST", "/v1/completions", json.dumps(fields))
            harness.until(lambda: own.metric("mica_completions_waiting") + own.metric("mica_completions_running") > 1024, "the requests do not wait")
            more = resident() - before
            harness.note(self, f"{9 * 128} completions with 1000 tokens, 16 stop strings of 1000 bytes and 512 biases take {more / 1e6:.1f} MB")
            self.assertLess(more, 16 << 20)
            for client in clients:
                client.close()
            own.wait_for_metric("mica_completions_running", 0)

    def test_connections_above_the_limit(self):
        with Server("--max-connections", "2", "--receive-timeout", "600") as own, contextlib.ExitStack() as clients:
            request = b"GET /health HTTP/1.1\r\n\r\n"
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
                connection.sendall(b"POST /v1/completions HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1000000\r\n\r\n")
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

    def sigterm_while_streaming(self, name):
        with Server("--sequences", "1", "--drain-seconds", "600", command=PROGRAMS[name]()) as own:
            connection = own.connection()
            connection.request("POST", "/v1/completions",
                               json.dumps({"prompt": "27", "max_tokens": 600, "ignore_eos": True, "stream": True}))
            answer = connection.getresponse()
            answer.readline()
            own.process.send_signal(signal.SIGTERM)
            text = answer.read().decode()
            self.assertTrue(text.endswith("data: [DONE]\n\n"), text[-200:])
            self.assertEqual(own.process.wait(harness.SECONDS), 0)
            self.assertIn(b"shutting down", own.process.stderr.read())

    def test_draining(self):
        """Until the requests in progress have ended, open connections learn that the server drains. Prompts are not logged."""
        with Server("--sequences", "1", "--drain-seconds", "600") as own:
            busy, *others = (own.connection() for _ in range(3))
            for other in others:
                other.request("GET", "/health")
                self.assertEqual(other.getresponse().read(), b'{"status":"ready"}')
            busy.request("POST", "/v1/completions", json.dumps({**ENDLESS, "prompt": "secret"}))
            own.wait_for_metric("mica_completions_running", 1)
            own.process.send_signal(signal.SIGTERM)
            self.assertIn(b"shutting down", own.process.stderr.readline())
            status, _, text = ask(others[0], "GET", "/health")
            self.assertEqual((status, json.loads(text)), (503, {"status": "draining"}))
            status, headers, text = ask(others[1], "POST", "/v1/completions", {"prompt": "a"})
            self.assertEqual((status, headers["Retry-After"], json.loads(text)["error"]["message"]), (503, "5", "the server is shutting down"))
            with self.assertRaises(ConnectionRefusedError):
                own.connect()
            busy.close()
            self.assertEqual((own.process.stderr.read(), own.process.wait(harness.SECONDS)), (b"", 0))

    def sigterm_during_a_request(self, name):
        for stream in (False, True):
            with Server("--sequences", "1", "--drain-seconds", "0", command=PROGRAMS[name]()) as own:
                connection = own.connection()
                connection.request("POST", "/v1/completions", json.dumps({**ENDLESS, "stream": stream}))
                own.wait_for_metric("mica_completions_running", 1)
                own.process.send_signal(signal.SIGTERM)
                answer = connection.getresponse()
                text = answer.read().decode()
                error = json.loads(text.strip().split("\n\n")[-1].removeprefix("data: "))["error"]
                self.assertEqual((error["type"], error["message"]), ("server_error", "the server is shutting down"), text[-300:])
                self.assertEqual(answer.status, 200 if stream and text.startswith("data: {\"id") else 503)
                self.assertEqual(own.process.wait(harness.SECONDS), 0)

    def test_second_signal(self):
        with Server("--sequences", "1", "--drain-seconds", "600") as own:
            connection = own.connection()
            connection.request("POST", "/v1/completions", json.dumps(ENDLESS))
            own.wait_for_metric("mica_completions_running", 1)
            own.process.send_signal(signal.SIGTERM)
            self.assertIn(b"shutting down", own.process.stderr.readline())
            own.process.send_signal(signal.SIGINT)
            self.assertEqual((own.process.stderr.read(), own.process.wait(harness.SECONDS)), (b"", 0))
            connection.close()

    def test_health_while_loading(self):
        """The server listens before the model is loaded; here loading waits for the chat template."""
        folder = pathlib.Path(harness.folder("loading"))
        template = (MODEL / "chat_template.jinja").read_text()
        for finishes in (True, False):
            pipe, path = folder / f"template{finishes}", folder / f"socket{finishes}"
            os.mkfifo(pipe)
            process = subprocess.Popen([program(MODEL).path, "serve", "--unix-socket", path, "--chat-template", pipe],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            try:
                def connected():
                    made = socket.socket(socket.AF_UNIX)
                    if made.connect_ex(str(path)) == 0:
                        return made
                    made.close()
                    return None

                def get(where):
                    connection = http.client.HTTPConnection("localhost", timeout=harness.SECONDS)
                    connection.sock = harness.until(connected, "the server does not listen")
                    return ask(connection, "GET", where)

                status, _, text = get("/health")
                self.assertEqual((status, json.loads(text)), (503, {"status": "loading"}))
                status, headers, text = get("/v1/models")
                self.assertEqual((status, headers["Retry-After"], json.loads(text)["error"]["message"]),
                                 (503, "1", "the model is being loaded; try again later"))
                if not finishes:
                    # It does not wait for the template.
                    process.send_signal(signal.SIGTERM)
                    self.assertEqual((process.stderr.read(), process.wait(harness.SECONDS)), (b"", 0))
                    self.assertFalse(path.exists(), "the socket is left")
                    continue
                pipe.write_text(template)
                self.assertIn(b"serving", process.stderr.readline())
                self.assertEqual(get("/health")[0], 200)
            finally:
                process.kill()
                process.wait()
                process.stderr.close()

    def test_slow_clients(self):
        def sent(connection, earlier):
            """False on a busy machine: a second was over before the earlier request was sent."""
            try:
                if earlier:
                    connection.sendall(earlier)
                    if not (answer := connection.recv(4096)):
                        return False
                    self.assertRegex(answer, rb"^HTTP/1.1 200 ")
                connection.sendall(b"GET /health HTTP/1.1\r\nX: ")
                self.assertEqual(connection.recv(4096), b"", "the time for a header is over")
            except (ConnectionResetError, BrokenPipeError):
                return False
            return True

        with Server("--receive-timeout", "1", "--idle-timeout", "600") as own:
            for earlier in (b"", b"GET /health HTTP/1.1\r\n\r\n"):
                def attempt(earlier=earlier):
                    with own.connect() as connection:
                        return sent(connection, earlier)

                harness.until(attempt, "all connections are closed too early")
        with Server("--receive-timeout", "600", "--idle-timeout", "1") as own, own.connect() as connection:
            connection.sendall(b"GET /health HTTP/1.1\r\n\r\n")
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
                connection.sendall(b"POST /v1/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(padded) + padded.encode())
            own.wait_for_metric("mica_completions_running", 0)
            self.assertEqual(own.post("/v1/completions", {"prompt": "a", "max_tokens": 1})[0], 200)

    def test_request_timeout(self):
        with Server("--sequences", "1", "--request-timeout", "1") as own:
            status, answer = own.post("/v1/completions", ENDLESS)
            self.assertEqual((status, answer["error"]["type"]), (504, "server_error"))
            own.wait_for_metric("mica_completions_running", 0)
        # Parsing and waiting for other bodies are part of the time. The server is stopped until the time is over, on most attempts while
        # it parses a body whose prompt does not fit.
        with Server("--sequences", "1", "--request-timeout", "2", "--receive-timeout", "600") as own:
            large = json.dumps({"prompt": "a b " * 3900000}).encode()

            def is_late():
                with contextlib.ExitStack() as clients:
                    opened = [clients.enter_context(own.connect()) for _ in range(2)]
                    for client in opened:
                        client.sendall(b"POST /v1/completions HTTP/1.1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(large) + large[:-1])
                    for client in opened:
                        client.sendall(large[-1:])
                    time.sleep(random.uniform(0, 0.04))
                    own.process.send_signal(signal.SIGSTOP)
                    time.sleep(2.1)
                    own.process.send_signal(signal.SIGCONT)
                    statuses = {int(client.makefile("rb").readline().split()[1]) for client in opened}
                    self.assertLessEqual(statuses, {400, 504})
                    return 504 in statuses

            harness.until(is_late, "the time of parsing is not limited")

    def test_sigterm_while_bodies_are_read(self):
        with Server("--sequences", "1", "--drain-seconds", "0") as own:
            large = json.dumps({"prompt": "a b " * 3900000})
            clients = [own.connection() for _ in range(8)]
            for client in clients:
                # On a busy machine, a body may take longer than the server waits.
                with contextlib.suppress(ConnectionError):
                    client.request("POST", "/v1/completions", large)
            own.process.send_signal(signal.SIGTERM)
            for client in clients:
                # A body that has not arrived has no answer.
                with contextlib.suppress(ConnectionError, http.client.HTTPException):
                    answer = client.getresponse()
                    message = json.loads(answer.read())["error"]["message"]
                    self.assertIn(answer.status, (400, 503), message)
                    self.assertRegex(message, "the server is shutting down" if answer.status == 503 else "more than the context")
                client.close()
            self.assertEqual(own.process.wait(harness.SECONDS), 0)

    def test_a_program_file_that_shrinks(self):
        """SIGBUS does not end the server: requests get an error, and /health says that it has failed."""
        place = pathlib.Path(harness.folder("shrinks"))
        for name in ("files", "others", "mounted"):
            (place / name).mkdir()
        path = shutil.copy(program(MODEL).path, place / "files/model")
        # Linux protects the file of a running program, but not below an overlay.
        apart = ["unshare", "--user", "--map-root-user", "--mount", "--propagation", "private", "sh", "-c",
                 f'mount -t overlay overlay -o lowerdir={place}/files:{place}/others {place}/mounted && exec "$@"', "sh"]
        allowed = harness.execute([*apart, "true"], check=False)
        if allowed.returncode:
            self.skipTest(f"needs an overlay in a namespace, which this machine refuses: {allowed.stderr.decode().strip()}")
        [weights] = [section for section in json.loads(program(MODEL).run("info", "--json").stdout)["sections"] if section["name"] == "weights"]
        with Server("--sequences", "1", command=[*apart, place / "mounted/model"]) as own:
            self.assertEqual(own.complete("27 + 15 =", max_tokens=2)["choices"], server().complete("27 + 15 =", max_tokens=2)["choices"])
            connection = own.connection()
            connection.request("POST", "/v1/completions", json.dumps({**ENDLESS, "stream": True}))
            answer = connection.getresponse()
            self.assertTrue(answer.readline().startswith(b"data: {"))
            os.truncate(path, weights["offset"])
            message = "the program file could not be read"
            *_, last, end = answer.read().decode().split("\n\n")
            # If the error is the second event, the empty line of the first one precedes it.
            self.assertEqual((message in json.loads(last.strip().removeprefix("data: "))["error"]["message"], end), (True, ""), last)
            connection.close()
            for stream in (False, True):
                status, answer = own.post("/v1/completions", {"prompt": "a", "stream": stream})
                self.assertEqual((status, message in answer["error"]["message"], answer["error"]["type"]), (503, True, "server_error"))
            status, _, text = own.ask("GET", "/health")
            self.assertEqual((status, json.loads(text)), (503, {"status": "failed"}))
            self.assertEqual(own.metric('mica_requests_total{outcome="failed"}'), 3)
            self.assertEqual(own.terminate()[1], 0)

    def test_programs_that_cannot_be_served(self):
        def refused(mention, *options):
            done = program(MODEL).run("serve", *options, check=False)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertRegex(done.stderr.decode(), mention)

        refused("1024 sequences of 1024 positions need [0-9]+ bytes of cache, but only 1000000 are available; lower --sequences", "--sequences", "1024",
                "--cache-bytes", "1000000")
        refused("1 sequence of 1024 positions needs [0-9]+ bytes of cache, but only 1000 are available; raise --cache-bytes, or compile", "--cache-bytes", "1000")
        refused("--host nowhere is not an IP address", "--host", "nowhere")
        refused(r"cannot listen on [\d.]+:\d+: .*; choose another --port or --host", "--port", str(server().port))
        empty = pathlib.Path(harness.folder("keys")) / "none"
        empty.write_text("\n")
        refused("holds no key", "--api-key-file", empty)
        refused("--api-key is empty", "--api-key", " ")
