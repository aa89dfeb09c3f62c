"""Something that sees, for tests: it tells what it was given, and may be made to wait inside a picture."""

from __future__ import annotations

import threading
from pathlib import Path

from mcpboard.host.vision.service import OwnIcons, VisionService
from mcpboard.host.vision.types import Icon, TextLine
from tests.host.rig import LIMIT_S


class Seer:
    """Notes the pictures it was shown, and in which thread."""

    def __init__(self, lines: tuple[TextLine, ...] = (), icons: tuple[Icon, ...] = ()) -> None:
        self.told = lines, icons
        self.shown: list[tuple[str, bytes]] = []
        self.threads: set[str] = set()
        self.fault: Exception | None = None
        self.made = 0
        self.entered = threading.Semaphore(0)
        self.go_on = threading.Event()
        self.go_on.set()

    def make(self) -> Seer:
        self.made += 1
        return self

    def eyes(self, folder: Path, wait_seconds: float = LIMIT_S) -> VisionService:
        return VisionService(self.make, folder, wait_seconds)

    def lines(self, picture: bytes) -> tuple[TextLine, ...]:
        self._look("lines", picture)
        return self.told[0]

    def icons(self, picture: bytes, own: OwnIcons) -> tuple[Icon, ...]:
        self._look("icons", picture)
        return self.told[1]

    def _look(self, what: str, picture: bytes) -> None:
        self.shown.append((what, picture))
        self.threads.add(threading.current_thread().name)
        self.entered.release()
        assert self.go_on.wait(LIMIT_S)
        if self.fault is not None:
            raise self.fault
