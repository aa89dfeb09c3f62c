"""The public suite's own tools as a role: they show that the core carries more than the board asks of it."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcpboard.errors import ProtocolError, ToolRefused
from mcpboard.protocol.endpoint import Endpoint
from mcpboard.protocol.messages import (
    CloseSession,
    OpenSession,
    Outcome,
    Policy,
    ToolCall,
)
from mcpboard.protocol.tools import Content, Image, Part, Text, Tool, ToolList, compact

# --- blocks and an error that no tool of ours needs ------------------------------------------


class MissingCapability(ProtocolError):
    """The tool needs a client capability that the request did not declare."""

    code = -32021

    def __init__(self, capability: str) -> None:
        super().__init__(f"needs the client capability {capability}", data={"requiredCapabilities": {capability: {}}})


@dataclass(frozen=True)
class Audio:
    """A sound, as base64."""

    data: str
    mime: str

    def parts(self) -> Sequence[Part]:
        return (compact({"type": "audio", "data": self.data, "mimeType": self.mime}),)


@dataclass(frozen=True)
class EmbeddedText:
    """A resource of text."""

    uri: str
    mime: str
    text: str

    def parts(self) -> Sequence[Part]:
        return (compact({"type": "resource", "resource": {"uri": self.uri, "mimeType": self.mime, "text": self.text}}),)


def _png() -> str:
    """One red pixel."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixel = zlib.compress(b"\0\xff\0\0")
    picture = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixel) + chunk(b"IEND", b"")
    return b64encode(picture).decode("ascii")


def _wav() -> str:
    """Nothing to hear, mono, 8 bits at 8 kHz."""
    form = b"fmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8) + b"data" + struct.pack("<I", 0)
    return b64encode(b"RIFF" + struct.pack("<I", 4 + len(form)) + b"WAVE" + form).decode("ascii")


TEXT = Text("plain words")
PICTURE = Image(_png(), "image/png")
SOUND = Audio(_wav(), "audio/wav")
RESOURCE = EmbeddedText("test://embedded", "text/plain", "words in a resource")

# --- rows ------------------------------------------------------------------------------------

NO_ARGUMENTS = {"type": "object", "properties": {}, "additionalProperties": False}
RICH_SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"$anchor": "address", "type": "object", "properties": {"street": {"type": "string"}}}},
    "properties": {
        "name": {"type": "string", "description": "who"},
        "address": {"$ref": "#/$defs/address"},
        "country": {"type": "string"},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"country": {"const": "US"}}, "required": ["country"]},
    "then": {"properties": {"phone": {"type": "string"}}},
    "else": {"properties": {"email": {"type": "string"}}},
    "additionalProperties": False,
}


def _shows(*blocks: Any) -> Callable[[ToolCall], Content]:
    return lambda call: Content(blocks)


def _fail(call: ToolCall) -> Content:
    raise ToolRefused("it failed on purpose")


def _need_sampling(call: ToolCall) -> Content:
    if "sampling" not in call.request_version.capabilities:
        raise MissingCapability("sampling")
    return Content((TEXT,))


ROWS: Mapping[str, Callable[[ToolCall], Content]] = {
    "test_simple_text": _shows(TEXT),
    "test_image_content": _shows(PICTURE),
    "test_audio_content": _shows(SOUND),
    "test_embedded_resource": _shows(RESOURCE),
    "test_multiple_content_types": _shows(TEXT, PICTURE, RESOURCE),
    "test_error_handling": _fail,
    "test_missing_capability": _need_sampling,
    "test_streaming_elicitation": _shows(TEXT),
    "test_logging_tool": _shows(TEXT),
    "json_schema_2020_12_tool": _shows(TEXT),
}


def _tool(name: str) -> Tool:
    schema = RICH_SCHEMA if name == "json_schema_2020_12_tool" else NO_ARGUMENTS
    return Tool(name, name, f"{name}, as the public suite calls it", schema)


class FixtureRole:
    """A role without sessions, pages or anything to wait for."""

    def __init__(self, *, strict_meta: bool) -> None:
        server = {"name": "fixture", "title": "Fixture", "version": "1"}
        policy = Policy(server, "Tools of the public suite.", strict_meta=strict_meta)
        self._endpoint = Endpoint(policy, ToolList([_tool(name) for name in ROWS]))

    def endpoint(self) -> Endpoint:
        return self._endpoint

    def refreshed_endpoint(self) -> Endpoint:
        return self._endpoint

    def run(self, call: ToolCall) -> Outcome:
        return Outcome(ROWS[call.name](call))

    def open_session(self, step: OpenSession) -> str:
        raise NotImplementedError("no sessions here")

    def close_session(self, step: CloseSession) -> None:
        raise NotImplementedError("no sessions here")
