"""TCP ports for servers that tests and measurements start."""

import contextlib
import socket


def free_ports(count=1):
    """Different ports of the loopback address on which nothing listens."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in sockets]
