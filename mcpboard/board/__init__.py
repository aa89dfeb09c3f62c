"""Role 1: MCP in front of the board's loopback APIs. `build` is the only place where its parts are joined."""

from __future__ import annotations

import time
from collections.abc import Callable

from mcpboard import __version__
from mcpboard.board.arrival import BackendResponse
from mcpboard.board.backend import Backend
from mcpboard.board.catalog import Catalog
from mcpboard.board.forward import LANE_CAPACITY, Forwarder
from mcpboard.board.front import PAGES, page
from mcpboard.board.lanes import Lanes
from mcpboard.board.tools import AGENT, CONFIG_WEB, BoardTool
from mcpboard.board.undelivered import UndeliveredOutcomes
from mcpboard.config.board import Settings
from mcpboard.protocol import access
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
from mcpboard.serving.app import Application
from mcpboard.serving.concurrency import ConcurrencyLimit

CATALOGUE_S = 1.0  # seconds that tools/list may wait for the Agent's schemas (decision 2)

SERVER = {"name": "mcpboard", "title": "Phone board", "version": __version__}
OFF = "MCP is switched off on this board (mcp_enabled = false)"

INSTRUCTIONS = """\
You see and drive one real phone. Look first: screenshot returns a picture of the screen. \
Positions are normalised: x and y run from 0 to 1000 over the picture you see, left to right and top to \
bottom, whatever its size in pixels. Act with touch_gesture, enter_text, keyboard_tap, quick_action \
(home, back, app_switch), open_app or open_url: most answer with a picture of the screen afterwards, so \
read it before you go on. After an animation call wait_for_stable_screen. One action runs at a time. \
An error of an action says what became of it as `delivery`: not_sent may be called again, done must not, \
unknown means take a screenshot before you decide. Never repeat an action blindly: it would happen twice. \
open_url and bridge_clipboard need the phone's companion app; phone_bridge_status tells whether it is there.\
"""


def build(current: Callable[[], Settings], known: Callable[[], Settings] | None = None) -> Application:
    """The WSGI application of the board role; `current` gives the settings of the moment without waiting.

    `known` gives them again, without another look at their files; `current` does where it is left out.
    """
    lanes = Lanes(LANE_CAPACITY)
    board = BoardRole(current, known or current, Forwarder(lanes, UndeliveredOutcomes()))
    return Application(board, ConcurrencyLimit(sum(LANE_CAPACITY.values())))


class BoardRole:
    """The role as the edge sees it: an endpoint for the settings of the moment, and calls that are run."""

    def __init__(self, current: Callable[[], Settings], known: Callable[[], Settings], forward: Forwarder) -> None:
        self._current = current  # once for each request
        self._known = known  # for all that it needs after that
        self._forward = forward
        self._backends: dict[tuple[str, str], Backend] = {}
        self._catalogue = Catalog(self._fetch_catalogue, time.monotonic)
        self._made: tuple[Settings, tuple[BoardTool, ...], Endpoint] | None = None

    def endpoint(self) -> Endpoint:
        """The endpoint for the settings and tools of this moment; a new one only when they changed."""
        return self._endpoint(self._current())

    def _endpoint(self, settings: Settings) -> Endpoint:
        rows = self._catalogue.rows(settings.mcp_shell_enabled)
        made = self._made
        if made is None or made[0] is not settings or made[1] is not rows:
            endpoint = Endpoint(_policy(settings), ToolList([row.tool for row in rows]))
            self._made = made = (settings, rows, endpoint)
        return made[2]

    def newest(self) -> Endpoint:
        """The same after the Agent's catalogue was read again, should the copy be old."""
        self._catalogue.refresh()
        return self._endpoint(self._known())

    def run(self, call: ToolCall) -> Outcome:
        """Forward one call; the endpoint has checked that its row is on offer."""
        settings = self._known()
        row = next(row for row in self._catalogue.rows(shell=True) if row.tool.name == call.name)
        backend = self._backend(row.backend, settings)
        return self._forward.run(row, call, backend, settings.support_bundle_max_bytes)

    def page(self, request: PageRequest) -> Reply:
        """One of the board's own pages."""
        settings = self._known()
        backends = {name: self._backend(name, settings) for name in (AGENT, CONFIG_WEB)}
        return page(request.head, settings.mcp_enabled, backends, wants_token=settings.token is not None)

    def open_session(self, step: OpenSession) -> str:
        raise NotImplementedError("a board has no sessions, its endpoint never opens one")

    def close_session(self, step: CloseSession) -> None:
        raise NotImplementedError("a board has no sessions, its endpoint never ends one")

    def _fetch_catalogue(self) -> BackendResponse:
        return self._backend(AGENT, self._known()).call("GET", "/api/tools", None, CATALOGUE_S)

    def _backend(self, name: str, settings: Settings) -> Backend:
        """The backend at the address of the moment, kept while the address stays."""
        base_url = settings.agent_base_url if name == AGENT else settings.mcp_config_web_base_url
        key = (name, base_url)
        if key not in self._backends:
            self._backends[key] = Backend(name, base_url)
        return self._backends[key]


def _policy(settings: Settings) -> Policy:
    return Policy(
        server=SERVER,
        instructions=INSTRUCTIONS,
        off=None if settings.mcp_enabled else OFF,
        strict_meta=settings.strict_meta,
        pages=PAGES,
        authorise=_bearer_gate(settings.token) if settings.token else None,
    )


def _bearer_gate(token: bytes) -> Callable[[str | None], str | None]:
    def authorise(authorization: str | None) -> str | None:
        return "token" if access.is_one_of(access.bearer(authorization), [token]) else None

    return authorise
