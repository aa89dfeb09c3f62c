"""The console: pages for the person beside the host, on the port of MCP, for whoever has its token.

`build` joins its parts. It shows how things stand now and keeps no history; nothing that it does
waits for a device, so that pages never take the threads that MCP needs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from werkzeug.routing import Map, Rule
from werkzeug.wrappers import Request, Response

from mcpboard.errors import Refused, UnknownDevice
from mcpboard.host.cloud.worker import CloudStatus
from mcpboard.host.console.auth import LoginSessions, WrongLogins, visitor_of
from mcpboard.host.console.presenter import Presenter
from mcpboard.host.console.responses import TEXT, html, response, see_other
from mcpboard.host.console.routes import FRAGMENTS, RouteMatch, find, parse_form
from mcpboard.host.console.templating import LiveFragment, renderer
from mcpboard.host.console.views import ConsoleRequest, Views
from mcpboard.host.devices.manager import DeviceManager
from mcpboard.host.devices.status import DeviceStatuses
from mcpboard.protocol.limits import BODY_LIMIT
from mcpboard.protocol.messages import Reply
from mcpboard.protocol.sessions import Session
from mcpboard.serving.app import head_of, response_of

log = logging.getLogger(__name__)

NO_JINJA2 = (
    "The console needs Jinja2: pip install 'mcpboard[host]' where the host agent runs, then restart it. "
    "MCP is served at /mcp all the same."
)
NOT_LOGGED_IN = "Nothing was changed. Log in and try again."
FOREIGN_FORM = "Nothing was changed. The form is from an earlier login, or from elsewhere: open the page again."


class Console:
    """Every page of the host. To be closed before its devices are."""

    def __init__(
        self, views: Views | None, presenter: Presenter, logins: LoginSessions, wrong_logins: WrongLogins
    ) -> None:
        self._views = views
        self._presenter = presenter
        self._logins = logins
        self._wrong_logins = wrong_logins

    def pages(self) -> Map:
        """Return the addresses of the console, with its views."""
        return Map([Rule("/", endpoint=self._page), Rule("/<path:rest>", endpoint=self._page)])

    def _page(self, request: Request, rest: str = "") -> Response:
        head = head_of(request)
        match = find(request.path)
        if match is None:
            raise Refused(404, {"error": "not found: MCP is served at /mcp"})
        if self._views is None:
            return response_of(response(503, TEXT, content=f"{NO_JINJA2}\n".encode()))
        request.max_content_length = BODY_LIMIT
        visitor = visitor_of(head.host, request.environ.get("HTTP_COOKIE"))
        console_request = ConsoleRequest(head, visitor, self._logins.knows(visitor))
        shown = response_of(self._respond(self._views, match, console_request, request.path, request.get_data()))
        if shown.status_code == 200:
            shown.add_etag()
            shown.make_conditional(request.environ)
        return shown

    def sweep(self) -> None:
        """Log what was too much for lines of its own; to be called every few seconds."""
        self._wrong_logins.report()

    def close(self) -> None:
        """Ask no device any more."""
        self._presenter.close()

    def _respond(self, views: Views, match: RouteMatch, request: ConsoleRequest, path: str, body: bytes) -> Reply:
        """Check the method, the login and the CSRF token, in this order, and call the view."""
        method, route = request.head.method, match.route
        if method not in route.methods:
            allow = ("Allow", ", ".join(route.methods))
            return views.problem(request, 405, "Not this way", f"{method} is not served here.", allow)
        if not (route.public or request.logged_in):
            if path.startswith(FRAGMENTS):
                return response(401, ("HX-Redirect", "/login"))  # the script opens the login page
            if method != "POST":
                return see_other("/login")
            return views.problem(request, 401, "You are not logged in", NOT_LOGGED_IN)
        if method == "POST":
            form = parse_form(request.head.content_type, body)
            if not self._logins.may_write(request.visitor, form.get("csrf", "")):
                return views.problem(request, 403, "This form is no longer good", FOREIGN_FORM)
            request = replace(request, form=form)
        view = route.post if method == "POST" else route.get
        assert view is not None  # the method is one of the route's
        try:
            shown = view(views, request, **match.parts)
        except UnknownDevice as error:  # a poll leaves the page for the list of devices
            message = f"The host agent says: {error.message}. It may have been removed meanwhile."
            return views.problem(request, 404, "No such device", message, ("HX-Redirect", "/devices"))
        if not isinstance(shown, LiveFragment):
            return shown
        return response(204) if shown.mark == match.mark else html(shown.html)


def build(
    manager: DeviceManager,
    statuses: DeviceStatuses,
    sessions: Callable[[], Sequence[Session]],
    folder: Path,
    follow: Callable[[], None],
    is_token: Callable[[str], bool],
    clock: Callable[[], float],
    cloud: Callable[[], CloudStatus] | None = None,
    token_command: str = "device-host-agent mcp-token",
    principal: Callable[[], str] = str,
) -> Console:
    """Return the console over the host's parts; one that says what to install where Jinja2 is missing.

    `folder` holds `devices.json`, and `follow` makes the manager do as that file says; `is_token`
    is true for the token that opens the console, which `token_command` prints in a shell, and
    `principal` returns the id of who has it: a login ends with its token. `cloud` is left out on a host
    that is not enrolled.
    """
    presenter = Presenter(manager, statuses, sessions, clock, cloud)
    logins, wrong_logins = LoginSessions(clock, principal), WrongLogins(clock)
    render = renderer()
    if render is None:
        log.info("%s", NO_JINJA2)
        return Console(None, presenter, logins, wrong_logins)
    views = Views(render, presenter, logins, folder, follow, is_token, token_command, wrong_logins)
    return Console(views, presenter, logins, wrong_logins)


__all__ = ["Console", "build"]
