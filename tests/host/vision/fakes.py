"""A vision engine for tests: it returns what it was given, and may be made to wait inside an image."""

from __future__ import annotations

import threading
from pathlib import Path

from mcpboard.host.vision.service import VisionService
from mcpboard.host.vision.types import Icon, OwnIcons, TextLine
from tests.support.http import LIMIT_S


class FakeEngine:
    """Notes the images it was shown, and in which thread; raises `fault`, and waits for `go_on`."""

    def __init__(self, lines: tuple[TextLine, ...] = (), icons: tuple[Icon, ...] = ()) -> None:
        self.results = lines, icons
        self.shown: list[tuple[str, bytes]] = []
        self.threads: list[int] = []  # one for each time that it was created
        self.fault: Exception | None = None
        self.go_on = threading.Event()
        self.go_on.set()

    def create(self) -> FakeEngine:
        self.threads.append(threading.get_ident())
        return self

    def service(self, folder: Path, wait_seconds: float = LIMIT_S) -> VisionService:
        return VisionService(self.create, folder, wait_seconds)

    def lines(self, image: bytes) -> tuple[TextLine, ...]:
        self._show("lines", image)
        return self.results[0]

    def icons(self, image: bytes, own: OwnIcons) -> tuple[Icon, ...]:
        self._show("icons", image)
        return self.results[1]

    def _show(self, kind: str, image: bytes) -> None:
        assert self.threads[-1] == threading.get_ident(), "not by the thread that created it"
        self.shown.append((kind, image))
        assert self.go_on.wait(LIMIT_S)
        if self.fault is not None:
            raise self.fault
