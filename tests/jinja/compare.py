"""Runs templates through Mica's engine and through Jinja2 and reports differences.

    compare.py RUNNER templates FOLDER     the families' templates with every conversation of FOLDER/conversations.json
    compare.py RUNNER snippets FILE        templates with lines of `%%` between them, with the context beside: FILE's name with .json
    compare.py RUNNER letters [all]        string methods on letters: those that have cases or are numbers, a share of
                                           the others or all of them, and words with sigma
    compare.py RUNNER fuzz SEED COUNT      templates from a grammar

RUNNER is mica-jinja-run. Both must write the same text, or both must fail. Templates that Mica rejects because they are not supported
or exceed a limit are listed under `refused`, and are failures. In fuzzing it fails if more than LARGEST_REFUSED of the templates are
rejected this way, or fewer than LEAST_RENDERED write a text on both sides. Status 77: no reference is available.
"""

import json
import pathlib
import random
import subprocess
import sys
import unicodedata
import warnings


def skip(why):
    # In GoogleTest's format, which count_results.py reads.
    print(f"tests/jinja/compare.py: Skipped\n{why}")
    sys.exit(77)


try:
    import fuzz
    import reference
except ModuleNotFoundError as missing:
    if missing.name != "jinja2":
        raise
    skip("python3-jinja2 is not installed")


warnings.simplefilter("ignore")

#: The Unicode version of the tables and of PCRE2 in Debian 12. Other versions differ in new letters.
UNICODE = "14.0.0"

#: Shares of all generated templates. Most of them contain a mistake, which both sides reject.
LARGEST_REFUSED, LEAST_RENDERED = 0.03, 0.1


class Runner:
    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def render(self, template, context):
        task = json.dumps({"template": template, "context": context}, ensure_ascii=False)
        self.process.stdin.write(task.encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"the runner died on {task}")
        answer = json.loads(line)
        return answer.get("text"), answer.get("error")


def differs(runner, name, template, context):
    """A description of the difference; None if both agree; False if only Mica rejects it as unsupported."""
    text, error = runner.render(template, context)
    expected = reference.render(template, context)
    if text == expected:
        return None
    if text is None and any(word in error for word in ("not supported", "beyond 64 bits", "levels deep", "more than",
                                                       "cannot be sliced")):
        return False
    return f"{name}: Jinja2 {'refuses' if expected is None else repr(expected)}, Mica {error if text is None else repr(text)}"


def families(folder):
    conversations = json.loads((folder / "conversations.json").read_text(encoding="utf-8"))
    for path in sorted(folder.glob("*.jinja")):
        for name, context in conversations.items():
            yield f"{path.name} with {name}", path.read_text(encoding="utf-8"), context


def snippets(path):
    context = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    for number, template in enumerate(path.read_text(encoding="utf-8").split("\n%%\n"), 1):
        yield f"{path.name} part {number}: {template!r}", template, context


def letters(every):
    if unicodedata.unidata_version != UNICODE:
        skip(f"this Python knows Unicode {unicodedata.unidata_version}, not {UNICODE}")
    texts = "upper lower capitalize title swapcase casefold".split()
    kinds = "islower isupper istitle isdigit isdecimal isnumeric isalpha isalnum isspace isprintable".split()
    calls = ", ".join([f"c.{name}()" for name in texts + kinds] + [f"c|{name}" for name in ("title", "capitalize", "wordcount")])
    template = "{% for c in all %}{{ [c, " + calls + "] }}{% endfor %}"
    points = [chr(point) for point in range(1, 0x110000) if not 0xD800 <= point < 0xE000]
    if not every:
        points = [c for c in points if c < "\u3000" or c.isnumeric() or c.lower() != c or c.upper() != c or ord(c) % 61 == 0]
    for begin in range(0, len(points), 4096):
        yield f"code points from {ord(points[begin]):x}", template, {"all": points[begin : begin + 4096]}
    chooser = random.Random(1)
    words = ["".join(chooser.choices("ΣΣΑaßİ.':\u0301\u00ad- 1ǆ", k=chooser.randrange(7))) for _ in range(4096)]
    yield "words with sigma", template, {"all": words}


def main():
    runner, kind, rest = Runner(sys.argv[1]), sys.argv[2], sys.argv[3:]
    fuzzing = kind == "fuzz"
    if kind == "templates":
        cases = families(pathlib.Path(rest[0]))
    elif kind == "snippets":
        cases = snippets(pathlib.Path(rest[0]))
    elif kind == "letters":
        cases = letters(rest == ["all"])
    else:
        cases = fuzz.cases(int(rest[0]), int(rest[1]))
    count = refused = different = rendered = 0
    for name, template, context in cases:
        count += 1
        difference = differs(runner, name, template, context)
        rendered += difference is None and reference.render(template, context) is not None
        refused += difference is False
        if difference or (difference is False and not fuzzing):
            different += 1
            print(difference or f"{name}: refused by Mica: {runner.render(template, context)[1]}")
            if different == 20:
                break
    print(f"{count} templates: {rendered} rendered alike, {refused} refused by Mica alone, {different} differ")
    silent = not rendered or fuzzing and (refused > LARGEST_REFUSED * count or rendered < LEAST_RENDERED * count)
    if silent:
        print("too few templates are compared")
    sys.exit(1 if different or silent else 0)


if __name__ == "__main__":
    main()
