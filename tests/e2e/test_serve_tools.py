"""`PROGRAM serve`: tool calls and reasoning, in the formats of model families."""

import json

import harness
from harness import Case, for_each
from scripted import scripted
from served import Server

TEMPLATES = harness.ROOT / "tests/jinja/templates"
QUESTION = [{"role": "user", "content": "27 + 15"}]
TOOLS = [{"type": "function", "function": {
    "name": "add", "description": "Adds.", "parameters": {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}}}},
         {"type": "function", "function": {"name": "now", "description": "The time.", "parameters": {"type": "object", "properties": {}}}}]
# The beginning of a turn, which determines the model's answer.
START = ("{% if add_generation_prompt %}{{ '<|after|>' if messages[-1].role == 'tool' else '<|both|>' if messages[-1].content == 'both' "
         "else '<|think|>' if messages[-1].content == 'think' else '<|call|>' if tools else '<|plain|>' }}{% endif %}")
PLAIN = {"<|plain|>": ["Forty", "-two"], "<|after|>": ["It is", " 42."]}
FORMATS = {
    "qwen2": {"<|call|>": ["Let me see.", "\n<tool", '_call>\n{"name": "add", "argu', 'ments": {"a": 27,', ' "b": 15}}\n', "</tool_call>"],
              "<|both|>": ['<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>\n',
                           '<tool_call>{"name": "now", "arguments": {}}</tool_call>'], **PLAIN},
    "llama3": {"<|call|>": ["<|python_tag|>", '{"name": "add", "param', 'eters": {"a": 27,', ' "b": 15}}'],
               "<|both|>": ['{"name": "add", "parameters": {"a": 1}}', '; {"name": "now", "parameters": {}}'], **PLAIN},
    "mistral": {"<|call|>": ["[TOOL_CALLS]", ' [{"name": "add", "argu', 'ments": {"a": 27,', ' "b": 15}}]'],
                "<|both|>": ['[TOOL_CALLS] [{"name": "add", "arguments": {"a": 1}}, ', '{"name": "now", "arguments": {}}]'], **PLAIN},
    "smollm-tools": {"<|call|>": ["Let me see.", ' <tool_call>[{"name": "add", "argu', 'ments": {"a": 27,', ' "b": 15}}]</tool_call>'],
                     "<|both|>": ['<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call> ',
                                  '<tool_call>{"name": "now", "arguments": {}}</tool_call>'], **PLAIN},
}
CHAT = "/v1/chat/completions"


def model_of(family, scripts):
    """A program with the template of a family."""
    template = (TEMPLATES / f"{family}.jinja").read_text(encoding="utf-8").rstrip("\n")
    return harness.once(("scripted", family), lambda: scripted(family, template + START, scripts, ("<|python_tag|>", "[TOOL_CALLS]")))


def joined(events):
    """The message joined from deltas, and its finish reason."""
    message, reason = {"content": "", "reasoning_content": "", "tool_calls": []}, None
    for event in events:
        [choice] = event["choices"]
        reason = choice["finish_reason"]
        for key, value in choice["delta"].items():
            if key == "tool_calls":
                [call] = value
                index = call.pop("index")
                if index < len(message["tool_calls"]):
                    # More of the arguments.
                    assert index == len(message["tool_calls"]) - 1 and list(call) == ["function"] and list(call["function"]) == ["arguments"]
                    message["tool_calls"][index]["function"]["arguments"] += call["function"]["arguments"]
                else:
                    assert index == len(message["tool_calls"]) and call["function"]["arguments"] == ""
                    message["tool_calls"].append(call)
            elif key != "role":
                message[key] += value
    return message, reason


class ToolCase(Case):
    def check_calls(self, model, scripts):
        """Calls of a model with these scripts."""
        with Server("--sequences", "2", model=model) as server:
            plain = server.chat(QUESTION)["choices"][0]
            self.assertEqual((plain["message"]["content"], plain["finish_reason"]), ("Forty-two", "stop"))
            self.assertNotIn("tool_calls", plain["message"])
            without = server.chat(QUESTION, tools=TOOLS, tool_choice="none")["choices"][0]
            self.assertEqual(without, plain)

            choice = server.chat(QUESTION, tools=TOOLS)["choices"][0]
            [call] = choice["message"]["tool_calls"]
            self.assertEqual(choice["finish_reason"], "tool_calls")
            self.assertEqual(choice["message"]["content"], "Let me see." if "Let me see." in scripts["<|call|>"] else None)
            self.assertEqual((call["type"], call["function"]["name"], json.loads(call["function"]["arguments"])),
                             ("function", "add", {"a": 27, "b": 15}))
            self.assertRegex(call["id"], "^[a-z0-9]{9}$")

            # Unknown formats are text.
            other = server.chat(QUESTION, tools=[TOOLS[1]])["choices"][0]
            self.assertNotIn("tool_calls", other["message"])
            self.assertIn('"add"', other["message"]["content"])
            # So is an incomplete call.
            cut = server.chat(QUESTION, tools=TOOLS, max_tokens=2)["choices"][0]
            self.assertEqual((cut["finish_reason"], "tool_calls" in cut["message"]), ("length", False))

            # Two calls, streamed; and the first of them alone.
            both = {"messages": [{"role": "user", "content": "both"}], "tools": TOOLS, "temperature": 0, "stream": True}
            message, reason = joined(server.events(CHAT, both))
            self.assertEqual(([(call["function"]["name"], call["function"]["arguments"]) for call in message["tool_calls"]], reason),
                             ([("add", '{"a": 1}'), ("now", "{}")], "tool_calls"))
            message, reason = joined(server.events(CHAT, {**both, "parallel_tool_calls": False}))
            self.assertEqual(([call["function"]["name"] for call in message["tool_calls"]], reason), (["add"], "tool_calls"))
            events = server.events(CHAT, {**both, "messages": QUESTION})
            pieces = [delta["function"]["arguments"] for event in events for delta in event["choices"][0]["delta"].get("tool_calls", [])]
            self.assertEqual(pieces, ["", '{"a": 27,', ' "b": 15}'], "the name, then arguments as they come")
            message, reason = joined(events)
            self.assertEqual((message["content"] or None, message["tool_calls"][0]["function"], reason),
                             (choice["message"]["content"], call["function"], "tool_calls"))
            # The streamed part of truncated arguments.
            length = next(number for number, piece in enumerate(scripts["<|call|>"], 1) if '"a": 27' in piece)
            for stream in (False, True):
                asked = {"messages": QUESTION, "tools": TOOLS, "temperature": 0, "max_tokens": length}
                if stream:
                    message, reason = joined(server.events(CHAT, {**asked, "stream": True}))
                else:
                    [cut] = server.post(CHAT, asked)[1]["choices"]
                    message, reason = cut["message"], cut["finish_reason"]
                self.assertEqual((message["tool_calls"][0]["function"], reason), ({"name": "add", "arguments": '{"a": 27,'}, "length"))

            # The result is sent back.
            turns = QUESTION + [choice["message"], {"role": "tool", "tool_call_id": call["id"], "content": "42"}]
            self.assertEqual(server.chat(turns, tools=TOOLS)["choices"][0]["message"]["content"], "It is 42.")
            counts = [server.chat(QUESTION + [{**choice["message"], "tool_calls": [
                {**call, "function": {"name": "add", "arguments": arguments}}]}, turns[-1]], tools=TOOLS[:1])["usage"]["prompt_tokens"]
                      for arguments in ('{"a": 1}', '{"a": 1, "b": "longer"}')]
            self.assertLess(counts[0], counts[1], "the template reads arguments")
            for mention, wrong in (('"tool_call_id"', {**turns[-1], "tool_call_id": "other"}),
                                   ('"tool_calls" of a message of the role "user"', {**choice["message"], "role": "user"}),
                                   ("the text of a JSON object", {**choice["message"], "tool_calls": [
                                       {**call, "function": {"name": "add", "arguments": "x"}}]})):
                status, answer = server.post(CHAT, {"messages": turns[:2] + [wrong]})
                self.assertEqual((status, mention in answer["error"]["message"]), (400, True), answer)


@for_each(FORMATS, "calls")
class Tools(ToolCase):
    def calls(self, family):
        self.check_calls(model_of(family, FORMATS[family]), FORMATS[family])


class Refusals(Case):
    def test_tools_that_are_refused(self):
        with Server("--sequences", "1", model=model_of("qwen2", FORMATS["qwen2"])) as server:
            function = TOOLS[0]["function"]
            for mention, fields in (("only a 'tool_choice' of", {"tools": TOOLS, "tool_choice": "required"}),
                                    ("only a 'tool_choice' of", {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "add"}}}),
                                    ("'tool_choice' requires 'tools'", {"tool_choice": "auto"}),
                                    ("'parallel_tool_calls' requires 'tools'", {"parallel_tool_calls": False}),
                                    ("is not an array of at most 128 tools", {"tools": {}}),
                                    ("an element of 'tools' is not", {"tools": [{"type": "retrieval"}]}),
                                    ('the "strict" of a function', {"tools": [{"type": "function", "function": {**function, "strict": True}}]}),
                                    ('the "description" of a function in \'tools\' is not a string', {"tools": [
                                        {"type": "function", "function": {**function, "description": 1}}]}),
                                    ('the "parameters" of a function in \'tools\' is not an object', {"tools": [
                                        {"type": "function", "function": {**function, "parameters": []}}]}),
                                    ("letters, digits", {"tools": [{"type": "function", "function": {"name": "a b"}}]}),
                                    ('have the same "name"', {"tools": TOOLS[:1] * 2})):
                status, answer = server.post(CHAT, {"messages": QUESTION, **fields})
                self.assertEqual((status, mention in answer["error"]["message"]), (400, True), answer)
            # null is equivalent to omitting a field.
            null = {"type": "function", "function": {**function, "strict": None, "other": None}, "other": None}
            [call] = server.chat(QUESTION, tools=[null, TOOLS[1]])["choices"][0]["message"]["tool_calls"]
            self.assertEqual(call["function"]["name"], "add")
            null = {"type": "function", "function": {"name": "add", "description": None, "parameters": None}}
            self.assertEqual(server.post(CHAT, {"messages": QUESTION, "tools": [null], "max_tokens": 1})[0], 200)
            parts = [{"role": "user", "content": [{"type": "text", "text": "27 + 15", "other": None}]}]
            asked = {"messages": parts, "max_tokens": 1, "stream": True, "stream_options": {"include_usage": None}}
            self.assertTrue(all("usage" not in event for event in server.events(CHAT, asked)))
            named = QUESTION[0] | {"name": "Ada"}
            for mention, message in (('ignores the "name"', named), ("does not support reasoning", {"role": "assistant", "content": "", "reasoning_content": "a"}),
                                     ('the "refusal" of a message', {"role": "assistant", "content": "", "refusal": "No."})):
                status, answer = server.post(CHAT, {"messages": [message]})
                self.assertEqual((status, mention in answer["error"]["message"]), (400, True), answer)

    def test_templates_without_a_known_format(self):
        with Server("--sequences", "1", model=model_of("command-r", PLAIN)) as server:
            status, answer = server.post(CHAT, {"messages": QUESTION, "tools": TOOLS})
            self.assertEqual((status, answer["error"]["param"]), (400, "tools"))
            self.assertIn("Hermes, Llama 3, Mistral, SmolLM", answer["error"]["message"])

    def test_templates_that_leave_results_out(self):
        template = "{% for m in messages if m.role != 'tool' and m.role != 'system' %}{{ m.content }};{% endfor %}" + START
        path = harness.once(("scripted", "deaf"), lambda: scripted("deaf", template, PLAIN))
        call = {"id": "a", "type": "function", "function": {"name": "add", "arguments": "{}"}}
        with Server("--sequences", "1", model=path) as server:
            for mention, messages in (('ignores a message of the role "tool" (number 2)', [{"role": "tool", "content": "42"}]),
                                      ('ignores a message of the role "system" (number 2)', [{"role": "system", "content": "Be brief."}]),
                                      ('ignores the "tool_calls"', [{"role": "assistant", "content": "", "tool_calls": [call]}])):
                status, answer = server.post(CHAT, {"messages": QUESTION + messages})
                self.assertEqual((status, mention in answer["error"]["message"]), (400, True), answer)

    def test_templates_that_read_some_messages(self):
        """One that is read does not hide one that is not."""
        path = model_of("command-r", PLAIN)
        system = lambda text: {"role": "system", "content": text}
        ask = lambda server, messages, **fields: server.post(CHAT, {"messages": messages, "max_tokens": 1, **fields})
        with Server("--sequences", "1", model=path) as server:
            self.assertEqual(ask(server, [system("Be brief."), *QUESTION])[0], 200)
            status, answer = ask(server, [system("Be brief."), *QUESTION, {"role": "assistant", "content": "42"}, system("Be kind."), *QUESTION])
            self.assertEqual(status, 400, answer)
        # The second of two; a number instead of the text; roles only; nothing of later messages.
        for name, template, accepted, number in (
                ("first-system", "{% for m in messages %}{% if m.role != 'system' or loop.first %}{{ m.content }};{% endif %}{% endfor %}", True, 3),
                ("lengths", "{% for m in messages %}{{ m.content | length }};{% endfor %}", True, None),
                ("last", "{{ messages[-1].content }}", True, 1)):
            made = harness.once(("scripted", name), lambda name=name, template=template: scripted(name, template + START, PLAIN))
            with self.subTest(name), Server("--sequences", "1", model=made) as server:
                self.assertEqual(ask(server, QUESTION)[0] == 200, accepted)
                status, answer = ask(server, [system("Be brief."), *QUESTION, system("Be kind."), *QUESTION])
                if number is None:
                    self.assertEqual(status, 200, answer)
                else:
                    self.assertEqual((status, f"(number {number})" in answer["error"]["message"]), (400, True), answer)


class Reasoning(Case):
    def test_reasoning_is_separate_from_content(self):
        scripts = {"<|think|>": ["<think>", "\nI add", " them.\n", "</think>", "\n\nForty", "-three"],
                   "<|both|>": ["<think>\nI call.\n</thi", 'nk>\n\n<tool_call>{"name": "now", "arguments": {}}</tool_call>'], **PLAIN}
        template = (TEMPLATES / "qwen3.jinja").read_text(encoding="utf-8").rstrip("\n") + START
        path = scripted("qwen3", template, scripts, ("<think>", "</think>"))
        with Server("--sequences", "1", model=path) as server:
            think = [{"role": "user", "content": "think"}]
            message = server.chat(think)["choices"][0]["message"]
            self.assertEqual((message["reasoning_content"], message["content"]), ("I add them.", "Forty-three"))
            streamed, reason = joined(server.events(CHAT, {"messages": think, "temperature": 0, "stream": True}))
            self.assertEqual((streamed["reasoning_content"], streamed["content"], reason), ("I add them.", "Forty-three", "stop"))
            self.assertNotIn("reasoning_content", server.chat(QUESTION)["choices"][0]["message"])
            message = server.chat([{"role": "user", "content": "both"}], tools=TOOLS)["choices"][0]["message"]
            self.assertEqual((message["reasoning_content"], message["tool_calls"][0]["function"]["name"]), ("I call.", "now"))
            # It is sent back, also if the template drops the reasoning of earlier turns.
            self.assertEqual(server.chat(think + [{"role": "assistant", "content": "42", "reasoning_content": "I add them."}] + QUESTION)
                             ["choices"][0]["message"]["content"], "Forty-two")

    def test_a_prompt_that_begins_reasoning(self):
        template = ("{% for m in messages %}{{ m.role ~ ':' ~ m.content.split('</think>')[-1] ~ '<|im_end|>' }}{% endfor %}"
                    "{% if add_generation_prompt %}{{ 'assistant:<think>' }}{% endif %}")
        path = scripted("open-think", template, {"<think>": ["I add.", "</think>42"]})
        with Server("--sequences", "1", model=path) as server:
            message = server.chat(QUESTION)["choices"][0]["message"]
            self.assertEqual((message["reasoning_content"], message["content"]), ("I add.", "42"))
