"""What goes wrong next at a pretend cloud: each mishap as often as it was asked for, and then no more."""

from __future__ import annotations

import threading
from typing import Any


class CloudFaults:
    """By the kind of post: a status instead of an answer, or no answer at all; and how slow every answer is.

    Safe to share between threads.
    """

    def __init__(self) -> None:
        self.slow_s = 0.0
        self._lock = threading.Lock()
        self._statuses: dict[str, list[int]] = {}
        self._swallowed: dict[str, int] = {}

    def fail(self, kind: str, status: int, times: int) -> None:
        """Have the next posts of that kind answered with `status`, once those before have had theirs."""
        with self._lock:
            self._statuses.setdefault(kind, []).extend([status] * times)

    def swallow(self, kind: str, times: int) -> None:
        """Have the next answers to that kind lost, so many in all."""
        with self._lock:
            self._swallowed[kind] = times

    def answer(self, kind: str) -> tuple[int, Any] | None:
        """Status and answer for the post at hand, asked once a post; None where it is to be acted on."""
        with self._lock:
            waiting = self._statuses.get(kind)
            return (waiting.pop(0), {"error": "told to fail"}) if waiting else None

    def swallows(self, kind: str) -> bool:
        """Whether the answer to the post at hand is lost; asked once a post."""
        with self._lock:
            left = self._swallowed.get(kind, 0)
            self._swallowed[kind] = max(0, left - 1)
            return left > 0
