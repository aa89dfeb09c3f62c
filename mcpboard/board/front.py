"""The board's own pages, which never wait for anything: `/health` for programs, `/` for people."""

from __future__ import annotations

from collections.abc import Mapping

from mcpboard import __version__
from mcpboard.board.backend import Backend
from mcpboard.board.pages import home
from mcpboard.errors import Refused
from mcpboard.protocol.endpoint import JSON
from mcpboard.protocol.messages import Reply, RequestHead
from mcpboard.protocol.tools import compact

PAGES = frozenset({"/", "/health"})


def page(head: RequestHead, mcp_enabled: bool, backends: Mapping[str, Backend], wants_token: bool) -> Reply:
    """The page at `head.path`; raises Refused for other methods than GET and HEAD."""
    if head.method not in ("GET", "HEAD"):
        raise Refused(405, {"error": f"{head.method} is not served here"}, [("Allow", "GET, HEAD")])
    seen = {name: _seen(backend) for name, backend in backends.items()}
    if head.path == "/":
        return home(head.host, mcp_enabled, seen, wants_token)
    return Reply(200, (JSON,), (compact(health(mcp_enabled, seen)),))


def health(mcp_enabled: bool, seen: Mapping[str, object]) -> Mapping[str, object]:
    """Version, whether MCP is on, and how each backend was when a call last went there."""
    return {"name": "mcpboard", "version": __version__, "mcp_enabled": mcp_enabled, "backends": seen}


def _seen(backend: Backend) -> Mapping[str, object]:
    seen = backend.last_seen
    if seen is None:
        return {"state": "not asked yet"}
    return {"state": "ok" if seen.ok else "failing", "seconds_ago": round(seen.seconds_ago, 1)}
