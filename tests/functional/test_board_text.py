"""Text and positions of a client reach the Agent as they were sent: code points, line ends, numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from mcpboard.simulator import Simulator
from tests.support import rig
from tests.support.http import Caller

FOCUS = {"x": 450, "y": 105}
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"  # three people, held together by joiners

TEXTS = [
    pytest.param("שלום", id="Hebrew"),
    pytest.param("你好，世界", id="Chinese"),
    pytest.param(FAMILY, id="a family of joined emoji"),
    pytest.param("e\u0301 a\u0308", id="combining marks, not composed"),
    pytest.param("'\"\\$;|`&<>", id="what a shell would read"),
    pytest.param("a\r\nb\n", id="line ends of both kinds, one at the end"),
    pytest.param("\n", id="a line end alone"),
    pytest.param("\ta\t", id="tabs at both ends"),
    pytest.param("a\0b", id="a NUL"),
    pytest.param("", id="nothing"),
    pytest.param("ö" * 10_000, id="ten thousand letters"),
]


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    with Simulator(speed=50) as made:
        yield made


@pytest.fixture(scope="module")
def client(simulator: Simulator) -> Iterator[Caller]:
    with rig.in_front_of(simulator.agent_url) as made:
        yield made


def received(simulator: Simulator) -> Any:
    """The input of the latest tool call that the Agent got."""
    posts = [request for request in simulator.requests if request.method == "POST"]
    return json.loads(posts[-1].body)["input"]


@pytest.mark.parametrize("text", TEXTS)
def test_text_arrives_code_point_by_code_point(client: Caller, simulator: Simulator, text: str) -> None:
    client.call("enter_text", text=text, focus=FOCUS)
    assert received(simulator) == {"text": text, "focus": FOCUS}


@pytest.mark.parametrize("text", [*TEXTS, pytest.param("x\r\n" * 40_000, id="120 thousand characters")])
def test_the_clipboard_gives_back_what_was_written(client: Caller, simulator: Simulator, text: str) -> None:
    assert not client.call("bridge_clipboard", action="write", text=text).is_error
    assert received(simulator)["text"] == text
    assert client.call("bridge_clipboard", action="read").result["structuredContent"] == {"ok": True, "text": text}


def test_half_a_character_is_refused_and_nothing_is_sent(client: Caller, simulator: Simulator) -> None:
    before = len(simulator.requests)
    refused = client.call("enter_text", text="\ud83d", focus=FOCUS)
    assert (refused.status, refused.error["code"]) == (200, -32602)
    assert len(simulator.requests) == before


@pytest.mark.parametrize("x", [0.5, 1.0, 0, 1000, -1, 1e9, "100"])
def test_a_coordinate_is_neither_rounded_nor_clamped(client: Caller, simulator: Simulator, x: float | str) -> None:
    client.call("touch_gesture", type="tap", point={"x": x, "y": 5})
    assert repr(received(simulator)["point"]["x"]) == repr(x)


@pytest.mark.parametrize(
    "point", [{"x": True, "y": 5}, {"x": None, "y": 5}, {"x": "NaN", "y": 5}, {"x": 5}, {"x": "five", "y": 5}]
)
def test_what_is_no_coordinate_is_refused_by_its_name(
    client: Caller, simulator: Simulator, point: dict[str, Any]
) -> None:
    before = len(simulator.requests)
    refused = client.call("touch_gesture", type="tap", point=point)
    assert (refused.is_error, refused.delivery) == (True, "not_sent")
    assert "point." in refused.text
    assert len(simulator.requests) == before


@pytest.mark.parametrize("given", [
    {"point": json.dumps(FOCUS), "hold_ms": None, "actions": None}, {"point": f" {json.dumps(FOCUS)} ", "start": None}, {"point": FOCUS},
])  # fmt: skip
def test_a_point_as_text_is_a_point_and_null_is_nothing(client: Caller, simulator: Simulator, given: Any) -> None:
    assert not client.call("touch_gesture", type="tap", **given).is_error
    assert received(simulator) == {"type": "tap", "point": FOCUS}
