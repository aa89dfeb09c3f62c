"""The console: pages for the person beside the host, on the port of MCP, for whoever has its token.

`build` joins its parts. It shows how things stand now and keeps no history; nothing that it does
waits for a device, so that pages never take the threads that MCP needs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from mcpboard.errors import Refused, UnknownDevice
from mcpboard.host.cloud.worker import CloudStatus
from mcpboard.host.console import forms, responses
from mcpboard.host.console.auth import LoginSessions, visitor_of
from mcpboard.host.console.presenter import Presenter
from mcpboard.host.console.routes import FRAGMENTS, Paths, RouteMatch, find
from mcpboard.host.console.templating import renderer
from mcpboard.host.console.views import ConsoleRequest, Views
from mcpboard.host.devices.manager import DeviceManager
from mcpboard.host.devices.status import StatusSurvey
from mcpboard.protocol.messages import PageRequest, Reply
from mcpboard.protocol.sessions import Session

log = logging.getLogger(__name__)

NO_JINJA2 = (
    "The console needs Jinja2: pip install 'mcpboard[host]' where the host agent runs, then restart it. "
    "MCP is served at /mcp all the same."
)


class Console:
    """Every page of the host. To be closed before its devices are."""

    paths = Paths()

    def __init__(self, views: Views | None, sights: Presenter, logins: LoginSessions) -> None:
        self._views = views
        self._sights = sights
        self._logins = logins

    def page(self, request: PageRequest) -> Reply:
        """The answer to a request whose Origin has been looked at; raises Refused."""
        match = find(request.head.path)
        if match is None:
            raise Refused(404, {"error": "not found: MCP is served at /mcp"})
        if self._views is None:
            return responses.text(NO_JINJA2, 503)
        visit = self._visit(request)
        return self._shut(visit, match, self._views) or self._open(visit, match, self._views, request.body)

    def close(self) -> None:
        """Ask no device any more."""
        self._sights.close()

    def _shut(self, visit: ConsoleRequest, match: RouteMatch, views: Views) -> Reply | None:
        """The answer of the first gate that is shut: the method, then the login."""
        head = visit.head
        if head.method not in match.route.methods:
            return views.wrong_method(visit, match.route.methods)
        if match.route.public or visit.logged_in:
            return None
        if head.path.startswith(FRAGMENTS):
            return responses.log_in_first()
        return views.logged_out(visit) if head.method == "POST" else responses.see_other("/login")

    def _open(self, visit: ConsoleRequest, match: RouteMatch, views: Views, body: bytes) -> Reply:
        try:
            if visit.head.method != "POST":
                return match.get(views, visit)
            form = forms.parse(visit.head.content_type, body)
            if not self._logins.may_write(visit.visitor, form.get("csrf", "")):
                return views.not_our_form(visit)
            return match.post(views, replace(visit, form=form))
        except UnknownDevice as error:
            return views.no_device(visit, error)

    def _visit(self, request: PageRequest) -> ConsoleRequest:
        visitor = visitor_of(request.head.host, request.cookie)
        return ConsoleRequest(request.head, visitor, self._logins.knows(visitor))


def build(
    manager: DeviceManager,
    survey: StatusSurvey,
    sessions: Callable[[], Sequence[Session]],
    folder: Path,
    follow: Callable[[], None],
    is_token: Callable[[str], bool],
    clock: Callable[[], float],
    cloud: Callable[[], CloudStatus] | None = None,
) -> Console:
    """The console over the host's parts; one that says what to install where Jinja2 is missing.

    `folder` holds `devices.json`, and `follow` makes the manager do as that file says; `is_token`
    is true for the token that opens the console. `cloud` is left out on a host that is not enrolled.
    """
    sights = Presenter(manager, survey, sessions, clock, cloud)
    logins = LoginSessions(clock)
    render = renderer()
    if render is None:
        log.info("%s", NO_JINJA2)
        return Console(None, sights, logins)
    return Console(Views(render, sights, logins, folder, follow, is_token), sights, logins)


__all__ = ["Console", "build"]
