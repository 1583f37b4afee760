"""Headless Chromium by WebDriver."""

import http.client
import json
import pathlib
import re
import shutil
import subprocess
import unittest

import harness

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Browser:
    """A session of Chromium; skips the test if it is not installed."""

    def __init__(self):
        driver = shutil.which("chromedriver")
        if not driver or not shutil.which("chromium"):
            raise unittest.SkipTest("needs Debian's chromium and chromium-driver, which are not installed")
        self.process = subprocess.Popen([driver, "--port=0"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        port = None
        while port is None:
            line = self.process.stdout.readline().decode()
            if not line:
                raise AssertionError("chromedriver ended")
            port = re.search(r"started successfully on port (\d+)", line)
        self.connection = http.client.HTTPConnection("127.0.0.1", int(port[1]), timeout=harness.SECONDS)
        options = {"args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=900,700"]}
        self.path = ""
        self.path = "/session/" + self.call("POST", "/session", {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}})["sessionId"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("DELETE", "")
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()

    def call(self, method, path, body=None):
        self.connection.request(method, self.path + path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json"})
        value = json.loads(self.connection.getresponse().read())["value"]
        if isinstance(value, dict) and "error" in value:
            raise AssertionError(f"{path}: {value['message']}")
        return value

    def emulate(self, width, height, scheme):
        """The screen of a phone, and the user's color scheme ("light" or "dark")."""
        def protocol(name, **parameters):
            self.call("POST", "/goog/cdp/execute", {"cmd": "Emulation." + name, "params": parameters})

        protocol("setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2, mobile=True)
        protocol("setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, address):
        self.call("POST", "/url", {"url": address})

    def run(self, script, *arguments):
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def type(self, name, text):
        element = self.call("POST", "/element", {"using": "css selector", "value": "#" + name})[ELEMENT]
        self.call("POST", f"/element/{element}/value", {"text": text})

    def click(self, name):
        element = self.call("POST", "/element", {"using": "css selector", "value": "#" + name})[ELEMENT]
        self.call("POST", f"/element/{element}/click", {})

    def violations(self):
        """What axe-core finds in the page as it is: problems of accessibility."""
        if not self.run("return Boolean(window.axe)"):
            self.run((pathlib.Path(__file__).parent / "third_party/axe/axe.min.js").read_text(encoding="utf-8"))
        self.run("""window.found = null;
                    axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice']}).then(result => window.found = result.violations.flatMap(
                        each => each.nodes.slice(0, 3).map(node => `${each.id}: ${node.html.slice(0, 200)} ${node.failureSummary}`)), error => window.found = [String(error)])""")
        return self.wait("return window.found && {found: window.found}", "axe")["found"]

    def wait(self, script, what):
        return harness.until(lambda: self.run(script),
                             lambda: f"{what} does not come: {self.run('return document.body.innerText')!r}")
