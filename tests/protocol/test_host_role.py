"""The second role on the same core: sessions, principals, leases and errors from tools, with no socket."""

from __future__ import annotations

from typing import Any

import pytest

from mcpboard.protocol.sessions import KEEP_SECONDS
from mcpboard.protocol.versions import LEGACY, MODERN
from tests.protocol.http_messages import RenderedReply, enveloped, head, message, meta, modern
from tests.protocol.roles import ALICE, BOB, HostRole

FIRST, SECOND = "11111111-a", "22222222-b"


def opened(role: HostRole, who: str = ALICE, version: str = LEGACY) -> str:
    """The id of a session that `who` has just opened."""
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "sdk", "version": "1.30"}}
    got = role.post(head(authorization=who), message("initialize", params))
    assert (got.status, got.result["protocolVersion"]) == (200, version)
    return got.headers["Mcp-Session-Id"]


def tapped(role: HostRole, session: str | None = None, who: str = ALICE, **arguments: Any) -> RenderedReply:
    """A tap in the legacy revision."""
    params = {"name": "tap", "arguments": {"x": 1, "y": 2, **arguments}}
    return role.post(head(LEGACY, session=session, authorization=who), message("tools/call", params))


def ended(role: HostRole, session: str, who: str = ALICE) -> int:
    return role.post(head(http="DELETE", session=session, authorization=who)).status


# --- sessions ------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [LEGACY, "2025-06-18", "2025-03-26", MODERN])
def test_a_handshake_mints_the_id_that_the_role_hands_in(version: str) -> None:
    role = HostRole()
    assert opened(role, version=version) == FIRST
    (session,) = role.book.all()
    assert (session.principal, session.client, session.version) == ("alice", "sdk 1.30", version)


def test_a_session_lives_from_its_handshake_to_its_delete() -> None:
    role = HostRole()
    session = opened(role)
    assert role.post(head(LEGACY, session=session, authorization=ALICE), message("ping")).status == 200
    assert ended(role, session) == 204
    assert ended(role, session) == 404
    got = role.post(head(LEGACY, session=session, authorization=ALICE), message("tools/list", id="x"))
    assert (got.status, got.code, got.json["id"]) == (404, -32600, "x")


def test_a_session_ends_by_itself_after_a_day_without_use() -> None:
    role = HostRole()
    session = opened(role)
    role.now = KEEP_SECONDS
    assert tapped(role, session).status == 200
    role.now = 2 * KEEP_SECONDS + 1
    assert tapped(role, session).status == 404


def test_a_stale_id_on_a_handshake_gives_a_new_session() -> None:
    role = HostRole()
    params = {"protocolVersion": LEGACY}
    got = role.post(head(authorization=ALICE, session="stale"), message("initialize", params))
    assert (got.status, got.headers["Mcp-Session-Id"]) == (200, FIRST)


def test_a_session_is_no_credential() -> None:
    """Neither without a token nor under another principal's."""
    role = HostRole()
    session = opened(role)
    assert role.post(head(LEGACY, session=session), message("ping")).status == 401
    assert tapped(role, session, BOB).status == 404
    assert ended(role, session, BOB) == 404
    assert tapped(role, session).status == 200


def test_a_restart_forgets_sessions_and_runs_nothing_under_a_dead_one() -> None:
    session = opened(HostRole())
    role = HostRole()
    assert (tapped(role, session).status, role.calls) == (404, [])


def test_no_answer_but_the_handshakes_carries_a_session_id() -> None:
    role = HostRole()
    session = opened(role)
    assert "Mcp-Session-Id" not in tapped(role, session).headers
    assert "Mcp-Session-Id" not in role.post(head(authorization=ALICE), message("server/discover")).headers


def test_modern_traffic_knows_no_sessions() -> None:
    """A dead id beside the modern header is ignored, and a modern handshake mints nothing."""
    role = HostRole()
    body = enveloped("tools/call", name="tap", arguments={"x": 1, "y": 2})
    assert role.post(modern("tools/call", "tap", authorization=ALICE, session="dead"), body).status == 200
    assert role.owner == "alice"
    got = role.post(modern("initialize", authorization=ALICE), message("initialize", {"protocolVersion": MODERN}))
    assert (got.status, "Mcp-Session-Id" in got.headers, len(role.book.all())) == (200, False, 0)


def test_discover_then_a_handshake_then_a_modern_call_on_one_connection() -> None:
    """The revision is decided by each request alone."""
    role = HostRole()
    assert role.post(modern("server/discover", authorization=ALICE), enveloped("server/discover")).status == 200
    session = opened(role)
    assert role.post(head(LEGACY, session=session, authorization=ALICE), message("tools/list")).status == 200
    assert role.post(modern("tools/list", authorization=ALICE), enveloped("tools/list")).status == 200
    assert role.post(head(LEGACY, session=session, authorization=ALICE), message("tools/list")).status == 200


# --- the order of refusals --------------------------------------------------------

ROGUE = {"origin": "http://evil.example"}
BAD = "Bearer wrong"
ORDER = [
    pytest.param(head(session="dead", authorization=ALICE), message("ping"), 404, id="a good token and a dead session"),
    pytest.param(head(session="dead", authorization=BAD), message("ping"), 401, id="a bad token and a dead session"),
    pytest.param(head(authorization=BAD, **ROGUE), message("ping"), 403, id="a bad token and a bad Origin"),
    pytest.param(head(authorization=BAD), b"{", 401, id="a bad token and broken JSON"),
    pytest.param(head(http="GET", authorization=BAD), b"", 405, id="a bad token and GET"),
    pytest.param(head(http="OPTIONS", authorization=BAD), b"", 405, id="a bad token and OPTIONS"),
    pytest.param(head(http="GET", authorization=BAD, **ROGUE), b"", 403, id="a bad token, GET and a bad Origin"),
    pytest.param(head(http="DELETE", authorization=BAD, session="dead"), b"", 401, id="a bad token and DELETE"),
    pytest.param(head(http="DELETE", authorization=ALICE, session="dead"), b"", 404, id="DELETE of a dead session"),
    pytest.param(head(authorization=BAD, content_length=1 << 30), b"", 401, id="a bad token and a huge body"),
    pytest.param(head(authorization=BAD, content_type="text/plain"), b"", 401, id="a bad token and another media type"),
    pytest.param(head(session="dead", authorization=ALICE), b"{", 404, id="a dead session and broken JSON"),
    pytest.param(head(session="dead", authorization=ALICE), b"[]", 404, id="a dead session and a batch"),
    pytest.param(head(session="dead", authorization=ALICE), b"{}", 404, id="a dead session and an empty object"),
    pytest.param(head("2099-01-01", session="dead", authorization=ALICE), message("x"), 404, id="a dead session and a version"),
    pytest.param(head(authorization=ALICE), b"{", 400, id="no session and broken JSON"),
    pytest.param(head("2099-01-01", authorization=ALICE), message("x"), 400, id="no session and an unknown version"),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "body", "status"), ORDER)
def test_the_first_gate_that_is_shut_answers(sent: Any, body: bytes, status: int) -> None:
    assert HostRole().post(sent, body).status == status


# --- errors from tools ---------------------------------------------------------------------


def test_the_first_session_to_touch_the_device_holds_it() -> None:
    role = HostRole()
    first, second = opened(role), opened(role, BOB)
    assert tapped(role, first).status == 200
    assert tapped(role, first).code is None
    got = tapped(role, second, BOB)
    assert (got.status, got.code) == (200, -32000)
    assert got.json["error"]["data"] == {"busy_owner": "mcp_session:11111111"}
    assert first not in got.json["error"]["message"]
    assert ended(role, first) == 204
    assert tapped(role, second, BOB).code is None


def test_without_a_session_the_principal_holds() -> None:
    role = HostRole()
    assert tapped(role).code is None
    assert role.owner == "alice"
    assert tapped(role, who=BOB).code == -32000


@pytest.mark.parametrize("make_head", [head, modern], ids=["legacy", "modern"])
def test_an_unknown_device_and_a_fault_inside_a_tool_are_json_rpc_errors(make_head: Any) -> None:
    role = HostRole()
    for label, code, text in (("ghost", -32602, "unknown device: ghost"), ("offline", -32000, "adb: device offline")):
        params = {"name": "tap", "arguments": {"x": 1, "y": 2, "label": label}}
        got = role.post(make_head(authorization=ALICE), message("tools/call", params, id=label))
        assert (got.status, got.json["id"]) == (200, label)
        assert got.json["error"] == {"code": code, "message": text}


def test_a_capability_that_a_tool_needs_is_asked_for_by_name() -> None:
    role = HostRole()
    sent = modern("tools/call", "status", authorization=ALICE)
    got = role.post(sent, enveloped("tools/call", name="status", id=9))
    assert (got.status, got.code, got.json["id"]) == (400, -32021, 9)
    assert got.json["error"]["data"] == {"requiredCapabilities": {"sampling": {}}}
    assert role.post(sent, enveloped("tools/call", meta(capabilities={"sampling": {}}), name="status")).code is None
