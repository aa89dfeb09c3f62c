"""A double of Go's net/http server: its framing, its error texts, its view of a caller that leaves.

Unlike the simulator it knows no phone: each request runs a script, which may also misbehave in
every way that a socket allows.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

BUFFERED = 2048  # bytes; Go gives a reply that fits a Content-Length, and chunks a longer one
LIMIT_S = 20.0  # nothing here waits longer
SLICE_S = 0.02  # how often a wait looks around

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"

Script = Callable[["Exchange"], object]


class Exchange:
    """One request, and the socket to answer it on."""

    def __init__(self, sock: socket.socket, over: threading.Event, line: str, headers: dict[str, str]) -> None:
        self.sock = sock
        self.over = over  # the server is being stopped
        self.method, self.path, _ = line.split(" ")
        self.headers = headers  # names in lower case
        self.body = b""

    @property
    def input(self) -> dict[str, Any]:
        """The arguments of a tool call."""
        found: dict[str, Any] = json.loads(self.body)["input"]
        return found

    # --- in good order ---------------------------------------------------------------------

    def reply(self, body: bytes, content_type: str = JSON, status: str = "200 OK", *lines: str) -> None:
        """An answer framed as Go frames it."""
        lines = (f"Content-Type: {content_type}", *lines)
        if len(body) <= BUFFERED:
            self.raw(head(*lines, f"Content-Length: {len(body)}", status=status), body)
        else:
            self.raw(head(*lines, CHUNKED, status=status), chunked(body, b""))

    def error(self, status: str, message: str) -> None:
        """`http.Error`: text, a newline, and a word against sniffing."""
        self.reply(f"{message}\n".encode(), TEXT, status, "X-Content-Type-Options: nosniff")

    # --- in none ---------------------------------------------------------------------------

    def raw(self, *pieces: bytes) -> Exchange:
        for piece in pieces:
            self.sock.sendall(piece)
        return self

    def drip(self, piece: bytes = b"x") -> None:
        """One piece now and then until the caller leaves; each well within any timeout per read."""
        while not self.over.wait(SLICE_S):
            self.sock.sendall(piece)

    def hang(self) -> None:
        """Nothing until the caller leaves."""
        self.left(LIMIT_S)

    def reset(self) -> None:
        """RST in place of FIN."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def left(self, seconds: float) -> bool:
        """Whether the caller leaves within that time, as a Go handler learns from its context."""
        for _ in range(int(seconds / SLICE_S)):
            if select.select([self.sock], [], [], SLICE_S)[0]:
                return True
            if self.over.is_set():
                return False
        return False


class GoServer:
    """Plays `script` on every request; `requests` holds those that were read, in order, retries too."""

    def __init__(self, script: Script, port: int = 0) -> None:
        self.script = script
        self.requests: list[Exchange] = []
        self.connections = 0  # accepted, whether or not anything was asked
        self._over = threading.Event()
        self._changed = threading.Condition()
        self._server = socket.create_server(("127.0.0.1", port))
        self.port: int = self._server.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._threads = [threading.Thread(target=self._accept, name="gohttp")]
        self._threads[0].start()

    def __enter__(self) -> GoServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        socket.create_connection(("127.0.0.1", self.port)).close()
        self._threads[0].join(LIMIT_S)
        self._server.close()
        for thread in self._threads:
            thread.join(LIMIT_S)
        assert not any(thread.is_alive() for thread in self._threads)

    def paths(self) -> list[str]:
        """What was asked so far: method and path."""
        with self._changed:
            return [f"{exchange.method} {exchange.path}" for exchange in self.requests]

    def wait_for(self, count: int) -> None:
        """Return once that many requests have been read."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.requests) >= count, LIMIT_S), f"no request number {count}"

    def _accept(self) -> None:
        while True:
            sock, _ = self._server.accept()
            if self._over.is_set():
                sock.close()
                return
            self.connections += 1
            thread = threading.Thread(target=self._serve, args=(sock,), name="gohttp call")
            self._threads = [*filter(threading.Thread.is_alive, self._threads), thread]
            thread.start()

    def _serve(self, sock: socket.socket) -> None:
        with sock, contextlib.suppress(OSError):
            sock.settimeout(LIMIT_S)
            exchange = self._read(sock)
            if exchange is None:
                return
            with self._changed:
                self.requests.append(exchange)
                self._changed.notify_all()
            self.script(exchange)

    def _read(self, sock: socket.socket) -> Exchange | None:
        """The request, whole; None from a caller that only connected."""
        with sock.makefile("rb") as file:
            line = file.readline().decode("latin-1").strip()
            if not line:
                return None
            headers = dict(_headers(iter(file.readline, b"\r\n")))
            exchange = Exchange(sock, self._over, line, headers)
            exchange.body = file.read(int(headers.get("content-length", "0")))
        return exchange


class Unread(GoServer):
    """Plays its script on connections whose request has arrived, and which it does not read."""

    def _read(self, sock: socket.socket) -> Exchange:
        # Peeking leaves it all in the kernel: closing now makes an RST of the FIN.
        while b"}" not in sock.recv(65536, socket.MSG_PEEK):
            select.select([sock], [], [], SLICE_S)
        return Exchange(sock, self._over, "POST unread HTTP/1.1", {})


def _headers(lines: Iterator[bytes]) -> Iterator[tuple[str, str]]:
    for line in lines:
        name, _, value = line.decode("latin-1").partition(":")
        yield name.lower(), value.strip()


# --- bytes ---------------------------------------------------------------------------------

CHUNKED = "Transfer-Encoding: chunked"


def head(*lines: str, status: str = "200 OK") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode()


def chunked(*chunks: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)


def tool_answer(output: str, **more: Any) -> bytes:
    """The Agent's JSON around what a tool put out."""
    document = {"tool": {}, "raw_input": "{}", "output": output, "is_error": False, "duration_ms": 1, **more}
    return json.dumps(document).encode() + b"\n"
