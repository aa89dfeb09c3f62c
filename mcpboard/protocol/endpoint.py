"""The MCP endpoint: a POST becomes either a finished reply or the one step that is left to the role."""

#     access.admit(policy, head) -> Admitted, or raises Refused      nothing of the body is read yet
#     receive(admitted, body)  -> Reply | ToolCall | ListTools | OpenSession | CloseSession
#     reply(call, outcome)     -> Reply                              after the role has run the tool
#
# An Endpoint is immutable and cheap: a role makes a new one when its settings or tools change.
# `docs/protocol.md` has every situation with its answer, and the specification or reason behind it.

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mcpboard import errors
from mcpboard.errors import UNKNOWN, ProtocolError, ToolError
from mcpboard.protocol import access, headers, jsonrpc, versions
from mcpboard.protocol.jsonrpc import Id, Notification, Request, Response
from mcpboard.protocol.limits import ARGUMENTS_LIMIT, CLIENT_NAME_LIMIT
from mcpboard.protocol.messages import Admitted, CloseSession, ListTools, OpenSession, Policy, Reply, Step, ToolCall
from mcpboard.protocol.tools import (
    ADVICE,
    Content,
    Part,
    ToolList,
    check_arguments,
    compact,
    error_content,
    normalize_arguments,
)
from mcpboard.protocol.versions import RequestVersion
from mcpboard.text import one_line

DISCOVER_TTL_MS = 300_000  # what discover says changes only with the software or its settings
INTERNAL = "internal error; the server's log has the details"
JSON = ("Content-Type", "application/json")


@dataclass(frozen=True)
class Endpoint:
    """One role's MCP endpoint, as a calculation; what never varies in a reply is written once."""

    policy: Policy
    tool_list: ToolList
    _fixed: dict[str, bytes] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        server = {headers.SERVER_KEY: dict(self.policy.server)}
        self._fixed["modern"] = b'"resultType":"complete","_meta":' + compact(server)
        self._fixed["legacy"] = b'"resultType":"complete"'
        discover: dict[str, Any] = {"supportedVersions": list(versions.SUPPORTED), "capabilities": {"tools": {}}}
        discover |= {"instructions": self.policy.instructions, "ttlMs": DISCOVER_TTL_MS, "cacheScope": "private"}
        self._fixed["discover"] = compact(discover)[1:-1]

    # --- a request comes in ---

    def receive(self, admitted: Admitted, body: bytes) -> Step:
        """Reply to `body` at once, or return the one step that is left to the role."""
        head = admitted.head
        document: Any = None
        try:
            if head.method == "DELETE":
                knows = self.policy.knows_session
                if knows is None or head.session is None or not knows(head.session, admitted.principal):
                    raise errors.SessionGone("the session is unknown or over: there is nothing to end")
                return CloseSession(head.session, admitted.principal)
            broken = None
            try:
                document = jsonrpc.load(body)
            except ProtocolError as error:
                broken = error
            if self.policy.disabled is not None:
                raise errors.MethodNotFound(self.policy.disabled)
            access.check_media_type(head)
            session = self._session(admitted, document)  # a dead one is reported before a broken body
            if broken is not None:
                raise broken
            message = jsonrpc.parse_message(document)
            if not isinstance(message, Request):
                return _acknowledge(message, head.standard.version)
            return self._dispatch(admitted, session, message)
        except ProtocolError as error:
            return self.refuse(jsonrpc.readable_id(document), error)

    def _session(self, admitted: Admitted, document: Any) -> str | None:
        """Return the live legacy session of the post; SessionGone for one that is not.

        Modern traffic has none, and an `initialize` is about to get one, whatever its header says.
        """
        head = admitted.head
        if self.policy.knows_session is None or head.session is None:
            return None
        is_opening = isinstance(document, dict) and document.get("method") == "initialize"
        if is_opening or head.standard.version == versions.MODERN:
            return None
        if not self.policy.knows_session(head.session, admitted.principal):
            raise errors.SessionGone("the session is unknown or over: initialize again")
        return head.session

    def _dispatch(self, admitted: Admitted, session: str | None, request: Request) -> Step:
        version = headers.check(admitted.head.standard, request, strict_meta=self.policy.strict_meta)
        method, removed = METHODS.get(request.method), request.method in REMOVED
        if method is not None and not (removed and version.enveloped):
            return method(self, request, version, session, admitted.principal)
        hint = f"; this is {versions.MODERN} traffic, {request.method} belongs to {versions.LEGACY}" if removed else ""
        error = errors.MethodNotFound(f"method not found: {ascii(request.method)[:80]}{hint}")
        if not version.modern:
            error.status = self.policy.unknown_method_legacy
        raise error

    # --- the methods, in METHODS below ---

    def _initialize(self, request: Request, version: RequestVersion, session: str | None, principal: str) -> Step:
        requested = request.params.get("protocolVersion")
        if not isinstance(requested, str):
            raise errors.InvalidParams("initialize needs protocolVersion, a string")
        negotiated = versions.negotiate(requested, self.policy.echoed_versions)
        # In the modern revision there are no sessions; only an older one gets an id.
        if versions.MODERN in (version.header, negotiated) or self.policy.knows_session is None:
            return self._handshake(request.id, negotiated, modern=version.modern)
        return OpenSession(request.id, negotiated, _client(request.params.get("clientInfo")), principal)

    def _handshake(self, request_id: Id, version: str, *extra: tuple[str, str], modern: bool = False) -> Reply:
        server, text = dict(self.policy.server), self.policy.instructions
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server, "instructions": text}
        return self._result(request_id, compact(result)[1:-1], *extra, modern=modern)

    def _ping(self, request: Request, version: RequestVersion, session: str | None, principal: str) -> Step:
        # One family of clients rejects any member in the result of a ping sent under a legacy header;
        # without such a header the result says that it is complete, as every other one does (docs/protocol.md).
        bare = version.header in versions.KNOWN and not version.modern
        body = b"{}" if bare else b'{"resultType":"complete"}'
        return Reply(200, (JSON,), (jsonrpc.result(request.id, body),))

    def _discover(self, request: Request, version: RequestVersion, session: str | None, principal: str) -> Step:
        return self._result(request.id, self._fixed["discover"], modern=True)

    def _list(self, request: Request, version: RequestVersion, session: str | None, principal: str) -> Step:
        if request.params.get("cursor") is not None:
            raise errors.InvalidParams("there is one page only: no cursor was ever given out")
        return ListTools(request.id, version)

    def _call(self, request: Request, version: RequestVersion, session: str | None, principal: str) -> Step:
        name, arguments = request.params.get("name"), request.params.get("arguments")
        if not isinstance(name, str):
            raise errors.InvalidParams('tools/call needs "name", a string')
        if arguments is not None and not isinstance(arguments, dict):
            raise errors.InvalidParams('"arguments" must be an object')
        tool = self.tool_list.tools.get(name)
        if tool is None:
            raise errors.InvalidParams(f"unknown tool: {ascii(name)[1:-1][:80]}")
        arguments = normalize_arguments(tool.input_schema, arguments) if arguments else {}
        call = ToolCall(request.id, name, _argument_bytes(arguments), version, session, principal)
        if self.policy.knows_session is not None:
            meta = request.params.get("_meta") or {}
            call = call._replace(client=_client(meta.get(headers.CLIENT_KEY)))
        try:
            check_arguments(tool.input_schema, arguments)
        except errors.BadArgument as error:
            if self.policy.faults_as_results:
                return self.reply(call, error)
            raise errors.InvalidParams(error.text) from error
        return call

    # --- replies ---

    def reply(self, call: ToolCall, outcome: Content | ToolError | ProtocolError) -> Reply:
        """Reply to a tool call that came to `outcome`."""
        if isinstance(outcome, ProtocolError):
            return self.refuse(call.id, outcome)
        if isinstance(outcome, ToolError):
            acts = self.tool_list.acts(call.name)
            if not self.policy.faults_as_results:
                delivery = outcome.delivery if acts else None
                return self.refuse(call.id, errors.ToolFailed(outcome.text, delivery=delivery))
            outcome = error_content(outcome, acts)
        fixed = self._fixed["modern" if call.request_version.modern else "legacy"]
        return Reply(200, (JSON,), result_parts(call.id, outcome, fixed))

    def listed(self, step: ListTools) -> Reply:
        """Reply to `tools/list` with this endpoint's own tools."""
        return self._result(step.id, self.tool_list.result, modern=step.request_version.modern)

    def opened(self, step: OpenSession, session_id: str) -> Reply:
        """Reply to the handshake with the session id that the role minted."""
        return self._handshake(step.id, step.version, ("Mcp-Session-Id", session_id))

    def closed(self) -> Reply:
        """Reply to a DELETE that ended a session."""
        return Reply(204)

    def refuse(self, request_id: Id | None, error: ProtocolError) -> Reply:
        """Reply with a JSON-RPC error under its HTTP status; the id is null when it could not be read."""
        return Reply(jsonrpc.status(error), (JSON,), (jsonrpc.error(error, request_id),))

    def crashed(self, request_id: Id | None) -> Reply:
        """Reply after a bug of ours: no details leave the process."""
        return self.refuse(request_id, errors.InternalError(INTERNAL))

    def crashed_call(self, call: ToolCall) -> ToolError | ProtocolError:
        """Return the outcome of a call after a bug of ours or for lack of memory: an action may have been executed."""
        if not self.tool_list.acts(call.name):
            return errors.InternalError(INTERNAL)
        if self.policy.faults_as_results:
            return ToolError(INTERNAL, delivery=UNKNOWN)
        return errors.ToolFailed(f"{INTERNAL}. {ADVICE[UNKNOWN]}", delivery=UNKNOWN)

    def _result(self, request_id: Id, body: bytes, *extra: tuple[str, str], modern: bool) -> Reply:
        fixed = self._fixed["modern" if modern else "legacy"]
        return Reply(200, (JSON, *extra), (jsonrpc.result(request_id, b"{", body, b",", fixed, b"}"),))


def result_parts(request_id: Id, content: Content, fixed: bytes) -> tuple[Part, ...]:
    """Return the whole JSON-RPC message around `content`; `fixed` is the run of members that never vary.

    In parts, so that no image is ever escaped and no bundle ever held.
    """
    blocks = [part for block in content.blocks for part in (b",", *block.parts())][1:]
    structured = () if content.structured is None else (b'"structuredContent":', compact(content.structured), b",")
    end = (b'"isError":true,' if content.is_error else b"") + fixed + b"}}"
    return (jsonrpc.result_head(request_id) + b'{"content":[', *blocks, b"],", *structured, end)


def _client(info: object) -> str:
    """Return name and version of a `clientInfo`, in one line; "" where it gives none."""
    names = [info.get("name"), info.get("version")] if isinstance(info, dict) else []
    return one_line(" ".join(name for name in names if isinstance(name, str))[:CLIENT_NAME_LIMIT])


def _acknowledge(message: Notification | Response, version: str | None) -> Reply:
    """Reply 202 without a byte to what is never acted on; an error to what ought not to be sent."""
    if isinstance(message, Notification) and message.method in METHODS:
        raise errors.InvalidRequest(f"{message.method} needs an id; nothing was done")
    if isinstance(message, Response) and version == versions.MODERN:
        raise errors.InvalidRequest("this server sends no requests, so there is nothing to respond to")
    try:
        headers.check_version(version)
    except errors.UnsupportedVersion as error:
        return Reply(jsonrpc.status(error), (JSON,), (jsonrpc.error(error, None, with_id=False),))
    return Reply(202)


_arguments = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _argument_bytes(arguments: Mapping[str, Any]) -> bytes:
    """Return `arguments` as UTF-8 JSON, every code point and number as it came; InvalidParams where that fails."""
    try:
        written = _arguments.encode(arguments).encode("utf-8")
    except UnicodeEncodeError as error:
        raise errors.InvalidParams("the arguments hold half a surrogate pair, which is no character") from error
    except ValueError as error:
        raise errors.InvalidParams("the arguments hold a number that is not finite") from error
    if len(written) > ARGUMENTS_LIMIT:
        raise errors.InvalidParams(f"the arguments are over the limit of {ARGUMENTS_LIMIT} bytes")
    return written


Method = Callable[[Endpoint, Request, RequestVersion, "str | None", str], Step]

METHODS: Mapping[str, Method] = {
    "initialize": Endpoint._initialize,
    "ping": Endpoint._ping,
    "server/discover": Endpoint._discover,
    "tools/list": Endpoint._list,
    "tools/call": Endpoint._call,
}

# Gone from the modern revision: 404 when the request carries its envelope.
REMOVED = frozenset({"initialize", "ping"})
