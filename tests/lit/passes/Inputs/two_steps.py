#!/usr/bin/env python3
"""Adds a function @steps to a module: two_steps.py < MODEL.mlir

@steps calls @main twice, the second time with the caches that the first call returns, and returns the logits of both calls: a
prompt and a step of decoding. It takes the rows of both calls, then the caches.
"""

import re
import sys

ARGUMENT = re.compile(r'(?:%\w+: )?([^\s{,(][^{]*?) \{mica\.role = "(\w+)"\}')


def main():
    text = sys.stdin.read()
    arguments, results = (ARGUMENT.findall(part) for part in re.search(
        r"func\.func @main\((.*?)\)\s*->\s*(.*?\})\)?\s*\{\n", text, re.S).groups())
    results = [(kind.lstrip("("), role) for kind, role in results]
    types = "(" + ", ".join(kind for kind, _ in arguments) + ") -> (" + ", ".join(kind for kind, _ in results) + ")"
    rows = [(f"%{role}{step}", kind) for step in "12" for kind, role in arguments if role != "cache"]
    states = [f"%cache{index}_0" for index, (_, role) in enumerate(arguments) if role == "cache"]
    kinds = [kind for kind, role in arguments if role == "cache"]
    logits = next(kind for kind, role in results if role == "logits")
    lines = ["func.func @steps(" + ", ".join(f"{name}: {kind}" for name, kind in rows + list(zip(states, kinds))) +
             f") -> ({logits}, {logits}) {{"]
    for step in "12":
        own = iter(states)
        passed = ", ".join(next(own) if role == "cache" else f"%{role}{step}" for _, role in arguments)
        returned = [f"%{role}_{step}_{index}" for index, (_, role) in enumerate(results)]
        states = [name for name, (_, role) in zip(returned, results) if role == "cache"]
        lines.append(f"{', '.join(returned)} = func.call @main({passed}) : {types}")
    position = [role for _, role in results].index("logits")
    lines.append(f"return %logits_1_{position}, %logits_2_{position} : {logits}, {logits}\n}}")
    end = text.rindex("}")
    print(text[:end] + "\n".join(lines) + "\n" + text[end:])


if __name__ == "__main__":
    main()
