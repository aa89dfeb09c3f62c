"""The nouns of the endpoint: what comes in, what comes out, and what sets one role apart."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mcpboard.errors import ProtocolError, ToolError
from mcpboard.protocol.headers import StandardHeaders
from mcpboard.protocol.jsonrpc import Id
from mcpboard.protocol.tools import Content, Part, Tool, compact
from mcpboard.protocol.versions import RequestVersion

# What every post needs is a named tuple: of the kinds that cannot change the quickest to make.

# --- what comes in -------------------------------------------------------------------------


class RequestHead(NamedTuple):
    """The head of one HTTP request; None where a header is absent, raw text where it is not."""

    method: str
    path: str
    host: str | None = None
    origin: str | None = None
    authorization: str | None = None
    content_type: str | None = None
    content_encoding: str | None = None
    content_length: int | None = None
    session: str | None = None  # Mcp-Session-Id
    standard: StandardHeaders = StandardHeaders()


class Admitted(NamedTuple):
    """A head that passed the gates; `page` is true for a path that is not MCP at all."""

    head: RequestHead
    principal: str = ""
    page: bool = False


@dataclass(frozen=True)
class PageRequest:
    """What a page of a role may look at besides the head; the endpoint sees no cookie and no form."""

    head: RequestHead
    cookie: str | None = field(default=None, repr=False)
    body: bytes = field(default=b"", repr=False)


# --- what comes out ------------------------------------------------------------------------


class Reply(NamedTuple):
    """An HTTP answer: parts in order, bytes as they are, sources as base64 on the way out."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    parts: Sequence[Part] = ()


def _never() -> bool:
    return False


class ToolCall(NamedTuple):
    """One tool call, checked and ready to run; the role answers with Content or an error."""

    id: Id
    name: str
    arguments: Mapping[str, Any]
    arguments_json: bytes  # the same as UTF-8 JSON, ready for a backend
    request_version: RequestVersion
    session: str | None  # the live legacy session it came in
    principal: str
    # True once the caller has hung up: what has to wait looks again before it begins (row 88).
    gone: Callable[[], bool] = _never

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What the client declared with this request."""
        return self.request_version.capabilities


class ListTools(NamedTuple):
    """`tools/list`: the role may look for newer tools before it is answered."""

    id: Id
    request_version: RequestVersion


@dataclass(frozen=True)
class OpenSession:
    """A legacy `initialize` on a role with sessions: the role mints the id."""

    id: Id
    version: str
    client: str  # name and version as the client gives them, "" when it does not
    principal: str


@dataclass(frozen=True)
class CloseSession:
    """DELETE with a session id: the role ends it and its holds."""

    session: str
    principal: str


Step = Reply | ToolCall | ListTools | OpenSession | CloseSession


Arrived = Callable[[], bool]


@dataclass(frozen=True)
class Outcome:
    """What a tool call came to, and who wants to know what becomes of its reply.

    `on_delivered` is called once: with None for a reply that was not handed over whole, else with a way to
    ask, from then on, whether it has arrived.
    """

    result: Content | ToolError | ProtocolError
    on_delivered: Callable[[Arrived | None], None] | None = None


# --- what a role decides -------------------------------------------------------------------


class ToolList:
    """The tools of the moment, with their `tools/list` result already written as bytes."""

    def __init__(self, tools: Sequence[Tool], ttl_ms: int = 60_000) -> None:
        self.tools = {tool.name: tool for tool in tools}
        listed = [tool.listed() for tool in tools]
        self.result = compact({"tools": listed, "ttlMs": ttl_ms, "cacheScope": "private"})[1:-1]

    def acts(self, name: str) -> bool:
        """True for a tool that changes something, so that its errors owe a word on what became of it."""
        tool = self.tools.get(name)
        return tool is not None and not tool.annotations.get("readOnlyHint", False)


@dataclass(frozen=True)
class Policy:
    """What sets one role's endpoint apart from another's."""

    server: Mapping[str, str]  # serverInfo: name, title, version
    instructions: str
    disabled: str | None = None  # why MCP is switched off; None when it is on
    strict_meta: bool = False  # refuse header-only modern traffic (rows 40, 51)
    pages: Container[str] = frozenset()  # paths of the role that are not MCP
    # Authorization header -> who that is, None to refuse; no gate at all when left out.
    authorize: Callable[[str | None], str | None] | None = None
    # True for a live session of this principal; left out by a role that mints none.
    knows_session: Callable[[str, str], bool] | None = None
    echoed_versions: frozenset[str] = frozenset()  # older versions that initialize echoes (row 59)
    unknown_method_legacy: int = 404  # HTTP status; a role with sessions says 200 (row 69)
    # Bad arguments and failed tools are tool results; else -32602 (row 75) and -32000 (row 80).
    faults_as_results: bool = True

    @property
    def sessions(self) -> bool:
        return self.knows_session is not None
