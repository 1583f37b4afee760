"""What a process has resident at most: its own memory, and pages of files that it maps."""

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
