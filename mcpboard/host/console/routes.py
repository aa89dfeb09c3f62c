"""Every address of the console, a row each, and the forms that are sent there."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from mcpboard.errors import Refused
from mcpboard.host.console.templating import LiveFragment
from mcpboard.host.console.views import Views
from mcpboard.protocol.messages import Reply

View = Callable[..., Reply | LiveFragment]
FRAGMENTS = "/live/"  # what the pages poll

FORM = "application/x-www-form-urlencoded"
MOST_FIELDS = 16  # our longest form has seven
LONGEST_FIELD = 2048  # characters; a URL


@dataclass(frozen=True)
class Route:
    """One address: what a GET shows, what a POST does, and whether that needs no login."""

    path: str  # <id> is a device's, <mark> the state of a fragment or screenshot that the browser has
    get: View | None = None
    post: View | None = None
    public: bool = False
    pattern: re.Pattern[str] = field(init=False, repr=False)
    methods: tuple[str, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        pattern = self.path.replace("<id>", "(?P<device_id>[A-Za-z0-9._-]{1,64})")
        pattern = pattern.replace("<mark>", "(?P<mark>[0-9a-z]{1,16})")
        pattern = pattern.replace("<file>", "(?P<file>[a-z][a-z0-9.]{1,32})")
        object.__setattr__(self, "pattern", re.compile(pattern, re.ASCII))
        methods = (*(("GET", "HEAD") if self.get else ()), *(("POST",) if self.post else ()))
        object.__setattr__(self, "methods", methods)


ROUTES = (
    Route("/", Views.dashboard),
    Route("/login", Views.login_form, Views.login, public=True),
    Route("/logout", post=Views.logout),
    Route("/devices", Views.devices, Views.add),
    Route("/devices/<id>", Views.device),
    Route("/devices/<id>/screenshot/<mark>", Views.screenshot),
    Route("/devices/<id>/test", post=Views.test),
    Route("/devices/<id>/release", Views.release_form, Views.release),
    Route("/devices/<id>/remove", Views.remove_form, Views.remove),
    Route("/live/dashboard/<mark>", Views.dashboard_fragment),
    Route("/live/devices/<mark>", Views.devices_fragment),
    Route("/live/device/<id>/<mark>", Views.device_fragment),
    Route("/live/screenshot/<id>/<mark>", Views.screenshot_fragment),
    Route("/static/<file>", Views.static, public=True),
)


@dataclass(frozen=True)
class RouteMatch:
    """The route of a path, the parts of the path that its views take, and the mark, which they do not."""

    route: Route
    parts: Mapping[str, str]
    mark: str


def find(path: str) -> RouteMatch | None:
    """Return the route of that path, None for a path that is not ours."""
    for route in ROUTES:
        found = route.pattern.fullmatch(path)
        if found is not None:
            parts = found.groupdict()
            return RouteMatch(route, parts, parts.pop("mark", ""))
    return None


def parse_form(content_type: str | None, body: bytes) -> Mapping[str, str]:
    """Return the fields of a form, without the spaces around them; Refused for what no page of ours sends."""
    media_type = (content_type or "").partition(";")[0].strip().lower()
    if media_type != FORM:
        raise Refused(415, {"error": f"send a form as {FORM}"})
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS)
    except ValueError:
        raise Refused(400, {"error": "the body is no form that a page of this console has"}) from None
    if any(len(value) > LONGEST_FIELD for _, value in pairs):
        raise Refused(400, {"error": f"a field has {LONGEST_FIELD} characters at most"})
    return {name: value.strip() for name, value in pairs}
