"""Runs one test of one engine once: a program compiled by Mica, a `llama-bench`, the machine's memory."""

import dataclasses
import json
import statistics
import subprocess


class Skipped(Exception):
    """The engine does not support the test."""


class Failed(Exception):
    """The engine supports the test, but failed."""


@dataclasses.dataclass(frozen=True)
class Test:
    """A row of the table. With `gen`, `batch` sequences with `depth` cached positions generate tokens; otherwise a prompt is processed."""

    key: str
    title: str
    prompt: int = 0
    gen: int = 0
    batch: int = 1
    depth: int = 0
    repeat: int = 1

    def positions(self):
        return self.depth + self.prompt + self.gen


@dataclasses.dataclass(frozen=True)
class Sample:
    """The result of a process: the median of its runs, all runs, and, if known, bytes per second and the share of the processor's peak in
    matmuls."""

    tokens_per_s: float
    runs: list
    gb_per_s: float = 0.0
    share_of_peak: float = 0.0


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "nothing on stderr"


def execute(command, timeout):
    """(exit status, stdout, stderr) of a command; Failed if it cannot be run or times out."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, check=False,
                              encoding="utf-8", errors="replace")
    except subprocess.TimeoutExpired:
        raise Failed(f"no result within {timeout} s") from None
    except OSError as error:
        raise Failed(str(error)) from None
    return done.returncode, done.stdout, done.stderr


def json_of(command, timeout):
    status, out, err = execute(command, timeout)
    if status:
        raise Failed(f"exit status {status}: {last_line(err)}")
    try:
        return json.loads(out)
    except json.JSONDecodeError as error:
        raise Failed(f"its output is no JSON ({error}); stderr: {last_line(err)}") from None


def divergence(mica, program, quality, threads, timeout, options):
    """KL divergence and same top (a share) of `mica eval` from quality["reference"] on quality["text"]."""
    result = json_of([mica, "eval", program, "--text", quality["text"], "--reference", quality["reference"], "--context", "512",
                      "--threads", str(threads), "--json", *options], timeout)
    try:
        return {"kl": result["kl"]["mean"], "same_top": result["same_top"]}
    except (KeyError, TypeError):
        raise Failed("`mica eval --json` has no KL divergence") from None


def share_of_peak(profile):
    """The share of the peak, measured by the same process, that matmuls of a profile reached, without attention."""
    products = [k for k in profile["kernels"] if k["flops"] and not k["kernel"].startswith("attention")]
    seconds, peak = sum(k["seconds"] for k in products), profile["limits"]["gflop_per_s"]
    return 1e-9 * sum(k["flops"] for k in products) / seconds / peak if seconds and peak else 0.0


def prompt_rows(info):
    """The type of the rows that the program with that `info --json` multiplies blocks by in prefill; empty without blocks."""
    return info.get("manifest", {}).get("rows", {}).get("prompt", "")


class Mica:
    """`PROGRAM bench`: each test includes a warm-up."""

    def __init__(self, program, flags, threads, timeout):
        self.program, self.flags, self.threads, self.timeout = program, flags, threads, timeout
        self.info = json_of([program, "info", "--json"], timeout)
        self.in_huge_pages = None

    def weights(self):
        """The formats of the weights and, for block formats, the activation types."""
        manifest, weights = self.info.get("manifest", {}), self.info.get("weights", "?")
        if formats := manifest.get("block_formats"):
            others = [f"others {self.info['other_weights']}"] if "other_weights" in self.info else []
            weights = ", ".join([*(f"{name} x {count}" for name, count in formats.items()), *others])
        rows = [f"{'prefill' if role == 'prompt' else role} {kind}" for role, kind in manifest.get("rows", {}).items()]
        return [f"weights {weights}"] + (["rows " + ", ".join(rows)] if rows else [])

    def version(self):
        pages = [] if self.in_huge_pages is None else [f"{self.in_huge_pages / 1e6:.0f} MB of them in huge pages"]
        return ", ".join([f"mica {self.info.get('version', '?')}", *self.weights(), *pages, *self.flags])

    def bench(self, repeat):
        return [self.program, "bench", "--json", "--threads", str(self.threads), *self.flags, "--repeat", str(repeat)]

    def command(self, test):
        command = self.bench(test.repeat)
        command += ["--gen", str(test.gen)] if test.gen else ["--prompt", str(test.prompt)]
        command += ["--batch", str(test.batch)] if test.batch > 1 else []
        return command + (["--depth", str(test.depth)] if test.depth else [])

    def share_of_peak(self, test):
        """Measured by a separate process that processes the prompt once, because profiling takes time and memory. None for integer rows,
        whose sums are scaled in floats: this is not part of the peak of their dot products."""
        if test.gen or prompt_rows(self.info).startswith("int"):
            return 0.0
        results = json_of([*self.bench(1), "--prompt", str(test.prompt), "--profile"], self.timeout)["results"]
        return share_of_peak(results[0]["profile"])

    def measure(self, test):
        limit = self.info.get("max_seq", 0)
        if limit and test.positions() > limit:
            raise Skipped(f"the program was compiled for {limit} positions, the test needs {test.positions()}")
        command = self.command(test)
        status, out, err = execute(command, self.timeout)
        if status == 2:  # usage error: an older program without this option
            raise Skipped(last_line(err))
        if status:
            raise Failed(f"exit status {status}: {last_line(err)}")
        try:
            report = json.loads(out)
            (result,) = report["results"]
            self.in_huge_pages = report.get("weights_in_huge_pages")
            return Sample(result["tokens_per_s"], result["runs"], result["gb_per_s"], self.share_of_peak(test))
        except (ValueError, KeyError, TypeError) as error:
            raise Failed(f"unexpected output ({error!r}): {out[:200]}") from None


class LlamaBench:
    """llama-bench of llama.cpp or of a fork; options that its --help does not list are left out or skip the test. Its warm-up of prompts is
    one token in one fork and the whole prompt in another: both are disabled, and the first of `repeat` + 1 runs is dropped instead, as in
    `PROGRAM bench`."""

    def __init__(self, binary, model, flags, threads, timeout):
        self.binary, self.model, self.threads, self.timeout = binary, model, threads, timeout
        _, out, err = execute([binary, "--help"], timeout)
        self.help = out + err
        self.flags = self.default_flags() if flags is None else list(flags)
        self.build = self.backends = ""

    def knows(self, option):
        return f" {option} " in self.help or f" {option}," in self.help

    def default_flags(self):
        return ["-fa", "1"] + (["-rtr", "1"] if self.knows("-rtr") else [])

    def version(self):
        return self.build

    def shape(self, test):
        """The options of a test. Concurrent sequences are a prompt of as many tokens, of which only the last one's logits are computed:
        llama-bench has no other way, and the difference is in its favor."""
        if not test.depth:
            prompt, gen = (test.batch, 0) if test.batch > 1 else (test.prompt, test.gen)
            return ["-p", str(prompt), "-n", str(gen)]
        if test.batch > 1 or test.prompt:
            raise Skipped("llama-bench has no such test")
        if self.knows("-d"):
            return ["-p", "0", "-n", str(test.gen), "-d", str(test.depth)]
        if self.knows("-gp"):
            return ["-p", "0", "-n", "0", "-gp", f"{test.depth},{test.gen}"]
        raise Skipped("this llama-bench generates at depth 0 only")

    def command(self, test):
        # A few rows take very little time: more runs, with as many tokens as the other side.
        repeat = max(test.repeat, test.gen) if test.batch > 1 else test.repeat
        warm = ["--no-warmup"] if self.knows("--no-warmup") else ["-w", "0"]
        return [self.binary, "-m", self.model, "-o", "json", "-t", str(self.threads), "-r", str(repeat + 1),
                *warm, *self.flags, *self.shape(test)]

    def measure(self, test):
        results = json_of(self.command(test), self.timeout)
        try:
            (result,) = results
            runs = result["samples_ts"][1:]
            self.build = f"{result['build_commit']} ({result['build_number']})"
            self.backends = result.get("backends", "")
            return Sample(statistics.median(runs), runs)
        except (ValueError, KeyError, TypeError) as error:
            raise Failed(f"unexpected output ({error!r})") from None


class Bandwidth:
    """Read bandwidth of memory in GB/s with that many threads."""

    def __init__(self, binary, threads, timeout):
        self.binary, self.threads, self.timeout = binary, threads, timeout

    def measure(self):
        return json_of([self.binary, "--threads", str(self.threads)], self.timeout)["gb_per_s"]
