"""One engine, one worker, a short queue, and nothing read twice."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpboard.errors import ToolFailed
from mcpboard.host.vision import service
from mcpboard.host.vision.service import MOST_CACHED, MOST_WAITING, VisionService
from mcpboard.host.vision.types import TextLine
from tests.host.rig import result, threads
from tests.host.vision.fakes import FakeEngine
from tests.support.http import LIMIT_S

LINE = (TextLine("Settings", 1.0, (0, 0, 9, 9)),)


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine(LINE)


@pytest.fixture
def vision(engine: FakeEngine, tmp_path: Path) -> Iterator[VisionService]:
    with contextlib.closing(engine.service(tmp_path)) as made:
        yield made


def test_an_image_that_was_read_a_moment_ago_is_not_read_again(vision: VisionService, engine: FakeEngine) -> None:
    for _ in range(3):
        assert vision.lines(b"one") == LINE
    assert (vision.lines(b"two"), vision.icons(b"one"), vision.icons(b"one")) == (LINE, (), ())
    assert engine.shown == [("lines", b"one"), ("lines", b"two"), ("icons", b"one")]


def test_an_empty_screen_is_remembered_as_well(tmp_path: Path) -> None:
    engine = FakeEngine()
    with contextlib.closing(engine.service(tmp_path)) as vision:
        assert (vision.lines(b"blank"), vision.lines(b"blank")) == ((), ())
    assert len(engine.shown) == 1


def test_only_so_much_is_remembered(vision: VisionService, engine: FakeEngine) -> None:
    for number in range(MOST_CACHED):
        vision.lines(str(number).encode())
    vision.lines(b"0")  # used again, so that 1 is the oldest
    vision.lines(b"new")
    vision.lines(b"0")
    assert len(engine.shown) == MOST_CACHED + 1
    vision.lines(b"1")
    assert len(engine.shown) == MOST_CACHED + 2


def test_there_is_one_engine_in_one_thread(vision: VisionService, engine: FakeEngine) -> None:
    with threads() as pool:
        found = [pool.submit(vision.lines, str(number).encode()) for number in range(MOST_WAITING)]
        assert [result(each) for each in found] == [LINE] * MOST_WAITING
    assert (engine.created, len(engine.threads)) == (1, 1)


def test_the_next_after_a_full_queue_is_told_that_vision_is_busy(vision: VisionService, engine: FakeEngine) -> None:
    """One worker, four waiting; nothing is queued without bound."""
    slots = vision._slots = Slots()
    engine.go_on.clear()
    with threads() as pool:
        waiting = [pool.submit(vision.lines, str(number).encode()) for number in range(1 + MOST_WAITING)]
        slots.wait_for(1 + MOST_WAITING)
        with pytest.raises(ToolFailed, match="busy.*try again in a few seconds"):
            vision.icons(b"0")
        engine.go_on.set()
        assert [result(each) for each in waiting] == [LINE] * len(waiting)
    assert vision.icons(b"0") == ()


class Slots(threading.Semaphore):
    """The slots of the queue; `taken` counts those that were acquired."""

    def __init__(self) -> None:
        super().__init__(1 + MOST_WAITING)
        self.taken = threading.Semaphore(0)

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        got = super().acquire(blocking, timeout)
        if got:
            self.taken.release()
        return got

    def wait_for(self, count: int) -> None:
        for _ in range(count):
            assert self.taken.acquire(timeout=LIMIT_S)


def test_who_waits_for_an_image_that_is_being_read_gets_the_same_result(
    vision: VisionService, engine: FakeEngine
) -> None:
    engine.go_on.clear()
    with threads() as pool:
        waiting = [pool.submit(vision.lines, b"same") for _ in range(3)]
        assert engine.entered.acquire(timeout=LIMIT_S)
        engine.go_on.set()
        assert [result(each) for each in waiting] == [LINE] * 3
    assert engine.shown == [("lines", b"same")]


def test_a_reading_that_takes_too_long_is_given_up(engine: FakeEngine, tmp_path: Path) -> None:
    engine.go_on.clear()
    with contextlib.closing(engine.service(tmp_path, wait_seconds=0.05)) as vision:
        with pytest.raises(ToolFailed, match="not read within 0.05 s.*try again later"):
            vision.lines(b"slow")
        engine.go_on.set()


def test_a_failure_is_told_and_not_remembered(vision: VisionService, engine: FakeEngine) -> None:
    engine.fault = ToolFailed("no picture")
    with pytest.raises(ToolFailed, match="no picture"):
        vision.lines(b"broken")
    engine.fault = None
    assert vision.lines(b"broken") == LINE


def test_closing_ends_the_worker_and_whoever_waits(engine: FakeEngine, tmp_path: Path) -> None:
    vision = engine.service(tmp_path)
    slots = vision._slots = Slots()
    engine.go_on.clear()
    with threads() as pool:
        inside = pool.submit(vision.lines, b"0")
        assert engine.entered.acquire(timeout=LIMIT_S)
        behind = pool.submit(vision.lines, b"1")
        slots.wait_for(2)
        closing = pool.submit(vision.close)
        with pytest.raises(ToolFailed, match="shutting down"):
            result(behind)
        engine.go_on.set()
        assert (result(inside), result(closing)) == (LINE, None)
    with pytest.raises(ToolFailed, match="shutting down"):
        vision.lines(b"2")
    assert not any(thread.name.startswith("vision") for thread in threading.enumerate())


# --- with and without the extra --------------------------------------------------------------------


def test_without_the_extra_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "EXTRA", ("json", "no_such_module"))
    with contextlib.closing(service.create_service(tmp_path)) as vision:
        assert not vision.available
        with pytest.raises(ToolFailed, match=r"pip install 'mcpboard\[vision\]'"):
            vision.lines(b"picture")


def test_with_the_extra_vision_is_available(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "EXTRA", ("json",))
    with contextlib.closing(service.create_service(tmp_path)) as vision:
        assert vision.available


def test_an_extra_that_does_not_start_says_why(tmp_path: Path) -> None:
    def broken() -> FakeEngine:
        raise ImportError("libGL.so.1: cannot open shared object file")

    with (
        contextlib.closing(VisionService(broken, tmp_path)) as vision,
        pytest.raises(ToolFailed, match="does not start.*libGL"),
    ):
        vision.lines(b"picture")


# --- the user's own icons ------------------------------------------------------------------------------


def test_an_image_is_read_again_when_the_users_icons_change(
    vision: VisionService, engine: FakeEngine, tmp_path: Path
) -> None:
    vision.icons(b"one")
    (tmp_path / "my-app.png").write_bytes(b"1")
    vision.icons(b"one")
    vision.icons(b"one")
    os.utime(tmp_path / "my-app.png", (1, 1))
    vision.icons(b"one")
    (tmp_path / "notes.txt").write_bytes(b"1")
    vision.icons(b"one")
    assert len(engine.shown) == 3


def test_a_folder_that_is_not_there_holds_no_icons(tmp_path: Path) -> None:
    assert service.own_icons(tmp_path / "absent") == ()
