"""The HTTP answers of the console, with the headers that keep a page to itself."""

from __future__ import annotations

from pathlib import Path

from mcpboard.host.drivers.base import Screenshot
from mcpboard.protocol.messages import Reply

Header = tuple[str, str]

STATIC = Path(__file__).parent / "static"
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

SAFE: tuple[Header, ...] = (
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
PRIVATE: Header = ("Cache-Control", "no-store")
HTML: Header = ("Content-Type", "text/html; charset=utf-8")
TEXT: Header = ("Content-Type", "text/plain; charset=utf-8")


def html(text: str, status: int = 200, *more: Header) -> Reply:
    """A page or a part of one."""
    return Reply(status, (HTML, PRIVATE, *SAFE, *more), (text.encode(),))


def text(words: str, status: int) -> Reply:
    """A line for people, where no page can be made."""
    return Reply(status, (TEXT, PRIVATE, *SAFE), (words.encode() + b"\n",))


def see_other(path: str, *more: Header) -> Reply:
    """Go on with a GET of that path."""
    return Reply(303, (("Location", path), PRIVATE, *SAFE, *more))


def nothing_new() -> Reply:
    """What a poll is told when it would show what it shows already."""
    return Reply(204, (PRIVATE, *SAFE))


def log_in_first() -> Reply:
    """What a poll is told without a login: the script then opens the login page."""
    return Reply(401, (("HX-Redirect", "/login"), PRIVATE, *SAFE))


def picture(shot: Screenshot) -> Reply:
    """A screen's picture; it is nobody else's business, so no cache keeps it."""
    return Reply(200, (("Content-Type", shot.mime), PRIVATE, *SAFE), (shot.content,))


def static_files() -> dict[str, Reply]:
    """Style sheet, scripts and icon by their names, ready to be sent; they hold nothing secret."""
    return {
        path.name: Reply(
            200,
            (("Content-Type", TYPES[path.suffix]), ("Cache-Control", "max-age=3600"), *SAFE),  # the URL has our version
            (path.read_bytes(),),
        )
        for path in STATIC.iterdir()
        if path.suffix in TYPES
    }
