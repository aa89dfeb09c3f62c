"""A server for the client's tests: the pure Endpoint behind http.server, with fixture tools and faults."""

from __future__ import annotations

import base64
import json
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from werkzeug import Request, Response

from mcpboard.errors import Refused
from mcpboard.protocol.access import admit
from mcpboard.protocol.endpoint import Endpoint
from mcpboard.protocol.headers import StandardHeaders
from mcpboard.protocol.messages import CloseSession, ListTools, OpenSession, Policy, Reply, RequestHead, Step, ToolCall
from mcpboard.protocol.tools import Blob, Content, Image, Text, Tool, ToolList
from tests.support import served

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


class Peer:
    """The endpoint as a WSGI application; `legacy` makes it a server that never heard of the modern revision."""

    url = ""  # of the last one that `serving` gave it

    def __init__(self, *, legacy: bool = False, **policy: Any) -> None:
        self.legacy = legacy
        info = {"name": "peer", "title": "Peer", "version": "7"}
        self.endpoint = Endpoint(Policy(info, "", **policy), ToolList(TOOLS))
        self.methods: list[str] = []
        self.headers: list[Mapping[str, str]] = []
        self.ended: list[str] = []

    def __call__(self, environ: Any, start_response: Any) -> Iterable[bytes]:
        return self._answer(Request(environ))(environ, start_response)

    def _answer(self, request: Request) -> Response:
        body, sent = request.get_data(), request.headers
        self.methods.append(json.loads(body)["method"] if body else request.method)
        self.headers.append({name.lower(): value for name, value in sent.items()})
        if request.path != "/mcp":
            return Response(b'{"error":"not found: MCP is served at /mcp"}', 404, content_type="application/json")
        if self.legacy and "Mcp-Method" in sent:
            return Response(b"Bad Request", 400, content_type="text/plain")
        head = RequestHead(
            request.method, sent.get("Host"), None, sent.get("Authorization"), sent.get("Content-Type"), None, len(body),
            sent.get("Mcp-Session-Id"),
            StandardHeaders(sent.get("MCP-Protocol-Version"), sent.get("Mcp-Method"), sent.get("Mcp-Name")),
        )  # fmt: skip
        try:
            reply = self._reply(self.endpoint.receive(admit(self.endpoint.policy, head), body))
        except Refused as refused:
            return Response(json.dumps(refused.body), refused.status, content_type="application/json")
        parts = [part if isinstance(part, bytes) else base64.b64encode(b"".join(part)) for part in reply.parts]
        return Response(b"".join(parts), reply.status, reply.headers)

    def _reply(self, step: Step) -> Reply:
        match step:
            case ToolCall():
                return self.endpoint.reply(step, CONTENTS[step.name](step))
            case ListTools():
                return self.endpoint.listed(step)
            case OpenSession():
                return self.endpoint.opened(step, "s-1")
            case CloseSession():
                self.ended.append(step.session)
                return self.endpoint.closed()
        return step


@contextmanager
def serving(peer: Peer) -> Iterator[Peer]:
    """Serve in a thread until the block ends."""
    with served.thread(peer) as peer.url:
        yield peer


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
