#!/usr/bin/env python3
"""Runs the tools and a program with fewer resources than usual: closed streams, few threads, little memory, no folder for temporary
files.

    environment.py MICA FEW-THREADS MODEL [NAME...]     all cases, or those whose names contain one of the words

MODEL is a folder whose program answers PROMPT, FEW-THREADS a library for LD_PRELOAD. Prints a line per failure and a count at the end;
exits with 1 if something failed.
"""
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

import hostile

# Compiling needs more memory and threads than reading what an earlier run compiled.
os.environ.pop("MICA_OBJECT_CACHE", None)

PROMPT, ANSWER = ["-p", "count from 7 to 12:", "--temperature", "0"], b" 7 8 9 10 11 12\n"
CASES = []
NO_THREADS = "threads cannot be started; raise the limits of processes (ulimit -u) and memory (ulimit -v)\n"


def case(function):
    CASES.append((function.__name__.replace("_", "-"), function))
    return function


class Place:
    """Shared by all cases: the tools, a program, a folder per case."""

    def __init__(self, mica, few_threads, model, scratch):
        self.mica, self.few_threads, self.model, self.scratch = mica, few_threads, model, scratch
        self.program = os.path.join(scratch, "program")
        subprocess.run([mica, "compile", model, "-o", self.program], check=True, stdin=subprocess.DEVNULL)
        self.made = 0

    def folder(self):
        self.made += 1
        path = os.path.join(self.scratch, f"folder{self.made}")
        os.mkdir(path)
        return path

    def tool(self, name):
        return os.path.join(os.path.dirname(self.mica), name)


def closing(*streams):
    def close():
        for stream in streams:
            os.close(stream)
    return close


def expect(what, got, wanted):
    if got != wanted:
        yield f"{what}: {got!r} instead of {wanted!r}"


def said_before_the_end(result):
    """The stderr of a command without the last line of `mica compile`."""
    return re.sub(rb"wrote [^\n]+\n\Z", b"", result.stderr)


@case
def closed_streams_of_a_program(place):
    result = hostile.run([place.program, "-f", "-"], preexec_fn=closing(0))
    yield from hostile.faults_of(result, "cannot read the prompt from '-': Bad file descriptor; choose another file with -f")
    result = hostile.run([place.program, *PROMPT], preexec_fn=closing(0))
    yield from expect("without stdin", (result.returncode, result.stdout), (0, ANSWER))
    result = hostile.run([place.program, *PROMPT], preexec_fn=closing(1))
    yield from hostile.faults_of(result, "cannot write to the standard output: Bad file descriptor")
    logits = os.path.join(place.folder(), "logits.npy")
    result = hostile.run([place.program, "--json", *PROMPT, "--logits", logits], preexec_fn=closing(0, 2))
    yield from expect("without stdin and stderr", result.returncode, 0)
    with open(logits, "rb") as file:
        yield from expect("the logits' file", file.read(6), b"\x93NUMPY")


@case
def closed_streams_of_tools(place):
    folder = place.folder()
    output = os.path.join(folder, "output")
    result = hostile.run([place.mica, "compile", place.model, "-o", output, "-v"], preexec_fn=closing(0, 1, 2))
    yield from expect("compile", result.returncode, 0)
    yield from expect("its program", hostile.run([output, "info", "--check"]).returncode, 0)
    yield from expect("written files", os.listdir(folder), ["output"])
    # Otherwise each would read the first file that it opened itself.
    for tool, arguments in (("mica-opt", ["-"]), ("mica-interpret", ["-"]), ("mica-lsp-server", [])):
        if os.path.exists(place.tool(tool)):
            result = hostile.run([place.tool(tool), *arguments], preexec_fn=closing(0))
            yield from expect(tool, (result.returncode, b"Bad file descriptor" in result.stderr), (1, True))


@case
def few_threads_of_a_program(place):
    for started in range(4):
        environment = {**os.environ, "LD_PRELOAD": place.few_threads, "MICA_TEST_THREADS": str(started)}
        result = hostile.run([place.program, *PROMPT, "--threads", "4"], env=environment)
        if started == 3:
            yield from expect("four threads", (result.returncode, result.stdout), (0, ANSWER))
            continue
        yield from hostile.faults_of(
            result, f"only {started + 1} of 4 threads could be started; use --threads {started + 1}, or raise the limits of "
            "processes (ulimit -u) and memory (ulimit -v)\n")
    # As rejected by a memory limit.
    result = hostile.run([place.program, *PROMPT, "--threads", "1024"], preexec_fn=limit_memory(1500))
    yield from hostile.faults_of(result, " of 1024 threads could be started; use --threads ")


@case
def few_threads_of_the_compiler(place):
    refused = 0
    for started in range(12):
        folder = place.folder()
        environment = {**os.environ, "LD_PRELOAD": place.few_threads, "MICA_TEST_THREADS": str(started)}
        result = hostile.run([place.mica, "compile", place.model, "-o", os.path.join(folder, "program")], env=environment)
        if result.returncode == 0:
            break
        refused += 1
        for fault in hostile.faults_of(result, "mica: error: " + NO_THREADS):
            yield f"{started} threads: {fault}"
        yield from expect(f"{started} threads leave", os.listdir(folder), [])
    yield from expect("some are refused, and enough are not", 0 < refused < 12, True)


@case
def few_threads_of_other_tools(place):
    module = os.path.join(place.folder(), "module.mlir")
    with open(module, "w", encoding="utf-8") as file:
        file.write("".join(f"func.func @f{i}() {{ return }}\n" for i in range(64)))
    environment = {**os.environ, "LD_PRELOAD": place.few_threads, "MICA_TEST_THREADS": "0"}
    for command in (["mica-opt", "--pass-pipeline=builtin.module(func.func(canonicalize))", module],):
        if os.path.exists(place.tool(command[0])):
            result = hostile.run([place.tool(command[0]), *command[1:]], env=environment)
            for fault in hostile.faults_of(result, "mica: error: " + NO_THREADS):
                yield f"{command[0]}: {fault}"


def limit_memory(megabytes):
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))


def with_less_and_less(command, check, first):
    """With every memory limit, the command either has enough or prints an error line, down to where the dynamic linker fails."""
    limit, seen = first, set()
    while limit > 8:
        result = hostile.run(command(), preexec_fn=limit_memory(int(limit)))
        if result.returncode == 127 or b"error while loading shared libraries" in result.stderr or result.returncode == -signal.SIGSEGV and limit < 16:
            break
        seen.add(result.returncode)
        if result.returncode == 0:
            faults = list(check(result))
        else:
            faults = list(hostile.faults_of(result, ""))
        for fault in faults:
            yield f"{limit:.0f} MB: {fault}"
        limit *= 0.85
    yield from expect("both happen", seen, {0, 1})


@case
def little_memory_for_a_program(place):
    yield from with_less_and_less(lambda: [place.program, *PROMPT, "--threads", "2"],
                                  lambda result: expect("the answer", result.stdout, ANSWER), 400)


@case
def little_memory_for_the_compiler(place):
    folders = []

    def command():
        folders.append(place.folder())
        return [place.mica, "compile", place.model, "-o", os.path.join(folders[-1], "program")]

    def check(result):
        program = os.path.join(folders[-1], "program")
        yield from expect("the program", hostile.run([program, "info", "--check"]).returncode, 0)

    yield from with_less_and_less(command, check, 3000)
    for folder in folders:
        yield from expect("files", set(os.listdir(folder)) - {"program"}, set())


@case
def no_folder_for_temporary_files(place):
    locked = place.folder()
    os.chmod(locked, 0o500)
    for folder in (os.path.join(place.scratch, "none"), place.program, "/proc", *([locked] if os.geteuid() != 0 else [])):
        environment = {**os.environ, "TMPDIR": folder}
        output = os.path.join(place.folder(), "program")
        result = hostile.run([place.mica, "compile", place.model, "-o", output], env=environment)
        yield from expect(f"compile, TMPDIR={folder}", (result.returncode, said_before_the_end(result)), (0, b""))
        result = hostile.run([output, *PROMPT], env=environment)
        yield from expect(f"run, TMPDIR={folder}", (result.returncode, result.stdout), (0, ANSWER))
        result = hostile.run([place.mica, "verify", place.model], env=environment)
        for fault in hostile.faults_of(result, "cannot create a temporary file ("):
            yield f"verify, TMPDIR={folder}: {fault}"


@case
def no_home(place):
    for environment in ({"HOME": os.path.join(place.scratch, "none")},
                        {"XDG_CACHE_HOME": os.path.join(place.scratch, "none", "cache")}):
        clean = {name: value for name, value in os.environ.items() if name != "XDG_CACHE_HOME"}
        result = hostile.run([place.mica, "run", place.model, *PROMPT], env={**clean, **environment})
        yield from hostile.faults_of(result, "mica: cannot be created (No such file or directory); set XDG_CACHE_HOME to a folder that exists\n")
    yield from expect("a home folder was created", os.path.exists(os.path.join(place.scratch, "none")), False)


@case
def a_killed_compiler_leaves_nothing_for_long(place):
    folder = place.folder()
    output = os.path.join(folder, "program")
    for _ in range(10):
        with subprocess.Popen([place.mica, "compile", place.model, "-o", output], stdin=subprocess.DEVNULL) as process:
            while process.poll() is None and not any(".mica-" in name for name in os.listdir(folder)):
                time.sleep(0.001)
            process.kill()
        if os.listdir(folder) not in ([], ["program"]):
            break
    else:
        yield "no temporary file was met"
    result = hostile.run([place.mica, "compile", place.model, "-o", output])
    yield from expect("the next one", (result.returncode, os.listdir(folder)), (0, ["program"]))


@case
def files_of_a_users_own_are_no_leftovers(place):
    folder = place.folder()
    own = os.path.join(folder, "program.tmp-999999")
    with open(own, "wb") as file:
        file.write(b"notes")
    result = hostile.run([place.mica, "compile", place.model, "-o", os.path.join(folder, "program")])
    yield from expect("files", (result.returncode, sorted(os.listdir(folder))), (0, ["program", "program.tmp-999999"]))


def scratch_commands(place):
    """Commands that write a whole program to the folder for temporary files."""
    text = os.path.join(place.folder(), "text")
    with open(text, "w", encoding="utf-8") as file:
        file.write("count from 7 to 12: 7 8 9 10 11 12\n" * 50)
    yield [place.mica, "verify", place.model]
    yield [place.mica, "compile", place.model, "--weights", "int4", "--calibrate", text, "-o", os.path.join(place.folder(), "program")]


@case
def a_killed_command_leaves_no_scratch_for_long(place):
    for command in scratch_commands(place):
        temporary = place.folder()
        environment = {**os.environ, "TMPDIR": temporary}
        for _ in range(10):
            with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment) as process:
                while process.poll() is None and not any(files for _, _, files in os.walk(temporary)):
                    time.sleep(0.001)
                process.kill()
            if os.listdir(temporary):
                break
        else:
            yield f"{command[1]}: nothing was met among the temporary files"
        result = hostile.run(command, env=environment)
        yield from expect(f"the next {command[1]}", (result.returncode, said_before_the_end(result), os.listdir(temporary)), (0, b"", []))


@case
def files_that_may_not_grow(place):
    """Hints name what can be changed: the limit, and the folder of a file with a default location."""
    small = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 14, 1 << 14))
    result = hostile.run([place.program, *PROMPT], preexec_fn=small)
    yield from hostile.faults_of(result, "cannot put the model's code into memory: File too large; raise the limit of file sizes "
                                         "(ulimit -f)\n")
    for command in scratch_commands(place):
        temporary = place.folder()
        result = hostile.run(command, env={**os.environ, "TMPDIR": temporary}, preexec_fn=small)
        for fault in hostile.faults_of(result, "cannot be written (File too large); raise the limit (ulimit -f) or set TMPDIR to a "
                                               "folder with free space\n"):
            yield f"{command[1]}: {fault}"
        yield from expect(f"{command[1]} leaves", os.listdir(temporary), [])
    result = hostile.run([place.mica, "run", place.model, *PROMPT], env={**os.environ, "XDG_CACHE_HOME": place.folder()}, preexec_fn=small)
    yield from hostile.faults_of(result, "cannot be written (File too large); raise the limit (ulimit -f) or set XDG_CACHE_HOME to a "
                                         "folder with free space\n")
    # Records of probes are larger than the program's other files.
    result = hostile.run([place.program, "score", "--probes", os.path.join(place.folder(), "none", "probes")])
    yield from hostile.faults_of(result, "cannot be written (its folder does not exist); create it or set TMPDIR to a folder with free space\n")


@case
def terminal_escapes(place):
    """Input from users never reaches a terminal as a control sequence."""
    red = "\x1b[31m\x9b"
    for command in ([place.program, f"--{red}"], [place.program, "--tokens", red], [place.program, "-f", red],
                    [place.program, "-p", "a", "--logits", f"/{red}/x"], [place.mica, "compile", red, "-o", "x"],
                    [place.mica, red], [place.mica, "compile", place.model, "-o", f"/{red}/x"]):
        result = hostile.run(command)
        yield from expect(f"{command[1:]}", (result.returncode in (1, 2), b"\x1b" in result.stderr, b"\xc2\x9b" in result.stderr,
                                             b"\\x1b[31m" in result.stderr), (True, False, False, True))


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    mica, few_threads, model = (os.path.abspath(path) for path in sys.argv[1:4])
    with tempfile.TemporaryDirectory(prefix="mica-hostile-") as scratch:
        place = Place(mica, few_threads, model, scratch)
        cases = [(name, lambda check=check: check(place)) for name, check in CASES]
        sys.exit(hostile.run_cases("environment", cases, sys.argv[4:]))


if __name__ == "__main__":
    main()
