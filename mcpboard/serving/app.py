"""The WSGI application between the server and a role: the path of a request, top to bottom, once."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from http import HTTPStatus
from typing import Any, Protocol, cast

from waitress.channel import ClientDisconnected

from mcpboard.errors import Busy, ProtocolError, Refused, ToolError
from mcpboard.protocol.endpoint import INTERNAL, JSON, Endpoint
from mcpboard.protocol.headers import StandardHeaders
from mcpboard.protocol.limits import LARGE_BODY
from mcpboard.protocol.messages import (
    Admitted,
    CloseSession,
    ListTools,
    OpenSession,
    Outcome,
    PageRequest,
    Reply,
    RequestHead,
    Step,
    ToolCall,
)
from mcpboard.protocol.tools import Blob, Content
from mcpboard.serving.concurrency import ConcurrencyLimit
from mcpboard.serving.connection import CONNECTION, REPLY_LIMIT, STREAM_SECONDS
from mcpboard.serving.replies import PendingReply, ReplyBody, content_length, on_trust
from mcpboard.text import well_formed_json

log = logging.getLogger("mcpboard")

# Seconds that a large body may wait for its turn to be parsed; each takes half a second on the slowest board.
PARSING_SECONDS = 5.0
CROWDED = "too many large requests at once; nothing was done, so send it again in a second"

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
        """Run the call, once; may raise ToolError or ProtocolError instead."""

    def page(self, request: PageRequest) -> Reply:
        """Return a page of the role's own; raises Refused."""

    def open_session(self, step: OpenSession) -> str:
        """Mint a legacy session id."""

    def close_session(self, step: CloseSession) -> None:
        """End a legacy session and what it held."""


class Application:
    """A WSGI application that serves one role.

    `current` is called once for each request, and returns the role as it is for all of that request.
    """

    def __init__(self, current: Callable[[], Role], limit: ConcurrencyLimit) -> None:
        self._current = current
        self._limit = limit
        self._parsing = threading.Lock()

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        head = read_head(environ)
        try:
            pending = self._respond(head, environ)
            if isinstance(pending, Reply):
                return page(pending, environ, start_response)
        except Refused as refused:
            pending = PendingReply(refusal(refused))
        except ClientDisconnected:
            raise
        except Exception:
            log.exception("%s %s: internal error", head.method, ascii(head.path)[:80])
            pending = PendingReply(refusal(Refused(500, {"error": INTERNAL})))
        reply = pending.reply
        if pending.log_line is None:  # no tool was called, so there is nothing to stream
            body = _body(reply)
            start_response(STATUS_LINES[reply.status], [*reply.headers, ("Content-Length", str(len(body)))])
            return [] if head.method == "HEAD" else [body]
        streamed = ReplyBody(pending)
        try:
            length = content_length(reply.parts)
            # waitress sends chunks where the length is not known.
            headers = [*reply.headers] if length is None else [*reply.headers, ("Content-Length", str(length))]
            start_response(STATUS_LINES[reply.status], headers)
        except BaseException:
            streamed.close()  # which releases the slot and keeps the outcome
            raise
        return streamed

    def _respond(self, head: RequestHead, environ: Environ) -> PendingReply | Reply:
        """Return the reply to the request, pending, or for a page of the role's own just its reply."""
        role = self._current()
        endpoint = role.endpoint()
        admitted = endpoint.admit(head)
        if admitted.page:
            return role.page(PageRequest(head, environ.get("HTTP_COOKIE"), _take_body(head, environ)))
        if (head.content_length or 0) > LARGE_BODY:
            step = self._receive_large(endpoint, admitted, environ)
        else:
            step = endpoint.receive(admitted, environ["wsgi.input"].read() if head.method == "POST" else b"")
        if isinstance(step, Reply):
            return PendingReply(step)
        if isinstance(step, ToolCall):
            return self._call_tool(role, endpoint, step, environ)
        if isinstance(step, CloseSession):
            role.close_session(step)
            return PendingReply(endpoint.closed())
        try:
            if isinstance(step, ListTools):
                return PendingReply(role.refreshed_endpoint().listed(step))
            return PendingReply(endpoint.opened(step, role.open_session(step)))
        except ProtocolError as error:
            return PendingReply(endpoint.refuse(step.id, error))
        except Exception:
            log.exception("%s: internal error", type(step).__name__)
            return PendingReply(endpoint.crashed(step.id))

    def _receive_large(self, endpoint: Endpoint, admitted: Admitted, environ: Environ) -> Step:
        """Return what the endpoint makes of a large body; one at a time, so that the memory is needed once.

        Nothing of the body is kept when this returns: a call may run for minutes.
        """
        if not self._parsing.acquire(timeout=PARSING_SECONDS):
            raise Refused(429, {"error": CROWDED}, [("Retry-After", "1")])
        try:
            return endpoint.receive(admitted, _take_body(admitted.head, environ))
        finally:
            self._parsing.release()

    def _call_tool(self, role: Role, endpoint: Endpoint, call: ToolCall, environ: Environ) -> PendingReply:
        started = time.monotonic()
        gone = environ.get("waitress.client_disconnected", call.gone)
        if gone():
            log.info("%s: never made, its caller had gone", call.name)
            raise ClientDisconnected
        try:
            slot = self._limit.acquire(endpoint.tool_list.acts(call.name), call.name)
        except Busy as busy:
            return PendingReply(endpoint.reply(call, busy), log_line=_log_line(call.name, busy, started))
        with ExitStack() as cleanup:
            cleanup.callback(slot.release)
            outcome = _run(role, endpoint, call._replace(gone=gone))
            try:
                for block in outcome.result.blocks if isinstance(outcome.result, Content) else ():
                    if isinstance(block, Blob):
                        cleanup.callback(block.source.close)
                        environ[REPLY_LIMIT] = STREAM_SECONDS
                reply = endpoint.reply(call, outcome.result)
            except Exception:
                log.exception("%s: its result cannot be written", call.name)
                if outcome.on_delivered is not None:
                    outcome.on_delivered(None)  # this reply will not tell how the call ended
                outcome = Outcome(endpoint.crashed_call(call))
                reply = endpoint.reply(call, outcome.result)
            log_line = _log_line(call.name, outcome.result, started)
            connection, receipt = environ.get(CONNECTION), on_trust
            if connection is not None:
                held = sum(len(part) for part in reply.parts if isinstance(part, bytes))
                slot.read_by(connection, time.monotonic(), held)
                receipt = connection.receipt
            return PendingReply(reply, cleanup.pop_all(), log_line, outcome.on_delivered, receipt)


def _run(role: Role, endpoint: Endpoint, call: ToolCall) -> Outcome:
    """Run the call; after a bug of ours the outcome says that an action may have been executed."""
    try:
        return role.run(call)
    except (ToolError, ProtocolError) as error:
        return Outcome(error)
    except BaseException:  # nobody above would answer for what is no Exception
        log.exception("%s: internal error", call.name)
        return Outcome(endpoint.crashed_call(call))


def _log_line(name: str, result: Content | ToolError | ProtocolError, started: float) -> Callable[[int, bool], None]:
    """Return what writes the one log line of a tool call: never an argument, never a token."""
    ended = type(result).__name__
    if isinstance(result, Content):
        ended = "error" if result.is_error else "ok"

    def write(sent: int, whole: bool) -> None:
        milliseconds = (time.monotonic() - started) * 1000
        lost = "" if whole else ", not handed over whole"
        log.info("%s: %s, %d bytes, %.0f ms%s", name, ended, sent, milliseconds, lost)

    return write


# --- environ -> head, reply -> response ------------------------------------------------------


def read_head(environ: Environ) -> RequestHead:
    """Return the parts of the request head that anything here looks at, raw, as the server passed them."""
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


def _take_body(head: RequestHead, environ: Environ) -> bytes:
    """Return the body of a POST, and let the server forget its own copy, which it would keep until the reply has left.

    All of it has arrived, and its length has been checked with the head.
    """
    if head.method != "POST":
        return b""
    arrived = environ["wsgi.input"]
    body: bytes = arrived.read()
    arrived.truncate(0)
    return body


def refusal(refused: Refused) -> Reply:
    """Return the HTTP response that `refused` carries; its body is JSON for every status."""
    body = () if refused.body is None else (well_formed_json(json.dumps(refused.body).encode("ascii")),)
    return Reply(refused.status, (JSON, *refused.headers), body)


def page(reply: Reply, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    """Answer with a page as browsers like it: with an ETag, and 304 in place of what they have already.

    werkzeug is imported for the first page: a board that serves only MCP does without its 2 MB.
    """
    from werkzeug.wrappers import Response

    response = Response(_body(reply), reply.status, list(reply.headers))
    if reply.status == HTTPStatus.OK:
        response.add_etag()
        response.make_conditional(environ)
    return response(environ, start_response)


def _body(reply: Reply) -> bytes:
    """Return all of a reply that no tool has a part in: it holds no source."""
    return b"".join(cast("Sequence[bytes]", reply.parts))
