"""Headings of Markdown pages, and the anchors by which links name them."""

import collections
import re


def lines_outside_code(text):
    """(number, line) of the lines that are not in a fenced block."""
    fence = None
    for number, line in enumerate(text.splitlines()):
        found = re.match(r"\s*(```+|~~~+)", line)
        if fence is None and not found:
            yield number, line
        elif found and fence is None:
            fence = found[1]
        elif found and found[1].startswith(fence) and line.strip() == found[1]:
            fence = None


def headings(text):
    """(number of the line, level, title) of every heading."""
    for number, line in lines_outside_code(text):
        if found := re.match(r"(#{1,6})\s+(.*?)\s*#*$", line):
            yield number, len(found[1]), found[2]


def anchor(title):
    """The fragment of a heading, as GitHub makes it: without the number of a repetition."""
    shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
    return re.sub(r"[^\w\- ]", "", shown.strip().lower()).replace(" ", "-")


def anchors(text):
    """All fragments of a page. Repeated headings are numbered from the second on."""
    seen, found = collections.Counter(), set()
    for _, _, title in headings(text):
        name = anchor(title)
        found.add(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return found | set(re.findall(r'<a (?:name|id)="([^"]+)"', text))


def sections(text, level):
    """(what precedes the first heading of that level, {title: section with its heading}) in order. A section ends at the next
    heading of that level or above it."""
    lines, marks = text.splitlines(), [(n, own, title) for n, own, title in headings(text) if own <= level]
    first = next((n for n, own, _ in marks if own == level), len(lines))
    ends = [n for n, _, _ in marks[1:]] + [len(lines)]
    found = {title: "\n".join(lines[begin:end]).strip() + "\n"
             for (begin, own, title), end in zip(marks, ends) if own == level}
    return "\n".join(lines[:first]).strip() + "\n", found
