"""Fingers, keys and commands change the simulated phone, and each change is seen."""

from __future__ import annotations

import time
from typing import Any

import pytest

from mcpboard.simulator import Phone, Simulator
from mcpboard.simulator.phone import display, frames, moves
from mcpboard.simulator.phone.phone import ANIMATION_S, TOAST_S
from mcpboard.simulator.phone.view import HOME, HUES
from tests.simulator.simulating import Clock, new_board, output, run_tool

FIELD = (450, 300)


class Hand:
    """A phone, its clock, and a finger that finds things by what they say."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.phone = Phone(self.clock)

    def settle(self) -> None:
        self.clock.sleep(ANIMATION_S)

    def picture(self) -> bytes:
        return display.picture(self.phone.view()).tobytes()

    def place(self, text: str, share: float = 0.5) -> tuple[float, float]:
        """The place of the node with this text, description or id, as far along it as `share`."""
        node = next(each for each in self.phone.tree().walk() if text in (each.text, each.desc, each.id))
        width, height = self.phone.view().pixels
        left, top, right, bottom = node.box
        return (left + (right - left) * share) * 1000 / (width - 1), (top + bottom) / 2 * 1000 / (height - 1)

    def touch(self, text: str, share: float = 0.5) -> None:
        self.phone.tap(*self.place(text, share))


@pytest.fixture
def hand() -> Hand:
    return Hand()


@pytest.fixture
def notes(hand: Hand) -> Hand:
    hand.phone.show("Notes")
    hand.phone.tap(*FIELD)
    hand.settle()
    return hand


def test_text_is_written_with_the_keys_on_the_screen(notes: Hand) -> None:
    for key in ("key/shift", "H", "i", "key/space", "123", "4", "2", "!", "ABC", "x", "key/delete", "return", "q"):
        notes.touch(key)
    assert notes.phone.text == "Hi 42!\nq"


def test_a_tap_beside_the_field_puts_the_keyboard_away(notes: Hand) -> None:
    notes.phone.tap(300, 60)
    assert notes.phone.write("x") is False


def test_the_keyboard_is_gone_after_done(notes: Hand) -> None:
    notes.touch("Done")
    assert not any(node.role == "keyboard" for node in notes.phone.tree().walk())


def test_an_address_is_replaced_and_opened(hand: Hand) -> None:
    hand.phone.do(lambda view: moves.browsed(view, "https://example.com/first-page"))
    hand.touch("field/Browser")
    hand.phone.write("shop.example/new-shoes")
    hand.touch("go")
    assert hand.phone.view().url == "https://shop.example/new-shoes"
    assert hand.place("New shoes")
    hand.touch("News")
    assert hand.phone.text == "https://shop.example/news"


@pytest.mark.parametrize(
    ("words", "url"),
    [
        pytest.param("http://a.b/c", "http://a.b/c", id="an address"),
        pytest.param("a.b/c", "https://a.b/c", id="an address without a scheme"),
        pytest.param("red shoes", "search://red shoes", id="words"),
        pytest.param(" ", "", id="nothing"),
    ],
)
def test_what_is_typed_becomes_an_address(hand: Hand, words: str, url: str) -> None:
    hand.phone.do(lambda view: moves.browsed(view, words))
    assert hand.phone.view().url == url


def test_an_icon_is_carried_to_another_place(hand: Hand) -> None:
    start, end = hand.place("app/Maps"), hand.place("app/Notes")
    hand.phone.press(*start, held=True)
    assert hand.phone.view().lifted == "Maps"
    hand.phone.move(400, 400)
    in_the_air = hand.picture()
    hand.phone.release(*end)
    hand.settle()
    assert hand.place("app/Maps") == end
    assert hand.place("app/Notes") == start
    assert in_the_air != hand.picture()


def test_an_icon_that_is_dropped_beside_all_goes_back(hand: Hand) -> None:
    start = hand.place("app/Maps")
    hand.phone.press(*start, held=True)
    hand.phone.release(500, 800)
    assert hand.place("app/Maps") == start


def test_a_finger_that_rests_lifts_an_icon_too(hand: Hand) -> None:
    hand.phone.press(*hand.place("app/Maps"))
    hand.clock.sleep(1)
    hand.phone.move(400, 400)
    assert hand.phone.view().lifted == "Maps"


def test_a_finger_inside_an_app_lifts_nothing(hand: Hand) -> None:
    place = hand.place("app/Maps")
    hand.phone.show("Notes")
    hand.phone.press(*place, held=True)
    assert hand.phone.view().lifted == ""


def test_a_finger_that_moves_at_once_lifts_nothing(hand: Hand) -> None:
    hand.phone.press(*hand.place("app/Maps"))
    hand.phone.move(400, 400)
    assert hand.phone.view().lifted == ""


def test_a_slider_follows_the_finger(hand: Hand) -> None:
    hand.phone.show("Settings")
    hand.settle()
    before = hand.picture()
    knob = hand.place("slider/Brightness", 0.7)
    hand.phone.press(*knob)
    hand.phone.move(knob[0] - 100, knob[1])
    assert hand.phone.view().brightness < 60
    hand.phone.release(0, knob[1])
    assert hand.phone.view().brightness == 0
    assert hand.picture() != before
    hand.touch("slider/Brightness", 1)
    assert hand.phone.view().brightness == 100


def test_the_shade_holds_switches_and_news(hand: Hand) -> None:
    hand.phone.swipe((500, 5), (500, 600))
    hand.touch("shade/Wi-Fi")
    hand.touch("Weather")
    assert "Wi-Fi" not in hand.phone.view().on
    assert (hand.phone.app, hand.phone.view().layer) == ("Weather", "")


@pytest.mark.parametrize(
    "leave",
    [
        pytest.param(lambda phone: phone.swipe((500, 900), (500, 300)), id="a stroke up"),
        pytest.param(lambda phone: phone.tap(500, 980), id="a tap"),
        pytest.param(lambda phone: phone.do(moves.back), id="back"),
        pytest.param(lambda phone: phone.do(moves.dismissed), id="escape"),
    ],
)
def test_the_shade_goes_away_by(hand: Hand, leave: Any) -> None:
    hand.phone.do(moves.shade)
    leave(hand.phone)
    assert hand.phone.view().layer == ""


def test_open_apps_are_cards(hand: Hand) -> None:
    for app in ("Maps", "Clock", "Notes"):
        hand.phone.show(app)
    hand.phone.do(moves.switcher)
    hand.touch("card/Clock")
    assert hand.phone.app == "Clock"
    hand.phone.do(moves.switcher)
    hand.phone.do(moves.switcher)
    assert hand.phone.app == "Notes", "asked for twice, it is the app before"


def test_a_card_can_be_thrown_away(hand: Hand) -> None:
    for app in ("Maps", "Clock"):
        hand.phone.show(app)
    hand.phone.do(moves.switcher)
    x, y = hand.place("card/Clock")
    hand.phone.swipe((x, y), (x, y - 300))
    assert hand.phone.view().recent == ("Maps",)
    assert hand.phone.app == HOME


def test_back_goes_one_step_at_a_time(hand: Hand) -> None:
    hand.phone.show("Settings")
    hand.phone.do(lambda view: moves.entered(view, "About"))
    hand.phone.swipe((5, 500), (600, 500))
    assert (hand.phone.app, hand.phone.view().page) == ("Settings", "")
    hand.phone.do(moves.back)
    assert hand.phone.app == HOME


def test_a_list_is_as_far_down_as_it_was_left(hand: Hand) -> None:
    hand.phone.show("Settings")
    hand.phone.swipe((500, 800), (500, 500))
    hand.touch("General")
    assert hand.phone.view().scroll == 0
    hand.touch("back")
    assert hand.phone.view().scroll == 300


def test_a_wallpaper_is_chosen(hand: Hand) -> None:
    hand.phone.show("Settings")
    hand.touch("Wallpaper")
    hand.touch("Wallpaper 4")
    assert hand.phone.view().hue == HUES[3]


def test_photos_open(hand: Hand) -> None:
    hand.phone.show("Photos")
    hand.touch("Ridge 3")
    assert hand.phone.view().page == "Ridge 3"


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


def test_the_calculator_is_pressed(hand: Hand) -> None:
    hand.phone.show("Calculator")
    for key in ("C", "6", "\u00d7", "7", "="):
        hand.touch(f"key/{key}")
    assert hand.phone.view().figures == "42"


def test_what_is_copied_is_told_for_a_moment(notes: Hand) -> None:
    notes.phone.write("hello")
    notes.phone.copy()
    assert notes.phone.view().toast == "Copied"
    notes.clock.sleep(TOAST_S)
    assert notes.phone.view().toast == ""


def test_selected_text_is_replaced(sim: Simulator) -> None:
    run_tool(sim, "open_app", app="Notes")
    run_tool(sim, "enter_text", text="old", focus={"x": 450, "y": 105})
    before = display.picture(sim.phone.view()).tobytes()
    run_tool(sim, "quick_action", action="select_all")
    assert display.picture(sim.phone.view()).tobytes() != before
    run_tool(sim, "keyboard_tap", keys=list("new"))
    assert sim.phone.text == "new"
    run_tool(sim, "quick_action", action="cut")
    assert (sim.phone.text, sim.phone.clipboard) == ("", "new")


def test_a_key_that_writes_nothing_keeps_what_is_selected(sim: Simulator) -> None:
    run_tool(sim, "open_app", app="Notes")
    run_tool(sim, "enter_text", text="kept", focus={"x": 450, "y": 105})
    run_tool(sim, "quick_action", action="select_all")
    run_tool(sim, "keyboard_tap", keys=["f5"])
    assert sim.phone.text == "kept"
    run_tool(sim, "keyboard_tap", keys=["shift", "a"])
    assert sim.phone.text == "A"


@pytest.mark.parametrize("action", ["app_switch", "notification_center", "home", "back", "copy", "cut", "select_all"])
def test_quick_actions_are_seen(sim: Simulator, action: str) -> None:
    run_tool(sim, "open_app", app="Notes")
    run_tool(sim, "enter_text", text="hello", focus={"x": 450, "y": 105})
    before = display.picture(sim.phone.view()).tobytes()
    run_tool(sim, "quick_action", action=action)
    assert display.picture(sim.phone.view()).tobytes() != before


def test_a_turned_phone_fills_the_width_of_the_frame(sim: Simulator) -> None:
    sim.phone.turn("Landscape", True)
    shot = output(run_tool(sim, "screenshot"))
    assert (shot["width"], shot["height"]) == (shot["active_width"], shot["active_height"]) == (1920, 886)
    assert (shot["active_area"]["X"], shot["active_area"]["Y"]) == (0, 97)
    run_tool(sim, "touch_gesture", type="tap", point={"x": 200, "y": 230})
    assert sim.phone.app == "Notes"
    sim.phone.turn("Landscape", False)
    assert output(run_tool(sim, "wait_for_stable_screen"))["height"] == 1080


def test_waiting_for_a_stable_screen_skips_the_animation() -> None:
    """The picture taken at once is on its way; the one that was waited for is the app's."""
    with new_board() as board:
        board.phone.show("Settings")
        assert board.phone.view().before is not None
        early = output(run_tool(board, "screenshot"))["data"]
        stable = output(run_tool(board, "wait_for_stable_screen"))
        assert stable["stable"] is True
        assert board.phone.view().before is None
        assert stable["data"] not in (early, "")
        assert stable["data"] == output(run_tool(board, "screenshot"))["data"]


def test_the_same_inputs_give_the_same_pictures() -> None:
    """Byte for byte, on two phones with the same seed and a clock of their own each."""
    films = []
    for _ in range(2):
        hand = Hand()
        film = []
        for app in ("Settings", "Notes", "Photos", "Clock", HOME):
            hand.phone.show(app)
            for _ in range(4):
                film.append(frames.jpeg(display.picture(hand.phone.view())))
                hand.clock.sleep(0.1)
        films.append(film)
    assert films[0] == films[1]
    assert len(set(films[0])) > 15


def test_a_message_is_sent_and_answered(sim: Simulator) -> None:
    run_tool(sim, "open_app", app="Messages")
    run_tool(sim, "enter_text", text="hello", focus={"x": 400, "y": 950})
    run_tool(sim, "quick_action", action="send")
    assert sim.phone.view().thread[-2:] == ((True, "hello"), (False, "Understood."))
    assert sim.phone.text == ""
    run_tool(sim, "keyboard_tap", keys=["enter"])
    assert len(sim.phone.view().thread) == 4, "a blank one is not sent"


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
