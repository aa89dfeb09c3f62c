"""The rows of the table: each measures its servers in turns, in one run, and says what was to be reached."""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import socket
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from mcpboard.serving.server import CONNECTIONS, TOOL_CALLS
from tests.bench import crowded, host, programs, small_json, traffic
from tests.bench import targets as want
from tests.bench.counted import counting
from tests.bench.programs import Command, Program, Servers, running
from tests.bench.traffic import Caller, crowds, medians
from tests.deploy import armhf, board_image, boards
from tests.host.vision import measured
from tests.support.gohttp import Exchange, GoServer, tool_answer
from tests.support.hogs import UNFINISHED, Crowd, Hog, answered
from tests.support.http import request

ROUNDS = 1_000  # requests of each kind; medians
CROWD = 8  # connections at once
CALLS = 1_000
STARTS = 15  # cold starts of each server; medians
BUNDLES = {1: 40, 16: 9, 64: 5}  # MiB -> how many; medians, and a small one takes as long as a thread needs to wake
MIB = 1 << 20
ASK_AGAIN_S = 0.25  # seconds between two bundles asked for; the board looks at stalled readers once a second
KNOCK_S = 0.005  # seconds; quicker, and the knocks would fill the backlog and wait there
CROWDED_S = 30.0  # seconds of hostile traffic
TURNS = 3  # turns of a server's loop; one is enough
KEY = "POST /api/tools/keyboard_tap"
GIVE_UP_S = 10.0  # seconds of knocking at a port that does not close
DISCOVER = traffic.post("server/discover")

# All but two of a board's connections full of bodies that never end, and of pictures that nobody reads; what it ends
# does not come back.
STRANGERS: Mapping[Hog, int] = {
    Hog(traffic.SHOT, receive_buffer=4096, back_s=math.inf): TOOL_CALLS,
    replace(UNFINISHED, back_s=math.inf): CONNECTIONS - TOOL_CALLS - 2,
}


class Row(NamedTuple):
    """One line: what, what it came to, what it stands beside, what was to be reached, and whether it was."""

    metric: str
    measured: str
    beside: str
    target: str
    ok: bool

    def markdown(self) -> str:
        return f"| {' | '.join(self[:4])} | {'ok' if self.ok else '**over**'} |"


def ratio(metric: str, ours: float, theirs: float, limit: float, unit: str, beside: str) -> Row:
    """A row of two numbers, to be read as one over the other."""
    times = ours / theirs
    shown = f"{ours:,.0f} {unit}"
    return Row(metric, shown, f"{beside} {theirs:,.0f} {unit}", f"<= {limit:g} x; {times:.2f} x", times <= limit)


def ceiling(metric: str, found: float, limit: float, unit: str, beside: str = "", digits: int = 0) -> Row:
    return Row(metric, f"{found:,.{digits}f} {unit}", beside, f"<= {limit:,g} {unit}", found <= limit)


# --- instructions ----------------------------------------------------------------------------


# Each kind with how many of them are counted at once.
COUNTED = {
    "tools/list": (traffic.LIST, 10),
    "small tools/call": (traffic.TAP, 10),
    "screenshot 200 KB": (traffic.SHOT, 5),
}


def instructions(found: Servers) -> Iterator[Row]:
    with counting(programs.BARE) as server:
        bare = server.per_request(traffic.LIST, 30)
    with counting(programs.board(found.config)) as server:
        costs = {name: server.per_request(*sent) for name, sent in COUNTED.items()}
    for name, limit in want.INSTRUCTIONS.items():
        yield ratio(f"{name}, instructions", costs[name], bare, limit, "k", "bare waitress")


# --- times of answers ------------------------------------------------------------------------


def listing(found: Servers) -> Iterator[Row]:
    both = medians({"bare": (found.bare.port, traffic.LIST), "ours": (found.board.port, traffic.LIST)}, ROUNDS)
    yield ratio("tools/list p50, 1 connection", both["ours"], both["bare"], want.LIST_P50, "us", "bare waitress")
    many = crowds({"bare": found.bare.port, "ours": found.board.port}, traffic.LIST, CROWD, ROUNDS // 10)
    yield ratio(
        f"tools/list p50, {CROWD} connections", many["ours"], many["bare"], want.LIST_P50, "us", "bare waitress"
    )
    yield from learned(found)


def learned(found: Servers) -> Iterator[Row]:
    """Room for the tools and the instructions in the context of every client."""
    with programs.settings(found.backend.port, shell=True) as config, running(programs.board(config)) as board:
        sizes = {
            "board": traffic.learned(found.board.port),
            "board with its shell": traffic.learned(board.port),
            "host": host.sizes(),
        }
    for role, (listed, told) in sizes.items():
        yield ceiling(f"tools/list of a {role}", listed, want.LIST_BYTES, "B")
        yield ceiling(f"instructions of a {role}", told, want.INSTRUCTIONS_BYTES, "B")


def calls(found: Servers) -> Iterator[Row]:
    kinds = (
        ("small tools/call p50", traffic.SMALL, "/api/phone-bridge/status", want.SMALL_P50),
        ("screenshot 200 KB p50", traffic.SHOT, "/api/tools/screenshot", want.SHOT_P50),
    )
    for name, sent, path, limit in kinds:
        both = medians({"sdk": (found.sdk.port, sent), "ours": (found.board.port, sent)}, ROUNDS // 2)
        beside = f"Agent directly {_direct(found.backend.port, path):,.0f} us, SDK server"
        yield ratio(name, both["ours"], both["sdk"], limit, "us", beside)


def _direct(port: int, path: str) -> float:
    """Median microseconds of the backend itself, asked as we ask it: a connection for each request."""
    sent = request(b'{"input":{}}', path=path) if "tools" in path else request(method="GET", path=path)

    def once() -> float:
        begun = time.perf_counter()
        with Caller(port) as caller:
            caller.drain(sent)
        return (time.perf_counter() - begun) * 1e6

    return statistics.median(once() for _ in range(ROUNDS // 2))


# --- bundles ---------------------------------------------------------------------------------


def bundles(found: Servers) -> Iterator[Row]:
    for size, growth in zip(want.BUNDLE_SIZES, growths(found), strict=True):
        times: dict[str, list[float]] = {"ours": [], "relay": []}
        for _ in range(BUNDLES[size]):
            times["relay"].append(_bundle(found.relay.port))
            times["ours"].append(_bundle(found.board.port))
        ours, relay = (statistics.median(times[name]) for name in ("ours", "relay"))
        yield ratio(f"bundle {size} MiB, wall", ours, relay, want.BUNDLE_WALL, "ms", "raw sockets")
        yield growth


def growths(found: Servers) -> Iterator[Row]:
    """What a bundle of each size takes, whoever reads; the backend serves that size until the next row is asked for."""
    _bundle(found.board.port)  # brings in what stays
    for size in want.BUNDLE_SIZES:
        found.serve(f"/bundle/{size * MIB}")
        before = found.board.rss
        found.board.forget_peak()
        _bundle(found.board.port)
        _bundle(found.board.port, receive_buffer=4096, piece=8192)
        growth = max(0.0, found.board.peak - before)
        yield ceiling(f"bundle {size} MiB, growth, fast and slow reader", growth, want.BUNDLE_GROWTH, "MiB", digits=2)


def _bundle(port: int, receive_buffer: int | None = None, piece: int = 1 << 18) -> float:
    """Milliseconds for one bundle, which must be whole."""
    with Caller(port, receive_buffer) as caller:
        begun = time.perf_counter()
        caller.drain(traffic.BUNDLE, piece)
        return (time.perf_counter() - begun) * 1e3


# --- what it takes ---------------------------------------------------------------------------


def memory(found: Servers) -> Iterator[Row]:
    with Caller(found.bare.port) as caller:
        caller.drain(traffic.LIST)
    _work(found.sdk)
    beside = (f"bare waitress {found.bare.rss:.1f} MiB", f"SDK server {found.sdk.rss:.1f} MiB", "", "")
    for row, other in zip(resident(found), beside, strict=True):
        yield row._replace(beside=other)


def resident(found: Servers) -> Iterator[Row]:
    """The memory of one board, before its first call, after many and under strangers; and of another under a flood."""
    with running(programs.board(found.config)) as board:
        with Caller(board.port) as caller:
            caller.ask(DISCOVER)
        yield ceiling("resident, idle", board.rss, want.RSS_IDLE, "MiB", digits=1)
        _work(board)
        yield ceiling(f"resident, after {CALLS:,} calls", board.rss, want.RSS_AFTER_CALLS, "MiB", digits=1)
        with Crowd(board.port, STRANGERS):
            answered(board.port, DISCOVER)  # by now all that came before has been read
        yield ceiling("resident, peak under hostile load", board.peak, want.RSS_HOSTILE, "MiB", digits=1)
    with running(programs.board(found.config)) as board, Crowd(board.port, small_json.flood()) as flood:
        flood.wait_for(small_json.FLOODED, traffic.LIMIT_S)
        yield ceiling("resident, peak under small JSON", board.peak, want.RSS_FLOODED, "MiB", digits=1)


def _work(server: Program) -> None:
    with Caller(server.port) as caller:
        for number in range(CALLS):
            caller.ask(traffic.SHOT if number % 4 == 0 else traffic.SMALL)


def size(_: Servers) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder)
        boards.install_ours(site)
        boards.install_dependencies(site)
        boards.leave_bytecode_alone(site)
        shown = f"{boards.installed_bytes(site) / 1e6:.2f} MB"
    yield Row("installed here, bytecode, with dependencies", shown, "", "none", True)


def emulated_board(_: Servers) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        site, scratch = Path(folder, "site"), Path(folder, "scratch")
        scratch.mkdir()
        armhf.install(site)
        installed = boards.installed_bytes(site) / 1e6
        metric, limit = "installed on 32-bit ARM, bytecode, with dependencies", want.INSTALLED_BYTES / 1e6
        yield ceiling(metric, installed, limit, "MB", digits=2)
        figures = dict(board_image.booted(scratch))
    for name, limit in board_image.LIMITS_KB.items():
        facts = figures[name]
        beside = f"proportional {facts['pss']:,} kB, asked for /health every second"
        yield ceiling(f"resident on an emulated board, {name}", facts["rss"], limit, "kB", beside)


def cold_start(found: Servers) -> Iterator[Row]:
    times: dict[str, list[float]] = {"ours": [], "bare": []}
    for _ in range(STARTS):
        times["bare"].append(_first_answer(programs.BARE, traffic.LIST))
        times["ours"].append(_first_answer(programs.board(found.config), DISCOVER))
    ours, bare = (statistics.median(times[name]) for name in ("ours", "bare"))
    yield ratio("cold start to first answer", ours, bare, want.COLD_START, "ms", "bare waitress")


def _first_answer(command: Command, sent: bytes) -> float:
    begun = time.perf_counter()
    with running(command) as program, Caller(program.port) as caller:
        caller.drain(sent)
        return (time.perf_counter() - begun) * 1e3


# --- what it gives back ----------------------------------------------------------------------


def departed(_: Servers) -> Iterator[Row]:
    """Of two taps on one connection that is closed while the first is under way, the second must not be made."""
    release = threading.Event()

    def hold(went: Exchange) -> None:
        release.wait(traffic.LIMIT_S)
        went.reply(tool_answer("ok"))

    with GoServer(hold) as agent, programs.settings(agent.port) as config, running(programs.board(config)) as board:
        with Caller(board.port) as leaver:
            leaver.sock.sendall(traffic.TAP * 2)
            agent.wait_for(1)
        with Caller(board.port) as caller:
            for _turn in range(TURNS):  # for each the server's loop turns, and sees who has left
                caller.ask(DISCOVER)
            release.set()
            over = time.monotonic() + traffic.LIMIT_S
            while KEY not in agent.paths() and time.monotonic() < over:  # is refused as long as a tap is under way
                caller.ask(traffic.KEY)
        queued = len(agent.paths()) - 2
    yield Row("queued call of a client that left", f"made {queued} x", "", "never made", queued == 0)


def stalled(found: Servers) -> Iterator[Row]:
    """A bundle that nobody reads keeps its lane of one: it is back when the next caller gets in."""
    found.serve(f"/bundle/{16 * MIB}")
    with Caller(found.board.port, receive_buffer=4096) as reader:
        reader.sock.sendall(traffic.BUNDLE)
        reader.sock.recv(1)
        begun = time.monotonic()
        told = threading.Event()  # never: a lane that is free again tells nobody outside
        while not _served(found.board.port) and time.monotonic() - begun < 2 * want.STALLED_S:
            told.wait(ASK_AGAIN_S)
        yield ceiling("stalled reader, until its lane is back", time.monotonic() - begun, want.STALLED_S, "s", digits=1)


def _served(port: int) -> bool:
    with Caller(port) as caller:
        return caller.drain(traffic.BUNDLE) > MIB


def sigterm(found: Servers) -> Iterator[Row]:
    """Six answers are owed, a bundle among them; newcomers knock until they are refused."""
    with running(programs.board(found.config)) as board, contextlib.ExitStack() as stack:
        owed = [stack.enter_context(Caller(board.port)) for _ in range(2)]
        for caller, sent in zip(owed, (traffic.BUNDLE, traffic.SHOT), strict=True):
            caller.sock.sendall(sent)
        owed[0].sock.recv(1)
        os.kill(board.process.pid, signal.SIGTERM)
        refused = _refused_after(board.port)
        whole = sum(_ends_whole(caller) for caller in owed)
        code = board.process.wait(10)
    yield ceiling("SIGTERM, until newcomers are refused", refused, want.REFUSED_S, "s", f"exit code {code}", 3)
    yield Row("SIGTERM, owed answers handed over", f"{whole} of {len(owed)}", "", "all", whole == len(owed))


def _refused_after(port: int) -> float:
    """Seconds until a knock is refused; each waits a moment at the door, in case it is shut in its face."""
    begun = time.monotonic()
    with contextlib.suppress(OSError):
        while time.monotonic() - begun < GIVE_UP_S:
            with socket.create_connection(("127.0.0.1", port), 1) as knock:
                select.select([knock], [], [], KNOCK_S)
    return time.monotonic() - begun


def _ends_whole(caller: Caller) -> bool:
    """Tell if the rest of the answer ends as JSON does."""
    with contextlib.suppress(OSError):
        return caller.file.read().endswith(b"}}")
    return False


def crowds_of_strangers(_: Servers) -> Iterator[Row]:
    found = crowded.run(CROWDED_S)
    beside = found.wrong or f"{found.ended:,} connections ended"
    yield ceiling(
        "hostile traffic of all sorts, worst honest answer", found.honest.worst_s, want.HONEST_S, "s", beside, 2
    )
    yield ceiling("hostile traffic of all sorts, resident", found.peak, want.RSS_CROWDED, "MiB", found.group, 1)


def console(_: Servers) -> Iterator[Row]:
    yield Row(*host.watched())


def vision(_: Servers) -> Iterator[Row]:
    yield from (Row(*row) for row in measured.rows())


ROWS: Mapping[str, Callable[[Servers], Iterator[Row]]] = {
    "instructions": instructions,
    "list": listing,
    "calls": calls,
    "bundles": bundles,
    "memory": memory,
    "size": size,
    "board": emulated_board,
    "start": cold_start,
    "departed": departed,
    "stalled": stalled,
    "sigterm": sigterm,
    "crowded": crowds_of_strangers,
    "console": console,
    "vision": vision,
}
