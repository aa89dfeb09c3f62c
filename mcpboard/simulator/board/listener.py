"""One listening port: threads and sockets that are all gone when `stop` returns."""

from __future__ import annotations

import select
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

from mcpboard.simulator.board import go_http
from mcpboard.simulator.board.runs import Dropped, Ledger, ReceivedRequest, SimulatedClock, ToolFailure, ToolRun

IDLE_S = 120.0  # the board drops a quiet keep-alive connection after that
READ_S = 30.0  # the board's limit for a whole request
WRITE_S = 310.0  # the board has none; a reader that stalls longer than any tool may run is given up
POLL_S = 0.02  # how often a listening thread looks whether it is to end
STOP_S = 10.0  # by then every thread has noticed the end; one that has not is a bug here

Respond = Callable[[ReceivedRequest, Callable[[], bool]], go_http.GoReply]
ResetEarly = Callable[[str, str], bool]


@dataclass
class Port:
    """Answer HTTP on one loopback port; may be stopped and started again, on the same number."""

    name: str
    address: tuple[str, int]
    respond: Respond
    reset_early: ResetEarly
    ledger: Ledger
    clock: SimulatedClock
    _server: _Server | None = None
    _thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        host, number = self.address
        return f"http://[{host}]:{number}" if ":" in host else f"http://{host}:{number}"

    def start(self) -> None:
        """Listen; OSError when the port is taken."""
        self._server = _Server(self.address, self)
        self.address = (self.address[0], int(self._server.server_address[1]))
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(POLL_S,), name=f"simulator {self.name}", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Refuse from now on, cut what is open, and join every thread; RuntimeError if one does not end."""
        server, self._server = self._server, None
        if server is None or self._thread is None:
            return
        server.shutdown()
        self._thread.join(STOP_S)
        server.socket.close()
        server.cut_all()


class _Server(ThreadingHTTPServer):
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], port: Port) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.port = port
        self._lock = threading.Lock()
        self._live: dict[threading.Thread, socket.socket] = {}
        super().__init__(address, _Connection)

    def server_bind(self) -> None:
        # the standard one asks the resolver for our own name, which may take seconds and is never used
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        thread = threading.Thread(
            target=self._serve, args=(request, client_address), name=f"simulator {self.port.name} call", daemon=True
        )
        with self._lock:
            self._live[thread] = request
        thread.start()

    def _serve(self, request: Any, client_address: Any) -> None:
        try:
            self.process_request_thread(request, client_address)
        finally:
            with self._lock:
                del self._live[threading.current_thread()]

    def shutdown_request(self, request: Any) -> None:
        # under the lock, so that cut_all never touches a number that another socket got meanwhile
        with self._lock:
            super().shutdown_request(request)

    def cut_all(self) -> None:
        with self._lock:
            threads = list(self._live)
            for connection in self._live.values():
                with suppress(OSError):  # the peer may be faster
                    connection.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join(STOP_S)
        if stuck := [thread.name for thread in threads if thread.is_alive()]:
            raise RuntimeError(f"simulator threads did not end: {', '.join(stuck)}")

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a caller that left; anything else is our bug and shows its traceback."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # as Go does; else head and body cost a delayed acknowledgement

    @property
    def port(self) -> Port:
        return cast(_Server, self.server).port

    def handle_one_request(self) -> None:
        self.close_connection = True
        self.connection.settimeout(IDLE_S)
        self.raw_requestline = self.rfile.readline(65537)
        self.connection.settimeout(READ_S)
        if not self.raw_requestline or not self.parse_request():
            return
        if self.port.reset_early(self.port.name, self.path):
            go_http.reset(self.connection)
            return
        length = self.headers.get("Content-Length", "0").strip()
        if "Transfer-Encoding" in self.headers or not (length.isascii() and length.isdigit()):
            self.send_error(400)
            return
        body = self.rfile.read(int(length))
        if len(body) != int(length):  # the caller left
            self.close_connection = True
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = ReceivedRequest(self.port.name, self.command, self.path, headers, body)
        self.port.ledger.note(self.port.ledger.requests, request)
        self.connection.settimeout(WRITE_S)
        try:
            self._send(self.port.respond(request, self._gone))
        except Dropped as drop:
            self.close_connection = True
            if drop.reset:
                go_http.reset(self.connection)

    def _send(self, reply: go_http.GoReply) -> None:
        framing = go_http.frame(reply)
        self.wfile.write(go_http.head(reply, framing, closes=self.close_connection))
        if self.command == "HEAD":
            return
        run = ToolRun(self.port.clock, self._gone)
        for piece in go_http.pieces(reply):
            if piece:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if framing == go_http.CHUNKED else piece)
            if reply.bytes_per_second:
                try:
                    run.stall(len(piece) / reply.bytes_per_second)
                except ToolFailure:
                    raise Dropped(reset=False) from None
        if reply.keep is not None:
            raise Dropped(reset=False)
        if framing == go_http.CHUNKED:
            self.wfile.write(b"0\r\n\r\n")

    def _gone(self) -> bool:
        """Return True once the caller has closed its side, which is how Go's server notices too."""
        try:
            readable, _, _ = select.select([self.connection], [], [], 0)
            return bool(readable) and self.connection.recv(1, socket.MSG_PEEK) == b""
        except (OSError, ValueError):
            return True

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse a request line or header that cannot be read, as Go's server does."""
        self.close_connection = True
        phrase = f"{code} Bad Request" if code == 400 else f"{code} {message or ''}".strip()
        head = f"HTTP/1.1 {phrase}\r\nContent-Type: {go_http.TEXT}\r\nConnection: close\r\n\r\n"
        self.wfile.write((head + phrase).encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing: the requests are in the ledger."""
