"""Fixtures of the host's tests: a clock that is turned by hand, a driver that notes its commands, a client on a socket."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mcpboard import host
from mcpboard.host import config as host_config
from mcpboard.host.access.tokens import read_main_token
from mcpboard.host.cloud.worker import CloudStatus
from mcpboard.host.devices.leases import CLOUD, MCP, Owner
from mcpboard.host.devices.manager import DeviceManager
from mcpboard.host.drivers.base import READY, Driver, Point, Probe, Screenshot
from mcpboard.host.vision.service import VisionService
from mcpboard.host.vision.tree import UiNode
from mcpboard.serving import server
from tests.host.browser import Browser
from tests.support import served
from tests.support.clock import Clock
from tests.support.http import LIMIT_S, Caller

CLOUD_OWNER = Owner(CLOUD, "assignment-1")


def session(name: str, principal: str = "") -> Owner:
    return Owner(MCP, name, name[:8], principal)


class Fake:
    """A driver that notes its commands, may be made to wait inside one, and to fail."""

    def __init__(self) -> None:
        self.done: list[tuple[Any, ...]] = []
        self.fault: BaseException | None = None
        self.most_inside = 0
        self.closed = False
        self.owners = 0
        self.entered = threading.Semaphore(0)
        self.go_on = threading.Event()
        self.go_on.set()
        self._inside = 0

    def size(self) -> Point:
        return 100, 200

    def take_screenshot(self) -> Screenshot:
        self._do("take_screenshot")
        return Screenshot(b"picture", "image/png", 100, 200)

    def peek(self) -> Screenshot:
        self._do("peek")
        return Screenshot(b"picture", "image/png", 100, 200)

    def tap(self, at: Point) -> None:
        self._do("tap", at)

    def swipe(self, start: Point, end: Point, duration_ms: int) -> None:
        self._do("swipe", start, end, duration_ms)

    def input_text(self, text: str) -> None:
        self._do("input_text", text)

    def launch_app(self, app_id: str) -> None:
        self._do("launch_app", app_id)

    def ui_tree(self) -> UiNode | None:
        self._do("ui_tree")
        return UiNode(
            "screen", (0, 0, 100, 200), children=(UiNode("icon", (0, 0, 10, 20), "Settings", clickable=True),)
        )

    def app_info(self) -> Mapping[str, Any]:
        return {"id": "app"}

    def probe(self) -> Probe:
        return Probe(READY, {"battery": 80})

    def new_owner(self) -> None:
        self.owners += 1

    def notice(self) -> str:
        return ""

    def close(self) -> None:
        assert not self._inside, "closed under a command"
        self.closed = True

    def _do(self, *command: Any) -> None:
        self._inside += 1
        self.most_inside = max(self.most_inside, self._inside)
        self.done.append(command)
        self.entered.release()
        try:
            assert self.go_on.wait(LIMIT_S)
            if self.fault is not None:
                raise self.fault
        finally:
            self._inside -= 1

    def stop_inside(self) -> None:
        """Keep the commands that follow inside until `go_on` is set."""
        self.go_on.clear()

    def wait_inside(self) -> None:
        """Return once one more command has begun."""
        assert self.entered.acquire(timeout=LIMIT_S)


@contextmanager
def threads() -> Iterator[ThreadPoolExecutor]:
    """A pool for calls that wait; every one has to end."""
    with ThreadPoolExecutor(16) as pool:
        yield pool


def waiting(manager: DeviceManager, device: str) -> int:
    """Callers that wait for their slot, behind the one that has it."""
    return max(0, len(manager._devices[device].queue._queue) - 1)


def result(future: Future[Any]) -> Any:
    return future.result(LIMIT_S)


# --- over a socket -----------------------------------------------------------------------------


@dataclass
class Agent:
    """A host agent in this process, served as `run` serves it."""

    role: host.HostRole
    url: str
    folder: Path
    clock: Clock  # not turned where real seconds pass

    @property
    def base(self) -> str:
        return self.url.removesuffix("/mcp")

    @property
    def token(self) -> str:
        return read_main_token(self.folder)

    @property
    def caller(self) -> Caller:
        return Caller(self.url, self.token)

    def browser(self) -> Browser:
        """Somebody who is logged in."""
        return Browser(self.base).log_in(self.token)

    def cloud_status(self) -> CloudStatus:
        assert self.role.cloud is not None, "it is not enrolled"
        return self.role.cloud.status()


@contextmanager
def agent(
    folder: Path,
    *,
    hold_scope: str = "session",
    vision: VisionService | None = None,
    port: int = 0,
    real_time: bool = False,
    **devices: Driver,
) -> Iterator[Agent]:
    """An agent with these devices, its clock turned by hand unless asked otherwise; it reads no screenshots itself."""
    clock = Clock()
    settings = replace(host_config.load({"data": str(folder)}, environ={}), hold_scope=hold_scope)
    extra = {name: ("fake", driver) for name, driver in devices.items()}
    now = time.monotonic if real_time else clock
    with contextlib.closing(host.build(settings, extra, now, vision=vision or VisionService(None, folder))) as role:
        sockets = server.listeners([("127.0.0.1", port)])
        with served.thread(role.app, sockets, threads=host.THREADS, connections=host.CONNECTIONS) as url:
            yield Agent(role, url, folder, clock)
