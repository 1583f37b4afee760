"""`PROGRAM serve`: fields of requests are effective or rejected; log probabilities."""

import json
import pathlib
import re

import checkpoint
import harness
from scripted import scripted
from served import NAME, QUESTION, ServeCase, Server, server


class Refused:
    """A value that the server does not accept."""

    def __init__(self, value):
        self.value = value


#: The fields of OpenAI's reference, with values that have an effect or are refused; test_serve_clients compares them with those of the package.
REFERENCE = {
    "/v1/chat/completions": {
        "messages": [{"role": "user", "content": "sort: c a b"}], "model": NAME, "audio": Refused({"voice": "a", "format": "wav"}),
        "frequency_penalty": 2, "function_call": Refused("auto"), "functions": Refused([{"name": "f"}]), "logit_bias": {"20": 100},
        "logprobs": True, "max_completion_tokens": 1, "max_tokens": 1, "metadata": Refused({"a": "b"}), "modalities": Refused(["text", "audio"]),
        "moderation": Refused({"model": "m"}), "prompt_cache_options": Refused({"mode": "implicit"}),
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


class Fields(ServeCase):
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
