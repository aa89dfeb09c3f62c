"""Every address of the console, a row each."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from mcpboard.host.console.views import ConsoleRequest, Views
from mcpboard.protocol.messages import Reply

View = Callable[..., Reply]
FRAGMENTS = "/live/"  # what the pages poll


@dataclass(frozen=True)
class Route:
    """One address: what a GET shows, what a POST does, and whether that needs no login."""

    path: str  # <id> is a device's, <mark> the state of a fragment that the browser has
    get: View | None = None
    post: View | None = None
    public: bool = False
    pattern: re.Pattern[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        pattern = self.path.replace("<id>", "(?P<device_id>[A-Za-z0-9._-]{1,64})")
        pattern = pattern.replace("<mark>", "(?P<mark>[0-9a-z]{1,16})")
        pattern = pattern.replace("<file>", "(?P<file>[a-z][a-z0-9.]{1,32})")
        object.__setattr__(self, "pattern", re.compile(pattern, re.ASCII))

    @property
    def methods(self) -> tuple[str, ...]:
        """The HTTP methods that it answers."""
        return (*(("GET", "HEAD") if self.get else ()), *(("POST",) if self.post else ()))


ROUTES = (
    Route("/", Views.dashboard),
    Route("/login", Views.login_form, Views.login, public=True),
    Route("/logout", post=Views.logout),
    Route("/devices", Views.devices, Views.add),
    Route("/devices/<id>", Views.device),
    Route("/devices/<id>/picture/<mark>", Views.picture),
    Route("/devices/<id>/test", post=Views.test),
    Route("/devices/<id>/release", Views.release_form, Views.release),
    Route("/devices/<id>/remove", Views.remove_form, Views.remove),
    Route("/live/dashboard/<mark>", Views.live_dashboard),
    Route("/live/devices/<mark>", Views.live_devices),
    Route("/live/device/<id>/<mark>", Views.live_device),
    Route("/live/picture/<id>/<mark>", Views.live_picture),
    Route("/static/<file>", Views.static, public=True),
)


@dataclass(frozen=True)
class RouteMatch:
    """The route of a path, and the parts of the path that have names."""

    route: Route
    parts: dict[str, str]

    def get(self, views: Views, visit: ConsoleRequest) -> Reply:
        """What is shown there."""
        assert self.route.get is not None
        return self.route.get(views, visit, **self.parts)

    def post(self, views: Views, visit: ConsoleRequest) -> Reply:
        """What is done there."""
        assert self.route.post is not None
        return self.route.post(views, visit, **self.parts)


def find(path: str) -> RouteMatch | None:
    """The route of that path, None for a path that is not ours."""
    for route in ROUTES:
        found = route.pattern.fullmatch(path)
        if found is not None:
            return RouteMatch(route, found.groupdict())
    return None


class Paths:
    """Every path of the console, for the gate that tells pages from MCP."""

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and find(path) is not None
