"""The view of each address of the console; access has been checked before."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from werkzeug.exceptions import MethodNotAllowed, NotFound
from werkzeug.utils import redirect, send_from_directory
from werkzeug.wrappers import Request, Response

from mcpboard.errors import ConfigError
from mcpboard.host.console.auth import LoginSessions, new_id, set_visitor, visitor_of
from mcpboard.host.console.presenter import ASKING, Presenter, Row
from mcpboard.host.console.routes import url_for
from mcpboard.host.console.templating import LiveFragment, Renderer, live_fragment
from mcpboard.host.devices import registry
from mcpboard.host.devices.registry import DeviceSpec
from mcpboard.host.drivers import factory

log = logging.getLogger(__name__)

FIELDS = ("id", "kind", "url", "serial", "interface")  # of the form that adds a device
NOT_WRITTEN = "It is in no file: the agent was started with it, or found it plugged in. So it cannot be removed here."

STATIC = Path(__file__).parent / "static"
# Told here: the tables of some systems have a script as text/plain, which browsers then do not run.
STATIC_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
STATIC_AGE = "max-age=3600"  # seconds; the URL in a page has our version


@dataclass
class Views:
    """The pages. `folder` holds `devices.json`, `follow` makes the manager do as it says.

    `token_command` is a line for a shell that prints the token which opens the console.
    """

    render: Renderer
    presenter: Presenter
    logins: LoginSessions
    folder: Path
    follow: Callable[[], None]
    is_token: Callable[[str], bool]
    token_command: str

    # --- in and out ---

    def login_form(self, request: Request, wrong: bool = False) -> Response:
        """Show where the token is pasted; go on to the dashboard for who has done so, unless the token was `wrong`."""
        known = visitor_of(request)
        if self.logins.knows(known) and not wrong:
            return redirect(url_for("dashboard"), 303)
        visitor, status = known or new_id(), 403 if wrong else 200
        context: dict[str, Any] = {"logged_in": False, "csrf": self.logins.csrf(visitor), "wrong": wrong}
        page = self._page(request, "login.html", status, token_command=self.token_command, **context)
        if known is None:
            set_visitor(request, page, visitor)
        return page

    def login(self, request: Request) -> Response:
        """Log in with the token; the browser gets a new id."""
        if not self.is_token(request.form.get("token", "").strip()):
            self.logins.note_wrong()
            return self.login_form(request, wrong=True)
        self.logins.close(visitor_of(request) or "")
        response = redirect(url_for("dashboard"), 303)
        set_visitor(request, response, self.logins.open())
        return response

    def logout(self, request: Request) -> Response:
        """Log out, here and not only in the browser."""
        self.logins.close(visitor_of(request) or "")
        response = redirect(url_for("login_form"), 303)
        set_visitor(request, response, None)
        return response

    # --- pages ---

    def dashboard(self, request: Request) -> Response:
        """Show devices, sessions and cloud as they are now."""
        return self._page(request, "dashboard.html", here="dashboard", live=self.dashboard_fragment(request))

    def devices(self, request: Request, filled: Mapping[str, str] | None = None, refused: str = "") -> Response:
        """Show the devices, and the form that adds one, `filled` with what was `refused`."""
        context: dict[str, Any] = {"live": self.devices_fragment(request), "kinds": registry.KINDS, "refused": refused}
        context["filled"] = {name: (filled or {}).get(name, "") for name in FIELDS}
        return self._page(request, "devices.html", 400 if refused else 200, here="devices", **context)

    def device(self, request: Request, device_id: str) -> Response:
        """Show one device, its screenshot, and what can be done with it."""
        context: dict[str, Any] = {"id": device_id, "live": self.device_fragment(request, device_id)}
        context["screenshot"] = self.screenshot_fragment(request, device_id)
        context["not_removable"] = self._not_removable(device_id)
        return self._page(request, "device.html", here="devices", **context)

    def release_form(self, request: Request, device_id: str) -> Response:
        """Ask before a lease is ended."""
        return self._page(request, "release.html", here="dashboard", device=self.presenter.device(device_id))

    def remove_form(self, request: Request, device_id: str) -> Response:
        """Ask before a device is removed."""
        device, problem = self.presenter.device(device_id), self._not_removable(device_id)
        return self._page(request, "remove.html", here="devices", device=device, not_removable=problem)

    def _not_removable(self, device_id: str) -> str:
        try:
            written = registry.specs(self.folder)
        except ConfigError as error:
            return str(error)
        return "" if any(spec.id == device_id for spec in written) else NOT_WRITTEN

    # --- what changes something ---

    def add(self, request: Request) -> Response:
        """Write a device down and take it on; what is wrong with it is shown beside the form."""
        fields = {name: value for name in FIELDS if (value := request.form.get(name, "").strip())}
        try:
            spec = DeviceSpec(fields.pop("id", ""), fields.pop("kind", ""), **fields)
            if spec.id in self.presenter.manager.ids():
                raise ConfigError(f"there is a device {spec.id} already; choose another id")
            factory.check(spec)
            registry.add(self.folder, spec)
        except ConfigError as error:
            return self.devices(request, request.form, str(error))
        self.follow()
        return self._done(request, url_for("device", device_id=spec.id), f"{spec.id} was added.")

    def test(self, request: Request, device_id: str) -> Response:
        """Ask a device how it is; the page shows the answer when it comes."""
        self.presenter.ask_again(device_id)
        url = url_for("device", device_id=device_id)
        return self._done(request, url, f"{device_id} is being asked; its answer shows below.")

    def release(self, request: Request, device_id: str) -> Response:
        """End the lease that was asked about, and no other one."""
        message = f"Nothing was released: {device_id} was no longer in use by that client."
        if self.presenter.manager.release(device_id, only=request.form.get("owner", "")):
            message = f"{device_id} was released; a call inside finishes first."
        return self._done(request, url_for("dashboard"), message)

    def remove(self, request: Request, device_id: str) -> Response:
        """Strike a device out and let it go."""
        self.presenter.device(device_id)
        try:
            if problem := self._not_removable(device_id):
                raise ConfigError(problem)
            registry.remove(self.folder, device_id)
        except ConfigError as error:  # somebody else was faster, perhaps
            return self.problem(request, 409, f"{device_id} was not removed", str(error))
        self.follow()
        return self._done(request, url_for("devices"), f"{device_id} was removed.")

    def _done(self, request: Request, url: str, message: str) -> Response:
        log.info("console: %s", message)
        self.logins.set_flash(visitor_of(request) or "", message)
        return redirect(url, 303)

    # --- what the pages load and poll ---

    def dashboard_fragment(self, request: Request) -> LiveFragment:
        """Return the middle of the dashboard."""
        devices = self.presenter.devices()
        sessions, more = self.presenter.mcp_sessions()
        context: dict[str, Any] = {"devices": devices, "sessions": sessions, "more": more}
        context["cloud"] = self.presenter.cloud and self.presenter.cloud()
        context |= {"url": f"http://{request.host}/mcp", "token_command": self.token_command}
        return live_fragment(self.render, "dashboard", _asking(devices), context)

    def devices_fragment(self, request: Request) -> LiveFragment:
        """Return the list of devices."""
        devices = self.presenter.devices()
        return live_fragment(self.render, "devices", _asking(devices), {"devices": devices})

    def device_fragment(self, request: Request, device_id: str) -> LiveFragment:
        """Return state and owner of one device."""
        device = self.presenter.device(device_id)
        return live_fragment(self.render, "device", _asking([device]), {"device": device}, device_id=device_id)

    def screenshot_fragment(self, request: Request, device_id: str) -> LiveFragment:
        """Return the frame around a device's screenshot."""
        screenshot, old_s = self.presenter.screenshot(device_id)
        context = {"id": device_id, "screenshot": screenshot, "old_s": old_s}
        soon = screenshot is None or old_s is not None
        return live_fragment(self.render, "screenshot", soon, context, device_id=device_id)

    def screenshot(self, request: Request, device_id: str) -> Response:
        """Return the screenshot itself, the newest one whatever mark the URL has: that is for the browser's cache."""
        found, _ = self.presenter.screenshot(device_id)
        if found is None or found.image is None:
            message = f"There is no screenshot of {device_id} at the moment."
            return self.problem(request, 404, "No screenshot", message)
        return Response(found.image.content, mimetype=found.image.mime)

    def static(self, request: Request, file: str) -> Response:
        """Return a stylesheet, script or icon."""
        mimetype = STATIC_TYPES.get(Path(file).suffix)
        if mimetype is None:
            raise NotFound
        response = send_from_directory(STATIC, file, request.environ, mimetype=mimetype)
        response.headers["Cache-Control"] = STATIC_AGE
        return response

    # --- whole pages ---

    def problem(self, request: Request, status: int, title: str, message: str) -> Response:
        """Return a page that says why something was not done."""
        return self._page(request, "problem.html", status, title=title, message=message)

    def method_not_allowed(self, request: Request, error: MethodNotAllowed) -> Response:
        """Return the page for an address that somebody has typed though it is for forms, or the other way round."""
        page = self.problem(
            request, 405, "Not this way", f"{request.method} is not served here. MCP is served at /mcp."
        )
        page.headers["Allow"] = ", ".join(sorted(error.valid_methods or ()))
        return page

    def _page(self, request: Request, template: str, status: int = 200, **context: Any) -> Response:
        visitor, logins = visitor_of(request) or "", self.logins
        common = {"here": "", "logged_in": logins.knows(visitor), "csrf": logins.csrf(visitor)}
        html = self.render(template, {**common, "flash": logins.take_flash(visitor), **context})
        return Response(html, status, mimetype="text/html")


def _asking(devices: Iterable[Row]) -> bool:
    return any(device["state"] == ASKING for device in devices)
