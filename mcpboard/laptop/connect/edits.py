"""A server's entry in the text of a client's configuration: set there, with everything else left as it is.

An edit is made in the text and then read back: unless that gives exactly the old document with the
entry in it, and every comment is still there, the edit is refused and nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcpboard.client_configs import CONNECTS, WRITERS
from mcpboard.errors import ConfigError
from mcpboard.laptop.connect import jsontext, tomltext, yamltext

Document = Mapping[str, Any]


@dataclass(frozen=True)
class Language:
    """A configuration language; `load` and `put` raise ConfigError for a text that they cannot follow.

    `put(text, path, value)` sets one value, creating what is missing on the way; `comment` is what
    begins one, and with `appends` a document written at the end of a text becomes part of it.
    """

    load: Callable[[str], Any]
    put: Callable[[str, Sequence[str], Any], str]
    comment: str = ""
    appends: bool = False


LANGUAGES: Mapping[str, Language] = {
    "json": Language(jsontext.load, jsontext.put),
    "toml": Language(tomltext.load, tomltext.put, "#", appends=True),
    "yaml": Language(yamltext.load, yamltext.put, "#", appends=True),
}

BY_HAND = "nothing was written; add the form by hand"


def edited(format: str, text: str, ours: Document) -> str:
    """`text` with the tables and lists of `ours` in it, the very same text when they are there already.

    Raises ConfigError for a text that cannot be parsed, or not be changed without harm to the rest.
    """
    language = LANGUAGES[format]
    old = language.load(text) if text.strip() else {}
    if not isinstance(old, dict):
        raise ConfigError(f"it holds no table at the top; {BY_HAND}")
    new = wanted(old, ours)
    if new == old:
        return text
    if not text.strip():
        return WRITERS[format](ours) + "\n"
    for attempt in (_appended, _put):
        changed = attempt(format, text, old, new)
        if changed is not None and _is_sound(language, text, changed, new):
            return changed
    raise ConfigError(f"it cannot be changed without touching the rest of it; {BY_HAND}")


def wanted(old: Document, ours: Document) -> dict[str, Any]:
    """The document `old` with `ours` in it: what an entry's owner added to it stays, how to connect does not."""
    new = dict(old)
    for key, value in ours.items():
        present = old.get(key)
        if isinstance(value, dict):
            new[key] = _with_entries(key, present, value)
        else:
            new[key] = _with_items(key, present, value)
    return new


def _with_entries(key: str, present: object, entries: Mapping[str, Any]) -> dict[str, Any]:
    if present is not None and not isinstance(present, dict):
        raise ConfigError(f"{key} is there, but is no table; {BY_HAND}")
    table = dict(present or {})
    for name, entry in entries.items():
        table[name] = _merged(table.get(name), entry)
    return table


def _merged(present: object, entry: Mapping[str, Any]) -> dict[str, Any]:
    kept = present if isinstance(present, dict) else {}
    own = {key: value for key, value in kept.items() if key not in CONNECTS}
    return {**entry, **own}


def _with_items(key: str, present: object, items: Sequence[Mapping[str, Any]]) -> list[Any]:
    if present is not None and not isinstance(present, list):
        raise ConfigError(f"{key} is there, but is no list; {BY_HAND}")
    ids = [item["id"] for item in items]
    others = [each for each in present or [] if not isinstance(each, dict) or each.get("id") not in ids]
    there = [each for each in present or [] if each not in others]
    return list(present or []) if there == list(items) else [*others, *items]


# --- two ways to change a text -------------------------------------------------------------------


def _appended(format: str, text: str, old: Document, new: Document) -> str | None:
    """What is new, at the end, where a language allows that and nothing of it was there before."""
    language = LANGUAGES[format]
    fresh = {key: _fresh(old.get(key, {}), value) for key, value in new.items() if old.get(key) != value}
    if not language.appends or any(value is None for value in fresh.values()):
        return None
    if format == "yaml" and any(key in old for key in fresh):  # a key twice is an error there
        return None
    line = "\r\n" if "\r\n" in text else "\n"
    end = "" if text.endswith("\n") else line
    return text + end + line + WRITERS[format](fresh).replace("\n", line) + line


def _fresh(old: object, new: object) -> dict[str, Any] | None:
    """The members of `new` that `old` does not have; None when any other has changed."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return None
    changed = {key: value for key, value in new.items() if old.get(key) != value}
    return None if old.keys() & changed.keys() else changed


def _put(format: str, text: str, old: Document, new: Document) -> str | None:
    for key, value in new.items():
        there = old.get(key)
        if isinstance(value, dict) and isinstance(there, dict):
            for name in value:
                if there.get(name) != value[name]:
                    text = LANGUAGES[format].put(text, (key, name), value[name])
        elif there != value:
            text = LANGUAGES[format].put(text, (key,), value)
    return text


def _is_sound(language: Language, before: str, after: str, new: Document) -> bool:
    try:
        return bool(language.load(after) == new) and _comments(language, before) <= _comments(language, after)
    except ConfigError:
        return False


def _comments(language: Language, text: str) -> set[str]:
    """The comments, by a rough rule that takes some other text for one: it only has to miss none."""
    if not language.comment:
        return set()
    return {line[line.index(language.comment) :].rstrip() for line in text.splitlines() if language.comment in line}
