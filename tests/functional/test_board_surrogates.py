"""Half a surrogate pair in whatever the Agent says: every answer stays one that strict parsers read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support import rig
from tests.support.gohttp import Exchange, GoServer, tool_answer
from tests.support.http import Caller
from tests.support.visitors import CLIENTS, Visitor, visit

HALF, LOST = "a\ud83db", "a\ufffdb"
PICTURE = "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAMC"


def refusal(**members: Any) -> bytes:
    return tool_answer("", is_error=True, tool_error=members)


# What the Agent answers -> the tool that was called, and its arguments.
FOREIGN = [
    pytest.param(tool_answer(json.dumps({"ok": True, "text": HALF})), "bridge_clipboard", {"action": "read"}, id="clipboard"),
    pytest.param(tool_answer(json.dumps({HALF: {HALF: [HALF]}})), "bridge_clipboard", {"action": "read"}, id="names"),
    pytest.param(tool_answer(HALF), "shell", {"command": "ls"}, id="shell"),
    pytest.param(tool_answer(HALF + "x" * 300_000), "shell", {"command": "ls"}, id="shell, cut"),
    pytest.param(tool_answer(json.dumps({"app": HALF})), "open_app", {"app": "Notes"}, id="the name of an app"),
    pytest.param(tool_answer(HALF), "open_app", {"app": "Notes"}, id="plain text"),
    pytest.param(tool_answer(json.dumps({"ok": True, "data": PICTURE, "action_output": HALF})), "keyboard_tap", {"keys": ["enter"]}, id="a caption"),
    pytest.param(tool_answer(json.dumps({"data": HALF})), "screenshot", {}, id="instead of a picture"),
    pytest.param(refusal(message=HALF), "keyboard_tap", {"keys": ["enter"]}, id="the text of an error"),
    pytest.param(refusal(message="no", code=HALF, category=HALF, details={HALF: HALF}), "open_app", {"app": "Notes"}, id="code and details of an error"),
    pytest.param(json.dumps({"state": HALF}).encode(), "phone_bridge_status", {}, id="a status"),
    pytest.param(json.dumps([HALF]).encode(), "phone_bridge_status", {}, id="a body that makes no sense"),
    pytest.param(b'"a\xed\xa0\xbdb"', "phone_bridge_status", {}, id="half a pair as bytes"),
]  # fmt: skip


def entry(name: str, schema: Any) -> dict[str, Any]:
    return {"name": name, "description": HALF, "args_schema": schema}


CATALOG = {
    "tools": [
        entry(
            "open_app",
            {
                "type": "object",
                "description": HALF,
                "properties": {
                    "app": {"type": "string", "description": HALF, "enum": [HALF], "default": HALF, "examples": [HALF]}
                },
            },
        )
    ]
}


@pytest.fixture
def agent() -> Iterator[GoServer]:
    with GoServer(lambda went: went.reply(json.dumps(CATALOG).encode())) as running:
        yield running


@pytest.fixture
def client(agent: GoServer) -> Iterator[Caller]:
    with rig.in_front_of(agent.url, mcp_shell_enabled=True) as made:
        yield made


def answering(body: bytes) -> Callable[[Exchange], object]:
    return lambda went: went.reply(body)


def assert_readable(answer: Any) -> None:
    """As one parser after the other refuses what cannot be UTF-8."""
    text = json.dumps(answer, ensure_ascii=False)
    text.encode("utf-8")
    assert "\ufffd" in text or "\\ud83d" in text


@pytest.mark.parametrize(("body", "tool", "arguments"), FOREIGN)
def test_no_tool_passes_it_on(
    client: Caller, agent: GoServer, body: bytes, tool: str, arguments: dict[str, Any]
) -> None:
    agent.script = answering(body)
    assert_readable(client.call(tool, **arguments).result)


def test_no_live_schema_does(client: Caller) -> None:
    listed = client.ask("tools/list")
    assert_readable(listed)
    schema = next(tool["inputSchema"] for tool in listed["tools"] if tool["name"] == "open_app")
    assert schema["properties"]["app"]["enum"] == [LOST]
    refused = client.call("open_app", app=7)
    assert LOST in refused.text


@pytest.mark.parametrize("method", ["ping", "tools/list", "no/such/method", "tools/call"])
def test_an_id_comes_back_as_it_was_sent(client: Caller, method: str) -> None:
    """Whoever sent it looks for it, and can read it."""
    body = json.dumps({"jsonrpc": "2.0", "id": HALF, "method": method, "params": {"name": HALF}}).encode()
    assert client.send("POST", body).json["id"] == HALF


@pytest.mark.tools
def test_the_official_client_reads_every_answer(client: Caller, agent: GoServer) -> None:
    official = next(each for each in CLIENTS if str(each) == "Python mcp 2.3, as it comes")
    with visit(official, [client.url]) as visitor:
        assert_read(visitor, "tools/list")
        for case in FOREIGN:
            body, tool, arguments = case.values
            agent.script = answering(body)  # type: ignore[arg-type]
            assert_read(visitor, "tools/call", tool, arguments)


def assert_read(visitor: Visitor, *words: Any) -> None:
    seen = visitor.ask(*words)
    assert "error" not in seen
    assert_readable(seen)
