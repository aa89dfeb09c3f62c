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
from mcpboard.host.vision.service import MOST_KEPT, MOST_WAITING, VisionService
from mcpboard.host.vision.types import TextLine
from tests.host.rig import LIMIT_S, result, threads
from tests.host.vision.fakes import Seer

LINE = (TextLine("Settings", 1.0, (0, 0, 9, 9)),)


@pytest.fixture
def seer() -> Seer:
    return Seer(LINE)


@pytest.fixture
def eyes(seer: Seer, tmp_path: Path) -> Iterator[VisionService]:
    with contextlib.closing(seer.eyes(tmp_path)) as made:
        yield made


def test_what_was_seen_a_moment_ago_is_not_read_again(eyes: VisionService, seer: Seer) -> None:
    for _ in range(3):
        assert eyes.lines(b"one") == LINE
    assert (eyes.lines(b"two"), eyes.icons(b"one"), eyes.icons(b"one")) == (LINE, (), ())
    assert seer.shown == [("lines", b"one"), ("lines", b"two"), ("icons", b"one")]


def test_an_empty_screen_is_remembered_as_well(tmp_path: Path) -> None:
    seer = Seer()
    with contextlib.closing(seer.eyes(tmp_path)) as eyes:
        assert (eyes.lines(b"blank"), eyes.lines(b"blank")) == ((), ())
    assert len(seer.shown) == 1


def test_only_so_much_is_remembered(eyes: VisionService, seer: Seer) -> None:
    for number in range(MOST_KEPT):
        eyes.lines(str(number).encode())
    eyes.lines(b"0")  # used again, so that 1 is the oldest
    eyes.lines(b"new")
    eyes.lines(b"0")
    assert len(seer.shown) == MOST_KEPT + 1
    eyes.lines(b"1")
    assert len(seer.shown) == MOST_KEPT + 2


def test_there_is_one_engine_in_one_thread(eyes: VisionService, seer: Seer) -> None:
    with threads() as pool:
        found = [pool.submit(eyes.lines, str(number).encode()) for number in range(MOST_WAITING)]
        assert [result(each) for each in found] == [LINE] * MOST_WAITING
    assert (seer.made, len(seer.threads)) == (1, 1)


def test_the_next_after_a_full_queue_is_told_that_the_eyes_are_busy(eyes: VisionService, seer: Seer) -> None:
    """Contract: one worker, four waiting; nothing is queued without bound."""
    places = eyes._places = Places()
    seer.go_on.clear()
    with threads() as pool:
        waiting = [pool.submit(eyes.lines, str(number).encode()) for number in range(1 + MOST_WAITING)]
        places.wait_for(1 + MOST_WAITING)
        with pytest.raises(ToolFailed, match="busy.*try again in a few seconds"):
            eyes.icons(b"0")
        seer.go_on.set()
        assert [result(each) for each in waiting] == [LINE] * len(waiting)
    assert eyes.icons(b"0") == ()


class Places(threading.Semaphore):
    """The places of the queue; `taken` counts those that were."""

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


def test_who_waits_for_a_picture_that_is_being_read_gets_the_same_reading(eyes: VisionService, seer: Seer) -> None:
    seer.go_on.clear()
    with threads() as pool:
        waiting = [pool.submit(eyes.lines, b"same") for _ in range(3)]
        assert seer.entered.acquire(timeout=LIMIT_S)
        seer.go_on.set()
        assert [result(each) for each in waiting] == [LINE] * 3
    assert seer.shown == [("lines", b"same")]


def test_a_reading_that_takes_too_long_is_given_up(seer: Seer, tmp_path: Path) -> None:
    seer.go_on.clear()
    with contextlib.closing(seer.eyes(tmp_path, wait_seconds=0.05)) as eyes:
        with pytest.raises(ToolFailed, match="not read within 0.05 s.*try again later"):
            eyes.lines(b"slow")
        seer.go_on.set()


def test_a_failure_is_told_and_not_remembered(eyes: VisionService, seer: Seer) -> None:
    seer.fault = ToolFailed("no picture")
    with pytest.raises(ToolFailed, match="no picture"):
        eyes.lines(b"broken")
    seer.fault = None
    assert eyes.lines(b"broken") == LINE


def test_closing_ends_the_worker_and_whoever_waits(seer: Seer, tmp_path: Path) -> None:
    eyes = seer.eyes(tmp_path)
    places = eyes._places = Places()
    seer.go_on.clear()
    with threads() as pool:
        inside = pool.submit(eyes.lines, b"0")
        assert seer.entered.acquire(timeout=LIMIT_S)
        behind = pool.submit(eyes.lines, b"1")
        places.wait_for(2)
        closing = pool.submit(eyes.close)
        with pytest.raises(ToolFailed, match="shutting down"):
            result(behind)
        seer.go_on.set()
        assert (result(inside), result(closing)) == (LINE, None)
    with pytest.raises(ToolFailed, match="shutting down"):
        eyes.lines(b"2")
    assert not any(thread.name.startswith("eyes") for thread in threading.enumerate())


# --- with and without the extra --------------------------------------------------------------------


def test_without_the_extra_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "EXTRA", ("json", "no_such_module"))
    with contextlib.closing(service.opened(tmp_path)) as eyes:
        assert eyes.closed
        with pytest.raises(ToolFailed, match=r"pip install 'mcpboard\[vision\]'"):
            eyes.lines(b"picture")


def test_with_the_extra_the_eyes_are_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "EXTRA", ("json",))
    with contextlib.closing(service.opened(tmp_path)) as eyes:
        assert not eyes.closed


def test_an_extra_that_does_not_start_says_why(tmp_path: Path) -> None:
    def broken() -> Seer:
        raise ImportError("libGL.so.1: cannot open shared object file")

    with (
        contextlib.closing(VisionService(broken, tmp_path)) as eyes,
        pytest.raises(ToolFailed, match="does not start.*libGL"),
    ):
        eyes.lines(b"picture")


# --- the user's own icons ------------------------------------------------------------------------------


def test_a_picture_is_looked_at_again_when_the_users_icons_change(
    eyes: VisionService, seer: Seer, tmp_path: Path
) -> None:
    eyes.icons(b"one")
    (tmp_path / "my-app.png").write_bytes(b"1")
    eyes.icons(b"one")
    eyes.icons(b"one")
    os.utime(tmp_path / "my-app.png", (1, 1))
    eyes.icons(b"one")
    (tmp_path / "notes.txt").write_bytes(b"1")
    eyes.icons(b"one")
    assert len(seer.shown) == 3


def test_a_folder_that_is_not_there_holds_no_icons(tmp_path: Path) -> None:
    assert service.own_icons(tmp_path / "absent") == ()
