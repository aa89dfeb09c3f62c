"""The Agent's live schemas over the built-in ones.

The allowlist decides which tools there are; the Agent may only say what they take, and only in
the forms that every client takes: a list of good ones, in `docs/protocol.md` with who refuses which other.
"""

from __future__ import annotations

import logging
import math
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mcpboard.board.readers import finite_json
from mcpboard.board.tools import ROWS, BoardTool, allowed
from mcpboard.errors import BackendBroken, ToolError
from mcpboard.protocol.limits import COUNT_LIMIT, DESCRIPTION_LIMIT, SCHEMA_DEPTH_LIMIT

if TYPE_CHECKING:
    from mcpboard.board.backend import BackendResponse

FRESH_S = 60.0  # how long a copy is good for; tools change with the board's software only
RETRY_S = 5.0  # after a failure: soon enough for a board that boots, too rare to slow every list

_UNEXPLAINED = {"description": "Taken by this board's Agent, which does not explain it"}

log = logging.getLogger("mcpboard")


class Catalog:
    """The rows with the schemas of this board's Agent; always all of them, in the same order.

    `clock` is monotonic, in seconds. Nothing is fetched before the first `refresh`.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._reading = threading.Lock()
        self._due = -math.inf  # clock time from which the copy is old
        self._offers = _offers(ROWS)
        self._refused: dict[str, str] = {}

    def rows(self, shell: bool) -> tuple[BoardTool, ...]:
        """Return the rows on offer with their schemas as last known; the same object until one changes."""
        return self._offers[shell]

    def refresh(self, fetch: Callable[[], BackendResponse]) -> None:
        """Read the Agent's catalog again when the copy is old; raises nothing.

        `fetch` asks the Agent for `GET /api/tools`, within its own limit, and may raise ToolError.
        One caller at a time reads. The others go on with the last good copy, as everybody does
        when the reading fails.
        """
        if not self._reading.acquire(blocking=False):
            return
        try:
            if self._clock() >= self._due:
                self._due = self._clock() + (FRESH_S if self._read(fetch) else RETRY_S)
        finally:
            self._reading.release()

    def _read(self, fetch: Callable[[], BackendResponse]) -> bool:
        try:
            live = live_schemas(fetch())
        except (ToolError, ValueError):
            return False
        # Older Agents have no schemas, which is no fault.
        offered = {row.tool.name: live[row.tool.name] for row in ROWS if live.get(row.tool.name) is not None}
        refused = {name: place for name, schema in offered.items() if (place := outside(schema))}
        for name, place in refused.items():
            if self._refused.get(name) != place:
                log.info(
                    "%s: the Agent's schema is not shown, some clients refuse it (%s); the built-in one is", name, place
                )
        self._refused = refused
        good = {name: schema for name, schema in offered.items() if name not in refused}
        offers = _offers(
            tuple(_with_schema(row, good[row.tool.name]) if row.tool.name in good else row for row in ROWS)
        )
        if offers != self._offers:
            self._offers = offers
        return True


def _offers(rows: tuple[BoardTool, ...]) -> Mapping[bool, tuple[BoardTool, ...]]:
    return {shell: allowed(shell, rows) for shell in (True, False)}


def _with_schema(row: BoardTool, live: Mapping[str, Any]) -> BoardTool:
    schema = _described(live, row.tool.input_schema)
    if not schema["properties"]:
        schema["additionalProperties"] = False
    return replace(row, tool=replace(row.tool, input_schema=schema))


def _described(live: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return `live` with a description of every property: theirs, else ours, else that there is none.

    Some clients drop a tool for one argument without a description.
    """
    schema = dict(live)
    if "description" in own:
        schema.setdefault("description", own["description"])
    if "properties" in live:
        described = own.get("properties", {})
        schema["properties"] = {
            name: _described(rule, described.get(name, _UNEXPLAINED)) for name, rule in live["properties"].items()
        }
    if "items" in live:
        schema["items"] = _described(live["items"], own.get("items", {}))
    return schema


def live_schemas(response: BackendResponse) -> dict[str, Any]:
    """Return tool name -> whatever the Agent calls its schema; BackendBroken when the response is no catalog."""
    document = finite_json(response.body) if response.status == 200 else None
    tools = document.get("tools") if isinstance(document, dict) else None
    if not isinstance(tools, list):
        raise BackendBroken("the Agent's answer is no tool list")
    return {str(entry.get("name")): entry.get("args_schema") for entry in tools if isinstance(entry, dict)}


# --- the subset that every client takes -----------------------------------------------------------

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")  # of a property
# Type word -> the Python types of its values.
_VALUES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "number": (int, float), "integer": (int,), "boolean": (bool,)
}  # fmt: skip
# Without it such a schema is refused by some.
_NEEDED = {"object": "properties", "array": "items"}


def _is_count(value: Any, schema: Mapping[str, Any]) -> bool:
    return type(value) is int and 0 <= value < COUNT_LIMIT


def _is_text(value: Any, schema: Mapping[str, Any]) -> bool:
    return isinstance(value, str) and len(value) <= DESCRIPTION_LIMIT


def _are_texts(values: Any, schema: Mapping[str, Any]) -> bool:
    return (
        isinstance(values, list)
        and all(isinstance(value, str) and value for value in values)
        and len({*values}) == len(values)
    )


_ANY, _NUMBERS = "object array string number integer boolean", "number integer"

# Keyword -> the type words beside which it may stand, and what its value may be.
# The same table is in docs/protocol.md; a test compares them.
KEYWORDS: Mapping[str, tuple[str, Callable[[Any, Mapping[str, Any]], bool]]] = {
    "type": (_ANY, lambda value, schema: True),
    "title": (_ANY, _is_text),
    "description": (_ANY, _is_text),
    "default": (_ANY, lambda value, schema: type(value) in _VALUES[schema["type"]]),
    "examples": (
        _ANY,
        lambda value, schema: isinstance(value, list) and {*map(type, value)} <= {*_VALUES[schema["type"]]},
    ),
    "properties": ("object", lambda value, schema: isinstance(value, dict) and all(map(_NAME.fullmatch, value))),
    "required": (
        "object",
        lambda value, schema: _are_texts(value, schema) and {*value} <= {*schema.get("properties", ())},
    ),
    "additionalProperties": ("object", lambda value, schema: isinstance(value, bool)),
    "items": ("array", lambda value, schema: True),
    "minItems": ("array", _is_count),
    "maxItems": ("array", _is_count),
    "enum": ("string", lambda value, schema: bool(value) and _are_texts(value, schema)),
    "minLength": ("string", _is_count),
    "maxLength": ("string", _is_count),
    "minimum": (_NUMBERS, lambda value, schema: type(value) in (int, float)),
    "maximum": (_NUMBERS, lambda value, schema: type(value) in (int, float)),
    "exclusiveMinimum": (_NUMBERS, lambda value, schema: type(value) in (int, float)),
    "exclusiveMaximum": (_NUMBERS, lambda value, schema: type(value) in (int, float)),
}


def outside(schema: object, path: str = "", levels: int = SCHEMA_DEPTH_LIMIT) -> str:
    """Return the first place of a tool's schema that some client refuses, "" when every client takes it whole.

    The place is property names and a keyword, such as `actions[].point: pattern`; never a value.
    """
    word = schema.get("type") if isinstance(schema, dict) else None
    if (
        not isinstance(schema, dict)
        or not isinstance(word, str)
        or word not in _VALUES
        or not (path or word == "object")
    ):
        return f"{path or 'root'}: type"
    if levels == 0:
        return f"{path}: nested deeper than {SCHEMA_DEPTH_LIMIT} schemas"
    for keyword, value in schema.items():
        types, is_good = KEYWORDS.get(keyword, ("", None))
        if is_good is None or word not in types.split() or not is_good(value, schema):
            return f"{path or 'root'}: {ascii(keyword)[1:-1][:40]}"
    # An object that says nothing of its members is none for some; only a tool may take nothing.
    if word in _NEEDED and not (schema.get(_NEEDED[word]) or (not path and "properties" in schema)):
        return f"{path or 'root'}: no {_NEEDED[word]}"
    parts = {f"{path}.{name}".lstrip("."): part for name, part in schema.get("properties", {}).items()}
    if "items" in schema:
        parts[f"{path}[]"] = schema["items"]
    return next(filter(None, (outside(part, place, levels - 1) for place, part in parts.items())), "")
