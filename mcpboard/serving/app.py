"""WSGI on one side, the endpoint and a role on the other: the path of a request, top to bottom, once."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from http import HTTPStatus
from typing import Any, Protocol, cast

from waitress.channel import ClientDisconnected

from mcpboard.errors import Busy, InternalError, ProtocolError, Refused, ToolError
from mcpboard.protocol.endpoint import JSON, Endpoint
from mcpboard.protocol.headers import StandardHeaders
from mcpboard.protocol.messages import (
    CloseSession,
    ListTools,
    OpenSession,
    Outcome,
    PageRequest,
    Reply,
    RequestHead,
    ToolCall,
)
from mcpboard.protocol.tools import Blob, ByteSource, Content
from mcpboard.serving import stream
from mcpboard.serving.concurrency import ConcurrencyLimit
from mcpboard.serving.receipt import RECEIPT
from mcpboard.serving.replies import PendingReply, ReplyBody, on_trust

log = logging.getLogger("mcpboard")

INTERNAL = "internal error; the server's log has the details"

Environ = dict[str, Any]  # as WSGI demands: the very dict, not a copy
BrokenOff = ClientDisconnected  # raised by a body that cannot be finished: its reader must see that it is not whole
StartResponse = Callable[..., Any]
# Built once: HTTPStatus look-ups are slow, and there are few.
STATUS_LINES = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}


class Role(Protocol):
    """A role as it is for one request; only `run` and `refreshed_endpoint` may wait, each within its own limit."""

    def endpoint(self) -> Endpoint:
        """Return the endpoint; never waits."""

    def refreshed_endpoint(self) -> Endpoint:
        """Return the endpoint after a look for newer tools; called for `tools/list` alone."""

    def run(self, call: ToolCall) -> Outcome:
        """Do it, once; may raise ToolError or ProtocolError instead."""

    def page(self, request: PageRequest) -> Reply:
        """A path of the role's own; raises Refused."""

    def open_session(self, step: OpenSession) -> str:
        """Mint a legacy session id."""

    def close_session(self, step: CloseSession) -> None:
        """End a legacy session and what it held."""


def _never() -> bool:
    return False


class Application:
    """A WSGI application that serves one role.

    `current` is called once for each request, and returns the role as it is for all of that request.
    """

    def __init__(self, current: Callable[[], Role], turns: ConcurrencyLimit) -> None:
        self._current = current
        self._turns = turns

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        head = read_head(environ)
        try:
            exchange = self._exchange(head, environ)
            if isinstance(exchange, Reply):
                return page(exchange, environ, start_response)
        except Refused as refused:
            exchange = PendingReply(refusal(refused))
        except ClientDisconnected:
            raise
        except Exception:
            log.exception("%s %s: internal error", head.method, ascii(head.path)[:80])
            exchange = PendingReply(refusal(Refused(500, {"error": INTERNAL})))
        return _start(exchange, head.method == "HEAD", start_response)

    def _exchange(self, head: RequestHead, environ: Environ) -> PendingReply | Reply:
        """The exchange that `head` begins, or for a page of the role's own just its reply."""
        role = self._current()
        endpoint = role.endpoint()
        admitted = endpoint.admit(head)
        body = read_body(environ) if head.method == "POST" else b""
        if admitted.page:
            return role.page(PageRequest(head, environ.get("HTTP_COOKIE"), body))
        step = endpoint.receive(admitted, body)
        if isinstance(step, Reply):
            return PendingReply(step)
        if isinstance(step, CloseSession):
            role.close_session(step)
            return PendingReply(endpoint.closed())
        if isinstance(step, ToolCall):
            return self._take_turn(role, endpoint, step, environ)
        return PendingReply(_finish(role, endpoint, step))

    def _take_turn(self, role: Role, endpoint: Endpoint, call: ToolCall, environ: Environ) -> PendingReply:
        started = time.monotonic()
        gone = environ.get("waitress.client_disconnected", _never)
        if gone():
            log.info("%s: never made, its caller had gone", call.name)
            raise ClientDisconnected
        try:
            turn = self._turns.take()
        except Busy as busy:
            return PendingReply(endpoint.reply(call, busy), note=_logged(call, busy, started))
        with ExitStack() as owed:
            owed.callback(turn.done)
            outcome = _run(role, call._replace(gone=gone))
            for source in sources(outcome.result):
                owed.callback(source.close)
            reply, outcome = _written(endpoint, call, outcome)
            note = _logged(call, outcome.result, started)
            return PendingReply(reply, owed.pop_all(), note, outcome.on_delivered, environ.get(RECEIPT, on_trust))


def _finish(role: Role, endpoint: Endpoint, step: ListTools | OpenSession) -> Reply:
    try:
        if isinstance(step, ListTools):
            return role.refreshed_endpoint().listed(step)
        return endpoint.opened(step, role.open_session(step))
    except ProtocolError as error:
        return endpoint.refuse(step.id, error)
    except Exception:
        log.exception("%s: internal error", type(step).__name__)
        return endpoint.crashed(step.id)


def _run(role: Role, call: ToolCall) -> Outcome:
    """Run the call; a bug of ours comes to InternalError."""
    try:
        return role.run(call)
    except (ToolError, ProtocolError) as error:
        return Outcome(error)
    except Exception:
        log.exception("%s: internal error", call.name)
        return Outcome(InternalError(INTERNAL))


def _written(endpoint: Endpoint, call: ToolCall, outcome: Outcome) -> tuple[Reply, Outcome]:
    """The reply to `call`, and the outcome that it tells: another one when the first cannot be written."""
    try:
        return endpoint.reply(call, outcome.result), outcome
    except Exception:
        log.exception("%s: its result cannot be written", call.name)
        if outcome.on_delivered is not None:
            outcome.on_delivered(None)  # what became of the call will not be in this reply
        crashed = Outcome(InternalError(INTERNAL))
        return endpoint.reply(call, crashed.result), crashed


# --- environ -> head and body ----------------------------------------------------------------


def read_head(environ: Environ) -> RequestHead:
    """The parts of the request head that anything here looks at, raw, as the server passed them."""
    get = environ.get
    length = get("CONTENT_LENGTH")
    return RequestHead(
        method=environ["REQUEST_METHOD"],
        path=get("PATH_INFO", ""),
        host=get("HTTP_HOST"),
        origin=get("HTTP_ORIGIN"),
        authorization=get("HTTP_AUTHORIZATION"),
        content_type=get("CONTENT_TYPE"),
        content_encoding=get("HTTP_CONTENT_ENCODING"),
        content_length=int(length) if length else None,
        session=get("HTTP_MCP_SESSION_ID"),
        standard=StandardHeaders(get("HTTP_MCP_PROTOCOL_VERSION"), get("HTTP_MCP_METHOD"), get("HTTP_MCP_NAME")),
    )


def read_body(environ: Environ) -> bytes:
    """The whole body; the server has it already, and its length has passed the gates."""
    body: bytes = environ["wsgi.input"].read()
    return body


# --- reply -> response -----------------------------------------------------------------------


def refusal(refused: Refused) -> Reply:
    """The HTTP answer that `refused` carries; its body is JSON for every status."""
    body = () if refused.body is None else (json.dumps(refused.body).encode("utf-8"),)
    return Reply(refused.status, (JSON, *refused.headers), body)


def page(reply: Reply, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    """A page as browsers like it: with an ETag, and 304 in place of what they have already.

    werkzeug is imported for the first page: a board that serves MCP alone does without its 2 MB.
    """
    from werkzeug.wrappers import Response

    response = Response(_body(reply), reply.status, list(reply.headers))
    if reply.status == HTTPStatus.OK:
        response.add_etag()
        response.make_conditional(environ)
    return response(environ, start_response)


def _start(exchange: PendingReply, head_only: bool, start_response: StartResponse) -> Iterable[bytes]:
    reply = exchange.reply
    if exchange.note is None:  # no tool was called, so there is nothing to stream
        body = _body(reply)
        start_response(STATUS_LINES[reply.status], _headers(reply, len(body)))
        return [] if head_only else [body]
    start_response(STATUS_LINES[reply.status], _headers(reply, stream.content_length(reply.parts)))
    return ReplyBody(exchange)


def _body(reply: Reply) -> bytes:
    """All of a reply that no tool has a part in: it holds no source."""
    return b"".join(cast("Sequence[bytes]", reply.parts))


def _headers(reply: Reply, length: int | None) -> list[tuple[str, str]]:
    """The reply's own, and Content-Length where it is known; waitress sends chunks else."""
    return [*reply.headers] if length is None else [*reply.headers, ("Content-Length", str(length))]


def sources(result: Content | ToolError | ProtocolError) -> list[ByteSource]:
    """What must be closed, whatever becomes of the reply."""
    blocks = result.blocks if isinstance(result, Content) else ()
    return [block.source for block in blocks if isinstance(block, Blob)]


def _logged(call: ToolCall, result: Content | ToolError | ProtocolError, started: float) -> Callable[[int, bool], None]:
    """The one log line of a tool call: never an argument, never a token."""
    word = _word(result)

    def note(sent: int, whole: bool) -> None:
        milliseconds = (time.monotonic() - started) * 1000
        lost = "" if whole else ", not handed over whole"
        log.info("%s: %s, %d bytes, %.0f ms%s", call.name, word, sent, milliseconds, lost)

    return note


def _word(result: Content | ToolError | ProtocolError) -> str:
    if isinstance(result, Content):
        return "error" if result.is_error else "ok"
    return type(result).__name__
