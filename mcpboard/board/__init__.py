"""Role 1: MCP in front of the board's loopback APIs. `build` is the only place where its parts are joined."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from mcpboard import __version__
from mcpboard.board.backend import Backend
from mcpboard.board.forward import LANE_CAPACITY, Forwarder
from mcpboard.board.lanes import Lanes
from mcpboard.board.live_schemas import Catalog
from mcpboard.board.pages import States, health, home
from mcpboard.board.tools import AGENT, CONFIG_WEB, BoardTool
from mcpboard.config.board import Settings
from mcpboard.protocol import access
from mcpboard.protocol.endpoint import Endpoint
from mcpboard.protocol.messages import CloseSession, OpenSession, Outcome, Policy, Reply, RequestHead, ToolCall
from mcpboard.protocol.tools import ToolList
from mcpboard.serving.app import Application, page_rules
from mcpboard.serving.concurrency import ConcurrencyLimit
from mcpboard.serving.undelivered import UndeliveredOutcomes

CATALOG_S = 1.0  # seconds that tools/list may wait for the Agent's schemas

SERVER = {"name": "mcpboard", "title": "Phone board", "version": __version__}
DISABLED = "MCP is disabled on this board (mcp_enabled = false)"

INSTRUCTIONS = """\
You see and drive one real phone. Look first: screenshot shows the screen. \
Positions are normalized: x and y run from 0 to 1000 over the screenshot, left to right and top to \
bottom, whatever its size in pixels. Act with touch_gesture, enter_text, keyboard_tap, quick_action \
(home, back, app_switch), open_app or open_url: most answer with a screenshot taken afterwards, so \
read it before you go on. After an animation call wait_for_stable_screen. One action runs at a time. \
An error of an action says what became of it as `delivery`: not_sent may be called again, done must not, \
unknown means take a screenshot before you decide. Never repeat an action blindly: it would happen twice. \
open_url and bridge_clipboard need the phone's companion app; phone_bridge_status tells whether it is there.\
"""


def build(current: Callable[[], Settings]) -> Application:
    """Return the WSGI application of the board role; `current` gives the settings of the moment without waiting."""
    board = Board(current, Forwarder(Lanes(LANE_CAPACITY), UndeliveredOutcomes()))
    limit = ConcurrencyLimit(sum(LANE_CAPACITY.values()))
    return Application(board.role, limit, *page_rules({"/": board.home, "/health": board.health}))


class Board:
    """The parts that stay when settings change, and the role under those of the moment."""

    def __init__(self, current: Callable[[], Settings], forward: Forwarder) -> None:
        self.forward = forward
        self.catalog = Catalog(time.monotonic)
        self._current = current
        self._backends: dict[tuple[str, str], Backend] = {}
        self._role: BoardRole | None = None

    def role(self) -> BoardRole:
        """Return the role under the settings of this moment; a new one only when they changed."""
        settings = self._current()
        role = self._role
        if role is None or role.settings is not settings:
            self._role = role = BoardRole(self, settings)
        return role

    def backend(self, name: str, settings: Settings) -> Backend:
        """Return the backend at the address in `settings`, kept with what it remembers while the address stays."""
        base_url = settings.agent_base_url if name == AGENT else settings.mcp_config_web_base_url
        key = (name, base_url)
        if key not in self._backends:
            self._backends[key] = Backend(name, base_url)
        return self._backends[key]

    def home(self, head: RequestHead) -> Reply:
        """Return the page for people; raises Refused where Host is no address."""
        settings = self._current()
        return home(head.host, settings.mcp_enabled, self._states(settings), settings.token is not None)

    def health(self, head: RequestHead) -> Reply:
        """Return the page for programs."""
        settings = self._current()
        return health(settings.mcp_enabled, self._states(settings))

    def _states(self, settings: Settings) -> States:
        return {name: self.backend(name, settings).state() for name in (AGENT, CONFIG_WEB)}


class BoardRole:
    """The board under one set of settings: what a request begins with is what all of it goes by."""

    def __init__(self, board: Board, settings: Settings) -> None:
        self.settings = settings
        self._board = board
        self._policy = Policy(
            server=SERVER,
            instructions=INSTRUCTIONS,
            disabled=None if settings.mcp_enabled else ": ".join(filter(None, (DISABLED, settings.mcp_fault))),
            strict_meta=settings.strict_meta,
            authorize=partial(_authorize, settings.token) if settings.token else None,
        )
        self._made: tuple[tuple[BoardTool, ...], Endpoint] | None = None

    def endpoint(self) -> Endpoint:
        """Return the endpoint for the tools of this moment; a new one only when they changed."""
        rows = self._board.catalog.rows(self.settings.mcp_shell_enabled)
        made = self._made
        if made is None or made[0] is not rows:
            self._made = made = (rows, Endpoint(self._policy, ToolList([row.tool for row in rows])))
        return made[1]

    def refreshed_endpoint(self) -> Endpoint:
        """Return the endpoint after the Agent's catalog was read again, should the copy be old."""
        agent = self._board.backend(AGENT, self.settings)
        self._board.catalog.refresh(lambda: agent.call("GET", "/api/tools", None, CATALOG_S))
        return self.endpoint()

    def run(self, call: ToolCall) -> Outcome:
        """Forward one call; the endpoint has checked that its row is on offer."""
        row = next(row for row in self._board.catalog.rows(shell=True) if row.tool.name == call.name)
        backend = self._board.backend(row.backend, self.settings)
        return self._board.forward.run(row, call, backend, self.settings.support_bundle_max_bytes)

    def open_session(self, step: OpenSession) -> str:
        raise NotImplementedError("a board has no sessions, its endpoint never opens one")

    def close_session(self, step: CloseSession) -> None:
        raise NotImplementedError("a board has no sessions, its endpoint never ends one")


def _authorize(token: bytes, authorization: str | None) -> str | None:
    return "token" if access.is_one_of(access.bearer(authorization), [token]) else None
