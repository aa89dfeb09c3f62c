"""The Agent's live schemas over the built-in ones.

The allowlist decides which tools there are; the Agent may only say what they take, and only in
a form that no client stumbles over. `docs/agent-api.md` describes that form.
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeGuard

from mcpboard.board.readers import finite_json
from mcpboard.board.tools import ROWS, BoardTool, allowed
from mcpboard.errors import BackendBroken, ToolError
from mcpboard.protocol.limits import SCHEMA_DEPTH_LIMIT

if TYPE_CHECKING:
    from mcpboard.board.backend import BackendResponse

FRESH_S = 60.0  # how long a copy is good for; tools change with the board's software only
RETRY_S = 5.0  # after a failure: soon enough for a board that boots, too rare to slow every list

# Words that make clients drop a tool: at the root for some providers, anywhere for the references.
_ROOT_NEVERS = frozenset({"anyOf", "oneOf", "allOf", "not", "if"})
_NEVERS = frozenset({"$ref", "$defs", "definitions"})
# Words whose values are no schemas: plain data, and `properties`, which is a table of them.
_DATA = frozenset({"properties", "examples", "example", "enum", "const", "default"})
_PROPERTY_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_UNEXPLAINED = {"description": "Taken by this board's Agent, which does not explain it"}


class Catalog:
    """The rows with the schemas of this board's Agent; always all of them, in the same order.

    `clock` is monotonic, in seconds. Nothing is fetched before the first `refresh`.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._reading = threading.Lock()
        self._due = -math.inf  # clock time from which the copy is old
        self._offers = _offers(ROWS)

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
        offers = _offers(tuple(_with_schema(row, live.get(row.tool.name)) for row in ROWS))
        if offers != self._offers:
            self._offers = offers
        return True


def _offers(rows: tuple[BoardTool, ...]) -> Mapping[bool, tuple[BoardTool, ...]]:
    return {shell: allowed(shell, rows) for shell in (True, False)}


def _with_schema(row: BoardTool, live: object) -> BoardTool:
    """Return the row with the live schema where that is usable, else as built in."""
    if not is_usable(live):
        return row
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
    return schema


def live_schemas(response: BackendResponse) -> dict[str, Any]:
    """Return tool name -> whatever the Agent calls its schema; BackendBroken when the response is no catalog."""
    document = finite_json(response.body) if response.status == 200 else None
    tools = document.get("tools") if isinstance(document, dict) else None
    if not isinstance(tools, list):
        raise BackendBroken("the Agent's answer is no tool list")
    return {str(entry.get("name")): entry.get("args_schema") for entry in tools if isinstance(entry, dict)}


def is_usable(schema: object) -> TypeGuard[Mapping[str, Any]]:
    """Tell if every client takes the schema as a tool's, and the argument check can walk it."""
    if not isinstance(schema, dict) or schema.get("type") != "object" or _ROOT_NEVERS & schema.keys():
        return False
    return isinstance(schema.get("properties"), dict) and _is_sound(schema, SCHEMA_DEPTH_LIMIT)


def _is_sound(schema: Mapping[str, Any], depth: int) -> bool:
    if depth == 0 or _NEVERS & schema.keys() or None in schema.values():
        return False
    required, properties = schema.get("required", []), schema.get("properties", {})
    return (
        isinstance(schema.get("type", ""), str)
        and isinstance(schema.get("description", ""), str)
        and isinstance(required, list)
        and all(isinstance(name, str) for name in required)
        and isinstance(properties, dict)
        and all(_PROPERTY_NAME.fullmatch(name) and isinstance(rule, dict) for name, rule in properties.items())
        and all(_is_sound(part, depth - 1) for part in _parts(schema))
    )


def _parts(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the schemas directly inside `schema`; values that are data, such as examples, are none."""
    yield from schema.get("properties", {}).values()
    for value in (value for word, value in schema.items() if word not in _DATA):
        yield from (part for part in (value if isinstance(value, list) else (value,)) if isinstance(part, dict))
