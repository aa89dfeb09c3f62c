"""Two roles on the pure core: a board that only forwards, and a host with sessions, tokens and leases.

Neither has a socket, a clock or a thread: ids, times and tool outcomes are handed in by the tests.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from mcpboard.errors import InvalidParams, MissingCapability, ProtocolError, Refused, ToolError
from mcpboard.protocol import access
from mcpboard.protocol.endpoint import Endpoint
from mcpboard.protocol.messages import (
    CloseSession,
    ListTools,
    OpenSession,
    Policy,
    Reply,
    RequestHead,
    Step,
    ToolCall,
)
from mcpboard.protocol.sessions import Session, SessionBook
from mcpboard.protocol.tools import Content, Text, Tool, ToolList
from tests.protocol.http_messages import RenderedReply, render

POINT = {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}, "required": ["x", "y"]}
TOOLS = (
    Tool("status", "Status", "How things are.", {"type": "object", "properties": {}, "additionalProperties": False}, {"readOnlyHint": True}),
    Tool(
        "tap",
        "Tap",
        "Touch the screen once.",
        {
            "type": "object",
            "properties": {
                "x": {"type": "number", "description": "0 to 1000, left to right"},
                "y": {"type": "number"},
                "times": {"type": "integer"},
                "long": {"type": "boolean"},
                "label": {"type": "string"},
                "to": POINT,
                "path": {"type": "array"},
            },
            "required": ["x", "y"],
        },
        {"readOnlyHint": False},
    ),
    Tool("type", "Type", "Type text.", {"type": "object", "properties": {"text": {"type": "string"}}}),
)  # fmt: skip
TOOL_LIST = ToolList(TOOLS)
SERVER = {"name": "fixture", "title": "Fixture", "version": "1.2.3"}
OFF = "MCP is disabled on this board (mcp_enabled = false)"

PRINCIPALS = {b"token-a": "alice", b"token-b": "bob"}

BOARD = Policy(SERVER, "Look first.")
HOST = replace(
    BOARD,
    authorize=lambda sent: PRINCIPALS.get(access.bearer(sent) or b""),
    knows_session=lambda session, principal: (session, principal) == ("s-1", "alice"),
    echoed_versions=frozenset({"2025-06-18", "2025-03-26"}),
    unknown_method_legacy=200,
    faults_as_results=False,
)
ALICE, BOB = "Bearer token-a", "Bearer token-b"

POLICIES = {
    "board": BOARD,
    "board that is off": replace(BOARD, disabled=OFF),
    "board with strict_meta": replace(BOARD, strict_meta=True),
    "host": HOST,
}

Outcome = Content | ToolError | ProtocolError | None  # None: a bug of ours
DONE = Content((Text("done"),))


class Role:
    """An endpoint whose tools always come to `outcome`; `steps` keeps what was left to the role."""

    def __init__(self, policy: Policy, outcome: Outcome = DONE) -> None:
        self.endpoint = Endpoint(policy, TOOL_LIST)
        self.outcome = outcome
        self.steps: list[Step] = []

    def post(self, head: RequestHead, body: bytes = b"") -> RenderedReply:
        """Return what a client gets for this head and body."""
        try:
            admitted = self.endpoint.admit(head)
        except Refused as refused:
            return RenderedReply(refused.status, dict(refused.headers), json.dumps(refused.body).encode())
        self.steps.append(self.endpoint.receive(admitted, body))
        return render(self.finish(self.steps[-1]))

    @property
    def calls(self) -> list[ToolCall]:
        """The tool calls that were left to the role."""
        return [step for step in self.steps if isinstance(step, ToolCall)]

    def finish(self, step: Step) -> Reply:
        """The reply that ends `step`."""
        if isinstance(step, ToolCall):
            return self._ran(step)
        if isinstance(step, ListTools):
            return self.endpoint.listed(step)
        if isinstance(step, OpenSession):
            return self.endpoint.opened(step, self.mint(step))
        if isinstance(step, CloseSession):
            self.close(step)
            return self.endpoint.closed()
        return step

    def _ran(self, call: ToolCall) -> Reply:
        outcome = self.run(call)
        return self.endpoint.crashed(call.id) if outcome is None else self.endpoint.reply(call, outcome)

    def run(self, call: ToolCall) -> Outcome:
        return self.outcome

    def mint(self, step: OpenSession) -> str:
        return "minted"

    def close(self, step: CloseSession) -> None:
        """Nothing is held by a role that only answers."""


class DeviceBusy(ProtocolError):
    """Another owner has a lease on the device."""

    code = -32000


class ToolFault(ProtocolError):
    """Anything that was raised inside a tool of the host."""

    code = -32000


class HostRole(Role):
    """The second role in small: one phone, leased by whoever touched it first.

    Session ids come from `ids`, the time is `now`; the lease ends with its session.
    """

    def __init__(self, ids: Iterable[str] = ("11111111-a", "22222222-b", "33333333-c")) -> None:
        super().__init__(replace(HOST, knows_session=self.knows))
        self.ids = iter(ids)
        self.now = 0.0
        self.book = SessionBook()
        self.owner: str | None = None

    def knows(self, session_id: str, principal: str) -> bool:
        found = self.book.find(session_id, self.now)
        return found is not None and found.principal == principal

    def mint(self, step: OpenSession) -> str:
        session_id = next(self.ids)
        self.book.add(Session(session_id, step.version, step.principal, step.client, self.now, self.now))
        return session_id

    def close(self, step: CloseSession) -> None:
        self.book.end(step.session)
        if self.owner == step.session:
            self.owner = None

    def run(self, call: ToolCall) -> Outcome:
        """One tool call; what the tools raise becomes an error with the text that the host gives."""
        try:
            return self._tap(call) if call.name == "tap" else self._status(call)
        except ProtocolError as error:
            return error
        except OSError as error:
            return ToolFault(str(error))

    def _status(self, call: ToolCall) -> Content:
        if "sampling" not in call.request_version.capabilities:
            raise MissingCapability("sampling")
        return DONE

    def _tap(self, call: ToolCall) -> Content:
        label: Any = call.arguments.get("label", "phone")
        if label == "offline":
            raise OSError("adb: device offline")
        if label != "phone":
            raise InvalidParams(f"unknown device: {label}")
        self._lease(call.session or call.principal)
        return DONE

    def _lease(self, owner: str) -> None:
        if self.owner not in (None, owner):
            prefix = f"mcp_session:{str(self.owner)[:8]}"
            raise DeviceBusy(f"device phone is busy (held by {prefix})", data={"busy_owner": prefix})
        self.owner = owner
