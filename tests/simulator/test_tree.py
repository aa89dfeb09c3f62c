"""The tree of the screen: it lists what is drawn, where it is drawn, and what a touch there does."""

from __future__ import annotations

import json

import pytest
from PIL import Image, ImageChops

from mcpboard.simulator import Node, Phone
from mcpboard.simulator.phone import display
from mcpboard.simulator.phone.canvas import Canvas
from mcpboard.simulator.phone.elements import Element, flat
from mcpboard.simulator.phone.view import NAMES, View
from tests.simulator.simulating import Clock
from tests.simulator.views import LYING, STILL, params

EDGE = 3  # points; soft edges, the border of what is chosen and overhanging letters reach that far out of their box


def _ink(view: View, element: Element) -> tuple[int, int, int, int] | None:
    """Where one element and its children leave a trace, as a box in pixels."""
    under, over = (Image.new("RGB", view.pixels, colour) for colour in ("#7f3fbf", "#7f3fbf"))
    canvas = Canvas(over, view.scale)
    for each in flat([element]):
        each.paint(canvas)
    return ImageChops.difference(under, over).getbbox()


def _named(view: View) -> list[Element]:
    """The elements that say something and paint it themselves."""
    return [each for each in flat(display.elements(view)) if each.text and each.shapes]


@pytest.mark.parametrize("view", params(STILL | LYING))
def test_a_box_lies_where_its_element_is_drawn(view: View, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that has text is drawn beside its box, but for a shadow, and for cards that hide behind others."""
    monkeypatch.setattr(Canvas, "shadow", lambda *_, **__: None)
    for element in _named(view):
        ink = _ink(view, element)
        assert ink is not None, element
        left, top, right, bottom = ink[0] / view.scale, ink[1] / view.scale, ink[2] / view.scale, ink[3] / view.scale
        assert element.box[0] - EDGE <= left, element
        assert right <= element.box[2] + EDGE or element.role == "card", element
        cut = bool(view.scroll) or view.focused  # by the edge of the page, or by the keyboard
        assert element.box[1] - EDGE <= top or cut, element
        assert bottom <= element.box[3] + EDGE or cut, element
        assert top < element.box[3], element
        assert element.box[1] < bottom, element


@pytest.mark.parametrize("view", params(STILL | LYING))
def test_every_node_lies_on_the_screen(view: View) -> None:
    root = display.tree(view)
    width, height = view.pixels
    assert (root.role, root.id, root.box) == ("screen", f"screen/{view.app}", (0, 0, width, height))
    for node in root.walk():
        left, top, right, bottom = node.box
        assert 0 <= left < right <= width, node
        assert 0 <= top < bottom <= height, node


@pytest.mark.parametrize("view", params(STILL))
def test_a_touch_in_the_middle_of_a_node_reaches_it(view: View) -> None:
    """Unless something lies over it, which then comes later in the tree."""
    elements = [each for each in flat(display.elements(view)) if each.clickable and each.role]
    for index, element in enumerate(elements):
        left, top, right, bottom = element.box
        middle = (left + right) / 2, (top + bottom) / 2
        over = [other for other in elements[index + 1 :] if other.covers(*middle)]
        place = middle[0] * 1000 / (view.size[0] - 1), middle[1] * 1000 / (view.size[1] - 1)
        assert display.element_at(view, place) is (over[-1] if over else element)


def _found(root: Node, text: str) -> Node:
    return next(node for node in root.walk() if text in (node.text, node.desc))


@pytest.fixture
def phone() -> Phone:
    return Phone(Clock())


def _touch(phone: Phone, text: str) -> None:
    left, top, right, bottom = _found(phone.tree(), text).box
    width, height = phone.view().pixels
    phone.tap((left + right) / 2 * 1000 / (width - 1), (top + bottom) / 2 * 1000 / (height - 1))


def test_every_app_opens_by_its_node(phone: Phone) -> None:
    for name in NAMES:
        phone.show("Home")
        _touch(phone, name)
        assert phone.app == name


def test_the_dock_is_described_although_it_is_drawn_without_names(phone: Phone) -> None:
    node = _found(phone.tree(), NAMES[-1])
    assert (node.role, node.text, node.desc, node.id, node.clickable) == ("icon", "", "Music", "app/Music", True)


def test_a_page_is_walked_by_what_it_says(phone: Phone) -> None:
    _touch(phone, "Settings")
    _touch(phone, "Dark Mode")
    assert phone.view().dark
    assert _found(phone.tree(), "Dark Mode").desc == "on"
    phone.swipe((500, 800), (500, 300))
    _touch(phone, "About")
    assert _found(phone.tree(), "Pretend phone").role == "text"
    _touch(phone, "back")
    assert phone.view().page == ""


def test_what_is_scrolled_away_is_no_longer_listed(phone: Phone) -> None:
    phone.show("Settings")
    before = {node.text for node in phone.tree().walk()}
    phone.swipe((500, 900), (500, 100))
    after = {node.text for node in phone.tree().walk()}
    assert "Airplane Mode" in before - after
    assert "About" in after - before


def test_the_tree_is_plain_json(phone: Phone) -> None:
    phone.show("Notes")
    phone.tap(450, 300)
    made = json.loads(json.dumps(phone.tree().as_json()))
    keyboard = next(child for child in made["children"] if child["role"] == "keyboard")
    assert list(made) == ["role", "text", "desc", "id", "box", "clickable", "children"]
    assert [key["text"] for key in keyboard["children"]][:6] == list("qwerty")
