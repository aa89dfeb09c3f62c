"""Fingers, keys and commands change the simulated phone, and each change is seen."""

from __future__ import annotations

import time
from typing import Any

import pytest

from mcpboard.simulator import Phone, Simulator
from mcpboard.simulator.phone import display, moves
from mcpboard.simulator.phone.phone import ANIMATION_S, TOAST_S
from mcpboard.simulator.phone.view import GREETING, HOME, HUES, NAMES, USUALLY_ON
from tests.simulator.simulating import NOTES_FIELD, run_tool
from tests.support.clock import Clock


class Hand(Phone):
    """A phone with a finger that finds things by what they say, and a clock of its own."""

    def __init__(self) -> None:
        self.clock = Clock()
        super().__init__(self.clock)

    def place(self, text: str, share: float = 0.5) -> tuple[float, float]:
        """The place of the node with this text, description or id, as far along it as `share`."""
        node = next(each for each in self.tree().walk() if text in (each.text, each.desc, each.id))
        width, height = self.view().pixels
        left, top, right, bottom = node.box
        return (left + (right - left) * share) * 1000 / (width - 1), (top + bottom) / 2 * 1000 / (height - 1)

    def touch(self, *texts: str) -> None:
        for text in texts:
            self.tap(*self.place(text))

    def lay(self, text: str, share: float = 0.5) -> None:
        self.press(*self.place(text, share))

    def hold(self, text: str) -> None:
        self.press(*self.place(text), held=True)

    def rest(self, seconds: float) -> None:
        self.clock.pass_by(seconds)

    def drop(self, text: str) -> None:
        self.release(*self.place(text))

    def throw(self, text: str) -> None:
        x, y = self.place(text)
        self.swipe((x, y), (x, y - 300))

    def open(self, *apps: str) -> None:
        for app in apps:
            self.show(app)

    def picture(self) -> bytes:
        return display.picture(self.view().still()).tobytes()


def enter(page: str) -> tuple[str, Any]:
    return "do", lambda view: moves.entered(view, page)


def browse(url: str) -> tuple[str, Any]:
    return "do", lambda view: moves.browsed(view, url)


NOTES = [("open", "Notes"), ("tap", 450, 300)]
MESSAGES = [("open", "Messages"), ("tap", 400, 950)]
SHADE, CARDS, BACK = ("do", moves.shade), ("do", moves.switcher), ("do", moves.back)
SWAPPED = tuple({"Maps": "Notes", "Notes": "Maps"}.get(name, name) for name in NAMES)
SUM = [f"key/{key}" for key in ("C", "6", "\u00d7", "7", "=")]

# What is done, and what is then seen. Of a row whose last move changes nothing, the picture stays, too.
MOVES: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "text is written with the keys on the screen": ([*NOTES, ("touch", "key/shift", "H", "i", "key/space", "123", "4", "2", "!", "ABC", "x", "key/delete", "return", "q")], {"text": "Hi 42!\nq"}),
    "a tap beside the field puts the keyboard away": ([*NOTES, ("tap", 300, 60)], {"focused": False, "app": "Notes"}),
    "the keyboard goes with Done": ([*NOTES, ("touch", "Done")], {"focused": False}),
    "selected text is replaced": ([*NOTES, ("write", "old"), ("do", moves.all_marked), ("write", "new")], {"text": "new"}),
    "a key that writes nothing keeps what is selected": ([*NOTES, ("write", "kept"), ("do", moves.all_marked), ("write", "")], {"text": "kept", "marked": True}),
    "text is copied": ([*NOTES, ("write", "kept"), ("copy",)], {"text": "kept", "clipboard": "kept", "toast": "Copied"}),
    "text is cut": ([*NOTES, ("write", "gone"), ("cut",)], {"text": "", "clipboard": "gone", "toast": "Cut"}),
    "an address is replaced and opened": ([browse("https://example.com/first-page"), ("touch", "field/Browser"), ("write", "shop.example/new-shoes"), ("touch", "go", "New shoes")], {"url": "https://shop.example/new-shoes"}),
    "a link is followed": ([browse("https://shop.example/new-shoes"), ("touch", "News")], {"text": "https://shop.example/news", "url": "https://shop.example/news"}),
    "an address": ([browse("http://a.b/c")], {"url": "http://a.b/c"}),
    "an address without a scheme": ([browse("a.b/c")], {"url": "https://a.b/c"}),
    "words are looked up": ([browse("red shoes")], {"url": "search://red shoes"}),
    "nothing opens nothing": ([browse(" ")], {"url": ""}),
    "an icon is carried to another place": ([("hold", "app/Maps"), ("move", 400, 400), ("drop", "app/Notes")], {"order": SWAPPED, "lifted": ""}),
    "an icon under a finger that rests hangs on it": ([("lay", "app/Maps"), ("rest", 1), ("move", 400, 400)], {"lifted": "Maps"}),
    "an icon dropped beside all goes back": ([("hold", "app/Maps"), ("move", 400, 400), ("release", 500, 800)], {"order": NAMES, "lifted": ""}),
    "a finger that moves at once lifts nothing": ([("lay", "app/Maps"), ("move", 400, 400)], {"lifted": ""}),
    "a finger inside an app lifts nothing": ([("open", "Notes"), ("press", 380, 330), ("rest", 1), ("move", 400, 400)], {"lifted": ""}),
    "a slider follows the finger": ([("open", "Settings"), ("lay", "slider/Brightness", 0.7), ("move", 600, 580)], {"brightness": 41}),
    "a slider goes all the way": ([("open", "Settings"), ("lay", "slider/Brightness", 0.7), ("release", 0, 580)], {"brightness": 0}),
    "the shade holds switches": ([("swipe", (500, 5), (500, 600)), ("touch", "shade/Wi-Fi")], {"on": USUALLY_ON - {"Wi-Fi"}, "layer": "shade"}),
    "the shade holds news": ([SHADE, ("touch", "Weather")], {"app": "Weather", "layer": ""}),
    "the shade goes by a stroke up": ([SHADE, ("swipe", (500, 900), (500, 300))], {"layer": ""}),
    "the shade goes by a tap": ([SHADE, ("tap", 500, 980)], {"layer": ""}),
    "the shade goes by going back": ([SHADE, BACK], {"layer": ""}),
    "the shade goes by escape": ([SHADE, ("do", moves.dismissed)], {"layer": ""}),
    "open apps are cards": ([("open", "Maps", "Clock", "Notes"), CARDS, ("touch", "card/Clock")], {"app": "Clock"}),
    "asked for twice, it is the app before": ([("open", "Maps", "Clock", "Notes"), CARDS, CARDS], {"app": "Clock"}),
    "a card is thrown away": ([("open", "Maps", "Clock"), CARDS, ("throw", "card/Clock")], {"recent": ("Maps",), "app": HOME}),
    "a page leads to its app": ([("open", "Settings"), enter("About"), ("swipe", (5, 500), (600, 500))], {"app": "Settings", "page": ""}),
    "an app leads home": ([("open", "Settings"), BACK], {"app": HOME}),
    "a list is as far down as it was left": ([("open", "Settings"), ("swipe", (500, 800), (500, 500)), ("touch", "General"), ("touch", "back")], {"scroll": 300, "page": ""}),
    "a switch turns": ([("open", "Settings"), ("touch", "Dark Mode")], {"dark": True}),
    "a wallpaper is chosen": ([("open", "Settings"), ("touch", "Wallpaper", "Wallpaper 4")], {"hue": HUES[3]}),
    "a photo opens": ([("open", "Photos"), ("touch", "Ridge 3")], {"page": "Ridge 3"}),
    "the calculator counts": ([("open", "Calculator"), ("touch", *SUM)], {"figures": "42"}),
    "a message is sent and answered": ([*MESSAGES, ("write", "hello"), ("touch", "Send")], {"text": "", "thread": (*GREETING, (True, "hello"), (False, "Understood."))}),
    "a blank message is not sent": ([*MESSAGES, ("do", moves.returned)], {"thread": GREETING}),
}  # fmt: skip


@pytest.mark.parametrize(("steps", "seen"), MOVES.values(), ids=MOVES)
def test_moves_are_seen(steps: list[Any], seen: dict[str, Any]) -> None:
    hand = Hand()
    for name, *arguments in steps:
        view, picture = hand.view().still(), hand.picture()
        getattr(hand, name)(*arguments)
    found = hand.view().still()
    assert {name: getattr(hand if name == "clipboard" else found, name) for name in seen} == seen
    assert (hand.picture() != picture) is (found != view)


@pytest.mark.parametrize(
    ("line", "result"),
    [
        pytest.param("12\u00d734\u22125", "403", id="products before sums"),
        pytest.param("1\u22122\u22123", "\u22124", id="from left to right"),
        pytest.param("8\u00f74\u00f72", "1", id="quotients from left to right"),
        pytest.param("0.1+0.2", "0.3", id="no more digits than are known"),
        pytest.param("\u22125+2", "\u22123", id="a negative number"),
        pytest.param("1\u00f70", "Error", id="nothing to divide by"),
        pytest.param("1++", "Error", id="no sum"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_the_calculator_counts(line: str, result: str) -> None:
    assert moves.result(line) == result


def test_a_word_about_what_was_copied_and_a_motion_end_by_themselves() -> None:
    hand = Hand()
    hand.open("Notes")
    hand.tap(450, 300)
    hand.write("hello")
    hand.copy()
    assert (hand.view().toast, hand.view().before is None) == ("Copied", False)
    hand.clock.pass_by(ANIMATION_S)
    assert (hand.view().toast, hand.view().before) == ("Copied", None)
    hand.clock.pass_by(TOAST_S)
    assert hand.view().toast == ""


@pytest.mark.parametrize("landscape", [False, True])
def test_every_app_opens_by_its_node(landscape: bool) -> None:
    hand = Hand()
    hand.turn("Landscape", landscape)
    for name in NAMES:
        hand.open(HOME)
        hand.touch(f"app/{name}")
        assert hand.app == name


@pytest.mark.parametrize("action", ["app_switch", "notification_center", "home", "back", "copy", "cut", "select_all"])
def test_quick_actions_are_seen(sim: Simulator, action: str) -> None:
    run_tool(sim, "open_app", app="Notes")
    run_tool(sim, "enter_text", text="hello", focus=NOTES_FIELD)
    before = display.picture(sim.phone.view()).tobytes()
    run_tool(sim, "quick_action", action=action)
    assert display.picture(sim.phone.view()).tobytes() != before


def test_the_phone_shows_this_machines_time_unless_told_a_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    """India's half hour, and a zone that has summer time, in both halves of the year."""
    noon, half_a_year = 1_779_105_600.0, 182 * 86400.0  # 2026-05-18 12:00 UTC
    try:
        for zone, summer, winter in (("IST-5:30", "17:30", "17:30"), ("CET-1CEST,M3.5.0,M10.5.0/3", "14:00", "13:00")):
            monkeypatch.setenv("TZ", zone)
            time.tzset()
            assert [Phone(lambda at=at: at).view().clock for at in (noon, noon + half_a_year)] == [summer, winter]  # type: ignore[misc]
            assert Phone(lambda: noon, zone_s=-3600).view().clock == "11:00"
    finally:
        monkeypatch.undo()
        time.tzset()
