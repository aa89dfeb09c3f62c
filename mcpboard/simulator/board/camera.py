"""The picture objects of the Agent: one shot, and a shot once the screen stands still."""

from __future__ import annotations

import base64
from typing import Any

from mcpboard.simulator.board.faults import Faults
from mcpboard.simulator.board.runs import ToolFailure, ToolRun
from mcpboard.simulator.phone import display, frames
from mcpboard.simulator.phone.phone import Phone
from mcpboard.simulator.phone.view import Place

STABLE_S = 0.25  # seconds without change that count as stable
TIMEOUT_S = 2.0  # seconds after which an unstable screen is taken as it is
POLL_S = 0.2  # seconds between two looks
THRESHOLD = 6.0  # mean difference of 255 above which two looks differ
CROPPED = ("iOS", "Android")  # device types whose black bars are cut off


class Camera:
    """Look at the phone as the board's video input does."""

    def __init__(self, phone: Phone, faults: Faults) -> None:
        self._phone = phone
        self._faults = faults

    def look(self) -> frames.Picture:
        """Return the Agent's picture of now: the phone only, or the whole frame for other devices."""
        image = display.picture(self._phone.view())
        return image if self._phone.device_type in CROPPED else frames.source_frame(image)

    def shot(self, tool: str, mark: Place | None = None) -> dict[str, Any]:
        """Return the screenshot object; ToolFailure when a fault makes the frame stale."""
        if self._faults.take("stale_frame", tool):
            raise ToolFailure("internal", "tool_execution_failed", "frame service: STALE_FRAME")
        image = self.look()
        data = frames.jpeg(image) if mark is None else frames.jpeg(frames.marked(image, *mark), frames.MARKED_QUALITY)
        if self._faults.take("not_a_picture", tool):
            data = b"this is no picture"
        cropped = image.size != frames.SOURCE
        x, y, width, height = frames.active_area(image.size) if cropped else (0, 0, *frames.SOURCE)
        return {
            "width": image.width, "height": image.height,
            "source_width": frames.SOURCE[0], "source_height": frames.SOURCE[1],
            "active_area": {"X": x, "Y": y, "Width": width, "Height": height, "Valid": cropped},
            "active_width": width, "active_height": height,
            "format": "jpeg", "size": len(data), "data": base64.b64encode(data).decode(),
            "capture_backend": "frame_service",
        }  # fmt: skip

    def settle(self, run: ToolRun) -> dict[str, Any]:
        """Wait until two looks in a row, STABLE_S apart, show the same, at most TIMEOUT_S; return how that ended."""
        began = since = run.now()
        last, diff = self.look(), None
        while run.now() - since < STABLE_S and run.now() - began < TIMEOUT_S:
            run.pause(POLL_S)
            image = self.look()
            diff = frames.difference(last, image)
            since, last = (run.now() if diff > THRESHOLD else since), image
        now = run.now()
        ended = {"screen_stable": now - since >= STABLE_S, "stable_wait_ms": round((now - began) * 1000)}
        return ended if diff is None else {**ended, "last_diff": diff}
