"""JSON that is small on the wire and large in memory, as much of it at once as a server takes in.

Five callers whose arguments are such a document, four who post pings of the largest body there may be, and
fifteen bodies that are never finished.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
from collections.abc import Callable

from mcpboard.protocol.limits import ARGUMENTS_LIMIT, BODY_LIMIT, CONTAINERS_LIMIT
from tests.bench.traffic import request

UNFINISHED = 15
POSTERS = 4
FLOODED = 80  # answers to requests that are as large as they may be
ENVELOPE = 1024  # bytes around a value, more than it has
LIMIT_S = 60.0  # for one answer, and for a thread to end
# One for each slot that a lane has, but for that of the shell, which is disabled.
TOOLS = ("touch_gesture", "screenshot", "screenshot", "phone_bridge_status", "support_bundle")


def values(size: int) -> list[str]:
    """JSON of at most `size` bytes: refused for its lists, as large as objects and strings make it, of wide characters."""
    objects = _filled(lambda number: f'{{"{number:x}":0}}', size // 2, CONTAINERS_LIMIT - 100)
    members = _filled(lambda number: f'"{number:x}":0', size // 2 - 10, size)
    return [
        "[" + _filled(lambda number: "[[[[]]]]", size - 2, size) + "]",
        "[" + objects + ",{" + members + "}]",
        "[" + _filled(lambda number: f'"{number:x}"', size - 2, size) + "]",
        '"\U0001f600' + "a" * (size - 6) + '"',
    ]


def _filled(item: Callable[[int], str], size: int, most: int) -> str:
    """Return at most that many items, and bytes with the commas between."""
    items: list[str] = []
    for number in range(most):
        written = item(number)
        size -= len(written) + 1
        if size < 0:
            break
        items.append(written)
    return ",".join(items)


def _post(method: str, params: str) -> bytes:
    body = '{"jsonrpc":"2.0","id":1,"method":"' + method + '","params":' + params + "}"
    return request("POST /mcp", body.encode(), "Content-Type: application/json")


def _call(tool: str, value: str) -> bytes:
    arguments = '{"type":"tap","point":{"x":1,"y":1},"more":' + value + "}"
    return _post("tools/call", '{"name":"' + tool + '","arguments":' + arguments + "}")


class Flood:
    """The traffic, until the block ends; `posted` counts the requests that were answered, whatever the answer."""

    def __init__(self, port: int) -> None:
        self.posted = 0
        self._port = port
        self._over = threading.Event()
        self._answered = threading.Condition()
        self._held = contextlib.ExitStack()
        self._pings = [_post("ping", '{"x":' + value + "}") for value in values(BODY_LIMIT - ENVELOPE)]
        calls = [[_call(tool, value) for value in values(ARGUMENTS_LIMIT - ENVELOPE)] for tool in TOOLS]
        turns = [*(self._pings[start:] + self._pings[:start] for start in range(POSTERS)), *calls]
        self._threads = [threading.Thread(target=self._repeat, args=(turn,), name="flood") for turn in turns]

    def __enter__(self) -> Flood:
        for number in range(UNFINISHED):
            sock = self._held.enter_context(socket.create_connection(("127.0.0.1", self._port), LIMIT_S))
            with contextlib.suppress(OSError):  # the server may end it
                sock.sendall(self._pings[number % len(self._pings)][:-1])
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._held.close()
        for thread in self._threads:
            thread.join(LIMIT_S)

    def wait_for(self, count: int, seconds: float) -> None:
        """Return once that many requests were answered."""
        with self._answered:
            assert self._answered.wait_for(lambda: self.posted >= count, seconds), f"{self.posted} were answered"

    def _repeat(self, turn: list[bytes]) -> None:
        """Send one request after the other, each on a connection of its own, which a call that hangs keeps."""
        for sent in itertools.cycle(turn):
            if self._over.is_set():
                return
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._port), 1.0) as sock:
                sock.sendall(sent)
                if self._response(sock):
                    with self._answered:
                        self.posted += 1
                        self._answered.notify_all()

    def _response(self, sock: socket.socket) -> bytes:
        """Return the beginning of a response; nothing from a server that hung up, or once all is over."""
        while not self._over.is_set():
            with contextlib.suppress(TimeoutError):
                return sock.recv(1 << 16)
        return b""
