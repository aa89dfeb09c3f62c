"""Tests of the drivers, and what several of them share: a picture, a refusal, and a port with one answer for everybody."""

from __future__ import annotations

import contextlib
import io
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from PIL import Image

from mcpboard.errors import ToolFailed

LIMIT_S = 10.0
Reply = Callable[[socket.socket], object]


def png(width: int, height: int, light: int = 90) -> bytes:
    """A whole PNG of one color."""
    file = io.BytesIO()
    Image.new("RGBA", (width, height), (light, light, light, 255)).save(file, "PNG")
    return file.getvalue()


def refused(
    work: Callable[[], object], *messages: str, delivery: str | None = None, error: type[ToolFailed] = ToolFailed
) -> str:
    """The words with which `work` fails, these among them, and with that delivery."""
    with pytest.raises(error) as failed:
        work()
    assert all(message in str(failed.value) for message in messages), str(failed.value)
    assert delivery in (None, failed.value.delivery)
    return str(failed.value)


@contextlib.contextmanager
def answering(answer: Reply, port: int = 0) -> Iterator[int]:
    """The port of a server that hands each connection to `answer`, in a thread of its own."""

    def one(peer: socket.socket) -> None:
        with peer, contextlib.suppress(OSError):  # the client has gone
            answer(peer)

    def accept() -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                work.append(pool.submit(one, listening.accept()[0]))

    with socket.create_server(("127.0.0.1", port)) as listening, ThreadPoolExecutor(64) as pool:
        work: list[Future[Any]] = []
        work.append(pool.submit(accept))
        try:
            yield listening.getsockname()[1]
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            for each in work:
                each.result(LIMIT_S)
