"""Compiles models, runs programs and compares their results."""

import contextlib
import hashlib
import json
import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/quality"))  # last: its modules have names that others have as well
import published  # noqa: E402

GOLDENS = ROOT / "tests/goldens"
BUNDLED = ROOT / "tests/models"
SHARED = ROOT / "../shared"
# A command that takes longer hangs: this is far more than any needs, even if several builds share the processors.
SECONDS = 600

# Set by run.py.
mica = None
scratch = None

_locks, _lock = {}, threading.Lock()
# Of each thread: `paths`, what its test made for itself alone, and `shared`, whether it makes what all tests share.
_test = threading.local()


def shared(path):
    """A file of the optional test data; skips the test if it does not exist."""
    full = SHARED / path
    if not full.exists():
        raise unittest.SkipTest(f"needs {full}, which is not there")
    return full


def has_cpu(flag):
    """Whether the CPU has this flag in /proc/cpuinfo."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
        return flag in next((line.split() for line in f if line.startswith("flags")), [])


def needs_cpu(*flags):
    """Skips the test on a CPU without these flags in /proc/cpuinfo."""
    for flag in flags:
        if not has_cpu(flag):
            raise unittest.SkipTest(f"needs a CPU with {flag}")


def c_compiler():
    """The name of a C compiler; skips the test if there is none."""
    names = ("clang-22", "clang", "cc")
    found = next((name for name in names if shutil.which(name)), None)
    if not found:
        raise unittest.SkipTest(f"needs a C compiler, none of {', '.join(names)} is there")
    return found


def library(source):
    """A shared library, made once per run of a C file in this folder."""

    def make():
        path = os.path.join(folder("library"), pathlib.Path(source).stem + ".so")
        execute([c_compiler(), "-O1", "-Wall", "-Werror", "-shared", "-fPIC", pathlib.Path(__file__).parent / source, "-o", path])
        return path

    return once(("library", source), make)


def _owned(path):
    """Has `path` removed after the thread's test, unless it is made for all tests."""
    if not getattr(_test, "shared", False):
        getattr(_test, "paths", []).append(path)
    return path


def folder(name):
    """A new folder in the run's temporary folder, which is removed after the test, or after the run if made in `once`."""
    return _owned(tempfile.mkdtemp(prefix=name + "-", dir=scratch))


@contextlib.contextmanager
def removing():
    """Removes in the end what the test of this thread made for itself alone: all tests together would need tens of GB."""
    _test.paths = []
    try:
        yield
    finally:
        for path in _test.paths:
            if os.path.isdir(path):
                shutil.rmtree(path, ignore_errors=True)
            elif os.path.exists(path):
                os.unlink(path)
        _test.paths = []


def execute(command, env=None, stdin=None, check=True, seconds=SECONDS, cwd=None):
    """Runs a command; its exit status must be 0 unless `check` is false."""
    done = subprocess.run([str(c) for c in command], env={**os.environ, **(env or {})}, cwd=cwd, input=stdin,
                          stdin=None if stdin is not None else subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=seconds, check=False)
    if check and done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))[:300]}\nexit status {done.returncode}\n"
                             f"{done.stderr.decode('utf-8', 'replace')[-2000:]}")
    return done


def screen_of(command, stream, env=None):
    """The bytes that a command writes to a terminal, its `stream` ("stdout" or "stderr"); its exit status must be 0."""
    ours, theirs = pty.openpty()
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: theirs}
    with subprocess.Popen([str(c) for c in command], env={**os.environ, **(env or {})}, **streams) as process:
        os.close(theirs)
        screen = b""
        with contextlib.suppress(OSError):  # reading at the end of a terminal's output fails
            while piece := os.read(ours, 4096):
                screen += piece
    os.close(ours)
    if process.returncode:
        raise AssertionError(f"{' '.join(map(str, command))[:300]}\nexit status {process.returncode}\n{screen[-2000:]}")
    return screen


def until(holds, problem, seconds=SECONDS):
    """Waits for other processes: returns the first value of `holds()` that is true. `problem`, a text or a function that returns one, is
    the error after a timeout."""
    end = time.monotonic() + seconds
    while not (value := holds()):
        if time.monotonic() > end:
            raise AssertionError(problem if isinstance(problem, str) else problem())
        time.sleep(0.01)
    return value


def once(key, make):
    """The result of `make()`, computed once per run for each key, also with parallel tests."""
    with _lock:
        entry = _locks.setdefault(key, [threading.Lock(), None])
    with entry[0]:
        if entry[1] is None:
            before, _test.shared = getattr(_test, "shared", False), True
            try:
                entry[1] = (make(), None)
            except Exception as error:  # pylint: disable=broad-except
                entry[1] = (None, error)
            finally:
                _test.shared = before
    value, error = entry[1]
    if error:
        raise error
    return value


def _compiled(model, options, emit):
    """The path, `--json` and stderr of a compilation to a file, done once per run for each model and options."""

    def make():
        name = hashlib.sha256(repr((str(model), options, emit)).encode()).hexdigest()[:16]
        output = os.path.join(scratch, f"{pathlib.Path(model).stem}-{name}.{emit}")
        done = execute([mica, "compile", model, "-o", output, "--emit", emit, "--json", *options])
        return output, json.loads(done.stdout), done.stderr.decode()

    if any(pathlib.Path(model).is_relative_to(path) for path in getattr(_test, "paths", [])):
        # No other test compiles this model.
        result = once((str(model), options, emit), make)
        _owned(result[0])
        return result
    return once((str(model), options, emit), make)


def compile_file(model, *options, emit="exe"):
    """Compiles to a file, once per run for each model and options; returns its path and `--json`."""
    return _compiled(model, options, emit)[:2]


def compile_warnings(model, *options):
    """What the compilation of `program` writes to stderr."""
    return _compiled(model, options, "exe")[2]


def compile_messages(*arguments, **how):
    """The output of `mica compile` on stderr without its last line, which reports the program."""
    *lines, last = execute([mica, "compile", *arguments], **how).stderr.decode().splitlines(keepends=True)
    if not last.startswith("wrote "):
        raise AssertionError(f"the last line of mica compile is {last!r}")
    return "".join(lines)


def emit(model, stage, *options):
    """The text of a stage."""
    return pathlib.Path(compile_file(model, *options, emit=stage)[0]).read_text(encoding="utf-8")


def compile_ir(text, weights, *options):
    """A program from the IR `text` with the weights in the folder `weights` and no config.json."""
    place = pathlib.Path(folder("ir"))
    os.symlink(os.path.realpath(os.path.join(weights, "model.safetensors")), place / "model.safetensors")
    (place / "edited.mlir").write_text(text, encoding="utf-8")
    return Program(compile_file(place / "edited.mlir", *options)[0])


def flip_byte(file, offset):
    """Damages a file that is open for reading and writing."""
    file.seek(offset)
    byte = file.read(1)[0]
    file.seek(offset)
    file.write(bytes([byte ^ 0x41]))


def program(model, *options):
    return Program(compile_file(model, *options)[0])


class Program:
    """A compiled program."""

    def __init__(self, path):
        self.path = path

    def run(self, *arguments, **how):
        return execute([self.path, *arguments], **how)

    def generate(self, prompts, n, *arguments, env=None):
        """Greedy ids of each prompt (lists of ids) and its logits, one array [positions, vocabulary] each. Generates `n` ids per sequence
        and ignores end tokens."""
        handle, file = tempfile.mkstemp(suffix=".npy", dir=scratch)
        os.close(handle)
        tokens = [a for p in prompts for a in ("--tokens", ",".join(map(str, p)))]
        done = self.run(*tokens, "-n", n, "--temperature", 0, "--ignore-eos", "--print-tokens", "--logits", file,
                        *arguments, env=env)
        ids = [[int(t) for t in line.split(" ")] for line in done.stdout.decode().splitlines()]
        logits = np.load(file)
        os.unlink(file)
        ends = np.cumsum([len(p) + n - 1 for p in prompts])
        if logits.dtype != np.float32 or len(logits) != ends[-1] or [len(i) for i in ids] != [n] * len(prompts):
            raise AssertionError(f"{logits.dtype} logits {logits.shape} and ids {ids} for {len(prompts)} prompts, n {n}")
        return ids, np.split(logits, ends[:-1])


def interpreted(model, texts, weights):
    """Logits at every position of `texts`, lists of ids, by the interpreter: one array each. `model` is a file of IR at stage `model`,
    `weights` a folder with tensors of its names. For small models this takes much less time than compiling them."""
    place, lengths = pathlib.Path(folder("interpreted")), [len(ids) for ids in texts]
    columns = {"tokens": [i for ids in texts for i in ids], "sequences": np.repeat(np.arange(len(texts)), lengths),
               "positions": [i for length in lengths for i in range(length)], "logit_indices": range(sum(lengths))}
    inputs = []
    for name, values in columns.items():
        np.save(place / f"{name}.npy", np.array(values, "<i4"))
        inputs += ["--input", place / f"{name}.npy"]
    execute([pathlib.Path(mica).parent / "mica-interpret", model, "--function", "main", *inputs, "--cache",
             f"{len(texts)}x{max(lengths)}", "--weights", weights, "--output-prefix", f"{place}/out"])
    return np.split(np.load(place / "out0.npy"), np.cumsum(lengths)[:-1])


def costs(kind):
    """The KL divergences that `mica compile` quotes for a checkpoint of "floats" or "blocks", by names of published.COSTS."""
    return once(("costs", kind), lambda: published.costs(kind))


def difference(a, b):
    """max |a - b| / max |b|; infinite if shapes differ or a value is not finite."""
    if a.shape != b.shape or not (np.isfinite(a).all() and np.isfinite(b).all()):
        return np.inf
    a, b = a.astype("f8"), b.astype("f8")
    return float(np.abs(a - b).max() / np.abs(b).max())


def nmse(a, b):
    """mean (a - b)^2 / mean b^2."""
    a, b = a.astype("f8"), b.astype("f8")
    return float(((a - b) ** 2).mean() / (b ** 2).mean())


_figures = []


def without_numbers(text):
    """The lines of a message or a table with their numbers, sizes and lists of counted formats replaced."""
    text = re.sub(r"[\d.]+ (?:B|KiB|MiB|GiB)\b", "SIZE", text)
    text = re.sub(r"\b\w+ x \d+(?:, \w+ x \d+)*", "FORMATS", text)
    return [re.sub(r"(?<![\w.])\d[\d.]*(?:e[-+]\d+)?", "N", line) for line in text.splitlines()]


def note(case, text):
    """Records a measured figure, printed at the end with the test's name."""
    with _lock:
        _figures.append((case.id(), text))


def figures():
    return sorted(_figures)


class Case(unittest.TestCase):
    longMessage = True

    def close(self, a, b, bound, what):
        """Asserts that difference(a, b) <= bound, and records it."""
        d = difference(a, b)
        note(self, f"{what}: {d:.2e} (bound {bound:.0e})")
        self.assertLessEqual(d, bound, what)


def for_each(names, prefix):
    """Class decorator: turns the method `prefix`(self, name) into a test per name; there must be at least one."""
    names = list(names)
    if not names:
        raise ValueError(f"{prefix}: there is nothing to test")

    def decorate(cls):
        body = getattr(cls, prefix)
        for name in names:
            def test(self, name=name):
                body(self, name)
            test.__name__ = f"test_{prefix}_{name}".replace("-", "_")
            setattr(cls, test.__name__, test)
        return cls

    return decorate
