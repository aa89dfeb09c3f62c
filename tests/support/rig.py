"""The board role behind the real server, in this process, between backends and a client on real sockets."""

from __future__ import annotations

import contextlib
import http.client
import json
import logging
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from mcpboard import board, config
from mcpboard.board import live_schemas
from mcpboard.board.tools import ROWS
from mcpboard.serving import server
from tests.support import served

LIMIT_S = 20.0  # seconds; nothing in these tests waits longer
NOBODY = "http://127.0.0.1:9"  # discard: a port where nothing listens

JSON = "application/json"


@dataclass(frozen=True)
class Result:
    """What a tools/call came to, as the client sees it."""

    result: Mapping[str, Any]

    @property
    def is_error(self) -> bool:
        return bool(self.result.get("isError", False))

    @property
    def text(self) -> str:
        """All text blocks, one after the other."""
        return "\n".join(block["text"] for block in self.result["content"] if block["type"] == "text")

    @property
    def delivery(self) -> str | None:
        found: str | None = self.result.get("structuredContent", {}).get("delivery")
        return found

    @property
    def kinds(self) -> list[str]:
        return [block["type"] for block in self.result["content"]]


class Client:
    """A client of one server; a connection of its own for every request."""

    def __init__(self, host: str, port: int, headers: Mapping[str, str] | None = None) -> None:
        self.address = (host, port)
        self.headers = dict(headers or {})

    def get(self, path: str) -> tuple[int, Any]:
        """HTTP status and JSON body of a GET."""
        return self._exchange("GET", path, None)

    def post(self, method: str, params: Mapping[str, Any] | None = None) -> tuple[int, Any]:
        """HTTP status and JSON body of one JSON-RPC request."""
        return self._exchange("POST", "/mcp", message(method, params))

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """The result of one JSON-RPC request that must succeed."""
        status, body = self.post(method, params)
        assert status == 200, (status, body)
        assert body["id"] == 1
        return body["result"]

    def call(self, tool: str, **arguments: Any) -> Result:
        """What a tool call comes to."""
        return Result(self.ask("tools/call", {"name": tool, "arguments": arguments}))

    def begin(self, tool: str, *, receive_buffer: int | None = None, **arguments: Any) -> Pending:
        """Send a tool call and do not wait for its answer."""
        return Pending(self, tool, arguments, receive_buffer)

    def _exchange(self, method: str, path: str, body: bytes | None) -> tuple[int, Any]:
        with contextlib.closing(http.client.HTTPConnection(*self.address, timeout=LIMIT_S)) as connection:
            connection.request(method, path, body, {"Content-Type": JSON, **self.headers})
            response = connection.getresponse()
            return response.status, json.loads(response.read() or b"null")


class Pending:
    """A tool call under way; its caller may wait, read slowly, or leave."""

    def __init__(self, client: Client, tool: str, arguments: Mapping[str, Any], receive_buffer: int | None) -> None:
        self.sock = socket.socket()
        self.sock.settimeout(LIMIT_S)
        if receive_buffer is not None:  # before connecting, when the window is agreed on
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.sock.connect(client.address)
        self.sock.sendall(request(message("tools/call", {"name": tool, "arguments": arguments}), client))

    def __enter__(self) -> Pending:
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def leave(self, *, reset: bool = False) -> None:
        """Hang up, by FIN or by RST."""
        if reset:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def answer(self) -> Result:
        """What the call came to."""
        return Result(json.loads(self.body())["result"])

    def response(self) -> http.client.HTTPResponse:
        """The answer, its head read."""
        found = http.client.HTTPResponse(self.sock)
        found.begin()
        return found

    def body(self) -> bytes:
        """The whole body of the answer; raises IncompleteRead or ConnectionError when it is cut short."""
        with contextlib.closing(self.response()) as response:
            return response.read()


def kept_open(client: Client) -> http.client.HTTPConnection:
    """A connection that has carried one request and stays open for more."""
    connection = http.client.HTTPConnection(*client.address, timeout=LIMIT_S)
    connection.request("POST", "/mcp", message("ping"), {"Content-Type": JSON, **client.headers})
    connection.getresponse().read()
    return connection


def message(method: str, params: Mapping[str, Any] | None = None) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}).encode()


def request(body: bytes, client: Client) -> bytes:
    """An HTTP request for /mcp, as bytes."""
    host, port = client.address
    lines = [f"Host: {host}:{port}", f"Content-Type: {JSON}", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in client.headers.items()]
    return "\r\n".join(["POST /mcp HTTP/1.1", *lines, "", ""]).encode() + body


# --- the server ------------------------------------------------------------------------------


def settings(agent: str = NOBODY, config_web: str = NOBODY, **fields: Any) -> config.Settings:
    """Settings in front of these backends; `fields` also reach those that no flag can."""
    flags = {"agent_base_url": agent, "mcp_config_web_base_url": config_web}
    return replace(config.load(flags, environ={}), **fields)


@contextlib.contextmanager
def serving(
    current: Callable[[], config.Settings],
    sockets: list[socket.socket] | None = None,
    *,
    send_buffer: int | None = None,
) -> Iterator[Client]:
    """The board role over `current`, until the block ends; a client that knows where it is."""
    listeners = sockets or server.listeners([("127.0.0.1", 0)])
    if send_buffer is not None:  # connections inherit it
        listeners[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
    with served.thread(board.build(current), listeners):
        yield Client(*listeners[0].getsockname()[:2])


@contextlib.contextmanager
def in_front_of(
    agent: str = NOBODY, config_web: str = NOBODY, *, send_buffer: int | None = None, **fields: Any
) -> Iterator[Client]:
    """The board role in front of these backends, with `fields` of the settings changed."""
    fixed = settings(agent, config_web, **fields)
    with serving(lambda: fixed, send_buffer=send_buffer) as client:
        yield client


def shrink_deadlines(patch: pytest.MonkeyPatch, **seconds: float) -> None:
    """Give tools other deadlines, by name; to be called before the board is built."""
    rows = [replace(row, deadline_s=seconds.get(row.tool.name, row.deadline_s)) for row in ROWS]
    patch.setattr(live_schemas, "ROWS", tuple(rows))


# --- what there is to see --------------------------------------------------------------------


class Lines(logging.Handler):
    """Log lines as they come, with a wait for those that come late."""

    def __init__(self) -> None:
        super().__init__()
        self._changed = threading.Condition()
        self._seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        with self._changed:
            self._seen.append(self.format(record))
            self._changed.notify_all()

    def wait_for(self, part: str, count: int = 1) -> list[str]:
        """The lines that hold `part`, once there are that many."""

        def found() -> list[str]:
            return [line for line in self._seen if part in line]

        with self._changed:
            assert self._changed.wait_for(lambda: len(found()) >= count, LIMIT_S), f"no line {count} with {part!r}"
            return found()


@contextlib.contextmanager
def log_lines(level: int = logging.INFO) -> Iterator[Lines]:
    """What the `mcpboard` logger says while the block runs."""
    lines, logger = Lines(), logging.getLogger("mcpboard")
    before = logger.level
    logger.setLevel(level)
    logger.addHandler(lines)
    try:
        yield lines
    finally:
        logger.removeHandler(lines)
        logger.setLevel(before)


# --- a process of its own --------------------------------------------------------------------


@dataclass(frozen=True)
class Process:
    """`mcpboard serve` as people run it, and a client of it."""

    pid: int
    client: Client

    def resident(self) -> int:
        """Bytes of memory in use."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def files(self) -> list[str]:
        """Paths of what it opened itself and is no device, pipe or socket."""
        folder = Path(f"/proc/{self.pid}/fd")
        found = [os.readlink(folder / number) for number in os.listdir(folder) if int(number) > 2]
        return [path for path in found if path.startswith("/") and not path.startswith("/dev/")]


@contextlib.contextmanager
def process(
    file: Path, *before: str, environ: Mapping[str, str] = os.environ, module: str = "mcpboard"
) -> Iterator[Process]:
    """`serve --config FILE` until the block ends, then it must end well; `before` is put in front of the command."""
    with served.child(file, *before, environ=environ, module=module) as (pid, url):
        parts = urlsplit(url)
        yield Process(pid, Client(parts.hostname or "", parts.port or 0))


def settings_file(folder: Path, agent: str = NOBODY, config_web: str = NOBODY, **ours: Any) -> Path:
    """A settings file in front of these backends; `ours` are keys of [mcpboard]."""
    return served.settings_for(folder, agent, config_web, **ours)
