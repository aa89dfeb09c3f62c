"""A port of this machine that leads to the board, for systems that keep programs off the local network.

The relay puts the board's own address into Host and Origin, so the board's rule can no longer
tell a foreign page from its own; therefore the same rule stands here, in front.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

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

# What concerns one connection, or this machine alone, and so is not handed on.
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


def check_listener(host: str, port: int, link: HttpClient) -> None:
    """ConfigError unless (host, port) is on loopback and not the very server that is relayed to."""
    if not is_loopback(host):
        raise ConfigError(
            f"--listen: {host} is not loopback; a relay is for this machine alone, so 127.0.0.1, ::1 or localhost"
        )
    if is_loopback(link.address[0]) and link.address[1] == port:
        raise ConfigError("the relay would lead to itself; choose another port with --listen")


@dataclass(eq=False)
class ForwardedRequest:
    """One request on its way: how it is ended, and how to tell that its client has left."""

    gone: Callable[[], bool]
    cord: CancelToken = field(default_factory=CancelToken)


class Relay:
    """A WSGI application that hands /mcp, /health and / on to the server behind `link`.

    A context: a thread of its own watches for clients that leave, and ends their requests.
    """

    def __init__(self, link: HttpClient) -> None:
        self._link = link
        self._lock = threading.Lock()
        self._passing: set[ForwardedRequest] = set()
        self._stop = threading.Event()
        self._watch = threading.Thread(target=self._watching, name="mcpboard relay watch")

    def __enter__(self) -> Relay:
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._watch.join()
        self._end(lambda passing: True)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        passing = ForwardedRequest(environ.get("waitress.client_disconnected", bool))
        with self._lock:
            self._passing.add(passing)
        body = RelayBody(lambda: self._forget(passing))
        try:
            return self._answer(environ, start_response, passing, body)
        except BaseException:
            body.close()
            raise

    def _answer(
        self, environ: Environ, start_response: StartResponse, passing: ForwardedRequest, body: RelayBody
    ) -> Iterable[bytes]:
        sent = b""
        try:
            path = _checked_path(environ)
            sent = environ["wsgi.input"].read()  # whole already, and bounded by the server
            arriving = body.begin(self._link.exchange(self._ask(environ, sent), _limit(), passing.cord, path))
        except Refused as refused:
            status, headers, pieces = _refusal(refused)
        except ClientError as error:
            if not passing.cord.cancelled:
                log.warning("%s: %s", self._link.url, error)
            status, headers, pieces = _refusal(_unanswered(error, sent))
        else:
            status = arriving.status
            headers = [(name, value) for name, value in arriving.fields if _for_client(name)]
            pieces = arriving.pieces()
        start_response(app.STATUS_LINES.get(status, f"{status} Unknown"), headers)
        if environ["REQUEST_METHOD"] != "HEAD":
            body.pieces = pieces
        return body

    def _ask(self, environ: Environ, body: bytes) -> HttpRequest:
        headers = {_name(key): value for key, value in environ.items() if _for_board(key)}
        if environ.get("HTTP_ORIGIN") is not None:
            headers["Origin"] = self._link.origin
        return HttpRequest(headers, body, environ["REQUEST_METHOD"])

    # --- clients that leave ---

    def _watching(self) -> None:
        while not self._stop.wait(WATCH_SECONDS):
            self._end(lambda passing: passing.gone())

    def _end(self, which: Callable[[ForwardedRequest], bool]) -> None:
        with self._lock:
            ended = [passing for passing in self._passing if which(passing)]
        for passing in ended:
            passing.cord.cancel()

    def _forget(self, passing: ForwardedRequest) -> None:
        with self._lock:
            self._passing.discard(passing)


class RelayBody:
    """The body of one answer on its way back; `close` ends the connection to the board, once."""

    def __init__(self, forget: Callable[[], None]) -> None:
        self.pieces: Iterator[bytes] = iter(())
        self._forget = forget
        self._exchange: AbstractContextManager[StreamedResponse] | None = None

    def begin(self, exchange: AbstractContextManager[StreamedResponse]) -> StreamedResponse:
        """The head of the answer; raises ClientError where none comes."""
        arriving = exchange.__enter__()
        self._exchange = exchange
        return arriving

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
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.__exit__(None, None, None)
        self._forget()


def _limit() -> Deadline:
    return Deadline(TIMEOUT_SECONDS)


# --- what comes in -----------------------------------------------------------------------------


def _checked_path(environ: Environ) -> str | None:
    """The path to ask the board for, None for that of its URL; raises Refused."""
    if not access.same_origin(environ.get("HTTP_ORIGIN"), environ.get("HTTP_HOST")):
        raise Refused(403, {"error": ORIGIN_REFUSED})
    path: str = environ.get("PATH_INFO", "")
    if path in MCP_PATHS:
        return None
    if path not in PAGES:
        raise Refused(404, {"error": "not found: this relay serves /mcp, /health and /"})
    return path


def _for_board(key: str) -> bool:
    return (key.startswith("HTTP_") and key not in _NOT_TO_BOARD) or key == "CONTENT_TYPE"


def _name(key: str) -> str:
    return key.removeprefix("HTTP_").replace("_", "-").title()


def _for_client(name: str) -> bool:
    """No permission for foreign pages either: the board gives none, and another server's would be ours here."""
    return name.lower() not in _NOT_TO_CLIENT and not name.lower().startswith("access-control-")


# --- what goes back when the board did not answer ------------------------------------------------


def _unanswered(error: ClientError, sent: bytes) -> Refused:
    """For a request inside a session a JSON-RPC error under 200, for anything else an honest 502.

    Older clients take every 5xx for the end of the session, and would not notice that the next
    request works again (wire contract, 7.4); a handshake has to fail.
    """
    try:
        document = jsonrpc.load(sent)
    except ParseError:
        document = None
    request_id = jsonrpc.readable_id(document)
    if request_id is None or document.get("method") in _HANDSHAKES:
        return Refused(502, {"error": error.text})
    answer = jsonrpc.error(Unanswered(error.text, error.delivery), request_id)
    return Refused(200, json.loads(answer))


def _refusal(refused: Refused) -> tuple[int, list[tuple[str, str]], Iterator[bytes]]:
    reply = app.refusal(refused)
    content = b"".join(part for part in reply.parts if isinstance(part, bytes))
    return reply.status, [*reply.headers, ("Content-Length", str(len(content)))], iter([content])
