"""The contexts of the pages, gathered without waiting: leases and sessions of this moment, states as last fetched."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcpboard.errors import McpboardError, UnknownDevice
from mcpboard.host.cloud.worker import CloudStatus
from mcpboard.host.console.cache import CachedValue, RevalidatingCache
from mcpboard.host.devices.leases import IDLE_SECONDS, MCP
from mcpboard.host.devices.manager import DeviceManager, DeviceState
from mcpboard.host.devices.status import DeviceStatuses
from mcpboard.host.drivers.base import OFFLINE, READY, Screenshot
from mcpboard.protocol import versions
from mcpboard.protocol.sessions import Session

FRESH_SECONDS = 2.0  # how old a state or a screenshot may be before it is renewed, if anybody looks
STALE_SECONDS = 10.0  # a screenshot older than this is said to be so, a state is not shown any more
MOST_ROWS = 50  # sessions on a page, those used last
LONGEST_NAME = 80  # characters of what a client calls itself
NO_VERSION = f"{versions.MODERN} or none"  # of MCP, where no session says which
MIMES = frozenset({"image/png", "image/jpeg", "image/webp"})
ASKING = "asking"  # the state of a device that has not answered yet

SENTENCES = {
    ASKING: "It is being asked how it is.",
    OFFLINE: "It does not answer. Check its cable and power; it comes back by itself.",
    "no answer": "It did not answer in time; it is asked again.",
    "no driver": "This installation cannot drive it.",
    "failing": "It answers, but something is wrong with it.",
}


@dataclass(frozen=True)
class DeviceSummary:
    """One device: its state, who uses it, and how its last lease came to an end."""

    id: str
    kind: str
    state: str
    sentence: str  # what the state means, "" when all is well
    detail: str  # in the driver's own words
    owner: str | None  # the label of who has the lease
    in_call: bool  # a call is under way
    idle_s: int | None
    free_in_s: int | None
    last_owner: str | None
    last_end: str | None
    idle_limit_s: int = int(IDLE_SECONDS)


@dataclass(frozen=True)
class SessionSummary:
    """One MCP session, or a token that leases a device without one."""

    prefix: str
    client: str
    version: str
    last_call_s: float
    devices: Sequence[str]


@dataclass(frozen=True)
class ConsoleScreenshot:
    """A screenshot that may be served, or the reason why there is none."""

    image: Screenshot | None
    mark: str = ""
    problem: str = ""


@dataclass(frozen=True)
class ScreenshotState:
    """A screenshot as a page shows it, None before the first; `old_s` is its age when it is stale."""

    screenshot: ConsoleScreenshot | None
    old_s: int | None = None


@dataclass
class Presenter:
    """The source of what pages show; every method returns what is known now and waits for nothing."""

    manager: DeviceManager
    statuses: DeviceStatuses
    sessions: Callable[[], Sequence[Session]]
    clock: Callable[[], float]
    cloud: Callable[[], CloudStatus] | None
    _states: RevalidatingCache[dict[str, Any]] = field(init=False)
    _screenshots: RevalidatingCache[ConsoleScreenshot] = field(init=False)

    def __post_init__(self) -> None:
        self._states = RevalidatingCache("state", self._fetch_state, self.clock, FRESH_SECONDS)
        self._screenshots = RevalidatingCache("screenshot", self._fetch_screenshot, self.clock, FRESH_SECONDS)

    def close(self) -> None:
        """Ask no device any more."""
        self._states.close()
        self._screenshots.close()

    # --- devices ---

    def devices(self) -> list[DeviceSummary]:
        """Return every device."""
        return [self._summary(state) for state in self.manager.states()]

    def device(self, device_id: str) -> DeviceSummary:
        """Return one of them; UnknownDevice."""
        return self._summary(self.manager.state(device_id))

    def ask_again(self, device_id: str) -> None:
        """Forget the state of a device, so that it is asked anew; UnknownDevice."""
        self.manager.state(device_id)
        self._states.drop(device_id)
        self._states.latest(device_id)

    def _summary(self, device: DeviceState) -> DeviceSummary:
        known = self._states.latest(device.id)
        status: dict[str, Any] = {} if known is None or self._stale_s(known) is not None else known.value
        state = str(status.get("state", ASKING))
        ended = self.manager.last_ended(device.id)
        return DeviceSummary(
            id=device.id,
            kind=device.kind,
            state=state,
            sentence=SENTENCES.get(state, "" if state == READY else f"It cannot be used at the moment: {state}."),
            detail=str(status.get("error", "")),
            owner=None if device.owner is None else device.owner.label,
            in_call=device.idle_s == 0,
            idle_s=None if device.idle_s is None else int(device.idle_s),
            free_in_s=device.free_in_s,
            last_owner=None if ended is None else ended.owner.label,
            last_end=None if ended is None else ended.why,
        )

    def _fetch_state(self, device_id: str) -> dict[str, Any] | None:
        try:
            return self.statuses.status(device_id)
        except UnknownDevice:
            return None  # removed meanwhile

    # --- screenshots ---

    def screenshot(self, device_id: str) -> ScreenshotState:
        """Return the device's screen as it was last; UnknownDevice."""
        self.manager.state(device_id)
        known = self._screenshots.latest(device_id)
        return ScreenshotState(None) if known is None else ScreenshotState(known.value, self._stale_s(known))

    def _stale_s(self, known: CachedValue[Any]) -> int | None:
        seconds = self.clock() - known.at
        return int(seconds) if seconds >= STALE_SECONDS else None

    def _fetch_screenshot(self, device_id: str) -> ConsoleScreenshot | None:
        try:
            image = self.manager.peek(device_id)
        except McpboardError as error:
            return ConsoleScreenshot(None, problem=str(error))
        except Exception as error:  # a driver's own, told in its words as everywhere
            return ConsoleScreenshot(None, problem=str(error) or type(error).__name__)
        if image is None:
            return None
        if image.mime not in MIMES:  # it is served from our own address, so it must not be a page
            return ConsoleScreenshot(None, problem=f"the device sent {image.mime[:40]} instead of a screenshot")
        return ConsoleScreenshot(image, hashlib.sha256(image.content).hexdigest()[:16])

    # --- sessions ---

    def mcp_sessions(self) -> tuple[list[SessionSummary], int]:
        """Return the sessions, those used last first, and how many more there are than are shown."""
        leases = self.manager.leases()
        sessions = list(self.sessions())
        ids = {session.id for session in sessions}
        rows = []
        # Of a token without a session its leases are all that is known.
        for loose in dict.fromkeys(owner for owner in leases.values() if owner.kind == MCP and owner.key not in ids):
            idle = [each.idle_s for each in self.manager.states() if each.owner == loose and each.idle_s is not None]
            devices = self.manager.leased_by(loose)
            rows.append(SessionSummary(loose.prefix, "without a session", NO_VERSION, min(idle, default=0.0), devices))
        for session in sessions:
            devices = [device for device, owner in leases.items() if owner.key == session.id]
            name, idle_s = session.client[:LONGEST_NAME] or "unknown client", self.clock() - session.used
            rows.append(SessionSummary(session.id[:8], name, session.version or NO_VERSION, idle_s, devices))
        rows.sort(key=lambda row: (not row.devices, row.last_call_s))
        return rows[:MOST_ROWS], max(0, len(rows) - MOST_ROWS)
