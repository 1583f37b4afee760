"""The conditions of a measurement: machine, commit, command line, and other load."""

import hashlib
import os
import pathlib
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def _ticks():
    """(busy, stolen) ticks of all processors since boot."""
    with open("/proc/stat", encoding="ascii") as f:
        user, nice, system, _, _, irq, softirq, stolen, *_ = map(int, f.readline().split()[1:])
    return user + nice + system + irq + softirq, stolen


def _own_seconds():
    """Processor time of this process and of all children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Load:
    """Measures from its creation."""

    def __init__(self):
        self.hz = os.sysconf("SC_CLK_TCK")
        self.start, self.ticks, self.own = time.monotonic(), _ticks(), _own_seconds()

    def report(self):
        """The average number of processors used by others, and of those withheld by the hypervisor."""
        seconds = max(time.monotonic() - self.start, 1e-9)
        busy, stolen = (now - then for now, then in zip(_ticks(), self.ticks))
        others = busy / self.hz - (_own_seconds() - self.own)
        return {"seconds": seconds, "others": max(others, 0.0) / seconds, "stolen": stolen / self.hz / seconds}


def _cpuinfo(key):
    """A value of the first processor."""
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as f:
        return next((line.split(":", 1)[1].strip() for line in f if line.split(":")[0].strip() == key), "unknown")


#: Instruction sets that select kernels, the most capable first.
EXTENSIONS = ("amx_bf16", "avx512_bf16", "avx512_vnni", "avx512f", "avx2")


def machine():
    flags = _cpuinfo("flags").split()
    extension = next((name for name in EXTENSIONS if name in flags), "none of " + ", ".join(EXTENSIONS))
    # Virtual machines often have a name without a generation.
    cpu = f"{_cpuinfo('model name')} (family {_cpuinfo('cpu family')}, model {_cpuinfo('model')}, {extension})"
    return {"cpu": cpu, "processors": len(os.sched_getaffinity(0)), "kernel": os.uname().release}


def cpu():
    """A digest of the processor's model and features, on which kernels and their rounding depend."""
    return hashlib.sha256(f"{_cpuinfo('model name')}: {_cpuinfo('flags')}".encode()).hexdigest()[:16]


#: Marks a commit if the tree has uncommitted changes.
CHANGED = "+changes"


def _git(*words):
    try:
        return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def commit():
    """The tree's commit, marked if the tree has uncommitted changes."""
    head = _git("rev-parse", "--short", "HEAD")
    return (head or "unknown commit") + (CHANGED if _git("status", "--porcelain", "--untracked-files=no") else "")


def changes():
    """The files with uncommitted changes, and how many lines of them."""
    return [line.strip() for line in _git("diff", "--stat=200", "HEAD").splitlines()]


def command_line(argv):
    """The running script and its arguments; absolute paths by their last two parts, independent of the machine."""
    def shown(word):
        return "/".join(pathlib.PurePath(word).parts[-2:]) if word.startswith("/") else word
    return shlex.join([pathlib.Path(sys.argv[0]).name, *map(shown, argv)])
