#!/usr/bin/env python3
"""Summarizes the results of test runners: count_results.py (NAME STATUS JUNIT.xml LOG)...

Prints every failure in full, every skipped test with its reason, the slowest tests and suites of each runner, and ends with
`N passed, N failed, N skipped`. A runner that exits with a status other than 0 although none of its tests
failed, or that writes no results, counts as one failure.
"""
import re
import sys
import xml.etree.ElementTree as ElementTree

# Reasons for which ctest skips a test on purpose; any other reason ("Unable to find executable") is a failure.
SKIPS_OF_CTEST = ("SKIP_REGULAR_EXPRESSION_MATCHED", "SKIP_RETURN_CODE", "Disabled")

#: The number of slowest tests and suites that are listed.
SLOWEST = 8


def outcome(runner, case):
    """(passed|failed|skipped, text to print) of a <testcase>."""
    for kind in ("failure", "error"):
        if (failure := case.find(kind)) is not None:
            parts = [failure.text, case.findtext("system-out"), failure.get("message")]
            return "failed", "\n".join(part for part in parts if part)
    if (skipped := case.find("skipped")) is not None:
        reason = skipped.get("message", "")
        if runner.startswith("ctest"):
            if not reason.startswith(SKIPS_OF_CTEST):
                return "failed", reason
            # GoogleTest writes `FILE:LINE: Skipped` and the reason below it, scripts `NAME: skipped: REASON`.
            out = case.findtext("system-out") or ""
            said = re.search(r": Skipped\n\s*(.+)|: skipped: (.+)", out)
            reason = said[1] or said[2] if said else reason
        return "skipped", reason
    return "passed", ""


def read(runner, path):
    """({outcome: tests}, [(seconds, name)]) from a runner's files."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    times = []
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        kind, text = outcome(runner, case)
        counts[kind] += 1
        name = case.get("name") if runner.startswith("ctest") else f"{case.get('classname')}/{case.get('name')}"
        times.append((float(case.get("time") or 0), name))
        if kind == "failed":
            print(f"-- FAILED {runner}: {name}\n{text}\n")
        elif kind == "skipped":
            print(f"-- skipped {runner}: {name}: {text}")
    return counts, times


def slowest(times):
    """The total time of tests, several of which run at once, and the tests and suites that took longest."""
    suites = {}
    for seconds, name in times:
        suite = name.rpartition("/")[0] if name.startswith("e2e.") else name.partition(".")[0]
        suites[suite] = suites.get(suite, 0) + seconds

    def named(entries):
        longest = sorted(entries, reverse=True)[:SLOWEST]
        return ", ".join(f"{name} {seconds:.0f} s" for seconds, name in longest if seconds >= 1) or "none takes a second"
    return (f"{sum(suites.values()):.0f} s in all tests; slowest tests: {named(times)}; "
            f"slowest suites: {named((seconds, suite) for suite, seconds in suites.items())}")


def main(arguments):
    total = {"passed": 0, "failed": 0, "skipped": 0}
    for runner, status, path, log in zip(*[iter(arguments)] * 4):
        try:
            counts, times = read(runner, path)
            print(f"-- {runner}: {slowest(times)}")
        except (OSError, ElementTree.ParseError) as error:
            counts = {"passed": 0, "failed": 0, "skipped": 0}
            print(f"-- {runner} wrote no results: {error}")
        if int(status) != 0 and counts["failed"] == 0:
            counts["failed"] = 1
            with open(log, errors="replace") as text:
                print(f"-- FAILED {runner}: exit status {status}\n{text.read()}")
        print(f"{runner}: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
        for kind, count in counts.items():
            total[kind] += count
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
    return 1 if total["failed"] or not total["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
