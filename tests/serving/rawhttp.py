"""The client's side with nothing in between: requests as bytes, answers read strictly, real servers on port 0."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mcpboard.serving.app import Application
from mcpboard.serving.server import TOOL_CALLS, Server, listeners
from tests.serving.role import PATIENCE, CountedLimit, FakeRole

HOST = "127.0.0.1"


# --- requests --------------------------------------------------------------------------------


def message(method: str, request_id: Any = 1, **params: Any) -> bytes:
    """A JSON-RPC request."""
    sent = {"jsonrpc": "2.0", "id": request_id, "method": method}
    return json.dumps(sent | ({"params": params} if params else {})).encode()


def call(tool: str, request_id: Any = 1, **arguments: Any) -> bytes:
    """A `tools/call` request."""
    return message("tools/call", request_id, name=tool, arguments=arguments)


def request(
    body: bytes = b"", *headers: str, method: str = "POST", path: str = "/mcp", version: str = "1.1", sized: bool = True
) -> bytes:
    """A whole HTTP request as bytes; Content-Length is left out when not `sized`."""
    lines = [f"{method} {path} HTTP/{version}", f"Host: {HOST}", *headers]
    if sized and method == "POST":
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def chunked(body: bytes, size: int = 16) -> bytes:
    """`body` in chunks."""
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


# --- answers ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Response:
    """One HTTP answer; header names in lower case."""

    status: int
    headers: dict[str, str] = field(repr=False)
    body: bytes = field(repr=False)

    @property
    def json(self) -> Any:
        assert self.headers["content-type"] == "application/json"
        return json.loads(self.body)


class InvalidResponse(Exception):
    """Raised for anything but one whole, well-formed HTTP response."""


class Client:
    """One connection; closes with the `with` statement, without a word or with a reset."""

    def __init__(self, port: int, receive_buffer: int | None = None, host: str = HOST) -> None:
        self.sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        if receive_buffer is not None:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.sock.settimeout(PATIENCE)
        try:
            self.sock.connect((host, port))
        except OSError:
            self.sock.close()
            raise
        self._file = self.sock.makefile("rb")

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self.sock.close()

    def reset(self) -> None:
        """Leave the way a pulled plug is told: with a reset."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.__exit__()

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def post(self, body: bytes, *headers: str) -> Response:
        self.send(request(body, *headers))
        return self.response()

    def response(self, method: str = "POST") -> Response:
        """The next final answer, read to its last byte; raises Broken when it is none."""
        status, headers = self._head()
        while status == 100:
            status, headers = self._head()
        bodiless = method == "HEAD" or status == 204
        return Response(status, headers, b"" if bodiless else self._body(headers))

    def ended(self) -> bool:
        """True when the server closes without another byte; waits for that."""
        try:
            return self._file.read(1) == b""
        except ConnectionResetError:
            return True

    def _head(self) -> tuple[int, dict[str, str]]:
        first = self._line()
        word, _, rest = first.partition(b" ")
        if word not in (b"HTTP/1.1", b"HTTP/1.0") or not rest[:3].isdigit() or rest[3:4] != b" ":
            raise InvalidResponse(first)
        headers: dict[str, str] = {}
        while line := self._line():
            name, colon, value = line.decode("latin-1").partition(": ")
            if not colon or name.lower() in headers:
                raise InvalidResponse(line)
            headers[name.lower()] = value
        return int(rest[:3]), headers

    def _line(self) -> bytes:
        try:
            line = self._file.readline(65_536)
        except ConnectionResetError as error:
            raise InvalidResponse("reset") from error
        if not line.endswith(b"\r\n"):
            raise InvalidResponse(line)
        return line[:-2]

    def _body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding") == "chunked":
            return b"".join(self._chunks())
        if "content-length" not in headers:
            return self._file.read()
        return self._exactly(int(headers["content-length"]))

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self._line() or b"x", 16):
            yield self._exactly(size)
            self._exactly(2)
        self._exactly(2)

    def _exactly(self, size: int) -> bytes:
        try:
            found = self._file.read(size)
        except ConnectionResetError as error:
            raise InvalidResponse("reset") from error
        if len(found) != size:
            raise InvalidResponse(f"{len(found)} of {size} bytes")
        return found


# --- servers ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Served:
    """A running server with what it serves."""

    role: FakeRole
    limit: CountedLimit
    server: Server
    port: int

    def client(self, receive_buffer: int | None = None) -> Client:
        return Client(self.port, receive_buffer)

    def post(self, body: bytes, *headers: str) -> Response:
        """One question on a connection of its own."""
        with self.client() as client:
            return client.post(body, *headers)

    def pings(self) -> bool:
        """True when `ping` is answered as ever."""
        return bool(self.post(message("ping", "alive")).json["id"] == "alive")


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
            thread.join(PATIENCE)
        assert not [thread for thread in workers if thread.is_alive()]
