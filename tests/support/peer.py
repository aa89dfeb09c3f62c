"""A server for the client's tests: the pure Endpoint behind http.server, with fixture tools and faults."""

from __future__ import annotations

import base64
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from mcpboard.errors import Refused
from mcpboard.protocol.access import admit
from mcpboard.protocol.endpoint import Endpoint
from mcpboard.protocol.headers import StandardHeaders
from mcpboard.protocol.messages import (
    CloseSession,
    ListTools,
    OpenSession,
    Policy,
    Reply,
    RequestHead,
    Step,
    ToolCall,
)
from mcpboard.protocol.tools import Blob, Content, Image, Text, Tool, ToolList

WAIT_SECONDS = 5.0  # for what is sure to come; only a broken test waits that long
PICTURE = b"\xff\xd8\xff\xe0 a picture \xff\xd9"
BUNDLE = bytes(range(256)) * 4096  # 1 MiB


class Bytes:
    """A ByteSource that is here already."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.length: int | None = len(content)

    def __iter__(self) -> Iterator[bytes]:
        return iter([self.content])

    def close(self) -> None:
        return None


def _schema(*required: str, **types: str) -> Mapping[str, Any]:
    return {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in types.items()},
        "required": list(required),
    }


TOOLS = [
    Tool("status", "Status", "How it goes.", _schema()),
    Tool("echo", "Say it back", "The arguments as JSON.", _schema("text", text="string", x="number", n="integer", on="boolean", at="object", keys="array")),
    Tool("screenshot", "Picture", "A picture.", _schema()),
    Tool("support_bundle", "Bundle", "A file.", _schema()),
    Tool("fail", "Fail", "Never works.", _schema()),
]  # fmt: skip

CONTENTS: Mapping[str, Callable[[ToolCall], Content]] = {
    "status": lambda call: Content((Text("all is well"),)),
    "echo": lambda call: Content((Text(json.dumps(call.arguments, sort_keys=True)),), call.arguments),
    "screenshot": lambda call: Content(
        (Image(base64.b64encode(PICTURE).decode(), "image/jpeg"), Text("720 x 1280 px"))
    ),
    "support_bundle": lambda call: Content(
        (Blob("mcpboard://support-bundle/1.tar.gz", "application/gzip", Bytes(BUNDLE)),)
    ),
    "fail": lambda call: Content((Text("the phone is \x1b[31masleep"),), is_error=True),
}


class Peer(ThreadingHTTPServer):
    """The endpoint on a port of its own; `legacy` makes it a server that never heard of the modern revision."""

    daemon_threads = False

    def __init__(self, *, legacy: bool = False, **policy: Any) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.legacy = legacy
        self.endpoint = Endpoint(
            Policy({"name": "peer", "title": "Peer", "version": "7"}, "", **policy), ToolList(TOOLS)
        )
        self.methods: list[str] = []
        self.headers: list[Mapping[str, str]] = []
        self.ended: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/mcp"

    def receive(self, head: RequestHead, body: bytes) -> Reply:
        if self.legacy and head.standard.method is not None:
            return Reply(400, (("Content-Type", "text/plain"),), (b"Bad Request",))
        try:
            return self._reply(self.endpoint.receive(admit(self.endpoint.policy, head), body))
        except Refused as refused:
            return Reply(refused.status, (("Content-Type", "application/json"),), (json.dumps(refused.body).encode(),))

    def _reply(self, step: Step) -> Reply:
        if isinstance(step, ToolCall):
            return self.endpoint.reply(step, CONTENTS[step.name](step))
        if isinstance(step, ListTools):
            return self.endpoint.listed(step)
        if isinstance(step, OpenSession):
            return self.endpoint.opened(step, "s-1")
        if isinstance(step, CloseSession):
            self.ended.append(step.session)
            return self.endpoint.closed()
        return step


class _Handler(BaseHTTPRequestHandler):
    server: Peer

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.methods.append(json.loads(body)["method"] if body else self.command)
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
        if self.path != "/mcp":
            return self._send(
                Reply(404, (("Content-Type", "application/json"),), (b'{"error":"not found: MCP is served at /mcp"}',))
            )
        return self._send(self.server.receive(self._head(len(body)), body))

    do_DELETE = do_POST

    def _head(self, length: int) -> RequestHead:
        sent = self.headers.get
        standard = StandardHeaders(sent("MCP-Protocol-Version"), sent("Mcp-Method"), sent("Mcp-Name"))
        return RequestHead(
            self.command,
            host=sent("Host"),
            authorization=sent("Authorization"),
            content_type=sent("Content-Type"),
            content_length=length,
            session=sent("Mcp-Session-Id"),
            standard=standard,
        )

    def _send(self, reply: Reply) -> None:
        parts = [p if isinstance(p, bytes) else base64.b64encode(b"".join(p)) for p in reply.parts]
        self.send_response(reply.status)
        for name, value in (*reply.headers, ("Content-Length", str(sum(map(len, parts))))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"".join(parts))

    def log_message(self, format: str, *args: Any) -> None:
        return None


@contextmanager
def serving(peer: Peer) -> Iterator[Peer]:
    """Serve in a thread until the block ends; every thread is joined."""
    thread = threading.Thread(target=peer.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield peer
    finally:
        peer.shutdown()
        peer.server_close()
        thread.join(WAIT_SECONDS)
        assert not thread.is_alive()


class Raw:
    """A server made of bytes: each connection is answered by the next behaviour in its list.

    A behaviour is given the socket, whose request has been read, and an event that ends the test.
    """

    def __init__(self, *behaviours: Callable[[socket.socket, threading.Event], None]) -> None:
        self.over = threading.Event()
        self.requests: list[bytes] = []
        self._behaviours = behaviours
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}/mcp"

    def __enter__(self) -> Raw:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes a thread that still waits for a connection
        self._thread.join(WAIT_SECONDS)
        self._listener.close()
        assert not self._thread.is_alive()

    def _serve(self) -> None:
        self._listener.settimeout(WAIT_SECONDS)
        for behave in self._behaviours:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            with sock:
                sock.settimeout(WAIT_SECONDS)
                self.requests.append(_whole_request(sock))
                try:
                    behave(sock, self.over)
                except OSError:
                    continue  # the client has had enough


class Hanging:
    """A server that never answers a tool call; everything else gets `answer`, where that is given."""

    def __init__(self, answer: bytes = b"", host: str = "127.0.0.1", port: int = 0) -> None:
        self.calls = threading.Semaphore(0)  # released for each request that is left to wait
        self._answer = answer
        self._listener = socket.create_server((host, port), backlog=64)
        self._kept: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve)
        self.url = "http://{}:{}/mcp".format(*self._listener.getsockname())

    def __enter__(self) -> Hanging:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(WAIT_SECONDS)
        for sock in (self._listener, *self._kept):
            sock.close()
        assert not self._thread.is_alive()

    def wait_for(self, count: int) -> None:
        """Return once that many requests more are left to wait."""
        for _ in range(count):
            assert self.calls.acquire(timeout=2 * WAIT_SECONDS)

    def _serve(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            sock.settimeout(WAIT_SECONDS)
            request = _whole_request(sock)
            if self._answer and b'"tools/call"' not in request:
                sock.sendall(self._answer)
                sock.close()
            else:
                self._kept.append(sock)
                self.calls.release()


def _whole_request(sock: socket.socket) -> bytes:
    request = b""
    while b"\r\n\r\n" not in request:
        request += sock.recv(65536)
    head, _, body = request.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
    while len(body) < length:
        body += sock.recv(65536)
    return head + b"\r\n\r\n" + body
