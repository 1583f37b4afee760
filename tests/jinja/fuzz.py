"""Templates generated from a grammar, each from its own seed. They are mostly meaningful, sometimes wrong, and cover the features of
chat templates: loops, scopes, macros, filters, tests, slices, methods, whitespace control."""

import json
import random

CONTEXT = {
    "messages": [
        {"role": "system", "content": " Be brief.\n"},
        {"role": "user", "content": "Hi <b>\"you\"</b> & 'me'"},
        {"role": "assistant", "content": "<think>\nhm\n</think>\n\nSure, 2 + 2 = 4", "tool_calls": [
            {"type": "function", "function": {"name": "add", "arguments": {"a": 1, "b": [2.5, None, True]}}}]},
        {"role": "tool", "content": "4"},
        {"role": "user", "content": [{"type": "text", "text": "\u4f60\u597d \U0001f600"}, {"type": "image"}]},
    ],
    "tools": [{"type": "function", "function": {"name": "add", "description": "Adds \u00fcber\n", "parameters": {
        "type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "array"}}, "required": ["a"]}}}],
    "bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": True, "empty": [], "nothing": None,
    "x": 3, "y": -2, "z": 2.5, "s": "a b\tc", "t": " Left-right_word 12 ", "m": {"k": "v", "n": 1, "items": 5}, "l": [3, 1, 2, 1],
    "names": ["bob", "Ann", "cy"],
}
NAMES = ["messages", "tools", "bos_token", "add_generation_prompt", "empty", "nothing", "x", "y", "z", "s", "t", "m", "l",
         "names", "missing", "a", "b", "c"]
STRINGS = ["", "a", "b c", "user", "</think>", "\n", " ", "x,y,,z", "\u00e9", "\U0001f600\u4f60", "'", '"', "\\",
           "<b>", "&amp;", "\u0391\u03a3", "Stra\u00dfe", "0", "12", "-3.5e2"]
FILTERS = ["trim", "upper", "lower", "length", "string", "tojson", "first", "last", "list", "join", "join(', ')", "reverse",
           "sort", "unique|list", "int", "float", "abs", "title", "capitalize", "default('d')", "default('d', true)",
           "replace('a', 'bb')", "indent", "indent(2, true)", "map('upper')|list", "map(attribute='role')|list",
           "selectattr('role', 'equalto', 'user')|list", "rejectattr('tool_calls')|list", "select|list", "select('string')|list",
           "reject('none')|list", "items|list", "dictsort", "tojson(indent=2)", "max", "min", "sum", "round", "round(1)", "count",
           "wordcount", "batch(2)|list", "slice(2)|list", "truncate(5)", "center(9)", "map('string')|join('-')", "trim('a ')",
           "sort(reverse=true)", "sort(attribute='role')|map(attribute='role')|list", "round(0, 'floor')", "tojson(sort_keys=true)",
           "attr('items')", "e", "forceescape", "safe", "urlencode", "xmlattr", "striptags", "filesizeformat", "groupby('role')",
           "groupby(0)", "e|upper", "escape|replace('a', '<')", "select('>', 1)|list", "dictsort(by='value')", "format(1)", "d(1)", "unknown"]
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "true", "false", "mapping",
         "iterable", "sequence", "even", "odd", "divisibleby 2", "eq 3", "in l", "lower", "upper", "sameas none", "ne('a')",
         "gt 1", "le(2)", "callable", "equalto 'a'", "escaped"]
METHODS = ["strip()", "lstrip('a ')", "rstrip()", "split()", "split(',')", "split(' ', 1)", "upper()", "lower()", "title()",
           "startswith('a')", "endswith(('c', ' '))", "replace('a', 'x', 1)", "find('b')", "rsplit(' ', 1)", "splitlines()",
           "join(names)", "count('a')", "isdigit()", "isalpha()", "items()", "keys()|list", "values()|list", "get('k')",
           "get('q', 1)", "partition(' ')", "capitalize()", "index(1)", "isspace()", "removeprefix('a')", "rfind('b')",
           "split('</think>')[-1]", "format(1, 2)", "isalnum()", "islower()", "ljust(5, '.')", "append(1)", "pop()", "swapcase()",
           "casefold()", "istitle()", "isnumeric()", "zfill(4)", "center(7)", "expandtabs(3)", "rindex('a')", "find('a', 1, -1)", "count('a', 1)", "isascii()",
           "copy()"]
OPERATORS = ["+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", "<=", ">", ">=", "and", "or", "in", "not in", "**"]


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.loops = 0

    def pick(self, options):
        return self.random.choice(options)

    def chance(self, share):
        return self.random.random() < share

    def literal(self):
        kind = self.random.randrange(8)
        if kind < 3:
            return json.dumps(self.pick(STRINGS), ensure_ascii=self.chance(0.5)) if self.chance(0.5) else repr(self.pick(STRINGS))
        if kind < 6:
            return str(self.pick([0, 1, 2, 3, 7, 10, -1, 1.5, 0.1, 1e20, 100, 2.0, 1e-7]))
        return self.pick(["true", "false", "none", "True", "None", "[]", "{}", "()", "(1,)"])

    def name(self):
        if self.loops and self.chance(0.3):
            return "loop." + self.pick(["index", "index0", "first", "last", "length", "revindex", "previtem", "nextitem", "depth",
                                        "cycle('p', 'q')", "changed(x)", "revindex0"])
        return self.pick(NAMES)

    def expression(self, depth=3):
        if depth == 0:
            return self.name() if self.chance(0.6) else self.literal()
        inner = lambda: self.expression(depth - 1)
        kind = self.random.randrange(17)
        if kind < 3:
            return f"{inner()} {self.pick(OPERATORS)} {inner()}"
        if kind < 6:
            return f"{inner()}|{self.pick(FILTERS)}"
        if kind < 8:
            return f"{inner()} is {self.pick(['', '', 'not '])}{self.pick(TESTS)}"
        if kind == 8:
            return f"({inner()})"
        if kind == 9:
            return f"{inner()}[{self.pick(['0', '-1', '1:', ':-1', '::-1', '1:3', repr('role'), repr('content'), inner()])}]"
        if kind == 10:
            return f"{inner()}.{self.pick(['role', 'content', 'tool_calls', 'function', 'name', 'k', 'items', '0'])}"
        if kind == 11:
            return f"{inner()}.{self.pick(METHODS)}"
        if kind == 12:
            return f"{inner()} if {inner()}" + (f" else {inner()}" if self.chance(0.8) else "")
        if kind == 13:
            return f"{self.pick(['not ', '-', 'not '])}{inner()}"
        if kind == 14:
            return f"[{inner()}, {inner()}]" if self.chance(0.5) else f"({inner()}, {inner()})"
        if kind == 15:
            key = self.literal()  # Jinja2 folds constants even if they are never evaluated
            return f"{{{'0' if key[0] in '[{' else key}: {inner()}, 'k': {inner()}}}"
        return self.pick([f"range({self.random.randrange(5)})", f"range({inner()})", f"dict(a={inner()})", f"f({inner()})",
                          f"f({inner()}, p={inner()})", "namespace(v=1)", "cycler(1, 'b').next()", "joiner('-')()",
                          "strftime_now('%d %b')"]) + self.pick(["", "", ".v", "|list"])

    def tag(self, words):
        return "{%" + self.pick(["", "", "", "-", "+"]) + " " + words + " " + self.pick(["", "", "", "-", "+"]) + "%}"

    def data(self):
        return self.pick(["", "", " ", "\n", "  \n", "text", "\n  ", " a ", "\n\n", "<|x|>", "{# note #}", "{#- note -#}\n", "\t",
                          "{% raw %}{{ x }}{% endraw %}", "\r\n"])

    def block(self, depth):
        return "".join(self.data() + self.piece(depth) for _ in range(self.random.randrange(1, 4))) + self.data()

    def target(self):
        return self.pick(["a", "b", "c", "a", "x", "ns.v", "a, b"])

    def piece(self, depth):
        kind = self.random.randrange(20 if depth else 7)
        if kind < 5:
            return "{{" + self.pick(["", "", "-"]) + " " + self.expression(self.random.randrange(4)) + " " + self.pick(["", "", "-"]) + "}}"
        if kind == 5:
            return self.tag(f"set {self.target()} = {self.expression(2)}")
        if kind == 6:
            return self.tag(self.pick(["set ns = namespace(v=0)", "break", "continue"]) if self.loops else "set ns = namespace(v=[])")
        body = self.block(depth - 1)
        if kind < 11:
            middle = (self.tag(f"elif {self.expression(1)}") + self.block(depth - 1) if self.chance(0.3) else "") + \
                (self.tag("else") + self.block(depth - 1) if self.chance(0.4) else "")
            return self.tag(f"if {self.expression(2)}") + body + middle + self.tag("endif")
        if kind < 15:
            self.loops += 1
            body = self.block(depth - 1)
            self.loops -= 1
            items = self.pick(["messages", "tools", "l", "names", "range(3)", "m.items()", "m", "s", self.expression(1)])
            target = self.pick(["k, v"]) if items == "m.items()" else self.pick(["a", "b", "message", "x"])
            return self.tag(f"for {target} in {items}" + (f" if {self.expression(1)}" if self.chance(0.2) else "")) + body + \
                (self.tag("else") + self.data() if self.chance(0.2) else "") + self.tag("endfor")
        if kind == 15:
            loops, self.loops = self.loops, 0
            body = self.block(depth - 1)
            self.loops = loops
            return self.tag(f"macro f(a, p={self.expression(1)})") + body + self.tag("endmacro")
        if kind == 16:
            return self.tag("set c" + self.pick(["", " | upper", " | trim | length"])) + body + self.tag("endset")
        if kind == 17:
            return self.tag(f"with a = {self.expression(1)}") + body + self.tag("endwith")
        if kind == 18:
            return self.tag("filter " + self.pick(["upper", "trim", "replace('a', 'b')"])) + body + self.tag("endfilter")
        loops, self.loops = self.loops, 0
        body = self.block(depth - 1)
        self.loops = loops
        if self.chance(0.5):
            return self.tag("generation") + body + self.tag("endgeneration")
        return self.tag("macro g(q=1)") + "[{{ caller() }}{{ q }}]" + self.tag("endmacro") + self.tag("call g(2)") + body + self.tag("endcall")


def cases(seed, count):
    for number in range(count):
        maker = Maker(f"{seed}.{number}")
        template = maker.tag("macro f(a, p=1)") + "<{{ a }}{{ p }}>" + maker.tag("endmacro") if maker.chance(0.3) else ""
        template += maker.tag("set ns = namespace(v=0)") + maker.block(3)
        yield f"seed {seed}.{number} {template!r}", template, CONTEXT
