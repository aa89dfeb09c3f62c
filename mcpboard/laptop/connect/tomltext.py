"""TOML changed in place, by tomlkit, which keeps every other byte."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcpboard.errors import ConfigError

MISSING = "a TOML file needs one more package: pip install 'mcpboard[connect]'; or add the form by hand"


def load(text: str) -> Any:
    """The document as plain values; raises ConfigError for a text that is not TOML."""
    return _parsed(text).unwrap()


def put(text: str, path: Sequence[str], value: Any) -> str:
    """`text` with `value` at `path`, whose last table but one must be there."""
    document = _parsed(text)
    table = document
    for key in path[:-1]:
        table = table[key]
    _set(table, path[-1], value)
    return str(document.as_string())


def _set(table: Any, key: str, value: Any) -> None:
    """Set what differs and nothing else, so that comments in an entry survive."""
    if isinstance(value, dict) and isinstance(table.get(key), dict):
        for gone in [name for name in table[key] if name not in value]:
            del table[key][gone]
        for name, inner in value.items():
            if table[key].get(name) != inner:
                _set(table[key], name, inner)
    else:
        table[key] = value


def _parsed(text: str) -> Any:
    try:
        import tomlkit  # the extra `connect`
        import tomlkit.exceptions
    except ImportError:
        raise ConfigError(MISSING) from None
    try:
        return tomlkit.parse(text)
    except (tomlkit.exceptions.TOMLKitError, ValueError) as error:
        raise ConfigError(f"it is not valid TOML ({error}); nothing was written") from None
