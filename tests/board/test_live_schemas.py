"""Live schemas over built-in ones: which are taken, which are not, and when the Agent is asked."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from typing import Any

import pytest
import responses
from requests.exceptions import ConnectTimeout

from mcpboard.board.backend import Backend
from mcpboard.board.live_schemas import FRESH_S, RETRY_S, Catalog, is_usable
from mcpboard.board.tools import ROWS, TOOLS, BoardTool, allowed
from tests.support.clock import Clock

pytestmark = pytest.mark.usefixtures("no_sockets")

URL = "http://127.0.0.1:8081"


class Agent:
    """An Agent behind the board's own backend, which answers what it was given last, and the catalog in front of it."""

    def __init__(self, *entries: Any) -> None:
        self.clock = Clock()
        self.answers: dict[str, Any] = listing(*entries)
        self.catalog = Catalog(self.clock)
        self._backend = Backend("agent", URL)

    def fetch(self) -> Any:
        responses.upsert("GET", f"{URL}/api/tools", **self.answers)
        return self._backend.call("GET", "/api/tools", None, 1.0)

    def refreshed(self, after: float = 0.0) -> tuple[BoardTool, ...]:
        self.clock.now += after
        self.catalog.refresh(self.fetch)
        return self.catalog.rows(shell=True)

    def schema(self, name: str) -> Any:
        """The schema of a tool after a look at what the Agent says."""
        return next(row.tool.input_schema for row in self.refreshed() if row.tool.name == name)


def listing(*entries: Any) -> dict[str, Any]:
    return {"json": {"tools": list(entries)}}


def entry(name: str, schema: Any) -> dict[str, Any]:
    return {"name": name, "category": "input", "description": "theirs", "input_mode": "json", "args_schema": schema}


def text_schema(name: str = "app", **rule: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "string", **rule}}, "required": [name]}


def unexplained(name: str) -> dict[str, Any]:
    """Return the schema that results where neither the Agent nor we describe an argument."""
    return text_schema(name, description="Taken by this board's Agent, which does not explain it")


def built_in(name: str) -> Any:
    return TOOLS[name].input_schema


def test_nothing_is_asked_before_the_first_refresh() -> None:
    catalog = Agent(entry("open_app", text_schema())).catalog
    assert catalog.rows(shell=True) == ROWS
    assert catalog.rows(shell=False) == allowed(shell=False)
    assert not responses.calls


def test_a_usable_schema_replaces_the_built_in_one_and_our_words_stay() -> None:
    live = text_schema(description="their words", minLength=1)
    agent = Agent(entry("open_app", live))
    assert agent.schema("open_app") == live
    (row,) = (row for row in agent.catalog.rows(shell=False) if row.tool.name == "open_app")
    assert row.tool == replace(TOOLS["open_app"], input_schema=live)


def test_properties_without_words_get_ours_also_inside() -> None:
    point = {"type": "object", "properties": {"x": {"type": "number"}, "z": {"type": "number"}}}
    focus = Agent(entry("enter_text", {"type": "object", "properties": {"focus": point}})).schema("enter_text")["properties"]["focus"]  # fmt: skip
    assert focus["description"] == built_in("enter_text")["properties"]["focus"]["description"]
    assert focus["properties"]["x"] == {"type": "number", "description": "left to right"}
    assert "does not explain" in focus["properties"]["z"]["description"]


def test_a_schema_without_properties_is_closed() -> None:
    agent = Agent(entry("screenshot", {"type": "object", "properties": {}}))
    assert agent.schema("screenshot")["additionalProperties"] is False


@pytest.mark.parametrize("extra", ["run_script", "Screenshot", "screenshot "])
def test_tools_beyond_the_allowlist_never_appear(extra: str) -> None:
    agent = Agent(entry(extra, text_schema()), entry("open_app", text_schema("title")))
    assert [row.tool.name for row in agent.refreshed()] == [row.tool.name for row in ROWS]
    assert agent.schema("screenshot") == built_in("screenshot")


def test_entries_that_are_no_tools_are_passed_over() -> None:
    agent = Agent(None, 7, {}, {"name": ["open_app"]}, entry("open_app", text_schema("title")))
    assert agent.schema("open_app") == unexplained("title")


def _deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"inner": schema}}
    return schema


ROOT = {"type": "object", "properties": {}}


def inside(rule: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": rule}}


@pytest.mark.parametrize("schema", [
    pytest.param(None, id="none, as in old catalogs"),
    [], {}, {"type": "object"}, {"type": "string", "properties": {}}, {"type": ["object"], "properties": {}},
    *({**text_schema(), word: [{"required": ["app"]}]} for word in ("anyOf", "oneOf", "allOf", "not", "if")),
    {**text_schema(), "$defs": {}}, text_schema(**{"$ref": "#/$defs/app"}),
    inside({"items": {"$ref": "#"}}), inside({"anyOf": [{"$ref": "#"}]}), inside({"type": ["string", "null"]}),
    inside(True), inside({"properties": None}), {"type": "object", "properties": [1]},
    {**ROOT, "required": None}, {**ROOT, "required": True}, {**ROOT, "required": [1]},
    text_schema("with blank"), text_schema("n" * 65), text_schema(description=7),
    pytest.param(_deep(17), id="nested too deep"),
], ids=json.dumps)  # fmt: skip
def test_an_unusable_schema_leaves_the_built_in_one(schema: Any) -> None:
    agent = Agent(entry("open_app", schema), entry("open_url", text_schema("address")))
    assert agent.schema("open_app") == built_in("open_app")
    assert agent.schema("open_url") == unexplained("address")


@pytest.mark.parametrize("schema", [
    text_schema("type"), text_schema("required"), inside({"anyOf": [{"type": "string"}]}), text_schema(examples=[{"type": ["x"], "$ref": 1}]),
], ids=json.dumps)  # fmt: skip
def test_a_schema_that_only_looks_odd_is_usable(schema: dict[str, Any]) -> None:
    assert is_usable(schema)


def test_a_copy_is_read_again_when_it_is_old_and_unchanged_rows_stay_the_same() -> None:
    """So that what was made of them stays good."""
    agent = Agent(entry("open_app", text_schema("title")))
    rows = agent.refreshed()
    agent.refreshed(after=FRESH_S - 0.1)
    assert len(responses.calls) == 1
    assert agent.refreshed(after=0.1) is rows
    assert len(responses.calls) == 2


@pytest.mark.parametrize("failure", [
    pytest.param({"body": ConnectTimeout()}, id="no connection"),
    pytest.param({"status": 503, "body": "Server is shutting down\n"}, id="shutting down"),
    pytest.param({"body": "<html>", "content_type": "text/html"}, id="a page"),
    pytest.param({"json": {"tools": {}}}, id="no list"),
    pytest.param({"json": []}, id="no object"),
    pytest.param({"body": b"\xff\xfe\x00"}, id="no text"),
    pytest.param({"body": b"[" * 100_000}, id="nesting without end"),
    pytest.param({"body": b'{"tools":[' + b"[" * 63 + b"]" * 63 + b"]}"}, id="65 levels"),
    pytest.param({"body": b'{"tools":[' + b"{}," * 10_000 + b"{}]}"}, id="too many objects"),
    pytest.param({"body": b'{"tools":[{"x":NaN}]}'}, id="a number that is none"),
])  # fmt: skip
def test_a_failure_keeps_the_last_good_copy_and_is_tried_again_soon(failure: dict[str, Any]) -> None:
    agent = Agent(entry("open_app", text_schema("title")))
    good = agent.refreshed()
    agent.answers = failure
    assert agent.refreshed(after=FRESH_S) is good
    assert agent.refreshed() is good
    assert len(responses.calls) == 2
    agent.answers = listing()
    assert agent.refreshed(after=RETRY_S) == ROWS
    assert len(responses.calls) == 3


def test_who_comes_while_the_agent_is_asked_does_not_wait() -> None:
    asked, answer_now = threading.Event(), threading.Event()
    agent = Agent(entry("open_app", text_schema("title")))

    def fetch() -> Any:
        asked.set()
        assert answer_now.wait(5)
        return agent.fetch()

    first = threading.Thread(target=agent.catalog.refresh, args=(fetch,))
    first.start()
    assert asked.wait(5)
    agent.catalog.refresh(fetch)  # would never return if it waited: only we let the first one go on
    assert agent.catalog.rows(shell=True) == ROWS
    answer_now.set()
    first.join(5)
    assert agent.schema("open_app") == unexplained("title")
