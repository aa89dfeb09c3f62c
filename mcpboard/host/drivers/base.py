"""What a driver is: one device's commands, in the pixels of the picture that it gave last.

A driver never locks, never retries and knows no owner. Its only caller is the DeviceManager, which
lets one command in at a time; `probe` alone may come at any moment, from any thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from mcpboard.errors import NOT_SENT, ToolFailed
from mcpboard.host.vision.tree import UiNode

READY, OFFLINE = "ready", "offline"  # states that a probe may find

Point = tuple[int, int]  # pixels from the left and the top


@dataclass(frozen=True)
class Screenshot:
    """A picture of the screen, encoded, with its size in pixels."""

    content: bytes = field(repr=False)
    mime: str
    width: int
    height: int
    note: str = ""  # what a person should know who sees nothing on it


@dataclass(frozen=True)
class Probe:
    """How a device is at this moment; `details` is what else it says of itself."""

    state: str
    details: Mapping[str, Any] = field(default_factory=dict)


class Driver(Protocol):
    """One device. What a method raises is told to the client in its own words, as -32000."""

    def size(self) -> Point:
        """Width and height of the picture that the client saw last; looks, where there was none."""

    def take_screenshot(self) -> Screenshot: ...

    def peek(self) -> Screenshot:
        """A picture for people who watch: places are still those of the client's own last picture."""

    def tap(self, at: Point) -> None: ...

    def swipe(self, start: Point, end: Point, duration_ms: int) -> None: ...

    def input_text(self, text: str) -> None:
        """Type into what has the focus; refuses by name what the device cannot type."""

    def launch_app(self, app_id: str) -> None: ...

    def ui_tree(self) -> UiNode | None:
        """The elements on the screen, None for a kind of device that does not tell them."""

    def app_info(self) -> Mapping[str, Any]:
        """The app in front: `id` and whatever else the device says of it."""

    def probe(self) -> Probe:
        """Whether the device answers, within two seconds."""

    def new_owner(self) -> None:
        """Forget what the last owner left behind, such as where it tapped."""

    def close(self) -> None:
        """Let go of the device; nothing is called afterwards."""


class ScreenshotMixin:
    """The half of a driver that keeps the size of the client's last picture; `peek` is what differs."""

    _size: Point | None = None

    def peek(self) -> Screenshot:
        raise NotImplementedError

    def size(self) -> Point:
        if self._size is None:
            self.take_screenshot()
        assert self._size is not None
        return self._size

    def take_screenshot(self) -> Screenshot:
        shot = self.peek()
        self._size = shot.width, shot.height
        return shot


class UnavailableDriver:
    """Stands in for a kind of device that this installation cannot drive: every command says why."""

    def __init__(self, why: str) -> None:
        self._why = why

    def probe(self) -> Probe:
        return Probe("no driver", {"error": self._why})

    def new_owner(self) -> None:
        """Nothing was left behind."""

    def close(self) -> None:
        """Nothing was opened."""

    def _refuse(self, *_: object) -> Any:
        raise ToolFailed(self._why, delivery=NOT_SENT)

    size = take_screenshot = peek = tap = swipe = input_text = launch_app = ui_tree = app_info = _refuse
