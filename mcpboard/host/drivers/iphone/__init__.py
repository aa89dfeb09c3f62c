"""An iPhone through WebDriverAgent, which counts in points where a screenshot has two or three pixels each.

What moves the phone is posted once. The one exception is a route that this WebDriverAgent does not
have: it says so without touching anything, and its other name is tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcpboard.errors import NOT_SENT, ToolFailed
from mcpboard.host.drivers import app_names
from mcpboard.host.drivers.base import (
    OFFLINE,
    READY,
    UNTYPEABLE,
    Point,
    Probe,
    Screenshot,
    ScreenshotMixin,
    nothing_done,
    refuse_untypeable,
)
from mcpboard.host.drivers.images import image_size, mime_type
from mcpboard.host.drivers.iphone import xcuitest
from mcpboard.host.drivers.iphone.wda import (
    ACT_SECONDS,
    ALERT_OPEN,
    SLOW_SECONDS,
    STANDARD_URL,
    UNKNOWN_COMMAND,
    ReplyLimits,
    WdaClient,
    WdaError,
    WdaUnreachable,
    WdaUnreadable,
    member,
)
from mcpboard.host.vision.tree import UiNode, UnreadableTree
from mcpboard.text import one_line
from mcpboard.transport.deadline import Deadline

PROBE_SECONDS = 1.8  # of the two that a probe may take
KEY_SECONDS = 0.2  # for one character; WebDriverAgent types sixty a second at most, an old phone far fewer

TAP = "/wda/tap"
OLD_TAP = "/wda/tap/0"  # before WebDriverAgent 6.0.0

REMEDY = (
    "is the phone unlocked and attached, WebDriverAgent running on it (in Xcode: Product, Test; its signature ends "
    "after seven days with a free account), and its port forwarded? cure: iproxy {port} 8100"
)
TURNED = (
    "the phone was turned since its screenshot, or tells screenshots upright while it lies: take_screenshot and look "
    "again, or turn it upright"
)


class IPhoneDriver(ScreenshotMixin):
    """The driver of one iPhone. A WebDriverAgent that was away needs nothing but the next call.

    Its session stays open at the end: ending it would end the app that another client launched in it.
    Raises ConfigError for a URL that cannot be used.
    """

    def __init__(self, url: str = STANDARD_URL) -> None:
        self._wda = WdaClient(url)
        self._tap = TAP

    def peek(self) -> Screenshot:
        image = self._wda.screenshot()
        return Screenshot(image, mime_type(image), *image_size(image))

    def tap(self, at: Point) -> None:
        ((x, y),) = self._scaled(at)
        point = {"x": x, "y": y}
        try:
            self._act(self._tap, point, ACT_SECONDS)
        except WdaError as error:
            if error.name != UNKNOWN_COMMAND:
                raise
            self._tap = OLD_TAP if self._tap == TAP else TAP  # it was updated, or put back
            self._act(self._tap, point, ACT_SECONDS)

    def swipe(self, start: Point, end: Point, duration_ms: int) -> None:
        """Send W3C actions, because the duration of WebDriverAgent's own drag is that of the press before it."""
        (x1, y1), (x2, y2) = self._scaled(start, end)
        moves = [
            {"type": "pointerMove", "duration": 0, "x": x1, "y": y1},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerMove", "duration": duration_ms, "x": x2, "y": y2},
            {"type": "pointerUp", "button": 0},
        ]
        finger = {"type": "pointer", "id": "finger1", "parameters": {"pointerType": "touch"}, "actions": moves}
        self._act("/actions", {"actions": [finger]}, ACT_SECONDS + duration_ms / 1000)

    def input_text(self, text: str) -> None:
        refuse_untypeable(text, UNTYPEABLE, "no key of an iPhone's keyboard does that")
        self._act("/wda/keys", {"value": list(text)}, ACT_SECONDS + KEY_SECONDS * len(text))

    def launch_app(self, app_id: str) -> None:
        self._act("/wda/apps/launch", {"bundleId": app_names.find_bundle(app_id)}, SLOW_SECONDS)

    def ui_tree(self) -> UiNode | None:
        limits = ReplyLimits(xcuitest.MOST_BYTES, xcuitest.JSON_LEVELS, xcuitest.JSON_CONTAINERS)
        try:
            source = self._wda.get("/source?format=json", SLOW_SECONDS, limits)
        except WdaUnreadable as error:
            raise UnreadableTree(f"the phone's UI tree cannot be read: {error}") from error
        return xcuitest.parse_tree(source, *self._sizes())

    def app_info(self) -> Mapping[str, Any]:
        app = self._wda.get("/wda/activeAppInfo")
        return {"id": str(app.get("bundleId", "")), "name": str(app.get("name", ""))}

    def probe(self) -> Probe:
        limit = Deadline(PROBE_SECONDS)
        try:
            status = self._wda.get("/status", limit.remaining())
            details = {"url": self._wda.url, **self._details(status, limit)}
        except WdaUnreachable as error:
            port = self._wda.url.rpartition(":")[2]
            return Probe(OFFLINE, {"url": self._wda.url, "error": f"{error}; {REMEDY.format(port=port)}"})
        except (ToolFailed, TimeoutError) as error:
            return Probe(OFFLINE, {"url": self._wda.url, "error": str(error)})
        return Probe(READY, details)

    def _scaled(self, *points: Point) -> list[tuple[float, float]]:
        """Return pixels of the screenshot in the phone's points, for a touch that is to follow."""
        with nothing_done("the size of the screen could not be told"):
            image, screen = self._sizes()
        return [(round(x * screen[0] / image[0], 2), round(y * screen[1] / image[1], 2)) for x, y in points]

    def _sizes(self) -> tuple[Point, tuple[float, float]]:
        """Return the screenshot's size in pixels and the screen's in points; refuse a phone that was turned since."""
        image, size = self.size(), self._wda.read("/window/size")
        try:
            width, height = float(size["width"]), float(size["height"])
        except (KeyError, TypeError, ValueError):
            width = height = 0.0
        if not (width > 0 and height > 0):
            raise ToolFailed(f"WebDriverAgent told no size of the screen: {one_line(str(size))}", delivery=NOT_SENT)
        if (image[0] > image[1]) != (width > height):
            raise ToolFailed(TURNED, delivery=NOT_SENT)
        return image, (width, height)

    def _act(self, path: str, body: Mapping[str, Any], seconds: float) -> None:
        """Post once; an error about an open alert gets what the alert says, where WebDriverAgent tells it."""
        try:
            self._wda.act(path, body, seconds)
        except WdaError as error:
            if error.name != ALERT_OPEN:
                raise
            try:
                text, buttons = self._wda.get("/alert/text"), self._wda.read("/wda/alert/buttons")
            except ToolFailed:
                raise error from None
            named = one_line(", ".join(map(str, buttons)) if isinstance(buttons, list) else str(buttons))
            alert = f"an alert is open: {one_line(str(text))!r}; answer it by a tap on one of: {named}"
            raise ToolFailed(f"{error}; {alert}", delivery=error.delivery) from error

    def _details(self, status: Any, limit: Deadline) -> dict[str, Any]:
        """Return what may be asked at any moment; each is left out where this WebDriverAgent does not tell it."""
        details: dict[str, Any] = {}
        for name, value in (("model", member(status, "device")), ("ios", member(member(status, "os"), "version"))):
            if isinstance(value, str):
                details[name] = one_line(value)
        locked = self._optional("/wda/locked", limit)
        if isinstance(locked, bool):
            details["screen_on"] = not locked
        app = self._optional("/wda/activeAppInfo", limit)
        if isinstance(app, dict):
            details["app"] = one_line(str(app.get("bundleId", "")))
        alert = self._optional("/alert/text", limit)
        if isinstance(alert, str):
            details["alert"] = f"{one_line(alert)} (answer it by a tap on one of its buttons, see get_ui_tree)"
        if self._size is not None:
            details["width"], details["height"] = self._size
        return details

    def _optional(self, path: str, limit: Deadline) -> Any:
        try:
            return self._wda.get(path, limit.remaining())
        except (ToolFailed, TimeoutError):
            return None
