"""Finding text and icons on a screen, best match first: among its elements, and in its screenshot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mcpboard.host.vision.icons.synonyms import meant_by, shapes_called
from mcpboard.host.vision.text_match import SURE, likeness, part
from mcpboard.host.vision.tree import UiNode
from mcpboard.host.vision.types import Box, Icon, TextLine, center, inside

LEAST_SCORE = 0.75  # of 1; below that a match is a coincidence
TILE = "stop"  # a plain square is a stop button, unless something is drawn on it
NEARLY_BEST = 0.05  # of 1; an icon may be meant that is a little more like something else
PART_OF = 0.05  # of 1; a whole that is this much less certain than its part is still the whole
# Characters of a tree in which slips are looked for: half a second. A real screen has some thousand.
MOST_WITH_SLIPS = 50_000
MOST_MATCHES = 50  # more would fill a model's memory and help nobody
ICON_ROLES = frozenset({"icon", "image", "button"})

Match = dict[str, Any]


def text_in_tree(tree: UiNode, query: str) -> list[Match]:
    """Return every element whose text or description is, contains, or nearly is `query`."""
    matches, left = [], MOST_WITH_SLIPS
    for node in tree.walk():
        texts = [text for text in (node.text, node.desc) if text]
        scored = [(*likeness(text, query, left > 0), text) for text in texts]
        left -= sum(len(text) for text in texts)
        score, match, text = max(scored, default=(0.0, "", ""))
        if score >= LEAST_SCORE:
            matches.append({"text": text, "score": score, **_place(node.box), "match": match, "source": "tree"})
    return _best(matches)


def text_in_picture(lines: Iterable[TextLine], query: str) -> list[Match]:
    """Return the same among lines that were read; the box is that of the text asked for, within its line."""
    matches = []
    for line in lines:
        score, match = likeness(line.text, query)
        if score < LEAST_SCORE:
            continue
        left, top, right, bottom = line.box
        start, end = part(line.text, query)
        box = round(left + start * (right - left)), top, round(left + end * (right - left)), bottom
        score = round(score * line.score, 2)
        matches.append({"text": line.text, "score": score, **_place(box), "match": match, "source": "ocr"})
    return _best(matches)


def icon_in_tree(tree: UiNode, name: str) -> list[Match]:
    """Return every icon or button that is called `name`, or what people mean by it."""
    wanted = shapes_called(name)
    matches, left = [], MOST_WITH_SLIPS
    for node in tree.walk():
        labels = [label for label in (node.text, node.desc, node.id) if label and node.role in ICON_ROLES]
        score = 0.0
        for label in labels:
            meaning = SURE if meant_by(label) & wanted else 0.0
            score = max(score, meaning, *(likeness(label, each, left > 0)[0] for each in (name, *wanted)))
            left -= len(label)
        if score >= LEAST_SCORE:
            matches.append({"name": labels[0], "score": score, **_place(node.box), "confident": score >= SURE})
    return _best(matches)


def icon_in_picture(icons: Iterable[Icon], name: str) -> list[Match]:
    """Return every icon that shows what is called `name` and is hardly more like anything else, one for each place."""
    wanted = shapes_called(name)
    matches = []
    for icon in icons:
        shape, score = next(((shape, score) for shape, score in icon.shapes if shape in wanted), ("", 0.0))
        best, most = icon.best
        if score >= max(LEAST_SCORE, most - NEARLY_BEST):
            confident = score >= SURE and best in wanted
            matches.append({"name": shape, "score": round(score, 2), **_place(icon.box), "confident": confident})
    kept: list[Match] = []
    for match in _best(matches):
        if not any(_within(match, other) or _within(other, match) for other in kept):
            kept.append(match)
    return kept


def together(first: Sequence[Match], second: Sequence[Match]) -> list[Match]:
    """Return both, without those of the second that lie within the box of one of the first."""
    new = [match for match in second if not any(_within(match, known) for known in first)]
    return _best([*first, *new])


def sure(matches: Iterable[Match]) -> bool:
    """Return true where one match may be tapped without looking any further."""
    return any(match["score"] >= SURE for match in matches)


def distinct(icons: Iterable[Icon]) -> list[Icon]:
    """Return one icon for each place: a plus in a circle is a plus in a circle, a plus on a tile is a plus."""
    kept: list[Icon] = []
    for icon in sorted(icons, key=lambda icon: -(icon.box[2] - icon.box[0]) * (icon.box[3] - icon.box[1])):
        around = [whole for whole in kept if inside(center(icon.box), whole.box)]
        if any(whole.best[0] != TILE and whole.best[1] >= icon.best[1] - PART_OF for whole in around):
            continue
        kept = [each for each in kept if each not in around] + [icon]
    return kept


def _place(box: Box) -> Match:
    return {"box": list(box), "center": list(center(box))}


def _within(match: Match, known: Match) -> bool:
    return inside(match["center"], known["box"])


def _best(matches: Iterable[Match]) -> list[Match]:
    """Sort best first, in the order of the screen where they are alike, and cut the list."""
    return sorted(matches, key=lambda match: -match["score"])[:MOST_MATCHES]
