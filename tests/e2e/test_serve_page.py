"""The web page of `PROGRAM serve`, in headless Chromium by WebDriver."""

import datetime
import email.utils
import time

import browser
from harness import Case
from scripted import scripted
from served import NAME, Server

#: Texts that would run scripts, load resources or leave the page if they were parsed as markup.
HOSTILE = ["<script>window.hacked = 1</script>", "<img src=x onerror='window.hacked = 1'>", "[a](javascript:window.hacked=1)",
           "**<svg/onload=window.hacked=1>**", "```\n<iframe src='javascript:window.hacked=1'></iframe>\n```",
           "# <a href='javascript:window.hacked=1' id=a>x</a>", "- <b onmouseover=window.hacked=1>x</b>", "`<i>x</i>`",
           "[<u>x</u>](https://a.example/)", "| <img src=x onerror=window.hacked=1> |\n|---|\n| [a](javascript:window.hacked=1) <svg/onload=window.hacked=1> |",
           "1. x\n   - <script>window.hacked = 1</script>\n\n     - <iframe src='javascript:window.hacked=1'></iframe>"]


class Browser(browser.Browser):
    def messages(self):
        return self.run("return [...document.querySelectorAll('.message')].map(each => [each.className, each.textContent.trim()])")


class Page(Case):
    def test_headers(self):
        with Server() as server:
            for path, kind in (("/", "text/html"), ("/app.js", "text/javascript"), ("/style.css", "text/css")):
                status, headers, text = server.ask("GET", path)
                self.assertEqual((status, headers["Content-Type"]), (200, kind + "; charset=utf-8"))
                self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
                self.assertIn("require-trusted-types-for 'script'", headers["Content-Security-Policy"])
                self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
                self.assertEqual(headers["Cross-Origin-Resource-Policy"], "same-origin")
                self.assertEqual(headers["Cross-Origin-Opener-Policy"], "same-origin")
                self.assertEqual(headers["Cache-Control"], "no-cache")
                self.assertGreater(len(text), 500)
            _, headers, _ = server.ask("GET", "/v1/models")
            self.assertEqual(headers["Cache-Control"], "no-store")
            sent = email.utils.parsedate_to_datetime(headers["Date"])
            self.assertLess(abs((datetime.datetime.now(datetime.timezone.utc) - sent).total_seconds()), 600)

    def test_a_conversation(self):
        with Server("--sequences", "1") as server, Browser() as browser:
            browser.open(f"http://{server.host}:{server.port}/")
            browser.wait(f"return document.title.startsWith('{NAME}')", "the model's name")
            browser.run("document.getElementById('settings').open = true")
            browser.type("temperature", "0")
            browser.type("input", "27 + 15\ue007")
            idle = "return document.getElementById('stop').hidden && document.querySelectorAll('.message.assistant').length > 0"
            browser.wait(idle, "an answer")
            self.assertEqual(browser.messages(), [["message user", "27 + 15"], ["message assistant", "42"]])
            self.assertRegex(browser.run("return document.getElementById('status').textContent"), r"^\d+ tokens, .* per second; prompt \d+ tokens")
            # A newline by Shift+Enter, and another answer to the same question.
            browser.type("input", "sort\ue008\ue007\ue000d b a c\ue007")
            browser.wait(idle, "a second answer")
            self.assertEqual(browser.messages()[2], ["message user", "sort\nd b a c"])
            before = browser.messages()
            browser.click("regenerate")
            browser.wait(idle, "the answer once more")
            self.assertEqual(browser.messages(), before)
            browser.click("reset")
            self.assertEqual(browser.messages(), [])
            # Errors of the server are shown, and the question can be sent again.
            browser.type("top_k", "0.5")
            browser.type("input", "27 + 15\ue007")
            browser.wait("return document.querySelectorAll('.message.error').length > 0", "an error")
            self.assertIn("'top_k' is not a whole number", browser.messages()[-1][1])
            self.assertEqual(browser.run("return [conversation.length, document.getElementById('input').value]"), [0, "27 + 15"])
            browser.run("document.getElementById('top_k').value = ''")
            browser.type("input", "\ue007")
            browser.wait(idle, "an answer after the error")
            self.assertEqual(browser.messages()[1:], [["message user", "27 + 15"], ["message assistant", "42"]])
            self.assertEqual(browser.run("return conversation.map(message => message.role)"), ["user", "assistant"])

    def test_an_api_key(self):
        with Server("--sequences", "1", "--api-key", "secret") as server, Browser() as browser:
            browser.open(f"http://{server.host}:{server.port}/")
            browser.type("input", "27 + 15\ue007")
            browser.wait("return document.querySelectorAll('.message.error').length > 0", "an error")
            self.assertIn("an API key is required", browser.messages()[-1][1])
            self.assertEqual(browser.run("return document.title"), "Mica")
            browser.run("document.getElementById('settings').open = true")
            browser.type("temperature", "0")
            browser.type("key", "secret\ue004")
            browser.wait(f"return document.title.startsWith('{NAME}')", "the model's name")
            browser.type("input", "\ue007")
            browser.wait("return document.getElementById('stop').hidden && conversation.length == 2", "an answer")
            self.assertEqual(browser.messages()[-1], ["message assistant", "42"])

    def test_scrolling(self):
        """The page scrolls with an answer, unless the reader has scrolled back."""
        with Server("--sequences", "1") as server, Browser() as browser:
            browser.open(f"http://{server.host}:{server.port}/")
            browser.run("""window.fetch = async () => new Response(new ReadableStream({start(controller) {
                             window.feed = text => controller.enqueue(new TextEncoder().encode(
                                 "data: " + JSON.stringify({choices: [{delta: {content: text}}]}) + "\\n\\n"));
                           }}));""")
            browser.type("input", "a\ue007")
            browser.wait("return typeof feed === 'function'", "the request")
            place = "const list = document.getElementById('messages'); "
            rest = "list.scrollHeight - list.scrollTop - list.clientHeight"

            def feed(name):
                browser.run("feed(arguments[0] + '\\n\\n'.repeat(2) + 'line\\n\\n'.repeat(100))", name)
                browser.wait(f"return document.querySelector('.message.assistant').textContent.includes('{name}')", name)

            feed("first")
            self.assertLess(browser.run(place + f"return {rest}"), 30)
            browser.run(place + "list.scrollTop = 50")
            feed("second")
            self.assertEqual(browser.run(place + "return list.scrollTop"), 50)
            browser.run(place + "list.scrollTop = list.scrollHeight")
            feed("third")
            self.assertLess(browser.run(place + f"return {rest}"), 30)

    def test_an_answer_is_stopped(self):
        with Server("--sequences", "1") as server, Browser() as browser:
            browser.open(f"http://{server.host}:{server.port}/")
            # An endless answer: the page's request is changed on its way.
            browser.run("""const ask = window.fetch;
                           window.fetch = (path, options) => ask(path, options?.body ? {...options, body: JSON.stringify(
                               {...JSON.parse(options.body), ignore_eos: true, n: 1})} : options);""")
            browser.type("input", "27 + 15\ue007")
            browser.wait("return document.querySelector('.message.assistant')?.textContent.length > 3", "a part of an answer")
            browser.type("input", "\ue00c")
            browser.wait("return document.getElementById('stop').hidden", "the end of the answer")
            server.wait_for_metric("mica_completions_running", 0)

    def test_a_new_chat_during_an_answer(self):
        """Nothing of the old answer gets into the new conversation, whose answer can be stopped."""
        with Server("--sequences", "2") as server, Browser() as browser:
            browser.open(f"http://{server.host}:{server.port}/")
            browser.run("""const ask = window.fetch;
                           window.asked = [];
                           window.endless = true;
                           window.fetch = (path, options) => {
                             if (!options?.body)
                               return ask(path, options);
                             const body = {...JSON.parse(options.body), temperature: 0, ignore_eos: window.endless};
                             window.asked.push(body.messages);
                             return ask(path, {...options, body: JSON.stringify(body)});
                           };""")
            at_once = """document.getElementById("reset").click();
                         document.getElementById("input").value = "27 + 15";
                         document.getElementById("form").requestSubmit();"""
            browser.type("input", "sort: c a b\ue007")
            browser.wait("return document.querySelector('.message.assistant')?.textContent.length > 3", "a part of an answer")
            # The old request is still in progress when the new one begins.
            browser.run("window.endless = false;" + at_once)
            browser.wait("return document.getElementById('stop').hidden && conversation.length == 2", "the new answer")
            self.assertEqual(browser.messages(), [["message user", "27 + 15"], ["message assistant", "42"]])
            self.assertEqual(browser.run("return window.asked.at(-1)"), [{"role": "user", "content": "27 + 15"}])
            server.wait_for_metric("mica_completions_running", 0)
            # Answers that never end.
            browser.run("""window.fetch = async (path, options) => {
                             const number = window.asked.push(JSON.parse(options.body).messages);
                             const event = JSON.stringify({choices: [{delta: {content: "answer " + number}}]});
                             return new Response(new ReadableStream({start(controller) {
                               controller.enqueue(new TextEncoder().encode("data: " + event + "\\n\\n"));
                               options.signal.addEventListener("abort", () => controller.error(new DOMException("", "AbortError")));
                             }}));
                           };
                           window.asked = [];""" + at_once)
            browser.wait("return document.querySelector('.message.assistant').textContent == 'answer 1'", "the first answer")
            browser.run(at_once)
            browser.wait("return document.querySelector('.message.assistant').textContent == 'answer 2'", "the second answer")
            self.assertEqual(browser.run("return [document.getElementById('stop').hidden, conversation.length]"), [False, 1])
            browser.type("input", "\ue00c")
            browser.wait("return document.getElementById('stop').hidden", "the end")
            question = {"role": "user", "content": "27 + 15"}
            self.assertEqual(browser.run("return [conversation, window.asked]"),
                             [[question, {"role": "assistant", "content": "answer 2"}], [[question], [question]]])

    def test_an_answer_is_stopped_before_it_begins(self):
        with Server("--sequences", "1") as server, Browser() as browser:
            browser.open(f"http://{server.host}:{server.port}/")
            browser.run("""window.fetch = (path, options) => new Promise((_, reject) =>
                               options.signal.addEventListener("abort", () => reject(new DOMException("", "AbortError"))));""")
            browser.type("input", "27 + 15\ue007")
            browser.type("input", "more\ue00c")
            browser.wait("return document.getElementById('stop').hidden", "the end")
            self.assertEqual((browser.messages(), browser.run("return document.getElementById('input').value")), ([], "27 + 15\nmore"))

    def test_reasoning(self):
        template = ("{% for m in messages %}{{ m.role ~ ':' ~ m.content.split('</think>')[-1] ~ '<|im_end|>' }}{% endfor %}"
                    "{% if add_generation_prompt %}{{ 'assistant:<think>' }}{% endif %}")
        path = scripted("page-think", template, {"<think>": ["I <b>add</b>.", "</think>42"]})
        with Server("--sequences", "1", model=path) as server, Browser() as browser:
            browser.open(f"http://{server.host}:{server.port}/")
            browser.run("document.getElementById('temperature').value = 0")
            browser.type("input", "27 + 15\ue007")
            browser.wait("return document.getElementById('stop').hidden && conversation.length == 2", "an answer")
            shown = browser.run("""const details = document.querySelector(".message.assistant > details");
                                   return [details.open, details.querySelector("summary").textContent, details.querySelector("div").textContent,
                                           details.nextSibling.textContent]""")
            self.assertEqual(shown, [False, "Reasoning", "I <b>add</b>.", "42"])
            self.assertEqual(browser.run("return conversation"), [{"role": "user", "content": "27 + 15"}, {"role": "assistant", "content": "42"}])

    def test_hostile_texts_of_a_model(self):
        """Answer, reasoning, error and the model's name are text, whatever a model consists of."""
        name = "<img src=x onerror=window.hacked=1>"
        failing = "<svg onload='window.hacked = 1'>"
        template = ("{% if messages[-1].content == 'fail' %}{{ raise_exception(\"" + failing + "\") }}{% endif %}"
                    "{% for m in messages %}{{ m.role ~ ':' ~ m.content.split('</think>')[-1] ~ '<|im_end|>' }}{% endfor %}"
                    "{% if add_generation_prompt %}{{ 'assistant:<think>' }}{% endif %}")
        reasoning = "<script>window.hacked = 2</script><b>I think</b>"
        path = scripted(name, template, {"<think>": [reasoning, "</think>" + HOSTILE[0], *("\n\n" + text for text in HOSTILE[1:])]})
        with Server("--sequences", "1", model=path) as server, Browser() as browser:
            browser.open(f"http://{server.host}:{server.port}/")
            browser.wait("return document.title != 'Mica'", "the model's name")
            self.assertEqual(browser.run("return [document.getElementById('model').textContent, document.title]"), [name, name + " – Mica"])
            browser.run("document.getElementById('temperature').value = 0")
            browser.type("input", "<i>27</i> + 15\ue007")
            browser.wait("return document.getElementById('stop').hidden && conversation.length == 2", "an answer")
            self.assertEqual(browser.run("return conversation[1].content"), "\n\n".join(HOSTILE))
            self.assertEqual(browser.run("return document.querySelector('.reasoning > div').textContent"), reasoning)
            browser.type("input", "fail\ue007")
            browser.wait("return document.querySelectorAll('.message.error').length > 0", "an error")
            self.assertIn(failing, browser.messages()[-1][1])
            kinds = browser.run("return [...new Set([...document.body.querySelectorAll('#messages *, h1 *')].map(each => each.tagName))].sort()")
            self.assertEqual(kinds, ["A", "ARTICLE", "CODE", "DETAILS", "DIV", "H2", "LI", "OL", "P", "PRE", "STRONG", "SUMMARY",
                                     "TABLE", "TBODY", "TD", "TH", "THEAD", "TR", "UL"])
            attributes = browser.run("return [...document.querySelectorAll('#messages *')].flatMap(each => each.getAttributeNames())")
            self.assertLessEqual(set(attributes), {"class", "aria-label", "href", "rel", "start", "tabindex", "target"})
            self.assertEqual(browser.run("return [...document.querySelectorAll('#messages a')].map(each => each.href)"), ["https://a.example/"])
            self.assertIsNone(browser.run("return window.hacked ?? null"))

    def test_an_answer_is_rendered_once_per_frame(self):
        """And only from its last block on."""
        with Server("--sequences", "1") as server, Browser() as browser:
            browser.open(f"http://{server.host}:{server.port}/")
            browser.run("""window.frames = [];
                           window.requestAnimationFrame = callback => window.frames.push(callback);
                           window.consumed = 0;
                           const parse = JSON.parse;
                           JSON.parse = text => { ++window.consumed; return parse(text); };
                           window.fetch = async () => new Response(new ReadableStream({start(controller) {
                             window.feed = texts => { for (const text of texts) controller.enqueue(new TextEncoder().encode(
                                 "data: " + JSON.stringify({choices: [{delta: {content: text}}]}) + "\\n\\n")); };
                             window.end = () => controller.close();
                           }}));""")
            browser.type("input", "a\ue007")
            browser.wait("return typeof feed === 'function'", "the request")
            content = "document.querySelector('.message.assistant > div')"

            def feed(*texts):
                before = browser.run("return window.consumed")
                browser.run("feed(arguments[0])", texts)
                browser.wait(f"return window.consumed == {before + len(texts)}", "the events")

            feed(*["word "] * 500, "\n\n", "- x\n", "- y")
            self.assertEqual(browser.run("return frames.length"), 1)
            self.assertEqual(browser.run(f"return {content}.textContent"), "…")
            browser.run("frames.pop()(0)")
            self.assertEqual(browser.run(f"return [...{content}.children].map(each => each.tagName)"), ["P", "UL"])
            browser.run(f"window.kept = [...{content}.children]")
            feed("z\n", "\n```\nint i;\n\nint j;\n", "```\nend")
            browser.run("frames.pop()(0)")
            self.assertEqual(browser.run(f"return [...{content}.children].map(each => each.tagName)"), ["P", "UL", "PRE", "P"])
            self.assertEqual(browser.run(f"return {content}.children[1].textContent"), "xyz")
            self.assertEqual(browser.run(f"return {content}.children[0] === window.kept[0]"), True)
            # However the text is divided, the result is the same. Without frames, as in the background, it is shown at the end.
            feed(*" **bold** `code`\n\n1. one\n2. two\n# Title\nline\nline\n```\n# no\n\n```\n- last\n  and")
            browser.run("end()")
            browser.wait("return document.getElementById('stop').hidden", "the end")
            same = browser.run(f"""const place = document.createElement("div");
                                   renderMarkdown(place, conversation.at(-1).content);
                                   return [{content}.innerHTML, place.innerHTML]""")
            self.assertEqual(same[0], same[1])
            text = ("# a\n\nb *c*\n- d\n- e\n\n1. f\n2. g\nh\n```x\ni\n\n- j\n```\nk\n\n\n``` \nl\n```\n- m\n\n10. n\n\n    - o\n    - p\n\n11. q\n\n"
                    "| r | s |\n|---|:-:|\n| t | u |\n| v\n\nw\n| x |\n| - |\n\n\n- y\n\nz\n\n- a")
            different = browser.run("""const text = arguments[0], found = [];
                                       for (let step = 1; step < 9; ++step) {
                                         const place = document.createElement("div"), whole = document.createElement("div");
                                         const growing = new GrowingMarkdown(place);
                                         for (let end = step; end < text.length + step; end += step)
                                           growing.render(text.slice(0, end));
                                         renderMarkdown(whole, text);
                                         if (place.innerHTML !== whole.innerHTML)
                                           found.push([step, place.innerHTML, whole.innerHTML]);
                                       }
                                       return found;""", text)
            self.assertEqual(different, [])

    def test_repetitions_are_rendered_in_linear_time(self):
        """A model in a loop does not freeze the page: quadratic work would exceed the driver's limit."""
        with Server("--sequences", "1") as server, Browser() as browser:
            browser.open(f"http://{server.host}:{server.port}/")
            for repeated in ("[", "[a](http://", "*", "`", "**a", "[a", "](", "|a", "||\n", "|a|\n|-|\n", "- a\n  ", "- a\n\n", "1. a\n- "):
                length = browser.run("""const place = document.createElement("div");
                                        renderMarkdown(place, "x" + arguments[0].repeat(arguments[1]));
                                        return place.textContent.length""", repeated, 600000 // len(repeated))
                self.assertGreater(length, 0, repeated)
            self.assertEqual(browser.run("""const place = document.createElement("div");
                                            renderMarkdown(place, "[[a] [b](https://c.example/d) e](f");
                                            return [place.textContent, place.querySelector("a").href]"""),
                             ["[[a] b e](f", "https://c.example/d"])

    def test_a_phone_and_colors(self):
        """On a narrow screen nothing is cut off; texts have enough contrast (WCAG AA) in both color schemes."""
        contrast = """
          const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
          const rgb = color => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
                                 return [...canvas.getImageData(0, 0, 1, 1).data]; };
          const luminance = color => color.slice(0, 3).map(value => value / 255)
              .map(value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
              .reduce((sum, value, i) => sum + value * [0.2126, 0.7152, 0.0722][i], 0);
          const back = element => { const color = rgb(getComputedStyle(element).backgroundColor);
                                    return color[3] || !element.parentElement ? color : back(element.parentElement); };
          const ratio = element => { const [a, b] = [luminance(rgb(getComputedStyle(element).color)), luminance(back(element))];
                                     return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); };
          return [luminance(back(document.body)), Object.fromEntries([...document.querySelectorAll(
              "h1, summary, label, button, input, textarea, .message, .message p, .message code, .message a, .reasoning > div, #status")]
              .filter(each => !each.disabled).map(each => [each.tagName + "." + each.className + "#" + each.id, ratio(each)]))]"""
        with Server("--sequences", "1") as server, Browser() as browser:
            for width, scheme in ((360, "dark"), (360, "light"), (900, "dark")):
                browser.emulate(width, 740, scheme)
                browser.open(f"http://{server.host}:{server.port}/")
                browser.wait(f"return document.title.startsWith('{NAME}')", "the model's name")
                browser.run("""document.getElementById("settings").open = true;
                               document.getElementById("model").textContent = "m".repeat(200);
                               showMessage("user", "word ".repeat(40) + "w".repeat(300));
                               const element = showMessage("assistant", ""), content = document.createElement("div");
                               element.append(content);
                               renderMarkdown(content, "text `code` [a](https://a.example) " + "x".repeat(300) + "\\n\\n```\\n" + "y".repeat(300));
                               showReasoning(element, "because ".repeat(30) + "z".repeat(300));
                               showMessage("error", "an error");
                               document.getElementById("status").textContent = "12 tokens, 3.0 per second; prompt 20 tokens";
                               document.getElementById("send").hidden = document.getElementById("stop").hidden = false;
                               for (const details of document.querySelectorAll("details"))
                                 details.open = true;""")
                page = browser.run("return [innerWidth, innerHeight, document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
                boxes = browser.run("return [...document.querySelectorAll('header, main > *')].map(each => [each.id || each.tagName, each.getBoundingClientRect().height])")
                self.assertEqual(page, [width, 740, width, 740], f"the page itself does not scroll: {boxes}")
                for name in ("input", "send", "stop", "regenerate", "reset", "system", "temperature", "key"):
                    box = browser.run("const box = document.getElementById(arguments[0]).getBoundingClientRect(); "
                                      "return [box.left, box.top, box.right, box.bottom]", name)
                    self.assertTrue(0 <= box[0] < box[2] <= width and 0 <= box[1] < box[3] <= 740, (name, width, box))
                    self.assertGreater(box[3] - box[1], 24, f"{name} can be touched")
                # Phones zoom in on smaller inputs.
                self.assertGreaterEqual(browser.run("return parseFloat(getComputedStyle(document.getElementById('input')).fontSize)"), 16)
                back, ratios = browser.run(contrast)
                self.assertEqual(back < 0.1, scheme == "dark", back)
                self.assertGreater(len(ratios), 15)
                self.assertEqual({name: ratio for name, ratio in ratios.items() if ratio < 4.5}, {}, scheme)

    def test_accessibility(self):
        """axe-core finds no problem in a conversation, with settings open and closed, light and dark."""
        with Server("--sequences", "1") as server, Browser() as browser:
            for scheme in ("light", "dark"):
                browser.emulate(900, 740, scheme)
                browser.open(f"http://{server.host}:{server.port}/")
                browser.wait(f"return document.title.startsWith('{NAME}')", "the model's name")
                self.assertEqual(browser.violations(), [], scheme)
                browser.type("input", "27 + 15\ue007")
                browser.wait("return document.getElementById('stop').hidden && document.querySelectorAll('.message.assistant').length > 0", "an answer")
                browser.run("""showReasoning(document.querySelector(".message.assistant"), "because");
                               appendMarkdown(document.querySelector(".message.assistant"), "```\\n" + "wide ".repeat(100) + "\\n```");
                               showMessage("error", "an error");
                               for (let i = 0; i < 30; ++i)
                                 showMessage("user", "more");""")
                for opened in (False, True):
                    browser.run("for (const details of document.querySelectorAll('details')) details.open = arguments[0]", opened)
                    self.assertEqual(browser.violations(), [], (scheme, opened))

    def test_text_is_never_markup(self):
        with Server("--sequences", "1") as server, Browser() as browser:
            browser.open(f"http://{server.host}:{server.port}/")
            for text in HOSTILE:
                inside = browser.run("""const place = document.createElement("div");
                                        document.body.append(place);
                                        renderMarkdown(place, arguments[0]);
                                        showMessage("user", arguments[0]);
                                        return [...place.querySelectorAll("*")].map(each => each.outerHTML)""", text)
                for html in inside:
                    self.assertNotRegex(html, r"(?i)<(script|img|svg|iframe|i|b)\b|href=\"javascript|<[^>]* on\w+=", text)
            time.sleep(0.2)
            self.assertIsNone(browser.run("return window.hacked ?? null"))
            kinds = browser.run("""const place = document.createElement("div");
                                   renderMarkdown(place, arguments[0]);
                                   return [...place.children].map(each => each.tagName)""",
                                "# A\\n\\na **b** *c* `d`\\ne\\n\\n- x\\n- y\\n\\n1. z\\n\\n```c\\nint i;\\n```".replace("\\n", "\n"))
            self.assertEqual(kinds, ["H2", "P", "UL", "OL", "PRE"])

    def test_lists_and_tables(self):
        with Server("--sequences", "1") as server, Browser() as browser:
            browser.open(f"http://{server.host}:{server.port}/")
            for text, html in (
                    ("- a\n  - b\n    1. c\n  - d\n- e", "<ul><li>a<ul><li>b<ol start='1'><li>c</li></ol></li><li>d</li></ul></li><li>e</li></ul>"),
                    ("1. a\n\n2. b\n\n   - c\n\n3. d\n\ne", "<ol start='1'><li>a</li><li>b<ul><li>c</li></ul></li><li>d</li></ol><p>e</p>"),
                    ("- a\n\nb\n\n- c", "<ul><li>a</li></ul><p>b</p><ul><li>c</li></ul>"),
                    ("- a\n" + "".join("  " * depth + "- b\n" for depth in range(1, 20)),
                     "<ul><li>a" + "<ul><li>b</li></ul>".replace("</li></ul>", "") * 6 + "<ul>" + "<li>b</li>" * 13 + "</ul>" + "</li></ul>" * 7),
                    ("x\n| a | **b** |\n|:--|---|\n| c \\| d | e | f |\n| g |\ny", "<p>x</p><table><thead><tr><th>a</th><th><strong>b</strong></th></tr></thead>"
                     "<tbody><tr><td>c | d</td><td>e</td></tr><tr><td>g</td></tr></tbody></table><p>y</p>"),
                    ("| a |\n| b |\n\n| a | b |\n|---|", "<p>| a |<br>| b |</p><p>| a | b |<br>|---|</p>")):
                shown = browser.run("""const place = document.createElement("div");
                                       renderMarkdown(place, arguments[0]);
                                       for (const frame of place.querySelectorAll(".table"))
                                         frame.replaceWith(...frame.childNodes);
                                       return place.innerHTML""", text)
                self.assertEqual(shown, html.replace("'", '"'), text)

    def test_another_answer_that_does_not_come(self):
        """The old answer stays until another one begins."""
        with Server("--sequences", "1") as server, Browser() as browser:
            browser.open(f"http://{server.host}:{server.port}/")
            browser.run("document.getElementById('temperature').value = 0")
            browser.type("input", "27 + 15\ue007")
            idle = "return document.getElementById('stop').hidden && conversation.length == 2"
            browser.wait(idle, "an answer")
            before = browser.messages(), browser.run("return conversation")
            self.assertEqual(before[0], [["message user", "27 + 15"], ["message assistant", "42"]])
            # An error before the answer.
            browser.run("""window.original = window.fetch;
                           window.fetch = async () => new Response(JSON.stringify({error: {message: "full"}}), {status: 429});""")
            browser.click("regenerate")
            browser.wait("return document.querySelectorAll('.message.error').length == 1", "an error")
            self.assertEqual((browser.messages()[:2], browser.run("return conversation")), before)
            self.assertEqual(browser.run("return [document.getElementById('input').value, document.getElementById('regenerate').disabled]"), ["", False])
            browser.run("document.querySelector('.message.error').remove()")
            # Escape while it waits, and after its reasoning.
            browser.run("""window.fetch = async (path, options) => new Response(new ReadableStream({start(controller) {
                             window.asked = JSON.parse(options.body).messages;
                             window.feed = delta => controller.enqueue(new TextEncoder().encode(
                                 "data: " + JSON.stringify({choices: [{delta}]}) + "\\n\\n"));
                             options.signal.addEventListener("abort", () => controller.error(new DOMException("", "AbortError")));
                           }}));""")
            for delta in (None, {"role": "assistant", "content": ""}, {"reasoning_content": "I think"}):
                browser.run("window.feed = null")
                browser.click("regenerate")
                browser.wait("return Boolean(window.feed)", "the request")
                self.assertEqual(browser.run("return window.asked"), before[1][:1])
                if delta:
                    browser.run("window.feed(arguments[0])", delta)
                if delta and "reasoning_content" in delta:
                    browser.wait("return Boolean(document.querySelector('.reasoning'))", "the reasoning")
                else:
                    self.assertEqual(browser.messages(), [*before[0], ["message assistant", "…"]])
                browser.type("input", "\ue00c")
                browser.wait(idle, "the end")
                self.assertEqual((browser.messages(), browser.run("return conversation")), before)
            # An answer that has begun replaces the old one.
            browser.run("window.feed = null")
            browser.click("regenerate")
            browser.wait("return Boolean(window.feed)", "the request")
            browser.run("window.feed({content: 'another'})")
            browser.wait("return document.querySelectorAll('.message.assistant').length == 1", "the new answer")
            browser.type("input", "\ue00c")
            browser.wait(idle, "the end")
            self.assertEqual(browser.messages(), [["message user", "27 + 15"], ["message assistant", "another"]])

    def test_settings(self):
        """Each setting reaches the server, and stays when the page is loaded again, except for the API key."""
        wanted = {"temperature": 0.5, "top_p": 0.9, "top_k": 40, "min_p": 0.05, "presence_penalty": 0.1, "frequency_penalty": -0.2,
                  "repetition_penalty": 1.1, "max_tokens": 3, "seed": 7}
        with Server("--sequences", "1", "--api-key", "secret") as server, Browser() as browser:
            browser.open(f"http://{server.host}:{server.port}/")
            browser.run("document.getElementById('settings').open = true")
            for name, value in wanted.items():
                browser.type(name, str(value))
            browser.type("system", "Be brief.")
            browser.type("stops", "END\ue007a\\nb")
            for _ in range(2):
                browser.run("document.getElementById('settings').open = true")
                browser.type("key", "secret")
                browser.run("""const ask = window.fetch;
                               window.fetch = (path, options) => {
                                 if (!options.body)
                                   return ask(path, options);
                                 // The model of this test refuses system prompts.
                                 const {messages, ...others} = window.asked = JSON.parse(options.body);
                                 return ask(path, {...options, body: JSON.stringify({messages: messages.slice(1), ...others})});
                               };""")
                browser.type("input", "27 + 15\ue007")
                browser.wait("return document.getElementById('stop').hidden && conversation.length == 2", "an answer")
                asked = browser.run("return window.asked")
                self.assertEqual({name: asked[name] for name in wanted}, wanted)
                self.assertEqual((asked["stop"], asked["messages"][0]), (["END", "a\nb"], {"role": "system", "content": "Be brief."}))
                stored = browser.run("return [...Object.entries(localStorage), ...Object.entries(sessionStorage)].flat().join() + document.cookie")
                self.assertIn("Be brief.", stored)
                self.assertNotIn("secret", stored)
                browser.open(f"http://{server.host}:{server.port}/")
            # What is stored may be anything.
            for stored in ("{", "null", "[1]", '{"temperature": {}, "system": 3}'):
                browser.run("localStorage.setItem('settings', arguments[0])", stored)
                browser.open(f"http://{server.host}:{server.port}/")
                self.assertEqual(browser.run("return [typeof running, document.getElementById('temperature').value, document.getElementById('system').value]"),
                                 ["object", "", ""])
