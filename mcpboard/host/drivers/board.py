"""A phone behind one of our boards: the board role at the other end of a cable, over MCP.

A board counts points from 0 to 1000 whatever the screenshot; here they are pixels of the screenshot
that was taken last. Every action is posted once, and the delivery that the board reports of it is passed on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcpboard.client import CallResult, Client
from mcpboard.errors import DONE, NOT_SENT, UNKNOWN, ClientError, ToolFailed
from mcpboard.host.drivers.base import OFFLINE, READY, Point, Probe, Screenshot, ScreenshotMixin, nothing_done
from mcpboard.host.drivers.images import image_size, mime_type
from mcpboard.host.vision.tree import UiNode
from mcpboard.serving.undelivered import NOTICE_OPENING
from mcpboard.text import without_base64

STANDARD_URL = "http://192.168.42.1:8080/mcp"  # every board's own address on its cable
PROBE_SECONDS = 2.0
HANDSHAKE_SECONDS = 4.0  # a board answers it by itself, in milliseconds; its callers hear of a silent one within 5 s
SCREENSHOT_SECONDS = 45.0  # a board's own limit is 40
SCALE = 1000  # right and bottom edge of a board's screen


class BoardDriver(ScreenshotMixin):
    """The driver of one board. A board that was away needs nothing but the next call."""

    def __init__(self, url: str = STANDARD_URL, interface: str | None = None) -> None:
        self._client = Client(url, interface=interface)
        self._where = url if interface is None else f"{url} on {interface}"
        self._focus: Mapping[str, float] | None = None  # where the last tap went, in the board's units
        self._notice = ""

    def peek(self) -> Screenshot:
        result = self._call("screenshot", seconds=SCREENSHOT_SECONDS)
        if not result.images:
            raise ToolFailed(f"the board sent no screenshot: {without_base64(result.text)}")
        image = result.images[0].content
        return Screenshot(image, mime_type(image), *image_size(image))

    def tap(self, at: Point) -> None:
        point = self._scaled(at)
        self._call("touch_gesture", {"type": "tap", "point": point})
        self._focus = point

    def swipe(self, start: Point, end: Point, duration_ms: int) -> None:
        ends = {"start": self._scaled(start), "end": self._scaled(end)}
        self._focus = None
        self._call("touch_gesture", {"type": "swipe", **ends, "duration_ms": duration_ms})

    def input_text(self, text: str) -> None:
        """Type where the last tap went: a board wants to know the field, not only the text."""
        if self._focus is None:
            raise ToolFailed("tap into the text field first: a board types where you tapped last", delivery=NOT_SENT)
        self._call("enter_text", {"text": text, "focus": self._focus})

    def launch_app(self, app_id: str) -> None:
        self._focus = None
        self._call("open_app", {"app": app_id})

    def ui_tree(self) -> UiNode | None:
        return None

    def app_info(self) -> Mapping[str, Any]:
        return {}

    def probe(self) -> Probe:
        try:
            self._client.ping(timeout=PROBE_SECONDS)
        except ClientError as error:
            return Probe(OFFLINE, {"url": self._where, "error": str(error)})
        return Probe(READY, {"url": self._where, "server": dict(self._client.server)})

    def new_owner(self) -> None:
        self._focus = None

    def notice(self) -> str:
        """Return, once, what the board told of earlier actions whose answers were lost: it tells that once, too."""
        notice, self._notice = self._notice, ""
        return notice

    def close(self) -> None:
        self._client.close()

    def _scaled(self, at: Point) -> Mapping[str, float]:
        """Return a pixel in the board's units: the last column and row are the edge."""
        with nothing_done("the size of the screen could not be told"):
            size = self.size()
        x, y = (round(pixel * SCALE / max(1, side - 1), 2) for pixel, side in zip(at, size, strict=True))
        return {"x": x, "y": y}

    def _call(self, tool: str, arguments: Mapping[str, Any] | None = None, seconds: float | None = None) -> CallResult:
        """Call the board's tool once; a failure keeps its message and its delivery."""
        try:
            self._client.open(HANDSHAKE_SECONDS)
            result = self._client.call(tool, arguments, seconds)
        except ClientError as error:
            raise ToolFailed(f"board at {self._where} failed: {error}", delivery=error.delivery) from error
        if result.is_error:
            members = result.structured if isinstance(result.structured, dict) else {}
            told = members.get("delivery")
            delivery = told if told in (NOT_SENT, DONE) else UNKNOWN
            raise ToolFailed(without_base64(result.text) or f"{tool} failed on the board", delivery=delivery)
        if result.texts and result.texts[0].startswith(NOTICE_OPENING):
            self._notice = result.texts[0]
        return result
