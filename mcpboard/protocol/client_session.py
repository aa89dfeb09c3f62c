"""The client's half of MCP as a calculation: the next request to send, given the responses so far."""

# A flow is a generator that yields each `HttpRequest`, is sent its `HttpResponse`, and returns its
# result; `run` drives one. The modern revision is tried first; a server that does not know it gets the
# `initialize` handshake, on the responses on which real clients fall back to it. No request is ever
# sent twice, but for one second probe of a server that lists the revision it has just refused.

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, cast

from mcpboard.errors import ClientError, NotMcp, PeerBroken, PeerError, PeerRefused
from mcpboard.protocol import headers
from mcpboard.protocol.jsonrpc import Id
from mcpboard.protocol.limits import PAGES_LIMIT
from mcpboard.protocol.results import CallResult, HttpResponse, call_result, result_of
from mcpboard.protocol.tools import verbatim
from mcpboard.protocol.versions import LEGACY, MODERN, TOLERATED
from mcpboard.text import one_line

HANDSHAKES = frozenset({LEGACY, *TOLERATED})  # what `initialize` may settle on

# HTTP status of a probe that no handshake would change: it is about who we are, or an outage.
# Anything else but a good response means a server of the legacy revision.
FINAL = frozenset({301, 302, 303, 307, 308, 401, 403, 429, 502, 503, 504})

UNSUPPORTED = -32022
SESSION = "Mcp-Session-Id"


class HttpRequest(NamedTuple):
    """One HTTP request: its headers and body; the URL and the token are the caller's.

    `id` is that of the JSON-RPC request in `body`; None where nothing answers it but a status.
    """

    headers: Mapping[str, str]
    body: bytes
    method: str = "POST"
    id: Id | None = None


T = TypeVar("T")
Members = Mapping[str, Any]  # of a JSON object
Answered = tuple[Members, HttpResponse]
RequestFlow = Generator[HttpRequest, HttpResponse, T]


def run(flow: RequestFlow[T], send: Callable[[HttpRequest], HttpResponse]) -> T:
    """Return the result of `flow`, with `send` for each of its requests; an error of `send` ends the flow."""
    try:
        request = next(flow)
        while True:
            request = flow.send(send(request))
    except StopIteration as end:
        return cast("T", end.value)


class ClientSession:
    """The state of one client with one server: the negotiated version, the session id, the server's identity.

    Every flow negotiates the version first where that is not done. Its errors are PeerError,
    PeerRefused, NotMcp and PeerBroken.
    """

    def __init__(self, client: Mapping[str, str]) -> None:
        self.version: str | None = None  # negotiated; None before, and after the server forgot us
        self.server: Mapping[str, Any] = {}  # serverInfo: name, title, version
        self.capabilities: Mapping[str, Any] = {}  # what the server declares, feature -> its options
        self.instructions = ""
        self.session: str | None = None  # legacy session id, when the server gave one
        self._client = dict(client)  # clientInfo: name and version
        self._ids = iter(range(1, 1 << 53))  # whole in every JSON parser; next() on it is safe between threads

    # --- the flows ---

    def open(self) -> RequestFlow[None]:
        """Negotiate the version; sends nothing when that is done."""
        if self.version is not None:
            return
        refusal = yield from self._probe()
        if refusal is not None and MODERN in _offered_versions(refusal):
            refusal = yield from self._probe()  # it says that it speaks the version it was asked in
        if refusal is not None and _is_final(refusal):
            raise refusal
        if self.version is None:
            yield from self._initialize()

    def close(self) -> RequestFlow[None]:
        """End the legacy session, if there is one; the response does not matter."""
        farewell = None if self.session is None else HttpRequest(self.headers(), b"", "DELETE")
        self.forget()  # first, so that it holds also where the farewell cannot be sent
        if farewell is not None:
            yield farewell

    def list_tools(self) -> RequestFlow[Sequence[Mapping[str, Any]]]:
        """Return every tool the server lists, page by page, as it describes them."""
        yield from self.open()
        tools: list[Mapping[str, Any]] = []
        params: dict[str, Any] = {}
        for _ in range(PAGES_LIMIT):
            result, _response = yield from self._request("tools/list", params)
            page: Any = result.get("tools")
            well = isinstance(page, list) and all(isinstance(t, dict) and isinstance(t.get("name"), str) for t in page)
            if not well:
                raise NotMcp("the list of tools is malformed")
            tools += page
            if not isinstance(result.get("nextCursor"), str):
                return tools
            params = {"cursor": result["nextCursor"]}  # an empty one is a cursor, too
        raise PeerBroken(f"tools/list did not end after {PAGES_LIMIT} pages; the server's cursor is at fault")

    def call(self, name: str, arguments: Mapping[str, Any]) -> RequestFlow[CallResult]:
        """Return the result of one tool call, sent exactly once whatever the response."""
        yield from self.open()
        params = {"name": name, "arguments": dict(arguments)}
        result, response = yield from self._request("tools/call", params)
        return call_result(result, response.blobs)

    def ping(self) -> RequestFlow[None]:
        """Make the server respond; the modern revision has no ping, so `server/discover` stands in."""
        yield from self.open()
        yield from self._request("server/discover" if self.version == MODERN else "ping", {})

    # --- negotiating the version ---

    def _probe(self) -> RequestFlow[ClientError | None]:
        """Settle on the modern revision if the server says that it speaks it; return the error it gives instead."""
        request_id = next(self._ids)
        response = yield self._http_request("server/discover", request_id, {}, MODERN)
        try:
            result = result_of(response, request_id)
        except ClientError as error:
            return error
        versions, meta = result.get("supportedVersions"), result.get("_meta")
        if isinstance(versions, list) and MODERN in versions:
            self._settle(MODERN, meta.get(headers.SERVER_KEY) if isinstance(meta, dict) else None, result)
        return None

    def _initialize(self) -> RequestFlow[None]:
        request_id = next(self._ids)
        params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": self._client}
        response = yield self._http_request("initialize", request_id, params, None)
        result = result_of(response, request_id)
        version = result.get("protocolVersion")
        if not isinstance(version, str) or version not in HANDSHAKES:
            offered = one_line(str(version))
            raise NotMcp(f"the server offers protocol version {offered}; this client speaks {MODERN} and {LEGACY}")
        session_id = response.headers.get(SESSION.lower(), "")
        # One that no header could repeat is as good as none.
        self.session = session_id if session_id and session_id.isascii() and session_id.isprintable() else None
        self._settle(version, result.get("serverInfo"), result)
        yield HttpRequest(self.headers(), verbatim({"jsonrpc": "2.0", "method": "notifications/initialized"}))

    def _settle(self, version: str, server: object, result: Mapping[str, Any]) -> None:
        self.server = server if isinstance(server, dict) else {}
        declared = result.get("capabilities")
        self.capabilities = declared if isinstance(declared, dict) else {}
        self.instructions = str(result.get("instructions", ""))
        self.version = version

    def forget(self) -> None:
        """Let the next flow negotiate anew; the server does not know our session any more."""
        self.version = self.session = None

    # --- requests ---

    def _request(self, method: str, params: Members) -> RequestFlow[Answered]:
        """Return the result of a request, and the response that holds it."""
        request_id = next(self._ids)
        response = yield self._http_request(method, request_id, params, self.version)
        try:
            return result_of(response, request_id), response
        except ClientError as error:
            session_gone = self.session is not None and error.status == 404
            if session_gone or (isinstance(error, PeerError) and error.code == UNSUPPORTED):
                self.forget()  # the next flow negotiates anew; this request is not repeated
            raise

    def _http_request(self, method: str, number: int, params: Members, version: str | None) -> HttpRequest:
        sent = self.headers()
        if version == MODERN:
            sent |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
            if method == "tools/call":
                sent["Mcp-Name"] = headers.encoded_name(params["name"])
            meta = {headers.VERSION_KEY: MODERN, headers.CLIENT_KEY: self._client, headers.CAPABILITIES_KEY: {}}
            params = {**params, "_meta": meta}
        message = {"jsonrpc": "2.0", "id": number, "method": method}
        return HttpRequest(sent, verbatim(message | {"params": params} if params else message), id=number)

    def headers(self) -> dict[str, str]:
        """Return the headers of any request; both media types, as the specification demands of a client."""
        sent = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        if self.version is not None:
            sent["MCP-Protocol-Version"] = self.version
        if self.session is not None:
            sent[SESSION] = self.session
        return sent


def _offered_versions(error: ClientError) -> Sequence[Any]:
    """Return the versions that a -32022 lists; empty for any other error."""
    if not isinstance(error, PeerError) or error.code != UNSUPPORTED or not isinstance(error.data, dict):
        return ()
    listed = error.data.get("supported")
    return listed if isinstance(listed, list) else ()


def _is_final(error: ClientError) -> bool:
    """Return True when `initialize` would fare no better: refused, an outage, or no revision in common."""
    if error.status in FINAL:
        return isinstance(error, (PeerRefused, PeerError))
    offered = _offered_versions(error)
    return bool(offered) and HANDSHAKES.isdisjoint(str(version) for version in offered)
