"""`mcpboard bridge` as a process on pipes, in front of the real board role, in a hostile environment."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpboard.simulator import Simulator
from tests.support.piped import ENVIRONMENT, MODERN, Bridged, RestartableBoard, bridge, free_port
from tests.support.processes import MCPBOARD, run
from tests.support.served import Board

pytestmark = pytest.mark.slow  # waits for real limits, links or processes

TAP: dict[str, Any] = {"type": "tap", "point": {"x": 500, "y": 500}}
BUNDLE_BYTES = 16 << 20
FLAT_KIB = 24 << 10  # KiB that a bundle of 16 MiB, 22 in base64, may add to what the process holds


@pytest.fixture
def bridged(board: Board) -> Iterator[Bridged]:
    with bridge(board.url) as client:
        yield client


# --- the eras ------------------------------------------------------------------------------------


def test_a_modern_client_is_passed_through(bridged: Bridged) -> None:
    found = bridged.request(0, "server/discover", modern=True)["result"]
    assert MODERN in found["supportedVersions"]
    tools = bridged.request(1, "tools/list", modern=True)["result"]
    assert tools["resultType"] == "complete"
    assert isinstance(tools["ttlMs"], int)
    assert bridged.call(2, "phone_bridge_status", modern=True)["result"]["resultType"] == "complete"
    assert bridged.request(3, "initialize", {"protocolVersion": MODERN}, modern=True)["error"]["code"] == -32601


VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", MODERN, "1999-01-01")


@pytest.mark.parametrize("version", VERSIONS)
def test_an_old_client_is_answered_in_its_own_version(bridged: Bridged, version: str) -> None:
    """Or in one that is spoken. One client family rejects any member in the answer to a ping."""
    result = bridged.initialize(version)["result"]
    assert result["protocolVersion"] == ("2025-11-25" if version == "1999-01-01" else version)
    assert result["serverInfo"]["name"] == "mcpboard"
    assert result["capabilities"] == {"tools": {}}
    assert len(bridged.request(1, "tools/list")["result"]["tools"]) > 10
    assert not bridged.call(2, "touch_gesture", **TAP)["result"].get("isError", False)
    assert bridged.request(7, "ping") == {"jsonrpc": "2.0", "id": 7, "result": {}}


def test_an_old_client_may_skip_the_handshake(bridged: Bridged) -> None:
    assert bridged.request("x", "tools/list")["result"]["tools"]


# --- messages ------------------------------------------------------------------------------------


@pytest.mark.parametrize("modern", [False, True], ids=["an old client", "a modern client"])
def test_characters_beyond_ascii_pass_both_ways_under_a_c_locale(bridged: Bridged, board: Board, modern: bool) -> None:
    echoed = bridged.call("編號", "enter_text", text="漢字 🎉", focus={"x": 500, "y": 300}, modern=modern)
    assert "result" in echoed
    name, given = board.simulator.calls[-1]
    assert (name, given["text"]) == ("enter_text", "漢字 🎉")


@pytest.mark.parametrize(("line", "number", "code"), [
    pytest.param(b"no json", None, -32700, id="no JSON"),
    pytest.param(b'{"id":1,"\xff"', None, -32700, id="no UTF-8"),
    pytest.param(b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', None, -32600, id="a batch"),
    pytest.param(b'{"id":5,"method":"ping"}', 5, -32600, id="no JSON-RPC version"),
    pytest.param(b'{"jsonrpc":"2.0","method":"tools/call"}', None, -32600, id="a call without id"),
    pytest.param(b" " * (1 << 20) + b'{"jsonrpc":"2.0"}', None, -32600, id="over the limit of a line"),
    pytest.param(b'{"jsonrpc":"2.0","id":6,"method":"initialize","params":{}}', 6, -32602, id="a handshake without version"),
    pytest.param(b'{"jsonrpc":"2.0","id":8,"method":"w\xc3\xb6rk"}', 8, -32601, id="a method beyond ASCII"),
    pytest.param(b'{"jsonrpc":"2.0","id":9,"method":"no/such"}', 9, -32601, id="an unknown method"),
    pytest.param(b'{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":7}}', 4, -32602, id="a name that is none"),
    pytest.param(b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"x","arguments":{"x":1e999}}}', 3, -32602, id="a number that is not finite"),
])  # fmt: skip
def test_a_bad_line_is_answered_and_the_next_one_works(
    bridged: Bridged, line: bytes, number: int | None, code: int
) -> None:
    bridged.write(line)
    assert bridged.response(number)["error"]["code"] == code
    assert bridged.request("next", "ping")["result"] == {}


@pytest.mark.parametrize("line", [
    pytest.param(b'{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}', id="a notification"),
    pytest.param(b'{"jsonrpc":"2.0","id":1,"result":{}}', id="an answer that nobody asked for"),
    pytest.param(b"   ", id="a blank line"),
    pytest.param(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}', id="no id"),
    pytest.param(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}', id="nothing to cancel"),
])  # fmt: skip
def test_what_wants_no_answer_gets_none(bridged: Bridged, line: bytes) -> None:
    bridged.write(line)
    assert bridged.request("next", "ping")["result"] == {}
    assert len(bridged.lines) == 1


# --- concurrency and cancellation ----------------------------------------------------------------


def test_a_slow_call_does_not_hold_up_the_rest(bridged: Bridged, board: Board) -> None:
    with board.simulator.hold("screenshot"):
        bridged.send(1, "tools/call", {"name": "screenshot", "arguments": {}})
        board.simulator.wait_for_call("screenshot", _calls(board, "screenshot") + 1)
        assert bridged.request(2, "ping")["result"] == {}
        assert bridged.request(3, "tools/list")["result"]["tools"]
    assert "result" in bridged.response(1)


def _calls(board: Board, tool: str) -> int:
    return sum(name == tool for name, _ in board.simulator.finished)


def test_an_id_in_use_is_refused(bridged: Bridged, board: Board) -> None:
    with board.simulator.hold("screenshot"):
        bridged.send(1, "tools/call", {"name": "screenshot", "arguments": {}})
        assert "under way" in bridged.request(1, "tools/list")["error"]["message"]
    assert "result" in bridged.response(1)


def test_too_many_calls_are_turned_away_and_the_rest_is_not() -> None:
    with bridge(f"http://127.0.0.1:{free_port()}/mcp", "--wait", "2") as bridged:
        for number in range(9):  # eight of them wait for the board
            bridged.send(number, "tools/call", {"name": "screenshot", "arguments": {}}, modern=True)
        assert "too many" in bridged.response(8)["error"]["message"]
        bridged.send("p", "ping")
        assert "nothing listens there" in bridged.response("p")["error"]["message"]


def test_a_cancelled_call_is_not_answered(bridged: Bridged, board: Board) -> None:
    with board.simulator.hold("screenshot"):
        bridged.send(1, "tools/call", {"name": "screenshot", "arguments": {}})
        board.simulator.wait_for_call("screenshot", _calls(board, "screenshot") + 1)
        bridged.notify("notifications/cancelled", requestId=1)
        assert bridged.request(2, "ping")["result"] == {}
    board.simulator.wait_for_finish("screenshot", _calls(board, "screenshot"))
    assert bridged.end() == 0
    assert [json.loads(line)["id"] for line in bridged.lines] == [2]


# --- bundles -------------------------------------------------------------------------------------


def test_a_bundle_of_sixteen_mebibytes_passes_in_one_line_and_flat_memory(bridged: Bridged, board: Board) -> None:
    bridged.request(0, "ping")
    before = _peak_kib(bridged)
    board.simulator.faults.set("bundle", "support_bundle", times=1, bytes=BUNDLE_BYTES)
    resource = bridged.call(1, "support_bundle")["result"]["content"][-1]["resource"]
    assert len(base64.b64decode(resource["blob"], validate=True)) == BUNDLE_BYTES
    assert _peak_kib(bridged) - before < FLAT_KIB


def _peak_kib(bridged: Bridged) -> int:
    """The most memory that the bridge ever held, as the kernel counts it."""
    status = Path(f"/proc/{bridged.child.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def test_a_client_that_takes_short_lines_alone_is_told_of_a_longer_one(board: Board) -> None:
    """Such a client ends the connection at 10 MiB, and with it every other call."""
    with bridge(board.url, "--longest-line", str(10 << 20)) as bridged:
        board.simulator.faults.set("bundle", "support_bundle", times=1, bytes=BUNDLE_BYTES)
        error = bridged.call(1, "support_bundle")["error"]
        assert error["data"] == {"delivery": "done"}
        assert "--longest-line" in error["message"]
        assert "result" in bridged.call(2, "support_bundle")


def test_a_bundle_that_breaks_off_is_an_error_and_no_half_a_line(bridged: Bridged, board: Board) -> None:
    board.simulator.faults.set("bundle", "support_bundle", times=1, bytes=BUNDLE_BYTES, dies_after=BUNDLE_BYTES // 2)
    error = bridged.call(1, "support_bundle")["error"]
    assert "broke off" in error["message"]


# --- boards that come and go ---------------------------------------------------------------------


@pytest.fixture
def restartable(tmp_path: Path) -> Iterator[tuple[RestartableBoard, Simulator]]:
    with Simulator() as simulator:
        board = RestartableBoard(tmp_path, simulator)
        try:
            yield board, simulator
        finally:
            board.kill()


@pytest.mark.parametrize("modern", [False, True], ids=["an old client", "a modern client"])
def test_a_board_killed_and_started_between_two_calls_is_not_noticed(
    restartable: tuple[RestartableBoard, Simulator], modern: bool
) -> None:
    board, simulator = restartable
    board.start()
    with bridge(board.url) as bridged:
        if not modern:
            bridged.initialize("2025-06-18")
        assert "result" in bridged.call(1, "touch_gesture", **TAP, modern=modern)
        board.kill()
        board.start()
        assert "result" in bridged.call(2, "touch_gesture", **TAP, modern=modern)
    assert [name for name, _ in simulator.calls] == ["touch_gesture", "touch_gesture"]
    assert bridged.stderr == b""


@pytest.mark.parametrize("modern", [False, True], ids=["an old client", "a modern client"])
def test_a_board_killed_during_a_tap_is_an_error_and_one_tap(
    restartable: tuple[RestartableBoard, Simulator], modern: bool
) -> None:
    board, simulator = restartable
    board.start()
    with bridge(board.url) as bridged, simulator.hold("touch_gesture"):
        bridged.send(1, "tools/call", {"name": "touch_gesture", "arguments": TAP}, modern=modern)
        simulator.wait_for_call("touch_gesture")
        board.kill()
        error = bridged.response(1)["error"]
        assert error["data"] == {"delivery": "unknown"}
        assert "look before repeating it" in error["message"]
        board.start()
        assert "result" in bridged.request(2, "tools/list", modern=modern)
    assert [name for name, _ in simulator.calls] == ["touch_gesture"]


def test_a_call_waits_for_a_board_that_boots_and_is_made_once(restartable: tuple[RestartableBoard, Simulator]) -> None:
    board, simulator = restartable
    with bridge(board.url) as bridged:
        bridged.send("i", "initialize", {"protocolVersion": "2025-11-25"})
        bridged.send(1, "tools/call", {"name": "touch_gesture", "arguments": TAP}, modern=True)
        bridged.wait_for_log(b"waiting up to 45 s")
        board.start()
        assert "result" in bridged.response("i")
        assert "result" in bridged.response(1)
        bridged.wait_for_log(b"the server is there")
    assert [name for name, _ in simulator.calls] == ["touch_gesture"]


def test_the_wait_for_a_board_is_bounded() -> None:
    with bridge(f"http://127.0.0.1:{free_port()}/mcp", "--wait", "0.2") as bridged:
        error = bridged.call(1, "touch_gesture", **TAP)["error"]
        assert error["code"] == -32603
        assert error["data"] == {"delivery": "not_sent"}
        assert "nothing listens there" in error["message"]


def test_a_call_that_waits_can_be_cancelled() -> None:
    with bridge(f"http://127.0.0.1:{free_port()}/mcp") as bridged:
        bridged.send(1, "tools/call", {"name": "touch_gesture", "arguments": TAP}, modern=True)
        bridged.wait_for_log(b"waiting up to")
        bridged.notify("notifications/cancelled", requestId=1)
        assert bridged.end() == 0
    assert bridged.lines == []


# --- the end -------------------------------------------------------------------------------------


def test_what_is_under_way_when_the_input_ends_is_finished(bridged: Bridged) -> None:
    bridged.send(1, "tools/call", {"name": "screenshot", "arguments": {}})
    assert bridged.end() == 0
    assert "result" in bridged.response(1)


def test_a_client_that_reads_no_more_ends_it(board: Board) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    try:
        done = run(*MCPBOARD, "bridge", board.url, input=ping, stdout=writing, env=ENVIRONMENT)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize(("words", "told"), [
    pytest.param(["--header", "no-colon"], "--header", id="a header without a colon"),
    pytest.param(["--header", "Host: x"], "Host", id="a header that is ours to set"),
    pytest.param(["--longest-line", "99"], "--longest-line", id="a limit that lets no picture through"),
    pytest.param(["--wait", "nan"], "--wait", id="a wait that is no number"),
    pytest.param(["--token-file", "/nowhere/token"], "--token-file", id="a token file that is not there"),
])  # fmt: skip
def test_wrong_usage_is_one_line_on_standard_error(words: list[str], told: str) -> None:
    done = run(*MCPBOARD, "bridge", "http://127.0.0.1:9/mcp", *words, env=ENVIRONMENT)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert told in done.stderr
