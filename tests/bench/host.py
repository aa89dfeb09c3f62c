"""The host's rows: MCP with and without people who look at the console."""

from __future__ import annotations

import itertools
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from tests.bench.traffic import learned
from tests.host.rig import Agent, Fake, agent
from tests.support.http import Caller

PHONES = 8  # each with a client of its own that taps and taps
TAPS = 60  # of each client, in each of the two parts
TABS = 20
POLL_S = 2.0  # as htmx does it in the pages
SLOWER = 1.5  # x without tabs, shown and not asserted


def sizes() -> tuple[int, int]:
    """Bytes of the tool list and of the instructions."""
    with tempfile.TemporaryDirectory() as folder, agent(Path(folder, "data"), phone=Fake()) as host:
        return learned(urlsplit(host.url).port or 0, host.token)


def watched() -> tuple[str, str, str, str, bool]:
    """Metric, measured, beside, target and whether it was reached."""
    phones = {f"phone-{number}": Fake() for number in range(PHONES)}
    with tempfile.TemporaryDirectory() as folder, agent(Path(folder, "data"), real_time=True, **phones) as host:  # type: ignore[arg-type]
        alone = _taps(host, phones)
        with _tabs(host):
            looked_at = _taps(host, phones)
    ratio = looked_at / alone
    metric = f"{PHONES} clients tapping, {TABS} console tabs open, p50"
    beside = f"no tab {alone * 1e6:,.0f} us"
    return metric, f"{looked_at * 1e6:,.0f} us", beside, f"<= {SLOWER} x; {ratio:.2f} x", ratio <= SLOWER


def _taps(host: Agent, phones: dict[str, Fake]) -> float:
    """Median seconds of a tap while every phone has a client."""

    def client(name: str) -> list[float]:
        times = []
        caller = Caller(host.url, host.token).open()
        for _ in range(TAPS):
            began = time.perf_counter()
            caller.call("tap", x=1, y=1, device_id=name)
            times.append(time.perf_counter() - began)
        caller.end()
        return times

    with ThreadPoolExecutor(PHONES) as pool:
        return statistics.median(itertools.chain(*pool.map(client, phones)))


@contextmanager
def _tabs(host: Agent) -> Iterator[None]:
    over = threading.Event()
    browser = host.browser()

    def tab(number: int) -> None:
        path = "/live/dashboard/0" if number % 2 else f"/live/screenshot/phone-{number % PHONES}/0"
        while not over.wait(POLL_S * (number + 1) / TABS if number else POLL_S):
            browser.get(path)

    with ThreadPoolExecutor(TABS) as pool:
        tabs = [pool.submit(tab, number) for number in range(TABS)]
        try:
            yield
        finally:
            over.set()
    for each in tabs:
        each.result()
