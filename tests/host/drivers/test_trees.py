"""UI trees that no screen has: deep, wide, broken and hostile ones, read on a stack of 128 KiB, sent so that clients can."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from mcpboard.host.drivers.android import AndroidDriver, uiautomator
from mcpboard.host.drivers.base import Driver
from mcpboard.host.drivers.iphone import IPhoneDriver, xcuitest
from mcpboard.host.vision import describe, find
from mcpboard.host.vision.tree import LEVELS_SENT, MOST_ELEMENTS, MOST_LEVELS, UiNode, UnreadableTree
from mcpboard.text import DEEP_LIMIT, nesting
from tests.host.drivers import lab
from tests.host.drivers.fake_adb import PHONE, fake_adb, shell
from tests.host.drivers.fake_wda import FakePhone, fake_wda
from tests.host.rig import agent
from tests.host.vision.fakes import FakeEngine
from tests.support.http import LEGACY, LIMIT_S, MODERN

MUSL_STACK = 128 * 1024  # bytes of a thread's stack
SIZE = 100, 200
NODE = "<node class='android.view.View' text='t' bounds='[0,0][99,199]'>"
RECT = {"x": 0, "y": 0, "width": 39, "height": 84}

T = TypeVar("T")


def on_a_small_stack(work: Callable[[], T]) -> T:
    """Return the result of `work` in a thread as musl makes them; a recursion in C would end the process there."""
    results: list[Any] = []

    def attempt() -> None:
        try:
            results.append(work())
        except Exception as error:
            results.append(error)

    before = threading.stack_size(MUSL_STACK)
    try:
        thread = threading.Thread(target=attempt)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join(LIMIT_S)
    (result,) = results
    if isinstance(result, Exception):
        raise result
    return result  # type: ignore[no-any-return]


def xml(inner: str) -> str:
    return f"<?xml version='1.0' encoding='UTF-8' standalone='yes' ?><hierarchy rotation=\"0\">{inner}</hierarchy>"


def deep_xml(levels: int) -> str:
    """A document of so many levels, its root included."""
    return xml(NODE * (levels - 1) + "</node>" * (levels - 1))


def deep_json(levels: int) -> bytes:
    """The answer of WebDriverAgent with so many levels of elements."""
    head = f'{{"type":"Other","label":"t","isVisible":"1","rect":{json.dumps(RECT)},"children":['
    return ('{"value":' + head * levels + "]}" * levels + ',"sessionId":"S"}').encode()


def read_xml(document: str) -> UiNode:
    return uiautomator.parse_tree(document, SIZE, SIZE)


def read_json(document: bytes) -> UiNode:
    phone = FakePhone()
    phone.faults["/source"] = lambda: document
    with fake_wda(phone) as url:
        tree = on_a_small_stack(IPhoneDriver(url).ui_tree)
    assert tree is not None
    return tree


READERS = [
    pytest.param(lambda levels: read_xml(deep_xml(levels + 1)), id="uiautomator"),
    pytest.param(lambda levels: read_json(deep_json(levels)), id="WebDriverAgent"),
]


@pytest.mark.parametrize("read", READERS)
def test_a_thousand_levels_are_read_and_sent_without_a_stack(read: Callable[[int], UiNode]) -> None:
    """Read, searched, described and written as JSON, whose levels official clients can read."""
    tree = on_a_small_stack(lambda: read(MOST_LEVELS - 1))
    assert tree.levels == MOST_LEVELS
    assert on_a_small_stack(lambda: len(find.text_in_tree(tree, "t"))) == 50
    assert on_a_small_stack(lambda: describe.describe(tree, *SIZE).truncated)
    text = on_a_small_stack(lambda: json.dumps(tree.as_json()))
    assert text.count('"role"') == MOST_LEVELS
    levels, _ = nesting(text)
    assert levels <= 2 * LEVELS_SENT + 2 < 127 - 4  # which is where parsers of Rust give up; four are around the tree


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("levels", [MOST_LEVELS + 1, 5 * MOST_LEVELS])
def test_more_levels_are_refused_with_the_reason(read: Callable[[int], UiNode], levels: int) -> None:
    with pytest.raises(UnreadableTree, match=r"nested deeper than \d+ levels"):
        on_a_small_stack(lambda: read(levels))


def test_elements_below_the_last_level_stay_in_order() -> None:
    tree = UiNode("0", (0, 0, 1, 1))
    for level in range(1, 100):
        tree = UiNode(f"-{level}", (0, 0, 1, 1), children=(tree, UiNode(f"+{level}", (0, 0, 1, 1))))
    sent = tree.as_json()
    for _ in range(LEVELS_SENT - 2):
        sent = sent["children"][0]
    assert [each["role"] for each in sent["children"]] == [
        *(f"-{level}" for level in range(100 - LEVELS_SENT, 0, -1)), "0", *(f"+{level}" for level in range(1, 102 - LEVELS_SENT)),
    ]  # fmt: skip
    assert not any(each["children"] for each in sent["children"])


ODD_XML = [
    pytest.param('<!DOCTYPE x [<!ENTITY a "b">]>' + xml("&a;"), "a declaration", id="an entity"),
    pytest.param(xml("<![CDATA[x]]>"), "a declaration", id="CDATA"),
    pytest.param(xml("&a;"), "is broken", id="an entity of nobody"),
    pytest.param(xml(NODE), "is broken", id="cut off"),
    pytest.param(xml(NODE + "</node>") * 2, "is broken", id="two of them"),
    pytest.param(xml("<n/>" * (MOST_ELEMENTS + 1)), f"more than {MOST_ELEMENTS} elements", id="too many elements"),
]


@pytest.mark.parametrize(("document", "problem"), ODD_XML)
def test_hostile_documents_are_refused(document: str, problem: str) -> None:
    with pytest.raises(UnreadableTree, match=problem):
        on_a_small_stack(lambda: read_xml(document))


def test_too_many_elements_of_an_iphone_are_refused() -> None:
    wide = {"type": "Other", "rect": RECT, "children": [{} for _ in range(MOST_ELEMENTS)]}
    with pytest.raises(UnreadableTree, match="elements"):
        xcuitest.parse_tree(wide, SIZE, SIZE)


def test_attributes_without_number_cost_what_their_bytes_do() -> None:
    names = " ".join(f"a{number}=''" for number in range(300_000))
    document = xml(f"<node bounds='[0,0][9,9]' {names}/>")
    assert len(document) < uiautomator.MOST_BYTES
    assert len(read_xml(document).children) == 1


CHARACTERS = [
    pytest.param("&#55357;&#56832;", "\N{GRINNING FACE}", id="an emoji as two halves"),
    pytest.param("&#xD83D;&#xDE00;", "\N{GRINNING FACE}", id="in hexadecimal"),
    pytest.param("&#55357;", "\ufffd", id="half an emoji"),
    pytest.param("\ud83d!", "\ufffd!", id="half an emoji as it is"),
    pytest.param("&#0;\x1b&#x1b;&#xFFFF;&#1114112;", "\ufffd" * 5, id="what XML does not allow"),
    pytest.param("&#65;&#10;&#x1F600;", "A\n\N{GRINNING FACE}", id="what it allows"),
]


@pytest.mark.parametrize(("written", "text"), CHARACTERS)
def test_an_odd_character_costs_that_character_only(written: str, text: str) -> None:
    (node,) = read_xml(xml(f"<node text='{written}' bounds='[0,0][9,9]'/>")).children
    assert node.text == text


ODD_BOUNDS = ["[0,0][%s,9]" % ("9" * 5000), "[-1,-1][0,0]", "[9,9][0,0]", "[a,0][1,1]", ""]


@pytest.mark.parametrize("bounds", ODD_BOUNDS)
def test_odd_bounds_leave_an_element_out(bounds: str) -> None:
    assert read_xml(xml(f"<node bounds='{bounds}'/>")).children == ()


def test_odd_texts_of_an_iphone_are_no_texts() -> None:
    """A label that is itself a deep list: to print it would recurse."""
    label: list[Any] = []
    for _ in range(DEEP_LIMIT):
        label = [label]
    source = {"type": label, "rect": RECT, "label": label, "name": {"a": label}, "value": None}
    (node,) = on_a_small_stack(lambda: xcuitest.parse_tree(source, SIZE, SIZE)).children
    assert (node.role, node.text, node.id) == ("view", "", "")


# --- over MCP --------------------------------------------------------------------------------------


@contextlib.contextmanager
def android(document: str) -> Iterator[Driver]:
    script = {"shell,v2,raw:f=": shell(document.encode()), "shell,v2,raw:screencap": shell(lab.png(*SIZE))}
    with fake_adb(script) as server:
        yield AndroidDriver(PHONE, server.adb)


@contextlib.contextmanager
def iphone(document: bytes) -> Iterator[Driver]:
    phone = FakePhone()
    phone.faults["/source"] = lambda: document
    with fake_wda(phone) as url:
        yield IPhoneDriver(url)


DEVICES = [
    pytest.param(lambda levels: android(deep_xml(levels)), id="Android"),
    pytest.param(lambda levels: iphone(deep_json(levels)), id="an iPhone"),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("version", [LEGACY, MODERN])
def test_a_deep_screen_is_told_to_clients(tmp_path: Path, device: Callable[[int], Any], version: str) -> None:
    with device(600) as driver, agent(tmp_path, phone=driver) as host:
        caller = host.caller.modern() if version == MODERN else host.caller.open()
        answer = caller.call("get_ui_tree")
        levels, _ = nesting(json.dumps(answer.json))
        assert levels < 127
        assert json.dumps(answer.result["structuredContent"]).count('"role"') >= 599
        assert f"Elements deeper than {LEVELS_SENT} levels are listed at that level." in answer.text
        assert len(caller.call("find_text", query="t").result["structuredContent"]["matches"]) == 50
        assert "truncated" in caller.call("describe_screen").text


@pytest.mark.parametrize("device", DEVICES)
def test_the_picture_answers_for_a_tree_that_cannot_be_read(tmp_path: Path, device: Callable[[int], Any]) -> None:
    engine = FakeEngine()
    with (
        device(3000) as driver,
        contextlib.closing(engine.service(tmp_path / "icons")) as vision,
        agent(tmp_path / "data", phone=driver, vision=vision) as host,
    ):
        caller = host.caller.open()
        for tool, arguments in (("find_text", {"query": "t"}), ("find_icon", {"name": "t"}), ("describe_screen", {})):
            answer = caller.call(tool, **arguments)
            assert "(from the screenshot only: " in answer.text
            assert "nested deeper" in answer.text
        refused = caller.call("get_ui_tree").error
    assert "nested deeper than" in refused["message"]


@pytest.mark.parametrize("device", DEVICES)
def test_without_a_picture_the_reason_is_told(tmp_path: Path, device: Callable[[int], Any]) -> None:
    with device(3000) as driver, agent(tmp_path, phone=driver) as host:
        for tool, arguments in (("find_text", {"query": "t"}), ("find_icon", {"name": "t"}), ("describe_screen", {})):
            assert "nested deeper than" in host.caller.call(tool, **arguments).error["message"]
