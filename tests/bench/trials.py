"""The faults of a kill test: each trial is one action and the one thing that happens to it."""

from __future__ import annotations

import itertools
import random
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from tests.bench.cutter import Connection, Way
from tests.bench.parts import NOTHING, Told
from tests.support import gohttp

CHAINS = ("board", "bridge", "relay", "host")  # who is called

# How many of each there are in a run of full size.
KILLED = {"board": 50, "Agent": 30, "bridge": 30, "relay": 20, "host": 20}
TERMINATED = dict.fromkeys(KILLED, 12)
# Connections to the board, by who is cut off from it; a fifth of each only stalls for a while.
CUT = {"bridge": 375, "host": 375, "relay": 50, "board": 50}
CUT_BEFORE = {"relay": 50, "host": 50}  # connections of callers, by the server that they are to
LEFT = {"board": 30, "relay": 30, "host": 30}  # callers that leave while the action is under way, by whom they called
FOREIGN = {"bridge": 60, "host": 60, "relay": 30}  # answers of something in between that is not the board
# Killed while every chain has a call under way, by whom.
CROWDED = {"board": 20, "Agent": 10, "bridge": 5, "relay": 5, "host": 5}

DELAY_S = 0.25  # from before a call to a while after it

# How a connection is cut, by name.
CUTS: Mapping[str, Callable[[Way, Connection], bool]] = {
    "RST": lambda way, connection: connection.reset(),
    "FIN": lambda way, connection: True,
    "half-close": lambda way, connection: connection.half_close(way),
    "stall, RST": lambda way, connection: connection.stall(Connection.reset),
    "stall, answer": lambda way, connection: connection.stall(None),
}
# Where: of the request, of the first bytes of the reply, of all the reply.
ZONES = ((Way.REQUEST, False), (Way.REPLY, True), (Way.REPLY, False))

BODIES = (b"", b"<html><body>later</body></html>", b'{"error": "later"}')
STATUSES = ("202 Accepted", "204 No Content", "409 Conflict", "500 Oops", "502 Bad Gateway", "503 Unavailable")


INTERIM: Mapping[str, Callable[[Connection], bool]] = {
    "103, answer": lambda connection: connection.interim(None, 1),
    "103 thrice, answer": lambda connection: connection.interim(None, 3),
    "103, RST": lambda connection: connection.interim(Connection.reset, 1),
    "103, FIN": lambda connection: connection.interim(lambda _: True, 1),
}


@dataclass(eq=False)
class Trial:
    """One action and what happens to it; afterwards, what became of it."""

    kind: str  # row of the table
    chain: str  # who is called
    proxy: str = "front"  # where the plan strikes: "front", "back" or "door"
    way: Way = Way.REQUEST
    share: float = 0.0
    head: bool = False
    strike: Callable[[Connection], bool] | None = None
    victim: str | None = None
    signal: int = 0
    delay: float | None = None  # s after which the victim is ended, instead of a plan
    leaves: bool = False  # its caller, when the plan strikes
    crowd: bool = False  # a caller of every other chain calls at the same time
    answered: bool = False  # the answer comes through, so it must be OK
    number: int = 0
    told: Told = field(default_factory=lambda: Told(NOTHING))
    later: int = 0  # outcomes of earlier actions that the next ones told
    settled: bool = True  # the board died, or could know that its reply arrived, or never had the request
    ended: float = 0.0  # when, on the monotonic clock
    next: str = ""  # whose caller acted next

    def __str__(self) -> str:
        where = f"after {self.delay:.3f} s" if self.delay is not None else f"{self.proxy} {self.way.value}"
        share = f" {self.share:.3f}{' of the head' if self.head else ''}"
        told = f"{self.told.how} {self.told.text[:160]!r}"
        return f"{self.kind}, call {self.number} to {self.chain}, {where}{share}: {told}; next to {self.next}"


def trials(scale: float, chance: random.Random) -> list[Trial]:
    """All trials, in an order that only `chance` knows."""

    def scaled(counts: Mapping[str, int]) -> dict[str, int]:
        return {name: max(1, round(count * scale)) for name, count in counts.items()}

    made = [
        *endings("kill -9", signal.SIGKILL, scaled(KILLED), chance),
        *endings("SIGTERM", signal.SIGTERM, scaled(TERMINATED), chance),
        *crowded(scaled(CROWDED), chance),
        *itertools.chain(*(cuts(chain, count) for chain, count in scaled(CUT).items())),
        *itertools.chain(*(cuts(server, count, "door") for server, count in scaled(CUT_BEFORE).items())),
        *itertools.chain(*(leaving(chain, count) for chain, count in scaled(LEFT).items())),
        *itertools.chain(*(foreign(chain, count, chance) for chain, count in scaled(FOREIGN).items())),
    ]
    chance.shuffle(made)
    return made


def endings(kind: str, number: int, counts: Mapping[str, int], chance: random.Random) -> Iterator[Trial]:
    """Of each part so many, a quarter each: at any time, within the request, behind the board, within the reply."""
    for victim, index in ((victim, index) for victim, count in counts.items() for index in range(count)):
        chain = victim if victim in CHAINS[1:] else chance.choice(CHAINS)
        on_the_way = chance.choice(["front"] if chain in ("board", "bridge") else ["front", "door"])
        trial = Trial(f"{kind} {victim}", chain, on_the_way, share=chance.random(), victim=victim, signal=number)
        trial.head = index % 4 != 1 and chance.random() < 0.5
        if index % 4 == 0:
            trial.delay = chance.uniform(0, DELAY_S)
        elif index % 4 == 2:
            trial.proxy, trial.way = "back", chance.choice(list(Way))
        elif index % 4 == 3:
            trial.way = Way.REPLY
        yield trial


def crowded(counts: Mapping[str, int], chance: random.Random) -> Iterator[Trial]:
    """Of each part so many, killed at any time while every chain has a call under way: one runs, the others find it busy."""
    for victim, count in counts.items():
        for _ in range(count):
            chain, delay = chance.choice(CHAINS), chance.uniform(0, DELAY_S)
            kind = f"kill -9 {victim}, four callers"
            yield Trial(kind, chain, victim=victim, signal=signal.SIGKILL, delay=delay, crowd=True)


def cuts(chain: str, count: int, proxy: str = "front") -> Iterator[Trial]:
    """Every kind of cut in every zone, spread evenly over the bytes of each; with "door" before the chain's server."""
    for index in range(count):
        name = list(CUTS)[index % len(CUTS)]
        way, head = ZONES[index // len(CUTS) % len(ZONES)]
        near, far = (chain, "board") if proxy == "front" and chain != "board" else ("caller", chain)
        kind, share, strike = f"cut {near} -> {far}: {name}", (index + 0.5) / count, partial(CUTS[name], way)
        yield Trial(kind, chain, proxy, way, share, head, strike, answered=name.endswith("answer"))


def leaving(chain: str, count: int) -> Iterator[Trial]:
    """From before the Agent has the request until the board has the reply."""
    for index in range(count):
        yield Trial(f"caller leaves: {chain}", chain, "back", list(Way)[index % 2], (index + 0.5) / count, leaves=True)


def foreign(chain: str, count: int, chance: random.Random) -> Iterator[Trial]:
    """Interim answers and other answers than the board's, in turns."""
    for index in range(count):
        if index % 2:
            status, body = STATUSES[index // 2 % len(STATUSES)], chance.choice(BODIES)
            body = b"" if status.startswith("204") else body
            kind = "text/html" if body.startswith(b"<") else "application/json"
            lines = (f"Content-Type: {kind}", f"Content-Length: {len(body)}", "Connection: close")
            strike = partial(Connection.replace, answer=gohttp.head(*lines, status=status) + body)
            yield Trial(f"{chain}: {status[:3]} for the answer", chain, "front", Way.REPLY, 0, strike=strike)
        else:
            name = list(INTERIM)[index // 2 % len(INTERIM)]
            trial = Trial(f"{chain}: {name}", chain, "front", Way.REQUEST, 1, strike=INTERIM[name])
            trial.answered = name.endswith("answer")
            yield trial
