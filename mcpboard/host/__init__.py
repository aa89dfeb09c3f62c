"""Role 2: MCP in front of several devices. `build` is the only place where its parts are joined."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcpboard import __version__
from mcpboard.errors import NOT_SENT, InvalidParams, McpboardError, ToolFailed, UnknownDevice
from mcpboard.host import console
from mcpboard.host.access.identity import identity
from mcpboard.host.access.owners import Owners
from mcpboard.host.access.tokens import Tokens
from mcpboard.host.cloud import enrollment
from mcpboard.host.cloud.enrollment import Enrollment
from mcpboard.host.cloud.status import NOT_ENROLLED, CloudStatus
from mcpboard.host.cloud.worker import Worker
from mcpboard.host.config import HostSettings
from mcpboard.host.console import Console
from mcpboard.host.devices import autodiscovery
from mcpboard.host.devices.leases import Owner
from mcpboard.host.devices.manager import DeviceManager
from mcpboard.host.devices.registry import DeviceSpec, Registry
from mcpboard.host.devices.status import StatusSurvey
from mcpboard.host.drivers import factory
from mcpboard.host.drivers.android.discovery import AdbDiscovery
from mcpboard.host.drivers.base import Driver
from mcpboard.host.tools.arguments import Arguments
from mcpboard.host.tools.rows import ROWS, DeviceTool, StatusTool, VisionTool
from mcpboard.host.tools.specs import INSTRUCTIONS
from mcpboard.host.vision import service
from mcpboard.host.vision.service import VisionService
from mcpboard.protocol.endpoint import Endpoint
from mcpboard.protocol.messages import (
    CloseSession,
    OpenSession,
    Outcome,
    PageRequest,
    Policy,
    Reply,
    ToolCall,
    ToolList,
)
from mcpboard.protocol.sessions import Session
from mcpboard.protocol.tools import Content, Text
from mcpboard.serving.app import Application
from mcpboard.serving.concurrency import ConcurrencyLimit

log = logging.getLogger(__name__)

SERVER = {"name": "mcpboard-host", "title": "Phones of this host", "version": __version__}
ECHOED = frozenset({"2025-06-18", "2025-03-26"})  # clients from SDK 1.20 on are promised (mission, Prerequisites)

ICONS = "icons"  # the folder beside the identity with the user's own

SWEEP_SECONDS = 5.0  # how late an idle hold may end while nobody asks

THREADS = 48  # a stuck device keeps five: one call inside, four behind it
TURNS = THREADS - 8  # the rest is always free for ping, tools/list and DELETE
CONNECTIONS = 256  # clients keep theirs open; a host has the memory that a board lacks


class HostRole:
    """The role as the edge sees it, and the thread that ends idle holds; `app` is the WSGI application.

    To be closed when serving is over.
    """

    def __init__(
        self,
        manager: DeviceManager,
        owners: Owners,
        tokens: Tokens,
        survey: StatusSurvey,
        eyes: VisionService,
        pages: Console,
        follow: Callable[[], None],
        cloud: Worker | None = None,
        discovery: AdbDiscovery | None = None,
    ) -> None:
        self.manager = manager
        self._owners = owners
        self._tokens = tokens
        self._eyes = eyes
        self._follow = follow
        self._survey = survey
        self._console = pages
        self._cloud = cloud
        self._discovery = discovery
        self._rows = {row.tool.name: row for row in ROWS}
        self._endpoint = Endpoint(self._policy(), ToolList([row.tool for row in ROWS]))
        self.app = Application(lambda: self, ConcurrencyLimit(TURNS))
        self._stop = threading.Event()
        self._sweeping = threading.Thread(target=self._sweep, name="host sweep")
        self._sweeping.start()

    def _policy(self) -> Policy:
        return Policy(
            server=SERVER,
            instructions=INSTRUCTIONS,
            pages=self._console.paths,
            authorize=self._tokens.authorize,
            knows_session=self._owners.knows,
            echoed_versions=ECHOED,
            unknown_method_legacy=200,
            faults_as_results=False,
        )

    # --- as the edge sees it ---

    def endpoint(self) -> Endpoint:
        """The endpoint; it never varies."""
        return self._endpoint

    def refreshed_endpoint(self) -> Endpoint:
        """Return the same endpoint: the tools are built in."""
        return self._endpoint

    def run(self, call: ToolCall) -> Outcome:
        """One tool call; whatever is raised inside it is told to the client in its own words (row 80)."""
        self._follow()
        row = self._rows[call.name]
        try:
            if isinstance(row, StatusTool):
                return Outcome(row.work(self._survey, call.arguments))
            return Outcome(self._hold(call, row))
        except McpboardError:
            raise
        except Exception as error:
            _note(call.name, error)
            raise ToolFailed(str(error) or type(error).__name__) from error

    def page(self, request: PageRequest) -> Reply:
        """A page of the console."""
        return self._console.page(request)

    def open_session(self, step: OpenSession) -> str:
        """Mint a legacy session."""
        return self._owners.open(step)

    def close_session(self, step: CloseSession) -> None:
        """End a legacy session and its holds; a call inside finishes first."""
        self.manager.end_owner(self._owners.close(step.session, step.principal), "its session ended")

    def sessions(self) -> list[Session]:
        """Every session of a client, oldest first."""
        return self._owners.sessions()

    def cloud_status(self) -> CloudStatus:
        """How it stands with the cloud."""
        return NOT_ENROLLED if self._cloud is None else self._cloud.status()

    def close(self) -> None:
        """Hand over to the cloud what it is owed, end every hold, let every device go, join every thread."""
        if self._cloud is not None:
            self._cloud.close()
        self._stop.set()
        self._sweeping.join()
        self._console.close()
        if self._discovery is not None:
            self._discovery.close()
        self.manager.close()
        self._survey.close()
        self._eyes.close()

    # --- a call that holds its device ---

    def _hold(self, call: ToolCall, row: DeviceTool | VisionTool) -> Content:
        owner, minted = self._owners.owner(call, call.arguments)
        try:
            device = self._device(call.arguments, owner)
            content = self._use(call, row, owner, device, Arguments(call.arguments))
        except BaseException:
            if minted is not None:  # its caller never learns of it
                self._owners.forget(minted)
                self.manager.end_owner(owner, "its first call failed")
            raise
        return content if minted is None else _with_session(content, minted)

    def _use(
        self, call: ToolCall, row: DeviceTool | VisionTool, owner: Owner, device: str, arguments: Arguments
    ) -> Content:
        def command(driver: Driver) -> Content:
            if not self._owners.may_hold(owner):
                self.manager.end_owner(owner, "its session ended")  # which had no hold to end yet
                raise ToolFailed("the session ended before the call began", delivery=NOT_SENT)
            if isinstance(row, VisionTool):
                return row.work(driver, arguments, self._eyes)
            return row.work(driver, arguments, device)

        return _with_notes(self.manager.run(device, owner, command, call.gone), arguments.notes)

    def _device(self, given: Mapping[str, Any], owner: Owner) -> str:
        """The device that is meant: the one that was named, else the only one, else the only one held."""
        ids = self.manager.ids()
        if "device_id" in given:
            if given["device_id"] not in ids:
                raise UnknownDevice(given["device_id"])
            return str(given["device_id"])
        for candidates in (ids, self.manager.leased_by(owner)):
            if len(candidates) == 1:
                return candidates[0]
        raise InvalidParams(_which(ids))

    # --- what goes on by itself ---

    def _sweep(self) -> None:
        while not self._stop.wait(SWEEP_SECONDS):
            try:
                self.manager.sweep()
                self._follow()
                self._tokens.follow()
            except Exception:  # a disk that fails must not keep holds from ending
                log.exception("sweep")


def _note(tool: str, error: Exception) -> None:
    """One line about what was raised and where; its message may hold what a log must not."""
    *_, last = traceback.extract_tb(error.__traceback__)
    log.warning("%s: %s in %s:%s", tool, type(error).__name__, last.filename, last.lineno)


def _which(ids: Iterable[str]) -> str:
    named = ", ".join(ids)
    return f"device_id is needed, one of: {named}" if named else "there is no device; add one with `devices add`"


def _with_notes(content: Content, notes: Iterable[str]) -> Content:
    return _with_text(content, " ".join(notes))


def _with_session(content: Content, session_id: str) -> Content:
    """The new session's id in the text, and beside it where no picture would be lost for that."""
    told = _with_text(content, f"session_id: {session_id}")
    if any(not isinstance(block, Text) for block in content.blocks):
        return told
    return replace(told, structured={**(content.structured or {}), "session_id": session_id})


def _with_text(content: Content, words: str) -> Content:
    return replace(content, blocks=(*content.blocks, Text(words))) if words else content


def build(
    settings: HostSettings,
    extra: Mapping[str, tuple[str, Driver]] | None = None,
    clock: Callable[[], float] = time.monotonic,
    eyes: VisionService | None = None,
    joined: Enrollment | None = None,
) -> HostRole:
    """The host role over the files beside the identity.

    `extra` are devices that no file knows, id -> kind and driver, `joined` is such an enrolment.
    `eyes` read pictures; by default those of the vision extra, where it is installed.
    Raises ConfigError for files that cannot be used, one line with path and cure.
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
    registry = Registry(folder, manager, lambda spec: factory.driver(spec, adb))
    discovery = autodiscovery.discover(manager, registry.specs, adb) if settings.adb_discover else None
    survey = StatusSurvey(manager)
    enrolled = joined or enrollment.read(folder)
    sees = eyes or service.create_service(folder / ICONS)
    cloud = Worker(manager, survey.devices, sees, enrolled, folder, settings.cloud_proxy) if enrolled else None
    told = cloud.status if cloud else None
    pages = console.build(manager, survey, owners.sessions, folder, registry.follow, tokens.is_main, clock, told)
    return HostRole(manager, owners, tokens, survey, sees, pages, registry.follow, cloud, discovery)


__all__ = ["CONNECTIONS", "THREADS", "DeviceSpec", "HostRole", "build"]
