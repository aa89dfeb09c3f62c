"""What the pages show, gathered without waiting: holds and sessions of this moment, states as they were found last."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcpboard.errors import McpboardError, UnknownDevice
from mcpboard.host.cloud.worker import CloudStatus
from mcpboard.host.console.cache import CachedValue, RevalidatingCache
from mcpboard.host.devices.leases import IDLE_SECONDS, MCP, Owner
from mcpboard.host.devices.manager import DeviceManager, DeviceState
from mcpboard.host.devices.status import StatusSurvey
from mcpboard.host.drivers.base import OFFLINE, READY, Screenshot
from mcpboard.protocol import versions
from mcpboard.protocol.sessions import Session

FRESH_SECONDS = 2.0  # how old a state or a picture may be before it is renewed, if anybody looks
STALE_SECONDS = 10.0  # a picture older than this is said to be so, a state is not told any more
MOST_ROWS = 50  # sessions on a page, those used last
LONGEST_NAME = 80  # characters of what a client calls itself
PICTURES = frozenset({"image/png", "image/jpeg", "image/webp"})
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
    """One device: how it is, who holds it, and how its last hold came to an end."""

    id: str
    kind: str
    state: str
    sentence: str  # what the state means, "" when all is well
    detail: str  # in the driver's own words
    holder: str | None  # the owner's label
    in_use: bool  # a call is under way
    idle_s: int | None
    free_in_s: int | None
    last_holder: str | None
    last_end: str | None
    idle_limit_s: int = int(IDLE_SECONDS)


@dataclass(frozen=True)
class SessionSummary:
    """One MCP session, or a token that holds something without one."""

    prefix: str
    client: str
    era: str
    last_call_s: float
    held: Sequence[str]


@dataclass(frozen=True)
class ConsoleScreenshot:
    """What a device's screen looked like, or why there is no picture."""

    shot: Screenshot | None
    mark: str = ""
    problem: str = ""


@dataclass(frozen=True)
class ScreenshotState:
    """A picture as a page shows it; `old_s` is told when it is older than it should be."""

    picture: ConsoleScreenshot | None
    old_s: int | None = None


@dataclass
class Presenter:
    """Where the pages look; every method gives what is known now and waits for nothing."""

    manager: DeviceManager
    survey: StatusSurvey
    sessions: Callable[[], Sequence[Session]]
    clock: Callable[[], float]
    cloud: Callable[[], CloudStatus] | None
    _states: RevalidatingCache[dict[str, Any]] = field(init=False)
    _pictures: RevalidatingCache[ConsoleScreenshot] = field(init=False)

    def __post_init__(self) -> None:
        self._states = RevalidatingCache("state", self._status, self.clock, FRESH_SECONDS)
        self._pictures = RevalidatingCache("picture", self._peek, self.clock, FRESH_SECONDS)

    def close(self) -> None:
        """Ask no device any more."""
        self._states.close()
        self._pictures.close()

    # --- devices ---

    def devices(self) -> list[DeviceSummary]:
        """Every device."""
        return [self._device(standing) for standing in self.manager.states()]

    def device(self, device_id: str) -> DeviceSummary:
        """One of them; UnknownDevice."""
        return self._device(self.manager.state(device_id))

    def ask_again(self, device_id: str) -> None:
        """Forget how the device was, so that the next look asks it; UnknownDevice."""
        self.manager.state(device_id)
        self._states.drop(device_id)
        self._states.latest(device_id)

    def _device(self, standing: DeviceState) -> DeviceSummary:
        known = self._states.latest(standing.id)
        status: dict[str, Any] = {} if known is None or self._old(known) else known.value
        state = str(status.get("state", ASKING))
        ended = self.manager.last_ended(standing.id)
        return DeviceSummary(
            id=standing.id,
            kind=standing.kind,
            state=state,
            sentence=SENTENCES.get(state, "" if state == READY else f"It cannot be used at the moment: {state}."),
            detail=str(status.get("error", "")),
            holder=None if standing.owner is None else standing.owner.label,
            in_use=standing.idle_s == 0,
            idle_s=None if standing.idle_s is None else int(standing.idle_s),
            free_in_s=standing.free_in_s,
            last_holder=None if ended is None else ended.owner.label,
            last_end=None if ended is None else ended.why,
        )

    def _status(self, device_id: str) -> dict[str, Any] | None:
        try:
            return self.survey.status(device_id)
        except UnknownDevice:
            return None  # removed meanwhile

    # --- pictures ---

    def picture(self, device_id: str) -> ScreenshotState:
        """The device's screen as it was seen last; UnknownDevice."""
        self.manager.state(device_id)
        known = self._pictures.latest(device_id)
        if known is None:
            return ScreenshotState(None)
        return ScreenshotState(known.value, self._old(known))

    def _old(self, known: CachedValue[Any]) -> int | None:
        seconds = self.clock() - known.at
        return int(seconds) if seconds >= STALE_SECONDS else None

    def _peek(self, device_id: str) -> ConsoleScreenshot | None:
        try:
            shot = self.manager.peek(device_id)
        except McpboardError as error:
            return ConsoleScreenshot(None, problem=str(error))
        except Exception as error:  # a driver's own, told in its words as everywhere
            return ConsoleScreenshot(None, problem=str(error) or type(error).__name__)
        return None if shot is None else _picture(shot)

    # --- sessions and cloud ---

    def mcp(self) -> tuple[list[SessionSummary], int]:
        """The sessions, those used last first, and how many more there are than are shown."""
        holds = self.manager.leases()
        sessions = list(self.sessions())
        ids = {session.id for session in sessions}
        loose = {owner: None for owner in holds.values() if owner.kind == MCP and owner.key not in ids}
        rows = [self._loose(owner) for owner in loose] + [self._session(each, holds) for each in sessions]
        rows.sort(key=lambda row: (not row.held, row.last_call_s))
        return rows[:MOST_ROWS], max(0, len(rows) - MOST_ROWS)

    def cloud_state(self) -> CloudStatus | None:
        """How things stand with the cloud, None for a host that is not enrolled."""
        return self.cloud and self.cloud()

    def _session(self, session: Session, holds: dict[str, Owner]) -> SessionSummary:
        held = [device for device, owner in holds.items() if owner.key == session.id]
        name = session.client[:LONGEST_NAME] or "does not say"
        return SessionSummary(session.id[:8], name, _era(session.version), self.clock() - session.used, held)

    def _loose(self, owner: Owner) -> SessionSummary:
        """A token without a session: all that is known of it are its holds."""
        held = self.manager.leased_by(owner)
        idle = [each.idle_s for each in self.manager.states() if each.owner == owner and each.idle_s is not None]
        return SessionSummary(owner.prefix, "without a session", _era(""), min(idle, default=0.0), held)


def _era(version: str) -> str:
    return version or f"{versions.MODERN} or none"


def _picture(shot: Screenshot) -> ConsoleScreenshot:
    if shot.mime not in PICTURES:  # it is served from our own address, so it must not be a page
        return ConsoleScreenshot(None, problem=f"the device sent {shot.mime[:40]} instead of a picture")
    return ConsoleScreenshot(shot, hashlib.sha256(shot.content).hexdigest()[:16])
