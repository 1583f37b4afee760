"""Runs Mica's compiler and llama.cpp's tools for measurements. Results are cached by the hashes of their inputs and of the programs that
compute them, and by the processor, on which kernels depend."""

import dataclasses
import hashlib
import json
import pathlib
import re
import subprocess
import sys
from collections.abc import Callable

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
import load  # noqa: E402

CONTEXT = 512
#: On a busy machine, llama-perplexity often ends without its last lines, and with exit status 0.
ATTEMPTS = 8


class Failed(Exception):
    """A command failed."""


class Unprinted(Failed):
    """A command succeeded without printing the expected output."""


def say(text):
    print(text, flush=True)


def execute(command, check=True):
    command = [str(word) for word in command]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, encoding="utf-8",
                          errors="replace")
    if check and done.returncode:
        lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        raise Failed(f"{' '.join(command)}: exit status {done.returncode}: {' | '.join(lines[-3:])[:400]}")
    return done.stdout + done.stderr if command[0].endswith(("perplexity", "imatrix", "quantize")) else done.stdout


class Cache:
    """Results in a JSON file, by the hashes of their inputs."""

    def __init__(self, path):
        self.path, self.hashes = path, {}
        self.entries = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def hash(self, path):
        """Hashes a file, or the files of a folder."""
        path = pathlib.Path(path)
        files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        stamp = [(str(p), p.stat().st_size, p.stat().st_mtime_ns) for p in files]
        key = repr(stamp)
        if key not in self.hashes:
            digest = hashlib.sha256()
            for file in files:
                with open(file, "rb") as f:
                    for piece in iter(lambda: f.read(1 << 20), b""):
                        digest.update(piece)
            self.hashes[key] = digest.hexdigest()[:24]
        return self.hashes[key]

    def get(self, parts, make):
        """The result of `make()`, a JSON value, computed once for each list of strings `parts`."""
        key = " ".join(map(str, parts))
        if key not in self.entries:
            self.entries[key] = make()
            part = self.path.with_suffix(".part")
            part.write_text(json.dumps(self.entries, indent=1, sort_keys=True) + "\n", encoding="utf-8")
            part.rename(self.path)
        return self.entries[key]


@dataclasses.dataclass(frozen=True)
class Program:
    """A compiled program by its hash. The file is compiled again if it was deleted and is needed."""

    digest: str
    file: pathlib.Path
    make: Callable[[], str]

    def path(self):
        if not self.file.exists() and self.make() != self.digest:
            raise Failed(f"compiling again gave another program than {self.digest}: the compiler changed meanwhile")
        return self.file

    def delete(self):
        self.file.unlink(missing_ok=True)


class Mica:
    def __init__(self, binary, cache, work, threads):
        self.binary, self.cache, self.threads = pathlib.Path(binary).resolve(), cache, threads
        self.work = work / "programs"
        self.work.mkdir(parents=True, exist_ok=True)
        self.version = execute([self.binary, "--version"]).strip()
        self.target = None  #: the CPU for which programs are compiled: that of the last one evaluated
        #: Everything but its inputs that a result of this compiler depends on.
        self.identity = [cache.hash(self.binary), load.cpu()]
        evals, compiles = (execute([self.binary, command, "--help"]) for command in ("eval", "compile"))
        #: Options of `mica eval` that compute prefill rows as decode rows.
        self.decode = ["--as-decode"] if "--as-decode" in evals else ["--prefill-chunk", "1"]
        self.calibrates = re.search(r"^ +--calibrate\b", compiles, re.MULTILINE) is not None
        self.rows = ["--rows", "int8"] if re.search(r"^ +--rows\b", compiles, re.MULTILINE) else None

    def compile(self, model, *options):
        """The program of a model. Options that are paths are hashed by the content of the files."""

        def make():
            part = self.work / "part"
            execute([self.binary, "compile", model, "-o", part, *options])
            digest = self.cache.hash(part)
            part.rename(self.work / digest)
            return digest

        words = [self.cache.hash(option) if isinstance(option, pathlib.Path) else option for option in options]
        digest = self.cache.get(["compile", *self.identity, self.cache.hash(model), *words], make)
        return Program(digest, self.work / digest, make)

    def evaluate(self, program, reference, text, *options):
        """The figures of `mica eval`."""

        def make():
            words = [self.binary, "eval", program.path(), "--text", text, "--reference", reference.path(), "--context", CONTEXT,
                     "--json", "--threads", self.threads, *options]
            result = json.loads(execute(words))
            own = result["program"]
            info = json.loads(execute([program.path(), "info", "--json"]))
            return {"target": info["target"]["cpu"], "rows": info["manifest"].get("rows", {}),
                    "kl": result["kl"]["mean"], "kl_error": result["kl"]["error"], "p99": result["kl"]["p99"],
                    "p99_9": result["kl"]["p99_9"], "max": result["kl"]["max"], "same_top": 100 * result["same_top"],
                    "rms_delta_p": result["rms_delta_p"], "perplexity": own["perplexity"],
                    "reference_perplexity": result["reference"]["perplexity"], "bits": own["bits"],
                    "parameters": own["parameters"], "positions": result["positions"]}

        key = ["eval", *self.identity, program.digest, reference.digest, self.cache.hash(text), CONTEXT, *options]
        figures = self.cache.get(key, make)
        self.target = figures["target"]
        return figures


#: Lines of llama-perplexity --kl-divergence.
FIGURES = {"kl": r"Mean\s+KLD:\s+(\S+)", "p99": r"99\.0%\s+KLD:\s+(\S+)", "p99_9": r"99\.9%\s+KLD:\s+(\S+)",
           "max": r"Maximum\s+KLD:\s+(\S+)", "same_top": r"Same top p:\s+(\S+)", "rms_delta_p": r"RMS\s+\S+p\s*:\s+(\S+)",
           "perplexity": r"Mean\s+PPL\(Q\)\s*:\s+(\S+)", "reference_perplexity": r"Mean\s+PPL\(base\)\s*:\s+(\S+)"}


def figures_of(output):
    """The figures in the output of llama-perplexity --kl-divergence."""
    result = {}
    for name, pattern in FIGURES.items():
        match = re.search(pattern, output)
        if not match:
            raise Unprinted(f"llama-perplexity printed no line for {name}")
        result[name] = float(match[1])
    return result


class Llama:
    """The tools of llama.cpp in a folder."""

    def __init__(self, folder, cache, work, threads):
        self.folder, self.cache, self.threads = pathlib.Path(folder).resolve(), cache, threads
        self.work = work
        (work / "gguf").mkdir(parents=True, exist_ok=True)
        version = re.search(r"version:\s*(.*)", execute([self.tool("perplexity"), "--version"], check=False))
        self.version = version[1].strip() if version else "unknown version"

    def tool(self, name):
        path = self.folder / f"llama-{name}"
        if not path.exists():
            raise Failed(f"{path} is missing: --llama takes the folder of llama.cpp's binaries")
        return path

    def made_by(self, tool, source, *inputs):
        """A digest of everything that determines what a tool makes of the file `source`: the tool itself, the processor, and further files
        and options."""
        parts = (load.cpu(), *(self.cache.hash(each) if isinstance(each, pathlib.Path) else each
                               for each in (source, self.tool(tool), *inputs)))
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:8]

    def quantize(self, source, name, arguments, kind, imatrix=None):
        """Converts `source` to another format, once."""
        target = self.work / "gguf" / f"{name}-{self.made_by('quantize', source, arguments, kind, imatrix)}.gguf"
        if not target.exists():
            part = target.with_suffix(".part")
            more = ["--imatrix", imatrix] if imatrix else []
            execute([self.tool("quantize"), "--allow-requantize", *more, *arguments, source, part, kind, self.threads])
            part.rename(target)
        return target

    def imatrix(self, model, text):
        """The statistics of a model on a text, computed once."""
        target = self.work / "gguf" / f"{model.stem}-{self.made_by('imatrix', model, text, CONTEXT)}.imatrix.gguf"
        if not target.exists():
            part = target.with_suffix(".part.gguf")
            execute([self.tool("imatrix"), "-m", model, "-f", text, "-o", part, "-c", CONTEXT, "-t", self.threads])
            part.rename(target)
        return target

    def evaluate(self, model, source, text, *options):
        """The figures of `model`. The reference is the file `source` with all tensors and the cache converted to f32."""
        tool = self.tool("perplexity")
        key = ["llama", self.cache.hash(tool), load.cpu(), self.cache.hash(model), self.cache.hash(source), self.cache.hash(text), CONTEXT,
               *options]

        def make():
            common = ["-c", CONTEXT, "-b", CONTEXT, "-t", self.threads]
            logits = self.work / f"base-{self.made_by('perplexity', source, text, CONTEXT)}.kld"
            if not logits.exists():
                for old in self.work.glob("base-*.kld"):
                    old.unlink()
                part = logits.with_suffix(".part")
                base = self.quantize(source, "F32", [], "F32")
                execute([tool, "-m", base, "-f", text, "--kl-divergence-base", part, *common, "-ctk", "f32", "-ctv", "f32"])
                base.unlink()
                part.rename(logits)
            words = [tool, "-m", model, "--kl-divergence-base", logits, "--kl-divergence", *common, *options]
            for _ in range(ATTEMPTS):
                try:
                    return figures_of(execute(words))
                except Unprinted as error:
                    failure = error
            raise failure

        return self.cache.get(key, make)
