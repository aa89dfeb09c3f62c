"""An Android phone behind the adb server: one shell command for each thing that is done.

A phone that was away, restarted or attached anew needs nothing but the next call; one by network
is connected again before anything is sent. What moves the phone is sent once.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Mapping
from typing import Any

from mcpboard.errors import NOT_SENT, UNKNOWN, ToolFailed
from mcpboard.host.drivers import app_names, base, images
from mcpboard.host.drivers.android import adb, shell_commands, uiautomator
from mcpboard.host.drivers.android.adb_protocol import SCREENSHOT_BYTES, TEXT_BYTES, ShellResult
from mcpboard.host.drivers.base import Point, Probe, ScaledDriver, Screenshot, nothing_done, table, with_remedy
from mcpboard.host.vision.tree import UiNode, UnreadableTree
from mcpboard.text import without_base64
from mcpboard.transport.deadline import Deadline

PROBE_SECONDS = 1.8  # of the two that a probe may take
READ_SECONDS = 8.0  # for what the phone tells about itself
ACT_SECONDS = 5.0  # for a touch, besides the time that it lasts
SCREENSHOT_SECONDS = 20.0  # a large screen over Wi-Fi
TREE_SECONDS = 20.0  # uiautomator waits up to ten for the screen to come to rest
LAUNCH_SECONDS = 20.0  # a cold start
KEY_SECONDS = 0.03  # for one character, on a slow phone

BLACK = (
    "The screenshot is black all over: the screen is off, or the app in front forbids screenshots of itself "
    "(a secure window); device_status tells whether the screen is on."
)

# What `am start` prints where it has started nothing; any other error leaves that open.
NOT_STARTED = re.compile("does not exist|Activity not started|unable to resolve Intent")

# What a phone says -> what to do about it.
REMEDIES = table("remedies", "android")


class AndroidDriver(ScaledDriver):
    """The driver of one phone; without a serial, of the only one that is attached."""

    def __init__(self, serial: str | None = None, server: adb.AdbClient | None = None) -> None:
        self._wanted = serial
        self._adb = server or adb.AdbClient()
        self._display: str | None = None  # the one to capture, where there are several

    def peek(self) -> Screenshot:
        result = self._capture()
        head = result.stdout[:1024].decode("latin-1")
        if self._display is None and "Multiple displays" in result.stderr + head:
            # Each has a line of its own, the built-in one first.
            display = re.search(r"^Display (\d+)\b", self._run(shell_commands.DISPLAYS).text, re.MULTILINE)
            if display is None:
                command = f"adb shell {shell_commands.DISPLAYS}"
                raise ToolFailed(f"the phone has several displays and does not name them: {command}")
            self._display = display[1]
            result = self._capture()
        if result.exit_code != 0 or not result.stdout:
            self._display = None  # it may be gone
            raise ToolFailed(
                f"the phone gave no screenshot ({result.stderr or f'exit code {result.exit_code}'}): "
                "the app in front may forbid it (a secure window), or the screen is off"
            )
        png = images.extract_png(result.stdout)
        return Screenshot(png, "image/png", *images.image_size(png), note=BLACK if images.is_black(png) else "")

    def tap(self, at: Point) -> None:
        ((x, y),) = self._scaled(at)
        self._act(f"input tap {int(x)} {int(y)}", ACT_SECONDS)

    def swipe(self, start: Point, end: Point, duration_ms: int) -> None:
        ends = " ".join(f"{int(x)} {int(y)}" for x, y in self._scaled(start, end))
        self._act(f"input swipe {ends} {duration_ms}", ACT_SECONDS + duration_ms / 1000)

    def input_text(self, text: str) -> None:
        self._act(shell_commands.input_script(text), ACT_SECONDS + KEY_SECONDS * len(text))

    def launch_app(self, app_id: str) -> None:
        """Launch by package, by `package/activity`, or by what the package's name says of the app."""
        if "/" in app_id:
            result = self._act(f"am start -n {shlex.quote(app_id)}", LAUNCH_SECONDS)
            # `am` ends well whatever came of it; only its output tells.
            output = f"{result.text}\n{result.stderr}"
            complaint = re.search(r"^Error.*", output, re.MULTILINE)
            if complaint:
                delivery = NOT_SENT if NOT_STARTED.search(output) else UNKNOWN
                raise ToolFailed(f"the phone refused: {without_base64(complaint[0])[:500]}", delivery=delivery)
            return
        with nothing_done("the phone's apps could not be told"):
            listed = self._run(shell_commands.PACKAGES).text.splitlines()
        installed = sorted(line.partition(":")[2].strip() for line in listed if line.startswith("package:"))
        package = shlex.quote(app_names.find_package(app_id, installed))
        self._act(f"monkey -p {package} -c android.intent.category.LAUNCHER 1", LAUNCH_SECONDS)

    def ui_tree(self) -> UiNode | None:
        try:
            result = self._run(shell_commands.TREE, TREE_SECONDS, uiautomator.MOST_BYTES)
        except adb.TooMuchOutput as error:
            raise UnreadableTree(f"the phone's UI tree cannot be read: {error}") from error
        document = result.text
        start = document.find("<?xml")
        if start < 0:
            problem = f"the phone gave no UI tree: {result.stderr or 'nothing came'}"
            raise ToolFailed(with_remedy(problem, result.stderr, REMEDIES))
        return uiautomator.parse_tree(document[start:], *self._sizes())

    def app_info(self) -> Mapping[str, Any]:
        return shell_commands.parse_foreground(self._run(shell_commands.FOREGROUND).text)

    def probe(self) -> Probe:
        limit = Deadline(PROBE_SECONDS)
        try:
            serial = self._serial(limit)
            result = self._adb.shell(serial, shell_commands.STATUS, limit.remaining())
        except adb.AdbServerMissing as error:
            return Probe("no adb server", {"error": str(error)})
        except adb.DeviceUnavailable as error:
            return Probe(error.state, {"error": str(error)})
        except (ToolFailed, TimeoutError) as error:
            return Probe(base.OFFLINE, {"error": str(error)})
        return Probe(base.READY, {"serial": serial, **shell_commands.parse_status(result.text)})

    def _screen(self) -> tuple[float, float]:
        """Return it as an "Override size" makes it; the screenshot's own where the phone does not tell."""
        return shell_commands.parse_screen(self._run(shell_commands.SCREEN).text) or self.size()

    def _capture(self) -> ShellResult:
        display = "" if self._display is None else f" -d {self._display}"
        return self._run(shell_commands.CAPTURE + display, SCREENSHOT_SECONDS, SCREENSHOT_BYTES)

    def _act(self, script: str, seconds: float) -> ShellResult:
        """Send what moves the phone, once; its complaint is in the error."""
        result = self._run(script, seconds)
        if result.exit_code != 0:
            message = without_base64(result.stderr or result.text.strip()) or f"exit code {result.exit_code}"
            problem = with_remedy(f"the phone refused: {message[:500]}", message, REMEDIES)
            raise ToolFailed(problem, delivery=UNKNOWN)
        return result

    def _run(self, script: str, seconds: float = READ_SECONDS, most_bytes: int = TEXT_BYTES) -> ShellResult:
        serial = self._serial(Deadline(READ_SECONDS))
        try:
            return self._adb.shell(serial, script, seconds, most_bytes)
        except adb.DeviceSilent:
            if adb.is_address(serial):  # its connection may be dead without anyone having noticed
                with contextlib.suppress(ToolFailed):  # which says nothing of the command
                    self._adb.disconnect(serial)
            raise

    def _serial(self, limit: Deadline) -> str:
        """Return the serial of a phone that takes commands at this moment; connect to one by network."""
        attached = self._adb.devices(limit.remaining())
        if self._wanted is None and not attached:
            raise adb.DeviceUnavailable("(any)", "not found", "not found: adb knows no phone")
        if self._wanted is None and len(attached) > 1:
            serials = ", ".join(each.serial for each in attached)
            raise ToolFailed(f"several phones are attached ({serials}): add each with its --serial", delivery=NOT_SENT)
        serial = attached[0].serial if self._wanted is None else self._wanted
        state = next((each.state for each in attached if each.serial == serial), None)
        if state == adb.READY:
            return serial
        if self._wanted is not None and adb.is_address(serial) and state in (None, "offline"):
            self._adb.connect(serial, limit.remaining())
            return serial
        raise adb.DeviceUnavailable(serial, state or "not found")
