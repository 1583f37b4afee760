#!/usr/bin/env python3
"""Prints the messages of an LSP client: session.py FILE LINE COLUMN opens FILE and requests information about that position."""

import json
import pathlib
import sys


def send(method, params, number=None):
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    if number is not None:
        message["id"] = number
    body = json.dumps(message).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)


path = pathlib.Path(sys.argv[1]).resolve()
send("initialize", {"processId": None, "rootUri": None, "capabilities": {}}, 0)
send("initialized", {})
send("textDocument/didOpen", {"textDocument": {
    "uri": path.as_uri(), "languageId": "mlir", "version": 1, "text": path.read_text(encoding="utf-8")}})
send("textDocument/hover", {"textDocument": {"uri": path.as_uri()},
                            "position": {"line": int(sys.argv[2]), "character": int(sys.argv[3])}}, 1)
send("shutdown", None, 2)
send("exit", None)
