"""A port of this machine that forwards to the board, for systems that keep programs off the local network.

The relay puts the board's own address into Host and Origin, so the board's rule can no longer
tell a foreign page from its own; therefore the same rule stands here, in front.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack

from mcpboard.errors import ClientError, ConfigError, ParseError, Refused, Unanswered
from mcpboard.net import is_loopback
from mcpboard.protocol import access, jsonrpc
from mcpboard.protocol.access import MCP_PATHS, ORIGIN_REFUSED
from mcpboard.protocol.client_session import HttpRequest
from mcpboard.serving import app
from mcpboard.serving.app import BrokenOff, Environ, StartResponse
from mcpboard.transport.deadline import Deadline
from mcpboard.transport.http import TIMEOUT_SECONDS, CancelToken, HttpClient, StreamedResponse

log = logging.getLogger(__name__)

PAGES = frozenset({"/", "/health"})
WATCH_SECONDS = 0.25  # how late a client that left is noticed while the board is silent

# What concerns one connection, or only this machine, and so is not handed on.
_NOT_TO_BOARD = frozenset(
    {
        "HTTP_ACCEPT_ENCODING", "HTTP_CONNECTION", "HTTP_COOKIE", "HTTP_EXPECT", "HTTP_FORWARDED", "HTTP_HOST",
        "HTTP_KEEP_ALIVE", "HTTP_ORIGIN", "HTTP_PROXY_AUTHORIZATION", "HTTP_PROXY_CONNECTION", "HTTP_REFERER",
        "HTTP_TE", "HTTP_TRAILER", "HTTP_TRANSFER_ENCODING", "HTTP_UPGRADE", "HTTP_VIA",
    }
)  # fmt: skip
_NOT_TO_CLIENT = frozenset(
    {
        "connection", "date", "keep-alive", "proxy-authenticate", "proxy-connection", "server", "set-cookie",
        "trailer", "transfer-encoding", "upgrade",
    }
)  # fmt: skip
_HANDSHAKES = frozenset({"initialize", "server/discover"})


def check_listener(host: str, port: int, client: HttpClient) -> None:
    """Raise ConfigError unless (host, port) is on loopback and not the very server that is relayed to."""
    if not is_loopback(host):
        raise ConfigError(
            f"--listen: {host} is not loopback; a relay is for this machine only, so 127.0.0.1, ::1 or localhost"
        )
    if is_loopback(client.address[0]) and client.address[1] == port:
        raise ConfigError("the relay would forward to itself; choose another port with --listen")


class ForwardedRequest:
    """One request on its way to the server, and the body of its response on the way back.

    `client_left` tells that nobody waits for the response any more. `close` ends the connection to
    the server, once, and then calls `forget`.
    """

    def __init__(self, client_left: Callable[[], bool], forget: Callable[[ForwardedRequest], None]) -> None:
        self.client_left = client_left
        self.cancel_token = CancelToken()
        self.pieces: Iterator[bytes] = iter(())
        self._open = ExitStack()
        self._open.callback(forget, self)

    def begin(self, exchange: AbstractContextManager[StreamedResponse]) -> StreamedResponse:
        """Return the response once its head is here; raises ClientError where none comes."""
        return self._open.enter_context(exchange)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            return next(self.pieces)
        except ClientError as error:
            # The head is out: to break off is the only way left to say that this is not the whole.
            log.warning("answer broken off: %s", error)
            raise BrokenOff from error

    def close(self) -> None:
        self._open.close()


class Relay:
    """A WSGI application that forwards /mcp, /health and / to the server behind `client`.

    A context: a thread of its own watches for clients that leave, and ends their requests.
    """

    def __init__(self, client: HttpClient) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._under_way: set[ForwardedRequest] = set()
        self._stop = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="mcpboard relay watch")

    def __enter__(self) -> Relay:
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._watcher.join()
        self._cancel(everything=True)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        forwarded = ForwardedRequest(environ.get("waitress.client_disconnected", bool), self._forget)
        with self._lock:
            self._under_way.add(forwarded)
        try:
            self._forward(environ, start_response, forwarded)
        except BaseException:
            forwarded.close()
            raise
        return forwarded

    def _forward(self, environ: Environ, start_response: StartResponse, forwarded: ForwardedRequest) -> None:
        body = b""
        try:
            if not access.same_origin(environ.get("HTTP_ORIGIN"), environ.get("HTTP_HOST")):
                raise Refused(403, {"error": ORIGIN_REFUSED})
            path: str = environ.get("PATH_INFO", "")
            if path not in MCP_PATHS and path not in PAGES:
                raise Refused(404, {"error": "not found: this relay serves /mcp, /health and /"})
            body = environ["wsgi.input"].read()  # whole already, and bounded by the server
            request = HttpRequest(self._headers(environ), body, environ["REQUEST_METHOD"])
            there = None if path in MCP_PATHS else path  # None for the path of the board's URL
            exchange = self._client.exchange(request, Deadline(TIMEOUT_SECONDS), forwarded.cancel_token, there)
            response = forwarded.begin(exchange)
        except (Refused, ClientError) as error:
            if isinstance(error, ClientError) and not forwarded.cancel_token.cancelled:
                log.warning("%s: %s", self._client.url, error)
            status, headers, pieces = _own_response(error, body)
        else:
            status = response.status
            # No permission for foreign pages: the board gives none, and another server's would be ours here.
            headers = [
                (name, value)
                for name, value in response.headers.items()
                if name not in _NOT_TO_CLIENT and not name.startswith("access-control-")
            ]
            pieces = response.pieces()
        start_response(app.STATUS_LINES.get(status, f"{status} Unknown"), headers)
        if environ["REQUEST_METHOD"] != "HEAD":
            forwarded.pieces = pieces

    def _headers(self, environ: Environ) -> Mapping[str, str]:
        """Return the headers of a request for the board, which sees its own address in Origin."""
        headers = {}
        for key, value in environ.items():
            if key == "CONTENT_TYPE" or (key.startswith("HTTP_") and key not in _NOT_TO_BOARD):
                headers[key.removeprefix("HTTP_").replace("_", "-").title()] = value
        if environ.get("HTTP_ORIGIN") is not None:
            headers["Origin"] = self._client.origin
        return headers

    # --- clients that leave ---

    def _watch(self) -> None:
        while not self._stop.wait(WATCH_SECONDS):
            self._cancel()

    def _cancel(self, *, everything: bool = False) -> None:
        """Cancel the requests of clients that have left, or `everything`."""
        with self._lock:
            cancelled = [each for each in self._under_way if everything or each.client_left()]
        for each in cancelled:
            each.cancel_token.cancel()

    def _forget(self, forwarded: ForwardedRequest) -> None:
        with self._lock:
            self._under_way.discard(forwarded)


def _own_response(error: Refused | ClientError, body: bytes) -> tuple[int, list[tuple[str, str]], Iterator[bytes]]:
    """Return status, headers and body for a request that was refused here, or that the board did not answer.

    Without an answer it is a JSON-RPC error under 200 for a request inside a session, and an honest
    502 for anything else. Older clients take every 5xx for the end of the session, and would not
    notice that the next request works again; a handshake has to fail.
    """
    if isinstance(error, Refused):
        refused = error
    else:
        try:
            document = jsonrpc.load(body)
        except ParseError:
            document = None
        request_id = jsonrpc.readable_id(document)
        if request_id is None or document.get("method") in _HANDSHAKES:
            refused = Refused(502, {"error": error.text})
        else:
            unanswered = jsonrpc.error(Unanswered(error.text, error.delivery), request_id)
            refused = Refused(200, json.loads(unanswered))
    reply = app.refusal(refused)
    content = b"".join(part for part in reply.parts if isinstance(part, bytes))
    return reply.status, [*reply.headers, ("Content-Length", str(len(content)))], iter([content])
