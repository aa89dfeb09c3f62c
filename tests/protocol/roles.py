"""Roles on the pure core, with no socket, clock or thread, and one situation of the decision table as data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from mcpboard.errors import ProtocolError, Refused, ToolError
from mcpboard.protocol import access
from mcpboard.protocol.endpoint import Endpoint
from mcpboard.protocol.messages import CloseSession, ListTools, OpenSession, Policy, Reply, RequestHead, Step, ToolCall
from mcpboard.protocol.tools import Content, Text, Tool, ToolList
from tests.protocol.http_messages import UNSENT, RenderedReply, head, message, render

POINT = {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}, "required": ["x", "y"]}
TAPPED = {
    "x": {"type": "number", "description": "0 to 1000, left to right"},
    "y": {"type": "number"},
    "times": {"type": "integer"},
    "long": {"type": "boolean"},
    "label": {"type": "string"},
    "to": POINT,
}
TOOLS = (
    Tool("status", "Status", "How things are.", {"type": "object", "properties": {}, "additionalProperties": False}, {"readOnlyHint": True}),
    Tool("tap", "Tap", "Touch the screen once.", {**POINT, "properties": TAPPED}, {"readOnlyHint": False}),
)  # fmt: skip
TOOL_LIST = ToolList(TOOLS)
SERVER = {"name": "fixture", "title": "Fixture", "version": "1.2.3"}
OFF = "MCP is disabled on this board (mcp_enabled = false)"
PRINCIPALS = {b"token-a": "alice", b"token-b": "bob"}
ALICE, BOB = "Bearer token-a", "Bearer token-b"

BOARD = Policy(SERVER, "Look first.")
HOST = replace(
    BOARD,
    authorize=lambda sent: PRINCIPALS.get(access.bearer(sent) or b""),
    knows_session=lambda session, principal: (session, principal) == ("s-1", "alice"),
    echoed_versions=frozenset({"2025-06-18", "2025-03-26"}),
    unknown_method_legacy=200,
    faults_as_results=False,
)
STRICT = replace(BOARD, strict_meta=True)
DISABLED = replace(BOARD, disabled=OFF)

Outcome = Content | ToolError | ProtocolError | None  # None: a bug of ours
DONE = Content((Text("done"),))


class Role:
    """An endpoint whose tools always come to `outcome`; `steps` keeps what was left to the role."""

    def __init__(self, policy: Policy, outcome: Outcome = DONE, tools: ToolList = TOOL_LIST) -> None:
        self.endpoint = Endpoint(policy, tools)
        self.outcome = outcome
        self.steps: list[Step] = []

    def post(self, head: RequestHead, body: bytes = b"") -> RenderedReply:
        """Return what a client gets for this head and body."""
        try:
            admitted = access.admit(self.endpoint.policy, head)
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
            return self.endpoint.crashed(step.id) if self.outcome is None else self.endpoint.reply(step, self.outcome)
        if isinstance(step, ListTools):
            return self.endpoint.listed(step)
        if isinstance(step, OpenSession):
            return self.endpoint.opened(step, "minted")
        return self.endpoint.closed() if isinstance(step, CloseSession) else step


@dataclass(frozen=True)
class Case:
    """One situation of the decision table and the answer that it wants.

    `code` is the JSON-RPC error code, None for a result or a plain refusal; `id` is what the
    """

    row: int
    phrase: str
    head: RequestHead = head()
    body: bytes = message("ping")
    status: int = 200
    code: int | None = None
    policy: Policy = BOARD
    id: Any = 1
    says: str = ""
    data: Any = UNSENT
    exact: bytes | None = None
    result: Any = UNSENT
    headers: Sequence[tuple[str, str]] = ()
    outcome: Outcome = DONE

    def check(self) -> None:
        """Post it to a fresh role and compare everything that the case names."""
        role = Role(self.policy, self.outcome)
        got = role.post(self.head, self.body)
        assert (got.status, got.code) == (self.status, self.code), got
        assert self.says in (got.body or b"").decode()
        stray = {name.lower() for name in got.headers} - {name.lower() for name, _ in self.headers}
        assert set(self.headers) <= set(got.headers.items())
        assert not [name for name in stray if name.startswith("access-control-") or name == "mcp-session-id"]
        # Where the core itself said no, no tool may have run.
        refused = got.status != 200 or got.code is not None or b'"isError"' in (got.body or b"")
        assert not (refused and self.outcome is DONE and role.calls), "a refused call was left to the role"
        if self.exact is not None:
            assert got.body == b'{"jsonrpc":"2.0","id":1,"result":{' + self.exact + b"}}"
        if self.status in (202, 204):
            assert (got.body, got.headers) == (None, {})
        elif self.code is not None or self.status == 200:
            self._check_answer(got.json)

    def _check_answer(self, answer: Any) -> None:
        assert answer["jsonrpc"] == "2.0"
        assert repr(answer.get("id", UNSENT)) == repr(self.id)  # of the same type, too
        if self.code is None:
            if self.result is not UNSENT:
                assert {key: answer["result"].get(key, UNSENT) for key in self.result} == self.result
            return
        assert len(answer["error"]["message"]) < 250, "whatever was sent, the message about it is short"
        if self.data is UNSENT:
            assert "data" not in answer["error"] or self.code in (-32022, -32021)
        else:
            assert answer["error"]["data"] == self.data
