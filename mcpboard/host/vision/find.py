"""Finding words and icons on a screen, best match first: among its elements, and in its picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mcpboard.host.vision.icons.synonyms import meant_by, shapes_called
from mcpboard.host.vision.text_match import SURE, likeness, part
from mcpboard.host.vision.tree import Box, UiNode
from mcpboard.host.vision.types import Icon, TextLine, centre, inside

LEAST_SCORE = 0.75  # of 1; below that a match is a coincidence (contract, find_icon)
TILE = "stop"  # a plain square is a stop button, unless something is drawn on it
NEARLY_BEST = 0.05  # of 1; an icon may be meant that is a little more like something else
PART_OF = 0.05  # of 1; a whole that is this much less certain than its part is still the whole
MOST_MATCHES = 50  # more would fill a model's memory and help nobody
ICON_ROLES = frozenset({"icon", "image", "button"})

Match = dict[str, Any]


def text_in_tree(tree: UiNode, query: str) -> list[Match]:
    """Every element whose text or description is, holds, or nearly is `query`."""
    found = []
    for node in tree.walk():
        scored = [(*likeness(words, query), words) for words in (node.text, node.desc) if words]
        score, match, words = max(scored, default=(0.0, "", ""))
        if score >= LEAST_SCORE:
            found.append({"text": words, "score": score, **_place(node.box), "match": match, "source": "tree"})
    return _best(found)


def text_in_picture(lines: Iterable[TextLine], query: str) -> list[Match]:
    """The same among the lines that were read; the box is that of the words asked for, within their line."""
    found = []
    for line in lines:
        score, match = likeness(line.text, query)
        if score >= LEAST_SCORE:
            box = _part_of(line, query) if match == "contains" else line.box
            sure = round(score * line.score, 2)
            found.append({"text": line.text, "score": sure, **_place(box), "match": match, "source": "ocr"})
    return _best(found)


def icon_in_tree(tree: UiNode, name: str) -> list[Match]:
    """Every icon or button that is called `name`, or what people mean by it."""
    wanted = shapes_called(name)
    found = []
    for node in tree.walk():
        words = [words for words in (node.text, node.desc, node.id) if words and node.role in ICON_ROLES]
        score = max((_called(each, name, wanted) for each in words), default=0.0)
        if score >= LEAST_SCORE:
            found.append({"name": words[0], "score": score, **_place(node.box), "confident": score >= SURE})
    return _best(found)


def _called(words: str, name: str, wanted: frozenset[str]) -> float:
    """How much an element with these words is what `name` names, or means."""
    means = SURE if meant_by(words) & wanted else 0.0
    return max(means, likeness(words, name)[0], *(likeness(words, shape)[0] for shape in wanted))


def icon_in_picture(icons: Iterable[Icon], name: str) -> list[Match]:
    """Every icon that shows what is called `name`, and is hardly more like anything else."""
    wanted = shapes_called(name)
    found = []
    for icon in icons:
        shape, score = next(((shape, score) for shape, score in icon.likes if shape in wanted), ("", 0.0))
        best, most = icon.best
        if score >= max(LEAST_SCORE, most - NEARLY_BEST):
            sure = score >= SURE and best in wanted
            found.append({"name": shape, "score": round(score, 2), **_place(icon.box), "confident": sure})
    return _apart(_best(found))


def together(first: Sequence[Match], second: Sequence[Match]) -> list[Match]:
    """Both, without what the second found within a place of the first."""
    new = [match for match in second if not any(_within(match, known) for known in first)]
    return _best([*first, *new])


def sure(found: Sequence[Match]) -> bool:
    """Whether there is one that may be tapped without looking any further."""
    return any(match["score"] >= SURE for match in found)


def distinct(icons: Iterable[Icon]) -> list[Icon]:
    """One icon for each place: a plus in a circle is a plus in a circle, a plus on a tile is a plus."""
    kept: list[Icon] = []
    for icon in sorted(icons, key=lambda icon: -_area(icon.box)):
        around = [whole for whole in kept if inside(centre(icon.box), whole.box)]
        if any(whole.best[0] != TILE and whole.best[1] >= icon.best[1] - PART_OF for whole in around):
            continue
        kept = [each for each in kept if each not in around] + [icon]
    return kept


def _part_of(line: TextLine, query: str) -> Box:
    left, top, right, bottom = line.box
    start, end = part(line.text, query)
    return round(left + start * (right - left)), top, round(left + end * (right - left)), bottom


def _place(box: Box) -> Match:
    return {"box": list(box), "center": list(centre(box))}


def _area(box: Box) -> int:
    left, top, right, bottom = box
    return (right - left) * (bottom - top)


def _within(match: Match, known: Match) -> bool:
    x, y = match["center"]
    left, top, right, bottom = known["box"]
    return inside((x, y), (left, top, right, bottom))


def _apart(found: Sequence[Match]) -> list[Match]:
    """The best match of each place."""
    kept: list[Match] = []
    for match in found:
        if not any(_within(match, other) or _within(other, match) for other in kept):
            kept.append(match)
    return kept


def _best(found: Iterable[Match]) -> list[Match]:
    """Best first; the order of the screen where they are alike."""
    return sorted(found, key=lambda match: -match["score"])[:MOST_MATCHES]
