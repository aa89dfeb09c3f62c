"""Decide who is let in, by the head of a request to `/mcp` and before its body is read."""

# `admit` is the ladder, in its order: disabled, Origin, method, bearer token, size. The first rung that
# refuses gives the response; the media type comes next, with the id of the body. `check_origin` holds for
# every other address as well.
# `docs/protocol.md` has the specification or reason behind each rung.

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Mapping
from typing import Any

from mcpboard.errors import Refused, UnsupportedMediaType
from mcpboard.net import Authority, parse_authority
from mcpboard.protocol.limits import BODY_LIMIT
from mcpboard.protocol.messages import Admitted, Policy, RequestHead


def _rpc_error(message: str) -> Mapping[str, Any]:
    """Return a JSON-RPC error without an id, because no body was read."""
    return {"jsonrpc": "2.0", "error": {"code": -32600, "message": message}}


MCP_PATHS = ("/mcp", "/mcp/")
ORIGIN_REFUSED = "cross-origin request refused: open the board by its IP address or localhost; Origin must equal Host"

_ORIGIN = re.compile(r"(?P<scheme>https?)://(?P<authority>[^/]*)", re.ASCII | re.IGNORECASE)
# One media type with its parameters, or several; what is quoted may hold commas.
_JSON_ONLY = re.compile(
    r'(?:\s*application/json\s*(?:;(?:[^,"]|"(?:[^"\\]|\\.)*")*)?(?:,(?!$)|$))+', re.ASCII | re.IGNORECASE
)
_DEFAULT_PORT = {"http": 80, "https": 443}


def admit(policy: Policy, head: RequestHead) -> Admitted:
    """Let `head` in; raises Refused with the response of the first rung that refuses."""
    too_large = head.content_length is not None and head.content_length > BODY_LIMIT
    if policy.disabled is not None:
        if head.method != "POST" or too_large:
            raise Refused(404, {"error": policy.disabled})
        return Admitted(head)  # the body is read only for its id
    check_origin(head)
    allowed = ("POST",) if policy.knows_session is None else ("POST", "DELETE")
    if head.method not in allowed:
        hint = f"{head.method} is not served here: POST one JSON-RPC message; the page for people is at /"
        raise Refused(405, {"error": hint}, [("Allow", ", ".join(allowed))])
    principal = "" if policy.authorize is None else policy.authorize(head.authorization)
    if principal is None:
        raise Refused(401, {"error": "invalid token"}, [("WWW-Authenticate", "Bearer")])
    if head.method == "POST" and too_large:
        raise Refused(413, _rpc_error(f"the body is over the limit of {BODY_LIMIT} bytes"))
    return Admitted(head, principal)


def check_origin(head: RequestHead) -> None:
    """Raise Refused with 403 for a browser's page of another address."""
    if not same_origin(head.origin, head.host):
        raise Refused(403, _rpc_error(ORIGIN_REFUSED))


def check_media_type(head: RequestHead) -> None:
    """Raise UnsupportedMediaType for every media type but JSON; simple clients on devices send none, and pass.

    A header that is sent twice arrives joined by a comma; each of its values has to name JSON.
    """
    if head.content_encoding and head.content_encoding.strip().lower() != "identity":
        raise UnsupportedMediaType("send the body without Content-Encoding")
    sent = head.content_type
    if sent not in (None, "application/json") and not _JSON_ONLY.fullmatch(sent or ""):
        raise UnsupportedMediaType("send the header Content-Type: application/json")


# --- Origin and Host -----------------------------------------------------------------------


def same_origin(origin: str | None, host: str | None) -> bool:
    """Return True without a browser's Origin, and for one that shows a page of this very address.

    An Origin must name an IP literal or `localhost`, so that no rebound name passes, and must equal
    Host in host and port; a missing port is filled from the Origin's scheme on both sides. Anything
    that cannot be parsed is refused: a present Origin has to pass.
    """
    if origin is None:
        return True
    match = _ORIGIN.fullmatch(origin)
    if not match or host is None:
        return False
    default_port = _DEFAULT_PORT[match["scheme"].lower()]
    own, claimed = _with_port(host, default_port), _with_port(match["authority"], default_port)
    return own is not None and own == claimed


def _with_port(text: str, default_port: int) -> Authority | None:
    authority = parse_authority(text)
    return authority and (authority[0], authority[1] or default_port)


# --- the bearer token ----------------------------------------------------------------------


def bearer(authorization: str | None) -> bytes | None:
    """Return the token of an `Authorization: Bearer` header; None when there is none.

    The scheme's case and the number of spaces do not matter; the token is exact, and a second
    header, which arrives joined by a comma, never matches one.
    """
    scheme, _, token = (authorization or "").partition(" ")
    if scheme.lower() != "bearer":
        return None
    return token.strip(" ").encode("latin-1", "replace")


def is_one_of(token: bytes | None, known: Iterable[bytes]) -> bool:
    """Return True when `token` is one of `known`, compared in constant time and without stopping early."""
    known_token = False
    for candidate in known:
        known_token |= bool(token) and hmac.compare_digest(token or b"", candidate)
    return known_token
