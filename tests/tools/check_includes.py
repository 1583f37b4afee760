#!/usr/bin/env python3
"""Checks that folders depend on each other as described by docs/architecture.md.

    check_includes.py TREE [--objects BUILD]

The page has a table with a row per folder, `| folder | what is there | includes |`: the last column lists the folders whose files
may be included, where `folder/*` includes all folders in it. Errors are

- an include, or a library linked by a CMakeLists.txt, that the table does not allow; permissions are not transitive. Variables and
  generator expressions among the libraries are looked into,
- an include of a file of tests/, a link to one of its libraries, and an include of a macro, which cannot be followed,
- a class that a header declares without its definition (`class X;`) and that only folders define which the table does not allow,
- a library of a folder that is linked elsewhere than by the folder's own CMakeLists.txt, that is made by other commands than
  mica_add_*, or that compiles sources of another folder,
- a folder in the last column from which nothing is included,
- a folder with sources that has no row, and a row whose folder is missing,
- cyclic includes between folders, also in the table, and cyclic links between libraries,
- an include of LLVM or MLIR, or a link to one of their libraries, in a folder listed in the page's line
  `Without LLVM and MLIR:`,
- cyclic includes between files: a source file and the header with its name count as one, a header without a source file as part of the
  files that include it,
- a path in the page, between backticks, that does not exist.

With --objects, the folder of a finished build, the same is checked of what the linker sees: a file depends on those that define the
symbols that it uses, whichever header declares them. Errors are

- a symbol of a folder that, by the table, depends on the folder of its user,
- files that need each other's symbols in a cycle. The page may exempt calls back, with the reason, in a line
  `- Calls back: FILE -> FOLDER/* or FILE, reason`; such a line that is not needed is an error,
- sources that a CMakeLists.txt names, without an object.

Tests may include everything and are not checked.
"""

import argparse
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOTS = ("ir", "frontend", "passes", "backends", "tools")
ROOTS_WITHIN = tuple(f"{root}/" for root in ROOTS)
PAGE = "docs/architecture.md"
ROW = re.compile(r"^\| `([\w/-]+)` \|[^|]*\|([^|]*)\|$", re.M)
CODE = re.compile(r"`([^`\n]+)`")
# Of C++, with any spaces, and of TableGen.
INCLUDE = re.compile(r'^[ \t]*#?[ \t]*include[ \t]+["<]([^">\n]+)[">]', re.M)
CALLS_BACK = re.compile(r"^- Calls back: `([\w/.-]+)` -> `([\w/.*-]+)`", re.M)
SUFFIXES = (".cpp", ".cc", ".cxx", ".c", ".h", ".hh", ".hpp", ".ipp", ".inl", ".def", ".inc", ".td", ".in")
SOURCES = (".cpp", ".cc", ".cxx", ".c")
INCLUDED_MACRO = re.compile(r"^[ \t]*#[ \t]*include[ \t]+([A-Za-z_]\w*)", re.M)
DECLARED = re.compile(r"^(?:class|struct) (\w+);", re.M)
DEFINED = re.compile(r"^(?:template <[^\n]*> *)?(?:class|struct) (?:\[\[\w+\]\] )?(\w+)(?: final)?(?: *:[^;{]*)? *\{", re.M)
WITHOUT_LLVM = re.compile(r"^Without LLVM and MLIR: ([^\n]*(?:\n[^\n]+)*)", re.M)
COMMAND = re.compile(r"^[ \t]*(\w+)[ \t]*\(([^()]*(?:\([^()]*\)[^()]*)*)\)", re.M)
# A symbol in the POSIX format of nm: its object, its name, which may have spaces, and its kind.
SYMBOL = re.compile(r"^(.*\.o): (.*?) ([A-Za-z])(?: [0-9a-f]*)*$", re.M)


def within(path, folder):
    return path == folder or path.startswith(folder + "/")


def circle(graph):
    """The nodes of a cycle in a graph {node: nodes}, in order; nothing if there is none."""
    done, path = set(), []

    def visit(node):
        if node in path:
            return path[path.index(node):] + [node]
        if node in done:
            return None
        path.append(node)
        for other in sorted(graph.get(node, ())):
            if found := visit(other):
                return found
        done.add(path.pop())
        return None

    for node in sorted(graph):
        if found := visit(node):
            return found
    return None


class Tree:
    def __init__(self, root):
        self.root = root
        self.page = (root / PAGE).read_text(encoding="utf-8")
        self.table = {row[1]: CODE.findall(row[2]) for row in ROW.finditer(self.page)}
        found = WITHOUT_LLVM.search(self.page)
        self.without_llvm = CODE.findall(found[1]) if found else []
        self.files = sorted(str(path.relative_to(root)) for top in ROOTS for path in (root / top).rglob("*")
                            if path.suffix in SUFFIXES and not path.is_symlink())
        self.texts = {file: (root / file).read_text(encoding="utf-8") for file in self.files}
        self.includes = {file: list(self.includes_of(file)) for file in self.files}

    def includes_of(self, file):
        """The files of the tree that a file includes, and the generated files of its folder."""
        beside = os.path.dirname(file)
        for name in INCLUDE.findall(self.texts[file]):
            for path in map(os.path.normpath, (name, os.path.join(beside, name))):
                if path.startswith(ROOTS_WITHIN) and (path in self.texts or (self.root / os.path.dirname(path)).is_dir()):
                    yield path
                    break

    def is_without_llvm(self, folder):
        return any(within(folder, name.removesuffix("/*")) for name in self.without_llvm)

    def allows(self, folder, other):
        """Whether files of a folder may include those of another one."""
        return folder == other or any(within(other, allowed[:-2]) if allowed.endswith("/*") else other == allowed
                                      for allowed in self.table[folder])

    def reachable(self):
        """For each folder of the table, those that it may include, and those that these may include."""
        direct = {folder: {other for other in self.table if other != folder and self.allows(folder, other)} for folder in self.table}
        result = {}

        def visit(folder):
            if folder not in result:
                result[folder] = direct[folder].union(*map(visit, sorted(direct[folder])))
            return result[folder]

        for folder in self.table:
            visit(folder)
        return result

    def check_table(self):
        for folder, allowed in self.table.items():
            if not (self.root / folder).is_dir():
                yield f"{PAGE}: there is no folder {folder}"
            for other in allowed:
                if not any(within(row, other[:-2]) if other.endswith("/*") else row == other for row in self.table):
                    yield f"{PAGE}: {folder} may include {other}, which has no row"
        graph = {folder: {other for other in self.table if other != folder and self.allows(folder, other)}
                 for folder in self.table}
        if found := circle(graph):
            yield f"{PAGE}: by the table these may include each other in a cycle: {' -> '.join(found)}"

    def check_includes(self):
        for file in self.files:
            folder = str(pathlib.PurePosixPath(file).parent)
            if folder not in self.table:
                yield f"{file}: its folder has no row in {PAGE}"
                continue
            for other in self.includes[file]:
                target = str(pathlib.PurePosixPath(other).parent)
                if target in self.table and not self.allows(folder, target):
                    yield f"{file}: includes {other}, which {folder} may not"
            for name in INCLUDE.findall(self.texts[file]):
                if self.is_without_llvm(folder) and name.startswith(("llvm/", "mlir/")):
                    yield f"{file}: includes {name}, but {folder} is without LLVM"
                if os.path.normpath(os.path.join(folder, name) if name.startswith("..") else name).startswith("tests/"):
                    yield f"{file}: includes {name} of the tests"
            for name in INCLUDED_MACRO.findall(self.texts[file]):
                yield f"{file}: includes the macro {name}, whose definition is unknown"

    def check_declarations(self):
        """A header that declares another folder's class depends on that folder without including it."""
        homes = collections.defaultdict(set)
        for file, text in self.texts.items():
            for name in DEFINED.findall(text):
                homes[name].add(str(pathlib.PurePosixPath(file).parent))
        for file, text in self.texts.items():
            folder = str(pathlib.PurePosixPath(file).parent)
            if folder not in self.table:
                continue
            for name in DECLARED.findall(text):
                if homes[name] and not any(self.allows(folder, home) for home in homes[name]):
                    yield f"{file}: declares {name} of {min(homes[name])}, which {folder} may not include"

    def check_unused(self):
        used = collections.defaultdict(set)
        for file, others in self.includes.items():
            folder = str(pathlib.PurePosixPath(file).parent)
            used[folder] |= {str(pathlib.PurePosixPath(other).parent) for other in others} - {folder}
        for folder, allowed in self.table.items():
            for other in allowed:
                if not any(within(target, other[:-2]) if other.endswith("/*") else target == other for target in used[folder]):
                    yield f"{PAGE}: {folder} may include {other}, of which it includes nothing"

    def check_files(self):
        stems = {str(pathlib.PurePath(file).with_suffix("")) for file in self.files if file.endswith(SOURCES)}

        def unit(file):
            stem = str(pathlib.PurePath(file).with_suffix(""))
            return stem if stem in stems else None

        def reached(file, seen):
            """The units whose headers a file includes, also through headers without a source file."""
            for other in self.includes[file]:
                if stem := unit(other):
                    yield stem
                elif other in self.includes and other not in seen:
                    seen.add(other)
                    yield from reached(other, seen)

        graph = collections.defaultdict(set)
        for file in self.files:
            if stem := unit(file):
                graph[stem] |= set(reached(file, set())) - {stem}
        if found := circle(graph):
            yield f"files include each other in a cycle: {' -> '.join(found)}"
        if found := circle(self.includes):
            yield f"headers include each other in a cycle: {' -> '.join(found)}"

    def commands(self, tops):
        """The commands of the CMake files below some folders, or of single files: file, name, words."""
        for top in tops:
            where = self.root / top
            for path in [where] if where.is_file() else sorted([*where.rglob("CMakeLists.txt"), *where.rglob("*.cmake")]):
                text = re.sub(r"#[^\n]*", "", path.read_text(encoding="utf-8"))
                for name, words in COMMAND.findall(text):
                    yield str(path.relative_to(self.root)), name, words.split()

    def check_libraries(self):
        folders, links, variables = {}, collections.defaultdict(set), collections.defaultdict(set)
        shared = ("CMakeLists.txt", "cmake")
        own, general, tests = list(self.commands(ROOTS)), list(self.commands(shared)), list(self.commands(("tests",)))
        for file, name, words in own + general:
            if name == "set" or (name == "list" and words[:1] == ["APPEND"]):
                words = words[name == "list":]
                variables[words[0]] |= set(words[1:])

        def named(words, seen=()):
            """The libraries that words name, also through variables and generator expressions."""
            for word in words:
                yield word
                yield from re.findall(r"[\w-]+", word) if "$<" in word else ()
                for variable in set(re.findall(r"\$\{(\w+)\}", word)) - set(seen):
                    yield from named(variables[variable], (*seen, variable))

        for file, name, words in own:
            folder, target = os.path.dirname(file), words[0] if words else ""
            if re.fullmatch(r"mica_add_(compiler_library|runtime_library|tool)", name):
                folders[target] = folder
                at = words.index("LINK") if "LINK" in words else len(words)
                rest = words[at + 1:]
                links[target] |= set(named(rest[:rest.index("DEPENDS")] if "DEPENDS" in rest else rest)) - {"OPTIONAL"}
                for source in words[1:at]:
                    path = os.path.normpath(os.path.join(folder, source.replace("${PROJECT_SOURCE_DIR}/", "/")))
                    if source.endswith(SOURCES) and not source.startswith("${CMAKE_CURRENT_BINARY_DIR}/") and not within(path, folder):
                        yield f"{file}: {target} compiles {source}, which is not in {folder}"
            elif name == "target_link_libraries":
                folders.setdefault(target, folder)
                links[target] |= set(named(words[1:])) - {"PRIVATE", "PUBLIC", "INTERFACE"}
            elif name in ("add_library", "target_sources", "link_libraries") or any("LINK_LIBRARIES" in word for word in words):
                yield f"{file}: uses {name}{' with LINK_LIBRARIES' * name.startswith('set')}; libraries are made by mica_add_* and their LINK"
        of_tests = {words[0] for _, name, words in tests if words and name.startswith(("add_library", "add_executable", "mica_add_"))}
        for file, name, words in general:
            if name in ("target_link_libraries", "link_libraries") or any("LINK_LIBRARIES" in word for word in words):
                for other in sorted(set(named(words)) & folders.keys()):
                    yield f"{file}: links {other} of {folders[other]} to all libraries"
        for name, others in sorted(links.items()):
            where = f"{folders[name]}/CMakeLists.txt: {name} links"
            if self.is_without_llvm(folders[name]):
                for other in sorted(other for other in others if re.match(r"(LLVM|MLIR)", other)):
                    yield f"{where} {other}, but {folders[name]} is without LLVM"
            for other in sorted(others & of_tests - folders.keys()):
                yield f"{where} {other} of the tests"
            rows = [row for row in self.table if within(row, folders[name])]
            for other in sorted(others & folders.keys() - {name}):
                targets = [row for row in self.table if within(row, folders[other])]
                if not any(self.allows(row, target) for row in rows for target in targets):
                    yield f"{where} {other} of {folders[other]}, which it may not"
        if found := circle({name: others & folders.keys() - {name} for name, others in links.items()}):
            yield f"libraries link each other in a cycle: {' -> '.join(found)}"

    def symbols(self, build):
        """For each source file, the symbols that it defines for others, and those that it uses of others."""
        objects = {}
        for path in sorted(build.rglob("*.o")):
            parts = re.fullmatch(r"(.*)/CMakeFiles/[^/]*\.dir/(.*)\.o", str(path.relative_to(build)))
            source = os.path.normpath(os.path.join(parts[1], parts[2])) if parts else ""
            if source in self.texts:
                objects[str(path)] = source
        defined, used = {}, {source: set() for source in objects.values()}
        nm = shutil.which("llvm-nm") or "nm"
        listing = subprocess.run([nm, "-A", "-P", "-C", "-g", *objects], check=True, capture_output=True, text=True).stdout if objects else ""
        for path, symbol, kind in SYMBOL.findall(listing):
            if kind == "U":
                used[objects[path]].add(symbol)
            elif kind in "TBDR":
                defined[symbol] = objects[path]
        return defined, used

    def check_objects(self, build):
        defined, used = self.symbols(build)
        named = {os.path.basename(word) for _, _, words in self.commands(ROOTS) for word in words}
        for file in self.files:
            if file.endswith(SOURCES) and os.path.basename(file) in named and file not in used:
                yield f"{build}: has no object of {file}: build all first"
        folder = {file: str(pathlib.PurePosixPath(file).parent) for file in self.files}
        reachable, graph = self.reachable(), collections.defaultdict(dict)
        for file, symbols in sorted(used.items()):
            for symbol in sorted(symbols & defined.keys()):
                graph[file].setdefault(defined[symbol], symbol)
        for file, others in graph.items():
            for other, symbol in others.items():
                if folder[file] in reachable.get(folder[other], ()):
                    yield f"{file}: uses {symbol} of {other}, a folder that depends on {folder[file]}"
        for caller, called in CALLS_BACK.findall(self.page):
            back = [other for other in graph[caller] if other != caller and (other == called or called == folder[other] + "/*")]
            for other in back:
                del graph[caller][other]
            if not back:
                yield f"{PAGE}: {caller} does not call {called} back"
        if found := circle({file: others.keys() - {file} for file, others in graph.items()}):
            steps = [f"{file} (by {graph[file][other]})" for file, other in zip(found, found[1:])]
            yield f"files use each other in a cycle: {' -> '.join([*steps, found[-1]])}"

    def check_paths(self):
        for path in CODE.findall(self.page):
            if re.fullmatch(r"[\w.-]+(/[\w.-]+)+/?", path) and not (self.root / path).exists():
                yield f"{PAGE}: there is no {path}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=pathlib.Path)
    parser.add_argument("--objects", type=pathlib.Path, metavar="BUILD")
    arguments = parser.parse_args()
    tree = Tree(arguments.tree)
    wrong = []
    checks = [tree.check_table, tree.check_includes, tree.check_declarations, tree.check_unused, tree.check_files,
              tree.check_libraries, tree.check_paths]
    if arguments.objects:
        checks.append(lambda: tree.check_objects(arguments.objects))
    for check in checks:
        found = list(check())
        wrong += found
        # No other result is meaningful if the table is wrong.
        if found and check == tree.check_table:
            break
    print("\n".join(wrong))
    if wrong:
        sys.exit(f"{len(wrong)} dependencies are not those of {PAGE}")
    print(f"{len(tree.files)} files in {len(tree.table)} folders include each other as {PAGE} says")


if __name__ == "__main__":
    main()
