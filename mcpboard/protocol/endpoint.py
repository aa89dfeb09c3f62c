"""The MCP endpoint: a POST becomes either a finished reply or the one thing left to do.

    admit(head)              -> Admitted, or raises Refused        nothing of the body is read yet
    receive(admitted, body)  -> Reply | ToolCall | ListTools | OpenSession | CloseSession
    reply(call, outcome)     -> Reply                              after the role has done it

An Endpoint is immutable and cheap: a role makes a new one when its settings or tools change.
Rows named in comments are those of the decision table in the wire contract.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mcpboard.errors import (
    BadArgument,
    InternalError,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    ProtocolError,
    SessionGone,
    ToolError,
    ToolFailed,
    UnsupportedVersion,
)
from mcpboard.protocol import headers, jsonrpc, versions
from mcpboard.protocol.admission import admit
from mcpboard.protocol.jsonrpc import Id, Message, Notification, Request, Response
from mcpboard.protocol.messages import (
    Admitted,
    CloseSession,
    ListTools,
    OpenSession,
    Policy,
    Reply,
    RequestHead,
    Step,
    ToolCall,
    ToolList,
)
from mcpboard.protocol.render import error_content, result_parts
from mcpboard.protocol.tools import Content, check_arguments, compact
from mcpboard.protocol.versions import RequestVersion
from mcpboard.text import one_line

ARGUMENTS_LIMIT = 256 * 1024  # bytes of JSON; longer text has no use on a phone (decision 19)
DISCOVER_TTL_MS = 300_000  # what discover says changes only with the software or its settings
CLIENT_NAME_LIMIT = 80  # characters of name and version that pages and logs show
JSON = ("Content-Type", "application/json")


@dataclass(frozen=True)
class Endpoint:
    """One role's MCP endpoint, as a calculation; the answers that never vary are written once."""

    policy: Policy
    tool_list: ToolList
    _fixed: dict[str, bytes] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        server = {headers.SERVER_KEY: dict(self.policy.server)}
        self._fixed["modern"] = b'"resultType":"complete","_meta":' + compact(server)
        self._fixed["legacy"] = b'"resultType":"complete"'
        self._fixed["discover"] = compact(
            {
                "supportedVersions": list(versions.SUPPORTED),
                "capabilities": {"tools": {}},
                "instructions": self.policy.instructions,
                "ttlMs": DISCOVER_TTL_MS,
                "cacheScope": "private",
            }
        )[1:-1]

    # --- the head ---

    def admit(self, head: RequestHead) -> Admitted:
        """The gates, in the order of the decision table; raises Refused at the first that is shut."""
        return admit(self.policy, head)

    # --- the body ---

    def receive(self, admitted: Admitted, body: bytes) -> Step:
        """What `body` asks for: answered at once, or the one step that is left to the role."""
        document: Any = None
        try:
            if admitted.head.method == "DELETE":
                return self._close_session(admitted)
            document = self._load(admitted, body)
            if self.policy.disabled is not None:
                raise MethodNotFound(self.policy.disabled)
            session = self._session(admitted, document)
            return self._message(admitted, session, jsonrpc.shape(document))
        except ProtocolError as error:
            return self.refuse(jsonrpc.readable_id(document), error)

    def _load(self, admitted: Admitted, body: bytes) -> Any:
        try:
            return jsonrpc.load(body)
        except ProtocolError:
            if self.policy.disabled is not None:
                return None
            self._session(admitted, None)  # a dead session is told before a broken body
            raise

    def _message(self, admitted: Admitted, session: str | None, message: Message) -> Step:
        if isinstance(message, Request):
            return self._request(admitted, session, message)
        return _acknowledge(message, admitted.head.standard.version)

    def _request(self, admitted: Admitted, session: str | None, request: Request) -> Step:
        request_version = headers.check(admitted.head.standard, request, strict_meta=self.policy.strict_meta)
        answer = METHODS.get(request.method)
        if answer is None or (request_version.enveloped and request.method in REMOVED):
            raise self._unknown(request.method, request_version)
        return answer(self, request, request_version, session, admitted.principal)

    def _session(self, admitted: Admitted, document: Any) -> str | None:
        """The live legacy session of the post; SessionGone for one that is not (rows 83-84)."""
        head = admitted.head
        if self.policy.knows_session is None or head.session is None:
            return None
        modern = head.standard.version == versions.MODERN
        opening = isinstance(document, dict) and document.get("method") == "initialize"
        if modern or opening:
            return None
        if not self.policy.knows_session(head.session, admitted.principal):
            raise SessionGone("the session is unknown or over: initialize again")
        return head.session

    def _unknown(self, method: str, request_version: RequestVersion) -> MethodNotFound:
        hint = (
            f"; this is {versions.MODERN} traffic, {method} belongs to {versions.LEGACY}" if method in REMOVED else ""
        )
        error = MethodNotFound(f"method not found: {ascii(method)[:80]}{hint}")
        if not request_version.modern:
            error.status = self.policy.unknown_method_legacy
        return error

    # --- the methods, in METHODS below ---

    def _initialize(
        self, request: Request, request_version: RequestVersion, session: str | None, principal: str
    ) -> Step:
        asked = request.params.get("protocolVersion")
        if not isinstance(asked, str):
            raise InvalidParams("initialize needs protocolVersion, a string")
        version = versions.negotiate(asked, self.policy.echoed_versions)
        if self.policy.sessions and not request_version.modern:
            return OpenSession(request.id, version, _client(request.params), principal)
        return self._handshake(request.id, version, modern=request_version.modern)

    def _handshake(
        self, request_id: Id, version: str, extra: tuple[tuple[str, str], ...] = (), *, modern: bool = False
    ) -> Reply:
        answer = {
            "protocolVersion": version,
            "capabilities": {"tools": {}},
            "serverInfo": dict(self.policy.server),
            "instructions": self.policy.instructions,
        }
        return self._result(request_id, compact(answer)[1:-1], extra, modern=modern)

    def _ping(self, request: Request, request_version: RequestVersion, session: str | None, principal: str) -> Step:
        # One client family rejects any member in the answer to a ping sent under a legacy header
        # (row 55); without such a header the mission's word stands.
        bare = request_version.header in versions.KNOWN and not request_version.modern
        body = b"{}" if bare else b'{"resultType":"complete"}'
        return Reply(200, (JSON,), (jsonrpc.result(request.id, body),))

    def _discover(self, request: Request, request_version: RequestVersion, session: str | None, principal: str) -> Step:
        return self._result(request.id, self._fixed["discover"], modern=True)

    def _list(self, request: Request, request_version: RequestVersion, session: str | None, principal: str) -> Step:
        cursor = request.params.get("cursor")
        if cursor is not None:
            raise InvalidParams("there is one page only: no cursor was ever given out")
        return ListTools(request.id, request_version)

    def _call(self, request: Request, request_version: RequestVersion, session: str | None, principal: str) -> Step:
        name, arguments = request.params.get("name"), request.params.get("arguments")
        if not isinstance(name, str):
            raise InvalidParams('tools/call needs "name", a string')
        if arguments is not None and not isinstance(arguments, dict):
            raise InvalidParams('"arguments" must be an object')
        tool = self.tool_list.tools.get(name)
        if tool is None:
            raise InvalidParams(f"unknown tool: {ascii(name)[1:-1][:80]}")
        arguments = arguments or {}
        call = ToolCall(request.id, name, arguments, _argument_bytes(arguments), request_version, session, principal)
        try:
            check_arguments(tool.input_schema, arguments)
        except BadArgument as fault:
            return self._argument_fault(call, fault)
        return call

    def _argument_fault(self, call: ToolCall, fault: BadArgument) -> Reply:
        if self.policy.faults_as_results:
            return self.reply(call, fault)
        raise InvalidParams(fault.text)

    def _close_session(self, admitted: Admitted) -> Step:
        head = admitted.head
        knows = self.policy.knows_session
        if knows is None or head.session is None or not knows(head.session, admitted.principal):
            raise SessionGone("the session is unknown or over: there is nothing to end")
        return CloseSession(head.session, admitted.principal)

    # --- answers ---

    def reply(self, call: ToolCall, outcome: Content | ToolError | ProtocolError) -> Reply:
        """The answer to a tool call that came to `outcome`."""
        if isinstance(outcome, ProtocolError):
            return self.refuse(call.id, outcome)
        if isinstance(outcome, ToolError):
            if not self.policy.faults_as_results:
                return self.refuse(call.id, ToolFailed(outcome.text, delivery=self._delivery(call, outcome)))
            outcome = error_content(outcome, self.tool_list.acts(call.name))
        fixed = self._fixed["modern" if call.request_version.modern else "legacy"]
        return Reply(200, (JSON,), result_parts(call.id, outcome, fixed))

    def _delivery(self, call: ToolCall, error: ToolError) -> str | None:
        return error.delivery if self.tool_list.acts(call.name) else None

    def listed(self, step: ListTools) -> Reply:
        """The answer to `tools/list`, from this endpoint's own listing."""
        return self._result(step.id, self.tool_list.result, modern=step.request_version.modern)

    def opened(self, step: OpenSession, session_id: str) -> Reply:
        """The handshake's answer, with the session id that the role minted."""
        return self._handshake(step.id, step.version, (("Mcp-Session-Id", session_id),))

    def closed(self) -> Reply:
        """The answer to a DELETE that ended a session."""
        return Reply(204)

    def refuse(self, request_id: Id | None, error: ProtocolError) -> Reply:
        """A JSON-RPC error under its HTTP status; the id is null when it could not be read."""
        return Reply(jsonrpc.status(error), (JSON,), (jsonrpc.error(error, request_id),))

    def crashed(self, request_id: Id | None) -> Reply:
        """The answer to a bug of ours: no details (row 81)."""
        return self.refuse(request_id, InternalError("internal error; the server's log has the details"))

    def _result(self, request_id: Id, body: bytes, extra: tuple[tuple[str, str], ...] = (), *, modern: bool) -> Reply:
        fixed = self._fixed["modern" if modern else "legacy"]
        return Reply(200, (JSON, *extra), (jsonrpc.result(request_id, b"{", body, b",", fixed, b"}"),))


# --- messages that want no answer ------------------------------------------------------------


def _acknowledge(message: Notification | Response, version: str | None) -> Reply:
    """202 without a byte for what is never acted on (rows 25-30); bad ones are told so."""
    if isinstance(message, Notification) and message.method in METHODS:
        raise InvalidRequest(f"{message.method} needs an id; nothing was done")
    if isinstance(message, Response) and version == versions.MODERN:
        raise InvalidRequest("this server sends no requests, so there is nothing to respond to")
    try:
        headers.supported(version)
    except UnsupportedVersion as error:
        return Reply(jsonrpc.status(error), (JSON,), (jsonrpc.error(error, None, with_id=False),))
    return Reply(202)


# --- the content of requests -----------------------------------------------------------------


def _client(params: Mapping[str, Any]) -> str:
    """The client's name and version from `initialize`, one line of at most 80 characters, for people to read."""
    info = params.get("clientInfo")
    found = info if isinstance(info, dict) else {}
    words = [found[key] for key in ("name", "version") if isinstance(found.get(key), str)]
    return one_line(" ".join(words), CLIENT_NAME_LIMIT)


_arguments = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _argument_bytes(arguments: Mapping[str, Any]) -> bytes:
    """`arguments` as UTF-8 JSON, every code point and number as it came; InvalidParams where that fails."""
    try:
        written = _arguments.encode(arguments).encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidParams("the arguments hold half a surrogate pair, which is no character") from error
    except RecursionError as error:
        raise InvalidParams("the arguments are nested too deeply") from error
    except ValueError as error:
        raise InvalidParams("the arguments hold a number that is not finite") from error
    if len(written) > ARGUMENTS_LIMIT:
        raise InvalidParams(f"the arguments are over the limit of {ARGUMENTS_LIMIT} bytes")
    return written


Method = Callable[[Endpoint, Request, RequestVersion, "str | None", str], Step]

METHODS: Mapping[str, Method] = {
    "initialize": Endpoint._initialize,
    "ping": Endpoint._ping,
    "server/discover": Endpoint._discover,
    "tools/list": Endpoint._list,
    "tools/call": Endpoint._call,
}

# Gone from the modern revision: 404 when the request carries its envelope (rows 54, 63).
REMOVED = frozenset({"initialize", "ping"})
