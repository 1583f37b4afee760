"""The resident memory of a process: anonymous memory, and pages of mapped files."""

import itertools
import mmap
import os
import resource
import subprocess
import threading

KINDS = ("RssAnon", "RssFile", "VmHWM")
LARGE_PAGE = 2 << 20


def of_process(pid):
    """Bytes of each kind; nothing if the process has ended."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
            fields = dict(line.split(":", 1) for line in status)
        return {kind: int(fields[kind].split()[0]) << 10 for kind in KINDS if kind in fields}
    except (FileNotFoundError, ProcessLookupError):
        return {}


def run(command, every=0.002, **how):
    """Runs a command to its end; returns (result of subprocess.run, maximum bytes of each kind).

    VmHWM is the kernel's own peak of all kinds together; the others are sampled.
    """
    peaks = dict.fromkeys(KINDS, 0)
    with subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, **how) as process:
        ended = threading.Event()

        def watch():
            while not ended.wait(every):
                for kind, size in of_process(process.pid).items():
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
    """Bytes that a program took in addition to its mapped weights and `cache` bytes of its caches: anonymous memory, and all of its file
    except for the weights. `info` is its `info --json`."""
    return peaks["RssAnon"] - cache + os.path.getsize(program) - info["manifest"]["weight_bytes"]


def pages_of(pid, file, size):
    """The resident bytes of a process's mapping of `size` bytes of a file, in whole pages.

    A page that is read may bring its neighbors, up to an aligned huge page.
    """
    page, found = resource.getpagesize(), 0
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, open(f"/proc/{pid}/pagemap", "rb", buffering=0) as pagemap:
        for line in maps:
            begin, end = (int(a, 16) for a in line.split(" ", 1)[0].split("-"))
            if line.rstrip().endswith(os.path.realpath(file)) and end - begin == -(-size // page) * page:
                entries = os.pread(pagemap.fileno(), (end - begin) // page * 8, begin // page * 8)
                # The highest bit of an entry means that the page is present.
                found += page * sum(entry >> 7 for entry in entries[7::8])
    return found


def files_have_huge_pages(folder):
    """Whether a file written there in pieces of a huge page is mapped in huge pages."""
    path = os.path.join(os.path.realpath(folder), "huge-pages")
    with open(path, "w+b", buffering=0) as file:
        for _ in range(4):
            file.write(bytes(LARGE_PAGE))
        with mmap.mmap(file.fileno(), 4 * LARGE_PAGE, prot=mmap.PROT_READ) as mapped:
            sum(mapped[i] for i in range(0, len(mapped), mmap.PAGESIZE))
            with open("/proc/self/smaps", encoding="ascii", errors="replace") as maps:
                lines = iter(maps.read().splitlines())
    os.unlink(path)
    # Lines of values follow the line that ends with the file's name.
    for line in lines:
        if line.endswith(path):
            values = itertools.takewhile(lambda value: not value.startswith("VmFlags:"), lines)
            return any(value.startswith(("FilePmdMapped:", "ShmemPmdMapped:")) and int(value.split()[1]) << 10 == 4 * LARGE_PAGE
                       for value in values)
    return False
