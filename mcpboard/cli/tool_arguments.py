"""`key=value` from a shell -> the argument that a tool's schema describes; everything else stays text."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from mcpboard.errors import ConfigError
from mcpboard.text import read_json


def pairs(words: Sequence[str]) -> dict[str, str]:
    """Split each word at its first `=`; raises ConfigError for a word without one, or a key given twice."""
    arguments: dict[str, str] = {}
    for word in words:
        key, sign, value = word.partition("=")
        if not sign or not key:
            raise ConfigError(f"{word}: arguments are written KEY=VALUE")
        if key in arguments:
            raise ConfigError(f"{key} is given twice; a list is written {key}='[1, 2]'")
        arguments[key] = value
    return arguments


def json_object(text: str) -> dict[str, Any]:
    """Return the JSON object in `text`; raises ConfigError for anything else."""
    try:
        document = read_json(text, _decoder)
    except ValueError as error:
        raise ConfigError(f"--json: that is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise ConfigError('--json: an object is expected, such as {"x": 1}')
    return document


def schema_of(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the tool's input schema, empty where the server gave none."""
    schema = tool.get("inputSchema")
    return schema if isinstance(schema, dict) else {}


def typed(written: Mapping[str, str], tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments as the tool's schema types them; raises ConfigError for one that does not fit."""
    properties = schema_of(tool).get("properties")
    rules = properties if isinstance(properties, dict) else {}
    values: dict[str, Any] = {}
    for key, text in written.items():
        rule = rules.get(key)
        kind = rule.get("type") if isinstance(rule, dict) else None
        read, expected = READERS[kind] if isinstance(kind, str) and kind in READERS else (str, "text")
        try:
            values[key] = read(text)
        except ValueError:
            raise ConfigError(f"{key}={text}: {key} must be {expected}") from None
    return values


# --- one reader a type; each raises ValueError -----------------------------------------------


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _of(kind: type, text: str) -> Any:
    value = read_json(text, _decoder)
    return value if isinstance(value, kind) else _refuse(text)


def _refuse(text: str) -> NoReturn:
    raise ValueError(text)


_decoder = json.JSONDecoder(parse_constant=_refuse)


# Type word of JSON Schema -> its reader, and a person's word for it.
READERS: Mapping[str, tuple[Callable[[str], Any], str]] = {
    "number": (_number, "a number"),
    "integer": (int, "a whole number"),
    "boolean": (lambda text: _of(bool, text.lower()), "true or false"),
    "object": (functools.partial(_of, dict), "a JSON object"),
    "array": (functools.partial(_of, list), "a JSON list"),
}
