"""The one HTTP client of the tests: requests as bytes, responses read strictly, and an MCP client on top."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

HOST = "127.0.0.1"
LIMIT_S = 20.0  # seconds that a test waits for what must come; only a failing test waits so long
JSON = "application/json"
MODERN, LEGACY = "2026-07-28", "2025-11-25"


# --- requests --------------------------------------------------------------------------------


def message(method: str, request_id: Any = 1, **params: Any) -> bytes:
    """A JSON-RPC request."""
    sent = {"jsonrpc": "2.0", "id": request_id, "method": method}
    return json.dumps(sent | ({"params": params} if params else {})).encode()


def call(tool: str, request_id: Any = 1, **arguments: Any) -> bytes:
    """A `tools/call` request."""
    return message("tools/call", request_id, name=tool, arguments=arguments)


def request(
    body: bytes = b"",
    *headers: str,
    method: str = "POST",
    path: str = "/mcp",
    version: str = "1.1",
    sized: bool = True,
    host: str = HOST,
) -> bytes:
    """A whole HTTP request as bytes; the type and length of a body are left out when not `sized`."""
    lines = [f"{method} {path} HTTP/{version}", f"Host: {host}", *headers]
    if sized and (body or method == "POST"):
        typed = any(line.lower().startswith("content-type:") for line in headers)
        lines += [*([] if typed else [f"Content-Type: {JSON}"]), f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def chunked(body: bytes, size: int = 16) -> bytes:
    """`body` in chunks."""
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


# --- responses -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Response:
    """One HTTP response, header names in lower case; read as JSON-RPC and as a tool's result where it is one."""

    status: int
    headers: dict[str, str] = field(repr=False)
    body: bytes = field(repr=False)

    @property
    def json(self) -> Any:
        """The body; None without one."""
        assert not self.body or self.headers["content-type"] == JSON, (self.status, self.headers, self.body[:300])
        return json.loads(self.body) if self.body else None

    @property
    def error(self) -> Any:
        return self.json["error"]

    @property
    def result(self) -> Any:
        assert self.status == 200 and "result" in self.json, (self.status, self.body[:1000])
        return self.json["result"]

    @property
    def text(self) -> str:
        """All text blocks, one after the other."""
        return "\n".join(block["text"] for block in self.result["content"] if block["type"] == "text")

    @property
    def kinds(self) -> list[str]:
        return [block["type"] for block in self.result["content"]]

    @property
    def is_error(self) -> bool:
        return bool(self.result.get("isError", False))

    @property
    def delivery(self) -> Any:
        return self.result.get("structuredContent", {}).get("delivery")


class InvalidResponse(ConnectionError):
    """Raised for anything but one whole, well-formed HTTP response."""


class Connection:
    """One connection; closes with the `with` statement, without a word or with a reset."""

    def __init__(self, port: int, receive_buffer: int | None = None, host: str = HOST) -> None:
        self.sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        if receive_buffer is not None:  # before connecting, when the window is agreed on
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.sock.settimeout(LIMIT_S)
        try:
            self.sock.connect((host, port))
        except OSError:
            self.sock.close()
            raise
        self.file = self.sock.makefile("rb")

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    def leave(self, *, reset: bool = False) -> None:
        """Hang up by FIN, or by the RST of a pulled plug."""
        if reset:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.file.close()
        self.sock.close()

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def post(self, body: bytes, *headers: str) -> Response:
        self.send(request(body, *headers))
        return self.response()

    def response(self, method: str = "POST") -> Response:
        """The next final response, read to its last byte; raises InvalidResponse when it is none."""
        status, headers = self.head()
        bodiless = method == "HEAD" or status in (204, 304)
        return Response(status, headers, b"" if bodiless else b"".join(self.pieces(headers)))

    def ended(self) -> bool:
        """True when the server closes without another byte; waits for that."""
        try:
            return self.file.read(1) == b""
        except ConnectionResetError:
            return True

    def head(self) -> tuple[int, dict[str, str]]:
        """Status and headers of the next final response."""
        while True:
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
            if rest[:1] != b"1":
                return int(rest[:3]), headers

    def pieces(self, headers: dict[str, str], size: int = 1 << 20) -> Iterator[bytes]:
        """The body behind such a head, in pieces of `size` bytes at most or chunk by chunk."""
        if headers.get("transfer-encoding") == "chunked":
            while length := int(self._line() or b"x", 16):
                yield self._exactly(length)
                self._exactly(2)
            self._exactly(2)
        elif "content-length" in headers:
            left = int(headers["content-length"])
            while left:
                yield self._exactly(min(size, left))
                left -= min(size, left)
        else:
            yield self.file.read()

    def _line(self) -> bytes:
        try:
            line = self.file.readline(65_536)
        except ConnectionResetError as error:
            raise InvalidResponse("reset") from error
        if not line.endswith(b"\r\n"):
            raise InvalidResponse(line)
        return line[:-2]

    def _exactly(self, size: int) -> bytes:
        try:
            found = self.file.read(size)
        except ConnectionResetError as error:
            raise InvalidResponse("reset") from error
        if len(found) != size:
            raise InvalidResponse(f"{len(found)} of {size} bytes")
        return found


# --- an MCP client ---------------------------------------------------------------------------


@dataclass
class Caller:
    """One MCP client with its token, a connection of its own for every request; in a legacy version once it is `open`."""

    url: str
    token: str | None = field(default=None, repr=False)
    session: str | None = None
    version: str | None = None

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        return parts.hostname or "", parts.port or 80

    def request(self, method: str, body: bytes = b"", path: str | None = None, **headers: str) -> bytes:
        """An HTTP request as bytes, with what this client always sends; `headers` by their names."""
        parts = urlsplit(self.url)
        sent = {
            "Authorization": self.token and f"Bearer {self.token}",
            "Mcp-Session-Id": self.session,
            "MCP-Protocol-Version": self.version,
            **headers,
        }
        lines = [f"{name}: {value}" for name, value in sent.items() if value is not None and name != "Host"]
        target = path or (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        return request(body, *lines, method=method, path=target, host=headers.get("Host", parts.netloc))

    def connect(self, receive_buffer: int | None = None) -> Connection:
        """A connection that stays open."""
        host, port = self.address
        return Connection(port, receive_buffer, host)

    def send(self, method: str, body: bytes = b"", path: str | None = None, **headers: str) -> Response:
        with self.connect() as connection:
            connection.send(self.request(method, body, path, **headers))
            return connection.response(method)

    def get(self, path: str, **headers: str) -> Response:
        return self.send("GET", b"", path, **headers)

    def post(self, method: str, **params: Any) -> Response:
        """The response to one JSON-RPC request."""
        headers = {}
        if self.version == MODERN:
            headers = {"Mcp-Method": method} | ({"Mcp-Name": params["name"]} if "name" in params else {})
        return self.send("POST", message(method, **params), **headers)

    def ask(self, method: str, **params: Any) -> Any:
        """The result of one JSON-RPC request."""
        return self.post(method, **params).result

    def call(self, tool: str, **arguments: Any) -> Response:
        return self.post("tools/call", name=tool, arguments=arguments)

    def begin(self, tool: str, *, receive_buffer: int | None = None, **arguments: Any) -> Connection:
        """Send a tool call and do not wait for its response."""
        connection = self.connect(receive_buffer)
        connection.send(self.request("POST", call(tool, **arguments)))
        return connection

    def open(self, version: str = LEGACY) -> Caller:
        """A client in a new legacy session of the same token."""
        client = {"name": "test", "version": "1"}
        fresh = Caller(self.url, self.token)
        response = fresh.post("initialize", protocolVersion=version, capabilities={}, clientInfo=client)
        assert response.result["protocolVersion"] == version
        return replace(fresh, session=response.headers["mcp-session-id"], version=version)

    def end(self) -> int:
        """The status of ending the session."""
        return self.send("DELETE").status

    def modern(self) -> Caller:
        return Caller(self.url, self.token, None, MODERN)
