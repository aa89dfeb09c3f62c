"""The gates before the body, in the order of the decision table; the first that is shut answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcpboard.errors import Refused
from mcpboard.protocol import access
from mcpboard.protocol.messages import Admitted, Policy, RequestHead

BODY_LIMIT = 320 * 1024  # bytes; arguments may be 256 KiB, the rest is envelope
MCP_PATHS = frozenset({"/mcp", "/mcp/"})

ORIGIN_REFUSED = (
    "cross-origin browser request refused: Origin must be an IP address or localhost and equal Host;"
    " open the board by its IP address"
)


def admit(policy: Policy, head: RequestHead) -> Admitted:
    """Let `head` in; raises Refused with the answer of the first gate that is shut."""
    is_mcp = head.path in MCP_PATHS
    if is_mcp and policy.disabled is not None:
        return _switched_off(head, policy.disabled)
    if not access.same_origin(head.origin, head.host):
        raise Refused(403, _rpc_error(ORIGIN_REFUSED))
    if head.path in policy.pages:
        _check_size(head)
        return Admitted(head, page=True)
    if not is_mcp:
        raise Refused(404, {"error": "not found: MCP is served at /mcp"})
    _check_method(head, policy)
    principal = _principal(head, policy)
    if head.method == "POST":
        _check_size(head)
        _check_type(head)
    return Admitted(head, principal)


def _switched_off(head: RequestHead, why: str) -> Admitted:
    if head.method != "POST" or _too_long(head):
        raise Refused(404, {"error": why})
    return Admitted(head)  # the body is read for its id alone


def _check_method(head: RequestHead, policy: Policy) -> None:
    allowed = ("POST", "DELETE") if policy.sessions else ("POST",)
    if head.method not in allowed:
        hint = f"{head.method} is not served here: POST one JSON-RPC message"
        raise Refused(405, {"error": hint}, [("Allow", ", ".join(allowed))])


def _principal(head: RequestHead, policy: Policy) -> str:
    if policy.authorize is None:
        return ""
    principal = policy.authorize(head.authorization)
    if principal is None:
        raise Refused(401, {"error": "invalid token"}, [("WWW-Authenticate", "Bearer")])
    return principal


def _too_long(head: RequestHead) -> bool:
    return head.content_length is not None and head.content_length > BODY_LIMIT


def _check_size(head: RequestHead) -> None:
    if _too_long(head):
        raise Refused(413, _rpc_error(f"the body is over the limit of {BODY_LIMIT} bytes"))


def _check_type(head: RequestHead) -> None:
    """415 for every media type but JSON; a POST without one is a simple device client (rows 13-14)."""
    if head.content_encoding and head.content_encoding.strip().lower() != "identity":
        raise Refused(415, _rpc_error("send the body without Content-Encoding"))
    if head.content_type is None:
        return
    media = head.content_type.partition(";")[0].strip().lower()
    if media != "application/json":
        raise Refused(415, _rpc_error("send the header Content-Type: application/json"))


def _rpc_error(message: str) -> Mapping[str, Any]:
    """A refusal that reads as JSON-RPC but has no id, because no body was read."""
    return {"jsonrpc": "2.0", "error": {"code": -32600, "message": message}}
