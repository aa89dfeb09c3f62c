"""Every limit of a request and of a reply, with what reaching it costs a board with 64 MB of memory."""

from __future__ import annotations

from mcpboard.text import DEEP_LIMIT, DEPTH_LIMIT

__all__ = ["CONTAINERS_LIMIT", "DEEP_LIMIT", "DEPTH_LIMIT"]

# Lists and objects of one document; a parsed empty list takes 56 bytes, an object 64 and more.
CONTAINERS_LIMIT = 10_000
