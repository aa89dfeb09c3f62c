"""A vision engine for tests: it returns what it was given, and may be made to wait inside an image."""

from __future__ import annotations

import threading
from pathlib import Path

from mcpboard.host.vision.service import VisionService
from mcpboard.host.vision.types import Icon, OwnIcons, TextLine
from tests.support.http import LIMIT_S


class FakeEngine:
    """Notes the images it was shown, and in which thread."""

    def __init__(self, lines: tuple[TextLine, ...] = (), icons: tuple[Icon, ...] = ()) -> None:
        self.results = lines, icons
        self.shown: list[tuple[str, bytes]] = []
        self.threads: set[str] = set()
        self.fault: Exception | None = None
        self.created = 0
        self.entered = threading.Semaphore(0)
        self.go_on = threading.Event()
        self.go_on.set()

    def create(self) -> FakeEngine:
        self.created += 1
        return self

    def service(self, folder: Path, wait_seconds: float = LIMIT_S) -> VisionService:
        return VisionService(self.create, folder, wait_seconds)

    def lines(self, image: bytes) -> tuple[TextLine, ...]:
        self._read("lines", image)
        return self.results[0]

    def icons(self, image: bytes, own: OwnIcons) -> tuple[Icon, ...]:
        self._read("icons", image)
        return self.results[1]

    def _read(self, kind: str, image: bytes) -> None:
        self.shown.append((kind, image))
        self.threads.add(threading.current_thread().name)
        self.entered.release()
        assert self.go_on.wait(LIMIT_S)
        if self.fault is not None:
            raise self.fault
