"""A part of `make soak`: is every action executed at most once, and is its caller told the truth?

Ends processes and cuts connections at every moment of a call, and compares what each caller was told with what the
simulated Agent wrote down. Exit code 1 for anything doubled, false or left untold. SECONDS scales the numbers of
`trials`, which are for 600; SEED is of the delays and of the order.
"""

from __future__ import annotations

import itertools
import os
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.bench import numbered, parts, trials
from tests.bench.cutter import Connection, Cutter, Plan
from tests.bench.numbered import Executed
from tests.bench.parts import DONE, NOT_SENT, NOTHING, OK, UNKNOWN, UNSAID, Stand
from tests.bench.trials import CHAINS, Trial

SECONDS = 600.0  # for which the full numbers are
NEXT_S = 15.0  # until the next action must succeed
TOLD_S = 3.0  # until what nobody was told must have been
NEAR_S = 2.0  # that an action's end may be from its caller's
SURE_S = 1.0  # after which the board must be sure that a reply did not arrive; it takes half of it
PAUSE_S = 0.25
SHOWN = 25  # things wrong that are printed
# Tool, the words of a relay that knows no more, and seconds.
EARLIER = re.compile(r"The earlier (\w+) (was answered|got no answer)?.*?(\d+) s ago")


# --- one after the other -----------------------------------------------------------------------


class Run:
    """The trials on one stand, and what was found."""

    def __init__(self, stand: Stand, chance: random.Random) -> None:
        self._stand, self._chance = stand, chance
        self._numbers = itertools.count(1)
        self._waiting: list[Trial] = []  # whose outcome the board may still have to tell, oldest first
        self._pool = stand.enter_context(ThreadPoolExecutor(len(CHAINS)))
        self.over: list[Trial] = []
        self.wrong: list[str] = []  # beyond what the comparison in the end shows

    def one(self, trial: Trial) -> None:
        """Make one call while that happens to it, have every part running again, and act until all is told."""
        stand = self._stand
        trial.number = next(self._numbers)
        victim = None if trial.victim is None else stand.parts[trial.victim]
        end = None if victim is None else partial(victim.end, trial.signal, victim.process)
        proxy, wanted = self._place(trial)
        if trial.delay is None:
            strike = trial.strike or (lambda connection: bool(end and end()))
            if trial.leaves:
                strike = partial(_leave, stand.doors.get(trial.chain, stand.front))
            proxy.arm(Plan(wanted, trial.way, trial.share, strike, trial.head))
        future = self._pool.submit(self._call, trial)
        others = [chain for chain in CHAINS if trial.crowd and chain != trial.chain]
        crowd = [Trial(trial.kind, chain, delay=trial.delay, number=next(self._numbers)) for chain in others]
        calls = [future, *(self._pool.submit(self._call, each) for each in crowd)]
        if victim is not None and end is not None:
            if trial.delay is not None:
                time.sleep(trial.delay)
            while trial.delay is None and not future.done() and not victim.ended.wait(0.005):
                pass
            end()
            if trial.victim == "bridge":  # whose last words are read first
                wait(calls)
            victim.again()
        for each in calls:
            each.result()
        proxy.arm(None)
        self.over += [*crowd, trial]
        if crowd:
            self._forget()
        else:
            self._tell(trial)
            self._settle(trial)
        self._next(trial)

    def _call(self, trial: Trial) -> None:
        trial.told = self._stand.callers[trial.chain].call(trial.number)
        trial.ended = time.monotonic()

    def _forget(self) -> None:
        """Have everything told that any of several callers is owed: which notice is whose, nobody could say."""
        time.sleep(SURE_S)
        for chain in CHAINS:
            last = Trial("the next action", chain, number=next(self._numbers))
            self._call(last)
            self.over.append(last)
        for proxy in self._stand.proxies:
            proxy.latest = None
        self._waiting.clear()

    def _place(self, trial: Trial) -> tuple[Cutter, bytes]:
        """Return the proxy where the trial's plan strikes, and the words by which it knows the request."""
        stand, names = self._stand, self._tools(trial)
        if trial.proxy == "back":
            return stand.back, f"/api/tools/{names[0]} ".encode()
        if trial.proxy == "front":
            return stand.front, f"mcp-name: {names[0]}\r\n".encode()
        return stand.doors[trial.chain], f"mcp-name: {names[-1]}\r\n".encode()

    def _settle(self, trial: Trial) -> None:
        """Learn if a server may owe anybody the outcome."""
        door = self._stand.doors.get(trial.chain) if trial.victim != trial.chain else None
        latest = [proxy.latest for proxy in (door, self._stand.front) if proxy is not None]
        for proxy in self._stand.proxies:
            proxy.latest = None
        for each in latest:
            if each is not None:
                each.over.wait(NEXT_S)
        if trial.victim == "board":
            self._waiting.clear()
        elif (asked := latest[-1]) is not None and asked.asked:
            trial.settled = all(each is None or each.acknowledged for each in latest)
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
            self._call(after)
            self._tell(after)
            self._settle(after)
            self.over.append(after)
            waited = time.monotonic() - begun
            if after.told.how == OK and (not self._owed(trial) or waited > TOLD_S):
                trial.next = chain
                break
            if waited > NEXT_S:
                self.wrong.append(f"{NEXT_S:g} s without an action that succeeds, after {trial}; {after}")
                break
            time.sleep(PAUSE_S if after.told.how == OK else PAUSE_S / 5)

    def _tell(self, trial: Trial) -> None:
        """Count every earlier outcome that this one's text tells for the trial that it is of, by tool and time."""
        now, begun = time.monotonic(), Executed.read(self._stand.written).begun
        for tool, by_relay, seconds in EARLIER.findall(trial.told.text):

            def unlikely(each: Trial, ago: float = float(seconds)) -> tuple[bool, bool, bool, float]:
                return each.later > 0, not begun[each.number], each.settled, abs(now - each.ended - ago)

            alike = [each for each in self._waiting if tool in self._tools(each)]
            alike = sorted((each for each in alike if unlikely(each)[-1] < NEAR_S), key=unlikely)
            if by_relay:
                # It cannot know if the board behind it will tell as well, which it then may.
                for each in [each for each in alike if each.chain == "relay"][:1]:
                    each.later += 1
            elif alike:
                alike[0].later += 1
                self._waiting.remove(alike[0])
            else:
                self.wrong.append(f"an outcome told twice, by {trial}")

    def _tools(self, trial: Trial) -> tuple[str, ...]:
        """The tool of the board that the trial called, by whatever way; behind it the host's own."""
        if trial.chain == "host":
            return "touch_gesture", numbered.for_host(trial.number)[0]
        return (numbered.for_board(trial.number)[0],)

    def _owed(self, trial: Trial) -> bool:
        """Tell if the next action has to tell what became of this one."""
        if trial.told.how != NOTHING or trial.settled or trial.later:
            return False
        return Executed.read(self._stand.written).begun[trial.number] > 0


def _leave(proxy: Cutter, connection: Connection) -> bool:
    called = proxy.latest
    if called is not None:
        called.leave()
        called.over.wait(NEXT_S)  # before the action goes on, so that no answer meets it
    return False


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
        told = ((trial, [mark for mark in found if mark in WRONG]) for trial, found in self.counted)
        return [*self.wrong, *(f"{', '.join(found)}: {trial}" for trial, found in told if found)]

    def report(self) -> str:
        lines = ["| kind | number | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 2) + "|"]
        for kind in [*sorted({trial.kind for trial, _ in self.counted}), "all"]:
            each = [found for trial, found in self.counted if kind in (trial.kind, "all")]
            counts = (sum(column in found for found in each) for column in COLUMNS)
            lines.append(f"| {kind} | {len(each)} | " + " | ".join(map(str, counts)) + " |")
        wrongs = self.wrongs()
        more = [f"and {len(wrongs) - SHOWN} more"] if len(wrongs) > SHOWN else []
        return "\n".join([*lines, *(f"WRONG: {wrong}" for wrong in wrongs[:SHOWN]), *more])


def run(planned: Callable[[random.Random], Sequence[Trial]], seed: int = 0) -> Found:
    """Run the trials on a stand of their own and compare."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, Stand(Path(folder)) as stand:
        stand.start()
        going = Run(stand, chance)
        for trial in planned(chance):
            going.one(trial)
        stand.stop()
        executed = Executed.read(stand.written)
        tracebacks = stand.log.read_bytes().count(b"Traceback")
    late = [part for part in stand.parts.values() if part.overdue]
    wrong = [*going.wrong]
    wrong += [f"{part.name} did not exit within {parts.EXIT_S:g} s of SIGTERM: {part.overdue}" for part in late]
    if strange := set(executed.begun) - {trial.number for trial in going.over}:
        wrong.append(f"executed, and asked for by nobody: {sorted(strange)}")
    if tracebacks:
        wrong.append(f"{tracebacks} tracebacks in the logs")
    return Found([(trial, tuple(marks(trial, executed))) for trial in going.over], wrong)


if __name__ == "__main__":
    size = float(os.environ["SECONDS"]) / SECONDS
    seed = int(os.environ.get("SEED", "0"))
    outcome = run(partial(trials.trials, size), seed)
    print(f"seed {seed}, {size:g} of the full numbers\n\n{outcome.report()}")
    sys.exit(1 if outcome.wrongs() else 0)
