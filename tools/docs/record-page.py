#!/usr/bin/python3
"""Creates the screenshots of the web page: docs/serve.png, and docs/serve-phone.png, dark.

    record-page.py PROGRAM

PROGRAM is compiled from SmolLM2-135M-Instruct, see README.md. Needs Debian's chromium and chromium-driver.
"""

import base64
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from served import Server  # noqa: E402
from test_serve_page import Browser  # noqa: E402

ASKED = ("List three good reasons to learn a programming language.", "What does a compiler do? Answer in one sentence.")
IDLE = "return document.getElementById('stop').hidden && document.querySelectorAll('.message.assistant').length == {}"


def picture(server, path, width, height, scheme):
    with Browser() as browser:
        devtools = lambda command, **parameters: browser.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})
        devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)
        devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        browser.open(f"http://{server.host}:{server.port}/")
        browser.wait("return document.title != 'Mica'", "the model's name")
        browser.run("document.getElementById('settings').open = true")
        browser.type("temperature", "0")
        browser.run("document.getElementById('settings').open = false")
        for number, text in enumerate(ASKED, 1):
            browser.type("input", text + "\ue007")
            browser.wait(IDLE.format(number), "an answer")
        path.write_bytes(base64.b64decode(browser.call("GET", "/screenshot")))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with Server("--sequences", "1", command=[sys.argv[1]]) as server:
        picture(server, ROOT / "docs/serve.png", 900, 560, "light")
        picture(server, ROOT / "docs/serve-phone.png", 390, 700, "dark")


if __name__ == "__main__":
    main()
