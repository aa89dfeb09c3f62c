"""The contexts of the pages, gathered without waiting: leases and sessions of this moment, states as last fetched."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcpboard.errors import McpboardError, UnknownDevice
from mcpboard.host.access.owners import SHOWN
from mcpboard.host.cloud.worker import CloudStatus
from mcpboard.host.console.cache import RevalidatingCache
from mcpboard.host.devices.leases import IDLE_SECONDS, MCP, Owner
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

Row = dict[str, Any]  # one device or session, as the templates read it

SENTENCES = {
    ASKING: "It is being asked how it is.",
    OFFLINE: "It does not answer. Check its cable and power; it comes back by itself.",
    "no answer": "It did not answer in time; it is asked again.",
    "no driver": "This installation cannot drive it.",
    "failing": "It answers, but something is wrong with it.",
}


@dataclass(frozen=True)
class ConsoleScreenshot:
    """A screenshot that may be served, or the reason why there is none."""

    image: Screenshot | None
    mark: str = ""
    problem: str = ""


@dataclass
class Presenter:
    """The source of what pages show; every method returns what is known now and waits for nothing."""

    manager: DeviceManager
    statuses: DeviceStatuses
    sessions: Callable[[], Sequence[Session]]
    clients: Callable[[Owner], list[str]]
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

    def devices(self) -> list[Row]:
        """Return every device."""
        return [self._summary(state) for state in self.manager.states()]

    def device(self, device_id: str) -> Row:
        """Return one of them; UnknownDevice."""
        return self._summary(self.manager.state(device_id))

    def ask_again(self, device_id: str) -> None:
        """Forget the state of a device, so that it is asked anew; UnknownDevice."""
        self.manager.state(device_id)
        self._states.drop(device_id)
        self._states.latest(device_id)

    def _summary(self, device: DeviceState) -> Row:
        """Return the device with its state, what that means ("" when all is well), and how its last lease ended."""
        status, at = self._states.latest(device.id) or ({}, 0.0)
        if self._stale_s(at) is not None:
            status = {}
        state = str(status.get("state", ASKING))
        return {
            **vars(device),
            "state": state,
            "sentence": SENTENCES.get(state, "" if state == READY else f"It cannot be used at the moment: {state}."),
            "detail": str(status.get("error", "")),  # in the driver's own words
            "ended": self.manager.last_ended(device.id),
            "idle_limit_s": int(IDLE_SECONDS),
        }

    def _fetch_state(self, device_id: str) -> dict[str, Any] | None:
        try:
            return self.statuses.status(device_id)
        except UnknownDevice:
            return None  # removed meanwhile

    # --- screenshots ---

    def screenshot(self, device_id: str) -> tuple[ConsoleScreenshot | None, int | None]:
        """Return the device's screen as it was last, None before the first, and its age when stale; UnknownDevice."""
        self.manager.state(device_id)
        known = self._screenshots.latest(device_id)
        return (None, None) if known is None else (known[0], self._stale_s(known[1]))

    def _stale_s(self, at: float) -> int | None:
        seconds = self.clock() - at
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

    def mcp_sessions(self) -> tuple[list[Row], int]:
        """Return the sessions, those used last first, and how many more there are than are shown.

        A token that leases a device without a session is one, too: its leases are all that is known of it.
        """
        leases, sessions = self.manager.leases(), list(self.sessions())
        ids = {session.id for session in sessions}
        rows = []
        for loose in dict.fromkeys(owner for owner in leases.values() if owner.kind == MCP and owner.key not in ids):
            idle = [each.idle_s for each in self.manager.states() if each.owner == loose and each.idle_s is not None]
            clients = [each[:LONGEST_NAME] for each in self.clients(loose)]
            client = ", ".join(clients) or "without a session"
            rows.append((loose.key, loose.prefix, client, "", min(idle, default=0.0), len(clients) > 1))
        for each in sessions:
            client = each.client[:LONGEST_NAME] or "unknown client"
            rows.append((each.id, each.id[:SHOWN], client, each.version, self.clock() - each.used, False))
        shown = [
            {
                "prefix": prefix,
                "client": client,
                "version": version or NO_VERSION,
                "last_call_s": last_call_s,
                "is_shared": is_shared,  # by several clients that have one token
                "devices": [device for device, owner in leases.items() if owner.key == key],
            }
            for key, prefix, client, version, last_call_s, is_shared in rows
        ]
        shown.sort(key=lambda row: (not row["devices"], row["last_call_s"]))
        return shown[:MOST_ROWS], max(0, len(shown) - MOST_ROWS)
