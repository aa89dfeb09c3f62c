"""What each address of the console shows and does; who may come in has been looked at before."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcpboard.errors import ConfigError, UnknownDevice
from mcpboard.host.console import auth, responses
from mcpboard.host.console.auth import LoginSessions
from mcpboard.host.console.presenter import ASKING, DeviceSummary, Presenter
from mcpboard.host.console.templating import Renderer, mark
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
    """The pages. `folder` holds `devices.json`, `follow` makes the manager do as it says."""

    def __init__(
        self,
        render: Renderer,
        sights: Presenter,
        logins: LoginSessions,
        folder: Path,
        follow: Callable[[], None],
        is_token: Callable[[str], bool],
    ) -> None:
        self._render = render
        self._sights = sights
        self._logins = logins
        self._folder = folder
        self._follow = follow
        self._is_token = is_token
        self._static = responses.static_files()

    # --- in and out ---

    def login_form(self, visit: ConsoleRequest) -> Reply:
        """Where the token is pasted; on to the dashboard for who has done so."""
        return responses.see_other("/") if visit.logged_in else self._login_page(visit)

    def login(self, visit: ConsoleRequest) -> Reply:
        """Log in with the token; the browser gets a new id."""
        if not self._is_token(visit.form.get("token", "")):
            log.warning("console: a login with a wrong token")
            return self._login_page(visit, 403, wrong=True)
        self._logins.close(visit.visitor or "")
        return responses.see_other("/", auth.cookie(visit.head.host, self._logins.open()))

    def logout(self, visit: ConsoleRequest) -> Reply:
        """Log out, here and not only in the browser."""
        self._logins.close(visit.visitor or "")
        return responses.see_other("/login", auth.no_cookie(visit.head.host))

    def _login_page(self, visit: ConsoleRequest, status: int = 200, wrong: bool = False) -> Reply:
        visitor = visit.visitor or self._logins.visitor()
        seen = ConsoleRequest(visit.head, visitor, logged_in=False)
        return self._page(seen, "login.html", status, auth.cookie(visit.head.host, visitor), wrong=wrong)

    # --- pages ---

    def dashboard(self, visit: ConsoleRequest) -> Reply:
        """Devices, sessions and cloud as they are now."""
        return self._page(visit, "dashboard.html", here="dashboard", live=self._dashboard(visit))

    def devices(self, visit: ConsoleRequest, status: int = 200, refused: str = "") -> Reply:
        """The devices, and the form that adds one."""
        filled = {name: visit.form.get(name, "") for name in FIELDS}
        shown: dict[str, Any] = {"live": self._devices(), "kinds": registry.KINDS, "filled": filled, "refused": refused}
        return self._page(visit, "devices.html", status, here="devices", **shown)

    def device(self, visit: ConsoleRequest, device_id: str) -> Reply:
        """One device, its picture, and what can be done with it."""
        live, picture = self._device(device_id), self._picture(device_id)
        problem = self._not_removable(device_id)
        shown: dict[str, Any] = {"id": device_id, "live": live, "picture": picture, "not_removable": problem}
        return self._page(visit, "device.html", here="devices", **shown)

    def release_form(self, visit: ConsoleRequest, device_id: str) -> Reply:
        """Asks before a hold is ended."""
        return self._page(visit, "release.html", here="dashboard", device=self._sights.device(device_id))

    def remove_form(self, visit: ConsoleRequest, device_id: str) -> Reply:
        """Asks before a device is removed."""
        device, problem = self._sights.device(device_id), self._not_removable(device_id)
        return self._page(visit, "remove.html", here="devices", device=device, not_removable=problem)

    def _not_removable(self, device_id: str) -> str:
        try:
            written = registry.specs(self._folder)
        except ConfigError as error:
            return str(error)
        return "" if any(spec.id == device_id for spec in written) else NOT_WRITTEN

    # --- what changes something ---

    def add(self, visit: ConsoleRequest) -> Reply:
        """Write a device down and take it on; what is wrong with it is told beside the form."""
        given = {name: visit.form[name] for name in FIELDS if visit.form.get(name)}
        try:
            spec = DeviceSpec(given.pop("id", ""), given.pop("kind", ""), **given)
            if spec.id in self._sights.manager.ids():
                raise ConfigError(f"there is a device {spec.id} already; choose another id")
            factory.check(spec)
            registry.add(self._folder, spec)
        except ConfigError as error:
            return self.devices(visit, 400, str(error))
        self._follow()
        return self._done(visit, f"/devices/{spec.id}", f"{spec.id} was added.")

    def test(self, visit: ConsoleRequest, device_id: str) -> Reply:
        """Ask a device how it is; the page shows the answer when it comes."""
        self._sights.ask_again(device_id)
        return self._done(visit, f"/devices/{device_id}", f"{device_id} is being asked; its answer shows below.")

    def release(self, visit: ConsoleRequest, device_id: str) -> Reply:
        """End the hold that was asked about, and no other one."""
        if self._sights.manager.release(device_id, only=visit.form.get("holder", "")):
            return self._done(visit, "/", f"{device_id} was released; a call inside finishes first.")
        return self._done(visit, "/", f"Nothing was released: that hold on {device_id} was over already.")

    def remove(self, visit: ConsoleRequest, device_id: str) -> Reply:
        """Strike a device out and let it go."""
        self._sights.device(device_id)
        problem = self._not_removable(device_id)
        if problem:
            return self._problem(visit, 409, f"{device_id} was not removed", problem)
        try:
            registry.remove(self._folder, device_id)
        except ConfigError as error:  # somebody else was faster
            return self._problem(visit, 409, f"{device_id} was not removed", str(error))
        self._follow()
        return self._done(visit, "/devices", f"{device_id} was removed.")

    def _done(self, visit: ConsoleRequest, path: str, notice: str) -> Reply:
        log.info("console: %s", notice)
        self._logins.tell(visit.visitor or "", notice)
        return responses.see_other(path)

    # --- what the pages poll ---

    def live_dashboard(self, visit: ConsoleRequest, mark: str) -> Reply:
        """The middle of the dashboard."""
        return _unless_known(self._dashboard(visit), mark)

    def live_devices(self, visit: ConsoleRequest, mark: str) -> Reply:
        """The list of devices."""
        return _unless_known(self._devices(), mark)

    def live_device(self, visit: ConsoleRequest, device_id: str, mark: str) -> Reply:
        """State and holder of one device."""
        return _unless_known(self._device(device_id), mark)

    def live_picture(self, visit: ConsoleRequest, device_id: str, mark: str) -> Reply:
        """The frame around a device's picture."""
        return _unless_known(self._picture(device_id), mark)

    def picture(self, visit: ConsoleRequest, device_id: str, mark: str) -> Reply:
        """The picture itself, the newest one whatever `mark` says: that is for the browser."""
        found = self._sights.picture(device_id).picture
        if found is None or found.shot is None:
            return self._problem(visit, 404, "No picture", f"There is no picture of {device_id} at the moment.")
        return responses.picture(found.shot)

    def static(self, visit: ConsoleRequest, file: str) -> Reply:
        """Style sheet, scripts and icon."""
        return self._static.get(file) or self._problem(visit, 404, "Not found", "There is no such file.")

    def _dashboard(self, visit: ConsoleRequest) -> LiveFragment:
        sessions, more = self._sights.mcp()
        devices = self._sights.devices()
        shown: dict[str, Any] = {"devices": devices, "sessions": sessions, "more": more}
        shown |= {"cloud": self._sights.cloud_state(), "url": f"http://{visit.head.host}/mcp"}
        return self._live("live_dashboard.html", "/live/dashboard", shown, _asking(devices))

    def _devices(self) -> LiveFragment:
        devices = self._sights.devices()
        return self._live("live_devices.html", "/live/devices", {"devices": devices}, _asking(devices))

    def _device(self, device_id: str) -> LiveFragment:
        device = self._sights.device(device_id)
        return self._live("live_device.html", f"/live/device/{device_id}", {"device": device}, _asking([device]))

    def _picture(self, device_id: str) -> LiveFragment:
        sight = self._sights.picture(device_id)
        shown = {"id": device_id, "sight": sight}
        soon = sight.picture is None or sight.old_s is not None
        return self._live("live_picture.html", f"/live/picture/{device_id}", shown, soon)

    def _live(self, template: str, path: str, shown: Mapping[str, Any], soon: bool) -> LiveFragment:
        inner = self._render(template, shown)
        name = mark(inner)
        around = {"inner": inner, "path": path, "mark": name, "name": path.strip("/").replace("/", "-"), "soon": soon}
        return LiveFragment(name, self._render("live.html", around))

    # --- refusals, in words ---

    def wrong_method(self, visit: ConsoleRequest, methods: tuple[str, ...]) -> Reply:
        """405."""
        allow = ("Allow", ", ".join(methods))
        return self._problem(visit, 405, "Not this way", f"{visit.head.method} is not served here.", allow)

    def logged_out(self, visit: ConsoleRequest) -> Reply:
        """401 for a form that came without a login."""
        return self._problem(visit, 401, "You are not logged in", "Nothing was changed. Log in and try again.")

    def not_our_form(self, visit: ConsoleRequest) -> Reply:
        """403 for a form that no page of this visitor's sent."""
        words = "Nothing was changed. The form is from an earlier login, or from elsewhere: open the page again."
        return self._problem(visit, 403, "This form is no longer good", words)

    def no_device(self, visit: ConsoleRequest, error: UnknownDevice) -> Reply:
        """404; a poll leaves the page for the list of devices."""
        words = f"The host agent says: {error.message}. It may have been removed meanwhile."
        return self._problem(visit, 404, "No such device", words, ("HX-Redirect", "/devices"))

    def _problem(self, visit: ConsoleRequest, status: int, title: str, words: str, *more: responses.Header) -> Reply:
        return self._page(visit, "problem.html", status, *more, title=title, words=words)

    def _page(
        self, visit: ConsoleRequest, template: str, status: int = 200, *more: responses.Header, **shown: Any
    ) -> Reply:
        around = {
            "here": "",
            "logged_in": visit.logged_in,
            "csrf": self._logins.csrf(visit.visitor or ""),
            "notice": self._logins.told(visit.visitor or ""),
        }
        return responses.html(self._render(template, {**around, **shown}), status, *more)


@dataclass(frozen=True)
class LiveFragment:
    """A part of a page that keeps itself up to date, and the name of its state."""

    mark: str
    html: str


def _unless_known(live: LiveFragment, mark: str) -> Reply:
    return responses.nothing_new() if live.mark == mark else responses.html(live.html)


def _asking(devices: Iterable[DeviceSummary]) -> bool:
    return any(device.state == ASKING for device in devices)
