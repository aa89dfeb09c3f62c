"""The values of the endpoint: what comes in, what goes out, and what sets one role apart."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from mcpboard.errors import ProtocolError, ToolError
from mcpboard.protocol.headers import StandardHeaders
from mcpboard.protocol.jsonrpc import Id
from mcpboard.protocol.tools import Content, Part
from mcpboard.protocol.versions import RequestVersion

# What every post needs is a named tuple, because of all immutable classes they are the quickest to make.

# --- what comes in -------------------------------------------------------------------------


class RequestHead(NamedTuple):
    """The head of one HTTP request; None where a header is absent, raw text where it is not."""

    method: str
    host: str | None = None
    origin: str | None = None
    authorization: str | None = None
    content_type: str | None = None
    content_encoding: str | None = None
    content_length: int | None = None
    session: str | None = None  # Mcp-Session-Id
    standard: StandardHeaders = StandardHeaders()


class Admitted(NamedTuple):
    """A head that was let in, and whose it is."""

    head: RequestHead
    principal: str = ""


# --- what goes out -------------------------------------------------------------------------


class Reply(NamedTuple):
    """An HTTP response: parts in order, bytes as they are, sources as base64 on the way out."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    parts: Sequence[Part] = ()


def never() -> bool:
    """Return False, for a caller of whom nobody can say that it has hung up."""
    return False


class ToolCall(NamedTuple):
    """One tool call, checked and ready to run; it comes to Content or an error."""

    id: Id
    name: str
    arguments_json: bytes  # UTF-8, ready for a backend
    request_version: RequestVersion
    session: str | None  # the live legacy session it came in
    principal: str
    # True once the caller has hung up: whoever had to wait for a slot asks before the tool is started.
    gone: Callable[[], bool] = never
    client: str = ""  # name and version as the call itself gives them, for a role with sessions

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments, parsed again: parsed they may take thirty times the memory, for as long as the call runs."""
        return cast("Mapping[str, Any]", json.loads(self.arguments_json))


class ListTools(NamedTuple):
    """`tools/list`: the role may look for newer tools before it is answered."""

    id: Id
    request_version: RequestVersion


class OpenSession(NamedTuple):
    """A legacy `initialize` on a role with sessions: the role mints the id."""

    id: Id
    version: str
    client: str  # name and version as the client gives them, "" when it does not
    principal: str


class CloseSession(NamedTuple):
    """DELETE with a session id: the role ends the session and its leases."""

    session: str
    principal: str


Step = Reply | ToolCall | ListTools | OpenSession | CloseSession

Arrived = Callable[[], bool]  # True once the reply has reached the client


class Outcome(NamedTuple):
    """Result of a tool call, and a callback for what becomes of its reply.

    `on_delivered` is called once: with None for a reply that was not handed over whole, else with a
    function that tells from then on if the reply has arrived.
    """

    result: Content | ToolError | ProtocolError
    on_delivered: Callable[[Arrived | None], None] | None = None


# --- what a role decides -------------------------------------------------------------------


@dataclass(frozen=True)
class Policy:
    """Choices that set one role's endpoint apart from another's."""

    server: Mapping[str, str]  # serverInfo: name, title, version
    instructions: str
    disabled: str | None = None  # why MCP is disabled; None when it is enabled
    strict_meta: bool = False  # refuse modern traffic that has only the header and no envelope
    # Authorization header -> principal, None to refuse; everybody is let in when left out.
    authorize: Callable[[str | None], str | None] | None = None
    # True for a live session of this principal; left out by a role that mints none.
    knows_session: Callable[[str, str], bool] | None = None
    echoed_versions: frozenset[str] = frozenset()  # older versions that initialize echoes
    unknown_method_legacy: int = 404  # HTTP status; a role with sessions says 200
    # Bad arguments and failed tools are tool results; else -32602 and -32000.
    faults_as_results: bool = True
