"""What is slow to come by, shared by all pages that show it and waited for by none of them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

log = logging.getLogger(__name__)

MOST_UNDER_WAY = 16  # renewals at a time, each a thread; a silent device keeps one of them
FORGET_SECONDS = 60.0  # what nobody has looked at for so long is dropped: pictures are large
LEAVE_SECONDS = 3.0  # for the renewals under way at the end, together

T = TypeVar("T")


@dataclass(frozen=True)
class CachedValue(Generic[T]):
    """A value and the time it is from."""

    value: T
    at: float


class RevalidatingCache(Generic[T]):
    """The last known value of each key; whoever asks for one that is old starts its renewal, and does not wait.

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
        self._known: dict[str, CachedValue[T]] = {}
        self._asked: dict[str, float] = {}
        self._under_way: dict[str, threading.Thread] = {}
        self._closed = False

    def latest(self, key: str) -> CachedValue[T] | None:
        """The value as it was found last; None before the first time."""
        with self._lock:
            self._forget()
            self._asked[key] = self._clock()
            known = self._known.get(key)
            if known is None or self._clock() - known.at >= self._fresh_seconds:
                self._start(key)
            return known

    def drop(self, key: str) -> None:
        """Forget the value of `key`: the next who asks sees that it is being found out anew."""
        with self._lock:
            self._known.pop(key, None)

    def close(self) -> None:
        """Begin nothing new, and wait a moment for what is under way."""
        with self._lock:
            self._closed = True
            leaving = list(self._under_way.values())
        over = time.monotonic() + LEAVE_SECONDS
        for thread in leaving:
            thread.join(max(0.0, over - time.monotonic()))

    def _forget(self) -> None:
        now = self._clock()
        for key in [key for key, asked in self._asked.items() if now - asked > FORGET_SECONDS]:
            del self._asked[key]
            self._known.pop(key, None)

    def _start(self, key: str) -> None:
        if self._closed or key in self._under_way or len(self._under_way) >= MOST_UNDER_WAY:
            return
        # A daemon: a device that hangs must not keep the process from ending.
        thread = threading.Thread(target=self._renew, args=(key,), name=f"console {self._name}", daemon=True)
        thread.start()  # it ends under the lock that we hold
        self._under_way[key] = thread

    def _renew(self, key: str) -> None:
        found: T | None = None
        try:
            found = self._fetch(key)
        except Exception:
            log.exception("console: the %s of %s", self._name, key)
        with self._lock:
            del self._under_way[key]
            if found is not None and key in self._asked:
                self._known[key] = CachedValue(found, self._clock())
