"""One line of the decision table as data, and the check that compares the core with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mcpboard.protocol.messages import RequestHead
from tests.protocol.http_messages import UNSENT, RenderedReply
from tests.protocol.roles import DONE, POLICIES, Outcome, Role


@dataclass(frozen=True)
class Case:
    """One situation of the decision table and the answer that it wants.

    `code` is the JSON-RPC error code, None for a result or a plain refusal; `id` is what the
    answer echoes, UNSENT when it must have no id; `result` are members that the result holds at
    least; `says` is a part of the body; `outcome` is what a tool call comes to.
    """

    row: int
    phrase: str
    head: RequestHead
    body: bytes
    status: int
    code: int | None = None
    id: Any = 1
    policy: str = "board"
    says: str = ""
    data: Any = UNSENT
    result: Any = UNSENT
    headers: tuple[tuple[str, str], ...] = ()
    outcome: Outcome = DONE

    def check(self) -> None:
        """Post it to a fresh role and compare everything that the case names."""
        role = Role(POLICIES[self.policy], self.outcome)
        got = role.post(self.head, self.body)
        assert (got.status, got.code) == (self.status, self.code), got
        assert self.headers_in(got)
        assert not (self._is_refusal(got) and role.calls), "a refused call was left to the role"
        assert self.says in (got.body or b"").decode()
        if self.status in (202, 204):
            assert (got.body, got.headers) == (None, {})
        elif self.code is not None:
            self._check_error(got.json)
        elif self.status == 200:
            self._check_result(got.json)

    def _is_refusal(self, got: RenderedReply) -> bool:
        """True when the core itself said no, so that no tool may have run."""
        return self.outcome is DONE and (got.status != 200 or got.code is not None or b'"isError"' in (got.body or b""))

    def headers_in(self, got: RenderedReply) -> bool:
        """True when every header the case names is there, and no session id or CORS header otherwise."""
        names = {name.lower() for name in got.headers} - {name.lower() for name, _ in self.headers}
        stray = {name for name in names if name.startswith("access-control-") or name == "mcp-session-id"}
        return set(self.headers) <= set(got.headers.items()) and not stray

    def _check_error(self, answer: Any) -> None:
        assert answer["jsonrpc"] == "2.0"
        self._check_id(answer)
        assert isinstance(answer["error"]["message"], str)
        if self.data is UNSENT:
            assert "data" not in answer["error"] or self.code in (-32022, -32021)
        else:
            assert answer["error"]["data"] == self.data

    def _check_result(self, answer: Any) -> None:
        self._check_id(answer)
        if self.result is not UNSENT:
            found = {key: answer["result"].get(key, UNSENT) for key in self.result}
            assert found == self.result

    def _check_id(self, answer: Any) -> None:
        if self.id is UNSENT:
            assert "id" not in answer
        else:
            assert (answer["id"], type(answer["id"])) == (self.id, type(self.id))
