#!/usr/bin/env python3
"""Checks that the definition of a declaration is found by its name.

    check_definitions.py TREE

What X.h declares is defined by X.cpp, or by a file whose name, without a plural s, is in the name of what it defines: makeBpeModel() in
BpeModel.cpp, Interpreter::weight() in Weight.cpp. docs/architecture.md may exempt a header, with the reason, in a line
`- Defined elsewhere: HEADER -> FILE or FOLDER/*: reason`; such a line that is not needed is an error.

Functions and members at the level of namespaces are checked, with the headers that their file includes. The names of overloads
in several of these headers cannot be told apart: the file's own header counts.
"""

import argparse
import collections
import os
import pathlib
import re
import sys

ROOTS = ("ir", "frontend", "passes", "backends", "tools")
PAGE = "docs/architecture.md"
ELSEWHERE = re.compile(r"^- Defined elsewhere: `([\w/.-]+)` -> `([\w/.*-]+)`", re.M)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"\n]+)"', re.M)
# What no declaration is in, in the order of their replacement by a space: raw strings, strings, characters, comments, directives.
HIDDEN = [re.compile(pattern, re.S | re.M) for pattern in (
    r'R"(\w*)\(.*?\)\1"', r'"(?:[^"\\\n]|\\.)*"', r"'(?:[^'\\\n]|\\.)+'", r"/\*.*?\*/", r"//[^\n]*", r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*")]
NAMESPACE = re.compile(r"(?:inline )?namespace (?!$)|extern$")
CLASS = re.compile(r"(?:template <.*?> )?(?:class|struct) (?:\[\[\w+\]\] )?([\w:]+)(?: final)?(?: ?:[^:].*|$)")
NOT_FUNCTION = re.compile(r"(?:static|class|struct|enum|union|inline|constexpr|const|using|typedef|friend|template)\b")
NAME = re.compile(r"[<>]|((?:\w+::)*~?(?:operator[^\s(]+|\w+)) ?\(")


def statements(text):
    """Statements at the level of named namespaces: what is before `{` or `;`, and which of them."""
    for pattern in HIDDEN:
        text = pattern.sub(" ", text)
    inside, words = [], ""
    for part in re.findall(r"[{};]|[^{};]+", text):
        head = " ".join(words.split())
        if part == "}":
            inside = inside[:-1]
        elif not all(inside):
            inside += [False] * (part == "{")
        elif part == ";":
            yield head, part
            words = ""
        elif part != "{":
            words += part
        elif NAMESPACE.match(head):
            inside, words = [*inside, True], ""
        elif head.count("(") > head.count(")") or head.endswith("="):
            inside, words = [*inside, False], words + "0"  # a default argument or the value of a variable
        else:
            yield head, part
            inside, words = [*inside, False], ""


def function_of(head):
    """The name of a function, with its classes; None if there is none."""
    depth = 0
    for found in NAME.finditer(head):
        if found[1] and depth == 0:
            return found[1]
        depth += {"<": 1, ">": -1}.get(found[0], 0)
    return None


class Tree:
    def __init__(self, root):
        files = [path for top in ROOTS for path in (root / top).rglob("*") if path.suffix in (".h", ".cpp")]
        texts = {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in sorted(files)}
        self.sources = [file for file in texts if file.endswith(".cpp")]
        self.statements = {file: list(statements(text)) for file, text in texts.items()}
        self.includes = {file: {path for name in INCLUDE.findall(text)
                                for path in map(os.path.normpath, (name, os.path.join(os.path.dirname(file), name))) if path in texts}
                         for file, text in texts.items()}
        self.elsewhere = ELSEWHERE.findall((root / PAGE).read_text(encoding="utf-8"))
        # For each name, the headers that declare such functions, and those that define such classes.
        self.functions, self.classes = collections.defaultdict(set), collections.defaultdict(set)
        for file in texts.keys() - set(self.sources):
            self.read_header(file)

    def read_header(self, file):
        for head, end in self.statements[file]:
            if end == "{":
                if found := CLASS.match(head):
                    self.classes[found[1].split("::")[-1]].add(file)
            elif not NOT_FUNCTION.match(head) and (name := function_of(head)):
                self.functions[name.split("::")[-1]].add(file)

    def reached(self, file):
        """The headers that a file includes, also through others."""
        found, rest = set(), [file]
        while rest:
            new = self.includes[rest.pop()] - found
            found |= new
            rest += new
        return found

    def homes(self, name, headers):
        """The headers, among `headers`, that declare a function or the outermost class in its name."""
        *scopes, last = name.split("::")
        for scope in scopes:
            if homes := self.classes[scope] & headers:
                return homes
        return self.functions[last] & headers

    def check(self):
        used = set()
        for file in self.sources:
            stem, headers = file[:-len(".cpp")], self.reached(file)
            word = os.path.basename(stem).lower().removesuffix("s")
            for head, end in self.statements[file]:
                name = function_of(head) if end == "{" and not NOT_FUNCTION.match(head) else None
                homes = self.homes(name, headers) if name else set()
                if not homes or stem + ".h" in homes or word in name.lower():
                    continue
                rows = {row for row in self.elsewhere if row[0] in homes and row[1] in (file, os.path.dirname(file) + "/*")}
                used |= rows
                if not rows:
                    yield f"{file}: defines {name}, which {min(homes)} declares"
        for header, other in self.elsewhere:
            if (header, other) not in used:
                yield f"{PAGE}: {other} defines nothing of {header} that is not found by its name"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=pathlib.Path)
    tree = Tree(parser.parse_args().tree)
    wrong = list(tree.check())
    print("\n".join(wrong))
    if wrong:
        sys.exit(f"{len(wrong)} definitions are not found by their names")
    print(f"{len(tree.sources)} source files define what their names say")


if __name__ == "__main__":
    main()
