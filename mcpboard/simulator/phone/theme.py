"""The colours of the pretend phone, by day and by night."""

from __future__ import annotations

from dataclasses import dataclass

from mcpboard.simulator.phone.view import View


@dataclass(frozen=True)
class Theme:
    """One palette; a page names what it paints, never a colour of its own where one of these will do."""

    paper: str  # behind everything
    card: str  # groups, fields, bars
    ink: str
    pale: str  # secondary text
    line: str
    accent: str
    on: str  # a switch that is on
    off: str
    board: str  # behind the keys
    key: str
    dull_key: str  # keys that write nothing
    shadow: float  # strength, 0 to 1


LIGHT = Theme(
    paper="#f2f2f7", card="#ffffff", ink="#17181c", pale="#85868d", line="#e3e3e8", accent="#0a74ff", on="#34c759",
    off="#e4e4e9", board="#d3d6dd", key="#ffffff", dull_key="#aeb4bf", shadow=0.14,
)  # fmt: skip
DARK = Theme(
    paper="#0b0c10", card="#1d1f25", ink="#f4f5f8", pale="#9093a0", line="#30323a", accent="#4a9bff", on="#30d158",
    off="#3d3f47", board="#1a1b20", key="#4a4d57", dull_key="#32343c", shadow=0.5,
)  # fmt: skip


def theme(view: View) -> Theme:
    """The palette that is on."""
    return DARK if view.dark else LIGHT
