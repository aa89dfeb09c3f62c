"""An iPhone behind a simulated WebDriverAgent: points and pixels, faults, alerts, and nothing done twice."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mcpboard.errors import NOT_SENT, UNKNOWN
from mcpboard.host.drivers import iphone
from mcpboard.host.drivers.base import OFFLINE, READY
from mcpboard.host.drivers.iphone import IPhoneDriver, wda
from mcpboard.host.vision.tree import UiNode
from mcpboard.protocol.limits import CONTAINERS_LIMIT
from tests.host.drivers import LIMIT_S, refused
from tests.host.drivers.fake_wda import ALERT_OPEN, INVALID, SETTINGS, FakePhone, WdaFault, fake_wda
from tests.support import provision

FACEBOOK_WDA = "facebook-wda==1.5.4"
Act = Callable[[IPhoneDriver], None]


@pytest.fixture
def phone() -> FakePhone:
    return FakePhone()


@pytest.fixture
def url(phone: FakePhone) -> Iterator[str]:
    with fake_wda(phone) as address:
        yield address


@pytest.fixture
def driver(url: str) -> IPhoneDriver:
    return IPhoneDriver(url)


# --- what is done ------------------------------------------------------------------------------


def test_pixels_of_the_screenshot_become_points(phone: FakePhone, driver: IPhoneDriver) -> None:
    shot = driver.take_screenshot()
    assert (shot.width, shot.height, shot.mime) == (117, 252, "image/png")
    driver.tap((60, 120))
    driver.swipe((0, 251), (116, 0), 750)
    assert phone.actions == [("tap", 20, 40), ("swipe", 0, 83.67, 38.67, 0, 0.75)]


def test_a_phone_that_was_turned_is_looked_at_again_before_it_is_touched(
    phone: FakePhone, driver: IPhoneDriver
) -> None:
    driver.take_screenshot()
    phone.landscape = True
    for use in (lambda: driver.tap((60, 120)), driver.ui_tree):
        refused(use, "was turned since its screenshot", delivery=NOT_SENT)
    assert driver.take_screenshot().width == 252
    driver.tap((240, 60))
    assert phone.actions == [("tap", 80, 20)]


def test_text_is_typed_code_point_by_code_point_or_refused_whole(phone: FakePhone, driver: IPhoneDriver) -> None:
    for text, named in (("a\0", "U+0000"), ("\x1b[A", "U+001B"), ("\ud83d", "U+D83D")):
        refused(lambda text=text: driver.input_text(text), f"cannot type {named} control character")  # type: ignore[misc]
    assert phone.requests == []
    refused(lambda: driver.input_text("lost"), "tap into a text field first")
    phone.keyboard = True
    text = "שלום 你好 👨‍👩‍👧 e\u0301 '\"\\$;|` a\n\tb" + "x" * 1000
    driver.input_text(text)
    assert phone.text == text


def test_an_app_is_launched_by_bundle_or_by_apples_name_and_never_guessed(
    phone: FakePhone, driver: IPhoneDriver
) -> None:
    for name, bundle in (("Settings", SETTINGS), ("org.example.App", "org.example.App")):
        driver.launch_app(name)
        assert driver.app_info() == {"id": bundle, "name": ""}
    refused(lambda: driver.launch_app("Chess"), "'Chess' is no bundle id such as com.apple.Preferences")
    assert phone.actions == [("launch", SETTINGS), ("launch", "org.example.App")]


def test_the_elements_are_in_pixels_and_hidden_ones_give_way(phone: FakePhone, driver: IPhoneDriver) -> None:
    phone.text = "Ada"
    tree = driver.ui_tree()
    assert tree is not None
    (application,) = tree.children
    assert application.children == (
        UiNode("field", (6, 30, 111, 54), "Ada", "Name", "name", clickable=True),
        UiNode("button", (12, 60, 42, 78), "OK", "OK", "", clickable=True),
        UiNode("text", (3, 90, 30, 102), "Seen", "Seen"),
    )


# --- WebDriverAgents of every age --------------------------------------------------------------


def test_the_tap_route_is_found_once_kept_and_found_again_after_an_update(
    phone: FakePhone, driver: IPhoneDriver
) -> None:
    phone.old = True
    driver.tap((3, 3))
    driver.tap((6, 6))
    phone.old = False
    driver.tap((9, 9))
    assert phone.actions == [("tap", 1, 1), ("tap", 2, 2), ("tap", 3, 3)]
    posted = [each.rpartition("/wda/")[2] for each in phone.requests if "tap" in each]
    assert posted == ["tap", "tap/0", "tap/0", "tap/0", "tap"]


def test_a_session_is_shared_and_a_read_is_asked_again_in_a_new_one(phone: FakePhone, driver: IPhoneDriver) -> None:
    phone.open_session()
    driver.tap((3, 3))
    assert phone.sessions == 1
    phone.session = None
    driver.tap((6, 6))  # its first step reads the size of the screen
    assert (phone.actions, phone.sessions) == ([("tap", 1, 1), ("tap", 2, 2)], 2)


def test_a_session_that_no_path_may_hold_is_refused(phone: FakePhone, driver: IPhoneDriver) -> None:
    phone.session = "../../x"
    refused(lambda: driver.tap((3, 3)), "is it WebDriverAgent")


ACTIONS: list[Any] = [
    pytest.param(lambda driver: driver.tap((3, 3)), "/wda/tap", id="tap"),
    pytest.param(lambda driver: driver.swipe((3, 3), (6, 6), 100), "/actions", id="swipe"),
    pytest.param(lambda driver: driver.input_text("a"), "/wda/keys", id="text"),
    pytest.param(lambda driver: driver.launch_app(SETTINGS), "/wda/apps/launch", id="launch"),
]


@pytest.mark.parametrize(("act", "route"), ACTIONS)
def test_no_action_is_repeated_whatever_becomes_of_it(
    phone: FakePhone, driver: IPhoneDriver, act: Act, route: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither for a session that ended under it, nor for an answer that does not come."""
    phone.keyboard = True
    driver.take_screenshot()
    phone.faults[route] = INVALID
    refused(lambda: act(driver), "nothing was done, call again", delivery=NOT_SENT)
    assert [each for each in phone.requests if each.endswith(route)] == [f"POST /session/S-1{route}"]
    del phone.faults[route]
    act(driver)
    assert len(phone.actions) == 1
    phone.requests.clear()
    phone.faults[route] = lambda: phone.let_go.wait(LIMIT_S)
    for module, name in ((wda, "ACT_SECONDS"), (iphone, "KEY_SECONDS"), (wda, "SLOW_SECONDS")):
        monkeypatch.setattr(module, name, 0.2)
    refused(lambda: act(driver), "no whole answer within", delivery=UNKNOWN)
    assert len([each for each in phone.requests if each.endswith(route)]) == 1


# --- faults ------------------------------------------------------------------------------------

XCTEST = "Error Domain=XCTDaemonErrorDomain   Not authorized\n"
ODD = [
    pytest.param(lambda: b"<html>hello</html>", "is no WebDriverAgent", id="a page"),
    pytest.param(lambda: b"[]", "is no WebDriverAgent", id="a list"),
    pytest.param(lambda: b"{}", "is no WebDriverAgent", id="no value"),
    pytest.param(lambda: b"", "is no WebDriverAgent", id="nothing"),
    pytest.param(lambda: b'{"value": [' + b"[]," * CONTAINERS_LIMIT + b"[]]}", "more than", id="more lists than are read"),
    pytest.param(lambda: "@@@", "no base64", id="a picture that is no base64"),
    pytest.param(lambda: base64.b64encode(b"<html>").decode(), "no JPEG and no PNG", id="a picture that is none"),
    pytest.param(WdaFault("unknown error", 500, XCTEST + "x" * 9000), "WebDriverAgent says unknown error: Error Domain=XCTDaemonErrorDomain Not authorized", id="an error of XCTest"),
    pytest.param(WdaFault("unknown error", 500, "seen " + base64.b64encode(b"\xff\xd8\xff" + b"x" * 2997).decode() + " twice"), "unknown error: seen (JPEG, 3 kB, left out) twice", id="an error with a picture"),
    pytest.param(WdaFault("timeout", 408, "the device is locked"), "unlock the phone", id="a locked phone"),
]  # fmt: skip


@pytest.mark.parametrize(("fault", "message"), ODD)
def test_what_is_no_picture_is_told_in_a_few_words(
    phone: FakePhone, driver: IPhoneDriver, fault: Any, message: str
) -> None:
    phone.faults["/screenshot"] = fault
    assert len(refused(driver.take_screenshot, message)) < 700
    phone.faults.clear()
    assert driver.take_screenshot()


def test_a_screen_without_a_size_is_not_touched(phone: FakePhone, driver: IPhoneDriver) -> None:
    for size in ({}, None, {"width": 0, "height": 0}, {"width": "x", "height": 1}):
        phone.faults["/window/size"] = lambda size=size: size
        refused(lambda: driver.tap((3, 3)), "told no size of the screen")
    assert phone.actions == []


def test_an_open_alert_is_told_with_its_buttons_if_it_can_be(phone: FakePhone, driver: IPhoneDriver) -> None:
    phone.alert = ("“Maps” Would Like to Use\nYour Location", ["Allow Once", "Don’t Allow"])
    alert = "an alert is open: '“Maps” Would Like to Use Your Location'; answer it by a tap on one of: Allow Once, Don’t Allow"
    refused(lambda: driver.tap((3, 3)), alert, delivery=NOT_SENT)
    assert driver.probe().details["alert"].startswith("“Maps” Would Like")
    phone.faults["/alert/text"] = ALERT_OPEN
    assert refused(lambda: driver.tap((3, 3))).endswith("A modal dialog was open")


def test_a_probe_tells_the_phone_though_a_detail_be_slow(
    phone: FakePhone, driver: IPhoneDriver, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.take_screenshot()
    known = {"url": url, "model": "iphone", "ios": "17.4", "screen_on": True, "width": 117, "height": 252}
    probe = driver.probe()
    assert (probe.state, probe.details) == (READY, {**known, "app": "com.apple.springboard"})
    monkeypatch.setattr(iphone, "PROBE_SECONDS", 0.5)
    phone.faults["/wda/activeAppInfo"] = lambda: phone.let_go.wait(LIMIT_S)
    probe = driver.probe()
    assert (probe.state, probe.details) == (READY, known)


def test_a_webdriveragent_that_was_away_needs_only_the_next_call(phone: FakePhone) -> None:
    with fake_wda(phone) as url:
        driver = IPhoneDriver(url)
        driver.tap((3, 3))
    port = url.rpartition(":")[2]
    probe = driver.probe()
    assert probe.state == OFFLINE
    for remedy in ("WebDriverAgent running on it", "its signature ends after seven days", f"iproxy {port} 8100"):
        assert remedy in probe.details["error"]
    refused(lambda: driver.tap((6, 6)), delivery=NOT_SENT)
    with fake_wda(phone, int(port)):
        driver.tap((6, 6))
    assert phone.actions == [("tap", 1, 1), ("tap", 2, 2)]


# --- a witness ---------------------------------------------------------------------------------


@contextmanager
def witness(url: str) -> Iterator[Callable[..., Any]]:
    """The real facebook-wda at that URL, asked step by step."""
    command = [str(provision.python_prefix(FACEBOOK_WDA)), "-E", "-s", str(Path(__file__).with_name("witness.py")), url]
    environ = {"PATH": "/usr/bin:/bin", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", "HOME": "/nonexistent"}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environ) as child:
        assert child.stdin and child.stdout

        def ask(*step: Any) -> Any:
            assert child.stdin and child.stdout
            child.stdin.write(json.dumps(step) + "\n")
            child.stdin.flush()
            return json.loads(child.stdout.readline())

        try:
            yield ask
        finally:
            child.stdin.close()
            child.wait(LIMIT_S)


STEPS: list[tuple[tuple[Any, ...], Act]] = [
    (("tap", 20, 40), lambda driver: driver.tap((60, 120))),
    (("swipe", 5, 60, 5, 20, 0.5), lambda driver: driver.swipe((15, 180), (15, 60), 500)),
    (("type", "你好 wörld"), lambda driver: driver.input_text("你好 wörld")),
    (("launch", SETTINGS), lambda driver: driver.launch_app(SETTINGS)),
]


@pytest.mark.tools
def test_facebook_wda_and_our_driver_see_and_do_the_same(phone: FakePhone, driver: IPhoneDriver, url: str) -> None:
    """Each action of both is counted once, at the same place, in one session."""
    phone.keyboard = True
    with witness(url) as ask:
        shot = driver.take_screenshot()
        assert base64.b64decode(ask("picture")) == shot.content
        assert [side * ask("scale") for side in ask("size")] == [shot.width, shot.height]
        for step, act in STEPS:
            phone.actions.clear()
            ask(*step)
            act(driver)
            theirs, ours = phone.actions
            assert theirs == ours
        assert ask("app") == SETTINGS == driver.app_info()["id"]
        tree = driver.ui_tree()
        assert tree is not None
        assert ask("source")["children"][0]["value"] == 2 * "你好 wörld" == tree.children[0].children[0].text
        assert phone.sessions == 1
        ask("new session")
        phone.actions.clear()
        driver.tap((60, 120))
        assert phone.actions == [("tap", 20, 40)]
        phone.alert = ("Trust?", ["Trust", "Cancel"])
        assert ask("alert") == ["Trust?", ["Trust", "Cancel"]]
        refused(lambda: driver.tap((3, 3)), "'Trust?'; answer it by a tap on one of: Trust, Cancel")
