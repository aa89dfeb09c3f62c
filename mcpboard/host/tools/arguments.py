"""Arguments as the tools want them: whole pixels, inside the screenshot, with a note where one was rounded.

The endpoint has checked that what is required is there and of the right kind; numbers may still
be text ("12") or have a fraction, because clients and models send them so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcpboard.errors import InvalidParams
from mcpboard.host.drivers.base import Point

SHORTEST_MS, LONGEST_MS = 1, 10_000  # of a swipe; what every kind of device can do
USUAL_MS = 300  # a swipe that scrolls without flinging
LONGEST_NAME = 500  # characters; comparing more with everything on a screen takes its time


class Arguments:
    """The arguments of one call; `notes` are lines for the result about what was changed."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = given
        self.notes: list[str] = []

    def text(self, name: str) -> str:
        """Return a text that is not blank, LONGEST_NAME characters at most; InvalidParams otherwise."""
        value = self._given[name]
        if not isinstance(value, str) or not value.strip():
            raise InvalidParams(f"argument {name} must not be empty")
        if len(value) > LONGEST_NAME:
            raise InvalidParams(f"argument {name} is longer than {LONGEST_NAME} characters")
        return value

    def typed(self, name: str) -> str:
        """Return a text that may be blank but not empty."""
        value = self._given[name]
        if not isinstance(value, str) or not value:
            raise InvalidParams(f"argument {name} must not be empty")
        return value

    def flag(self, name: str) -> bool:
        """Return True only where true was sent."""
        return self._given.get(name) is True

    def point(self, size: Point, x_name: str = "x", y_name: str = "y") -> Point:
        """Return a point in a screenshot of that size; InvalidParams outside it, never moved inside."""
        return self._pixel(x_name, size[0]), self._pixel(y_name, size[1])

    def duration_ms(self, name: str) -> int:
        """Return the milliseconds that a swipe takes, USUAL_MS where none were given."""
        value = self._given.get(name)
        duration = USUAL_MS if value is None else self._whole(name, value)
        if not SHORTEST_MS <= duration <= LONGEST_MS:
            raise InvalidParams(f"argument {name} must be {SHORTEST_MS} to {LONGEST_MS} milliseconds")
        return duration

    def _pixel(self, name: str, pixels: int) -> int:
        value = self._whole(name, self._given[name])
        if not 0 <= value < pixels:
            raise InvalidParams(
                f"argument {name} = {str(value)[:20]} is outside the screenshot: it has 0 to {pixels - 1} there; "
                "take_screenshot tells its size"
            )
        return value

    def _whole(self, name: str, value: Any) -> int:
        number = float(value) if isinstance(value, str) else value
        whole = round(number)
        if whole != number:
            self.notes.append(f"{name} was rounded from {number:g} to {whole}.")
        return whole
