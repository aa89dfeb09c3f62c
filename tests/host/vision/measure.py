"""Measure vision, with the network cut: what is read, what is recognised, how long it takes and in how much memory.

    python -m tests.host.vision.measure texts LOOK ...
    python -m tests.host.vision.measure icons NODE_MODULES FAMILY ...
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

from PIL import Image, ImageDraw

from mcpboard.errors import ToolFailed
from mcpboard.host.vision import service
from mcpboard.host.vision.engine import Engine
from mcpboard.host.vision.find import distinct, text_in_picture
from mcpboard.host.vision.icons import index, synonyms
from mcpboard.host.vision.types import Icon, center
from tests.host.vision import screens

NEAR = 20  # pixels between the middle of an icon as drawn and as found


def texts(looks: list[str]) -> dict[str, Any]:
    """For each look: how many of the strings are found where they are, what was not, and the seconds."""
    engine, results = Engine(), {}
    for name in looks:
        picture = screens.text_screen(screens.LOOKS[name])
        seconds, lines = _timed(engine.lines, picture)
        missed = [text for text in screens.STRINGS if not _found(text_in_picture(lines, text))]
        results[name] = {"of": len(screens.STRINGS), "missed": missed, "s": seconds}
    return {"looks": results, "mb": _megabytes()}


def icons(node_modules: Path, families: list[str]) -> dict[str, Any]:
    """For each family: how many icons there are, which were named wrongly, and the seconds a screen."""
    from deploy.icons import build

    engine, results = Engine(), {}
    for family in families:
        drawn = [(shape, path) for shape, called in build.shapes().items()
                 for path in build.drawings(family, called, node_modules)]  # fmt: skip
        wrong, seconds = [], []
        for picture, placed in screens.icon_screens(drawn, build.rasterized):
            took, found = _timed(engine.icons, picture, ())
            seconds.append(took)
            wrong += [(icon.shape, seen) for icon in placed if (seen := _shown(found, icon)) != icon.shape]
        results[family] = {"of": len(drawn), "wrong": wrong, "s": sorted(seconds)[len(seconds) // 2]}
    return {"families": results, "mb": _megabytes()}


def odds(folder: Path) -> dict[str, Any]:
    """What becomes of the user's own icons, of pictures that are none, and of those with nothing on them."""
    engine, own = Engine(), service.own_icons(folder)
    results: dict[str, Any] = {name: _outcome(engine, picture) for name, picture in ODD.items()}
    seen = distinct(engine.icons(_home_screen(), own))
    results["own"] = {name: [center(icon.box) for icon in seen if icon.best[0] == name] for name in ("my app", "logo")}
    results["without"] = sorted(
        {icon.best[0] for icon in distinct(engine.icons(_home_screen(), ()))} & {"my app", "logo"}
    )
    results["shapes"] = sorted(set(index.load_built_in()[0])) == sorted(synonyms.SHAPES)
    return results


def _outcome(engine: Engine, image: bytes) -> Any:
    try:
        return [len(engine.lines(image)), len(engine.icons(image, ()))]
    except ToolFailed as failure:
        return str(failure)


def _plain(width: int, height: int, mode: str = "RGB") -> bytes:
    return screens.encoded(Image.new(mode, (width, height)))


ODD = {
    "nothing": b"",
    "no picture": b"GIF89a, or so it says",
    "half a picture": screens.text_screen(screens.LOOKS["480 pixels"])[:200],
    "too large": _plain(20000, 2001, "1"),
    "black": _plain(480, 1000),
    "one pixel": _plain(1, 1),
    "a line": _plain(1000, 1),
    "wide and black": _plain(1920, 1080),
    "with alpha": _plain(300, 300, "RGBA"),
    "grey, 16 bits": _plain(300, 300, "I;16"),
}


def _home_screen() -> bytes:
    """Two drawings that no family has, as the user's PNGs have them but in other colors and sizes."""
    image = Image.new("RGB", (1080, 2400), "#203040")
    pen = ImageDraw.Draw(image)
    screens.zigzag(pen, (300, 500), 90, "#ffcc00")
    screens.target(pen, (700, 1500), 70, "#ffffff")
    return screens.encoded(image)


def _found(matches: list[dict[str, Any]]) -> bool:
    return any(match["match"] == "exact" for match in matches)


def _shown(found: tuple[Icon, ...], icon: screens.Placed) -> str:
    """The shape that is found at the place of an icon."""
    here = [each for each in distinct(found) if _near(center(each.box), icon)]
    return max(here, key=lambda each: each.best[1]).best[0] if here else ""


def _near(point: tuple[int, int], icon: screens.Placed) -> bool:
    return abs(point[0] - icon.x) <= NEAR and abs(point[1] - icon.y) <= NEAR


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


def main() -> None:
    sys.addaudithook(_no_network)
    name, *rest = sys.argv[1:]
    measures: dict[str, Callable[[], Any]] = {
        "texts": lambda: texts(rest),
        "icons": lambda: icons(Path(rest[0]), rest[1:]),
        "odds": lambda: odds(Path(rest[0])),
    }
    sys.stdout.write(json.dumps(measures[name](), ensure_ascii=False))


if __name__ == "__main__":
    main()
