"""A thousand callers who leave at every possible moment, and a server that is then as it was before."""

from __future__ import annotations

import json
import os
import socket
import struct
import threading
from collections.abc import Callable
from pathlib import Path

from mcpboard import board
from mcpboard.serving import server
from tests.support import rig
from tests.support.gohttp import GoServer, tool_answer
from tests.support.http import LIMIT_S, Caller, call

ABORTED = 1000
GROWTH = 2 << 20  # bytes; a leak of one reply a call would be 40 MiB
PICTURE = tool_answer(json.dumps({"data": "/9j/" + "A" * 40_000}))


def half_a_head(sock: socket.socket, request: bytes) -> None:
    sock.sendall(request[:20])


def half_a_body(sock: socket.socket, request: bytes) -> None:
    sock.sendall(request[:-20])


def the_whole_request(sock: socket.socket, request: bytes) -> None:
    sock.sendall(request)


def one_byte_of_the_answer(sock: socket.socket, request: bytes) -> None:
    sock.sendall(request)
    sock.recv(1)


MOMENTS = [half_a_head, half_a_body, the_whole_request, one_byte_of_the_answer]


def abort(client: Caller, leave_after: Callable[[socket.socket, bytes], None], *, reset: bool) -> None:
    with socket.create_connection(client.address, LIMIT_S) as sock:
        leave_after(sock, client.request("POST", call("screenshot")))
        if reset:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def aborted(served: rig.Process, count: int) -> tuple[int, int, int]:
    """That many calls whose callers left; then threads, open descriptors and bytes of memory of the server."""
    for number in range(count):
        abort(served.client, MOMENTS[number % len(MOMENTS)], reset=number % 3 == 0)
    served.client.ask("tools/list")
    served.client.ask("ping")
    proc = Path(f"/proc/{served.pid}")
    return len(os.listdir(proc / "task")), len(os.listdir(proc / "fd")), served.resident()


def test_nothing_leaks_over_a_thousand_aborted_calls(tmp_path: Path) -> None:
    """Threads, descriptors, lanes, slots and memory: all come back."""
    with (
        GoServer(lambda went: went.reply(PICTURE)) as agent,
        rig.process(rig.settings_file(tmp_path, agent.url)) as served,
    ):
        before = aborted(served, 100)
        after = aborted(served, ABORTED)
        assert not any(served.client.call("screenshot").is_error for _ in range(10))
    assert after[0] == before[0]
    assert after[1] <= before[1] + 2  # a connection or two may be just ending
    assert after[2] - before[2] < GROWTH


def test_a_server_may_be_told_to_stop_at_any_time() -> None:
    """Also when it is ending, or has ended: its number for waking up may be somebody else's by then."""
    settings = rig.settings()
    running = server.Server(board.build(lambda: settings), server.listeners([("127.0.0.1", 0)]))
    thread = threading.Thread(target=running.run)
    thread.start()
    running.stop()
    running.stop()
    thread.join(LIMIT_S)
    running.stop()
    assert not thread.is_alive()
