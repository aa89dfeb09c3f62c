"""An iPhone through WebDriverAgent, which counts in points where a picture has two or three pixels each.

What moves the phone is posted once. The one exception is a route that this WebDriverAgent does not
have: it says so without touching anything, and its other name is tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcpboard.errors import NOT_SENT, ToolFailed
from mcpboard.host.drivers import app_names, characters
from mcpboard.host.drivers.base import OFFLINE, READY, Point, Probe, Screenshot, ScreenshotMixin
from mcpboard.host.drivers.image_size import size_of
from mcpboard.host.drivers.iphone import xcuitest
from mcpboard.host.drivers.iphone.wda import (
    ACT_SECONDS,
    ALERT_OPEN,
    SLOW_SECONDS,
    STANDARD_URL,
    UNKNOWN_COMMAND,
    WdaClient,
    WdaError,
    WdaUnreachable,
)
from mcpboard.host.vision.tree import UiNode
from mcpboard.text import one_line
from mcpboard.transport.deadline import Deadline

PROBE_SECONDS = 1.8  # of the two that a probe may take
KEY_SECONDS = 0.2  # for one character; WebDriverAgent types sixty a second at most, an old phone far fewer
PNG_MAGIC = b"\x89PNG"

TAP = "/wda/tap"
OLD_TAP = "/wda/tap/0"  # before WebDriverAgent 6.0.0

CURE = (
    "is the phone unlocked and attached, WebDriverAgent running on it (in Xcode: Product, Test; its signature ends "
    "after seven days with a free account), and its port forwarded? cure: iproxy {port} 8100"
)
TURNED = (
    "the phone was turned since its picture, or tells pictures upright while it lies: take_screenshot and look again, "
    "or turn it upright"
)
WHY = "no key of an iPhone's keyboard does that"


class IPhoneDriver(ScreenshotMixin):
    """The driver of one iPhone. A WebDriverAgent that was away needs nothing but the next call.

    Raises ConfigError for a URL that cannot be used.
    """

    def __init__(self, url: str = STANDARD_URL) -> None:
        self._wda = WdaClient(url)
        self._tap = TAP

    def peek(self) -> Screenshot:
        picture = self._wda.picture()
        return Screenshot(picture, "image/png" if picture.startswith(PNG_MAGIC) else "image/jpeg", *size_of(picture))

    def tap(self, at: Point) -> None:
        ((x, y),) = self._places(at)
        place = {"x": x, "y": y}
        try:
            self._act(self._tap, place, ACT_SECONDS)
        except WdaError as error:
            if error.name != UNKNOWN_COMMAND:
                raise
            self._tap = OLD_TAP if self._tap == TAP else TAP  # it was updated, or put back
            self._act(self._tap, place, ACT_SECONDS)

    def swipe(self, start: Point, end: Point, duration_ms: int) -> None:
        """W3C actions, because the duration of WebDriverAgent's own drag is that of the press before it."""
        self._act("/actions", _gesture(self._places(start, end), duration_ms), ACT_SECONDS + duration_ms / 1000)

    def input_text(self, text: str) -> None:
        characters.refuse(text, _typeable, WHY)
        self._act("/wda/keys", {"value": list(text)}, ACT_SECONDS + KEY_SECONDS * len(text))

    def launch_app(self, app_id: str) -> None:
        self._act("/wda/apps/launch", {"bundleId": app_names.bundle(app_id)}, SLOW_SECONDS)

    def ui_tree(self) -> UiNode | None:
        source = self._wda.get("/source?format=json", SLOW_SECONDS)
        return xcuitest.tree(source, *self._sizes())

    def app_info(self) -> Mapping[str, Any]:
        found = self._wda.get("/wda/activeAppInfo")
        return {"id": str(found.get("bundleId", "")), "name": str(found.get("name", ""))}

    def probe(self) -> Probe:
        limit = Deadline(PROBE_SECONDS)
        try:
            status = self._wda.get("/status", limit.remaining())
            details = {"url": self._wda.url, **_system(status), **self._state(limit)}
        except WdaUnreachable as error:
            port = self._wda.url.rpartition(":")[2]
            return Probe(OFFLINE, {"url": self._wda.url, "error": f"{error}; {CURE.format(port=port)}"})
        except (ToolFailed, TimeoutError) as error:
            return Probe(OFFLINE, {"url": self._wda.url, "error": str(error)})
        return Probe(READY, details)

    def new_owner(self) -> None:
        """A phone keeps nothing of its holder."""

    def close(self) -> None:
        """The session stays: ending it would end the app that another client launched in it."""

    # --- places ------------------------------------------------------------------------------------

    def _places(self, *points: Point) -> list[tuple[float, float]]:
        """Points of the picture in the phone's own."""
        picture, screen = self._sizes()
        return [(round(x * screen[0] / picture[0], 2), round(y * screen[1] / picture[1], 2)) for x, y in points]

    def _sizes(self) -> tuple[Point, tuple[float, float]]:
        """The picture's size in pixels and the screen's in points; refused where the phone was turned since."""
        picture, screen = self.size(), self._points()
        if (picture[0] > picture[1]) != (screen[0] > screen[1]):
            raise ToolFailed(TURNED, delivery=NOT_SENT)
        return picture, screen

    def _points(self) -> tuple[float, float]:
        size = self._wda.read("/window/size")
        try:
            width, height = float(size["width"]), float(size["height"])
        except (KeyError, TypeError, ValueError):
            width = height = 0.0
        if not (width > 0 and height > 0):
            raise ToolFailed(f"WebDriverAgent told no size of the screen: {size}", delivery=NOT_SENT)
        return width, height

    # --- the phone ---------------------------------------------------------------------------------

    def _act(self, path: str, body: Mapping[str, Any], seconds: float) -> None:
        try:
            self._wda.act(path, body, seconds)
        except WdaError as error:
            alert = self._alert() if error.name == ALERT_OPEN else None
            if alert is None:
                raise
            raise ToolFailed(f"{error}; {alert}", data=error.data) from error

    def _alert(self) -> str | None:
        """What an open alert says and how to answer it; None where there is none, or nobody tells."""
        try:
            text, buttons = self._wda.get("/alert/text"), self._wda.read("/wda/alert/buttons")
        except ToolFailed:
            return None
        named = ", ".join(map(str, buttons)) if isinstance(buttons, list) else str(buttons)
        return f"an alert is open: {one_line(str(text))!r}; answer it by a tap on one of: {named}"

    def _state(self, limit: Deadline) -> dict[str, Any]:
        """What may be asked at any moment; each is left out where this WebDriverAgent does not tell it."""
        asked = {
            name: self._told(path, limit)
            for name, path in (("locked", "/wda/locked"), ("app", "/wda/activeAppInfo"), ("alert", "/alert/text"))
        }
        found: dict[str, Any] = {}
        if isinstance(asked["locked"], bool):
            found["screen_on"] = not asked["locked"]
        if isinstance(asked["app"], dict):
            found["app"] = asked["app"].get("bundleId")
        if isinstance(asked["alert"], str):
            found["alert"] = f"{asked['alert']} (answer it by a tap on one of its buttons, see get_ui_tree)"
        if self._size is not None:
            found["width"], found["height"] = self._size
        return found

    def _told(self, path: str, limit: Deadline) -> Any:
        try:
            return self._wda.get(path, limit.remaining())
        except (ToolFailed, TimeoutError):
            return None


def _system(status: Any) -> dict[str, Any]:
    """What `/status` tells of the phone."""
    found = status if isinstance(status, dict) else {}
    system = found.get("os")
    version = system.get("version") if isinstance(system, dict) else None
    told = {"model": found.get("device"), "ios": version}
    return {name: value for name, value in told.items() if isinstance(value, str)}


def _typeable(character: str) -> bool:
    return character in "\n\t" or not characters.is_control(character)


def _gesture(places: list[tuple[float, float]], duration_ms: int) -> dict[str, Any]:
    """One finger that goes down at the first place, takes that long to the other, and goes up."""
    start, end = places
    moves = [
        {"type": "pointerMove", "duration": 0, "x": start[0], "y": start[1]},
        {"type": "pointerDown", "button": 0},
        {"type": "pointerMove", "duration": duration_ms, "x": end[0], "y": end[1]},
        {"type": "pointerUp", "button": 0},
    ]
    finger = {"type": "pointer", "id": "finger1", "parameters": {"pointerType": "touch"}, "actions": moves}
    return {"actions": [finger]}
