"""The host's eyes: one worker that reads pictures, a short queue before it, and what it saw a moment ago.

Seeing needs the vision extra, which is heavy and may be absent: it is looked for at the start and imported by the
worker, at first use. Nothing of it is ever loaded by the board role.
"""

from __future__ import annotations

import hashlib
import importlib.util
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLong
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from mcpboard.errors import ToolFailed
from mcpboard.host.vision.types import Icon, TextLine

MOST_WAITING = 4  # pictures behind the one that is read
WAIT_SECONDS = 45.0  # for five pictures on a slow machine; below the minute after which common clients hang up
MOST_KEPT = 16  # answers; a model asks about the same screen several times in a row
MOST_OWN = 500  # pictures of the user's folder

EXTRA = ("rapidocr", "onnxruntime", "cv2", "numpy", "PIL")
INSTALL = "pip install 'mcpboard[vision]' where the host agent runs, and start it again"
NO_EYES = (
    f"this device tells no UI tree, and finding things in its picture needs the vision extra: {INSTALL}; until then "
    "look at take_screenshot yourself"
)

OwnIcons = tuple["tuple[Path, int]", ...]  # the user's pictures, with the time of their last change

T = TypeVar("T")


class VisionEngine(Protocol):
    """What reads a picture; made and used by one thread."""

    def lines(self, picture: bytes) -> tuple[TextLine, ...]: ...

    def icons(self, picture: bytes, own: OwnIcons) -> tuple[Icon, ...]: ...


class VisionService:
    """Words and icons of pictures, one picture at a time; safe to use from any thread.

    `make` gives what reads them, None where the extra is not installed. `folder` holds the user's own icons as PNGs
    and need not exist. To be closed when serving is over.
    """

    def __init__(
        self, make: Callable[[], VisionEngine] | None, folder: Path, wait_seconds: float = WAIT_SECONDS
    ) -> None:
        self._make = make
        self._folder = folder
        self._wait_seconds = wait_seconds
        self._sees: VisionEngine | None = None
        self._places = threading.Semaphore(1 + MOST_WAITING)
        self._worker = ThreadPoolExecutor(1, "eyes")
        self._lock = threading.Lock()
        self._kept: OrderedDict[object, Any] = OrderedDict()

    @property
    def closed(self) -> bool:
        """Whether nothing can be seen, for want of the extra."""
        return self._make is None

    def lines(self, picture: bytes) -> tuple[TextLine, ...]:
        """The lines of text in an encoded picture; ToolFailed when busy, too slow or without the extra."""
        return self._seen(("lines", _digest(picture)), lambda sees: sees.lines(picture))

    def icons(self, picture: bytes) -> tuple[Icon, ...]:
        """Whatever may be an icon in it; the same errors."""
        own = own_icons(self._folder)
        return self._seen(("icons", _digest(picture), own), lambda sees: sees.icons(picture, own))

    def close(self) -> None:
        """Let the picture that is being read end, drop the others, join the worker."""
        self._worker.shutdown(wait=True, cancel_futures=True)

    # --- the queue ---

    def _seen(self, key: object, look: Callable[[VisionEngine], T]) -> T:
        if self._make is None:
            raise ToolFailed(NO_EYES)
        found = self._recalled(key)
        return cast(T, found) if found is not None else self._queued(key, look)

    def _queued(self, key: object, look: Callable[[VisionEngine], T]) -> T:
        if not self._places.acquire(blocking=False):
            raise ToolFailed("the eyes are busy: too many pictures wait to be read; try again in a few seconds")
        try:
            future = self._worker.submit(self._look, key, look)
        except RuntimeError:  # closed
            self._places.release()
            raise ToolFailed("the host agent is shutting down") from None
        future.add_done_callback(lambda _: self._places.release())
        return self._result(future)

    def _result(self, future: Future[T]) -> T:
        try:
            return future.result(self._wait_seconds)
        except TooLong:
            future.cancel()
            words = f"the picture was not read within {self._wait_seconds:g} s: this computer is busy; try again later"
            raise ToolFailed(words) from None
        except CancelledError:
            raise ToolFailed("the host agent is shutting down") from None

    def _look(self, key: object, look: Callable[[VisionEngine], T]) -> T:
        found = self._recalled(key)  # by the one before us in the queue
        if found is None:
            found = look(self._opened())
            self._remember(key, found)
        return cast(T, found)

    def _opened(self) -> VisionEngine:
        if self._sees is None:
            assert self._make is not None
            try:
                self._sees = self._make()
            except ImportError as error:
                raise ToolFailed(f"the vision extra is there but does not start ({error}): {INSTALL}") from error
        return self._sees

    # --- what was seen a moment ago ---

    def _recalled(self, key: object) -> Any:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def _remember(self, key: object, found: object) -> None:
        with self._lock:
            self._kept[key] = found
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)


def opened(folder: Path) -> VisionService:
    """Eyes over the vision extra, or closed ones where it is not installed."""
    missing = [name for name in EXTRA if importlib.util.find_spec(name) is None]
    return VisionService(None if missing else _vision, folder)


def own_icons(folder: Path) -> OwnIcons:
    """The user's pictures by name; differs whenever one came, went or changed."""
    found = []
    for path in sorted(folder.glob("*.png"))[:MOST_OWN]:
        try:
            found.append((path, path.stat().st_mtime_ns))
        except OSError:  # it went while we looked
            continue
    return tuple(found)


def _digest(picture: bytes) -> str:
    return hashlib.sha256(picture).hexdigest()


def _vision() -> VisionEngine:
    """The one place where the extra is imported."""
    from mcpboard.host.vision.engine import Engine

    return Engine()
