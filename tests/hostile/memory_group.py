#!/usr/bin/env python3
"""Runs the compiler and programs in a memory control group, as in a container with a small limit.

    memory_group.py MICA MODEL [NAME...]     all cases, or those whose names contain one of the words

Unlike a limit of the address space (environment.py), such a limit rejects no allocation: pages of files are dropped, and if that is not
enough the kernel kills the process. MODEL is a folder whose program answers PROMPT of environment.py. Prints measured figures, a line
per failure and a count at the end; exits with 1 if something failed, 77 if no such group can be created.
"""
import os
import signal
import subprocess
import sys
import tempfile
import time

import environment
import folder as model
import hostile

ROOT = "/sys/fs/cgroup"
MB, SECONDS = 1 << 20, 10


class Refused(Exception):
    """No group can be created; contains the reason."""


def own_group(controller):
    """The path of this process's group relative to the root of a hierarchy: by controller in version 1, by "" in version 2."""
    with open("/proc/self/cgroup", encoding="ascii") as groups:
        for line in groups:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            if controller in controllers.split(","):
                return path.lstrip("/")
    return ""


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(str(text))


class Group:
    """A memory group within this process's own, of either version of control groups. Its limit can be changed; it does not use swap."""

    def __init__(self):
        self.is_first = os.path.isdir(f"{ROOT}/memory")
        try:
            self.path = self.make_first() if self.is_first else self.make_second()
        except OSError as error:
            raise Refused(f"{error.filename or ROOT}: {error.strerror}") from error

    @staticmethod
    def make_first():
        path = os.path.join(ROOT, "memory", own_group("memory"), f"mica-test-{os.getpid()}")
        os.mkdir(path)
        return path

    @staticmethod
    def make_second():
        """Within a group that delegates the controller; at the root if this one may not, because it has processes."""
        if "memory" not in read(f"{ROOT}/cgroup.controllers").split():
            raise Refused(f"{ROOT} has no memory controller")
        why = None
        for parent in (os.path.join(ROOT, own_group("")), ROOT):
            try:
                if "memory" not in read(f"{parent}/cgroup.subtree_control").split():
                    write(f"{parent}/cgroup.subtree_control", "+memory")
                path = f"{parent}/mica-test-{os.getpid()}"
                os.mkdir(path)
                return path
            except OSError as error:
                why = error
        raise why

    def limit(self, size):
        """Also drops the file pages of the group."""
        if self.is_first:
            # The limit of memory and swap together may never be less than that of memory.
            both = f"{self.path}/memory.memsw.limit_in_bytes"
            counts_swap = os.path.exists(both)
            if counts_swap:
                write(both, -1)
            write(f"{self.path}/memory.force_empty", 0)
            write(f"{self.path}/memory.max_usage_in_bytes", 0)
            write(f"{self.path}/memory.limit_in_bytes", size)
            if counts_swap:
                write(both, size)
        else:
            write(f"{self.path}/memory.max", size)
            if os.path.exists(f"{self.path}/memory.swap.max"):
                write(f"{self.path}/memory.swap.max", 0)

    def peak(self):
        """The maximum number of bytes of the group since the limit was set; in version 2 since it was created, on kernels that record
        it."""
        name = "memory.max_usage_in_bytes" if self.is_first else "memory.peak"
        path = f"{self.path}/{name}"
        return int(read(path)) if os.path.exists(path) else 0

    def enter(self):
        write(f"{self.path}/cgroup.procs", os.getpid())

    def run(self, command, **options):
        """Also kills a process that would only read the pages of its code over and over."""
        try:
            return hostile.run(command, preexec_fn=self.enter, **options)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, -signal.SIGKILL, b"", b"")

    def remove(self):
        os.rmdir(self.path)


def ended(result):
    """How a process that lacked memory ended: an error line, or killed without output; otherwise a description of the problem."""
    if result.returncode == -signal.SIGKILL:
        yield from environment.expect("output of a killed process", (result.stdout, result.stderr), (b"", b""))
    else:
        yield from hostile.faults_of(result, "")


def below(group, limit, command):
    """Runs the command with less and less memory until it has lacked some three times: each limit in MB, and the result. The timeout
    follows from the first run, which has enough."""
    lacked, seconds = 0, None
    while lacked < 3:
        group.limit(int(limit * MB))
        start = time.monotonic()
        result = group.run(command, timeout=seconds or hostile.SECONDS)
        seconds = seconds or max(SECONDS, 10 * (time.monotonic() - start))
        lacked += result.returncode != 0
        yield limit, result
        limit *= 0.7


def case(function):
    CASES.append((function.__name__.replace("_", "-"), function))
    return function


CASES = []


@case
def the_compiler(place, group):
    """Killed or not: remaining files are removed by the next compiler, and an existing program is complete."""
    folder = place.folder()
    output = os.path.join(folder, "program")
    seen, enough = set(), 0.0
    for limit, result in below(group, 400.0, [place.mica, "compile", place.model, "-o", output]):
        seen.add(result.returncode)
        left = [name for name in os.listdir(folder) if name != "program" and ".mica-" not in name]
        yield from environment.expect(f"{limit:.0f} MB: what is left", left, [])
        if result.returncode == 0:
            enough = limit
        else:
            for fault in ended(result):
                yield f"{limit:.0f} MB: {fault}"
        if os.path.exists(output):
            yield from environment.expect(f"{limit:.0f} MB: the program", hostile.run([output, "info", "--check"]).returncode, 0)
            os.unlink(output)
    print(f"memory-group: the compiler has enough with {enough:.0f} MB, and ended with {sorted(seen)}")
    yield from environment.expect("both happen", 0 in seen and len(seen) > 1, True)
    result = hostile.run([place.mica, "compile", place.model, "-o", output])
    yield from environment.expect("the next one", (result.returncode, os.listdir(folder)), (0, ["program"]))


@case
def a_program(place, group):
    """Killed or not: a file that it writes is complete or does not exist, and remaining files are removed by the next program."""
    folder = place.folder()
    logits = os.path.join(folder, "logits.npy")
    seen, enough = set(), 0.0
    for limit, result in below(group, 100.0, [place.program, *environment.PROMPT, "--threads", "2", "--logits", logits]):
        seen.add(result.returncode)
        if result.returncode == 0:
            enough = limit
            yield from environment.expect(f"{limit:.1f} MB: the answer", result.stdout, environment.ANSWER)
            yield from environment.expect(f"{limit:.1f} MB: what it wrote", os.listdir(folder), ["logits.npy"])
            os.unlink(logits)
        else:
            for fault in ended(result):
                yield f"{limit:.1f} MB: {fault}"
            yield from environment.expect(f"{limit:.1f} MB: the logits", os.path.exists(logits), False)
    print(f"memory-group: a program has enough with {enough:.1f} MB, and ended with {sorted(seen)}")
    yield from environment.expect("both happen", 0 in seen and len(seen) > 1, True)
    result = hostile.run([place.program, *environment.PROMPT, "--logits", logits])
    yield from environment.expect("the next one", (result.returncode, os.listdir(folder)), (0, ["logits.npy"]))


def large_model(path):
    """About 100 MB of f32, most of them in three large matrices of each of two layers."""
    hidden, inner = 512, 8192
    parts = model.Folder()
    parts.config.update(hidden_size=hidden, intermediate_size=inner)
    sizes = {64: hidden, 96: inner, 32: hidden // 2, 128: 128}
    shapes = [(name, tuple(sizes[size] for size in shape)) for name, shape in model.shapes()]
    parts.header, parts.data = {"__metadata__": {"format": "pt"}}, b""
    data, start = [], 0
    for name, shape in shapes:
        row = model.values(shape[-1:] if len(shape) == 1 else (1, shape[-1]))
        rows = row if len(shape) == 1 else b"".join(row[4 * i:] + row[:4 * i] for i in range(64)) * (shape[0] // 64)
        parts.header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [start, start + len(rows)]}
        data.append(rows)
        start += len(rows)
    parts.data = b"".join(data)
    parts.write(path)


@case
def weights_larger_than_the_limit(place, group):
    """Weights are pages of the program's file, which can be dropped and read again: the result is the same, but takes longer."""
    folder = place.folder()
    path, program = os.path.join(folder, "model"), os.path.join(folder, "program")
    large_model(path)
    compiled = hostile.run([place.mica, "compile", path, "-o", program, "--weights", "f32"])
    yield from environment.expect("compile", compiled.returncode, 0)
    size = os.path.getsize(program)
    yield from environment.expect("100 MB or more", size >= 100 * MB, True)
    command = [program, "--tokens", "1,5,9", "-n", "4", "--temperature", "0", "--ignore-eos", "--print-tokens", "--threads", "2"]
    wanted = hostile.run(command)
    yield from environment.expect("without a limit", wanted.returncode, 0)
    # Cached pages are charged to the group that read them first.
    with open(program, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    limit = size // 2
    group.limit(limit)
    result = group.run(command, timeout=hostile.SECONDS)
    yield from environment.expect("with half of its size", (result.returncode, result.stdout), (0, wanted.stdout))
    print(f"memory-group: a program of {size / MB:.0f} MB computes with a limit of {limit / MB:.0f} MB and {group.peak() / MB:.0f} MB at "
          "the peak")
    if group.peak():
        yield from environment.expect("the limit held", group.peak() <= limit, True)
        yield from environment.expect("it was reached", group.peak() >= 0.9 * limit, True)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    mica, path = (os.path.abspath(argument) for argument in sys.argv[1:3])
    # The group is removed in any case.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        group = Group()
    except Refused as why:
        print(f"tests/hostile/memory_group.py: Skipped\nno memory group can be made ({why})")
        sys.exit(77)
    try:
        with tempfile.TemporaryDirectory(prefix="mica-hostile-") as scratch:
            place = environment.Place(mica, None, path, scratch)
            cases = [(name, lambda check=check: check(place, group)) for name, check in CASES]
            status = hostile.run_cases("memory-group", cases, sys.argv[3:])
    finally:
        group.remove()
    sys.exit(status)


if __name__ == "__main__":
    main()
