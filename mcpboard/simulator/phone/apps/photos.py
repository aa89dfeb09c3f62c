"""Photos: a wall of small landscapes, each of which opens."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from mcpboard.simulator.phone import moves
from mcpboard.simulator.phone.apps import bars
from mcpboard.simulator.phone.canvas import Canvas
from mcpboard.simulator.phone.elements import Element, clipped
from mcpboard.simulator.phone.landscapes import landscape
from mcpboard.simulator.phone.view import CONTENT, View

COUNT = 36  # photos there are
COLUMNS = {False: 3, True: 6}
GAP = 3  # points between two photos


def extent(view: View) -> float:
    """Return how far the wall can be scrolled, in thousandths of the height."""
    rows, pitch = math.ceil(COUNT / COLUMNS[view.landscape]), (view.size[0] + GAP) / COLUMNS[view.landscape]
    room = view.size[1] - bars.head_height(view) - bars.FOOT
    return 0 if view.page else max(0, (rows * pitch - room) * 1000 / view.size[1])


def elements(view: View) -> Iterator[Element]:
    yield from clipped(_one(view) if view.page else _wall(view), bars.head_height(view), view.size[1])
    yield from bars.head(view)


def _wall(view: View) -> Iterator[Element]:
    pitch, top = (view.size[0] + GAP) / COLUMNS[view.landscape], bars.head_height(view)
    top, titles = top - view.scroll * view.size[1] / 1000, CONTENT["photos"]
    for index in range(COUNT):
        row, column = divmod(index, COLUMNS[view.landscape])
        y = top + row * pitch
        if y + pitch > 0 and y < view.size[1]:
            x, side, name = column * pitch, pitch - GAP, f"{titles[index % len(titles)]} {index + 1}"
            # the number at the end of the name leads back to the photo
            yield Element("photo", (x, y, x + side, y + side), ((_photo, index, x, y, side, side, 1),), desc=name,
                          id=f"photo/{index + 1}", tap=partial(moves.entered, page=name))  # fmt: skip


def _one(view: View) -> Iterator[Element]:
    index = int(view.page.rpartition(" ")[2]) - 1
    width, height = view.size
    room = height - bars.head_height(view) - bars.FOOT
    tall = min(room, width * 1.25)
    wide = min(width, tall * 1.25)
    x, y = (width - wide) / 2, bars.head_height(view) + (room - tall) / 2
    yield Element("photo", (x, y, x + wide, y + tall), ((_photo, index, x, y, wide, tall, 0),), desc=view.page,
                  id=f"photo/{index + 1}")  # fmt: skip


def _photo(canvas: Canvas, index: int, x: float, y: float, wide: float, tall: float, more: int) -> None:
    """Paint a photo, some pixels wider and taller than its place."""
    canvas.stamp(landscape(index, canvas.px(wide) + more, canvas.px(tall) + more), x, y)
