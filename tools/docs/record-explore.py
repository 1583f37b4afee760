#!/usr/bin/python3
"""Creates the screenshots of docs/explore.md: docs/explore-{stages,graph,time,memory}.png.

    record-explore.py MICA

They show tests/models/minimind-dense, with a profile of its program on this machine. Needs Debian's chromium and chromium-driver.
"""

import base64
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from browser import Browser  # noqa: E402

MODEL = ROOT / "tests/models/minimind-dense"
#: Selects the norm after the attention.
SELECT = """const stage = window.page.data.stages[0];
const op = stage.line.findIndex((_, at) => kindOf(stage, at) === "mica.rmsnorm" && placeOf(stage, at).endsWith("post_attention_layernorm"));
if (op < 0) throw new Error("no such op");
window.page.go({op: [0, op]});
"""
#: For each screenshot its size, the state of the page, and the actions before it is taken.
PICTURES = {
    "stages": (1180, 460, "panes=model,kernels,asm", SELECT),
    "graph": (1180, 620, "view=graph&open=dense_layer&fold=@dense_layer/self_attn", SELECT),
    "time": (1180, 560, "view=time&test=tg32", ""),
    "memory": (1180, 700, "view=memory&buffers=dense_layer_small", ""),
}


def picture(browser, page, name):
    width, height, state, action = PICTURES[name]
    devtools = lambda command, **parameters: browser.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})
    devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
    devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    browser.open("about:blank")
    browser.open(f"file://{page}#{state}")
    browser.wait("return document.documentElement.dataset.ready", "the page")
    browser.run(action)
    (ROOT / f"docs/explore-{name}.png").write_bytes(base64.b64decode(browser.call("GET", "/screenshot")))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    run = lambda *command: subprocess.run([str(each) for each in command], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory() as work:
        program, profile, page = (os.path.join(work, name) for name in ("program", "profile.json", "page.html"))
        run(sys.argv[1], "compile", MODEL, "-o", program)
        run(program, "bench", "--prompt", 128, "--gen", 32, "--repeat", 3, "--profile-json", profile)
        run(sys.argv[1], "explore", MODEL, "--profile", profile, "-o", page)
        with Browser() as browser:
            for name in PICTURES:
                picture(browser, page, name)


if __name__ == "__main__":
    main()
