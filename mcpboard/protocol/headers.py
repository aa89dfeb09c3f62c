"""The ladder of the modern revision: header against header, header against body, then the envelope."""

# Each rung is one function that raises or returns, `check` calls them in their order, and the first
# failure wins. `docs/protocol.md` has the specification or reason behind each rung.

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from mcpboard.errors import HeaderMismatch, InvalidEnvelope, UnsupportedVersion
from mcpboard.protocol.jsonrpc import Request
from mcpboard.protocol.versions import KNOWN, LEGACY, MODERN, SUPPORTED, RequestVersion

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"

_RESERVED = (VERSION_KEY, CAPABILITIES_KEY, CLIENT_KEY)
LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

_SENTINEL = re.compile(r"=\?base64\?(?P<payload>.*)\?=", re.DOTALL)


class StandardHeaders(NamedTuple):
    """The standard MCP headers of one POST; None where the header is absent."""

    version: str | None = None  # MCP-Protocol-Version
    method: str | None = None  # Mcp-Method
    name: str | None = None  # Mcp-Name


def check(sent: StandardHeaders, request: Request, *, strict_meta: bool = False) -> RequestVersion:
    """Return the version that `request` came in, once every rung has let it pass.

    Raises HeaderMismatch, UnsupportedVersion or InvalidEnvelope.
    """
    # Here and in the envelope null is what some clients write for a member that is left out.
    meta = {} if request.params.get("_meta") is None else request.params["_meta"]
    envelope = meta if isinstance(meta, dict) else {}
    # A legacy handshake settles the version in its body, so its header is not judged.
    is_handshake = request.method == "initialize" and sent.method is None and VERSION_KEY not in envelope
    if not is_handshake:
        _check_agreement(sent, request, envelope, strict_meta)
        check_version(sent.version)
    if not isinstance(meta, dict):
        raise InvalidEnvelope('"_meta" must be an object')
    if is_handshake:
        return RequestVersion(modern=False, enveloped=False, header=sent.version)
    _check_envelope(sent, envelope, strict_meta)
    capabilities = envelope[CAPABILITIES_KEY] if VERSION_KEY in envelope else {}
    return RequestVersion(sent.version == MODERN, envelope.get(VERSION_KEY) == MODERN, sent.version, capabilities)


# --- rung 1: headers agree with each other and with the body (-32020) ----------------------


def _check_agreement(sent: StandardHeaders, request: Request, envelope: Mapping[str, Any], strict_meta: bool) -> None:
    claimed = envelope.get(VERSION_KEY)
    strict = claimed == MODERN or sent.method is not None or (strict_meta and sent.version == MODERN)
    if strict and sent.version is None:
        raise HeaderMismatch("MCP-Protocol-Version is missing; a modern request must send it")
    if isinstance(claimed, str) and claimed != sent.version:
        raise HeaderMismatch(f"MCP-Protocol-Version is {_shown(sent.version)} but the body says {_shown(claimed)}")
    if not strict:
        return
    if sent.method is None:
        raise HeaderMismatch("Mcp-Method is missing; a modern request must send it")
    if sent.method != request.method:
        raise HeaderMismatch(f"Mcp-Method is {_shown(sent.method)} but the body says {_shown(request.method)}")
    if request.method != "tools/call":
        return  # a name on a method that has none is ignored, as both SDKs do
    if sent.name is None:
        raise HeaderMismatch("Mcp-Name is missing; a modern tools/call must send it")
    if decoded_name(sent.name) != request.params.get("name"):
        raise HeaderMismatch(f"Mcp-Name is {_shown(sent.name)} but the body says {_shown(request.params.get('name'))}")


def decoded_name(value: str) -> str:
    """Return the name behind an `Mcp-Name` value; the base64 sentinel form is decoded, all else is literal."""
    if not (sentinel := _SENTINEL.fullmatch(value)):
        return value
    payload = sentinel["payload"]
    try:
        raw = base64.b64decode(payload.encode("ascii"), validate=True)
        if base64.b64encode(raw).decode("ascii") != payload:
            raise ValueError("not canonical")
        return raw.decode("utf-8")
    except ValueError as error:  # binascii.Error and both Unicode errors are subclasses of it
        raise HeaderMismatch("Mcp-Name is not well-formed base64 of UTF-8 text") from error


def encoded_name(name: str) -> str:
    """Return `name` as an `Mcp-Name` value: as it is, or in the sentinel form where a header could not carry it."""
    if name and name.isascii() and name.isprintable() and name == name.strip() and not _SENTINEL.fullmatch(name):
        return name
    return "=?base64?" + base64.b64encode(name.encode("utf-8", "replace")).decode("ascii") + "?="


def _shown(value: object) -> str:
    """Return `value` for a message: quoted text, one line, at most 80 characters; any other type is not spelt out."""
    if value is None:
        return "missing"
    return ascii(value)[:80] if isinstance(value, str) else "no text"


# --- rung 2: the version is one we speak (-32022) ------------------------------------------


def check_version(version: str | None) -> None:
    """Raise UnsupportedVersion unless `version` is absent or known."""
    if version is not None and version not in KNOWN:
        data = {"supported": list(SUPPORTED), "requested": version}
        message = f"protocol version {_shown(version)} is not supported; use {MODERN} or {LEGACY}"
        raise UnsupportedVersion(message, data=data)


# --- rung 3: the envelope is whole (-32602 at 400) -----------------------------------------


def _check_envelope(sent: StandardHeaders, meta: Mapping[str, Any], strict_meta: bool) -> None:
    modern = sent.version == MODERN
    if VERSION_KEY in meta:
        if not isinstance(meta[VERSION_KEY], str):
            raise InvalidEnvelope(f"_meta {VERSION_KEY} must be a string")
        if not isinstance(meta.get(CAPABILITIES_KEY), dict):
            raise InvalidEnvelope(f"_meta needs {CAPABILITIES_KEY}, an object")
    elif not modern:
        return
    elif strict_meta or any(meta.get(key) is not None for key in _RESERVED):
        raise InvalidEnvelope(f"_meta lacks {VERSION_KEY}")
    client = meta.get(CLIENT_KEY)
    named = isinstance(client, dict) and isinstance(client.get("name"), str) and isinstance(client.get("version"), str)
    if client is not None and not named:
        raise InvalidEnvelope(f"_meta {CLIENT_KEY} must be an object with name and version")
    if meta.get(LOG_LEVEL_KEY) is not None and meta[LOG_LEVEL_KEY] not in LOG_LEVELS:
        raise InvalidEnvelope(f"_meta {LOG_LEVEL_KEY} is not a log level")
