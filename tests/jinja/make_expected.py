"""Writes Jinja2's output for each template with each conversation: templates/expected.json, which unit tests read.

    /usr/bin/python3 tests/jinja/make_expected.py
"""

import json
import pathlib

import reference

FOLDER = pathlib.Path(__file__).resolve().parent / "templates"


def main():
    conversations = json.loads((FOLDER / "conversations.json").read_text(encoding="utf-8"))
    expected = {
        path.name: {name: reference.render(path.read_text(encoding="utf-8"), context) for name, context in conversations.items()}
        for path in sorted(FOLDER.glob("*.jinja"))
    }
    text = json.dumps(expected, ensure_ascii=False, indent=1)
    (FOLDER / "expected.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
