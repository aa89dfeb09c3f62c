"""Real servers on port 0, in threads, in front of a role of switches."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mcpboard.serving.app import Application
from mcpboard.serving.server import TOOL_CALLS, Server, listeners
from tests.serving.role import CountedLimit, FakeRole
from tests.support.http import HOST, LIMIT_S, Connection, Response, message


@dataclass(frozen=True)
class Served:
    """A running server with what it serves."""

    role: FakeRole
    limit: CountedLimit
    server: Server
    port: int

    def client(self, receive_buffer: int | None = None) -> Connection:
        return Connection(self.port, receive_buffer)

    @contextlib.contextmanager
    def clients(self, count: int, receive_buffer: int | None = None) -> Iterator[list[Connection]]:
        with contextlib.ExitStack() as stack:
            yield [stack.enter_context(self.client(receive_buffer)) for _ in range(count)]

    def post(self, body: bytes, *headers: str) -> Response:
        """One question on a connection of its own."""
        with self.client() as client:
            return client.post(body, *headers)

    def ask(self, sent: bytes) -> Response:
        """The response to these bytes, on a connection of its own."""
        with self.client() as client:
            client.send(sent)
            return client.response("HEAD" if sent.startswith(b"HEAD") else "GET")

    def pings(self) -> bool:
        """True when `ping` is answered as ever."""
        return bool(self.post(message("ping", "alive")).json["id"] == "alive")


def soon(true: Callable[[], object]) -> bool:
    """Tell if it becomes true; the other side's system answers within milliseconds."""
    end = time.monotonic() + LIMIT_S
    while not (found := true()) and time.monotonic() < end:
        threading.Event().wait(0.003)
    return bool(found)


@contextlib.contextmanager
def serving(role: FakeRole | None = None) -> Iterator[Served]:
    """A real server in a thread, on a free port; every thread of it has ended afterwards."""
    role = role or FakeRole()
    limit = CountedLimit(TOOL_CALLS)
    (sock,) = listeners([(HOST, 0)])
    port = sock.getsockname()[1]
    before = set(threading.enumerate())
    server = Server(Application(lambda: role, limit, *role.pages()), [sock])
    loop = threading.Thread(target=server.run)
    loop.start()
    workers = set(threading.enumerate()) - before
    try:
        yield Served(role, limit, server, port)
    finally:
        role.release.set()
        server.stop()
        for thread in workers:
            thread.join(LIMIT_S)
        assert not [thread for thread in workers if thread.is_alive()]
