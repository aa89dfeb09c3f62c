"""A port of this machine that forwards to the board, for systems that keep programs off the local network.

The relay puts the board's own address into Host and Origin, so the board's rule can no longer
tell a foreign page from its own; therefore the same rule stands here, in front.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from mcpboard import errors
from mcpboard.laptop.surrogates import SurrogateWarning
from mcpboard.net import is_loopback
from mcpboard.protocol import access, jsonrpc
from mcpboard.protocol.access import MCP_PATHS, ORIGIN_REFUSED
from mcpboard.protocol.client_session import HttpRequest
from mcpboard.protocol.endpoint import JSON
from mcpboard.protocol.messages import Arrived, Reply
from mcpboard.protocol.tools import compact
from mcpboard.serving import app
from mcpboard.serving.app import BrokenOff, Environ, PlainResponse, StartResponse
from mcpboard.serving.concurrency import ConcurrencyLimit
from mcpboard.serving.connection import CONNECTION, REPLY_LIMIT, STREAM_SECONDS
from mcpboard.serving.replies import on_trust
from mcpboard.serving.undelivered import UndeliveredOutcome, UndeliveredOutcomes
from mcpboard.transport.deadline import Deadline
from mcpboard.transport.http import PIECE, TIMEOUT_SECONDS, CancelToken, HttpClient

log = logging.getLogger(__name__)

# Tool calls that wait for the server, two more than a board takes, which then says itself that it is
# busy; other requests that wait; and threads beyond those, for what the relay answers by itself.
CALLS, OTHERS, SPARE = 8, 8, 2
THREADS = CALLS + OTHERS + SPARE

PAGES = frozenset({"/", "/health"})
WATCH_SECONDS = 0.25  # how late a client that left is noticed while the board is silent

# What concerns one connection, or only this machine, and so is not handed on.
_OF_CONNECTION = frozenset({"connection", "keep-alive", "proxy-connection", "trailer", "transfer-encoding", "upgrade"})
_NOT_TO_BOARD = _OF_CONNECTION | {"accept-encoding", "cookie", "expect", "forwarded", "host", "origin", "referer"}
_NOT_TO_BOARD |= {"proxy-authorization", "te", "via"}
_NOT_TO_CLIENT = _OF_CONNECTION | {"date", "proxy-authenticate", "server", "set-cookie"}

# The beginning of a result: up to its first content block, or to the end of an empty list.
_CONTENT = re.compile(
    rb'\s*\{(?:\s*"(?:jsonrpc|id)"\s*:\s*(?:"[^"\\]*"|[-0-9.]+)\s*,)*\s*"result"\s*:\s*\{\s*"content"\s*:\s*\[\s*(?P<next>[\]{])'
)
_NAME = re.compile(r"[A-Za-z0-9_./-]{1,80}")

_HANDSHAKES = frozenset({"initialize", "server/discover"})


def check_listener(host: str, port: int, client: HttpClient) -> None:
    """Raise ConfigError unless (host, port) is on loopback and not the very server that is relayed to."""
    if not is_loopback(host):
        raise errors.ConfigError(f"--listen: {host} is not loopback, and a relay is for this machine only: 127.0.0.1")
    if is_loopback(client.address[0]) and client.address[1] == port:
        raise errors.ConfigError("the relay would forward to itself; choose another port with --listen")


class ForwardedRequest:
    """One request on its way to the server, and the body of its response on the way back.

    `client_left` tells that nobody waits for the response any more. `tool` is what it calls, None
    for anything but a tool call. `cleanup` ends the connection to the server, and calls `forget`.
    """

    def __init__(self, environ: Environ, forget: Callable[[ForwardedRequest], None]) -> None:
        self.client_left: Callable[[], bool] = environ.get("waitress.client_disconnected", bool)
        self.connection = environ.get(CONNECTION)
        self.receipt: Callable[[], Arrived] = on_trust if self.connection is None else self.connection.receipt
        self.cancel_token = CancelToken()
        self.tool: str | None = None
        self.is_sent = False  # from here on the server may have acted on it
        self.outcomes: tuple[UndeliveredOutcome, ...] = ()  # what the response tells, of this call and earlier ones
        self.is_whole = False  # the client's connection has all of the response
        self.pieces: Iterator[bytes] = iter(())
        self.cleanup = contextlib.ExitStack()
        self.cleanup.callback(forget, self)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            return next(self.pieces)
        except StopIteration:
            self.is_whole = True
            raise
        except Exception as error:
            # The head is out: to break off is the only way left to say that this is not the whole.
            self.outcomes = tuple(replace(each, reason="but its answer broke off") for each in self.outcomes)
            log.warning("answer broken off: %s", error, exc_info=not isinstance(error, errors.ClientError))
            raise BrokenOff from error


class Relay:
    """A WSGI application that forwards /mcp, /health and / to the server behind `client`.

    A context: a thread of its own watches for clients that leave, and ends their requests. Serve it
    with THREADS threads, so that some are free for refusals whatever the server does.
    """

    def __init__(self, client: HttpClient) -> None:
        self._client = client
        self._calls, self._others = ConcurrencyLimit(CALLS), ConcurrencyLimit(OTHERS)
        self._surrogates = SurrogateWarning(client.url)
        self._undelivered = UndeliveredOutcomes()
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
        with self._lock:
            rest = list(self._under_way)
        for each in rest:
            each.cancel_token.cancel()

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        forwarded = ForwardedRequest(environ, self._forget)
        with self._lock:
            self._under_way.add(forwarded)
        try:
            status, headers = self._answer(environ, forwarded)
            response = PlainResponse(forwarded, status, headers)
            response.call_on_close(forwarded.cleanup.close)
            return response(environ, start_response)
        except BaseException:
            forwarded.cleanup.close()
            raise

    def _answer(self, environ: Environ, forwarded: ForwardedRequest) -> tuple[int, Sequence[tuple[str, str]]]:
        """Return status and headers of the response, and leave its body in `forwarded`; always answers."""
        document = None
        try:
            if not access.same_origin(environ.get("HTTP_ORIGIN"), environ.get("HTTP_HOST")):
                raise errors.Refused(403, {"error": ORIGIN_REFUSED})
            path: str = environ.get("PATH_INFO", "")
            if path not in MCP_PATHS and path not in PAGES:
                raise errors.Refused(404, {"error": "not found: this relay serves /mcp, /health and /"})
            body = environ["wsgi.input"].read()  # whole already, and bounded by the server
            with contextlib.suppress(errors.ParseError):  # what is none goes on as it is
                document = jsonrpc.load(body)
            forwarded.tool = _tool(document)
            return self._forward(environ, body, forwarded)
        except BrokenOff:
            raise
        except (errors.Refused, errors.Busy) as refusal:
            reply = _own_response(refusal, document)
        except errors.ClientError as error:
            if not forwarded.cancel_token.cancelled:
                log.warning("%s: %s", self._client.url, error)
                if error.delivery == errors.UNKNOWN:
                    self._note(forwarded, "got no answer")
            error.ends_call = forwarded.tool is not None
            reply = _own_response(error, document)
        except Exception as error:  # no memory, or a bug: the caller has to hear what became of the call
            log.exception("a request could not be relayed")
            delivery = errors.UNKNOWN if forwarded.is_sent else errors.NOT_SENT
            text = f"the relay failed ({type(error).__name__}), and its log has the details"
            failed = errors.ClientError(text, delivery=delivery)
            failed.ends_call = forwarded.tool is not None
            reply = _own_response(failed, document)
        content = b"".join(part for part in reply.parts if isinstance(part, bytes))
        forwarded.pieces = iter([content])
        return reply.status, [*reply.headers, ("Content-Length", str(len(content)))]

    def _forward(
        self, environ: Environ, body: bytes, forwarded: ForwardedRequest
    ) -> tuple[int, Sequence[tuple[str, str]]]:
        """Return status and headers of the server's response; raises Busy or ClientError where there is none."""
        if forwarded.client_left():
            raise BrokenOff
        slot = (self._others if forwarded.tool is None else self._calls).acquire()
        forwarded.cleanup.callback(slot.release)
        request = HttpRequest(self._headers(environ), body, environ["REQUEST_METHOD"])
        path = environ["PATH_INFO"]
        there = None if path in MCP_PATHS else path  # None for the path of the board's URL
        forwarded.is_sent = True
        exchange = self._client.exchange(request, Deadline(TIMEOUT_SECONDS), forwarded.cancel_token, there)
        response = forwarded.cleanup.enter_context(exchange)
        environ[REPLY_LIMIT] = STREAM_SECONDS  # it may be a bundle
        if forwarded.connection is not None:
            slot.read_by(forwarded.connection, time.monotonic())
        # No permission for foreign pages: the board gives none, and another server's would be ours here.
        headers = {
            name: value
            for name, value in response.headers.items()
            if name not in _NOT_TO_CLIENT and not name.startswith("access-control-")
        }
        forwarded.pieces = self._surrogates.watched(response.pieces())
        if forwarded.tool is not None and response.status == HTTPStatus.OK:
            # While nothing has gone out, an answer that is cut right behind its head, or inside it, can still be told.
            first = next(forwarded.pieces, b"")
            if not first:
                raise errors.PeerBroken("the answer ended before its body")
            forwarded.pieces = itertools.chain([first], forwarded.pieces)
            self._tell_earlier(forwarded, headers)
            self._note(forwarded, "was answered")
        return response.status, list(headers.items())

    # --- answers that nobody took ---

    def _note(self, forwarded: ForwardedRequest, outcome: str) -> None:
        """Remember how the call ended, in case that its caller has left and never reads it."""
        if forwarded.tool is not None:
            forwarded.outcomes += (UndeliveredOutcome(forwarded.tool, outcome, time.monotonic()),)

    def _tell_earlier(self, forwarded: ForwardedRequest, headers: dict[str, str]) -> None:
        """Begin the result of a call with earlier answers that nobody took: to the board they have arrived."""
        if not headers.get("content-type", "").lower().startswith("application/json"):
            return
        notice = self._undelivered.take()
        if not notice.text:
            return
        beginning = b""
        try:
            while len(beginning) < PIECE and not _CONTENT.match(beginning) and (piece := next(forwarded.pieces, b"")):
                beginning += piece
        except BaseException:
            self._undelivered.keep(notice.outcomes)
            raise
        if place := _CONTENT.match(beginning):
            block = b'{"type":"text","text":' + compact(notice.text) + (b"}" if place["next"] == b"]" else b"},")
            beginning = beginning[: place.start("next")] + block + beginning[place.start("next") :]
            if "content-length" in headers:
                headers["content-length"] = str(int(headers["content-length"]) + len(block))
            forwarded.outcomes = notice.outcomes
        else:
            self._undelivered.keep(notice.outcomes)
        forwarded.pieces = itertools.chain([beginning], forwarded.pieces)

    def _headers(self, environ: Environ) -> Mapping[str, str]:
        """Return the headers of a request for the board, which sees its own address in Origin."""
        keys = ["CONTENT_TYPE", *(key for key in environ if key.startswith("HTTP_"))]
        sent = {key.removeprefix("HTTP_").replace("_", "-").title(): environ[key] for key in keys if key in environ}
        headers = {name: value for name, value in sent.items() if name.lower() not in _NOT_TO_BOARD}
        if environ.get("HTTP_ORIGIN") is not None:
            headers["Origin"] = self._client.origin
        return headers

    # --- clients that leave ---

    def _watch(self) -> None:
        while not self._stop.wait(WATCH_SECONDS):
            with self._lock:
                left = [each for each in self._under_way if each.client_left()]
            for each in left:
                each.cancel_token.cancel()

    def _forget(self, forwarded: ForwardedRequest) -> None:
        with self._lock:
            self._under_way.discard(forwarded)
        if forwarded.outcomes:
            self._undelivered.keep(forwarded.outcomes, forwarded.receipt() if forwarded.is_whole else None)


def _tool(document: Any) -> str | None:
    """Return the name of the tool that a message calls, None for any other message."""
    if not isinstance(document, dict) or document.get("method") != "tools/call":
        return None
    params = document.get("params")
    name = params.get("name") if isinstance(params, dict) else None
    return name if isinstance(name, str) and _NAME.fullmatch(name) else "tool"


def _own_response(error: errors.Refused | errors.Busy | errors.ClientError, document: Any) -> Reply:
    """Return the response to a request that was refused here, or that the board did not answer.

    Without an answer it is a JSON-RPC error under 200 for a request inside a session, and an honest
    502 for anything else, 503 where the relay itself is busy. Older clients take every 5xx for the
    end of the session, and would not notice that the next request works again; a handshake has to fail.
    """
    if isinstance(error, errors.Refused):
        return app.refusal(error)
    request_id = jsonrpc.readable_id(document)
    if request_id is None or document.get("method") in _HANDSHAKES:
        if isinstance(error, errors.Busy):
            return app.refusal(errors.Refused(503, {"error": str(error)}, [("Retry-After", "1")]))
        return app.refusal(errors.Refused(502, {"error": str(error)}))
    unanswered = jsonrpc.error(errors.Unanswered(str(error), error.delivery), request_id)
    return Reply(200, (JSON,), (unanswered,))
