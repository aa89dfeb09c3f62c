"""The public suite's own tools as a role: they show that the core carries more than the board asks of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcpboard.errors import ProtocolError, ToolRefused
from mcpboard.protocol.endpoint import Endpoint
from mcpboard.protocol.messages import CloseSession, OpenSession, Outcome, Policy, ToolCall
from mcpboard.protocol.tools import Content, Image, Part, Text, Tool, ToolList, compact

# --- blocks and an error that no tool of ours needs ------------------------------------------


class MissingCapability(ProtocolError):
    """The tool needs a client capability that the request did not declare."""

    code = -32021

    def __init__(self, capability: str) -> None:
        super().__init__(f"needs the client capability {capability}", data={"requiredCapabilities": {capability: {}}})


@dataclass(frozen=True)
class Block:
    """A block of content as it is written."""

    members: Mapping[str, Any]

    def parts(self) -> Sequence[Part]:
        return (compact(self.members),)


TEXT = Text("plain words")
# One red pixel.
PICTURE = Image(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC", "image/png"
)
# Nothing to hear, mono, 8 bits at 8 kHz.
SOUND = Block(
    {"type": "audio", "data": "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=", "mimeType": "audio/wav"}
)
EMBEDDED = {"uri": "test://embedded", "mimeType": "text/plain", "text": "words in a resource"}
RESOURCE = Block({"type": "resource", "resource": EMBEDDED})

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
