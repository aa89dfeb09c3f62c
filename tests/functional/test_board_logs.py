"""The log of a call at its most talkative: one line, and nothing that was typed, sent or shown."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest

from mcpboard.simulator import Simulator
from tests.support import gohttp, rig
from tests.support.gohttp import Exchange, GoServer, tool_answer
from tests.support.http import LIMIT_S, message

TOKEN = "sesame-opens-the-door"
SECRET = "swordfish-4711"  # in every argument, and in every answer that has room for words
CALLS: dict[str, dict[str, Any]] = {
    "enter_text": {"text": SECRET, "focus": {"x": 500, "y": 300}},
    "open_url": {"url": f"http://{SECRET}/"},
    "open_app": {"app": SECRET},
    "bridge_clipboard": {"action": "write", "text": SECRET},
    "shell": {"command": f"echo {SECRET}"},
    "quick_action": {"action": SECRET},
    "keyboard_tap": {"keys": [SECRET]},
    "touch_gesture": {"type": SECRET},
    "screenshot": {SECRET: SECRET},
}


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with Simulator(speed=20) as running:
        running.phone.show("Notes")
        yield running


@pytest.fixture(autouse=True)
def everything(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)


@pytest.mark.parametrize("tool", CALLS)
def test_a_call_is_one_line_without_its_arguments(
    simulator: Simulator, caplog: pytest.LogCaptureFixture, tool: str
) -> None:
    """Whatever came of it: the tool, a word, bytes and milliseconds."""
    with (
        rig.in_front_of(simulator.agent_url, mcp_shell_enabled=True, token=TOKEN.encode()) as client,
        rig.log_lines() as lines,
    ):
        client.token = TOKEN
        client.call(tool, **CALLS[tool])
        (line,) = lines.wait_for(f"{tool}: ")
    assert re.fullmatch(rf"{tool}: \w+, \d+ bytes, \d+ ms", line)
    assert SECRET not in caplog.text
    assert TOKEN not in caplog.text


FAULTS = [
    pytest.param(Exchange.reset, id="a reset"),
    pytest.param(Exchange.hang, id="a hang"),
    pytest.param(lambda went: went.error("500 Internal Server Error", SECRET), id="500"),
    pytest.param(lambda went: went.error("404 Not Found", SECRET), id="404"),
    pytest.param(lambda went: went.reply(SECRET.encode(), "text/html"), id="a page"),
    pytest.param(lambda went: went.reply(tool_answer(SECRET, is_error=True, error=SECRET)), id="a refusal"),
    pytest.param(lambda went: went.raw(gohttp.head(f"X-{SECRET}: {'x' * 70_000}")), id="a header too long"),
    pytest.param(lambda went: went.raw(f"{SECRET}\r\n\r\n".encode()), id="no HTTP"),
]


@pytest.mark.parametrize("script", FAULTS)
def test_a_failure_is_logged_without_what_was_said(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, script: gohttp.Script
) -> None:
    """Neither our words nor the backend's; no traceback either, since a faulty board is no bug of ours."""
    rig.shrink_deadlines(monkeypatch, enter_text=0.3)
    with GoServer(script) as agent, rig.in_front_of(agent.url) as client, rig.log_lines() as lines:
        assert client.call("enter_text", **CALLS["enter_text"]).is_error
        assert len(lines.wait_for("enter_text: ")) == 1
    assert SECRET not in caplog.text
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("authorization", [f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN} {TOKEN}"])
def test_a_refused_token_is_not_logged(caplog: pytest.LogCaptureFixture, authorization: str) -> None:
    with rig.in_front_of(token=TOKEN.encode()) as client:
        refused = client.send("POST", message("ping"), Authorization=authorization)
    assert refused.status == 401
    assert not any(TOKEN[at : at + 8] in caplog.text + str(refused.body) for at in range(len(TOKEN) - 8))


def test_an_abandoned_call_is_one_line_and_no_traceback(simulator: Simulator, caplog: pytest.LogCaptureFixture) -> None:
    """A caller who leaves is no event of ours."""
    with rig.in_front_of(simulator.agent_url) as client, rig.log_lines() as lines:
        with simulator.hold("enter_text") as hold, client.begin("enter_text", **CALLS["enter_text"]) as pending:
            assert hold.entered.wait(LIMIT_S)
            pending.leave(reset=True)
            client.ask("ping")
        assert len(lines.wait_for("enter_text: ")) == 1
    assert "Traceback" not in caplog.text
    assert SECRET not in caplog.text
