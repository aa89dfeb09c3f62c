"""Templates -> HTML, by Jinja2, which is an extra: without it there is no renderer, and the host serves MCP only."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcpboard import __version__
from mcpboard.host.access.owners import SHARED_TOKEN
from mcpboard.host.console.routes import url_for
from mcpboard.host.devices.leases import CLOUD, Owner
from mcpboard.text import well_formed

TEMPLATES = Path(__file__).parent / "templates"

MINUTE, HOUR, DAY = 60, 3600, 86400  # seconds
MARK_LENGTH = 16  # hex digits; enough to tell one state of a fragment from the next
_UNITS = ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"))

Renderer = Callable[[str, Mapping[str, Any]], str]  # a template's name and its context -> HTML, every value escaped


def renderer() -> Renderer | None:
    """Return the renderer, None where Jinja2 is not installed."""
    try:
        import jinja2  # the extra [host], named here only
    except ImportError:
        return None
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(ago=ago, person=person)
    environment.globals.update(version=__version__, url_for=url_for, shared_token=SHARED_TOKEN)
    # A page is UTF-8, which has no half of a surrogate pair: what a phone shows may hold one.
    return lambda template, context: well_formed(environment.get_template(template).render(context))


@dataclass(frozen=True)
class LiveFragment:
    """A part of a page that keeps itself up to date, and a name of its state: a poll that has it brings nothing."""

    mark: str
    html: str


def live_fragment(render: Renderer, part: str, soon: bool, context: Mapping[str, Any], **values: str) -> LiveFragment:
    """Render the part of a page that polls its own address, right after it is loaded when `soon`."""
    endpoint, inner = f"{part}_fragment", render(f"live_{part}.html", context)
    mark = hashlib.sha256(inner.encode()).hexdigest()[:MARK_LENGTH]
    url = url_for(endpoint, mark=mark, **values)
    frame = {"inner": inner, "url": url, "name": "-".join((endpoint, *values.values())), "soon": soon}
    return LiveFragment(mark, render("live.html", frame))


def ago(seconds: float | None) -> str:
    """Return how long ago something was, as coarse as a person would say it."""
    if seconds is None:
        return "never"
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return f"{int(seconds)} s ago" if seconds >= 1 else "just now"


def person(owner: Owner) -> str:
    """Return the owner of a lease in words."""
    return "a cloud assignment" if owner.kind == CLOUD else f"MCP session {owner.prefix}"
