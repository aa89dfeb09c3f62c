"""Vision for the host role: one worker that reads screenshots, a short queue before it, and a cache of results.

It needs the vision extra, which is heavy and may be absent: the extra is looked for at the start and imported by the
worker, at first use. Nothing of it is ever loaded by the board role.
"""

from __future__ import annotations

import hashlib
import importlib.util
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLong
from pathlib import Path
from typing import Any, TypeVar, cast

from mcpboard.errors import ToolFailed
from mcpboard.host.vision.types import Icon, OwnIcons, TextLine, VisionEngine

MOST_WAITING = 4  # screenshots behind the one that is read
WAIT_SECONDS = 45.0  # for five screenshots on a slow machine; below the minute after which common clients hang up
MOST_CACHED = 16  # results; a model asks about the same screen several times in a row
MOST_OWN = 500  # icons of the user's folder

EXTRA = ("rapidocr", "onnxruntime", "cv2", "numpy", "PIL")
INSTALL = "pip install 'mcpboard[vision]' where the host agent runs, and start it again"
NO_VISION = (
    f"this device tells no UI tree, and finding things in its screenshot needs the vision extra: {INSTALL}; until then "
    "look at take_screenshot yourself"
)

T = TypeVar("T")


class VisionService:
    """Text and icons of screenshots, one screenshot at a time; safe to use from any thread.

    `create_engine` makes the reader, None where the extra is not installed. `folder` holds the user's own icons as
    PNGs and need not exist. To be closed when serving is over.
    """

    def __init__(
        self, create_engine: Callable[[], VisionEngine] | None, folder: Path, wait_seconds: float = WAIT_SECONDS
    ) -> None:
        self.available = create_engine is not None  # without the extra nothing can be read
        self._create_engine = create_engine
        self._folder = folder
        self._wait_seconds = wait_seconds
        self._engine: VisionEngine | None = None  # of the worker's thread only
        self._slots = threading.Semaphore(1 + MOST_WAITING)
        self._worker = ThreadPoolExecutor(1, "vision")
        self._lock = threading.Lock()
        self._cache: OrderedDict[object, Any] = OrderedDict()

    def lines(self, image: bytes) -> tuple[TextLine, ...]:
        """Return the lines of text in an encoded image; ToolFailed when busy, too slow or without the extra."""
        return self._read(("lines", hashlib.sha256(image).digest()), lambda engine: engine.lines(image))

    def icons(self, image: bytes) -> tuple[Icon, ...]:
        """Return whatever may be an icon in it; the same errors."""
        own = own_icons(self._folder)
        return self._read(("icons", hashlib.sha256(image).digest(), own), lambda engine: engine.icons(image, own))

    def close(self) -> None:
        """Let the screenshot that is being read end, drop the others, join the worker."""
        self._worker.shutdown(wait=True, cancel_futures=True)

    def _read(self, key: object, read: Callable[[VisionEngine], T]) -> T:
        """Return the result of `read`, from the cache or by the worker; refuse at once where the queue is full."""
        if not self.available:
            raise ToolFailed(NO_VISION)
        if (cached := self._cached(key)) is not None:
            return cast(T, cached)
        if not self._slots.acquire(blocking=False):
            raise ToolFailed("vision is busy: too many screenshots wait to be read; try again in a few seconds")
        try:
            future = self._worker.submit(self._work, key, read)
        except RuntimeError:  # closed
            self._slots.release()
            raise ToolFailed("the host agent is shutting down") from None
        future.add_done_callback(lambda _: self._slots.release())
        try:
            return future.result(self._wait_seconds)
        except TooLong:
            future.cancel()
            problem = f"the screenshot was not read within {self._wait_seconds:g} s: this computer is busy"
            raise ToolFailed(f"{problem}; try again later") from None
        except CancelledError:
            raise ToolFailed("the host agent is shutting down") from None

    def _work(self, key: object, read: Callable[[VisionEngine], T]) -> T:
        """Read in the worker's thread, with the engine that the first call makes."""
        if (cached := self._cached(key)) is not None:  # by the one before us in the queue
            return cast(T, cached)
        if self._engine is None:
            assert self._create_engine is not None
            try:
                self._engine = self._create_engine()
            except ImportError as error:
                raise ToolFailed(f"the vision extra is there but does not start ({error}): {INSTALL}") from error
        result = read(self._engine)
        with self._lock:
            self._cache[key] = result
            while len(self._cache) > MOST_CACHED:
                self._cache.popitem(last=False)
        return result

    def _cached(self, key: object) -> Any:
        """Return the result that is remembered under a key, which makes it the newest; None where there is none."""
        with self._lock:
            if key in self._cache:
                self._cache.move_to_end(key)
            return self._cache.get(key)


def create_service(folder: Path) -> VisionService:
    """Return a service over the vision extra, or one that says what to install where it is missing."""
    missing = [name for name in EXTRA if importlib.util.find_spec(name) is None]
    return VisionService(None if missing else _create_engine, folder)


def own_icons(folder: Path) -> OwnIcons:
    """Return the user's icons by name; the result differs whenever one came, went or changed."""
    found = []
    for path in sorted(folder.glob("*.png"))[:MOST_OWN]:
        try:
            found.append((path, path.stat().st_mtime_ns))
        except OSError:  # it went while we looked
            continue
    return tuple(found)


def _create_engine() -> VisionEngine:
    """Import the extra, which happens nowhere else."""
    from mcpboard.host.vision.engine import Engine

    return Engine()
