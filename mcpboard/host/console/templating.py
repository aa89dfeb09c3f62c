"""Templates -> HTML, by Jinja2, which is an extra: without it there is no renderer, and the host serves MCP alone."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from mcpboard import __version__
from mcpboard.host.console import words

TEMPLATES = Path(__file__).parent / "templates"
MARK_LENGTH = 16  # hex digits; enough to tell one state of a fragment from the next


class Renderer(Protocol):
    """Makes HTML of a template's name and what it shows; every value is escaped."""

    def __call__(self, template: str, shown: Mapping[str, Any]) -> str: ...


def renderer() -> Renderer | None:
    """The renderer, None where Jinja2 is not installed."""
    try:
        import jinja2  # the extra [host], named here alone
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
    environment.filters.update(ago=words.ago, person=words.person)
    environment.globals["version"] = __version__
    return lambda template, shown: environment.get_template(template).render(shown)


def mark(html: str) -> str:
    """A short name for this very state of a fragment, so that a poll can say "nothing new"."""
    return hashlib.sha256(html.encode()).hexdigest()[:MARK_LENGTH]
