"""The view of each address of the console; access has been checked before."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcpboard.errors import ConfigError
from mcpboard.host.console import auth
from mcpboard.host.console.auth import LoginSessions, WrongLogins
from mcpboard.host.console.presenter import ASKING, DeviceSummary, Presenter
from mcpboard.host.console.responses import Header, html, response, see_other, static_files
from mcpboard.host.console.templating import LiveFragment, Renderer, live_fragment
from mcpboard.host.devices import registry
from mcpboard.host.devices.registry import DeviceSpec
from mcpboard.host.drivers import factory
from mcpboard.protocol.messages import Reply, RequestHead

log = logging.getLogger(__name__)

FIELDS = ("id", "kind", "url", "serial", "interface")  # of the form that adds a device
NOT_WRITTEN = "It is in no file: the agent was started with it, or found it plugged in. So it cannot be removed here."


@dataclass(frozen=True)
class ConsoleRequest:
    """One request: its head, whose it is, and the form that came with it."""

    head: RequestHead
    visitor: str | None = field(repr=False)  # the id in the cookie
    logged_in: bool
    form: Mapping[str, str] = field(default_factory=dict, repr=False)


class Views:
    """The pages. `folder` holds `devices.json`, `follow` makes the manager do as it says.

    `token_command` is a line for a shell that prints the token which opens the console.
    """

    def __init__(
        self,
        render: Renderer,
        presenter: Presenter,
        logins: LoginSessions,
        folder: Path,
        follow: Callable[[], None],
        is_token: Callable[[str], bool],
        token_command: str,
        wrong_logins: WrongLogins,
    ) -> None:
        self._render = render
        self._presenter = presenter
        self._logins = logins
        self._folder = folder
        self._follow = follow
        self._is_token = is_token
        self._wrong_logins = wrong_logins
        self._token_command = token_command
        self._static = static_files()

    # --- in and out ---

    def login_form(self, request: ConsoleRequest, wrong: bool = False) -> Reply:
        """Show where the token is pasted; go on to the dashboard for who has done so, unless the token was `wrong`."""
        if request.logged_in and not wrong:
            return see_other("/")
        visitor = request.visitor or auth.new_id()
        anonymous = ConsoleRequest(request.head, visitor, logged_in=False)
        cookie = auth.set_cookie(request.head.host, visitor)
        context = {"wrong": wrong, "token_command": self._token_command}
        return self._page(anonymous, "login.html", 403 if wrong else 200, cookie, **context)

    def login(self, request: ConsoleRequest) -> Reply:
        """Log in with the token; the browser gets a new id."""
        if not self._is_token(request.form.get("token", "")):
            self._wrong_logins.note()
            return self.login_form(request, wrong=True)
        self._logins.close(request.visitor or "")
        return see_other("/", auth.set_cookie(request.head.host, self._logins.open()))

    def logout(self, request: ConsoleRequest) -> Reply:
        """Log out, here and not only in the browser."""
        self._logins.close(request.visitor or "")
        return see_other("/login", auth.set_cookie(request.head.host, None))

    # --- pages ---

    def dashboard(self, request: ConsoleRequest) -> Reply:
        """Show devices, sessions and cloud as they are now."""
        return self._page(request, "dashboard.html", here="dashboard", live=self.dashboard_fragment(request))

    def devices(self, request: ConsoleRequest, refused: str = "") -> Reply:
        """Show the devices, and the form that adds one, with what was `refused` in it."""
        context: dict[str, Any] = {"live": self.devices_fragment(request), "kinds": registry.KINDS, "refused": refused}
        context["filled"] = {name: request.form.get(name, "") for name in FIELDS}
        return self._page(request, "devices.html", 400 if refused else 200, here="devices", **context)

    def device(self, request: ConsoleRequest, device_id: str) -> Reply:
        """Show one device, its screenshot, and what can be done with it."""
        context: dict[str, Any] = {"id": device_id, "live": self.device_fragment(request, device_id)}
        context["screenshot"] = self.screenshot_fragment(request, device_id)
        context["not_removable"] = self._not_removable(device_id)
        return self._page(request, "device.html", here="devices", **context)

    def release_form(self, request: ConsoleRequest, device_id: str) -> Reply:
        """Ask before a lease is ended."""
        return self._page(request, "release.html", here="dashboard", device=self._presenter.device(device_id))

    def remove_form(self, request: ConsoleRequest, device_id: str) -> Reply:
        """Ask before a device is removed."""
        device, problem = self._presenter.device(device_id), self._not_removable(device_id)
        return self._page(request, "remove.html", here="devices", device=device, not_removable=problem)

    def _not_removable(self, device_id: str) -> str:
        try:
            written = registry.specs(self._folder)
        except ConfigError as error:
            return str(error)
        return "" if any(spec.id == device_id for spec in written) else NOT_WRITTEN

    # --- what changes something ---

    def add(self, request: ConsoleRequest) -> Reply:
        """Write a device down and take it on; what is wrong with it is shown beside the form."""
        fields = {name: request.form[name] for name in FIELDS if request.form.get(name)}
        try:
            spec = DeviceSpec(fields.pop("id", ""), fields.pop("kind", ""), **fields)
            if spec.id in self._presenter.manager.ids():
                raise ConfigError(f"there is a device {spec.id} already; choose another id")
            factory.check(spec)
            registry.add(self._folder, spec)
        except ConfigError as error:
            return self.devices(request, str(error))
        self._follow()
        return self._done(request, f"/devices/{spec.id}", f"{spec.id} was added.")

    def test(self, request: ConsoleRequest, device_id: str) -> Reply:
        """Ask a device how it is; the page shows the answer when it comes."""
        self._presenter.ask_again(device_id)
        return self._done(request, f"/devices/{device_id}", f"{device_id} is being asked; its answer shows below.")

    def release(self, request: ConsoleRequest, device_id: str) -> Reply:
        """End the lease that was asked about, and no other one."""
        if self._presenter.manager.release(device_id, only=request.form.get("owner", "")):
            return self._done(request, "/", f"{device_id} was released; a call inside finishes first.")
        return self._done(request, "/", f"Nothing was released: {device_id} was no longer in use by that client.")

    def remove(self, request: ConsoleRequest, device_id: str) -> Reply:
        """Strike a device out and let it go."""
        self._presenter.device(device_id)
        problem = self._not_removable(device_id)
        if not problem:
            try:
                registry.remove(self._folder, device_id)
            except ConfigError as error:  # somebody else was faster
                problem = str(error)
        if problem:
            return self.problem(request, 409, f"{device_id} was not removed", problem)
        self._follow()
        return self._done(request, "/devices", f"{device_id} was removed.")

    def _done(self, request: ConsoleRequest, path: str, message: str) -> Reply:
        log.info("console: %s", message)
        self._logins.set_flash(request.visitor or "", message)
        return see_other(path)

    # --- what the pages load and poll ---

    def dashboard_fragment(self, request: ConsoleRequest) -> LiveFragment:
        """Return the middle of the dashboard."""
        devices = self._presenter.devices()
        sessions, more = self._presenter.mcp_sessions()
        context: dict[str, Any] = {"devices": devices, "sessions": sessions, "more": more}
        context["cloud"] = self._presenter.cloud and self._presenter.cloud()
        context |= {"url": f"http://{request.head.host}/mcp", "token_command": self._token_command}
        return live_fragment(self._render, "live_dashboard.html", "/live/dashboard", _asking(devices), context)

    def devices_fragment(self, request: ConsoleRequest) -> LiveFragment:
        """Return the list of devices."""
        devices = self._presenter.devices()
        return live_fragment(self._render, "live_devices.html", "/live/devices", _asking(devices), {"devices": devices})

    def device_fragment(self, request: ConsoleRequest, device_id: str) -> LiveFragment:
        """Return state and owner of one device."""
        device = self._presenter.device(device_id)
        return live_fragment(
            self._render, "live_device.html", f"/live/device/{device_id}", _asking([device]), {"device": device}
        )

    def screenshot_fragment(self, request: ConsoleRequest, device_id: str) -> LiveFragment:
        """Return the frame around a device's screenshot."""
        state = self._presenter.screenshot(device_id)
        context = {"id": device_id, "screenshot": state.screenshot, "old_s": state.old_s}
        soon = state.screenshot is None or state.old_s is not None
        return live_fragment(self._render, "live_screenshot.html", f"/live/screenshot/{device_id}", soon, context)

    def screenshot(self, request: ConsoleRequest, device_id: str) -> Reply:
        """Return the screenshot itself, the newest one whatever mark the URL has: that is for the browser's cache."""
        found = self._presenter.screenshot(device_id).screenshot
        if found is None or found.image is None:
            message = f"There is no screenshot of {device_id} at the moment."
            return self.problem(request, 404, "No screenshot", message)
        return response(200, ("Content-Type", found.image.mime), content=found.image.content)

    def static(self, request: ConsoleRequest, file: str) -> Reply:
        """Return a stylesheet, script or icon."""
        return self._static.get(file) or self.problem(request, 404, "Not found", "There is no such file.")

    # --- whole pages ---

    def problem(self, request: ConsoleRequest, status: int, title: str, message: str, *headers: Header) -> Reply:
        """Return a page that says why something was not done."""
        return self._page(request, "problem.html", status, *headers, title=title, message=message)

    def _page(
        self, request: ConsoleRequest, template: str, status: int = 200, *headers: Header, **context: Any
    ) -> Reply:
        common = {
            "here": "",
            "logged_in": request.logged_in,
            "csrf": self._logins.csrf(request.visitor or ""),
            "flash": self._logins.take_flash(request.visitor or ""),
        }
        return html(self._render(template, {**common, **context}), status, *headers)


def _asking(devices: Iterable[DeviceSummary]) -> bool:
    return any(device.state == ASKING for device in devices)
