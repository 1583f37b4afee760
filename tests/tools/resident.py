"""What a process has resident: its own memory, and pages of files that it maps."""

import os
import resource
import subprocess
import threading

KINDS = ("RssAnon", "RssFile", "VmHWM")


def _now(pid):
    """Bytes of each kind; nothing once the process has ended."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
            fields = dict(line.split(":", 1) for line in status)
        return {kind: int(fields[kind].split()[0]) << 10 for kind in KINDS if kind in fields}
    except (FileNotFoundError, ProcessLookupError):
        return {}


def run(command, every=0.002, **how):
    """Runs a command to its end: (what subprocess.run gives, the most bytes of each kind that were seen).

    VmHWM is the kernel's own peak of all kinds together; the others are looked at every so many seconds.
    """
    peaks = dict.fromkeys(KINDS, 0)
    with subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, **how) as process:
        ended = threading.Event()

        def watch():
            while not ended.wait(every):
                for kind, size in _now(process.pid).items():
                    peaks[kind] = max(peaks[kind], size)

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            out, err = process.communicate()
        finally:
            ended.set()
            watcher.join()
    return subprocess.CompletedProcess(command, process.returncode, out, err), peaks


def beside_weights(peaks, program, info, cache):
    """Bytes that a program took beside its mapped weights and `cache` bytes of its caches: its own memory, and all of its
    file but the weights. `info` is what its `info --json` says."""
    return peaks["RssAnon"] - cache + os.path.getsize(program) - info["manifest"]["weight_bytes"]


def pages_of(pid, file, size):
    """Bytes of the mapping of `size` bytes of a file, in whole pages, that a process has in its memory.

    A page that is read brings its neighbours, up to 64 KiB that begin at a multiple of that.
    """
    page, found = resource.getpagesize(), 0
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, open(f"/proc/{pid}/pagemap", "rb", buffering=0) as pagemap:
        for line in maps:
            begin, end = (int(a, 16) for a in line.split(" ", 1)[0].split("-"))
            if line.rstrip().endswith(os.path.realpath(file)) and end - begin == -(-size // page) * page:
                entries = os.pread(pagemap.fileno(), (end - begin) // page * 8, begin // page * 8)
                # The highest bit of an entry says that the page is there.
                found += page * sum(entry >> 7 for entry in entries[7::8])
    return found
