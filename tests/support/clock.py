"""A clock that a test turns by hand."""

from __future__ import annotations


class Clock:
    """Seconds, which stand still until a test sets `now`."""

    now = 100.0

    def __call__(self) -> float:
        return self.now
