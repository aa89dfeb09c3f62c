"""Tools as the client sees them: the tool list, the argument check, and content blocks."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol

from mcpboard.errors import DONE, NOT_SENT, UNKNOWN, BadArgument, ToolError
from mcpboard.protocol.limits import CONTAINERS_LIMIT, DIGITS_LIMIT
from mcpboard.text import DEPTH_LIMIT, nesting, read_json, well_formed_json


@dataclass(frozen=True)
class Tool:
    """One tool as `tools/list` describes it."""

    name: str
    title: str
    description: str
    input_schema: Mapping[str, Any]
    annotations: Mapping[str, Any] = field(default_factory=dict)

    def listed(self) -> dict[str, Any]:
        """Return the entry of this tool in a `tools/list` result."""
        described = {"name": self.name, "title": self.title, "description": self.description}
        annotations = {"title": self.title, **self.annotations}
        return described | {"inputSchema": dict(self.input_schema), "annotations": annotations}


# --- content -------------------------------------------------------------------------------


class ByteSource(Protocol):
    """Raw bytes that arrive over time: iterated once, closed always, even when never iterated."""

    length: int | None  # bytes in all, None when the source does not say

    def __iter__(self) -> Iterator[bytes]: ...

    def close(self) -> None: ...


# A rendered block is a run of parts: JSON text ready to send, or a source whose bytes go out as
# base64 inside the JSON string that the neighbouring parts open and close.
Part = bytes | ByteSource


_encoder = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _integer(digits: str) -> int:
    if len(digits) > DIGITS_LIMIT:
        raise ValueError("the integer is too long")
    return int(digits)


decoder = json.JSONDecoder(parse_int=_integer, parse_constant=_refuse_constant)


def verbatim(value: object) -> bytes:
    """Return JSON without spaces, pure ASCII, every half of a surrogate pair as it came."""
    return _encoder.encode(value).encode("ascii")


def compact(value: object) -> bytes:
    """Return JSON without spaces, pure ASCII, with U+FFFD for every half of a surrogate pair.

    Everything foreign that a reply holds is written here.
    """
    written = verbatim(value)
    return written if b"\\ud" not in written else well_formed_json(written)


@dataclass(frozen=True)
class Text:
    """A text block."""

    text: str

    def parts(self) -> Sequence[Part]:
        return (b'{"type":"text","text":' + compact(self.text) + b"}",)


@dataclass(frozen=True)
class Image:
    """An image; `data` must be known to be pure base64, because it is sent without escaping."""

    data: str
    mime: str

    def parts(self) -> Sequence[Part]:
        mime = b'","mimeType":' + compact(self.mime) + b"}"
        return (b'{"type":"image","data":"', self.data.encode("ascii"), mime)


@dataclass(frozen=True)
class Blob:
    """An embedded resource of raw bytes, encoded on the way out."""

    uri: str
    mime: str
    source: ByteSource

    def parts(self) -> Sequence[Part]:
        head = compact({"uri": self.uri, "mimeType": self.mime})[:-1]
        return (b'{"type":"resource","resource":' + head + b',"blob":"', self.source, b'"}}')


Block = Text | Image | Blob


@dataclass(frozen=True)
class Content:
    """Result of a tool call: blocks, and for plain JSON results the object itself.

    Never put `structured` beside an Image: one major client then loses the image (docs/protocol.md).
    """

    blocks: tuple[Block, ...]
    structured: Mapping[str, Any] | None = None
    is_error: bool = False


# --- the argument check --------------------------------------------------------------------


def _number(value: object) -> float | None:
    """Return the finite number that `value` is, or spells in plain ASCII digits; else None."""
    if isinstance(value, int):
        return None if isinstance(value, bool) else value
    if isinstance(value, str) and (not value.isascii() or "_" in value):
        return None
    try:
        number = float(value) if isinstance(value, (float, str)) else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _is_integer(value: object) -> bool:
    number = _number(value)
    return isinstance(number, int) or (number is not None and number.is_integer())


# Type word of JSON Schema -> (check, what a person would call it). Numeric strings pass, because
# some clients send every argument as text.
TYPES: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "string": (lambda v: isinstance(v, str), "text"),
    "number": (lambda v: _number(v) is not None, "a finite number"),
    "integer": (_is_integer, "a whole number"),
    "boolean": (lambda v: isinstance(v, bool), "true or false"),
    "object": (lambda v: isinstance(v, dict), "an object"),
    "array": (lambda v: isinstance(v, list), "a list"),
}


def normalize_arguments(
    schema: Mapping[str, Any], value: Any, room: list[int] | None = None, depth: int = DEPTH_LIMIT - 2
) -> Any:
    """Return the arguments of a call as their schema means them; what needs no change is what came."""

    # An optional null is left out, and JSON text becomes the object or list that it spells where only such
    # may stand: some clients send null for what they leave out, others everything nested as text.
    # `depth` levels are left to `value`, since arguments are the third of a message, and `room` lists and
    # objects to all texts; a text beyond either stays text, which the check then refuses.
    room = [CONTAINERS_LIMIT] if room is None else room
    wanted, rules, items = schema.get("type"), schema.get("properties", {}), schema.get("items")
    if isinstance(value, str) and wanted in ("object", "array"):
        try:
            spelled = read_json(value, decoder, depth=depth, containers=room[0])
        except ValueError:
            return value
        room[0] -= nesting(value)[1]
        value = spelled if TYPES[wanted][0](spelled) else value
    if isinstance(value, dict):
        kept = schema.get("required", ())
        return {
            name: normalize_arguments(rules[name], part, room, depth - 1) if name in rules else part
            for name, part in value.items()
            if part is not None or name in kept or name not in rules
        }
    if isinstance(value, list) and isinstance(items, dict):
        return [normalize_arguments(items, part, room, depth - 1) for part in value]
    return value


def check_arguments(schema: Mapping[str, Any], arguments: Mapping[str, Any], path: str = "") -> None:
    """Raise BadArgument, naming the field, when a required property is missing or of the wrong type.

    A light check on purpose: only `required` and primitive types, into nested objects as far as
    the schema describes them; `path` leads to `arguments` in the outermost one. Unknown properties,
    ranges and all meaning are the backend's. Nothing is ever rounded, clamped or converted.
    """
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in arguments:
            raise BadArgument(f"argument {path}{name} is missing; it wants {_expected(properties.get(name, {}))}")
    for name, rule in properties.items():
        if name not in arguments:
            continue
        check, _ = TYPES.get(rule.get("type", ""), (None, ""))
        if check and not check(arguments[name]):
            raise BadArgument(f"argument {path}{name} must be {_expected(rule)}")
        if isinstance(arguments[name], dict):
            check_arguments(rule, arguments[name], f"{path}{name}.")


def _expected(rule: Mapping[str, Any]) -> str:
    _, type_name = TYPES.get(rule.get("type", ""), (None, "a value"))
    note = str(rule.get("description", "")).strip()
    return f"{type_name} ({note})" if note else type_name


# --- the list, and results -------------------------------------------------------------------


class ToolList:
    """The tools of the moment, with their `tools/list` result already written as bytes."""

    def __init__(self, tools: Sequence[Tool], ttl_ms: int = 60_000) -> None:
        self.tools = {tool.name: tool for tool in tools}
        listed = [tool.listed() for tool in tools]
        self.result = compact({"tools": listed, "ttlMs": ttl_ms, "cacheScope": "private"})[1:-1]

    def acts(self, name: str) -> bool:
        """Return True for a tool that changes something, whose errors have to say what became of the action."""
        tool = self.tools.get(name)
        return tool is not None and not tool.annotations.get("readOnlyHint", False)


# What a model has to know after an action that failed, or it repeats a touch that took place.
ADVICE: Mapping[str, str] = {
    NOT_SENT: "Nothing of this call reached the phone; it can be called again.",
    DONE: "The action took place; do not repeat it.",
    UNKNOWN: "Whether it took place is not known; look at the screen before you repeat it.",
}


def error_content(error: ToolError, acts: bool) -> Content:
    """Return the result that tells a model what went wrong; for a tool that `acts` also what became of the action."""
    if not acts:
        return Content((Text(error.text),), error.structured or None, is_error=True)
    message = Text(f"{error.text}\n{ADVICE[error.delivery]}")
    return Content((message,), {**error.structured, "delivery": error.delivery}, is_error=True)
