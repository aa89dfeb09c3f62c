"""Strangers, as many as the server lets in, each holding as much of its memory as it allows."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

from mcpboard.serving.server import CONNECTIONS, TOOL_CALLS
from tests.bench import traffic
from tests.bench.traffic import Caller

BODY = 320 * 1024  # bytes announced; all but the last arrive
LIMIT_S = 20.0


@contextlib.contextmanager
def strangers(port: int) -> Iterator[None]:
    """Half of a board's connections full of bodies that never end, the others with pictures that nobody reads."""
    with contextlib.ExitStack() as leave:
        unread = [leave.enter_context(Caller(port, receive_buffer=4096)) for _ in range(TOOL_CALLS)]
        for caller in unread:
            caller.sock.sendall(traffic.SHOT)
        for caller in unread:
            caller.sock.recv(1)  # the head is out: the reply waits for its reader
        for _ in range(CONNECTIONS - TOOL_CALLS - 2):
            _unfinished(leave.enter_context(Caller(port)).sock)
        with Caller(port) as caller:
            caller.ask(traffic.post("server/discover"))  # by now all that came before has been read
        yield


def _unfinished(sock: socket.socket) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"' + b"[" * BODY
    whole = traffic.request("POST /mcp", body[:BODY], "Content-Type: application/json")
    sock.sendall(whole[:-1])
