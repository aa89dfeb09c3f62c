"""The small signs of the system: arrows, bars, switches' symbols, in one colour."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping

from mcpboard.simulator.phone.frames import Picture
from mcpboard.simulator.phone.stencil import Stencil

Sign = Callable[[Stencil, str], None]


def _forward(pen: Stencil, ink: str) -> None:
    pen.stroke(((36, 18), (66, 50), (36, 82)), 12, ink)


def _back(pen: Stencil, ink: str) -> None:
    pen.stroke(((64, 14), (30, 50), (64, 86)), 11, ink)


def _plane(pen: Stencil, ink: str) -> None:
    pen.stroke(((50, 14), (50, 84)), 13, ink)
    pen.patch(((50, 34), (94, 62), (94, 71), (50, 58), (6, 71), (6, 62)), ink)
    pen.patch(((50, 72), (70, 86), (70, 92), (50, 87), (30, 92), (30, 86)), ink)


def _wifi(pen: Stencil, ink: str) -> None:
    for radius in (58, 37):
        pen.bow(50, 82, radius, (225, 315), 13, ink)
    pen.disc(50, 78, 9, ink)


def _bluetooth(pen: Stencil, ink: str) -> None:
    pen.stroke(((28, 32), (72, 68), (50, 88), (50, 12), (72, 32), (28, 68)), 8, ink)


def _mast(pen: Stencil, ink: str) -> None:
    for bar in range(4):
        pen.slab((8 + 23 * bar, 68 - 17 * bar, 24 + 23 * bar, 88), 5, ink)


def _link(pen: Stencil, ink: str) -> None:
    pen.ring(36, 50, 24, 11, ink)
    pen.ring(64, 50, 24, 11, ink)


def _moon(pen: Stencil, ink: str) -> None:
    points = [(50 + 38 * math.cos(a), 50 + 38 * math.sin(a)) for a in _angles(-20, 250)]
    inner = [(64 + 32 * math.cos(a), 38 + 32 * math.sin(a)) for a in _angles(222, 12)]
    pen.patch(points + inner, ink)


def _angles(start: int, end: int) -> list[float]:
    step = 6 if end > start else -6
    return [math.radians(angle) for angle in range(start, end, step)]


def _sun(pen: Stencil, ink: str) -> None:
    pen.disc(50, 50, 19, ink)
    for ray in range(8):
        angle = math.tau * ray / 8
        pen.stroke([(50 + r * math.cos(angle), 50 + r * math.sin(angle)) for r in (31, 41)], 8, ink)


def _turn(pen: Stencil, ink: str) -> None:
    pen.bow(50, 52, 34, (-40, 230), 10, ink)
    pen.patch(((64, 20), (88, 42), (94, 12)), ink)


def _bell(pen: Stencil, ink: str) -> None:
    pen.disc(50, 42, 24, ink)
    pen.patch(((26, 42), (74, 42), (82, 72), (18, 72)), ink)
    pen.disc(50, 80, 9, ink)


def _speaker(pen: Stencil, ink: str) -> None:
    pen.patch(((12, 38), (30, 38), (52, 18), (52, 82), (30, 62), (12, 62)), ink)
    pen.bow(52, 50, 20, (-50, 50), 9, ink)
    pen.bow(52, 50, 36, (-50, 50), 9, ink)


def _hourglass(pen: Stencil, ink: str) -> None:
    pen.patch(((24, 16), (76, 16), (50, 52)), ink)
    pen.patch(((50, 48), (76, 84), (24, 84)), ink)
    for row in (14, 86):
        pen.stroke(((22, row), (78, row)), 9, ink)


def _gear(pen: Stencil, ink: str) -> None:
    for tooth in range(8):
        angle = math.tau * tooth / 8
        pen.stroke([(50 + r * math.cos(angle), 50 + r * math.sin(angle)) for r in (30, 38)], 14, ink)
    pen.ring(50, 50, 32, 17, ink)


def _person(pen: Stencil, ink: str) -> None:
    pen.disc(50, 30, 19, ink)
    pen.slab((16, 56, 84, 112), 34, ink)


def _picture(pen: Stencil, ink: str) -> None:
    pen.disc(70, 28, 11, ink)
    pen.patch(((6, 84), (36, 34), (58, 66), (68, 54), (94, 84)), ink)


def _battery(pen: Stencil, ink: str) -> None:
    pen.slab((6, 30, 84, 70), 12, ink)
    pen.slab((88, 42, 95, 58), 3, ink)


def _hand(pen: Stencil, ink: str) -> None:
    pen.slab((32, 44, 72, 90), 16, ink)
    for x, top in ((38, 24), (52, 14), (66, 24)):
        pen.stroke(((x, 56), (x, top)), 11, ink)
    pen.stroke(((40, 74), (22, 54)), 11, ink)


def _disk(pen: Stencil, ink: str) -> None:
    for top in (16, 42, 68):
        pen.slab((12, top, 88, top + 19), 7, ink)


def _key(pen: Stencil, ink: str) -> None:
    pen.ring(32, 50, 22, 11, ink)
    pen.stroke(((54, 50), (92, 50), (92, 66)), 10, ink)
    pen.stroke(((76, 50), (76, 62)), 10, ink)


def _globe(pen: Stencil, ink: str) -> None:
    pen.ring(50, 50, 40, 8, ink)
    pen.ring(50, 50, 40, 8, ink, across=18)
    pen.stroke(((12, 50), (88, 50)), 8, ink)


def _info(pen: Stencil, ink: str) -> None:
    pen.disc(50, 20, 10, ink)
    pen.stroke(((50, 44), (50, 84)), 15, ink)


def _lens(pen: Stencil, ink: str) -> None:
    pen.ring(43, 43, 31, 10, ink)
    pen.stroke(((66, 66), (87, 87)), 11, ink)


def _reload(pen: Stencil, ink: str) -> None:
    pen.bow(50, 52, 34, (-30, 270), 9, ink)
    pen.patch(((48, 2), (48, 36), (72, 18)), ink)


def _lock(pen: Stencil, ink: str) -> None:
    pen.bow(50, 40, 20, (180, 360), 9, ink)
    pen.slab((22, 42, 78, 86), 10, ink)


def _shift(pen: Stencil, ink: str) -> None:
    pen.patch(((50, 12), (90, 54), (66, 54), (66, 86), (34, 86), (34, 54), (10, 54)), ink)


def _erase(pen: Stencil, ink: str) -> None:
    pen.stroke(((4, 50), (30, 22), (94, 22), (94, 78), (30, 78), (4, 50)), 8, ink)
    pen.stroke(((48, 38), (74, 62)), 8, ink)
    pen.stroke(((74, 38), (48, 62)), 8, ink)


def _tick(pen: Stencil, ink: str) -> None:
    pen.stroke(((18, 54), (42, 76), (84, 26)), 13, ink)


SIGNS: Mapping[str, Sign] = {
    "forward": _forward, "back": _back, "plane": _plane, "wifi": _wifi, "bluetooth": _bluetooth, "mast": _mast,
    "link": _link, "moon": _moon, "sun": _sun, "turn": _turn, "bell": _bell, "speaker": _speaker,
    "hourglass": _hourglass, "gear": _gear, "person": _person, "picture": _picture, "battery": _battery,
    "hand": _hand, "disk": _disk, "key": _key, "globe": _globe, "info": _info, "lens": _lens, "reload": _reload,
    "lock": _lock, "shift": _shift, "erase": _erase, "tick": _tick,
}  # fmt: skip


@functools.lru_cache(maxsize=256)
def sign(name: str, side: int, colour: str) -> Picture:
    """A sign of that many pixels in one colour, the rest clear. Not to be drawn upon."""
    pen = Stencil(side)
    SIGNS[name](pen, colour)
    return pen.image()
