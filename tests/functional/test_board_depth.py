"""JSON that is nested without end, on the smallest stack a thread may have: each is refused, and the server lives."""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpboard.protocol.limits import STACK_BYTES
from mcpboard.serving import server
from tests.support import rig
from tests.support.gohttp import Exchange, GoServer, tool_answer
from tests.support.http import Caller


@pytest.fixture(scope="module")
def agent() -> Iterator[GoServer]:
    with GoServer(lambda went: went.reply(tool_answer("ok"))) as running:
        yield running


@pytest.fixture(scope="module")
def client(agent: GoServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    file = rig.settings_file(tmp_path_factory.mktemp("depth"), agent.url)
    file.write_text(file.read_text("utf-8") + "mcp_shell_enabled = true\n", "utf-8")  # the Agent's table is the last
    with rig.process(file, module="tests.functional.small_stack") as process:
        yield process.client
        assert process.client.post("ping").status == 200


def lists(levels: int) -> str:
    return "[" * levels + "]" * levels


def objects(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


def mixture(levels: int) -> str:
    pairs = (levels + 1) // 2
    return '[{"a":' * pairs + "1" + "}]" * pairs


def ping(params: str) -> str:
    return '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":' + params + "}}"


BODIES = [
    pytest.param("[" * 1000, id="1,000 brackets"),
    pytest.param("[" * 100_000, id="100,000 brackets"),
    pytest.param(lists(100_000), id="lists"),
    pytest.param('{"a":' * 60_000, id="objects without end"),
    pytest.param(objects(1000), id="1,000 objects"),
    pytest.param(mixture(1000), id="a mixture"),
    pytest.param(mixture(50_000), id="a long mixture"),
    pytest.param(ping(lists(1000)), id="in a good request"),
    pytest.param(ping('"\\\\\\"",' + lists(1000)), id="behind escaped quotes"),
    pytest.param(ping("[" + "[]," * 10_000 + "[]]"), id="10,000 lists side by side"),
]


@pytest.mark.parametrize("body", BODIES)
def test_a_request_is_refused_before_it_is_parsed(client: Caller, body: str) -> None:
    response = client.send("POST", body.encode())
    assert (response.status, response.error["code"]) == (400, -32700)
    assert client.post("ping").status == 200


def test_depth_inside_a_string_is_text(client: Caller, agent: GoServer) -> None:
    text = "[{" * 60_000
    agent.script = lambda went: went.reply(tool_answer(json.dumps({"ok": True, "text": went.input["text"]})))
    assert not client.call("bridge_clipboard", action="write", text=text).is_error
    assert agent.requests[-1].input["text"] == text


DEEP = [pytest.param(shape(levels), id=f"{shape.__name__} {levels}") for levels in (65, 976, 100_000) for shape in (
    lists, objects, mixture
)]  # fmt: skip


@pytest.mark.parametrize("deep", DEEP)
@pytest.mark.parametrize("tool", ["keyboard_tap", "open_app", "shell", "screenshot"])
def test_what_the_agent_answers_is_an_error_that_says_so(client: Caller, agent: GoServer, tool: str, deep: str) -> None:
    """The whole answer, and one member of it: how the action ended is not known then."""
    for body in (deep, '{"output":"ok","is_error":true,"tool_error":{"details":' + deep + "}}"):
        agent.script = functools.partial(Exchange.reply, body=body.encode())
        told = client.call(tool, **ARGUMENTS[tool])
        assert told.is_error
        assert "no sense" in told.text
        assert told.delivery == (None if tool == "screenshot" else "unknown")


ARGUMENTS: dict[str, dict[str, Any]] = {
    "keyboard_tap": {"keys": ["enter"]},
    "open_app": {"app": "Notes"},
    "shell": {"command": "ls"},
    "screenshot": {},
}


@pytest.mark.parametrize("deep", DEEP)
@pytest.mark.parametrize("tool", ["keyboard_tap", "open_app"])
def test_json_in_a_string_stays_the_text_that_it_is(client: Caller, agent: GoServer, tool: str, deep: str) -> None:
    """The action was executed, and its caller is told."""
    agent.script = lambda went: went.reply(tool_answer(json.dumps({"ok": True, "action_output": deep})))
    told = client.call(tool, **ARGUMENTS[tool])
    assert not told.is_error
    assert json.dumps(deep) in told.text
    agent.script = lambda went: went.reply(tool_answer(deep))
    told = client.call(tool, **ARGUMENTS[tool])
    assert not told.is_error
    assert deep in told.text


@pytest.mark.parametrize("deep", [mixture(levels) for levels in (66, 1000, 100_000)], ids=["66", "1000", "100000"])
def test_a_tool_list_of_the_agent_leaves_the_built_in_one(tmp_path: Path, deep: str) -> None:
    def script(went: Exchange) -> None:
        went.reply(b'{"tools":[{"name":"open_app","args_schema":' + deep.encode() + b"}]}")

    with rig.in_front_of() as client:
        built_in = client.ask("tools/list")
    with (
        GoServer(script) as agent,
        rig.process(rig.settings_file(tmp_path, agent.url), module="tests.functional.small_stack") as process,
    ):
        assert process.client.ask("tools/list") == built_in
        assert len(agent.requests) == 1


def test_the_threads_of_the_server_have_the_stated_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    """And only they: whatever makes threads afterwards gets what the system gives."""
    sizes: list[int] = []
    start = threading.Thread.start

    def noted(thread: threading.Thread) -> None:
        sizes.append(threading.stack_size(0))  # which also sets it
        threading.stack_size(sizes[-1])
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", noted)
    with rig.in_front_of() as client:
        client.ask("ping")
    assert sizes.count(STACK_BYTES) == server.THREADS
    assert threading.stack_size(0) == 0
