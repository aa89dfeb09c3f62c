"""Who may knock: the same-origin rule for browsers, and the bearer token."""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable

from mcpboard.net import Authority, parse_authority

_ORIGIN = re.compile(r"(?P<scheme>https?)://(?P<authority>[^/]*)", re.ASCII | re.IGNORECASE)
_DEFAULT_PORT = {"http": 80, "https": 443}


def same_origin(origin: str | None, host: str | None) -> bool:
    """True when no browser speaks, or one that shows a page of this very address (mission, Origin).

    A browser's Origin must name an IP literal or `localhost`, so that no rebound name passes, and
    must equal Host in host and port; a missing port is filled from the Origin's scheme on both
    sides. Anything that cannot be parsed is refused: a present Origin has to pass.
    """
    if origin is None:
        return True
    found = _ORIGIN.fullmatch(origin)
    if not found or host is None:
        return False
    default = _DEFAULT_PORT[found["scheme"].lower()]
    ours, theirs = _filled(host, default), _filled(found["authority"], default)
    return ours is not None and ours == theirs


def _filled(text: str, default_port: int) -> Authority | None:
    parsed = parse_authority(text)
    if parsed is None:
        return None
    host, port = parsed
    return host, port if port is not None else default_port


def bearer(authorization: str | None) -> bytes | None:
    """The token of an `Authorization: Bearer` header; None when there is none.

    The scheme's case and the number of blanks do not matter; the token is exact, and a second
    header, which arrives joined by a comma, never matches one.
    """
    scheme, _, token = (authorization or "").partition(" ")
    if scheme.lower() != "bearer":
        return None
    return token.strip(" ").encode("latin-1", "replace")


def is_one_of(token: bytes | None, known: Iterable[bytes]) -> bool:
    """True when `token` is one of `known`, compared in constant time and without stopping early."""
    found = False
    for candidate in known:
        found |= bool(token) and hmac.compare_digest(token or b"", candidate)
    return found
