"""The interface of a driver: one device's commands, in pixels of the screenshot that it gave last.

A driver never locks, never retries and knows no owner. Its only caller is the DeviceManager, which
lets one command in at a time; `probe` alone may come at any moment, from any thread.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from mcpboard.errors import NOT_SENT, InvalidParams, ToolFailed
from mcpboard.host.vision.tree import UiNode
from mcpboard.text import without_base64

READY, OFFLINE = "ready", "offline"  # states that a probe may report

MOST_NAMED = 8  # characters in a refusal; more names would not help the reader
# Control characters but for line end and tab, and halves of surrogate pairs: no keyboard has them.
UNTYPEABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")

Point = tuple[int, int]  # pixels from the left and the top


@dataclass(frozen=True)
class Screenshot:
    """An encoded image of the screen, with its size in pixels."""

    content: bytes = field(repr=False)
    mime: str
    width: int
    height: int
    note: str = ""  # an explanation for a person who sees nothing on it


@dataclass(frozen=True)
class Probe:
    """The state of a device at this moment; `details` is what else it says of itself."""

    state: str
    details: Mapping[str, Any] = field(default_factory=dict)


class Driver(Protocol):
    """One device. The message of whatever a method raises goes to the client, as -32000."""

    def size(self) -> Point:
        """Return width and height of the screenshot that the client saw last; take one where there was none."""

    def take_screenshot(self) -> Screenshot: ...

    def peek(self) -> Screenshot:
        """Take a screenshot for people who watch: points are still those of the client's own last screenshot."""

    def tap(self, at: Point) -> None: ...

    def swipe(self, start: Point, end: Point, duration_ms: int) -> None: ...

    def input_text(self, text: str) -> None:
        """Type into what has the focus; refuse by name what the device cannot type."""

    def launch_app(self, app_id: str) -> None: ...

    def ui_tree(self) -> UiNode | None:
        """Return the elements on the screen, None for a type of device that does not tell them."""

    def app_info(self) -> Mapping[str, Any]:
        """Return the app in front: `id` and whatever else the device says of it."""

    def probe(self) -> Probe:
        """Ask the device for its state, within two seconds."""

    def new_owner(self) -> None:
        """Forget what the last owner left behind, such as where it tapped; by default there is nothing."""
        return

    def notice(self) -> str:
        """Return, once, what the device told with its latest action about earlier ones; by default there is nothing."""
        return ""

    def close(self) -> None:
        """Let go of the device, after which nothing is called; by default nothing is open between calls."""
        return


class ScreenshotMixin(Driver):
    """The part of a driver that keeps the size of the client's last screenshot; `peek` is what differs."""

    _size: Point | None = None

    def size(self) -> Point:
        if self._size is None:
            self.take_screenshot()
        assert self._size is not None
        return self._size

    def take_screenshot(self) -> Screenshot:
        shot = self.peek()
        self._size = shot.width, shot.height
        return shot


class ScaledDriver(ScreenshotMixin):
    """The part of a driver whose device counts touches in units of its own, on a screen that may be turned."""

    _turned = "the phone was turned since its screenshot: take_screenshot and look again"

    def _screen(self) -> tuple[float, float]:
        """Return the size of the screen in the units of touches, as the device tells it; zeros where it does not."""
        raise NotImplementedError

    def _sizes(self) -> tuple[Point, tuple[float, float]]:
        """Return the screenshot's size in pixels and the screen's; refuse a phone that was turned in between."""
        image, screen = self.size(), self._screen()
        if not all(side > 0 for side in screen):
            raise ToolFailed("the phone told no size of the screen; take_screenshot and look again", delivery=NOT_SENT)
        if (image[0] > image[1]) != (screen[0] > screen[1]):
            raise ToolFailed(self._turned, delivery=NOT_SENT)
        return image, screen

    def _scaled(self, *points: Point) -> list[tuple[float, float]]:
        """Return pixels of the screenshot in the units of touches, for one that is to follow."""
        with nothing_done("the size of the screen could not be told"):
            image, screen = self._sizes()
        return [(x * screen[0] / image[0], y * screen[1] / image[1]) for x, y in points]


class UnavailableDriver(ScreenshotMixin):
    """Stands in for a type of device that this installation cannot drive: every command says why."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def probe(self) -> Probe:
        return Probe("no driver", {"error": self._reason})

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise ToolFailed(self._reason, delivery=NOT_SENT)

    peek = tap = swipe = input_text = launch_app = ui_tree = app_info = _refuse


def table(name: str, part: str) -> Mapping[str, Any]:
    """Return a part of one of the drivers' data files: `app_names`, `remedies` or `roles`."""
    parts: Mapping[str, Mapping[str, Any]] = json.loads(Path(__file__).with_name(f"{name}.json").read_bytes())
    return parts[part]


def with_remedy(message: str, output: str, remedies: Mapping[str, str]) -> str:
    """Return a message about a device's output, with what to do about each of the signs that it holds."""
    return "; ".join([message, *(remedy for sign, remedy in remedies.items() if sign in output)])


@contextmanager
def nothing_done(problem: str) -> Iterator[None]:
    """Raise what goes wrong in the block, before an action of the device, as ToolFailed with NOT_SENT.

    Its message begins with `problem`; what says so already, and InvalidParams, pass as they are.
    """
    try:
        yield
    except InvalidParams:
        raise
    except BaseException as error:
        if isinstance(error, ToolFailed) and error.delivery == NOT_SENT:
            raise
        raise ToolFailed(f"{problem}, so nothing was done: {failure_text(error)}", delivery=NOT_SENT) from error


def failure_text(error: BaseException) -> str:
    """Return the words of an error without the pictures in them, or its name where it has none."""
    try:
        return without_base64(str(error)) or type(error).__name__
    except Exception:  # of a foreign class
        return type(error).__name__


def refuse_untypeable(text: str, untypeable: re.Pattern[str], reason: str) -> None:
    """Raise ToolFailed naming the characters that are `untypeable`, before anything is sent: none is ever dropped."""
    refused = list(dict.fromkeys(untypeable.findall(text)))
    if not refused:
        return
    names = []
    for character in refused[:MOST_NAMED]:
        control = unicodedata.category(character) in ("Cc", "Cs")
        name = unicodedata.name(character, "control character" if control else "")
        shown = f" ({character})" if character.isprintable() and not unicodedata.combining(character) else ""
        names.append(f"U+{ord(character):04X} {name}".rstrip() + shown)
    more = " and more" if len(refused) > MOST_NAMED else ""
    raise ToolFailed(f"cannot type {', '.join(names)}{more}: {reason}; nothing was typed", delivery=NOT_SENT)
