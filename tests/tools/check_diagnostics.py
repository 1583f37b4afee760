#!/usr/bin/env python3
"""Checks that every diagnostic of C++ files has a test.

    check_diagnostics.py --tests FOLDER [--tests FOLDER...] [--short FILE] FILE.cpp|FOLDER...

Each emitOpError/emitError and each requireSize (whose message is `WHAT has size A, expected B (WHY)`) must match an expected-error or
expected-warning of a .mlir file in FOLDER: its string literals occur there in this order, followed by those that later statements add to a
named diagnostic. A message without any literal cannot be checked.

Each createStringError or inputError with a literal, and each such call of a function that passes its message on to one
(`fail("has no rows")`), must match a text expected by a test in a FOLDER: an expected-error or mica.expect_error, a FileCheck line whose
prefix is in a RUN line, or a string of a unit test or of an end-to-end test, including the strings added to it by `+`. Such a string counts
if it is an expectation: in a statement with an assertion, a matcher or a function named after errors, or in a table or constant used by
such a statement; not if it is an input of the test. Comments, docstrings and files in a folder `Inputs` do not count. Both alternatives of
`condition ? "one" : "other"` must be tested. checkIndex (whose message is `WHAT i is outside of [0, SIZE)`) and refuse (and refuseAt and
similar functions) are included. Diagnostics after a comment `// No test: REASON` are excluded.

Literals with fewer than seven letters occur in the tests of other messages as well. For each such message, unless it is only put before
those of other calls, FILE has a line `SOURCE: LITERALS => WORDS` with words that a test expects of it. A line that is not needed is an error.

Prints missing tests.
"""

import argparse
import ast
import pathlib
import re
import sys

CALL = re.compile(r"\b(?P<name>emit(?:Op)?Error|requireSize)\(")
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
# Placeholders of llvm::formatv: {0}, {2:e}.
INSERTED = re.compile(r"\{\d+[^{}]*\}")
NAMED = re.compile(r"InFlightDiagnostic (\w+) =\s*$")
METHOD = re.compile(r"^LogicalResult (?:\w+::)*(\w+)Op::\w+\(", re.M)
EXPECTED = re.compile(r"expected-(?:error|warning)(?:-re)?\s*(?:@[^{]*)?\{\{(.*)\}\}")


# Functions that create errors, and how a test states an expected error.
VALUE = ["createStringError", "inputError", "checkIndex", "refuse", "refuseAt", "refuseUnsupported", "refuseKind"]
SPEAKER = re.compile(r"^(?P<begin>[^\n;{}]*?)\b(?P<name>\w+)(?: = \[[^\]]*\])?\((?P<takes>[^;{}]*?(?:Twine &|StringRef what)[^;{}]*?)\)(?: const)? \{", re.M)
MADE = re.compile(r"createStringError|inputError|opError")
CONDITIONAL = re.compile(r"\((?:[^()]|\([^()]*\))*\?(?:[^()]|\([^()]*\))*\)")
ANY_LITERAL = re.compile(r'R"(\w*)\((?P<raw>.*?)\)\1"|"(?P<plain>(?:[^"\\]|\\.)*)"', re.S)
UNTESTABLE = re.compile(r"// No test: [^\n]*\n(?: *//[^\n]*\n)*[^;\n]*\n?[^;\n]*$")
EXPECTED_BY_MICA = re.compile(r'mica\.expect_error = "((?:[^"\\]|\\.)*)"')
RUN = re.compile(r"RUN: ?(.*)")
CHECKED = re.compile(r"^\W*([A-Z][A-Z0-9_-]*?)(?:-(?:NEXT|SAME|DAG|LABEL|COUNT-\d+))?: (.*)$", re.M)
# A comment, or a string, in which there is none.
COMMENT = re.compile(ANY_LITERAL.pattern + r"|//[^\n]*", re.S)
# What marks a statement of a unit test that expects something, a name defined by a statement, and the same for Python's calls.
EXPECTS = re.compile(r"\b(?:(?:EXPECT|ASSERT|ADD)_\w+|INSTANTIATE_TEST_SUITE_P|HasSubstr|StartsWith|"
                     r"\w*(?:[eE]xpect|[rR]efus|[rR]eject|[fF]ails|[eE]rror|[mM]essage)\w*)\b")
DEFINES = re.compile(r"(\w+)(?:\[\w*\])? =\s")
EXPECTS_IN_PYTHON = re.compile(r"assert|expect|refuse|reject|fail|error|message|warn", re.I)
CHOICE = re.compile(r"[\w.()>*!-]+\s*\?\s*((?:" + LITERAL.pattern + r"\s*)+):\s*((?:" + LITERAL.pattern + r"\s*)+)")


def without_strings(text):
    """`text` with spaces for string contents, so that only code is left."""
    return LITERAL.sub(lambda match: '"' + " " * (len(match[0]) - 2) + '"', text)


def closing(text, begin):
    """The index after the parenthesis that closes the one before `begin`."""
    code, depth = without_strings(text[begin:]), 1
    for index, character in enumerate(code):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if not depth:
            return begin + index + 1
    return len(text)


def statement_end(text, begin):
    """The index of the semicolon that ends the statement."""
    return without_strings(text[begin:]).index(";") + begin


def messages_of(text, match):
    """The literals of each message of the call that begins at `match`: those of its own statement, and, if it names a diagnostic, those of
    each later statement of the function that adds to it."""
    end = statement_end(text, match.end())
    begin = text.rfind(";", 0, match.start()) + 1
    if text[match.end() : end] == ")" and re.search(r"\{\s*return [\w.>-]*$", text[begin : match.start()]):
        return []  # a callback: its caller describes the error
    own = LITERAL.findall(text[match.end() : end])
    named = NAMED.search(re.sub(r"[\w>.-]*$", "", text[begin : match.start()]))
    if not named:
        return [own]
    function = text[end : text.index("\n}", end)]
    added = [LITERAL.findall(function[m.end() : statement_end(function, m.end())])
             for m in re.finditer(rf"(?<!\w){named[1]} <<", function)]
    return [own + more for more in added if more] or [own]


def op_prefix(text, position):
    """`'dialect.some_name' op ` if position is in a method of SomeNameOp, else nothing."""
    methods = [match for match in METHOD.finditer(text, 0, position)]
    if not methods or "\n}" in text[methods[-1].start() : position]:
        return ""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_?", methods[-1].group(1)).lower()
    return rf"'\w+\.{snake}' op .*"


def patterns_of(text):
    """Yields (line, regular expression) for every diagnostic of a C++ file."""
    for match in CALL.finditer(text):
        if re.match(r"\w*\)\s*(?:,[^;{]*)?\{", text[match.end():]):
            continue  # an initializer of a constructor
        prefix = op_prefix(text, match.start())
        if match.group("name") == "requireSize":
            literals = LITERAL.findall(text[match.end() : closing(text, match.end())])
            if not literals:
                continue  # the declaration
            what, *why = map(re.escape, literals)
            pattern = what + " has size .* " + rf"\((?:{'|'.join(why)})\)"
        else:
            for literals in messages_of(text, match):
                yield line_of(text, match), prefix + ".*".join(re.escape(plain(word)) for word in literals) if literals else None
            continue
        yield line_of(text, match), prefix + pattern


def plain(text):
    """The characters denoted by a C++ literal."""
    return text.replace('\\"', '"').replace("\\\\", "\\")


def is_short(words):
    return sum(map(str.isalpha, "".join(words))) < 7


def expected_words(path):
    """The lines of --short: (the end of the source's path, literals) to words."""
    lines = path.read_text(encoding="utf-8").splitlines() if path else ()
    return {tuple(line.partition(" => ")[0].split(": ", 1)): line.partition(" => ")[2] for line in lines}


def words_of(text):
    """The literals in every message of an expression, without trivial ones."""
    return [part for word in LITERAL.findall(CONDITIONAL.sub("()", text)) for part in INSERTED.split(plain(word)) if re.search(r"[A-Za-z]", part)]


def speakers_of(text):
    """Yields (name, begin, end, whether other files may call it) of functions that create errors from a message argument."""
    for match in SPEAKER.finditer(text):
        end = text.find("\n" + re.match(r"\s*", match["begin"].rpartition("\n")[2])[0] + "}", match.end())
        if MADE.search(text, match.end(), end):
            yield match["name"], match.start(), end, not match["begin"].startswith(("static", " "))


def streamed(text, position):
    """The words streamed into its message by the function around `position`."""
    begin = text.rfind("\n}\n", 0, position) + 1
    return [word for part in re.findall(r"<<[^;]*;", text[begin:position]) for word in words_of(part)]


def values_of(text, shared):
    """Yields (line, regular expression) for every error value of a C++ file."""
    own = list(speakers_of(text))
    names = sorted(shared | {name for name, *_ in own})
    for match in re.finditer(rf"\b(?P<name>{'|'.join([*VALUE, *names])})\(", text):
        if any(begin <= match.start() <= text.index("{", begin) for _, begin, _, _ in own):
            continue  # the definition
        if UNTESTABLE.search(text, 0, match.start()):
            continue
        argument = text[match.end() : closing(text, match.end()) - 1]
        argument = re.sub(r"diagnostic\.message\(.*", "", argument, flags=re.S)
        for chosen in choices_of(argument):
            words = words_of(chosen)
            if match["name"] == "checkIndex":
                words = words and [words[0] + " ", " is outside of [0, "]
            elif not words and re.fullmatch(r"\w+", chosen):
                words = streamed(text, match.start())
            is_prefix = any(begin <= match.start() < end for _, begin, end, _ in own)
            if words and not (is_prefix and is_short(words)):
                yield line_of(text, match), ".*".join(map(re.escape, words))


def choices_of(argument):
    """The argument with either side of its first choice between literals that is not in parentheses."""
    choice = CHOICE.search(argument)
    if not choice or CONDITIONAL.search(argument):
        return [argument]
    return [argument[: choice.start()] + side + argument[choice.end() :] for side in (choice[1], choice[3])]


def expected_diagnostics(text):
    """The diagnostics expected by MLIR's verification of an input, if it is run with it."""
    return EXPECTED.findall(text) if any("verify-diagnostics" in line for line in RUN.findall(text)) else []


def expected_of_lit(text):
    runs = " ".join(RUN.findall(text))
    prefixes = {prefix for names in re.findall(r"--?check-prefix(?:es)?[= ]([\w,-]+)", runs) for prefix in names.split(",")}
    if re.search(r"FileCheck(?![^|&]*check-prefix)", runs):
        prefixes.add("CHECK")
    yield from expected_diagnostics(text)
    yield from map(plain, EXPECTED_BY_MICA.findall(text))
    yield from (line for prefix, line in CHECKED.findall(text) if prefix in prefixes)


def literals_of(text):
    """The string literals of a statement; adjacent and concatenated ones are joined."""
    whole, end = [], 0
    for literal in ANY_LITERAL.finditer(text):
        between = text[end : literal.start()].strip()
        if whole and between and not re.fullmatch(r"[^,;{}]*\+[^,;{}]*", between):
            yield "".join(whole)
            whole = []
        whole.append(literal["raw"] or plain(literal["plain"] or ""))
        end = literal.end()
    yield "".join(whole)


def statements_of(text):
    """Yields the statements of a C++ file as (text, code without string contents); a lambda is part of its statement if it is an
    argument."""
    code = ANY_LITERAL.sub(lambda match: '"' + " " * (len(match[0]) - 2) + '"', text)
    begin, depth = 0, 0
    for index, character in enumerate(code):
        depth = max(0, depth + {"(": 1, ")": -1}.get(character, 0))
        if character == ";" and not depth:
            yield text[begin:index], code[begin:index]
            begin = index + 1
    yield text[begin:], code[begin:]


def expected_of_unit_test(text):
    """The string literals of statements that expect something, and of definitions that they use."""
    text = COMMENT.sub(lambda match: "" if match[0].startswith("//") else match[0], text)
    statements = list(statements_of(text))
    chosen = [each for each in statements if EXPECTS.search(each[1])]
    rest = {DEFINES.search(code)[1]: (own, code) for own, code in statements if DEFINES.search(code)}
    while chosen:
        own, code = chosen.pop()
        yield from literals_of(own)
        chosen += [rest.pop(name) for name in set(re.findall(r"\w+", code)) if name in rest]


def name_of(function):
    """The last name of the called function."""
    return getattr(function, "attr", getattr(function, "id", ""))


def names_in(node):
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def is_expected(node, parents, compared):
    """Whether a Python string is compared with something, returned for that, iterated over, or assigned to a name in `compared`."""
    while node in parents:
        child, node = node, parents[node]
        if isinstance(node, (ast.Compare, ast.Return)) or isinstance(node, ast.Call) and EXPECTS_IN_PYTHON.search(name_of(node.func)):
            return True
        if isinstance(node, (ast.For, ast.comprehension)) and child is node.iter:
            return True
        if isinstance(node, ast.Assign):
            return any(names_in(target) & compared for target in node.targets)
        if isinstance(node, ast.stmt):
            return False
    return False


def expected_of_python(text):
    """The literals of strings and bytes that the test expects, without the values inserted by f-strings."""
    tree = ast.parse(text)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    compared = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.For, ast.comprehension)):
            compared |= names_in(node.iter)
        elif isinstance(node, ast.Compare) or isinstance(node, ast.Call) and EXPECTS_IN_PYTHON.search(name_of(node.func)):
            compared |= names_in(node)
    for node in ast.walk(tree):
        value = None
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            value = node.value
        elif isinstance(node, ast.Constant) and isinstance(node.value, bytes):
            value = node.value.decode("utf-8", "replace")
        elif isinstance(node, ast.JoinedStr):
            value = "".join(part.value for part in node.values if isinstance(part, ast.Constant))
        if value is not None and is_expected(node, parents, compared):
            yield value


def tests_below(folder):
    """The files that expect something. Files in an `Inputs` folder are inputs of tests, except for scripts, which only run them."""
    for test in folder.rglob("*"):
        if "Inputs" not in test.relative_to(folder).parts and (test.suffix != ".py" or test.name.startswith("test_")):
            yield test


def expected_values(folder):
    """The errors expected by the tests in a folder, in any form."""
    readers = {".mlir": expected_of_lit, ".test": expected_of_lit, ".cpp": expected_of_unit_test, ".py": expected_of_python}
    for test in tests_below(folder):
        if test.suffix in readers:
            yield from readers[test.suffix](test.read_text(encoding="utf-8"))


def line_of(text, match):
    return text.count("\n", 0, match.start()) + 1


def files_of(paths):
    """The files themselves, and all .cpp files in the folders."""
    for path in paths:
        yield from sorted(path.rglob("*.cpp")) if path.is_dir() else [path]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests", type=pathlib.Path, action="append", required=True)
    parser.add_argument("--also", action="append", default=[], metavar="FUNCTION",
                        help="hands its message up, too, without being in one of the files")
    parser.add_argument("sources", type=pathlib.Path, nargs="+")
    parser.add_argument("--short", type=pathlib.Path, metavar="FILE")
    args = parser.parse_args()
    short = expected_words(args.short)
    expected, values = [], []
    for folder in args.tests:
        for test in tests_below(folder):
            if test.suffix == ".mlir":
                expected += expected_diagnostics(test.read_text(encoding="utf-8"))
        values += expected_values(folder)
    texts = {source: source.read_text(encoding="utf-8") for source in files_of(args.sources)}
    shared = {name for text in texts.values() for name, *_, is_shared in speakers_of(text) if is_shared}
    shared.update(args.also)
    total, missing = 0, 0
    for source, text in texts.items():
        found = [(line, pattern, expected, "expected-error") for line, pattern in patterns_of(text)]
        found += [(line, pattern, values, "test") for line, pattern in values_of(text, shared)]
        for line, pattern, pool, kind in found:
            total += 1
            # What the source says, without the name of the op and the escapes of the expression.
            said = re.sub(r"\\(.)", r"\1", pattern.rpartition("' op .*")[2]).replace(".*", " ").strip() if pattern else ""
            if pattern and is_short(said):
                key = next((key for key in short if str(source).endswith(key[0]) and key[1] == said), None)
                words = short.pop(key, None)
                pattern = re.escape(words) if words and all(word in words for word in said.split()) else None
            if pattern is None:
                print(f"{source}:{line}: the text of this diagnostic is unknown")
                missing += 1
            elif not any(re.search(pattern, message) for message in pool):
                print(f"{source}:{line}: no {kind} matches {pattern}")
                missing += 1
    for source, said in short:
        print(f"{args.short}: {source} says nothing as short as {said}")
        missing += 1
    if missing or not total:
        sys.exit(f"{missing} of {total} diagnostics are not tested")
    print(f"all {total} diagnostics are tested")


if __name__ == "__main__":
    main()
