"""The pages and what they do, read as a person would read them."""

from __future__ import annotations

import configparser
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mcpboard.errors import ConfigError, ToolFailed
from mcpboard.host.cloud.assignment import AssignmentRun
from mcpboard.host.cloud.worker import CloudStatus
from mcpboard.host.console import presenter
from mcpboard.host.console.templating import ago
from mcpboard.host.devices import registry
from mcpboard.host.drivers.base import OFFLINE, Probe, Screenshot
from tests.host.browser import Browser, Page, settled
from tests.host.rig import CLOUD_OWNER, Agent, Fake, agent, result, threads
from tests.support import ROOT
from tests.support.http import LIMIT_S

pytestmark = pytest.mark.slow  # waits for real limits, links or processes


class Sick(Fake):
    """A fake device with a state of its own."""

    def __init__(self, probe: Probe | Exception) -> None:
        super().__init__()
        self.found = probe

    def probe(self) -> Probe:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Agent]:
    with agent(tmp_path / "data") as found:
        yield found


def looked(browser: Browser, path: str) -> Page:
    """The page once the devices have answered."""
    browser.get(path)
    settled()
    return browser.get(path)


def card(page: Page, device: str) -> str:
    found = re.search(rf'<article class="card" id="card-{device}">.*?</article>', page.html, re.DOTALL)
    assert found, page.text
    return replace(page, body=found[0].encode()).text


# --- the dashboard -------------------------------------------------------------------------------


def test_a_lease_is_shown_with_its_countdown_and_how_the_last_one_ended(host: Agent) -> None:
    browser, caller = host.browser(), host.caller.open()
    caller.call("tap", x=1, y=1, device_id="X")
    host.clock.pass_by(18)
    page, using = looked(browser, "/"), f"MCP session {str(caller.session)[:8]}"
    assert card(page, "X") == f"X fake ready In use by {using} idle for 18 s, free in 42 s if left alone Release…"
    assert card(page, "Y") == "Y fake ready Available"
    host.clock.pass_by(42)
    assert card(looked(browser, "/"), "X") == f"X fake ready Available Last used by {using}; ended: idle."
    host.role.manager.run("X", CLOUD_OWNER, lambda driver: None)
    in_cloud = "X fake ready In use by a cloud assignment until it is done. Last used by"
    assert card(looked(browser, "/"), "X").startswith(in_cloud)


def test_a_call_inside_counts_nothing_down(host: Agent, phone: Fake) -> None:
    phone.stop_inside()
    with threads() as pool:
        call = pool.submit(host.caller.open().call, "tap", x=1, y=1, device_id="X")
        phone.wait_inside()
        host.clock.pass_by(300)
        assert "in a call, free in 60 s if left alone" in card(host.browser().get("/"), "X")
        phone.go_on.set()
        result(call)


def test_sessions_are_shown_with_client_version_last_call_and_devices(host: Agent) -> None:
    """And a token that leases without a session."""
    first, second = host.caller.open(), host.caller.open()
    first.call("tap", x=1, y=1, device_id="X")
    host.clock.pass_by(30)
    second.post("ping")
    host.caller.modern().call("tap", x=1, y=1, device_id="Y")
    principal = host.role.manager.leases()["Y"]
    rows = re.findall(r"<tr>(.*?)</tr>", host.browser().get("/").html, re.DOTALL)[1:]
    assert [re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", row)).strip() for row in rows] == [
        f"{principal.prefix} unknown client 2026-07-28 or none just now Y",
        f"{str(first.session)[:8]} test 1 2025-11-25 30 s ago X",
        f"{str(second.session)[:8]} test 1 2025-11-25 just now no device",
    ]


def test_what_a_client_calls_itself_stays_text(host: Agent) -> None:
    info = {"name": "<script>alert(1)</script>" + "x" * 500, "version": "1"}
    host.caller.post("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=info)
    page = host.browser().get("/")
    assert "<script>alert" not in page.html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;xxx" in page.html
    assert "x" * 100 not in page.html


def test_many_sessions_are_counted_and_those_with_a_lease_come_first(host: Agent) -> None:
    owner = host.caller.open()
    owner.call("tap", x=1, y=1, device_id="X")
    host.clock.pass_by(1)
    for _ in range(presenter.MOST_ROWS + 2):
        host.caller.open()
    page = host.browser().get("/")
    assert page.html.count("<tr>") == 1 + presenter.MOST_ROWS
    assert "And 3 more that use no device or were used longer ago." in page.text
    assert page.text.index(str(owner.session)[:8]) < page.text.index("no device")


def test_an_empty_host_says_what_to_do_next(empty: Agent) -> None:
    browser = empty.browser()
    text = browser.get("/").text
    assert "There is no device yet. Add the first one, and clients can drive it at once." in text
    assert (
        f"Point one at {empty.url} with the token that device-host-agent mcp-token --data {empty.folder} prints" in text
    )
    assert "There is no device yet: the form below adds the first one." in browser.get("/devices").text


OFFLINE_SENTENCE = "offline It does not answer. Check its cable and power; it comes back by itself."
STATES = [
    (Probe(OFFLINE, {"error": "<b>unplugged</b>"}), f"{OFFLINE_SENTENCE} <b>unplugged</b>"),
    (ToolFailed("it burns"), "failing It answers, but something is wrong with it. it burns"),
    (Probe("no driver", {"error": "needs a part"}), "no driver This installation cannot drive it. needs a part"),
    (Probe("no answer"), "no answer It did not answer in time; it is asked again."),
    (Probe("locked"), "locked It cannot be used at the moment: locked."),
]


@pytest.mark.parametrize(("probe", "message"), STATES)
def test_every_state_has_a_sentence_and_an_old_one_is_not_told_any_more(
    tmp_path: Path, probe: Probe | Exception, message: str
) -> None:
    with agent(tmp_path / "data", X=Sick(probe)) as host:
        browser = host.browser()
        assert card(looked(browser, "/"), "X") == f"X fake {message} Not in use"
        host.clock.pass_by(presenter.STALE_SECONDS)
        assert card(browser.get("/"), "X") == "X fake asking It is being asked how it is. Not in use"


AWAY = CloudStatus("https://cloud.example")
RUNNING = AssignmentRun({"id": "a-1", "lease_id": "L", "device_id": "Z"}, 0.0)
RUNNING.phase = "running"
CLOUDS = [
    (None, "This host is not enrolled with a cloud: its devices are for MCP clients only."),
    (AWAY, "Server https://cloud.example Last heartbeat never Reported busy none Assignments none"),
    (replace(AWAY, heartbeat_s=12.0, busy_ids_sent=("X", "Y"), assignments=(RUNNING,)),
     "Last heartbeat 12 s ago Reported busy X, Y Assignments a-1 on Z, running"),
    (replace(AWAY, heartbeat_s=4000.0, problem="no route"),
     "The cloud is not reached: no route. It is tried again by itself. Server https://cloud.example Last heartbeat 1 h ago"),
    (replace(AWAY, pending=2, draining=True), "Still to be told 2 outcomes Draining nothing new is taken"),
]  # fmt: skip


@pytest.mark.parametrize(("state", "message"), CLOUDS)
def test_the_cloud_is_told_as_the_worker_gives_it(host: Agent, state: CloudStatus | None, message: str) -> None:
    host.role.console.presenter.cloud = None if state is None else lambda: state
    assert message in host.browser().get("/").text


AGES = {None: "never", 0.0: "just now", 1.0: "1 s ago", 59.9: "59 s ago", 60.0: "1 min ago", 3599.0: "59 min ago", 7200.0: "2 h ago", 200000.0: "2 d ago"}  # fmt: skip


def test_ages_are_told_coarsely() -> None:
    assert {seconds: ago(seconds) for seconds in AGES} == AGES


# --- polling -------------------------------------------------------------------------------------

PARTS = [("/", "dashboard"), ("/devices", "devices"), ("/devices/X", "device/X"), ("/devices/X", "screenshot/X")]


@pytest.mark.parametrize(("path", "part"), PARTS)
def test_a_poll_brings_the_part_when_it_has_changed_and_nothing_when_not(host: Agent, path: str, part: str) -> None:
    """One that waits for a first answer asks again soon."""
    browser = host.browser()
    page = browser.get(path)
    assert "load delay:400ms" in page.html
    settled()
    second = browser.get(page.poll(part))
    assert (second.status, second.html.count("<html"), "load delay" in second.html) == (200, 0, False)
    assert (browser.get(second.poll(part)).status, browser.get(second.poll(part)).body) == (204, b"")


# --- releasing -----------------------------------------------------------------------------------


def test_a_lease_is_released_after_asking(host: Agent) -> None:
    browser, caller = host.browser(), host.caller.open()
    assert "It is not in use: there is nothing to release." in browser.get("/devices/X/release").text
    caller.call("tap", x=1, y=1, device_id="X")
    asked = browser.get("/devices/X/release")
    (owner,) = host.role.manager.leases().values()
    assert f"Release X? It is in use by MCP session {owner.prefix}." in asked.text
    assert f'name="owner" value="{owner.label}"' in asked.html
    assert host.role.manager.leases() == {"X": owner}, "asking changes nothing"
    assert browser.post("/devices/X/release", {"csrf": asked.csrf, "owner": owner.label}).goes_to == "/"
    page = browser.get("/")
    assert "X was released; a call inside finishes first." in page.text
    assert "ended: released by the operator." in card(page, "X")
    assert host.role.manager.leases() == {}
    assert "was released" not in browser.get("/").text, "shown once"


def test_the_lease_of_somebody_else_who_came_meanwhile_stays(host: Agent) -> None:
    """And that of everybody where the form names nobody."""
    browser, first, second = host.browser(), host.caller.open(), host.caller.open()
    first.call("tap", x=1, y=1, device_id="X")
    asked = browser.get("/devices/X/release")
    (owner,) = host.role.manager.leases().values()
    first.end()
    second.call("tap", x=1, y=1, device_id="X")
    for form in ({"owner": owner.label}, {"owner": ""}, {}):
        assert browser.post("/devices/X/release", {"csrf": asked.csrf, **form}).goes_to == "/"
        assert "Nothing was released: X was no longer in use by that client." in browser.get("/").text
        assert list(host.role.manager.leases()) == ["X"]


# --- devices -------------------------------------------------------------------------------------


def test_a_device_is_added_tested_and_removed(empty: Agent) -> None:
    browser = empty.browser()
    added = browser.submit("/devices", "/devices", id="phone-1", kind="simulated", url="", serial="", interface="")
    assert added.goes_to == "/devices/phone-1"
    assert "phone-1 was added." in browser.get(added.goes_to).text
    assert registry.specs(empty.folder) == [registry.DeviceSpec("phone-1", "simulated")]
    assert json.loads(empty.caller.call("list_devices").text)[0]["id"] == "phone-1"
    empty.caller.open().call("tap", x=1, y=1)
    asked = browser.get("/devices/phone-1/remove")
    assert "Remove phone-1? Clients can no longer use it, and it is taken from MCP session" in asked.text
    assert browser.post("/devices/phone-1/remove", {"csrf": asked.csrf}).goes_to == "/devices"
    assert "phone-1 was removed." in browser.get("/devices").text
    assert (registry.specs(empty.folder), empty.caller.call("list_devices").text) == ([], "[]")


def test_a_test_asks_anew(tmp_path: Path) -> None:
    """The answer is what the device says now, however young the last one is."""
    device = Sick(Probe(OFFLINE, {"error": "unplugged"}))
    with agent(tmp_path / "data", X=device) as host:
        browser = host.browser()
        assert "offline" in looked(browser, "/devices/X").text
        device.found = Probe("ready")
        assert "offline" in looked(browser, "/devices/X").text, "young enough not to be asked again"
        browser.submit("/devices/X", "/devices/X/test")
        settled()
        assert "X is being asked; its answer shows below. Devices X" in (text := browser.get("/devices/X").text)
        assert "Now fake ready" in text


ADDED = [
    ({"id": "", "kind": "simulated"}, "a device's id is 1 to 64 letters"),
    ({"id": "../x", "kind": "simulated"}, "a device's id is 1 to 64 letters"),
    ({"id": "X", "kind": "simulated"}, "there is a device X already"),
    ({"id": "Z"}, "a device's kind is one of"),
    ({"id": "Z", "kind": "board", "url": "ftp://x"}, "http"),
]


@pytest.mark.parametrize(("form", "message"), ADDED)
def test_a_device_that_can_not_be_is_refused_beside_the_form(host: Agent, form: dict[str, str], message: str) -> None:
    page = host.browser().submit("/devices", "/devices", **form)
    assert (page.status, "Nothing was added:" in page.text) == (400, True)
    assert message in page.text
    assert f' value="{form["id"]}"' in page.html, "what was typed is still there"
    assert (host.role.manager.ids(), registry.specs(host.folder)) == (["X", "Y"], [])


def test_a_device_that_is_in_no_file_can_not_be_removed_and_that_is_said(host: Agent) -> None:
    browser = host.browser()
    for path in ("/devices/X", "/devices/X/remove"):
        assert "it cannot be removed here" in browser.get(path).text
    assert browser.submit("/devices/X", "/devices/X/remove").status == 409
    assert host.role.manager.ids() == ["X", "Y"]


def test_a_file_of_devices_that_cannot_be_changed_is_told(empty: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    browser, file = empty.browser(), empty.folder / "devices.json"
    browser.submit("/devices", "/devices", id="phone-1", kind="simulated")

    def gone(folder: Path, device_id: str) -> None:
        raise ConfigError(f"there is no device {device_id}")

    monkeypatch.setattr(registry, "remove", gone)  # somebody else was first
    page = browser.submit("/devices/phone-1", "/devices/phone-1/remove")
    assert (page.status, "there is no device phone-1" in page.text) == (409, True)
    file.write_text("{", "utf-8")
    assert "not a JSON object any more; delete it" in browser.get("/devices/phone-1").text
    page = browser.submit("/devices", "/devices", id="Z", kind="simulated")
    assert (page.status, "delete it" in page.text) == (400, True)


def test_an_unknown_device_has_a_page_that_says_so(host: Agent) -> None:
    for path in ("/devices/gone", "/devices/gone/screenshot/0", "/devices/gone/release", "/live/device/gone/0"):
        page = host.browser().get(path)
        assert (page.status, page.headers["hx-redirect"]) == (404, "/devices")
        assert "unknown device: gone. It may have been removed meanwhile." in page.text


# --- screenshots ------------------------------------------------------------------------------------


def test_twenty_tabs_share_one_screenshot_that_takes_no_lease(host: Agent, phone: Fake) -> None:
    browser = host.browser()
    assert "The first screenshot is on its way." in browser.get("/devices/X").text
    for _ in range(20):
        page = looked(browser, "/devices/X")
    found = re.search(r'<img src="(/devices/X/screenshot/[0-9a-f]{16})" width="100" height="200"', page.html)
    assert found
    image = browser.get(found[1])
    assert (image.body, image.headers["content-type"]) == (b"picture", "image/png")
    assert "Live; watching does not use the device." in page.text
    assert phone.done == [("peek",)]
    host.clock.pass_by(presenter.FRESH_SECONDS)
    looked(browser, "/devices/X")
    assert phone.done == [("peek",)] * 2
    assert (host.role.manager.leases(), host.role.manager.last_ended("X")) == ({}, None)


def test_while_somebody_is_at_the_device_the_last_screenshot_stays_and_says_its_age(host: Agent, phone: Fake) -> None:
    browser = host.browser()
    looked(browser, "/devices/X")
    phone.stop_inside()
    with threads() as pool:
        call = pool.submit(host.caller.open().call, "tap", x=1, y=1, device_id="X")
        phone.wait_inside()
        phone.wait_inside()
        host.clock.pass_by(15)
        page = looked(browser, "/devices/X")
        assert "As it was 15 s ago; a newer one comes when nobody is at the device." in page.text
        phone.go_on.set()
        assert result(call).text == "tapped 1,1 on X"
    assert "Live; watching does not use the device." in looked(browser, "/devices/X").text


PEEKED = [
    (ToolFailed("device offline: unplugged"), "No screenshot: device offline: unplugged", 404),
    (OSError("gone away"), "No screenshot: gone away", 404),
    (RuntimeError(), "No screenshot: RuntimeError", 404),
    (
        Screenshot(b"<script>", "text/html", 1, 1),
        "No screenshot: the device sent text/html instead of a screenshot",
        404,
    ),
    (Screenshot(b"x", "image/png", 1, 1, note="It is black all over."), "It is black all over. Live;", 200),
]


@pytest.mark.parametrize(("peeked", "message", "status"), PEEKED)
def test_the_page_says_why_there_is_no_screenshot_and_what_the_driver_says_of_one(
    host: Agent, phone: Fake, monkeypatch: pytest.MonkeyPatch, peeked: Exception | Screenshot, message: str, status: int
) -> None:
    """A device could otherwise put a page of its own at our address."""
    if isinstance(peeked, Exception):
        phone.fault = peeked
    else:
        monkeypatch.setattr(phone, "peek", lambda: peeked)
    browser = host.browser()
    assert message in looked(browser, "/devices/X").text
    assert browser.get("/devices/X/screenshot/0").status == status


# --- beside MCP ------------------------------------------------------------------------------------

TABS, POLLS, CALLS = 20, 5, 8


def test_twenty_tabs_and_eight_calls_do_not_get_in_each_others_way(tmp_path: Path) -> None:
    """Every device is busy and one is dead; pages answer all the same, and every call is made, once."""
    phones: dict[str, Any] = {f"phone-{number}": Fake() for number in range(CALLS)}
    dead = Fake()
    dead.stop_inside()
    with agent(tmp_path / "data", dead=dead, **phones) as host, threads() as pool:
        browser = host.browser()
        browser.get("/devices/dead")
        dead.wait_inside()  # a screenshot that does not come
        for phone in phones.values():
            phone.stop_inside()
        calls = [pool.submit(host.caller.open().call, "tap", x=1, y=1, device_id=name) for name in phones]
        for phone in phones.values():
            phone.wait_inside()

        def tab(number: int) -> set[int]:
            parts = ("dashboard", "devices", "screenshot/dead", f"screenshot/phone-{number % CALLS}")
            return {browser.get(f"/live/{part}/0").status for part in parts for _ in range(POLLS)}

        with threads() as tabs:
            assert set.union(*tabs.map(tab, range(TABS), timeout=6 * LIMIT_S)) == {200}
        assert host.caller.post("tools/list").result["tools"], "others are served meanwhile"
        assert not any(call.done() for call in calls)
        for phone in (*phones.values(), dead):
            phone.go_on.set()
        assert [result(call).text for call in calls] == [f"tapped 1,1 on {name}" for name in phones]
        settled()
        for phone in phones.values():
            assert (phone.done.count(("tap", (1, 1))), phone.most_inside) == (1, 1)


def test_the_agent_ends_in_time_though_a_device_hangs_in_a_screenshot(tmp_path: Path) -> None:
    phone = Fake()
    phone.stop_inside()
    try:
        with agent(tmp_path / "data", X=phone) as host:
            host.browser().get("/devices/X")
            phone.wait_inside()
        assert not phone.closed, "not under the screenshot"
    finally:
        phone.go_on.set()
        settled()
    assert phone.closed


def test_every_file_of_the_host_is_installed() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", "utf-8")
    for package, kinds in (("host/console", ("templates/*", "static/*")), ("host/tools", ("*.json",))):
        folder = ROOT / "mcpboard" / package
        patterns = setup["options.package_data"][f"mcpboard/{package}".replace("/", ".")].split(",")
        packed = {path for pattern in patterns for path in folder.glob(pattern.strip())}
        assert packed == {path for kind in kinds for path in folder.glob(kind)}
