"""Finding words and icons among the elements of a screen, best match first."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from mcpboard.host.eyes.tree import Node

LEAST_SCORE = 0.75  # of 1; below that a match is a coincidence (contract, find_icon)
SURE = 0.9  # of 1; what a model may tap without looking
MOST_MATCHES = 50  # more would fill a model's memory and help nobody
ICON_ROLES = frozenset({"icon", "image", "button"})

# What people call an icon -> what apps call it.
ALIASES: Mapping[str, str] = {
    "gear": "settings",
    "cog": "settings",
    "magnifier": "search",
    "trash": "delete",
    "bin": "delete",
    "envelope": "mail",
    "house": "home",
    "arrow left": "back",
    "cross": "close",
    "plus": "add",
}


def find_text(tree: Node, query: str) -> list[dict[str, Any]]:
    """Every element whose text or description is, holds, or nearly is `query`."""
    found = []
    for node in tree.walk():
        scored = [(*_likeness(words, query), words) for words in (node.text, node.desc) if words]
        score, match, words = max(scored, default=(0.0, "", ""))
        if score >= LEAST_SCORE:
            found.append({"text": words, "score": score, **_place(node), "match": match, "source": "tree"})
    return _best(found)


def find_icon(tree: Node, name: str) -> list[dict[str, Any]]:
    """Every icon or button that is called `name`, or what people mean by it."""
    found = []
    for node in tree.walk():
        words = [words for words in (node.text, node.desc, node.id) if words and node.role in ICON_ROLES]
        score = max((_likeness(each, wanted)[0] for each in words for wanted in _names(name)), default=0.0)
        if score >= LEAST_SCORE:
            found.append({"name": words[0], "score": score, **_place(node), "confident": score >= SURE})
    return _best(found)


def _names(name: str) -> set[str]:
    return {name, ALIASES.get(name.strip().casefold(), name)}


def _likeness(words: str, query: str) -> tuple[float, str]:
    """How much the two are alike, and in which way."""
    ours, theirs = " ".join(words.casefold().split()), " ".join(query.casefold().split())
    if not theirs:
        return 0.0, ""
    if ours == theirs:
        return 1.0, "exact"
    if theirs in ours:
        return SURE, "contains"
    return round(difflib.SequenceMatcher(None, ours, theirs).ratio(), 2), "similar"


def _place(node: Node) -> dict[str, Any]:
    return {"box": list(node.box), "center": list(node.center)}


def _best(found: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Best first; the order of the screen where they are alike."""
    return sorted(found, key=lambda match: -match["score"])[:MOST_MATCHES]
