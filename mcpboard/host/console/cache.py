"""A stale-while-revalidate cache: for values that are slow to come by, shared by all pages, waited for by none."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

log = logging.getLogger(__name__)

# Renewals at a time, each a thread: one for each device that a host may have, as a silent one keeps its own.
MOST_UNDER_WAY = 64
FORGET_SECONDS = 60.0  # a value that nobody has asked for so long is dropped: screenshots are large
LEAVE_SECONDS = 3.0  # for the renewals under way at the end, together

T = TypeVar("T")


class RevalidatingCache(Generic[T]):
    """The last known value of each key; a request for one that is old starts its renewal, and does not wait.

    However many ask, there is one renewal a key at a time, and none that nobody asks for.
    `fetch` gives None when there is no news, and the last value stays. Safe to use from any thread.
    """

    def __init__(
        self, name: str, fetch: Callable[[str], T | None], clock: Callable[[], float], fresh_seconds: float
    ) -> None:
        self._name = name
        self._fetch = fetch
        self._clock = clock
        self._fresh_seconds = fresh_seconds
        self._lock = threading.Lock()
        self._values: dict[str, tuple[T, float]] = {}
        self._requested_at: dict[str, float] = {}
        self._under_way: dict[str, threading.Thread] = {}
        self._closed = False

    def latest(self, key: str) -> tuple[T, float] | None:
        """Return the value as it was fetched last, and when that was; None before the first time."""
        with self._lock:
            now = self._clock()
            for old in [each for each, at in self._requested_at.items() if now - at > FORGET_SECONDS]:
                del self._requested_at[old]
                self._values.pop(old, None)
            self._requested_at[key] = now
            cached = self._values.get(key)
            fresh = cached is not None and now - cached[1] < self._fresh_seconds
            full = key in self._under_way or len(self._under_way) >= MOST_UNDER_WAY
            if not (fresh or full or self._closed):
                # A daemon: a device that hangs must not keep the process from ending.
                thread = threading.Thread(target=self._renew, args=(key,), name=f"console {self._name}", daemon=True)
                thread.start()  # it ends under the lock that we hold
                self._under_way[key] = thread
            return cached

    def drop(self, key: str) -> None:
        """Forget the value of `key`: the next who asks sees that it is being fetched anew."""
        with self._lock:
            self._values.pop(key, None)

    def close(self) -> None:
        """Begin nothing new, and wait a moment for what is under way."""
        with self._lock:
            self._closed = True
            leaving = list(self._under_way.values())
        end = time.monotonic() + LEAVE_SECONDS
        for thread in leaving:
            thread.join(max(0.0, end - time.monotonic()))

    def _renew(self, key: str) -> None:
        value: T | None = None
        try:
            value = self._fetch(key)
        except Exception:
            log.exception("console: the %s of %s", self._name, key)
        with self._lock:
            del self._under_way[key]
            if value is not None and key in self._requested_at:
                self._values[key] = value, self._clock()
