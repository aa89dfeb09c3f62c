"""An Android phone behind the adb server: one shell command for each thing that is done.

A phone that was away, restarted or attached anew needs nothing but the next call; one by network
is connected again before anything is sent. What moves the phone is sent once.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from mcpboard.errors import NOT_SENT, UNKNOWN, ToolFailed
from mcpboard.host.drivers import app_names
from mcpboard.host.drivers.android import dumpsys, keys, png, uiautomator
from mcpboard.host.drivers.android.adb import READY as TAKES_COMMANDS
from mcpboard.host.drivers.android.adb import (
    AdbClient,
    AdbServerMissing,
    AttachedDevice,
    DeviceSilent,
    DeviceUnavailable,
    is_address,
)
from mcpboard.host.drivers.android.adb_wire import ShellResult
from mcpboard.host.drivers.base import OFFLINE, READY, Point, Probe, Screenshot, ScreenshotMixin
from mcpboard.host.drivers.image_size import size_of
from mcpboard.host.vision.tree import UiNode
from mcpboard.transport.deadline import Deadline

PROBE_SECONDS = 1.8  # of the two that a probe may take
READ_SECONDS = 8.0  # for what the phone tells about itself
ACT_SECONDS = 5.0  # for a touch, besides the time that it lasts
PICTURE_SECONDS = 20.0  # a large screen over Wi-Fi
TREE_SECONDS = 20.0  # uiautomator waits up to ten for the screen to come to rest
LAUNCH_SECONDS = 20.0  # a cold start
KEY_SECONDS = 0.03  # for one character, on a slow phone

PICTURE = "screencap -p"
DISPLAYS = "dumpsys SurfaceFlinger --display-id"
# `uiautomator dump` writes to a file alone, and ends well whatever came of it.
TREE = "f=${TMPDIR:-/data/local/tmp}/mcpboard-$$.xml; uiautomator dump $f 1>&2; cat $f; code=$?; rm -f $f; exit $code"
PACKAGES = "pm list packages"

BLACK = (
    "The picture is black all over: the screen is off, or the app in front forbids pictures of itself "
    "(a secure window); device_status tells whether the screen is on."
)

TURNED = "the phone was turned since its picture: take_screenshot and look again"

# What a phone says -> what to do about it.
CURES: Mapping[str, str] = {
    "INJECT_EVENTS": "switch on 'USB debugging (Security settings)' in the phone's developer options",
    "could not get idle state": "the screen keeps moving: wait until it is still, or use take_screenshot",
    "null root node": "the screen is off, locked, or drawn by an app that tells no elements: use take_screenshot",
    "No activities found to run": "that package has nothing to launch",
}


class AndroidDriver(ScreenshotMixin):
    """The driver of one phone; without a serial, of the only one that is attached."""

    def __init__(self, serial: str | None = None, adb: AdbClient | None = None) -> None:
        self._wanted = serial
        self._adb = adb or AdbClient()
        self._display: str | None = None  # which one pictures are of, where there are several

    def peek(self) -> Screenshot:
        picture = png.whole(self._picture())
        return Screenshot(picture, "image/png", *size_of(picture), note=BLACK if png.is_black(picture) else "")

    def tap(self, at: Point) -> None:
        ((x, y),) = self._places(at)
        self._act(f"input tap {x} {y}", ACT_SECONDS)

    def swipe(self, start: Point, end: Point, duration_ms: int) -> None:
        (x1, y1), (x2, y2) = self._places(start, end)
        self._act(f"input swipe {x1} {y1} {x2} {y2} {duration_ms}", ACT_SECONDS + duration_ms / 1000)

    def input_text(self, text: str) -> None:
        self._act(keys.script(text), ACT_SECONDS + KEY_SECONDS * len(text))

    def launch_app(self, app_id: str) -> None:
        """Launch by package, by `package/activity`, or by what the package's name says of the app."""
        if "/" in app_id:
            done = self._act(f"am start -n {shlex.quote(app_id)}", LAUNCH_SECONDS)
            _refuse_complaint(done, "Error")
            return
        installed = dumpsys.packages(self._read(PACKAGES).text)
        package = shlex.quote(app_names.package(app_id, installed))
        self._act(f"monkey -p {package} -c android.intent.category.LAUNCHER 1", LAUNCH_SECONDS)

    def ui_tree(self) -> UiNode | None:
        done = self._command(TREE, TREE_SECONDS)
        start = done.text.find("<?xml")
        if start < 0:
            raise ToolFailed(_with_cure(f"the phone gave no UI tree: {done.complaints or 'nothing came'}"))
        return uiautomator.tree(done.text[start:], *self._sizes())

    def app_info(self) -> Mapping[str, Any]:
        return dumpsys.foreground(self._read(dumpsys.FOREGROUND).text)

    def probe(self) -> Probe:
        limit = Deadline(PROBE_SECONDS)
        try:
            serial = self._serial(limit)
            details = dumpsys.status(self._adb.shell(serial, dumpsys.STATUS, limit.remaining()).text)
        except AdbServerMissing as error:
            return Probe("no adb server", {"error": str(error)})
        except DeviceUnavailable as error:
            return Probe(error.state, {"error": str(error)})
        except (ToolFailed, TimeoutError) as error:
            return Probe(OFFLINE, {"error": str(error)})
        return Probe(READY, {"serial": serial, **details})

    def new_owner(self) -> None:
        """A phone keeps nothing of its holder."""

    def close(self) -> None:
        """No connection outlives its call."""

    # --- places ------------------------------------------------------------------------------------

    def _places(self, *points: Point) -> list[Point]:
        """Points of the picture in the units of `input`."""
        picture, screen = self._sizes()
        return [(x * screen[0] // picture[0], y * screen[1] // picture[1]) for x, y in points]

    def _sizes(self) -> tuple[Point, Point]:
        """The picture's size and the screen's, as an "Override size" makes it; refused where the phone was turned."""
        picture = self.size()
        screen = dumpsys.screen(self._read(dumpsys.SCREEN).text) or picture
        if (picture[0] > picture[1]) != (screen[0] > screen[1]):
            raise ToolFailed(TURNED, delivery=NOT_SENT)
        return picture, screen

    # --- pictures ----------------------------------------------------------------------------------

    def _picture(self) -> bytes:
        done = self._command(self._capture(), PICTURE_SECONDS)
        if self._display is None and "Multiple displays" in done.complaints + done.out[:1024].decode("latin-1"):
            self._display = self._first_display()
            done = self._command(self._capture(), PICTURE_SECONDS)
        if done.code != 0 or not done.out:
            self._display = None  # it may be gone
            raise ToolFailed(
                f"the phone gave no picture ({done.complaints or f'exit code {done.code}'}): "
                "the app in front may forbid it (a secure window), or the screen is off"
            )
        return done.out

    def _capture(self) -> str:
        return PICTURE if self._display is None else f"{PICTURE} -d {self._display}"

    def _first_display(self) -> str:
        found = dumpsys.displays(self._read(DISPLAYS).text)
        if not found:
            raise ToolFailed(f"the phone has several displays and does not name them: adb shell {DISPLAYS}")
        return found[0]

    # --- the phone ---------------------------------------------------------------------------------

    def _act(self, script: str, seconds: float) -> ShellResult:
        """Send what moves the phone, once; whatever it complains of is told."""
        done = self._command(script, seconds)
        if done.code != 0:
            words = done.complaints or done.text.strip() or f"exit code {done.code}"
            raise ToolFailed(_with_cure(f"the phone refused: {words[:500]}"), delivery=UNKNOWN)
        return done

    def _read(self, script: str) -> ShellResult:
        return self._command(script, READ_SECONDS)

    def _command(self, script: str, seconds: float) -> ShellResult:
        serial = self._serial(Deadline(READ_SECONDS))
        try:
            return self._adb.shell(serial, script, seconds)
        except DeviceSilent:
            if is_address(serial):  # its connection may be dead without anyone having noticed
                self._adb.disconnect(serial)
            raise

    def _serial(self, limit: Deadline) -> str:
        """The serial of a phone that takes commands at this moment; connects to one by network."""
        attached = self._adb.devices(limit.remaining())
        if self._wanted is None:
            return _only(attached)
        found = next((each for each in attached if each.serial == self._wanted), None)
        if found is not None and found.state == TAKES_COMMANDS:
            return self._wanted
        if is_address(self._wanted) and (found is None or found.state == "offline"):
            self._adb.connect(self._wanted, limit.remaining())
            return self._wanted
        raise DeviceUnavailable(self._wanted, "not found" if found is None else found.state)


def _only(attached: list[AttachedDevice]) -> str:
    if not attached:
        raise DeviceUnavailable("(any)", "not found", "not found: adb knows no phone")
    if len(attached) > 1:
        serials = ", ".join(each.serial for each in attached)
        raise ToolFailed(f"several phones are attached ({serials}): add each with its --serial", delivery=NOT_SENT)
    if attached[0].state != TAKES_COMMANDS:
        raise DeviceUnavailable(attached[0].serial, attached[0].state)
    return attached[0].serial


def _refuse_complaint(done: ShellResult, sign: str) -> None:
    """`am` ends well whatever came of it; its words tell."""
    words = f"{done.text}\n{done.complaints}"
    line = re.search(rf"^{sign}.*", words, re.MULTILINE)
    if line:
        raise ToolFailed(f"the phone refused: {line[0][:500]}", delivery=NOT_SENT)


def _with_cure(words: str) -> str:
    return "; ".join([words, *(cure for sign, cure in CURES.items() if sign in words)])
