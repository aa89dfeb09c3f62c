"""The client's half of MCP as a calculation: what to send next, given what was answered.

A talk is a generator that yields an `Ask`, is sent the `Answer`, and returns what it was for;
`run` drives one. The modern revision is tried first; a server that does not know it gets the
`initialize` handshake, on the answers on which real clients turn to it (wire contract, 7.2).
Nothing is ever asked twice, but for the one second probe which that table names.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from mcpboard.errors import ClientError, NotMcp, PeerBroken, PeerError, PeerRefused
from mcpboard.protocol import headers
from mcpboard.protocol.results import CallResult, HttpResponse, call_result, result_of
from mcpboard.protocol.tools import compact
from mcpboard.protocol.versions import LEGACY, MODERN, TOLERATED
from mcpboard.text import one_line

MOST_PAGES = 64  # of tools/list: a cursor that never ends is a known fault of servers
HANDSHAKES = frozenset({LEGACY, *TOLERATED})  # what `initialize` may settle on

# The probe's HTTP status for which no handshake is a cure: who we are, or an outage. Anything else
# but a good answer means a server of the older era.
FINAL = frozenset({301, 302, 303, 307, 308, 401, 403, 429, 502, 503, 504})

UNSUPPORTED = -32022
SESSION = "Mcp-Session-Id"


@dataclass(frozen=True)
class HttpRequest:
    """One HTTP request: its headers and body; the URL and the token are the caller's."""

    headers: Mapping[str, str]
    body: bytes
    method: str = "POST"


T = TypeVar("T")
RequestFlow = Generator[HttpRequest, HttpResponse, T]


def run(talk: RequestFlow[T], exchange: Callable[[HttpRequest], HttpResponse]) -> T:
    """What `talk` comes to, every Ask answered by `exchange`; its errors end the talk."""
    try:
        ask = next(talk)
        while True:
            ask = talk.send(exchange(ask))
    except StopIteration as end:
        result: T = end.value
        return result


class ClientSession:
    """One client's talks with one server; remembers the era, the session, and who the server is.

    Every talk settles the era first where it is not settled. Its errors are PeerError,
    PeerRefused, NotMcp and PeerBroken.
    """

    def __init__(self, client: Mapping[str, str]) -> None:
        self.version: str | None = None  # settled on; None before, and after the server forgot us
        self.server: Mapping[str, Any] = {}  # serverInfo: name, title, version
        self.capabilities: Mapping[str, Any] = {}  # what the server declares, feature -> its options
        self.instructions = ""
        self.session: str | None = None  # legacy session id, when the server gave one
        self._client = dict(client)  # clientInfo: name and version
        self._ids = iter(range(1, 1 << 53))  # whole in every JSON parser; next() on it is safe between threads

    # --- the talks ---

    def open(self) -> RequestFlow[None]:
        """Settle the era; asks nothing when it is settled."""
        if self.version is None and not (yield from self._discover()):
            yield from self._initialize()

    def close(self) -> RequestFlow[None]:
        """End the legacy session, if there is one; the answer does not matter."""
        farewell = None if self.session is None else HttpRequest(self.headers(), b"", "DELETE")
        self.forget()  # first, so that it holds also where the farewell cannot be sent
        if farewell is not None:
            yield farewell

    def list_tools(self) -> RequestFlow[Sequence[Mapping[str, Any]]]:
        """Every tool the server lists, page by page, as it describes them."""
        yield from self.open()
        tools: list[Mapping[str, Any]] = []
        params: dict[str, Any] = {}
        for _ in range(MOST_PAGES):
            result, _answer = yield from self._request("tools/list", params)
            tools += _page(result)
            cursor = result.get("nextCursor")
            if not isinstance(cursor, str):
                return tools
            params = {"cursor": cursor}  # an empty one is a cursor, too
        raise PeerBroken(f"tools/list did not end after {MOST_PAGES} pages; the server's cursor is at fault")

    def call(self, name: str, arguments: Mapping[str, Any]) -> RequestFlow[CallResult]:
        """One tool call, asked exactly once whatever is answered."""
        yield from self.open()
        params = {"name": name, "arguments": dict(arguments)}
        result, answer = yield from self._request("tools/call", params, {"Mcp-Name": headers.encoded_name(name)})
        return call_result(result, answer.blobs)

    def ping(self) -> RequestFlow[None]:
        """Make the server answer; the modern revision has no ping, so it is asked who it is."""
        yield from self.open()
        yield from self._request("server/discover" if self.version == MODERN else "ping", {})

    # --- settling the era ---

    def _discover(self) -> RequestFlow[bool]:
        """True once the modern revision is settled on, False when `initialize` is worth trying."""
        refusal = yield from self._probe()
        if refusal is not None and MODERN in _offered(refusal):
            refusal = yield from self._probe()  # it says that it speaks what it was asked in
        if refusal is not None and _is_final(refusal):
            raise refusal
        return self.version is not None

    def _probe(self) -> RequestFlow[ClientError | None]:
        """Settle on the modern revision if the server says that it speaks it; the error when it answers one."""
        number = next(self._ids)
        answer = yield self._ask("server/discover", number, {}, MODERN)
        try:
            self._understand(result_of(answer, number))
        except ClientError as error:
            return error
        return None

    def _understand(self, found: Mapping[str, Any]) -> None:
        versions, meta = found.get("supportedVersions"), found.get("_meta")
        if isinstance(versions, list) and MODERN in versions:
            self._settle(MODERN, meta.get(headers.SERVER_KEY) if isinstance(meta, dict) else None, found)

    def _initialize(self) -> RequestFlow[None]:
        number = next(self._ids)
        params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": self._client}
        answer = yield self._ask("initialize", number, params, None)
        result = result_of(answer, number)
        version = result.get("protocolVersion")
        if not isinstance(version, str) or version not in HANDSHAKES:
            spoken = one_line(str(version))
            raise NotMcp(f"the server offers protocol version {spoken}; this client speaks {MODERN} and {LEGACY}")
        self.session = _session_id(answer)
        self._settle(version, result.get("serverInfo"), result)
        yield HttpRequest(self.headers(), compact({"jsonrpc": "2.0", "method": "notifications/initialized"}))

    def _settle(self, version: str, server: object, found: Mapping[str, Any]) -> None:
        self.server = server if isinstance(server, dict) else {}
        declared = found.get("capabilities")
        self.capabilities = declared if isinstance(declared, dict) else {}
        self.instructions = str(found.get("instructions", ""))
        self.version = version

    def forget(self) -> None:
        """Let the next talk settle the era anew; the server does not know our session any more."""
        self.version = self.session = None

    # --- requests ---

    def _request(
        self, method: str, params: Mapping[str, Any], extra: Mapping[str, str] | None = None
    ) -> RequestFlow[tuple[Mapping[str, Any], HttpResponse]]:
        number = next(self._ids)
        answer = yield self._ask(method, number, params, self.version, extra)
        try:
            return result_of(answer, number), answer
        except ClientError as error:
            if self._is_over(error):
                self.forget()  # the next talk settles anew; this one is not repeated
            raise

    def _is_over(self, error: ClientError) -> bool:
        """True when the server does not know our session any more, or no longer speaks our revision."""
        gone = self.session is not None and error.status == 404
        return gone or (isinstance(error, PeerError) and error.code == UNSUPPORTED)

    def _ask(
        self,
        method: str,
        number: int,
        params: Mapping[str, Any],
        version: str | None,
        extra: Mapping[str, str] | None = None,
    ) -> HttpRequest:
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": number, "method": method}
        if version == MODERN:
            sent = self.headers() | {"MCP-Protocol-Version": MODERN, "Mcp-Method": method} | dict(extra or {})
            return HttpRequest(sent, compact(message | {"params": {**params, "_meta": self._envelope()}}))
        if params:
            message["params"] = params
        return HttpRequest(self.headers(), compact(message))

    def headers(self) -> dict[str, str]:
        """The headers of any request; both media types, as the specification demands of a client."""
        sent = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        if self.version is not None:
            sent["MCP-Protocol-Version"] = self.version
        if self.session is not None:
            sent[SESSION] = self.session
        return sent

    def _envelope(self) -> Mapping[str, Any]:
        return {headers.VERSION_KEY: MODERN, headers.CLIENT_KEY: self._client, headers.CAPABILITIES_KEY: {}}


def _session_id(answer: HttpResponse) -> str | None:
    """The session id in the answer to a handshake; None when there is none that a header could repeat."""
    given = answer.headers.get(SESSION.lower(), "")
    return given if given and given.isascii() and given.isprintable() else None


def _page(result: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    tools = result.get("tools")
    if not isinstance(tools, list) or not all(isinstance(t, dict) and isinstance(t.get("name"), str) for t in tools):
        raise NotMcp("the list of tools is malformed")
    return tools


def _offered(error: ClientError) -> Sequence[Any]:
    """The versions that a -32022 lists; empty for any other error."""
    if not isinstance(error, PeerError) or error.code != UNSUPPORTED or not isinstance(error.data, dict):
        return ()
    listed = error.data.get("supported")
    return listed if isinstance(listed, list) else ()


def _is_final(error: ClientError) -> bool:
    """True when `initialize` would fare no better: refused, an outage, or no revision in common."""
    if error.status in FINAL:
        return isinstance(error, (PeerRefused, PeerError))
    offered = _offered(error)
    return bool(offered) and HANDSHAKES.isdisjoint(str(version) for version in offered)
