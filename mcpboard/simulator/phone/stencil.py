"""Small drawings with smooth edges: made large on a grid of 100 by 100, seen small."""

from __future__ import annotations

from collections.abc import Iterable

from PIL import Image, ImageDraw

from mcpboard.simulator.phone.frames import Picture
from mcpboard.simulator.phone.masks import FINE

GRID = 100.0  # units across, whatever the pixels
CLEAR = (0, 0, 0, 0)


class Stencil:
    """A square drawing. Places and sizes are units of GRID; `image()` gives it in its true size."""

    def __init__(self, side: int, background: Picture | None = None) -> None:
        self._side = side
        self._unit = side * FINE / GRID
        full = (side * FINE, side * FINE)
        self._image = Image.new("RGBA", full, CLEAR) if background is None else background.resize(full).convert("RGBA")
        self._pen = ImageDraw.Draw(self._image)

    def image(self) -> Picture:
        return self._image.reduce(FINE)

    def disc(self, x: float, y: float, radius: float, colour: str) -> None:
        self.oval(x, y, radius, radius, colour)

    def oval(self, x: float, y: float, across: float, along: float, colour: str) -> None:
        self._pen.ellipse(self._units((x - across, y - along, x + across, y + along)), fill=colour)

    def ring(self, x: float, y: float, radius: float, thick: float, colour: str, across: float | None = None) -> None:
        wide = radius if across is None else across
        corners = self._units((x - wide, y - radius, x + wide, y + radius))
        self._pen.ellipse(corners, outline=colour, width=round(thick * self._unit))

    def bow(self, x: float, y: float, radius: float, angles: tuple[float, float], thick: float, colour: str) -> None:
        """A part of a ring, from angle to angle in degrees, clockwise from three o'clock."""
        corners = self._units((x - radius, y - radius, x + radius, y + radius))
        self._pen.arc(corners, *angles, fill=colour, width=round(thick * self._unit))

    def slab(self, box: tuple[float, float, float, float], radius: float, colour: str) -> None:
        self._pen.rounded_rectangle(self._units(box), radius * self._unit, fill=colour)

    def patch(self, points: Iterable[tuple[float, float]], colour: str) -> None:
        self._pen.polygon([(x * self._unit, y * self._unit) for x, y in points], fill=colour)

    def stroke(self, points: Iterable[tuple[float, float]], thick: float, colour: str) -> None:
        """A line with round ends and joints."""
        path = list(points)
        self._pen.line([(x * self._unit, y * self._unit) for x, y in path], colour, round(thick * self._unit), "curve")
        for x, y in (path[0], path[-1]):
            self.disc(x, y, thick / 2, colour)

    def _units(self, box: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
        left, top, right, bottom = (part * self._unit for part in box)
        return left, top, right - 1, bottom - 1
