"""Role 2: MCP in front of several devices. `build` is the only place where its parts are assembled."""

from __future__ import annotations

import logging
import shlex
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mcpboard import __version__
from mcpboard.errors import NOT_SENT, UNKNOWN, InvalidParams, McpboardError, ToolFailed, UnknownDevice
from mcpboard.host import console
from mcpboard.host.access.identity import identity
from mcpboard.host.access.owners import Owners
from mcpboard.host.access.tokens import Tokens
from mcpboard.host.cloud import enrollment
from mcpboard.host.cloud.enrollment import Enrollment
from mcpboard.host.cloud.worker import Worker
from mcpboard.host.config import HostSettings
from mcpboard.host.console import Console, Presenter
from mcpboard.host.devices import autodiscovery
from mcpboard.host.devices.leases import Owner
from mcpboard.host.devices.manager import DeviceManager
from mcpboard.host.devices.queue import SHARED_PLACES
from mcpboard.host.devices.registry import MOST_DEVICES, DeviceSpec, Registry
from mcpboard.host.devices.status import DeviceStatuses
from mcpboard.host.drivers import factory
from mcpboard.host.drivers.android.discovery import AdbDiscovery
from mcpboard.host.drivers.base import Driver
from mcpboard.host.tools import rows
from mcpboard.host.tools.arguments import Arguments
from mcpboard.host.tools.rows import INSTRUCTIONS, ROWS, LeasedTool, StatusTool
from mcpboard.host.vision.service import VisionService, create_service
from mcpboard.protocol.endpoint import Endpoint
from mcpboard.protocol.messages import CloseSession, OpenSession, Outcome, Policy, ToolCall
from mcpboard.protocol.tools import Content, Text, ToolList
from mcpboard.serving.app import Application
from mcpboard.serving.concurrency import ConcurrencyLimit
from mcpboard.serving.undelivered import UndeliveredOutcomes

log = logging.getLogger(__name__)

SERVER = {"name": "mcpboard-host", "title": "Phones of this host", "version": __version__}
ECHOED = frozenset({"2025-06-18", "2025-03-26"})  # what Python's mcp SDK speaks from 1.20 on

ICONS = "icons"  # the folder beside the identity with the user's own

LOOK_FIRST = "look at the screen before repeating it"  # behind the words of an action of unknown outcome
SWEEP_SECONDS = 5.0  # how late an idle lease may end while nobody asks

# Calls at a time: one inside each device and one behind it, as a silent one keeps its own; the others that wait; and
# some that ask for states. A thread that waits costs 15 KiB.
MOST_CALLS = 2 * MOST_DEVICES + SHARED_PLACES + 8
THREADS = MOST_CALLS + 8  # the rest is always free for ping, tools/list, DELETE and pages
CONNECTIONS = 256  # clients keep theirs open; a host has the memory that a board lacks
HELD_BYTES = 256 << 20  # of replies at once; screenshots of a phone at full size have several MiB


@dataclass(eq=False, repr=False)
class HostRole:
    """The role as the application sees it, and the thread that ends idle leases; `app` is the WSGI application.

    `follow` makes the manager do as `devices.json` says. To be closed when serving is over.
    """

    manager: DeviceManager
    owners: Owners
    tokens: Tokens
    statuses: DeviceStatuses
    vision: VisionService
    console: Console
    follow: Callable[[], None]
    cloud: Worker | None
    discovery: AdbDiscovery | None
    clock: Callable[[], float]

    def __post_init__(self) -> None:
        self._rows = {row.tool.name: row for row in ROWS}
        self._undelivered: dict[str, UndeliveredOutcomes] = {}  # by device
        self._undelivered_lock = threading.Lock()
        policy = Policy(
            server=SERVER,
            instructions=INSTRUCTIONS,
            authorize=self.tokens.authorize,
            knows_session=self.owners.knows,
            echoed_versions=ECHOED,
            unknown_method_legacy=200,
            faults_as_results=False,
        )
        self._endpoint = Endpoint(policy, ToolList([row.tool for row in ROWS]))
        limit = ConcurrencyLimit(MOST_CALLS, HELD_BYTES)
        self.app = Application(lambda: self, limit, console.URL_MAP.iter_rules(), self.console.views())
        self._stop = threading.Event()
        self._sweeping = threading.Thread(target=self._sweep, name="host sweep")
        self._sweeping.start()

    # --- as the application sees it ---

    def endpoint(self) -> Endpoint:
        """Return the endpoint; it never varies."""
        return self._endpoint

    refreshed_endpoint = endpoint  # the tools are built in

    def run(self, call: ToolCall) -> Outcome:
        """Run one tool call; an action's outcome begins with those of the same device that reached nobody."""
        row = self._rows[call.name]
        self.owners.note_client(call)
        with self._in_its_words(call, NOT_SENT):
            self.follow()
        if isinstance(row, StatusTool):
            with self._in_its_words(call):
                return Outcome(row.work(self.statuses, call.arguments))
        return self._run_leased(call, row)

    @contextmanager
    def _in_its_words(self, call: ToolCall, delivery: str | None = None) -> Iterator[None]:
        """Turn whatever is raised inside into ToolFailed: the client reads it in its own words.

        Without a `delivery`, nobody knows how far the device got with an action.
        """
        try:
            yield
        except McpboardError:
            raise
        except Exception as error:
            if delivery is None and self._endpoint.tool_list.acts(call.name):
                delivery = UNKNOWN
            raise rows.failure(call.name, error, delivery) from error

    def open_session(self, step: OpenSession) -> str:
        """Start a legacy session and return its id."""
        return self.owners.open(step)

    def close_session(self, step: CloseSession) -> None:
        """End a legacy session and its leases; a call inside finishes first."""
        self.manager.end_owner(self.owners.close(step.session, step.principal), "its session ended")

    def close(self) -> None:
        """Hand over to the cloud what it is owed, end every lease, let every device go, join every thread."""
        if self.cloud is not None:
            self.cloud.close()
        self._stop.set()
        self._sweeping.join()
        for part in (self.console, self.discovery, self.manager, self.statuses, self.vision):
            if part is not None:
                part.close()

    # --- a call that leases its device ---

    def _run_leased(self, call: ToolCall, row: LeasedTool) -> Outcome:
        owner, new_session = self.owners.owner(call)
        arguments = Arguments(call.arguments)

        def command(driver: Driver) -> Content:
            if not self.owners.note_lease(owner):
                self.manager.end_owner(owner, "its session ended")  # which had no lease to end yet
                raise ToolFailed("the session ended before the call began", delivery=NOT_SENT)
            return rows.run(row, driver, arguments, device, self.vision)

        try:
            device = self._device(call.arguments, owner)
            with self._in_its_words(call):
                content = self.manager.run(device, owner, command, call.gone)
        except BaseException as error:
            if new_session is not None:  # its caller never learns of it
                self.manager.end_owner(self.owners.close(new_session, call.principal), "its first call failed")
            if isinstance(error, ToolFailed) and error.delivery != NOT_SENT:
                return self._outcome(call, device, error)
            raise  # nothing was done, perhaps for somebody who does not even have the device
        notes = [" ".join(arguments.notes), f"session_id: {new_session}" if new_session else ""]
        content = replace(content, blocks=(*content.blocks, *(Text(note) for note in notes if note)))
        # A client that reads structured content would lose an image for it.
        if new_session and all(isinstance(block, Text) for block in content.blocks):
            content = replace(content, structured={**(content.structured or {}), "session_id": new_session})
        return self._outcome(call, device, content)

    def _outcome(self, call: ToolCall, device: str, result: Content | ToolFailed) -> Outcome:
        """Return the outcome of a call that may have touched the device; that of an action is kept until it is told."""
        if not self._endpoint.tool_list.acts(call.name):
            return Outcome(result)
        if isinstance(result, ToolFailed) and result.delivery == UNKNOWN and "look" not in result.message:
            result.message += f"; {LOOK_FIRST}"
        with self._undelivered_lock:
            undelivered = self._undelivered.setdefault(device, UndeliveredOutcomes(self.clock))
        return undelivered.outcome_of(call.name, result)

    def _device(self, arguments: Mapping[str, Any], owner: Owner) -> str:
        """Return the device that is meant: the one that was named, else the only one, else the only one leased."""
        ids = self.manager.ids()
        if "device_id" in arguments:
            if arguments["device_id"] not in ids:
                raise UnknownDevice(arguments["device_id"])
            return str(arguments["device_id"])
        for candidates in (ids, self.manager.leased_by(owner)):
            if len(candidates) == 1:
                return candidates[0]
        if not ids:
            raise InvalidParams("there is no device; add one with `devices add`")
        raise InvalidParams(f"device_id is needed, one of: {', '.join(ids)}")

    # --- in the background ---

    def _sweep(self) -> None:
        while not self._stop.wait(SWEEP_SECONDS):
            try:
                self.manager.sweep()
                self.follow()
                self.tokens.follow()
                self.console.sweep()
                with self._undelivered_lock:
                    for gone in self._undelivered.keys() - set(self.manager.ids()):
                        del self._undelivered[gone]
            except Exception:  # a disk that fails must not keep leases from ending
                log.exception("sweep")


def build(
    settings: HostSettings,
    extra: Mapping[str, tuple[str, Driver]] | None = None,
    clock: Callable[[], float] = time.monotonic,
    vision: VisionService | None = None,
    enrolled: Enrollment | None = None,
    token_command: str | None = None,
) -> HostRole:
    """Assemble the host role over the files beside the identity.

    `extra` are devices that no file knows, id -> kind and driver, `enrolled` is an enrollment of that sort.
    `vision` reads screenshots; by default with the vision extra, where it is installed. `token_command` is the
    line for a shell that prints this folder's token, for the console's pages.
    Raises ConfigError for files that cannot be used, one line with path and remedy.
    """
    folder = Path(settings.identity_path).parent
    identity(Path(settings.identity_path))
    manager = DeviceManager(clock)
    owners = Owners(lambda: [owner.key for owner in manager.leases().values()], settings.hold_scope, clock)

    def token_removed(principal: str) -> None:
        for owner in owners.close_principal(principal):
            manager.end_owner(owner, "its token was removed")

    tokens = Tokens(folder, token_removed)
    for device_id, (kind, driver) in (extra or {}).items():
        manager.add(device_id, kind, driver)
    adb = factory.adb_server(settings)
    serials: dict[str, str] = {}  # of Android phones by network, by their addresses
    registry = Registry(folder, manager, lambda spec: factory.driver(spec, adb), serials)
    discovery = autodiscovery.discover(manager, registry.specs, adb, serials) if settings.adb_discover else None
    statuses = DeviceStatuses(manager, owners.clients)
    vision = vision or create_service(folder / ICONS)
    enrolled = enrolled or enrollment.read(folder)
    cloud = Worker(manager, statuses.devices, vision, enrolled, folder, settings.cloud_proxy) if enrolled else None
    presenter = Presenter(manager, statuses, owners.sessions, owners.clients, clock, cloud.status if cloud else None)
    usual_command = shlex.join(("device-host-agent", "mcp-token", "--data", str(folder)))
    pages = console.build(presenter, tokens, folder, registry.follow, token_command or usual_command)
    return HostRole(manager, owners, tokens, statuses, vision, pages, registry.follow, cloud, discovery, clock)


__all__ = ["CONNECTIONS", "THREADS", "DeviceSpec", "HostRole", "build"]
