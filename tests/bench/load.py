"""What else the machine did while something was measured."""

import os
import time


def _ticks():
    """(busy, stolen) ticks of all processors since the start of the machine."""
    with open("/proc/stat", encoding="ascii") as f:
        user, nice, system, _, _, irq, softirq, stolen, *_ = map(int, f.readline().split()[1:])
    return user + nice + system + irq + softirq, stolen


def _own_seconds():
    """Processor time of this process and of all its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Load:
    """Counts from its creation on."""

    def __init__(self):
        self.hz = os.sysconf("SC_CLK_TCK")
        self.start, self.ticks, self.own = time.monotonic(), _ticks(), _own_seconds()

    def report(self):
        """Processors that others used, and that the hypervisor kept, on average."""
        seconds = max(time.monotonic() - self.start, 1e-9)
        busy, stolen = (now - then for now, then in zip(_ticks(), self.ticks))
        others = busy / self.hz - (_own_seconds() - self.own)
        return {"seconds": seconds, "others": max(others, 0.0) / seconds, "stolen": stolen / self.hz / seconds}


def machine():
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as f:
        model = next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), "unknown")
    return {"cpu": model, "processors": len(os.sched_getaffinity(0)), "kernel": os.uname().release}
