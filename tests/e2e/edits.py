"""Edits of the text of stage `model`, as a user would make them."""

import re


def eps(text):
    """Replaces 1e-5 by 1e-6 and vice versa."""
    return re.sub(r"eps\(([^)]*)\)", lambda m: "eps(1.0e-06)" if float(m[1]) > 2e-6 else "eps(1.0e-05)", text)


def pairing(text):
    """Replaces the pairing of every rope by the other one."""
    swap = {"half": "interleaved", "interleaved": "half"}
    return re.sub(r"(= mica\.rope %\S+, %\S+ )(half|interleaved)\b", lambda m: m[1] + swap[m[2]], text)


def theta(text, value):
    return re.sub(r"theta\([^)]*\)", f"theta({value:.6e})", text)


def gate_normalization(text):
    """Inverts the normalization of the chosen experts' weights."""

    def flip(match):
        line = match[0]
        if " normalize" in line:
            return line.replace(" normalize", "")
        return re.sub(r"(k\(\d+\))", r"\1 normalize", line, count=1)

    return re.sub(r".*= mica\.moe_gate .*", flip, text)


def without_layer_call(text, index):
    """Removes call number `index` from @main: its input is passed to the next call."""
    call = list(re.finditer(r"^ *(%\S+):3 = call @\w+\((%\S+), (%\S+), (%\S+), .*\n", text, re.MULTILINE))[index]
    result, inputs = call[1], call.groups()[1:]
    text = text[:call.start()] + text[call.end():]
    # Names of values are local to a function; @main is the last one.
    head, main = text[:text.index("func.func @main(")], text[text.index("func.func @main("):]
    return head + re.sub(re.escape(result) + r"#(\d)", lambda m: inputs[int(m[1])], main)
