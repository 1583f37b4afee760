"""`PROGRAM serve`: answers of the HTTP API, and that they do not depend on other requests."""

import concurrent.futures
import json
import pathlib
import shutil

import harness
from harness import for_each, program
from served import ENDLESS, MODEL, NAME, PROGRAMS, QUESTION, ServeCase, Server, server


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


@for_each(PROGRAMS, "answers_do_not_depend_on_other_requests")
class Serve(ServeCase):
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

    def test_prompts_of_a_list_are_sampled_independently(self):
        """Without a seed. With one, each prompt is completed as it would be alone."""
        asked = {"prompt": ["27"] * 3, "max_tokens": 80, "ignore_eos": True, "temperature": 2}
        texts = [choice["text"] for choice in server().complete(**asked, n=2)["choices"]]
        self.assertEqual(len(set(texts)), 6)
        texts = [choice["text"] for choice in server().complete(**asked, n=2, seed=5)["choices"]]
        self.assertEqual((texts[2:4], texts[4:]), (texts[:2], texts[:2]))
        alone = server().complete("27", max_tokens=80, ignore_eos=True, temperature=2, n=2, seed=5)["choices"]
        self.assertEqual([choice["text"] for choice in alone], texts[:2])

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
