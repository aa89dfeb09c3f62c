"""The console: pages for the person beside the host, on the port of MCP, for whoever has its token.

`build` joins its parts. It shows how things stand now and keeps no history; nothing that it does
waits for a device, so that pages never take the threads that MCP needs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

from werkzeug.utils import redirect
from werkzeug.wrappers import Request, Response

from mcpboard.errors import UnknownDevice
from mcpboard.host.access.tokens import Tokens
from mcpboard.host.console.auth import LoginSessions, visitor_of
from mcpboard.host.console.presenter import Presenter
from mcpboard.host.console.routes import FRAGMENT, PUBLIC, URL_MAP, check_form, url_for
from mcpboard.host.console.templating import LiveFragment, renderer
from mcpboard.host.console.views import Views
from mcpboard.serving.app import View

log = logging.getLogger(__name__)

NO_JINJA2 = (
    "The console needs Jinja2: pip install 'mcpboard[host]' where the host agent runs, then restart it. "
    "MCP is served at /mcp all the same."
)
NOT_LOGGED_IN = "Nothing was changed. Log in and try again."
FOREIGN_FORM = "Nothing was changed. The form is from an earlier login, or from elsewhere: open the page again."

# What every response of ours has, unless its view says otherwise.
HEADERS = (
    ("Cache-Control", "no-store"),  # it is nobody else's business
    # Nothing from elsewhere, nothing inline: whatever gets into a page by way of a name, it stays text.
    (
        "Content-Security-Policy",
        "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    ("X-Content-Type-Options", "nosniff"),
    # Not `no-referrer`, under which browsers send `Origin: null` with our own forms.
    ("Referrer-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)


@dataclass
class Console:
    """Every page of the host. To be closed before its devices are."""

    presenter: Presenter
    logins: LoginSessions
    pages: Views | None

    def views(self) -> Mapping[str | int, View]:
        """Return the view of each endpoint of URL_MAP, and that of the one error which is shown as a page."""
        endpoints = [rule.endpoint for rule in URL_MAP.iter_rules()]
        return {each: partial(self._respond, each) for each in (*endpoints, HTTPStatus.METHOD_NOT_ALLOWED)}

    def sweep(self) -> None:
        """Log what was too much for lines of its own; to be called every few seconds."""
        self.logins.report()

    def close(self) -> None:
        """Ask no device any more."""
        self.presenter.close()

    def _respond(self, endpoint: str | int, request: Request, **values: Any) -> Response:
        """Return the response of the view of that endpoint, with the headers that keep it to itself."""
        if self.pages is None:
            response = Response(f"{NO_JINJA2}\n", 503)
        elif isinstance(endpoint, int):
            response = self.pages.method_not_allowed(request, **values)
        else:
            response = self._check_and_call(self.pages, endpoint, request, **values)
        for name, value in HEADERS:
            response.headers.setdefault(name, value)
        return response

    def _check_and_call(self, views: Views, endpoint: str, request: Request, mark: str = "", **values: str) -> Response:
        """Check the login, the form and its CSRF token, in this order, and call the view."""
        visitor = visitor_of(request)
        if endpoint not in PUBLIC and not self.logins.knows(visitor):
            login = url_for("login_form")
            if endpoint.endswith(FRAGMENT):
                return Response(status=401, headers={"HX-Redirect": login})  # the script opens the login page
            if request.method != "POST":
                return redirect(login, 303)
            return views.problem(request, 401, "You are not logged in", NOT_LOGGED_IN)
        if request.method not in ("GET", "HEAD"):
            check_form(request)
            if not self.logins.may_write(visitor, request.form.get("csrf", "")):
                return views.problem(request, 403, "This form is no longer good", FOREIGN_FORM)
        try:
            shown: Response | LiveFragment = getattr(views, endpoint)(request, **values)
        except UnknownDevice as error:
            message = f"The host agent says: {error.message}. It may have been removed meanwhile."
            page = views.problem(request, 404, "No such device", message)
            page.headers["HX-Redirect"] = url_for("devices")  # a poll leaves the page for the list of devices
            return page
        if not isinstance(shown, LiveFragment):
            return shown
        return Response(status=204) if shown.mark == mark else Response(shown.html, mimetype="text/html")


def build(
    presenter: Presenter, tokens: Tokens, folder: Path, follow: Callable[[], None], token_command: str
) -> Console:
    """Return the console over the host's parts; one that says what to install where Jinja2 is missing.

    `folder` holds `devices.json`, and `follow` makes the manager do as that file says; `token_command`
    is a line for a shell that prints the main token, which opens the console. A login ends with its token.
    """
    logins, render = LoginSessions(presenter.clock, tokens.main_principal), renderer()
    if render is None:
        log.info("%s", NO_JINJA2)
        return Console(presenter, logins, None)
    return Console(presenter, logins, Views(render, presenter, logins, folder, follow, tokens.is_main, token_command))


__all__ = ["URL_MAP", "Console", "Presenter", "build"]
