"""Live schemas over built-in ones: which are taken, which are not, and when the Agent is asked."""

from __future__ import annotations

import json
import logging
import pathlib
import re
import threading
from dataclasses import replace
from typing import Any

import pytest
import responses
from requests.exceptions import ConnectTimeout

from mcpboard.board.backend import Backend
from mcpboard.board.live_schemas import FRESH_S, KEYWORDS, RETRY_S, Catalog, outside
from mcpboard.board.tools import ROWS, TOOLS, BoardTool, allowed
from mcpboard.host.tools import rows as host_rows
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


def inside(rule: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": rule}}


def deep(levels: int) -> dict[str, Any]:
    """Return a tool's schema with so many schemas in each other."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels - 1):
        schema = {"type": "object", "properties": {"inner": schema}}
    return schema


DOCUMENTED = (pathlib.Path(__file__).parents[2] / "docs" / "protocol.md").read_text("utf-8")
# where -> the JSON of each form that the page says is refused
REFUSED = re.findall(r"^\| (tool|argument) \| `([^`]+)`", DOCUMENTED, re.MULTILINE)


def test_the_documented_keywords_are_those_of_the_code() -> None:
    table = DOCUMENTED.partition("| keyword |")[2].partition("\n\n")[0]
    documented: dict[str, str] = {}
    for keywords, types in re.findall(r"^\| (`.+?) \| (.+?) \|", table, re.MULTILINE):
        words = re.findall(r"`(\w+)`", types) or KEYWORDS["type"][0].split()
        documented |= dict.fromkeys(re.findall(r"`(\w+)`", keywords), " ".join(words))
    assert documented == {keyword: types for keyword, (types, _) in KEYWORDS.items()}


@pytest.mark.parametrize("schema", [
    *(json.loads(form) if where == "tool" else inside(json.loads(form)) for where, form in REFUSED),
    *({**text_schema(), word: [{"required": ["app"]}]} for word in ("oneOf", "allOf", "not", "if")),
    [], {}, {"type": "string", "properties": {}}, {"type": ["object"], "properties": {}}, {"type": "null", "properties": {}},
    {"type": "object", "properties": [1]}, {"type": "object", "properties": None}, {"type": "object", "properties": {}, "nullable": True},
    inside(True), inside(None), inside({"type": "object", "properties": {}}), inside({"type": "array", "items": [{"type": "string"}]}),
    inside({"type": "array", "items": {"type": "array"}}), inside({"type": "array", "items": {"$ref": "#"}}),
    inside({"type": "string", "minimum": 0}), inside({"type": "string", "default": 1}), inside({"type": "integer", "default": True}),
    inside({"type": "number", "minimum": "0"}), inside({"type": "string", "enum": ["on", "on"]}), inside({"type": "boolean", "enum": [True]}),
    inside({"type": "string", "examples": [{"type": ["x"]}]}), inside({"type": "array", "items": {"type": "string"}, "minItems": True}),
    inside({"type": "array", "items": {"type": "string"}, "maxItems": -1}), inside({"type": "string", "title": None}),
    inside({"type": "object", "properties": {"b": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
    inside({"type": "object", "properties": {"b": {"type": "string"}}, "required": ["a"]}), inside({"type": "string", "required": True}),
    {**text_schema(), "required": ["app", "app"]}, {**text_schema(), "required": [1]}, {**text_schema(), "required": [["app"]]},
    *(text_schema(name) for name in ("with blank", "n" * 65, "", "1st", "a-b", "\u00e9", "a\n")),
    text_schema(description=7), pytest.param(text_schema(description="x" * 1025), id="1,025 characters"), pytest.param(deep(11), id="11 levels"),
], ids=json.dumps)  # fmt: skip
def test_a_form_that_some_client_refuses_leaves_the_built_in_schema(
    schema: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    agent = Agent(entry("open_app", schema), entry("open_url", text_schema("address")))
    assert agent.schema("open_app") == built_in("open_app")
    assert agent.schema("open_url") == unexplained("address")
    assert len(REFUSED) > 20
    (line,) = caplog.messages
    assert line.startswith("open_app: the Agent's schema is not shown")


@pytest.mark.parametrize("schema", [
    text_schema("type"), text_schema("required"), text_schema(examples=["x"], default="", title="App", minLength=1, maxLength=1999),
    inside({"type": "integer", "exclusiveMinimum": 0, "maximum": 1.5, "default": 3}), inside({"type": "number", "default": 1}),
    inside({"type": "array", "items": {"type": "array", "items": {"type": "boolean"}}, "minItems": 0, "examples": [[]]}),
    {"type": "object", "properties": {}, "required": [], "additionalProperties": True}, text_schema(description="x" * 1024), deep(10),
    *(pytest.param(row.tool.input_schema, id=row.tool.name) for row in (*ROWS, *host_rows.ROWS)),
])  # fmt: skip
def test_a_schema_of_good_forms_is_taken_and_ours_are_of_them(schema: dict[str, Any]) -> None:
    assert outside(schema) == ""


@pytest.mark.parametrize(("schema", "place"), [
    (None, None), (5, "root: type"), (inside({"type": "string", "pattern": "SECRET"}), "a: pattern"),
    (inside({"type": "array", "items": {"type": "object", "properties": {"b": {"description": "SECRET"}}}}), "a[].b: type"),
    ({**text_schema("app"), "\u2028" * 50: 1}, "root: " + "\\u2028" * 6 + "\\u20"), (inside({"type": "array"}), "a: no items"),
    (text_schema(description="SECRET" * 4000), "app: description"), (text_schema("SECRET words"), "root: properties"),
])  # fmt: skip
def test_the_log_names_the_place_once_and_no_content(
    schema: Any, place: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    agent = Agent(entry("open_app", schema))
    agent.refreshed()
    agent.refreshed(after=FRESH_S)
    refused = "open_app: the Agent's schema is not shown, some clients refuse it ({}); the built-in one is"
    assert caplog.messages == ([refused.format(place)] if place else [])


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
