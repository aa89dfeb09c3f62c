"""Measure vision, with the network cut: what is read, what is recognised, how long it takes and in how much memory.

    python -m tests.host.vision.measure texts [LOOK ...]
    python -m tests.host.vision.measure icons NODE_MODULES [FAMILY ...]
    python -m tests.host.vision.measure odds FOLDER

Run by a Python that has the vision extra, and resvg-py for the icons; prints one JSON object.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mcpboard.errors import ToolFailed
from mcpboard.host.vision import service
from mcpboard.host.vision.engine import Engine
from mcpboard.host.vision.find import distinct, text_in_picture
from mcpboard.host.vision.icons import index, synonyms
from mcpboard.host.vision.types import Icon, center
from tests.host.vision import screens

NEAR = 20  # pixels between the middle of an icon as drawn and as found


def texts(*looks: str) -> dict[str, Any]:
    """For each look: how many of the strings are found where they are, what was not, and the seconds."""
    engine, results = Engine(), {}
    for look in looks or screens.LOOKS:
        seconds, lines = _timed(engine.lines, screens.text_screen(look))
        missed = [text for text in screens.STRINGS
                  if not any(match["match"] == "exact" for match in text_in_picture(lines, text))]  # fmt: skip
        results[look] = {"of": len(screens.STRINGS), "missed": missed, "s": seconds}
    return {"looks": results, "mb": _megabytes()}


def icons(node_modules: str, *families: str) -> dict[str, Any]:
    """For each family: how many icons there are, which were named wrongly, and the seconds a screen."""
    from deploy.icons import build

    engine, results = Engine(), {}
    for family in families or [*build.FAMILIES, *build.UNSEEN]:
        drawn = [(shape, path) for shape, called in build.shapes().items()
                 for path in build.drawings(family, called, Path(node_modules))]  # fmt: skip
        wrong, seconds = [], []
        for picture, placed in screens.icon_screens(drawn, build.rasterized):
            took, found = _timed(engine.icons, picture, ())
            seconds.append(took)
            wrong += [(shape, seen) for shape, x, y in placed if (seen := _shown(found, x, y)) != shape]
        results[family] = {"seen": family in build.FAMILIES, "of": len(drawn), "wrong": wrong,
                           "s": sorted(seconds)[len(seconds) // 2]}  # fmt: skip
    return {"families": results, "mb": _megabytes()}


def _shown(found: tuple[Icon, ...], x: int, y: int) -> str:
    """The shape that is found at a place; "" for none."""
    middles = ((center(icon.box), icon.best) for icon in distinct(found))
    here = [best for middle, best in middles if max(abs(middle[0] - x), abs(middle[1] - y)) <= NEAR]
    return max(here, key=lambda best: best[1], default=("", 0.0))[0]


def odds(folder: str) -> dict[str, Any]:
    """What becomes of pictures that are none, of those with nothing on them, and of the user's own icons."""
    engine, screen = Engine(), screens.own_icons(Path(folder))
    pictures = {
        "half a picture": screens.text_screen("480 pixels")[:200],
        "too large": screens.plain(20000, 2001, "1"),
        "black": screens.plain(480, 1000),
        "one pixel": screens.plain(1, 1),
        "a line": screens.plain(1000, 1),
        "wide and black": screens.plain(1920, 1080),
        "with alpha": screens.plain(300, 300, "RGBA"),
        "grey, 16 bits": screens.plain(300, 300, "I;16"),
    }
    results: dict[str, Any] = {name: _outcome(engine, picture) for name, picture in pictures.items()}
    for name, own in (("own", service.own_icons(Path(folder))), ("without", ())):
        found = [(icon.best[0], center(icon.box)) for icon in distinct(engine.icons(screen, own))]
        results[name] = sorted(each for each in found if each[0] in ("my app", "logo"))
    results["shapes"] = sorted(set(index.load_built_in()[0])) == sorted(synonyms.SHAPES)
    return results


def _outcome(engine: Engine, image: bytes) -> Any:
    try:
        return [len(engine.lines(image)), len(engine.icons(image, ()))]
    except ToolFailed as failure:
        return str(failure)


def _timed(work: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    made = work(*arguments)
    return round(time.perf_counter() - start, 3), made


def _megabytes() -> int:
    """The most memory that this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _no_network(event: str, arguments: tuple[object, ...]) -> None:
    if event in ("socket.connect", "socket.getaddrinfo", "socket.bind"):
        raise AssertionError(f"vision asked for the network: {event} {arguments}")


if __name__ == "__main__":
    sys.addaudithook(_no_network)
    measures: dict[str, Callable[..., Any]] = {"texts": texts, "icons": icons, "odds": odds}
    sys.stdout.write(json.dumps(measures[sys.argv[1]](*sys.argv[2:]), ensure_ascii=False))
