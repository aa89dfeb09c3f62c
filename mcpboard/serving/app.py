"""The WSGI application between the server and a role: a Request comes in, a Response goes out."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol, cast

from waitress.channel import ClientDisconnected
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound
from werkzeug.http import parse_date
from werkzeug.routing import Map, Rule
from werkzeug.wrappers import Request, Response
from werkzeug.wsgi import get_content_length

from mcpboard.errors import (
    BackendBroken,
    BackendTimeout,
    BackendUnreachable,
    Busy,
    DeviceBusy,
    ProtocolError,
    Refused,
    ToolError,
    ToolFailed,
)
from mcpboard.protocol.access import MCP_PATHS, admit, check_origin
from mcpboard.protocol.endpoint import INTERNAL, JSON, Endpoint
from mcpboard.protocol.headers import StandardHeaders
from mcpboard.protocol.limits import LARGE_BODY
from mcpboard.protocol.messages import CloseSession, ListTools, OpenSession, Outcome, Reply, RequestHead, Step, ToolCall
from mcpboard.protocol.tools import Blob, Content
from mcpboard.serving.concurrency import ConcurrencyLimit
from mcpboard.serving.connection import CONNECTION, REPLY_LIMIT, STREAM_SECONDS
from mcpboard.serving.replies import ReplyBody, on_trust
from mcpboard.text import well_formed_json

log = logging.getLogger("mcpboard")

# Seconds that a large body may wait for its turn to be parsed; each takes half a second on the slowest board.
PARSING_SECONDS = 5.0
CROWDED = "too many large requests at once; nothing was done, so send it again in a second"

MCP = "mcp"  # the endpoint of MCP_PATHS
Environ = dict[str, Any]  # as WSGI demands: the very dict, not a copy
BrokenOff = ClientDisconnected  # raised by a body that cannot be finished: its reader must see that it is not whole
StartResponse = Callable[..., Any]
View = Callable[..., Response]  # takes the request, and the parts of its path by name


class Role(Protocol):
    """A role as it is for one request; only `run` and `refreshed_endpoint` may wait, each within its own limit."""

    def endpoint(self) -> Endpoint:
        """Return the endpoint; never waits."""

    def refreshed_endpoint(self) -> Endpoint:
        """Return the endpoint after a look for newer tools; called only for `tools/list`."""

    def run(self, call: ToolCall) -> Outcome:
        """Run the call, once; may raise ToolError or ProtocolError instead."""

    def open_session(self, step: OpenSession) -> str:
        """Mint a legacy session id."""

    def close_session(self, step: CloseSession) -> None:
        """End a legacy session and what it held."""


class PlainResponse(Response):
    """A response with the headers it is given: without a body it has no media type."""

    default_mimetype = None


class Application:
    """A WSGI application that serves one role at /mcp, and the pages of that role beside it.

    `current` is called once for each request to /mcp, and returns the role as it is for all of that request.
    `views` has the view of each endpoint of `rules`, and may have one for the HTTP status of an error that
    the map raises; that one takes the error.
    """

    def __init__(
        self,
        current: Callable[[], Role],
        limit: ConcurrencyLimit,
        rules: Iterable[Rule] = (),
        views: Mapping[str | int, View] = MappingProxyType({}),
    ) -> None:
        self._current = current
        self._limit = limit
        self._parsing = threading.Lock()
        self._views = {**views, MCP: self._mcp}
        # Copies, since a rule belongs to one map. A path with a doubled slash is no other one: to redirect to that
        # would need our name.
        found = [*(Rule(path, endpoint=MCP) for path in MCP_PATHS), *(rule.empty() for rule in rules)]
        self._addresses = Map(found, merge_slashes=False).bind("")

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        # Not left in the environ: each would keep the other, until the garbage collector comes.
        request = Request(environ, populate_request=False)
        response = self._respond(request)
        try:
            return response(environ, start_response)
        except BaseException:
            response.close()  # which releases the slot and keeps the outcome
            raise

    def _respond(self, request: Request) -> Response:
        """Return what the view of the request's address returns, and every error as a response."""
        try:
            try:
                endpoint, values = self._addresses.match(request.path, request.method)
            except HTTPException as error:
                endpoint, values = error.code, {"error": error}
            if endpoint != MCP:
                check_origin(head_of(request))
                _drop_odd_headers(request.environ)
            return self._views.get(endpoint, _nowhere)(request, **values)
        except Refused as refused:
            return response_of(refusal(refused))
        except HTTPException as error:
            return response_of(_http_error(request, error))
        except ClientDisconnected:
            raise
        except Exception:
            log.exception("%s %s: internal error", request.method, ascii(request.path)[:80])
            return response_of(refusal(Refused(500, {"error": INTERNAL})))

    # --- /mcp ---

    def _mcp(self, request: Request) -> Response:
        """Return the response to one JSON-RPC message."""
        role = self._current()
        endpoint = role.endpoint()
        step = self._receive(endpoint, request)
        if isinstance(step, Reply):
            return response_of(step)
        if isinstance(step, ToolCall):
            return self._call_tool(role, endpoint, step, request.environ)
        if isinstance(step, CloseSession):
            role.close_session(step)
            return response_of(endpoint.closed())
        try:
            if isinstance(step, ListTools):
                return response_of(role.refreshed_endpoint().listed(step))
            return response_of(endpoint.opened(step, role.open_session(step)))
        except ProtocolError as error:
            return response_of(endpoint.refuse(step.id, error))
        except Exception:
            log.exception("%s: internal error", type(step).__name__)
            return response_of(endpoint.crashed(step.id))

    def _receive(self, endpoint: Endpoint, request: Request) -> Step:
        """Return what the endpoint makes of the request; one large body at a time, so that the memory is needed once.

        Nothing of a large body is kept when this returns: a call may run for minutes.
        """
        admitted = admit(endpoint.policy, head_of(request))
        if request.method != "POST":
            return endpoint.receive(admitted, b"")
        if (admitted.head.content_length or 0) <= LARGE_BODY:
            return endpoint.receive(admitted, request.get_data(cache=False))
        if not self._parsing.acquire(timeout=PARSING_SECONDS):
            raise Refused(429, {"error": CROWDED}, [("Retry-After", "1")])
        try:
            body = request.get_data(cache=False)
            request.environ["wsgi.input"].truncate(0)  # else the server keeps its copy until the reply has left
            return endpoint.receive(admitted, body)
        finally:
            self._parsing.release()

    def _call_tool(self, role: Role, endpoint: Endpoint, call: ToolCall, environ: Environ) -> Response:
        """Run the call and return its response; when that is closed, all that the call has borrowed is given back."""
        started = time.monotonic()
        gone = environ.get("waitress.client_disconnected", call.gone)
        if gone():
            log.info("%s: never made, its caller had gone", call.name)
            raise ClientDisconnected
        with ExitStack() as afterwards, ExitStack() as borrowed:
            slot = None
            try:
                slot = self._limit.acquire(endpoint.tool_list.acts(call.name), call.name)
                borrowed.callback(slot.release)
                outcome = _run(role, endpoint, call._replace(gone=gone))
            except Busy as busy:
                outcome = Outcome(busy)
            for block in outcome.result.blocks if isinstance(outcome.result, Content) else ():
                if isinstance(block, Blob):
                    borrowed.callback(block.source.close)
                    environ[REPLY_LIMIT] = STREAM_SECONDS
            reply, outcome = _reply(endpoint, call, outcome)
            body = ReplyBody(reply.parts)
            connection = environ.get(CONNECTION)
            # Not the result itself, which may be a screenshot: a slow reader would keep it for minutes.
            afterwards.callback(_log_call, call.name, *_ended(outcome.result), started, body)
            if (on_delivered := outcome.on_delivered) is not None:
                # How to learn whether the reply has arrived, None where it was not handed over whole.
                receipt = on_trust if connection is None else connection.receipt
                afterwards.callback(lambda: on_delivered(receipt() if body.is_whole else None))
            if slot is not None and connection is not None:
                slot.read_by(connection, time.monotonic(), body.held)
            headers = [*reply.headers]
            if body.length is not None:  # else waitress sends chunks
                headers.append(("Content-Length", str(body.length)))
            response = PlainResponse(body, reply.status, headers)
            afterwards.push(borrowed.pop_all())  # what is pushed last is closed first
            response.call_on_close(afterwards.pop_all().close)
            return response


def _run(role: Role, endpoint: Endpoint, call: ToolCall) -> Outcome:
    """Run the call; after a bug of ours the outcome says that an action may have been executed."""
    try:
        return role.run(call)
    except (ToolError, ProtocolError) as error:
        return Outcome(error)
    except BaseException:  # nobody above would answer for what is no Exception
        log.exception("%s: internal error", call.name)
        return Outcome(endpoint.crashed_call(call))


def _reply(endpoint: Endpoint, call: ToolCall, outcome: Outcome) -> tuple[Reply, Outcome]:
    """Return the reply that tells the outcome, and that outcome; another one where it cannot be written."""
    try:
        return endpoint.reply(call, outcome.result), outcome
    except Exception:
        log.exception("%s: its result cannot be written", call.name)
        if outcome.on_delivered is not None:
            outcome.on_delivered(None)  # this reply will not tell how the call ended
        crashed = endpoint.crashed_call(call)
        return endpoint.reply(call, crashed), Outcome(crashed)


def _ended(result: Content | ToolError | ProtocolError) -> tuple[str, int]:
    """Return how a call ended, in a word, and the level of its log line: a warning where a backend or device failed."""
    if isinstance(result, Content):
        return "error" if result.is_error else "ok", logging.INFO
    failed = isinstance(result, (BackendUnreachable, BackendTimeout, BackendBroken, ToolFailed))
    level = logging.WARNING if failed and not isinstance(result, DeviceBusy) else logging.INFO
    return type(result).__name__, level


def _log_call(name: str, ended: str, level: int, started: float, body: ReplyBody) -> None:
    """Write the one log line of a tool call: never an argument, never a token."""
    milliseconds = (time.monotonic() - started) * 1000
    lost = "" if body.is_whole else ", not handed over whole"
    log.log(level, "%s: %s, %d bytes, %.0f ms%s", name, ended, body.sent, milliseconds, lost)


def _nowhere(request: Request, error: HTTPException) -> Response:
    """Raise the error of an address that has no view, or none for that method."""
    raise error


# --- Request -> head, Reply -> Response --------------------------------------------------------


def head_of(request: Request) -> RequestHead:
    """Return the parts of the request head that the protocol looks at, raw, as the server passed them."""
    get = request.environ.get
    return RequestHead(
        method=request.method,
        host=get("HTTP_HOST"),
        origin=get("HTTP_ORIGIN"),
        authorization=get("HTTP_AUTHORIZATION"),
        content_type=get("CONTENT_TYPE"),
        content_encoding=get("HTTP_CONTENT_ENCODING"),
        content_length=get_content_length(request.environ),
        session=get("HTTP_MCP_SESSION_ID"),
        standard=StandardHeaders(get("HTTP_MCP_PROTOCOL_VERSION"), get("HTTP_MCP_METHOD"), get("HTTP_MCP_NAME")),
    )


def _drop_odd_headers(environ: Environ) -> None:
    """Drop what werkzeug stumbles over: conditions whose date no calendar has, and what no cookie of ours has in it.

    It cannot read cookies that are not UTF-8, and reads on from a quote to the next one, over ours; browsers, which
    bring those of other programs of this address, end a cookie at the semicolon.
    """
    for name in ("HTTP_IF_MODIFIED_SINCE", "HTTP_IF_UNMODIFIED_SINCE", "HTTP_IF_RANGE"):
        try:
            parse_date(environ.get(name))
        except OverflowError:
            del environ[name]
    if "HTTP_COOKIE" in environ:
        environ["HTTP_COOKIE"] = "".join(each for each in environ["HTTP_COOKIE"] if each.isascii() and each != '"')


def response_of(reply: Reply) -> Response:
    """Return the response that carries a reply without sources."""
    return PlainResponse(b"".join(cast("Sequence[bytes]", reply.parts)), reply.status, reply.headers)


def refusal(refused: Refused) -> Reply:
    """Return the HTTP response that `refused` carries; its body is JSON for every status."""
    body = () if refused.body is None else (well_formed_json(json.dumps(refused.body).encode("ascii")),)
    return Reply(refused.status, (JSON, *refused.headers), body)


def _http_error(request: Request, error: HTTPException) -> Reply:
    """Return the JSON for an error of werkzeug's, with its headers, such as Allow."""
    told = error.description or error.name
    if isinstance(error, NotFound):
        told = "not found: MCP is served at /mcp"
    elif isinstance(error, MethodNotAllowed):
        told = f"{request.method} is not served here; MCP is served at /mcp"
        error.valid_methods = sorted(error.valid_methods or ())
    headers = [each for each in error.get_headers(request.environ) if each[0] != "Content-Type"]
    return refusal(Refused(error.code or 500, {"error": told}, headers))


def page_rules(pages: Mapping[str, Callable[[RequestHead], Reply]]) -> tuple[list[Rule], Mapping[str | int, View]]:
    """Return the rules and views of pages that are only read, by their paths; a browser keeps each by its ETag."""

    def view(request: Request, page: Callable[[RequestHead], Reply]) -> Response:
        response = response_of(page(head_of(request)))
        response.add_etag()
        return response.make_conditional(request.environ)

    rules = [Rule(path, endpoint=path, methods=["GET"]) for path in pages]
    return rules, {path: partial(view, page=page) for path, page in pages.items()}
