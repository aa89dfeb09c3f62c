"""The console as a person meets it: Debian's Chromium, headless, its log read after every test."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from selenium import webdriver
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException, WebDriverException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from mcpboard.errors import ToolFailed
from mcpboard.host.devices import registry
from mcpboard.host.drivers.base import OFFLINE, Probe
from mcpboard.host.drivers.simulated import SimulatedDriver
from tests.host.rig import Agent, Fake, agent

pytestmark = pytest.mark.tools

LIMIT_S = 20.0  # for what a page does within three; the machine may be busy

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--force-device-scale-factor=1",
)  # fmt: skip


class Screen:
    """Chromium with one window, and the words that tests use of it."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, url: str) -> None:
        self.driver.get(url)

    def text(self) -> str:
        """What can be read in the window; again if the page changes under the reading."""
        return str(self.until(lambda: " ".join(self.driver.find_element(By.TAG_NAME, "body").text.split())))

    def find(self, selector: str) -> WebElement:
        found: WebElement = self.until(lambda: self.driver.find_element(By.CSS_SELECTOR, selector))
        return found

    def click(self, selector: str) -> None:
        def clicked() -> bool:
            self.driver.find_element(By.CSS_SELECTOR, selector).click()
            return True

        self.until(clicked)

    def reads(self, *texts: str) -> None:
        """Return once all of it can be read, with no reload by us."""
        self.until(lambda: all(each in self.text() for each in texts), f"{texts} never showed")

    def reads_no_more(self, text: str) -> None:
        self.until(lambda: text not in self.text(), f"{text!r} stayed")

    def js(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def look(self, width: int, scheme: str) -> None:
        """Be a window of that width whose person likes light or dark."""
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        wish = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", wish)

    def keys(self, *keys: str) -> None:
        ActionChains(self.driver).send_keys(*keys).perform()

    def severe(self) -> list[str]:
        """The log's bad lines since the last look."""
        lines: list[dict[str, Any]] = self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        return [line["message"] for line in lines if line["level"] == "SEVERE"]

    def until(self, claim: Callable[[], Any], message: str = "") -> Any:
        """What the claim comes to once it is true, while the page may change under it."""
        passing = [NoSuchElementException, StaleElementReferenceException]

        def tried(_: webdriver.Chrome) -> Any:
            try:
                return claim()
            except WebDriverException as error:
                # What the driver says, without a kind of its own, of a node that went away while it was read.
                if "does not belong to the document" in str(error.msg):
                    return None
                raise

        return WebDriverWait(self.driver, LIMIT_S, 0.1, passing).until(tried, message)


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    program, helper = shutil.which("chromium"), shutil.which("chromedriver")
    assert program and helper, "apt-get install chromium chromium-driver"
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(helper))
    yield driver
    driver.quit()


@pytest.fixture
def screen(chromium: webdriver.Chrome) -> Iterator[Screen]:
    """A window that knows nobody; the test must leave no SEVERE line in the log, or have read it itself."""
    chromium.delete_all_cookies()
    found = Screen(chromium)
    found.look(1440, "light")
    found.severe()
    yield found
    lines = found.severe()
    chromium.get("about:blank")  # before its server ends
    assert lines == []


@pytest.fixture
def phone() -> SimulatedDriver:
    return SimulatedDriver()


@pytest.fixture
def host(tmp_path: Path, phone: SimulatedDriver) -> Iterator[Agent]:
    with agent(tmp_path / "data", real_time=True, X=phone, Y=Fake()) as found:
        yield found


@pytest.fixture
def inside(screen: Screen, host: Agent) -> Screen:
    """Logged in, at the dashboard."""
    screen.open(host.base)
    screen.find("#token").send_keys(host.token, Keys.ENTER)
    screen.reads("MCP sessions")
    return screen


def test_a_person_logs_in_once_and_out_again(screen: Screen, host: Agent) -> None:
    screen.open(f"{host.base}/devices")
    screen.reads("Paste the token of this host agent.")
    assert screen.js("return document.activeElement.id") == "token", "ready to paste"
    screen.find("#token").send_keys(host.token, Keys.ENTER)
    screen.reads("MCP sessions", "X")
    screen.open(f"{host.base}/devices")
    screen.reads("Add a device")
    assert screen.js("return document.cookie") == "", "no script sees the cookie"
    screen.click(".out button")
    screen.reads("Paste the token of this host agent.")
    screen.driver.back()
    screen.reads("Paste the token of this host agent.")


def test_a_lease_of_an_mcp_client_shows_by_itself_and_counts_down(inside: Screen, host: Agent) -> None:
    inside.reads("Available", "No client has a session")
    caller = host.caller.open()
    caller.call("tap", x=1, y=1, device_id="X")
    inside.reads(f"In use by MCP session {str(caller.session)[:8]}", "if left alone", "test 1")
    inside.reads_no_more("in a call")

    assert caller.end() == 204
    inside.reads("ended: its session ended.")


def test_a_lease_is_released_with_only_the_keyboard_after_asking(inside: Screen, host: Agent) -> None:
    host.caller.open().call("tap", x=1, y=1, device_id="X")
    inside.find("#release-X")
    inside.js("document.activeElement.blur()")

    def focus() -> str:
        return str(inside.js("const e = document.activeElement; return e.id || e.textContent.trim()"))

    def tab_to(name: str) -> None:
        for _ in range(20):
            if focus() == name:
                return
            inside.keys(Keys.TAB)
        raise AssertionError(f"{name} cannot be reached")

    inside.keys(Keys.TAB)
    assert focus() == "Skip to the content"
    tab_to("release-X")
    before = inside.find("#card-X meter").get_attribute("value")
    inside.until(lambda: inside.find("#card-X meter").get_attribute("value") != before)
    assert focus() == "release-X", "the page renews itself around the focus"
    inside.keys(Keys.ENTER)
    inside.reads("Release X?", "A call inside finishes first")
    assert list(host.role.manager.leases()) == ["X"]
    tab_to("Release")
    assert inside.js("return getComputedStyle(document.activeElement).outlineStyle") == "solid"
    inside.keys(Keys.ENTER)
    inside.reads("X was released", "ended: released by the operator.")
    assert host.role.manager.leases() == {}


def test_a_device_is_added_tested_and_removed(inside: Screen, host: Agent) -> None:
    inside.click("nav a:nth-child(2)")
    inside.find("#id").send_keys("new-1")
    inside.find("#kind").send_keys("simulated")
    inside.click(".fields .primary")
    inside.reads("new-1 was added.", "ready", "Live; watching does not use the device.")
    inside.click("form[action$='/test'] button")
    inside.reads("new-1 is being asked; its answer shows below.", "ready")
    inside.click("a[href$='/remove']")
    inside.reads("Remove new-1?")
    inside.click("form[action$='/remove'] button")
    inside.reads("new-1 was removed.", "Add a device")
    assert registry.specs(host.folder) == []
    assert host.role.manager.leases() == {}


def test_the_screenshot_is_live_and_an_unplugged_phone_is_told_and_comes_back(
    inside: Screen, host: Agent, phone: SimulatedDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside.open(f"{host.base}/devices/X")
    loaded = "const i = document.querySelector('.screen img'); return i && i.complete && i.naturalWidth > 0 && i.src"
    first = inside.until(lambda: inside.js(loaded), "no screenshot came")
    phone.phone.show("Notes")
    inside.until(lambda: inside.js(loaded) not in (None, False, first), "the screenshot stood still")
    with monkeypatch.context() as unplugged:
        unplugged.setattr(phone, "probe", lambda: Probe(OFFLINE))
        unplugged.setattr(phone, "peek", Mock(side_effect=ToolFailed("device offline")))
        inside.reads("offline", "It does not answer.", "No screenshot: device offline")
    inside.reads("ready", "Live; watching does not use the device.")
    assert host.role.manager.leases() == {}


def test_an_agent_that_is_gone_is_told_and_a_restart_asks_for_the_token(screen: Screen, tmp_path: Path) -> None:
    with agent(tmp_path / "data", real_time=True, X=Fake()) as host:
        port = int(host.base.rpartition(":")[2])
        screen.open(host.base)
        screen.find("#token").send_keys(host.token, Keys.ENTER)
        screen.reads("Available")
        assert "The host agent does not answer." not in screen.text()
    screen.reads("The host agent does not answer. What you see is how things were")
    with agent(tmp_path / "data", real_time=True, port=port, X=Fake()):
        screen.reads("Paste the token of this host agent.")
    expected = ("ERR_CONNECTION_REFUSED", "status of 401", "htmx.min.js")  # which logs what became of its polls
    lines = screen.severe()
    assert [line for line in lines if not any(word in line for word in expected)] == []


SIZES = [(width, scheme) for width in (360, 1440) for scheme in ("light", "dark")]
PAGES = ("", "devices", "devices/X", "devices/Y", "devices/X/release", "devices/written/remove", "devices/gone")

CONTRAST = Path(__file__).with_name("contrast.js").read_text("utf-8")  # what is hard to read in a page


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_every_page_is_readable(inside: Screen, host: Agent, tmp_path: Path, width: int, scheme: str) -> None:
    """Nothing is wider than the window, every text has contrast; screenshots stay in pytest's folder to be looked at."""
    registry.add(host.folder, registry.DeviceSpec("written", "simulated"))
    host.caller.open().call("tap", x=1, y=1, device_id="X")
    host.caller.call("tap", x=1, y=1, device_id="Y", session_id="new")
    host.role.manager.release("Y")
    host.role.manager.add("ill", "board", Ill())
    inside.look(width, scheme)
    for page in PAGES:
        inside.open(f"{host.base}/{page}")
        inside.reads_no_more("It is being asked")
        inside.reads_no_more("The first screenshot is on its way.")
        screenshot = tmp_path / f"{page.replace('/', '-') or 'dashboard'}-{width}-{scheme}.png"
        assert inside.driver.save_screenshot(str(screenshot))
        assert inside.js("return document.documentElement.scrollWidth") <= width, page
        assert inside.js(CONTRAST) == [], page
    inside.severe()  # the page of a device that is gone is a 404


class Ill(Fake):
    """A device with much to say of what it lacks."""

    def probe(self) -> Probe:
        return Probe("failing", {"error": "no-blank-anywhere-" * 12})
