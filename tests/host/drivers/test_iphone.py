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

from mcpboard.errors import NOT_SENT, UNKNOWN, ConfigError, ToolFailed
from mcpboard.host.drivers import app_names, iphone
from mcpboard.host.drivers.base import OFFLINE, READY
from mcpboard.host.drivers.iphone import IPhoneDriver, wda
from mcpboard.host.vision.tree import UiNode
from tests.host.drivers.fake_wda import LIMIT_S, SCALE, SETTINGS, FakePhone, WdaFault, fake_wda, mocked_wda
from tests.host.rig import agent
from tests.support import provision

pytestmark = pytest.mark.slow  # waits for real limits, links or processes

FACEBOOK_WDA = "facebook-wda==1.5.4"


@pytest.fixture
def phone() -> FakePhone:
    return FakePhone()


@pytest.fixture
def driver(phone: FakePhone) -> Iterator[IPhoneDriver]:
    with mocked_wda(phone) as url:
        yield IPhoneDriver(url)


@pytest.fixture
def connected(phone: FakePhone) -> Iterator[IPhoneDriver]:
    """A driver over real sockets, for what is slow."""
    with fake_wda(phone) as url:
        yield IPhoneDriver(url)


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
    with pytest.raises(ToolFailed, match="was turned since its screenshot") as refused:
        driver.tap((60, 120))
    assert refused.value.data == {"delivery": NOT_SENT}
    with pytest.raises(ToolFailed, match="was turned since its screenshot"):
        driver.ui_tree()
    assert driver.take_screenshot().width == 252
    driver.tap((240, 60))
    assert phone.actions == [("tap", 80, 20)]


TEXTS = ["שלום 你好", "👨‍👩‍👧 e\u0301", "'\"\\$;|`", "a\n\tb", "x" * 1000]


@pytest.mark.parametrize("text", TEXTS)
def test_text_is_typed_code_point_by_code_point(phone: FakePhone, driver: IPhoneDriver, text: str) -> None:
    phone.keyboard = True
    driver.input_text(text)
    assert phone.text == text


@pytest.mark.parametrize("text", ["a\0", "\x1b[A", "\ud83d"])
def test_what_no_keyboard_types_is_named_and_nothing_is_sent(phone: FakePhone, driver: IPhoneDriver, text: str) -> None:
    with pytest.raises(ToolFailed, match=r"cannot type U\+[0-9A-F]{4} control character"):
        driver.input_text(text)
    assert phone.requests == []


def test_without_a_field_the_person_is_told_to_tap_into_one(phone: FakePhone, driver: IPhoneDriver) -> None:
    with pytest.raises(ToolFailed, match="tap into a text field first"):
        driver.input_text("lost")
    assert phone.actions == []


@pytest.mark.parametrize(("name", "bundle"), [("Settings", SETTINGS), ("org.example.App", "org.example.App")])
def test_an_app_is_launched_by_bundle_or_by_apples_name(
    phone: FakePhone, driver: IPhoneDriver, name: str, bundle: str
) -> None:
    driver.launch_app(name)
    assert phone.actions == [("launch", bundle)]
    assert driver.app_info() == {"id": bundle, "name": ""}


def test_an_app_is_never_guessed() -> None:
    with pytest.raises(ToolFailed, match=r"'Chess' is no bundle id such as com\.apple\.Preferences"):
        app_names.find_bundle("Chess")


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


@pytest.mark.parametrize(
    "source", [None, [], {"type": 5, "rect": "x"}, {"children": "x"}, {"rect": {"x": 1e999, "y": 0}}]
)
def test_odd_elements_do_no_harm(phone: FakePhone, driver: IPhoneDriver, source: Any) -> None:
    phone.faults["/source"] = lambda: source
    tree = driver.ui_tree()
    assert tree is not None
    assert tree.children == ()


# --- WebDriverAgents of every age --------------------------------------------------------------


def test_the_tap_route_is_found_once_kept_and_found_again_after_an_update() -> None:
    phone = FakePhone(old=True)
    with mocked_wda(phone) as url:
        driver = IPhoneDriver(url)
        driver.tap((3, 3))
        driver.tap((6, 6))
        phone.old = False
        driver.tap((9, 9))
    assert phone.actions == [("tap", 1, 1), ("tap", 2, 2), ("tap", 3, 3)]
    posted = [each.rpartition("/wda/")[2] for each in phone.requests if "tap" in each]
    assert posted == ["tap", "tap/0", "tap/0", "tap/0", "tap"]


def test_an_open_session_is_shared(phone: FakePhone) -> None:
    """A new one is opened only where there is none."""
    phone.open({})
    with mocked_wda(phone) as url:
        IPhoneDriver(url).tap((3, 3))
        assert phone.sessions == 1
        phone.end_session()
        IPhoneDriver(url).tap((3, 3))
        assert phone.sessions == 2


def test_a_read_is_asked_again_in_a_new_session(phone: FakePhone, driver: IPhoneDriver) -> None:
    driver.tap((3, 3))
    phone.end_session()
    driver.tap((6, 6))  # its first step reads the size of the screen
    assert phone.actions == [("tap", 1, 1), ("tap", 2, 2)]
    assert phone.sessions == 2


ACTIONS: list[Any] = [
    pytest.param(lambda driver: driver.tap((3, 3)), "/wda/tap", id="tap"),
    pytest.param(lambda driver: driver.swipe((3, 3), (6, 6), 100), "/actions", id="swipe"),
    pytest.param(lambda driver: driver.input_text("a"), "/wda/keys", id="text"),
    pytest.param(lambda driver: driver.launch_app(SETTINGS), "/wda/apps/launch", id="launch"),
]
Act = Callable[[IPhoneDriver], None]


@pytest.mark.parametrize(("act", "route"), ACTIONS)
def test_no_action_is_repeated_for_a_session_that_ended_under_it(
    phone: FakePhone, driver: IPhoneDriver, act: Act, route: str
) -> None:
    phone.keyboard = True
    driver.take_screenshot()
    phone.faults[route] = WdaFault("invalid session id", 404, "Session does not exist")
    with pytest.raises(ToolFailed, match="nothing was done, call again") as failed:
        act(driver)
    assert failed.value.data == {"delivery": NOT_SENT}
    assert [each for each in phone.requests if each.endswith(route)] == [f"POST /session/S-1{route}"]
    del phone.faults[route]
    act(driver)
    assert len(phone.actions) == 1


@pytest.mark.parametrize(("act", "route"), ACTIONS)
def test_an_action_whose_answer_does_not_come_is_not_repeated(
    phone: FakePhone, connected: IPhoneDriver, act: Act, route: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = connected
    phone.keyboard = True
    driver.tap((0, 0))
    phone.actions.clear()
    phone.faults[route] = lambda: phone.let_go.wait(LIMIT_S)
    for module, name in ((wda, "ACT_SECONDS"), (iphone, "KEY_SECONDS"), (wda, "SLOW_SECONDS")):
        monkeypatch.setattr(module, name, 0.2)
    with pytest.raises(ToolFailed, match="no whole answer within") as failed:
        act(driver)
    assert failed.value.data == {"delivery": UNKNOWN}
    assert len([each for each in phone.requests if each.endswith(route)]) == (2 if route == "/wda/tap" else 1)


# --- faults ------------------------------------------------------------------------------------

ODD = [
    pytest.param(lambda: b"<html>hello</html>", "is no WebDriverAgent", id="a page"),
    pytest.param(lambda: b"[]", "is no WebDriverAgent", id="a list"),
    pytest.param(lambda: b"{}", "is no WebDriverAgent", id="no value"),
    pytest.param(lambda: b"", "is no WebDriverAgent", id="nothing"),
    pytest.param(lambda: "@@@", "no base64", id="a picture that is no base64"),
    pytest.param(lambda: base64.b64encode(b"<html>").decode(), "no JPEG and no PNG", id="a picture that is none"),
    pytest.param(
        WdaFault("unknown error", 500, "Error Domain=XCTDaemonErrorDomain   Not authorized\n" + "x" * 9000),
        "WebDriverAgent says unknown error: Error Domain=XCTDaemonErrorDomain Not authorized", id="an error of XCTest",
    ),
    pytest.param(WdaFault("timeout", 408, "the device is locked"), "unlock the phone", id="a locked phone"),
]  # fmt: skip


@pytest.mark.parametrize(("fault", "message"), ODD)
def test_what_is_no_picture_is_told_in_a_few_words(
    phone: FakePhone, driver: IPhoneDriver, fault: Any, message: str
) -> None:
    phone.faults["/screenshot"] = fault
    with pytest.raises(ToolFailed) as failed:
        driver.take_screenshot()
    assert message in str(failed.value)
    assert len(str(failed.value)) < 700
    del phone.faults["/screenshot"]
    assert driver.take_screenshot()


def test_a_jpeg_is_labelled_as_one(phone: FakePhone, driver: IPhoneDriver) -> None:
    """The label follows the bytes."""
    jpeg = b"\xff\xd8\xff\xc0\x00\x0b\x08\x00\x54\x00\x27\x01\x01\x11\x00"
    phone.faults["/screenshot"] = lambda: base64.b64encode(jpeg).decode()
    shot = driver.take_screenshot()
    assert (shot.mime, shot.width, shot.height) == ("image/jpeg", 39, 84)


@pytest.mark.parametrize("size", [{}, None, {"width": 0, "height": 0}, {"width": "x", "height": 1}])
def test_a_screen_without_a_size_is_not_touched(phone: FakePhone, driver: IPhoneDriver, size: Any) -> None:
    phone.faults["/window/size"] = lambda: size
    with pytest.raises(ToolFailed, match="told no size of the screen"):
        driver.tap((3, 3))
    assert phone.actions == []


def test_an_open_alert_is_told_with_its_buttons(phone: FakePhone, driver: IPhoneDriver) -> None:
    phone.alert = ("“Maps” Would Like to Use\nYour Location", ["Allow Once", "Don’t Allow"])
    with pytest.raises(ToolFailed) as failed:
        driver.tap((3, 3))
    assert "an alert is open: '“Maps” Would Like to Use Your Location'" in str(failed.value)
    assert "answer it by a tap on one of: Allow Once, Don’t Allow" in str(failed.value)
    assert failed.value.data == {"delivery": NOT_SENT}
    assert driver.probe().details["alert"].startswith("“Maps” Would Like")


def test_a_probe_tells_the_phone(phone: FakePhone, driver: IPhoneDriver) -> None:
    driver.take_screenshot()
    probe = driver.probe()
    assert probe.state == READY
    known = {name: value for name, value in probe.details.items() if name != "url"}
    assert known == {
        "model": "iphone", "ios": "17.4", "screen_on": True, "app": "com.apple.springboard", "width": 117, "height": 252,
    }  # fmt: skip


def test_a_slow_detail_makes_no_phone_offline(
    phone: FakePhone, connected: IPhoneDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(iphone, "PROBE_SECONDS", 0.5)
    phone.faults["/wda/activeAppInfo"] = lambda: phone.let_go.wait(LIMIT_S)
    assert connected.probe().state == READY


def test_a_webdriveragent_that_was_away_needs_only_the_next_call(phone: FakePhone) -> None:
    with fake_wda(phone) as url:
        driver = IPhoneDriver(url)
        driver.tap((3, 3))
    probe = driver.probe()
    assert probe.state == OFFLINE
    for remedy in (
        "WebDriverAgent running on it",
        "its signature ends after seven days",
        f"iproxy {url.rpartition(':')[2]} 8100",
    ):
        assert remedy in probe.details["error"]
    with pytest.raises(ToolFailed) as failed:
        driver.tap((6, 6))
    assert failed.value.data == {"delivery": NOT_SENT}
    with fake_wda(phone, int(url.rpartition(":")[2])):
        driver.tap((6, 6))
    assert phone.actions == [("tap", 1, 1), ("tap", 2, 2)]


def test_an_address_that_is_none_is_told_at_once() -> None:
    with pytest.raises(ConfigError):
        IPhoneDriver("ftp://phone")


def test_a_session_that_no_path_may_hold_is_refused(phone: FakePhone) -> None:
    phone.session = "../../x"
    with mocked_wda(phone) as url, pytest.raises(ToolFailed, match="is it WebDriverAgent"):
        wda.WdaClient(url).read("/window/size")


def test_it_is_driven_over_mcp(phone: FakePhone, driver: IPhoneDriver, tmp_path: Path) -> None:
    phone.keyboard = True
    with agent(tmp_path / "data", I=driver) as host:
        caller = host.caller.modern()
        (match,) = caller.call("find_text", query="OK").result["structuredContent"]["matches"]
        x, y = match["center"]
        caller.call("tap", x=x, y=y)
        caller.call("input_text", text="你好")
        assert phone.actions == [("tap", x / SCALE, y / SCALE), ("keys", "你好")]
        phone.keyboard = False
        error = caller.call("input_text", text="a").error
        assert error["code"] == -32000
        assert caller.call("device_status", device_id="I").result["structuredContent"]["model"] == "iphone"


# --- a witness ---------------------------------------------------------------------------------

Ask = Callable[..., Any]


@contextmanager
def witness(url: str) -> Iterator[Ask]:
    """The real facebook-wda at that URL, asked step by step."""
    python = provision.python_prefix(FACEBOOK_WDA)
    script = Path(__file__).with_name("witness.py")
    environ = {"PATH": "/usr/bin:/bin", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", "HOME": "/nonexistent"}
    with subprocess.Popen(
        [python, "-E", "-s", script, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ
    ) as child:
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


@pytest.mark.tools
def test_facebook_wda_and_our_driver_see_the_same_phone(phone: FakePhone) -> None:
    phone.keyboard = True
    with fake_wda(phone) as url, witness(url) as ask:
        driver = IPhoneDriver(url)
        shot = driver.take_screenshot()
        assert base64.b64decode(ask("picture")) == shot.content
        assert [side * ask("scale") for side in ask("size")] == [shot.width, shot.height]
        driver.launch_app("Settings")
        assert ask("app") == SETTINGS == driver.app_info()["id"]
        ask("type", "你好 ")
        driver.input_text("wörld")
        tree = driver.ui_tree()
        assert tree is not None
        assert ask("source")["children"][0]["value"] == "你好 wörld" == tree.children[0].children[0].text
        assert phone.sessions == 1, "the session of one is that of the other"


@pytest.mark.tools
def test_every_action_of_both_is_counted_once_and_at_the_same_place(phone: FakePhone) -> None:
    phone.keyboard = True
    with fake_wda(phone) as url, witness(url) as ask:
        driver = IPhoneDriver(url)
        steps: list[tuple[tuple[Any, ...], Act]] = [
            (("tap", 20, 40), lambda driver: driver.tap((60, 120))),
            (("swipe", 5, 60, 5, 20, 0.5), lambda driver: driver.swipe((15, 180), (15, 60), 500)),
            (("type", "a b"), lambda driver: driver.input_text("a b")),
            (("launch", SETTINGS), lambda driver: driver.launch_app(SETTINGS)),
        ]
        for step, act in steps:
            phone.actions.clear()
            ask(*step)
            act(driver)
            theirs, ours = phone.actions
            assert theirs == ours
        phone.actions.clear()
        ask("new session")
        driver.tap((60, 120))
        assert phone.actions == [("tap", 20, 40)]


@pytest.mark.tools
def test_both_read_the_same_alert(phone: FakePhone) -> None:
    phone.alert = ("Trust?", ["Trust", "Cancel"])
    with fake_wda(phone) as url, witness(url) as ask:
        assert ask("alert") == ["Trust?", ["Trust", "Cancel"]]
        with pytest.raises(ToolFailed, match="'Trust\\?'; answer it by a tap on one of: Trust, Cancel"):
            IPhoneDriver(url).tap((3, 3))
