"""The host role as clients meet it, through a real socket: what it promises, one by one."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpboard.host.access import tokens
from mcpboard.host.access.owners import SHARED_TOKEN, principal_owner
from mcpboard.host.devices import status
from mcpboard.host.devices.manager import DeviceManager
from mcpboard.host.drivers.base import READY, Probe
from mcpboard.protocol.headers import CAPABILITIES_KEY, CLIENT_KEY, VERSION_KEY
from tests.host.rig import CLOUD_OWNER, Agent, Fake, agent, result, threads
from tests.support.http import LEGACY, LIMIT_S, MODERN, Caller, Response

# The tools that lease their device, with the arguments that they need.
LEASING: dict[str, dict[str, Any]] = {
    "take_screenshot": {}, "tap": {"x": 1, "y": 2}, "swipe": {"start_x": 1, "start_y": 2, "end_x": 3, "end_y": 4}, "input_text": {"text": "hello"},
    "launch_app": {"app_id": "Settings"}, "find_text": {"query": "Settings"}, "find_icon": {"name": "gear"}, "get_ui_tree": {}, "describe_screen": {},
}  # fmt: skip


@pytest.fixture
def phone() -> Fake:
    return Fake()


@pytest.fixture
def host(tmp_path: Path, phone: Fake) -> Iterator[Agent]:
    with agent(tmp_path / "data", X=phone) as started:
        yield started


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Agent]:
    with agent(tmp_path / "data", X=Fake(), Y=Fake()) as started:
        yield started


# --- the tools ---------------------------------------------------------------------------------

PARAMETERS = {
    "take_screenshot": "device_id?", "tap": "x, y, device_id?", "swipe": "start_x, start_y, end_x, end_y, duration_ms?, device_id?",
    "input_text": "text, device_id?", "launch_app": "app_id, device_id?", "find_text": "query, device_id?", "find_icon": "name, device_id?",
    "get_ui_tree": "device_id?, include_app_info?", "describe_screen": "device_id?", "list_devices": "", "device_status": "device_id",
}  # fmt: skip


def test_the_eleven_tools_are_listed_with_their_arguments(host: Agent) -> None:
    tools = host.caller.modern().post("tools/list").result["tools"]
    assert [tool["name"] for tool in tools] == list(PARAMETERS)
    for tool in tools:
        assert ("60 seconds" in tool["description"]) == (tool["name"] in LEASING)
        schema = tool["inputSchema"]
        wanted = {name for name in PARAMETERS[tool["name"]].split(", ") if name}
        own = {name + ("" if name in schema.get("required", []) else "?") for name in schema["properties"]}
        assert own - {"session_id?"} == wanted
        assert ("session_id?" in own) == (tool["name"] in LEASING)


@pytest.mark.parametrize("version", [LEGACY, MODERN])
def test_each_of_the_nine_works_in_both_revisions_and_takes_the_device(host: Agent, version: str) -> None:
    for tool, arguments in LEASING.items():
        caller = host.caller.modern() if version == MODERN else host.caller.open()
        assert caller.call(tool, **arguments, device_id="X").result.get("isError") is None
        (owner,) = host.role.manager.leases().values()
        assert owner.label.startswith("mcp_session:")
        host.role.manager.release("X")


def test_a_screenshot_is_an_image_and_its_size(host: Agent) -> None:
    image, text = host.caller.call("take_screenshot").result["content"]
    assert image == {"type": "image", "data": "cGljdHVyZQ==", "mimeType": "image/png"}
    assert text["text"] == "100x200 X"


def test_looking_at_devices_takes_none(host: Agent) -> None:
    """list_devices and device_status need no lease, and work for who was turned away."""
    first, second = host.caller.open(), host.caller.open()
    first.call("tap", x=1, y=2)
    host.clock.pass_by(5)
    listed = second.call("list_devices")
    entry = {"id": "X", "kind": "fake", "state": "ready", "held_by": f"mcp_session:{str(first.session)[:8]}"}
    assert json.loads(listed.text) == [{**entry, "idle_s": 5.0}]
    assert listed.result["structuredContent"] == {"devices": json.loads(listed.text)}
    status = second.call("device_status", device_id="X").result["structuredContent"]
    assert status == {"battery": 80, **entry, "idle_s": 5.0, "free_in_s": 55}
    assert list(host.role.manager.leases()) == ["X"]


NUMBERS = [
    ({"x": "12", "y": "34.0"}, (12, 34), ""),
    ({"x": 12.0, "y": 34}, (12, 34), ""),
    ({"x": 12.4, "y": 34.6}, (12, 35), "\nx was rounded from 12.4 to 12. y was rounded from 34.6 to 35."),
    ({"x": 0, "y": 0}, (0, 0), ""),
    ({"x": 99, "y": 199}, (99, 199), ""),
    ({"x": 99, "y": 199, "device_id": None, "session_id": None}, (99, 199), ""),
]


@pytest.mark.parametrize(("arguments", "done", "note"), NUMBERS)
def test_numbers_come_in_many_spellings(host: Agent, phone: Fake, arguments: Any, done: Any, note: str) -> None:
    assert host.caller.call("tap", **arguments).text == f"tapped {done[0]},{done[1]} on X{note}"
    assert phone.done == [("tap", done)]


FAULTS = [
    ("tap", {"x": 1}, "argument y is missing"),
    ("tap", {"x": "left", "y": 1}, "argument x must be a finite number"),
    ("tap", {"x": None, "y": 1}, "argument x must be a finite number"),
    ("tap", {"x": 100, "y": 1}, "argument x = 100 is outside the screenshot: it has 0 to 99"),
    ("tap", {"x": 1, "y": 199.6}, "argument y = 200 is outside"),
    ("tap", {"x": -1, "y": 1}, "argument x = -1 is outside"),
    ("tap", {"x": 10**400, "y": 1}, "argument x = 1000"),
    ("swipe", {**LEASING["swipe"], "end_y": 500}, "end_y = 500 is"),
    ("swipe", {**LEASING["swipe"], "duration_ms": 0}, "1 to 10000 milliseconds"),
    ("swipe", {**LEASING["swipe"], "duration_ms": 1.5}, "must be a whole number"),
    ("input_text", {"text": ""}, "text must not be empty"),
    ("find_text", {"query": "x" * 501}, "query is longer than 500 characters"),
    ("launch_app", {"app_id": " "}, "app_id must not be empty"),
    ("tap", {"x": 1, "y": 1, "device_id": 7}, "device_id must be text"),
    ("device_status", {}, "device_id is missing"),
    ("rub", {}, "unknown tool: rub"),
]


@pytest.mark.parametrize(("tool", "arguments", "message"), FAULTS, ids=[row[2] for row in FAULTS])
def test_a_fault_in_the_arguments_is_32602_and_nothing_is_done(
    host: Agent, phone: Fake, tool: str, arguments: Any, message: str
) -> None:
    response = host.caller.call(tool, **arguments)
    assert (response.status, response.error["code"]) == (200, -32602)
    assert message in response.error["message"]
    assert phone.done == []


# --- which device ------------------------------------------------------------------------------


def test_a_device_is_never_guessed(pair: Agent) -> None:
    """The only device, else the only one held, else -32602 that lists them; an unknown one is -32602 to the letter."""
    caller = pair.caller.open()
    needed = {"code": -32602, "message": "device_id is needed, one of: X, Y"}
    assert caller.call("tap", x=1, y=1).error == needed
    caller.call("tap", x=1, y=1, device_id="Y")
    assert caller.call("tap", x=1, y=1).text == "tapped 1,1 on Y"
    assert pair.caller.open().call("tap", x=1, y=1).error == needed
    caller.call("tap", x=1, y=1, device_id="X")
    assert caller.call("tap", x=1, y=1).error == needed
    for tool in (*LEASING, "device_status"):
        response = caller.call(tool, **LEASING.get(tool, {}), device_id="Z")
        assert (response.status, response.error) == (200, {"code": -32602, "message": "unknown device: Z"})
    for device in ("X", "Y"):
        pair.role.manager.remove(device)
    assert caller.call("list_devices").text == "[]"
    assert "add one with `devices add`" in caller.call("tap", x=1, y=1).error["message"]


# --- errors from tools -------------------------------------------------------------------------


@pytest.mark.parametrize("version", [LEGACY, MODERN])
def test_an_exception_of_a_tool_reaches_the_client_in_its_own_words(host: Agent, phone: Fake, version: str) -> None:
    """-32000 with the message of the original exception, else its name; of an action, with what may have become of it."""
    caller = host.caller.modern() if version == MODERN else host.caller.open()
    gif = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
    for fault, words in (
        *((OSError("adb: device offline"), "adb: device offline"), (RuntimeError(), "RuntimeError")),
        (OSError(f"seen {gif}"), "seen (GIF, 42 bytes, left out)"),
    ):
        phone.done, phone.fault = [], fault
        error = {"code": -32000, "message": f"{words}; look at the screen before repeating it"}
        response = caller.call("tap", x=1, y=1)
        assert (response.status, response.error) == (200, {**error, "data": {"delivery": "unknown"}})
        assert caller.call("get_ui_tree").error == {"code": -32000, "message": words}
        phone.fault = None
        assert caller.call("tap", x=1, y=1).text == "tapped 1,1 on X"
        assert [name for name, *_ in phone.done] == ["tap", "ui_tree", "tap"], "nothing was repeated"


def test_the_log_says_what_was_raised_and_where_but_not_its_message(
    host: Agent, phone: Fake, caplog: pytest.LogCaptureFixture
) -> None:
    phone.fault = ValueError("cannot type 'my secret diary'")
    message = host.caller.call("input_text", text="my secret diary").error["message"]
    assert message.startswith("cannot type 'my secret diary'; ")
    assert "input_text: ValueError in " in caplog.text
    assert "diary" not in caplog.text


def test_too_many_calls_at_once_are_refused_as_errors_of_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcpboard.host.MOST_CALLS", 0)
    with agent(tmp_path / "data", X=Fake()) as host:
        error = host.caller.call("tap", x=1, y=1).error
    assert (error["code"], error["data"]) == (-32000, {"delivery": "not_sent"})
    assert "are under way already" in error["message"]


def test_a_silent_device_delays_no_list_and_a_probe_that_fails_is_a_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every device is probed at the same time; one that does not answer is listed as such, and probed once."""
    monkeypatch.setattr(status, "LIMIT_SECONDS", 0.05)
    silent, failing, answered = Fake(), Fake(), threading.Event()
    asked: list[str] = []

    def wait() -> Probe:
        asked.append("silent")
        assert answered.wait(LIMIT_S)
        return Probe(READY)

    def fail() -> Probe:
        raise OSError("adb: no such device")

    monkeypatch.setattr(silent, "probe", wait)
    monkeypatch.setattr(failing, "probe", fail)
    with agent(tmp_path / "data", X=silent, Y=Fake(), Z=failing) as host:
        for _ in range(2):
            listed = json.loads(host.caller.call("list_devices").text)
            assert [each["state"] for each in listed] == ["no answer", "ready", "failing"]
        assert (
            host.caller.call("device_status", device_id="Z").result["structuredContent"]["error"]
            == "adb: no such device"
        )
        assert asked == ["silent"]
        answered.set()


# --- leases ------------------------------------------------------------------------------------


def busy(response: Any) -> str:
    """The label of the owner; the response has to be a busy error."""
    assert (response.status, response.error["code"]) == (200, -32000), response
    return str(response.error["data"]["busy_owner"])


def test_two_legacy_sessions_exclude_each_other(host: Agent, phone: Fake) -> None:
    """A lease is of one device and one session; `data.busy_owner` = "mcp_session:<prefix>"."""
    first, second = host.caller.open(), host.caller.open()
    first.call("tap", x=1, y=1)
    refused = second.call("tap", x=1, y=1)
    assert busy(refused) == f"mcp_session:{str(first.session)[:8]}"
    assert str(first.session) not in json.dumps(refused.json)
    assert refused.error["message"].startswith("device X is busy (held by MCP session ")
    assert first.call("describe_screen").text
    assert len(phone.done) == 2


def test_a_session_that_ends_lets_go(host: Agent) -> None:
    """An MCP session keeps its leases until it ends."""
    first, second = host.caller.open(), host.caller.open()
    first.call("tap", x=1, y=1)
    assert (first.end(), first.end()) == (204, 404)
    assert second.call("tap", x=1, y=1).text
    assert busy(host.caller.open().call("tap", x=1, y=1))


def test_a_minute_without_a_call_lets_go_and_so_does_the_operator(host: Agent) -> None:
    """60 seconds without a call on the device; the session itself lives on."""
    first, second = host.caller.open(), host.caller.open()
    first.call("tap", x=1, y=1)
    host.clock.pass_by(59)
    assert busy(second.call("tap", x=1, y=1))
    first.call("list_devices")  # no call on the device: it does not count
    host.clock.pass_by(1)
    assert second.call("tap", x=1, y=1).text
    assert busy(first.call("tap", x=1, y=1))
    host.role.manager.release("X")
    assert first.call("tap", x=1, y=1).text
    status = first.call("device_status", device_id="X").result["structuredContent"]
    assert status["last_hold"]["ended"] == "released by the operator"


def test_a_cloud_assignment_is_named_to_the_letter(host: Agent) -> None:
    """-32000, "device X is busy (held by cloud assignment)", data.busy_owner = "cloud_assignment"."""
    host.role.manager.run("X", CLOUD_OWNER, lambda driver: None)
    data = {"busy_owner": "cloud_assignment", "delivery": "not_sent"}
    message = "device X is busy (held by cloud assignment)"
    assert host.caller.call("tap", x=1, y=1).error == {"code": -32000, "message": message, "data": data}


def test_a_delete_under_a_call_lets_it_finish(host: Agent, phone: Fake) -> None:
    first, second = host.caller.open(), host.caller.open()
    phone.stop_inside()
    with threads() as pool:
        call = pool.submit(first.call, "tap", x=1, y=1)
        phone.wait_inside()
        assert first.end() == 204
        assert busy(second.call("tap", x=1, y=1))
        phone.go_on.set()
        assert result(call).text == "tapped 1,1 on X"
    assert second.call("tap", x=1, y=1).text
    assert phone.most_inside == 1


def test_a_session_that_ended_before_its_call_began_leases_nothing(host: Agent, phone: Fake) -> None:
    """The call was let in under a live session, which ended before the device was taken."""
    caller = host.caller.open()
    run = host.role.manager.run

    def late(*how: Any) -> Any:
        assert caller.end() == 204
        return run(*how)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(host.role.manager, "run", late)
        error = caller.call("tap", x=1, y=1).error
    assert (error["message"], error["data"]) == ("the session ended before the call began", {"delivery": "not_sent"})
    assert (phone.done, host.role.manager.leases()) == ([], {})


def test_ones_own_calls_are_never_busy(host: Agent, phone: Fake) -> None:
    """Five at once, then another tool."""
    caller = host.caller.open()
    with threads() as pool:
        for call in [pool.submit(caller.call, "tap", x=1, y=1) for _ in range(5)]:
            assert result(call).text == "tapped 1,1 on X"
    assert caller.call("get_ui_tree", include_app_info=True).result["structuredContent"]["app"] == {"id": "app"}
    assert phone.most_inside == 1


def test_one_session_leases_several_devices_and_another_the_rest(pair: Agent) -> None:
    first, second = pair.caller.open(), pair.caller.open()
    first.call("tap", x=1, y=1, device_id="X")
    assert second.call("tap", x=1, y=1, device_id="Y").text
    second.end()
    assert first.call("tap", x=1, y=1, device_id="Y").text
    assert set(pair.role.manager.leases().values()) == {pair.role.manager.leases()["X"]}


@pytest.mark.parametrize("version", [MODERN, None])
def test_a_stateless_client_is_not_busy_with_itself(host: Agent, version: str | None) -> None:
    for _ in range(2):
        assert Caller(host.url, host.caller.token, None, version).call("tap", x=1, y=1).text == "tapped 1,1 on X"


def test_two_named_tokens_exclude_each_other_in_the_modern_revision(host: Agent) -> None:
    ann, bob = (Caller(host.url, tokens.add_named(host.folder, name), None, MODERN) for name in ("ann", "bob"))
    assert ann.call("tap", x=1, y=1).text
    (owner,) = host.role.manager.leases().values()
    assert owner == principal_owner(str(host.role.tokens.authorize(f"Bearer {ann.token}")))
    assert busy(bob.call("tap", x=1, y=1)) == f"mcp_session:{owner.prefix}"
    assert (len(owner.prefix), owner.prefix in str(ann.token)) == (8, False), "no label is made of a token"
    tokens.remove_named(host.folder, "ann")
    assert ann.call("tap", x=1, y=1).status == 401
    assert bob.call("tap", x=1, y=1).text, "what a removed token held is free"


def test_a_new_session_id_is_in_the_result_and_kept_apart(host: Agent) -> None:
    caller = host.caller.modern()
    started = caller.call("tap", x=1, y=1, session_id="new")
    session_id = started.result["structuredContent"]["session_id"]
    assert session_id.startswith("hs_")
    assert started.text == f"tapped 1,1 on X\nsession_id: {session_id}"
    assert caller.call("tap", x=1, y=1, session_id=session_id).text == "tapped 1,1 on X"
    assert busy(caller.call("tap", x=1, y=1)) == f"mcp_session:{session_id[:8]}"
    assert busy(host.caller.open().call("tap", x=1, y=1)) == f"mcp_session:{session_id[:8]}"
    assert host.caller.open().call("tap", x=1, y=1, session_id=session_id).text, "it needs no session of its own"


def test_an_image_is_not_lost_for_a_session_id(host: Agent) -> None:
    response = host.caller.call("take_screenshot", session_id="new").result
    assert [block["type"] for block in response["content"]] == ["image", "text", "text"]
    assert response["content"][2]["text"].startswith("session_id: hs_")
    assert "structuredContent" not in response


def test_a_session_id_of_nobody_or_of_another_token_says_how_to_get_one(host: Agent) -> None:
    started = host.caller.call("tap", x=1, y=1, session_id="new").result["structuredContent"]["session_id"]
    other = Caller(host.url, tokens.add_named(host.folder, "other"))
    for caller, session_id in ((host.caller, "hs_unknown"), (host.caller, ""), (other, started)):
        error = caller.call("tap", x=1, y=1, session_id=session_id).error
        assert error["code"] == -32602
        assert 'call again with "session_id": "new"' in error["message"]
        assert started not in error["message"]


def test_a_session_id_that_came_to_nothing_is_forgotten(host: Agent, phone: Fake) -> None:
    """And leaves no lease that nobody knows."""
    phone.fault = OSError("offline")
    assert host.caller.call("tap", x=1, y=1, session_id="new").error["message"].startswith("offline")
    assert (host.role.owners.sessions(), host.role.manager.leases()) == ([], {})
    phone.fault = None
    first = host.caller.open()
    first.call("tap", x=1, y=1)
    assert busy(host.caller.call("tap", x=1, y=1, session_id="new"))
    assert [session.id for session in host.role.owners.sessions()] == [first.session]


def named(caller: Caller, client: str, tool: str, **arguments: Any) -> Response:
    """A call without a session, by a client that says who it is."""
    meta = {VERSION_KEY: MODERN, CAPABILITIES_KEY: {}, CLIENT_KEY: {"name": client, "version": "1"}}
    return caller.modern().post("tools/call", name=tool, arguments=arguments, _meta=meta)


def test_clients_that_share_a_token_are_named_with_the_remedy(tmp_path: Path) -> None:
    """For a minute; by the device that they have, in its status and on the dashboard; and no more than eight."""
    with agent(tmp_path, X=Fake(), Y=Fake()) as host:

        def told() -> list[str] | None:
            status = named(host.caller, "late", "device_status", device_id="X").result["structuredContent"]
            assert status.get("hint") == (SHARED_TOKEN if "clients_of_owner" in status else None)
            page = host.browser().get("/").text
            assert (SHARED_TOKEN in page) == ("clients_of_owner" in status)
            assert ", ".join(status.get("clients_of_owner", ["late 1"])) in page
            clients: list[str] | None = status.get("clients_of_owner")
            return clients

        named(host.caller, "late", "tap", x=1, y=1, device_id="X")
        assert told() is None
        named(host.caller, "early", "tap", x=1, y=1, device_id="X")
        host.caller.open().call("tap", x=1, y=1, device_id="Y")  # in a session of its own
        assert told() == ["early 1", "late 1"]
        host.clock.pass_by(30)
        named(host.caller, "late", "tap", x=1, y=1, device_id="X")
        host.clock.pass_by(31)
        assert told() is None
        for number in range(20):
            named(host.caller, f"c{number}", "list_devices")
        assert told() == [*(f"c{number} 1" for number in range(13, 20)), "late 1"]
        y = host.caller.call("device_status", device_id="Y").result["structuredContent"]
        assert "clients_of_owner" not in y


def test_hold_scope_token_makes_the_sessions_of_one_token_one_owner(tmp_path: Path) -> None:
    """The busy message names it for clients that open a session per call."""
    with agent(tmp_path / "data", X=Fake()) as host:
        host.caller.open().call("tap", x=1, y=1)
        assert 'set hold_scope = "token"' in host.caller.open().call("tap", x=1, y=1).error["message"]
    with agent(tmp_path / "data", hold_scope="token", X=Fake()) as host:
        host.caller.open().call("tap", x=1, y=1)
        assert host.caller.open().call("tap", x=1, y=1).text
        assert busy(Caller(host.url, tokens.add_named(host.folder, "other")).call("tap", x=1, y=1))


# --- sessions and versions ---------------------------------------------------------------------


@pytest.mark.parametrize("version", [LEGACY, "2025-06-18", "2025-03-26"])
def test_a_handshake_settles_on_what_the_sdk_asks_for_and_opens_a_session(host: Agent, version: str) -> None:
    """Python's mcp SDK from 1.20 on."""
    caller = host.caller.open(version)
    assert caller.session
    unknown = caller.post("foo")
    assert (unknown.status, unknown.error["code"]) == (200, -32601)
    assert caller.call("tap", x=1, y=1).text


def test_a_restart_ends_sessions_and_runs_nothing_under_a_dead_one(tmp_path: Path) -> None:
    """The old id is 404; a call without an id is served for the token."""
    with agent(tmp_path / "data", X=Fake()) as host:
        old = host.caller.open()
        old.call("tap", x=1, y=1)
    phone = Fake()
    with agent(tmp_path / "data", X=phone) as host:
        stale = Caller(host.url, old.token, old.session, old.version)
        for response in (stale.post("tools/list"), stale.call("tap", x=1, y=1)):
            assert (response.status, response.error["code"]) == (404, -32600)
        assert stale.end() == 404
        assert phone.done == []
        assert host.caller.call("tap", x=1, y=1).text
        stale.version = MODERN  # which knows no sessions: the dead id beside it is ignored
        assert stale.call("tap", x=1, y=1).text


# --- access ------------------------------------------------------------------------------------


def test_a_missing_or_wrong_token_is_401_to_the_letter(host: Agent, phone: Fake) -> None:
    """HTTP 401, {"error": "invalid token"}, WWW-Authenticate: Bearer; in the URL or a cookie it opens nothing."""
    secret = host.caller.token
    strangers = [Caller(host.url, wrong).call("tap", x=1, y=1) for wrong in (None, "", "wrong")]
    strangers.append(Caller(f"{host.url}?token={secret}").post("ping"))
    strangers.append(Caller(host.url).send("POST", b"{}", Cookie=f"token={secret}"))
    for response in strangers:
        assert (response.status, response.json) == (401, {"error": "invalid token"})
        assert response.headers["www-authenticate"] == "Bearer"
    assert phone.done == []


def test_the_sweep_outlives_what_fails_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("mcpboard.host.SWEEP_SECONDS", 0.001)
    failed, well = threading.Event(), threading.Event()

    def sweep(manager: DeviceManager) -> None:
        if not failed.is_set():
            failed.set()
            raise OSError("no space left")
        well.set()

    monkeypatch.setattr(DeviceManager, "sweep", sweep)
    with agent(tmp_path / "data"):
        assert well.wait(LIMIT_S)
    assert "no space left" in caplog.text


def test_neither_token_nor_session_nor_argument_is_ever_logged(
    host: Agent, phone: Fake, caplog: pytest.LogCaptureFixture
) -> None:
    """Every kind of response at DEBUG, then the log is searched for any eight characters in a row."""
    caplog.set_level(logging.DEBUG)
    caller = host.caller.open()
    secret_text = "my secret diary"
    caller.call("input_text", text=secret_text)
    started = caller.call("tap", x=1, y=1, session_id="new", device_id="X")
    assert busy(started)
    phone.fault = OSError("offline")
    caller.call("tap", x=1, y=1)
    Caller(host.url, "wrong-token-of-somebody").call("tap", x=1, y=1)
    caller.send("POST", b"{")
    caller.end()
    secrets = [str(caller.token), str(caller.session)[8:], secret_text, "wrong-token-of-somebody"]
    leaked = [each[at : at + 8] for each in secrets for at in range(len(each) - 7) if each[at : at + 8] in caplog.text]
    assert caplog.text
    assert leaked == []
