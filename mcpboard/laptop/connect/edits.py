"""A server's entry in the text of a client's configuration: set there, with everything else left as it is.

An edit is made in the text and then read back: unless that gives exactly the old document with the
entry in it, and every comment is still there, the edit is refused and nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcpboard.client_configs import CONNECTION_KEYS, WRITERS
from mcpboard.errors import ConfigError
from mcpboard.laptop.connect import json_edit, toml_yaml_edit

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
    "json": Language(json_edit.load, json_edit.put),
    "toml": Language(toml_yaml_edit.load_toml, toml_yaml_edit.put_toml, "#", appends=True),
    "yaml": Language(toml_yaml_edit.load_yaml, toml_yaml_edit.put_yaml, "#", appends=True),
}

BY_HAND = "nothing was written; add the config entry by hand"


def with_entry(format: str, text: str, ours: Document) -> str:
    """Return `text` with the tables and lists of `ours` in it, the very same text when they are there already.

    Raises ConfigError for a text that cannot be parsed, or not be changed without harm to the rest.
    """
    language = LANGUAGES[format]
    old = language.load(text) if text.strip() else {}
    if not isinstance(old, dict):
        raise ConfigError(f"it holds no table at the top; {BY_HAND}")
    new = merged(old, ours)
    if new == old:
        return text
    if not text.strip():
        return WRITERS[format](ours) + "\n"
    for attempt in (_appended, _put):
        changed = attempt(format, text, old, new)
        if changed is not None and _is_sound(language, text, changed, new):
            return changed
    raise ConfigError(f"it cannot be changed without touching the rest of it; {BY_HAND}")


def merged(old: Document, ours: Document) -> dict[str, Any]:
    """Return the document `old` with `ours` in it: an entry's other members stay, how to connect is replaced."""
    new = dict(old)
    for key, value in ours.items():
        present = old.get(key)
        if isinstance(value, dict):
            if present is not None and not isinstance(present, dict):
                raise ConfigError(f"{key} is there, but is no table; {BY_HAND}")
            table = new[key] = dict(present or {})
            for name, entry in value.items():
                there = table.get(name)
                added = there if isinstance(there, dict) else {}
                table[name] = {**entry, **{each: added[each] for each in added if each not in CONNECTION_KEYS}}
        else:
            if present is not None and not isinstance(present, list):
                raise ConfigError(f"{key} is there, but is no list; {BY_HAND}")
            ids = [item["id"] for item in value]
            others = [each for each in present or [] if not isinstance(each, dict) or each.get("id") not in ids]
            same = [each for each in present or [] if each not in others]
            new[key] = list(present or []) if same == list(value) else [*others, *value]
    return new


# --- two ways to change a text -------------------------------------------------------------------


def _appended(format: str, text: str, old: Document, new: Document) -> str | None:
    """Return the text with what is new at its end; None unless the language allows it and all of it is new."""
    fresh: dict[str, Document] = {}
    for key, value in new.items():
        present = old.get(key, {})
        if old.get(key) == value:
            continue
        if not isinstance(present, dict) or not isinstance(value, dict):
            return None
        fresh[key] = {name: inner for name, inner in value.items() if present.get(name) != inner}
        if present.keys() & fresh[key].keys():
            return None
    if not LANGUAGES[format].appends:
        return None
    if format == "yaml" and old.keys() & fresh.keys():  # a key twice is an error there
        return None
    line = "\r\n" if "\r\n" in text else "\n"
    end = "" if text.endswith("\n") else line
    return text + end + line + WRITERS[format](fresh).replace("\n", line) + line


def _put(format: str, text: str, old: Document, new: Document) -> str | None:
    """Return the text with each value that differs set at its place."""
    put = LANGUAGES[format].put
    for key, value in new.items():
        present = old.get(key)
        if isinstance(value, dict) and isinstance(present, dict):
            for name in value:
                if present.get(name) != value[name]:
                    text = put(text, (key, name), value[name])
        elif present != value:
            text = put(text, (key,), value)
    return text


def _is_sound(language: Language, before: str, after: str, new: Document) -> bool:
    """Tell if the text `after` reads as `new` and has lost no comment."""
    try:
        if language.load(after) != new:
            return False
    except ConfigError:
        return False
    if not language.comment:
        return True
    # A rough rule, which takes some other text for a comment: it only has to miss none.
    lost, kept = (
        {line[line.index(language.comment) :].rstrip() for line in text.splitlines() if language.comment in line}
        for text in (before, after)
    )
    return lost <= kept
