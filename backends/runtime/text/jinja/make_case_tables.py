"""Generates CaseTables.h during the build: the letter cases and number classes of Python's strings, taken from Python itself.

    make_case_tables.py CaseTables.h
"""

import pathlib
import sys
import unicodedata

POINTS = [point for point in range(0x80, 0x110000) if not 0xD800 <= point < 0xE000]


def mapping_rows(change):
    """Runs of code points with a constant step and a constant distance to their other case."""
    runs = []
    for point in POINTS:
        other = change(chr(point))
        if len(other) != 1 or ord(other) == point:
            continue
        distance = ord(other) - point
        if runs and runs[-1][3] == distance:
            step = point - runs[-1][1]
            if step == runs[-1][2] or (runs[-1][0] == runs[-1][1] and step <= 2):
                runs[-1][1:3] = [point, step]
                continue
        runs.append([point, point, 1, distance])
    return [f"{{{first:#x}, {last:#x}, {step}, {distance}}}" for first, last, step, distance in runs]


def special_rows(rows):
    return [f'{{{ord(letter):#x}, "{"".join(f"{chr(92)}u{ord(c):04x}" if ord(c) >= 128 else c for c in text)}"}}' for letter, text in rows]


def pattern(holds):
    """A PCRE2 character class of the code points for which `holds` is true."""
    runs = []
    for point in POINTS:
        if not holds(chr(point)):
            continue
        if runs and runs[-1][1] == point - 1:
            runs[-1][1] = point
        else:
            runs.append([point, point])
    return ["".join(f"\\\\x{{{first:x}}}" + (f"-\\\\x{{{last:x}}}" if last > first else "")) for first, last in runs]


def array(kind, name, rows):
    return f"inline constexpr {kind} {name}[] = {{\n" + ",\n".join(rows) + "};\n"


def text(name, note, pieces):
    lines = [""]
    for piece in pieces:
        if len(lines[-1]) + len(piece) > 80:
            lines.append("")
        lines[-1] += piece
    return f"/// {note}\ninline constexpr std::string_view {name} =\n" + "\n".join(f'"{line}"' for line in lines) + ";\n"


def cased(letter):
    return letter.islower() or letter.isupper() or letter.istitle()


def ignored(letter):
    """Whether a sigma followed by this character is still at the end of a word."""
    return ("A\u03a3" + letter).lower()[1] == "\u03c2" and ("A\u03a3" + letter + "A").lower()[1] == "\u03c3"


def main():
    category = unicodedata.category
    parts = [
        f"// Made by make_case_tables.py of Unicode {unicodedata.unidata_version.rsplit('.', 1)[0]}.\n#pragma once\n\n"
        "#include <cstdint>\n#include <string_view>\n\nnamespace mica::rt::jinja {\n",
        "/// Every `step`-th code point from first to last, and how far its other case is.\n"
        "struct CaseRun {\n  uint32_t first, last, step;\n  int32_t distance;\n};\n"
        "/// What a letter alone becomes in a way of its own.\nstruct CaseText {\n  uint32_t letter;\n  std::string_view text;\n};\n",
        array("CaseRun", "upperRuns", mapping_rows(str.upper)),
        array("CaseRun", "lowerRuns", mapping_rows(str.lower)),
        array("CaseText", "upperTexts", special_rows((chr(p), chr(p).upper()) for p in POINTS if len(chr(p).upper()) > 1)),
        array("CaseText", "lowerTexts", special_rows((chr(p), chr(p).lower()) for p in POINTS if len(chr(p).lower()) > 1)),
        array("CaseText", "titleTexts", special_rows((chr(p), chr(p).title()) for p in POINTS if chr(p).title() != chr(p).upper())),
        text("otherLower", "Beyond \\p{Ll}.", pattern(lambda c: c.islower() and category(c) != "Ll")),
        text("otherUpper", "Beyond \\p{Lu}.", pattern(lambda c: c.isupper() and category(c) != "Lu")),
        text("otherIgnored", "Beyond marks, formats, modifiers: what a word's last sigma does not see.",
             pattern(lambda c: ignored(c) and category(c) not in ("Mn", "Me", "Cf", "Lm", "Sk"))),
        text("otherDigits", "Digits that are no decimal ones.", pattern(lambda c: c.isdigit() and not c.isdecimal())),
        text("numericLetters", "Letters that are numbers.", pattern(lambda c: c.isnumeric() and category(c)[0] != "N")),
        "} // namespace mica::rt::jinja\n",
    ]
    pathlib.Path(sys.argv[1]).write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
