"""The HTTP responses of the console, with the headers that keep a page to itself."""

from __future__ import annotations

from pathlib import Path

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


def response(status: int, *headers: Header, content: bytes | None = None) -> Reply:
    """Return a response that no cache keeps: it is nobody else's business."""
    return Reply(status, (*headers, PRIVATE, *SAFE), () if content is None else (content,))


def html(text: str, status: int = 200, *headers: Header) -> Reply:
    """Return a page or a part of one."""
    return response(status, HTML, *headers, content=text.encode())


def see_other(path: str, *headers: Header) -> Reply:
    """Return the way to a GET of that path."""
    return response(303, ("Location", path), *headers)


def static_files() -> dict[str, Reply]:
    """Return stylesheet, scripts and icon by their names, ready to be sent; they hold nothing secret."""
    return {
        path.name: Reply(
            200,
            (("Content-Type", TYPES[path.suffix]), ("Cache-Control", "max-age=3600"), *SAFE),  # the URL has our version
            (path.read_bytes(),),
        )
        for path in STATIC.iterdir()
        if path.suffix in TYPES
    }
