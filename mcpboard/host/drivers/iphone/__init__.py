"""An iPhone through WebDriverAgent, which counts in points where a screenshot has two or three pixels each.

What moves the phone is posted once. The one exception is a route that this WebDriverAgent does not
have: it says so without touching anything, and its other name is tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcpboard.errors import ToolFailed
from mcpboard.host.drivers import app_names, base
from mcpboard.host.drivers.base import Point, Probe, ScaledDriver, Screenshot
from mcpboard.host.drivers.images import image_size, mime_type
from mcpboard.host.drivers.iphone import wda, xcuitest
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


class IPhoneDriver(ScaledDriver):
    """The driver of one iPhone. A WebDriverAgent that was away needs nothing but the next call.

    Its session stays open at the end: ending it would end the app that another client launched in it.
    Raises ConfigError for a URL that cannot be used.
    """

    _turned = (
        "the phone was turned since its screenshot, or tells screenshots upright while it lies: "
        "take_screenshot and look again, or turn it upright"
    )

    def __init__(self, url: str = wda.STANDARD_URL) -> None:
        self._wda = wda.WdaClient(url)
        self._tap = TAP

    def peek(self) -> Screenshot:
        image = self._wda.screenshot()
        return Screenshot(image, mime_type(image), *image_size(image))

    def tap(self, at: Point) -> None:
        ((x, y),) = self._scaled(at)
        point = {"x": round(x, 2), "y": round(y, 2)}
        try:
            self._act(self._tap, point, wda.ACT_SECONDS)
        except wda.WdaError as error:
            if error.name != wda.UNKNOWN_COMMAND:
                raise
            self._tap = OLD_TAP if self._tap == TAP else TAP  # it was updated, or put back
            self._act(self._tap, point, wda.ACT_SECONDS)

    def swipe(self, start: Point, end: Point, duration_ms: int) -> None:
        """Send W3C actions, because the duration of WebDriverAgent's own drag is that of the press before it."""
        (x1, y1), (x2, y2) = ((round(x, 2), round(y, 2)) for x, y in self._scaled(start, end))
        moves = [
            {"type": "pointerMove", "duration": 0, "x": x1, "y": y1},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerMove", "duration": duration_ms, "x": x2, "y": y2},
            {"type": "pointerUp", "button": 0},
        ]
        finger = {"type": "pointer", "id": "finger1", "parameters": {"pointerType": "touch"}, "actions": moves}
        self._act("/actions", {"actions": [finger]}, wda.ACT_SECONDS + duration_ms / 1000)

    def input_text(self, text: str) -> None:
        base.refuse_untypeable(text, base.UNTYPEABLE, "no key of an iPhone's keyboard does that")
        self._act("/wda/keys", {"value": list(text)}, wda.ACT_SECONDS + KEY_SECONDS * len(text))

    def launch_app(self, app_id: str) -> None:
        self._act("/wda/apps/launch", {"bundleId": app_names.find_bundle(app_id)}, wda.SLOW_SECONDS)

    def ui_tree(self) -> UiNode | None:
        nesting = {"depth": xcuitest.JSON_LEVELS, "containers": xcuitest.JSON_CONTAINERS}
        try:
            source = self._wda.get("/source?format=json", wda.SLOW_SECONDS, xcuitest.MOST_BYTES, **nesting)
        except wda.WdaUnreadable as error:
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
        except (ToolFailed, TimeoutError) as error:
            remedy = REMEDY.format(port=self._wda.url.rpartition(":")[2])
            problem = f"{error}; {remedy}" if isinstance(error, wda.WdaUnreachable) else str(error)
            return Probe(base.OFFLINE, {"url": self._wda.url, "error": problem})
        return Probe(base.READY, details)

    def _screen(self) -> tuple[float, float]:
        size = self._wda.read("/window/size")
        try:
            return float(size["width"]), float(size["height"])
        except (KeyError, TypeError, ValueError):
            return 0.0, 0.0

    def _act(self, path: str, body: Mapping[str, Any], seconds: float) -> None:
        """Post once; an error about an open alert gets what the alert says, where WebDriverAgent tells it."""
        try:
            self._wda.act(path, body, seconds)
        except wda.WdaError as error:
            if error.name != wda.ALERT_OPEN:
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
        told = {"model": wda.member(status, "device"), "ios": wda.member(wda.member(status, "os"), "version")}
        details: dict[str, Any] = {name: one_line(value) for name, value in told.items() if isinstance(value, str)}
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
