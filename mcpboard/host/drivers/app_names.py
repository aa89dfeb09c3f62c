"""From the name that a person gives an app to the identifier that the phone has for it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from mcpboard.errors import NOT_SENT, ToolFailed
from mcpboard.host.drivers.base import table

MOST_NAMED = 8  # candidates in a refusal

# Labels that do not occur in their package's name.
LABELS: Mapping[str, list[str]] = table("app_names", "android")

# The same of Apple's own apps; an iPhone tells no list of those that it has.
BUNDLES: Mapping[str, str] = table("app_names", "iphone")


def find_package(name: str, installed: Sequence[str]) -> str:
    """Return the installed package that `name` means: its own name, a part of it, or a known label.

    ToolFailed where it means none or several: an app is never guessed.
    """
    if name in installed:
        return name
    wanted = name.casefold().strip()
    known = [package for package in LABELS.get(wanted, ()) if package in installed]
    if known:
        return known[0]
    word = "".join(wanted.split())
    ending = [package for package in installed if package.casefold().rpartition(".")[2] == word]
    matches = ending or [package for package in installed if word in package.casefold().split(".")]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise _refused(name, f"may mean {_named(matches)}; launch it by its package")
    near = [package for package in installed if word in package.casefold()]
    near = near or difflib.get_close_matches(word, installed, MOST_NAMED, 0.4)
    hint = f"near it: {_named(near)}" if near else f"{len(installed)} packages are installed"
    raise _refused(name, f"is no app here; {hint}")


def find_bundle(name: str) -> str:
    """Return the bundle id that `name` is, or the one of Apple's app of that name."""
    known = BUNDLES.get(name.casefold().strip())
    if known is None and "." not in name:
        labels = ", ".join(BUNDLES)
        raise _refused(name, f"is no bundle id such as com.apple.Preferences, and none of {labels}")
    return known or name


def _named(packages: Sequence[str]) -> str:
    return ", ".join(packages[:MOST_NAMED]) + (" and more" if len(packages) > MOST_NAMED else "")


def _refused(name: str, reason: str) -> ToolFailed:
    return ToolFailed(f"{name[:80]!r} {reason}", delivery=NOT_SENT)
