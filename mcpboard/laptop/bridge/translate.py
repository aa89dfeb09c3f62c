"""A client's request on its way from stdio to HTTP, as a calculation: which headers, which body.

A request that carries the modern envelope goes as it came, under the headers that the revision
demands. Any other belongs to an older client and is put into the revision that the server speaks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcpboard import __version__
from mcpboard.errors import InvalidEnvelope, InvalidParams, MethodNotFound
from mcpboard.protocol import headers, jsonrpc
from mcpboard.protocol.client_session import ClientSession, HttpRequest
from mcpboard.protocol.jsonrpc import Request
from mcpboard.protocol.tools import compact, verbatim
from mcpboard.protocol.versions import MODERN, TOLERATED, negotiate

BRIDGE = {"name": "mcpboard bridge", "version": __version__}

# Methods whose target the modern revision wants in a header, and the parameter that names it.
NAMED: Mapping[str, str] = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

# What a server may send on its own accord has no way to a client of the bridge, so it is not promised.
_UNSOLICITED = frozenset({"listChanged", "subscribe"})


def is_modern(request: Request) -> bool:
    """Tell if a request brings its own envelope, so that no handshake concerns it."""
    meta = request.params.get("_meta")
    return isinstance(meta, dict) and headers.VERSION_KEY in meta


def unchanged(request: Request, line: bytes) -> HttpRequest:
    """Return a modern request for HTTP: the very line, under the headers that agree with it.

    Raises InvalidEnvelope, InvalidParams or MethodNotFound for what no header could carry.
    """
    version = request.params["_meta"][headers.VERSION_KEY]
    if not isinstance(version, str) or not _fits_a_header(version):
        raise InvalidEnvelope(f"_meta {headers.VERSION_KEY} must be a protocol version")
    return HttpRequest(_modern_headers(request, version), line, id=request.id)


def with_envelope(request: Request, client: Mapping[str, Any]) -> HttpRequest:
    """Return an older client's request as the modern revision wants it; `client` is its own `clientInfo`.

    Raises as `unchanged` does.
    """
    meta = {} if request.params.get("_meta") is None else request.params["_meta"]
    if not isinstance(meta, dict):
        raise InvalidParams('"_meta" must be an object')
    # No capabilities: what a modern server would ask of the client, an older one does not understand.
    envelope = {headers.VERSION_KEY: MODERN, headers.CLIENT_KEY: dict(client), headers.CAPABILITIES_KEY: {}}
    params = {**request.params, "_meta": {**meta, **envelope}}
    sent = _modern_headers(request, MODERN)
    try:
        body = verbatim({"jsonrpc": "2.0", "id": request.id, "method": request.method, "params": params})
    except ValueError as error:
        raise InvalidParams("the parameters hold a number that is not finite") from error
    except RecursionError as error:
        raise InvalidParams("the parameters are nested too deeply") from error
    return HttpRequest(sent, body, id=request.id)


def _modern_headers(request: Request, version: str) -> Mapping[str, str]:
    if not _fits_a_header(request.method):
        raise MethodNotFound(f"method not found: {ascii(request.method)[:80]}")
    sent = {
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "MCP-Protocol-Version": version,
        "Mcp-Method": request.method,
    }
    if request.method in NAMED:
        member = NAMED[request.method]
        name = request.params.get(member)
        if not isinstance(name, str):
            raise InvalidParams(f'{request.method} needs "{member}", a string')
        sent["Mcp-Name"] = headers.encoded_name(name)
    return sent


def _fits_a_header(text: str) -> bool:
    return text.isascii() and text.isprintable() and text == text.strip()


# --- the handshake of an older client ----------------------------------------------------------


def client_info(request: Request) -> Mapping[str, Any]:
    """Return the client's name and version from its `initialize`; the bridge's own where they are malformed."""
    info = request.params.get("clientInfo")
    if isinstance(info, dict) and isinstance(info.get("name"), str) and isinstance(info.get("version"), str):
        return info
    return BRIDGE


def initialize_result(request: Request, version: str, session: ClientSession) -> bytes:
    """Return the response to `initialize`: the server that `session` found, in the version asked for."""
    capabilities = dict(session.capabilities)
    for feature, options in session.capabilities.items():
        if isinstance(options, dict):
            capabilities[feature] = {name: value for name, value in options.items() if name not in _UNSOLICITED}
    result: dict[str, Any] = {
        "protocolVersion": negotiate(version, TOLERATED),
        "capabilities": capabilities,
        "serverInfo": {**BRIDGE, **session.server},
    }
    if session.instructions:
        result["instructions"] = session.instructions
    return jsonrpc.result(request.id, compact(result))
