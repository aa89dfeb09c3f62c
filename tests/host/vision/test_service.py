"""One engine, one worker, a short queue, and nothing read twice."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, as_completed, wait
from itertools import islice
from pathlib import Path
from typing import Any

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
    """Nor is one on which nothing was found."""
    assert [vision.lines(b"one"), vision.lines(b"one"), vision.lines(b"two")] == [LINE] * 3
    assert [vision.icons(b"one"), vision.icons(b"one")] == [(), ()]
    assert engine.shown == [("lines", b"one"), ("lines", b"two"), ("icons", b"one")]


def test_only_so_much_is_remembered(vision: VisionService, engine: FakeEngine) -> None:
    for number in range(MOST_CACHED):
        vision.lines(str(number).encode())
    for image in (b"0", b"new", b"0"):  # 0 is used again, so that 1 is the oldest
        vision.lines(image)
    assert len(engine.shown) == MOST_CACHED + 1
    vision.lines(b"1")
    assert len(engine.shown) == MOST_CACHED + 2


def crowd(pool: ThreadPoolExecutor, vision: VisionService, engine: FakeEngine) -> set[Future[Any]]:
    """Stop the engine and fill its queue, all with one image: who comes too much is told so, the others are returned."""
    engine.go_on.clear()
    callers = [pool.submit(vision.lines, b"same") for _ in range(2 + MOST_WAITING)]
    (refused,), waiting = wait(callers, LIMIT_S, FIRST_COMPLETED)
    with pytest.raises(ToolFailed, match="busy.*try again in a few seconds"):
        result(refused)
    return waiting


def test_a_full_queue_gets_what_is_read_once_by_one_engine(vision: VisionService, engine: FakeEngine) -> None:
    with threads() as pool:
        waiting = crowd(pool, vision, engine)
        engine.go_on.set()
        assert [result(each) for each in waiting] == [LINE] * (1 + MOST_WAITING)
    assert engine.shown == [("lines", b"same")]
    assert vision.icons(b"same") == ()
    assert len(engine.threads) == 1


def test_closing_ends_the_worker_and_whoever_waits(vision: VisionService, engine: FakeEngine) -> None:
    with threads() as pool:
        waiting = crowd(pool, vision, engine)
        closing = pool.submit(vision.close)
        for ended in islice(as_completed(waiting, LIMIT_S), MOST_WAITING):
            with pytest.raises(ToolFailed, match="shutting down"):
                result(ended)
        (inside,) = (each for each in waiting if not each.done())
        engine.go_on.set()
        assert (result(inside), result(closing)) == (LINE, None)
    with pytest.raises(ToolFailed, match="shutting down"):
        vision.lines(b"2")
    assert not any(thread.name.startswith("vision") for thread in threading.enumerate())


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


@pytest.mark.parametrize(("extra", "available"), [(("json",), True), (("json", "no_such_module"), False)])
def test_vision_is_there_with_the_whole_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extra: tuple[str, ...], available: bool
) -> None:
    monkeypatch.setattr(service, "EXTRA", extra)
    with contextlib.closing(service.create_service(tmp_path)) as vision:
        assert vision.available == available


def test_an_extra_that_does_not_start_says_why(tmp_path: Path) -> None:
    def broken() -> FakeEngine:
        raise ImportError("libGL.so.1: cannot open shared object file")

    with (
        contextlib.closing(VisionService(broken, tmp_path)) as vision,
        pytest.raises(ToolFailed, match="does not start.*libGL"),
    ):
        vision.lines(b"picture")


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
