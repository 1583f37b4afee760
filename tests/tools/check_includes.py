#!/usr/bin/env python3
"""Checks that folders depend on each other as described by docs/architecture.md.

    check_includes.py TREE

The page has a table with a row per folder, `| folder | what is there | includes |`: the last column lists the folders whose files
may be included, where `folder/*` includes all folders in it. Errors are

- an include, or a library linked by a CMakeLists.txt (LINK), that the table does not allow; permissions are not transitive,
- a folder in the last column from which nothing is included,
- a folder with sources that has no row, and a row whose folder is missing,
- cyclic includes between folders, also in the table, and cyclic links between libraries,
- an include of LLVM or MLIR, or a link to one of their libraries, in a folder listed in the page's line
  `Without LLVM and MLIR:`,
- cyclic includes between files: a source file and the header with its name count as one, a header without a source file as part of the
  files that include it,
- a path in the page, between backticks, that does not exist.

Tests may include everything and are not checked.
"""

import argparse
import collections
import os
import pathlib
import re
import sys

ROOTS = ("ir", "frontend", "passes", "backends", "tools")
ROOTS_WITHIN = tuple(f"{root}/" for root in ROOTS)
PAGE = "docs/architecture.md"
ROW = re.compile(r"^\| `([\w/-]+)` \|[^|]*\|([^|]*)\|$", re.M)
CODE = re.compile(r"`([^`\n]+)`")
# Of C++, with any spaces, and of TableGen.
INCLUDE = re.compile(r'^[ \t]*#?[ \t]*include[ \t]+["<]([^">\n]+)[">]', re.M)
WITHOUT_LLVM = re.compile(r"^Without LLVM and MLIR: ([^\n]*(?:\n[^\n]+)*)", re.M)
LIBRARY = re.compile(r"^\s*(?:mica_add_compiler_library|mica_add_runtime_library|mica_add_tool)\((\w[\w-]*)\s([^)]*)\)", re.M)
EXECUTABLE = re.compile(r"^\s*target_link_libraries\((\w[\w-]*)\s+(?:(?:PRIVATE|PUBLIC|INTERFACE)\s)?([^)]*)\)", re.M)


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
                            if path.suffix in (".cpp", ".h", ".c", ".def", ".inc", ".td", ".in") and not path.is_symlink())
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
            yield f"{PAGE}: by the table these may include each other in a circle: {' -> '.join(found)}"

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
            if self.is_without_llvm(folder):
                for name in INCLUDE.findall(self.texts[file]):
                    if name.startswith(("llvm/", "mlir/")):
                        yield f"{file}: includes {name}, but {folder} is without LLVM"

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
        stems = {str(pathlib.PurePath(file).with_suffix("")) for file in self.files if file.endswith((".cpp", ".c"))}

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
            yield f"files include each other in a circle: {' -> '.join(found)}"
        if found := circle(self.includes):
            yield f"headers include each other in a circle: {' -> '.join(found)}"

    def check_libraries(self):
        folders, links = {}, collections.defaultdict(set)
        for top in ROOTS:
            for path in sorted((self.root / top).rglob("CMakeLists.txt")):
                text = path.read_text(encoding="utf-8")
                folder = str(path.parent.relative_to(self.root))
                for name, words in LIBRARY.findall(text):
                    folders[name] = folder
                    links[name] |= set(words.partition("LINK")[2].partition("DEPENDS")[0].split()) - {"OPTIONAL"}
                for name, words in EXECUTABLE.findall(text):
                    folders.setdefault(name, folder)
                    links[name] |= set(words.split())
        for name, others in sorted(links.items()):
            if self.is_without_llvm(folders[name]):
                for other in sorted(other for other in others if re.match(r"(LLVM|MLIR)", other)):
                    yield f"{folders[name]}/CMakeLists.txt: {name} links {other}, but {folders[name]} is without LLVM"
            own = [row for row in self.table if within(row, folders[name])]
            for other in sorted(others & folders.keys()):
                rows = [row for row in self.table if within(row, folders[other])]
                if not any(self.allows(row, target) for row in own for target in rows):
                    yield f"{folders[name]}/CMakeLists.txt: {name} links {other} of {folders[other]}, which it may not"
        if found := circle({name: others & folders.keys() for name, others in links.items()}):
            yield f"libraries link each other in a circle: {' -> '.join(found)}"

    def check_paths(self):
        for path in CODE.findall(self.page):
            if re.fullmatch(r"[\w.-]+(/[\w.-]+)+/?", path) and not (self.root / path).exists():
                yield f"{PAGE}: there is no {path}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=pathlib.Path)
    tree = Tree(parser.parse_args().tree)
    wrong = []
    for check in (tree.check_table, tree.check_includes, tree.check_unused, tree.check_files, tree.check_libraries, tree.check_paths):
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
