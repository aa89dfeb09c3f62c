"""Posts as a test writes them, and replies as a test reads them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mcpboard.protocol.headers import CAPABILITIES_KEY, CLIENT_KEY, VERSION_KEY, StandardHeaders
from mcpboard.protocol.messages import Reply, RequestHead
from mcpboard.protocol.tools import Part
from mcpboard.protocol.versions import MODERN

ADDRESS = "192.168.42.1:8080"


class _Unsent:
    def __repr__(self) -> str:
        return "nothing"  # as ids of tests say it: the same in every process, as a run by several workers needs


UNSENT: Any = _Unsent()  # a member or header that is left out, where None would be sent


def head(version: str | None = None, method: str | None = None, name: str | None = None, http: str = "POST", **more: Any) -> RequestHead:  # fmt: skip
    """The head of a POST to /mcp with the standard headers given; `more` are fields of RequestHead."""
    plain = RequestHead(http, host=ADDRESS, content_type="application/json")
    return plain._replace(standard=StandardHeaders(version, method, name), **more)


PLAIN = head()


def modern(method: str | None = None, name: str | None = None, **more: Any) -> RequestHead:
    """A head that says 2026-07-28, with Mcp-Method and Mcp-Name as given."""
    return head(MODERN, method, name, **more)


def message(method: Any, params: Any = UNSENT, *, id: Any = 1, **members: Any) -> bytes:
    """One JSON-RPC message; a member that is UNSENT is left out."""
    return json.dumps(_sent({"jsonrpc": "2.0", "id": id, "method": method, "params": params, **members})).encode()


def _sent(members: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in members.items() if value is not UNSENT}


def odd(*words: Any) -> tuple[Any, ...]:
    """Values of types that do not belong where they are about to be put."""
    return words


def meta(version: Any = MODERN, capabilities: Any = UNSENT, client: Any = UNSENT, **more: Any) -> dict[str, Any]:
    """A `_meta` object; the capabilities are `{}` unless told otherwise, None leaves them out."""
    every = {VERSION_KEY: version, CAPABILITIES_KEY: {} if capabilities is UNSENT else capabilities, CLIENT_KEY: client}
    return {key: value for key, value in _sent(every).items() if value is not None} | more


def enveloped(method: str, envelope: Any = UNSENT, *, id: Any = 1, **params: Any) -> bytes:
    """A request with `params._meta`: a whole modern envelope unless one is given."""
    return message(method, _sent({**params, "_meta": meta() if envelope is UNSENT else envelope}), id=id)


@dataclass(frozen=True)
class RenderedReply:
    """A reply as a client sees it: status, headers, and the body's text; `body` is None for no bytes."""

    status: int
    headers: Mapping[str, str]
    body: bytes | None

    @property
    def json(self) -> Any:
        return None if self.body is None else json.loads(self.body)

    @property
    def code(self) -> int | None:
        """The JSON-RPC error code, None when the body is no JSON-RPC error."""
        found = self.json.get("error") if isinstance(self.json, dict) else None
        return found.get("code") if isinstance(found, dict) else None


def render(reply: Reply) -> RenderedReply:
    """`reply` as it would go out, every source read, encoded and closed."""
    return RenderedReply(reply.status, dict(reply.headers), render_parts(reply.parts) or None)


def render_parts(parts: Iterable[Part]) -> bytes:
    return b"".join(part if isinstance(part, bytes) else base64.b64encode(b"".join(part)) for part in parts)
