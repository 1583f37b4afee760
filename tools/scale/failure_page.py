"""The passage of docs/scale.md on how long a run continues after a rank has failed: what tests/e2e/test_ranks_failure.py has measured."""

import json
import pathlib
import re

from scale_page import paragraph, table

#: What `tests/e2e/run.py --figures` has written.
MEASURED = pathlib.Path(__file__).resolve().parents[2] / "tests/bench/rank-failures.json"
#: Names of tests: the place and the implementation of MPI, what the ranks do, what happens to one of them.
NAME = re.compile(r"test_ranks_failure\.Failure\.test_ends_(?:(four|hosts)_)?(openmpi|mpich)_\w+_(killed|stopped|waits|cut)_[0-9]+")
PLACES = {None: "two ranks on one host", "four": "four ranks on one host", "hosts": "two hosts"}
FAILURES = {"killed": "a rank is killed", "stopped": "a rank is stopped", "waits": "a rank waits", "cut": "the cable is down"}
IMPLEMENTATIONS = {"openmpi": "OpenMPI", "mpich": "MPICH"}


def seconds_by_case(figures):
    """{(place, failure, implementation): the seconds of each test}"""
    found = {}
    for name, texts in figures.items():
        if match := NAME.fullmatch(name):
            place, implementation, failure = match.groups()
            found.setdefault((place, failure, implementation), []).extend(float(text.removesuffix(" s")) for text in texts)
    return found


def cell(seconds):
    if not seconds:
        return "-"
    low, high = f"{min(seconds):.1f}", f"{max(seconds):.1f}"
    return f"{low} s" if low == high else f"{low} to {high} s"


def passage(result):
    found = seconds_by_case(result["figures"])
    machine = result["machine"]
    rows = [[f"{PLACES[place]}, {words}", *(cell(found.get((place, failure, implementation))) for implementation in IMPLEMENTATIONS)]
            for place in PLACES for failure, words in FAILURES.items() if any(key[:2] == (place, failure) for key in found)]
    return "\n".join([
        paragraph(f"Measured with `{result['command']}`, commit {result['commit']}: {machine['cpu']}, {machine['processors']} processors, Linux "
                  f"{machine['kernel']}; {sum(map(len, found.values()))} tests; other processes used {result['load']['others']:.2f} processors. "
                  "Minimum and maximum over what the ranks were doing:"), "",
        table(["", *IMPLEMENTATIONS.values()], rows), ""])


def load():
    return json.loads(MEASURED.read_text(encoding="utf-8"))
