"""A part of `make soak`: is every action executed at most once, and is its caller told the truth?

Ends processes and cuts connections at every moment of a call, and compares what each caller was told with what the
simulated Agent wrote down. Exit code 1 for anything doubled, false or left untold. SECONDS scales the numbers, which
are those of NUMBERS for 600; SEED is of the random delays.
"""

from __future__ import annotations

import itertools
import os
import random
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from tests.bench import numbered, parts
from tests.bench.cutter import Connection, Cutter, Plan, Way
from tests.bench.numbered import Executed
from tests.bench.parts import DONE, NOT_SENT, NOTHING, OK, UNKNOWN, UNSAID, Part, Stand, Told

SECONDS = 600.0  # for which the numbers below are
KILLED = {"board": 50, "Agent": 30, "bridge": 30, "relay": 20, "host": 20}
TERMINATED = dict.fromkeys(KILLED, 12)
# Connections to the board, by who is cut off from it; a fifth of each only stalls for a while.
CUT = {"bridge": 375, "host": 375, "relay": 50, "board": 50}
CUT_BEFORE = {"relay": 50, "host": 50}  # connections of callers, by the server that they are to
LEFT = {"board": 30, "relay": 30, "host": 30}  # callers that leave while the action is under way, by whom they called
FOREIGN = {"bridge": 60, "host": 60, "relay": 30}  # answers of something in between that is not the board

DELAY_S = 0.25  # from before a call to a while after it
NEXT_S = 15.0  # until the next action must succeed
TOLD_S = 3.0  # until what nobody was told must have been
SURE_S = 1.0  # after which the board must be sure that a reply did not arrive; it takes half of it
PAUSE_S = 0.25
SHOWN = 25  # trials with something wrong that are printed
EARLIER = re.compile(r"The earlier (\w+) (was answered)?")  # the latter by a relay, which knows no more

THROUGH = "stall, answer"
# How a connection is cut, by name.
CUTS: Mapping[str, Callable[[Way, Connection], bool]] = {
    "RST": lambda way, connection: connection.reset(),
    "FIN": lambda way, connection: connection.finish(),
    "half-close": lambda way, connection: connection.half_close(way),
    "stall, RST": lambda way, connection: connection.stall(Connection.reset),
    THROUGH: lambda way, connection: connection.stall(None),
}
# Where: of the request, of the first bytes of the reply, of all the reply.
ZONES = ((Way.REQUEST, False), (Way.REPLY, True), (Way.REPLY, False))

BODIES = (b"", b"<html><body>later</body></html>", b'{"error": "later"}')
STATUSES = ("202 Accepted", "204 No Content", "409 Conflict", "500 Oops", "502 Bad Gateway", "503 Unavailable")


def _odd(status: str, body: bytes) -> bytes:
    kind = "text/html" if body.startswith(b"<") else "application/json"
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body


INTERIM: Mapping[str, Callable[[Connection], bool]] = {
    "103, answer": lambda connection: connection.interim(None, 1),
    "103 thrice, answer": lambda connection: connection.interim(None, 3),
    "103, RST": lambda connection: connection.interim(Connection.reset, 1),
    "103, FIN": lambda connection: connection.interim(Connection.finish, 1),
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
    number_of_signal: int = 0
    delay: float | None = None  # s after which the victim is ended, instead of a plan
    leaves: bool = False  # its caller, when the plan strikes
    answered: bool = False  # the answer comes through, so it must be OK
    number: int = 0
    told: Told = field(default_factory=lambda: Told(NOTHING))
    later: int = 0  # outcomes of earlier actions that the next ones told
    settled: bool = True  # the board died, or could know that its reply arrived, or never had the request
    ended: float = 0.0  # when, on the monotonic clock
    next: str = ""  # who acted next

    def __str__(self) -> str:
        where = f"after {self.delay:.3f} s" if self.delay is not None else f"{self.proxy} {self.way.value}"
        share = f" {self.share:.3f}{' of the head' if self.head else ''}"
        return f"{self.kind}, call {self.number} by {self.chain}, {where}{share}: {self.told.how} {self.told.text[:160]!r}; next by {self.next}"


# --- the trials --------------------------------------------------------------------------------


def trials(scale: float, chance: random.Random) -> list[Trial]:
    """All trials, in an order that only `chance` knows."""
    made = [*endings("kill -9", signal.SIGKILL, scaled(KILLED, scale), chance)]
    made += endings("SIGTERM", signal.SIGTERM, scaled(TERMINATED, scale), chance)
    for chain, count in scaled(CUT, scale).items():
        made += cuts(chain, count)
    for server, count in scaled(CUT_BEFORE, scale).items():
        made += cuts(server, count, "door")
    for chain, count in scaled(LEFT, scale).items():
        made += leaving(chain, count)
    for chain, count in scaled(FOREIGN, scale).items():
        made += itertools.islice(foreign(chain, chance), count)
    chance.shuffle(made)
    return made


def scaled(counts: Mapping[str, int], scale: float) -> dict[str, int]:
    return {name: max(1, round(count * scale)) for name, count in counts.items()}


def endings(kind: str, number: int, counts: Mapping[str, int], chance: random.Random) -> Iterator[Trial]:
    """Of each part so many, a quarter each: at any time, within the request, behind the board, within the reply."""
    for victim, count in counts.items():
        for index in range(count):
            chain = (
                victim if victim in ("bridge", "relay", "host") else chance.choice(("board", "bridge", "relay", "host"))
            )
            on_the_way = ["front"] if chain in ("board", "bridge") else ["front", "door"]
            trial = Trial(f"{kind} {victim}", chain, victim=victim, number_of_signal=number, share=chance.random())
            trial.head = chance.random() < 0.5
            if index % 4 == 0:
                trial.delay = chance.uniform(0, DELAY_S)
            elif index % 4 == 1:
                trial.proxy, trial.way, trial.head = chance.choice(on_the_way), Way.REQUEST, False
            elif index % 4 == 2:
                trial.proxy, trial.way = "back", chance.choice(list(Way))
            else:
                trial.proxy, trial.way = chance.choice(on_the_way), Way.REPLY
            yield trial


def cuts(chain: str, count: int, proxy: str = "front") -> Iterator[Trial]:
    """Every kind of cut in every zone, spread evenly over the bytes of each; with "door" before the chain's server."""
    for index in range(count):
        name = list(CUTS)[index % len(CUTS)]
        way, head = ZONES[index // len(CUTS) % len(ZONES)]
        kind = f"cut {chain} -> board: {name}" if proxy == "front" else f"cut caller -> {chain}: {name}"
        trial = Trial(kind, chain, proxy, way, (index + 0.5) / count, head, partial(CUTS[name], way))
        trial.answered = name.endswith("answer")
        yield trial


def leaving(chain: str, count: int) -> Iterator[Trial]:
    """From before the Agent has the request until the board has the reply."""
    for index in range(count):
        yield Trial(f"caller leaves: {chain}", chain, "back", list(Way)[index % 2], (index + 0.5) / count, leaves=True)


def foreign(chain: str, chance: random.Random) -> Iterator[Trial]:
    for index in itertools.count():
        if index % 2:
            status, body = STATUSES[index // 2 % len(STATUSES)], chance.choice(BODIES)
            answer = _odd(status, b"" if status.startswith("204") else body)
            strike = partial(Connection.replace, answer=answer)
            yield Trial(f"{chain}: {status[:3]} for the answer", chain, "front", Way.REPLY, 0, strike=strike)
        else:
            name = list(INTERIM)[index // 2 % len(INTERIM)]
            trial = Trial(f"{chain}: {name}", chain, "front", Way.REQUEST, 1, strike=INTERIM[name])
            trial.answered = name.endswith("answer")
            yield trial


# --- one after the other -----------------------------------------------------------------------


class Run:
    """The trials on one stand, and what was found."""

    def __init__(self, stand: Stand, chance: random.Random) -> None:
        self._stand, self._chance = stand, chance
        self._numbers = itertools.count(1)
        self._waiting: list[Trial] = []  # whose outcome the board may still have to tell, oldest first
        self._pool = ThreadPoolExecutor(1)
        self.over: list[Trial] = []
        self.wrong: list[str] = []  # beyond what the comparison in the end shows

    def all(self, planned: Sequence[Trial]) -> None:
        with self._pool:
            for trial in planned:
                self._one(trial)
                self._next(trial)

    def _one(self, trial: Trial) -> None:
        """Make one call while that happens to it, and have every part running again."""
        stand = self._stand
        trial.number = next(self._numbers)
        victim = None if trial.victim is None else stand.parts[trial.victim]
        end = None if victim is None else partial(victim.end, trial.number_of_signal)
        proxy, wanted = self._place(trial)
        if trial.delay is None:
            strike = trial.strike or (lambda connection: bool(end and end()))
            if trial.leaves:
                strike = partial(_leave, stand.doors.get(trial.chain, stand.front))
            proxy.arm(Plan(wanted, trial.way, trial.share, strike, trial.head))
        future = self._pool.submit(stand.callers[trial.chain].call, trial.number)
        if victim is not None and end is not None:
            if trial.delay is not None:
                time.sleep(trial.delay)
            else:
                _either(victim, future)
            end()
            if trial.victim != "bridge":  # whose last words are read first
                victim.again()
        trial.told = future.result()
        if trial.victim == "bridge" and victim is not None:
            victim.again()
        proxy.arm(None)
        self._tell(trial)
        self._settle(trial)
        self.over.append(trial)

    def _place(self, trial: Trial) -> tuple[Cutter, bytes]:
        stand, name = self._stand, self._tool(trial)
        if trial.proxy == "back":
            return stand.back, f"/api/tools/{name} ".encode()
        if trial.proxy == "front":
            return stand.front, f"mcp-name: {name}\r\n".encode()
        if trial.chain == "host":
            name = numbered.for_host(trial.number)[0]
        return stand.doors[trial.chain], f"mcp-name: {name}\r\n".encode()

    def _settle(self, trial: Trial) -> None:
        """Learn if a server may owe anybody the outcome."""
        proxies = [self._stand.front]
        if trial.chain in self._stand.doors and trial.victim != trial.chain:
            proxies.insert(0, self._stand.doors[trial.chain])
        connections = [proxy.latest for proxy in proxies]
        for proxy in self._stand.proxies:
            proxy.latest = None
        for each in connections:
            if each is not None:
                each.over.wait(NEXT_S)
        trial.ended = time.monotonic()
        if trial.victim == "board":
            self._waiting.clear()
        elif (asked := connections[-1]) is not None and asked.asked:
            trial.settled = all(each is None or each.acknowledged for each in connections)
            # Where our kernel had all of the reply, its acknowledgment may still have been late.
            if trial.told.how != OK or not trial.settled:
                self._waiting.append(trial)

    def _next(self, trial: Trial) -> None:
        """Act again until that succeeds and all is told that must be; by anybody, for a notice is for everybody."""
        # What a server in between owes, it tells its own callers.
        chain = trial.chain if trial.proxy == "door" or trial.leaves else self._chance.choice(list(self._stand.callers))
        begun = time.monotonic()
        while True:
            after = Trial("the next action", chain, number=next(self._numbers))
            asked = time.monotonic()
            after.told = self._stand.callers[chain].call(after.number)
            self._tell(after)
            self._settle(after)
            self.over.append(after)
            waited = time.monotonic() - begun
            if after.told.how == OK:
                # What was over long before this one began has been told by now, or never will be.
                self._waiting = [each for each in self._waiting if each.ended > asked - SURE_S]
                if not self._owed(trial) or waited > TOLD_S:
                    trial.next = chain
                    break
            if waited > NEXT_S:
                self.wrong.append(f"{NEXT_S:g} s without an action that succeeds, after {trial}; {after}")
                break
            time.sleep(PAUSE_S if after.told.how == OK else PAUSE_S / 5)

    def _tell(self, trial: Trial) -> None:
        """Count every earlier outcome that this one's text tells for the trial that it is of: they come oldest first."""
        told = EARLIER.findall(trial.told.text)
        # Of one action a relay and the board behind it may both not know if the answer arrived.
        for tool in [tool for tool, by_relay in told if not by_relay or (tool, "") not in told]:
            alike = [each for each in self._waiting if tool in (self._tool(each), numbered.for_host(each.number)[0])]
            if alike:
                heard = min(alike, key=lambda each: each.settled)
                self._waiting.remove(heard)
                heard.later += 1
            else:
                self.wrong.append(f"an outcome told twice, by {trial}")

    def _tool(self, trial: Trial) -> str:
        """The tool of the board that the trial called, by whatever way."""
        return numbered.for_board(trial.number)[0] if trial.chain != "host" else "touch_gesture"

    def _owed(self, trial: Trial) -> bool:
        """Tell if the next action has to tell what became of this one."""
        if trial.told.how != NOTHING or trial.settled or trial.later:
            return False
        return Executed.read(self._stand.written).begun[trial.number] > 0


def _leave(proxy: Cutter, connection: Connection) -> bool:
    if proxy.latest is not None:
        proxy.latest.leave()
    return False


def _either(victim: Part, future: Future[Told]) -> None:
    while not future.done() and not victim.ended.wait(0.005):
        pass


# --- told and executed -------------------------------------------------------------------------

COLUMNS = ("executed", OK, DONE, NOT_SENT, UNKNOWN, NOTHING, "told later", "doubled", "false ok", "false not_sent",
           "untold", "lost", UNSAID)  # fmt: skip
WRONG = COLUMNS[7:]


def marks(trial: Trial, executed: Executed) -> Iterator[str]:
    """The columns in which a trial counts."""
    begun, done, how = executed.begun[trial.number], executed.done[trial.number], trial.told.how
    yield how
    if begun:
        yield "executed"
    if trial.later:
        yield "told later"
    if begun > 1:
        yield "doubled"
    if how in (OK, DONE) and not done:
        yield "false ok"
    if how == NOT_SENT and begun:
        yield "false not_sent"
    if how == NOTHING and begun and not trial.settled and not trial.later:
        yield "untold"
    if trial.answered and how != OK:
        yield "lost"


@dataclass
class Found:
    """Every trial with what it counts as, and what is wrong besides."""

    counted: list[tuple[Trial, tuple[str, ...]]]
    wrong: list[str]

    def wrongs(self) -> list[str]:
        return [
            *(
                f"{', '.join(m for m in found if m in WRONG)}: {trial}"
                for trial, found in self.counted
                if set(found) & set(WRONG)
            ),
            *self.wrong,
        ]

    def table(self) -> str:
        lines = ["| kind | number | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 2) + "|"]
        groups: dict[str, list[tuple[str, ...]]] = {}
        for trial, found in self.counted:
            groups.setdefault(trial.kind, []).append(found)
        for kind, each in [*sorted(groups.items()), ("all", [found for _, found in self.counted])]:
            counts = (sum(column in found for found in each) for column in COLUMNS)
            lines.append(f"| {kind} | {len(each)} | " + " | ".join(map(str, counts)) + " |")
        return "\n".join(lines)

    def report(self) -> str:
        wrongs = self.wrongs()
        more = [f"and {len(wrongs) - SHOWN} more"] if len(wrongs) > SHOWN else []
        return "\n".join([self.table(), *(f"WRONG: {wrong}" for wrong in wrongs[:SHOWN]), *more])


def run(planned: Callable[[random.Random], Sequence[Trial]], seed: int = 0) -> Found:
    """Run the trials on a stand of their own and compare."""
    chance = random.Random(seed)
    with parts.standing() as stand:
        going = Run(stand, chance)
        going.all(planned(chance))
        stand.close()  # so that nothing is executed any more
        executed = Executed.read(stand.written)
        tracebacks = stand.tracebacks()
    wrong = going.wrong
    strange = set(executed.begun) - {trial.number for trial in going.over}
    if strange:
        wrong.append(f"executed, and asked for by nobody: {sorted(strange)}")
    if tracebacks:
        wrong.append(f"{tracebacks} tracebacks in the logs")
    return Found([(trial, tuple(marks(trial, executed))) for trial in going.over], wrong)


if __name__ == "__main__":
    size = float(os.environ["SECONDS"]) / SECONDS
    seed = int(os.environ.get("SEED", "0"))
    outcome = run(partial(trials, size), seed)
    print(f"seed {seed}, {size:g} of the full numbers\n\n{outcome.report()}")
    sys.exit(1 if outcome.wrongs() else 0)
