"""`key=value` from a shell -> the argument that a tool's schema describes; everything else stays text."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from mcpboard.errors import ConfigError


def pairs(words: Sequence[str]) -> dict[str, str]:
    """Each word split at its first `=`; ConfigError for a word without one, or a key said twice."""
    found: dict[str, str] = {}
    for word in words:
        key, sign, value = word.partition("=")
        if not sign or not key:
            raise ConfigError(f"{word}: arguments are written KEY=VALUE")
        if key in found:
            raise ConfigError(f"{key} is given twice; a list is written {key}='[1, 2]'")
        found[key] = value
    return found


def json_object(text: str) -> dict[str, Any]:
    """The JSON object in `text`; ConfigError for anything else."""
    found = _json(text)
    if not isinstance(found, dict):
        raise ConfigError('--json: an object is expected, such as {"x": 1}')
    return found


def find(tools: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    """The tool of that name; an empty one where it is not listed, for the server is the one to refuse it."""
    return next((tool for tool in tools if tool["name"] == name), {})


def schema_of(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """The tool's input schema, empty where the server gave none."""
    schema = tool.get("inputSchema")
    return schema if isinstance(schema, dict) else {}


def typed(written: Mapping[str, str], tool: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as the tool's schema types them; ConfigError names the one that does not fit."""
    properties = schema_of(tool).get("properties")
    rules = properties if isinstance(properties, dict) else {}
    return {key: _argument(key, text, rules.get(key)) for key, text in written.items()}


def _argument(key: str, text: str, rule: object) -> Any:
    kind = rule.get("type") if isinstance(rule, dict) else None
    if not isinstance(kind, str) or kind not in READERS:
        return text
    reader, wanted = READERS[kind]
    try:
        return reader(text)
    except (ValueError, RecursionError):
        raise ConfigError(f"{key}={text}: {key} must be {wanted}") from None


# --- one reader a type; each raises ValueError -----------------------------------------------


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        _refuse(text)
    return text.lower() == "true"


def _of(kind: type) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        found = json.loads(text, parse_constant=_refuse)
        return found if isinstance(found, kind) else _refuse(text)

    return read


def _refuse(text: str) -> NoReturn:
    raise ValueError(text)


def _json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"--json: that is not JSON: {error}") from None


# Type word of JSON Schema -> how to read it, and what a person would call it.
READERS: Mapping[str, tuple[Callable[[str], Any], str]] = {
    "number": (_number, "a number"),
    "integer": (int, "a whole number"),
    "boolean": (_boolean, "true or false"),
    "object": (_of(dict), "a JSON object"),
    "array": (_of(list), "a JSON list"),
}
