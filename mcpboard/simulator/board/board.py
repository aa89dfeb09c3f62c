"""The simulated board as one object: two ports, a phone, faults, and a ledger to wait on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from mcpboard.simulator.board.apis import LoopbackApis
from mcpboard.simulator.board.faults import Faults
from mcpboard.simulator.board.listener import Port
from mcpboard.simulator.board.runs import ExecutionHold, Ledger, ReceivedRequest, SimulatedClock
from mcpboard.simulator.board.tool_runs import ToolRunner
from mcpboard.simulator.phone import display
from mcpboard.simulator.phone.phone import Phone

INPUT_LIMIT_S = 300.0  # the Agent ends an input tool after that
BOARD_ZONE_S = 8 * 3600  # east of Greenwich


class Simulator:
    """A board on loopback: an Agent and a Config Web, each on a port of its own.

    Port 0 takes any; a port keeps its number over `stop()` and `start()`. `speed` makes board time (gestures,
    animations, the stability wait, the limit) run faster than real time; `clock` and `sleep` replace it
    altogether, in seconds since 1970. Faults and holds keep to real time.

    `start()` raises OSError when a port is taken (OverflowError when it is none), `stop()` RuntimeError if a
    thread does not end.
    """

    def __init__(
        self,
        agent_port: int = 0,
        config_web_port: int = 0,
        host: str = "127.0.0.1",
        seed: int = 0,
        *,
        speed: float = 1.0,
        input_limit_s: float = INPUT_LIMIT_S,
        clock: Callable[[], float] | None = None,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        if (clock is None) != (sleep is None):
            raise ValueError("clock and sleep go together: a clock that no sleep moves would stand still")
        self._stop = threading.Event()
        self._ledger = Ledger()
        self.faults = Faults()
        born, began = time.time(), time.monotonic()  # the board's own clock never steps back
        board_clock = SimulatedClock(
            clock or (lambda: born + (time.monotonic() - began) * speed),
            sleep or (lambda seconds: self._stop.wait(seconds / speed)),  # ends early when the simulator does
            self._stop,
        )
        # A clock that is not the machine's is read as the board reads it, so that screens are the same everywhere.
        self.phone = Phone(board_clock.now, seed, None if clock is None else BOARD_ZONE_S)
        apis = LoopbackApis(ToolRunner(self.phone, self.faults, self._ledger, board_clock, input_limit_s))
        self.agent, self.config_web = (
            Port(name, (host, number), apis.respond, apis.reset_early, self._ledger, board_clock)
            for name, number in (("agent", agent_port), ("config_web", config_web_port))
        )

    @property
    def agent_url(self) -> str:
        return self.agent.url

    @property
    def config_web_url(self) -> str:
        return self.config_web.url

    @property
    def calls(self) -> list[tuple[str, dict[str, Any]]]:
        """The tools that began to run, in order, as (name, input)."""
        return self._ledger.copy(self._ledger.calls)

    @property
    def finished(self) -> list[tuple[str, str]]:
        """The tools that ended, in order, as (name, `ok` or the error's code)."""
        return self._ledger.copy(self._ledger.finished)

    @property
    def requests(self) -> list[ReceivedRequest]:
        """Every HTTP request that was read whole, on both ports, in order."""
        return self._ledger.copy(self._ledger.requests)

    def start(self) -> Simulator:
        self._stop.clear()
        display.picture(self.phone.view())  # icons and wallpaper are drawn before anybody waits for them
        self.agent.start()
        try:
            self.config_web.start()
        except (OSError, OverflowError):
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End everything under way, close every socket, join every thread."""
        self._stop.set()
        self._ledger.release_all()
        self.agent.stop()
        self.config_web.stop()

    def __enter__(self) -> Simulator:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def hold(self, name: str) -> ExecutionHold:
        """Keep the tool (or `device_status`, `support_bundle` ...) inside its execution until released."""
        return self._ledger.hold(name)

    def wait_for_request(self, path_part: str, count: int = 1, timeout: float = 5) -> None:
        """Return once that many requests whose path holds `path_part` were read; AssertionError otherwise."""
        self._ledger.wait(
            lambda: sum(path_part in request.path for request in self.requests) >= count,
            timeout,
            f"{path_part}, {count}",
        )

    def wait_for_call(self, name: str, count: int = 1, timeout: float = 5) -> None:
        """Return once the tool began to run that often; AssertionError otherwise."""
        self._ledger.wait(
            lambda: sum(name == called for called, _ in self.calls) >= count, timeout, f"call {count} of {name}"
        )

    def wait_for_finish(self, name: str, count: int = 1, timeout: float = 5) -> None:
        """Return once the tool ended that often, however it ended; AssertionError otherwise."""
        self._ledger.wait(
            lambda: sum(name == ended for ended, _ in self.finished) >= count, timeout, f"end {count} of {name}"
        )
