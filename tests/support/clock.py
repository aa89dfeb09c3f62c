"""A clock that a test turns by hand."""

from __future__ import annotations

import threading


class Clock:
    """Seconds, which stand still until a test sets `now` or lets some pass."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now
        self._lock = threading.Lock()

    def __call__(self) -> float:
        return self.now

    def pass_by(self, seconds: float) -> None:
        """Let time pass; also stands in for `sleep`, from any thread."""
        with self._lock:
            self.now += seconds
