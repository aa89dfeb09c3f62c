"""A canvas in layout points: smooth shapes, soft shadows, letters from several fonts."""

from __future__ import annotations

from PIL import ImageDraw

from mcpboard.simulator.phone import fonts, masks, sprites
from mcpboard.simulator.phone.frames import Picture
from mcpboard.simulator.phone.view import Box

LEADING = 1.25  # height of a line of text, in sizes
BASELINE = 0.98  # where letters stand in it, in sizes from its top
INK = "#1d1f25"  # of the date on the calendar's icon


class Canvas:
    """Draws on a picture whose points are `scale` pixels wide."""

    def __init__(self, image: Picture, scale: float = 1.0) -> None:
        self.image = image
        self.scale = scale
        self._pen = ImageDraw.Draw(image)

    def px(self, length: float) -> int:
        """Return the whole pixels of a length in points."""
        return round(length * self.scale)

    def fill(self, box: Box, color: str, radius: float = 0, alpha: float = 1.0) -> None:
        """Draw a rectangle, with round corners and see-through where asked."""
        left, top, right, bottom = map(self.px, box)
        if right > left and bottom > top:
            mask = masks.rounded(right - left, bottom - top, self.px(radius), round(255 * alpha))
            self.image.paste(color, (left, top, right, bottom), mask)

    def disc(self, x: float, y: float, radius: float, color: str, alpha: float = 1.0) -> None:
        """Draw a filled circle."""
        self.fill((x - radius, y - radius, x + radius, y + radius), color, radius, alpha)

    def slope(self, box: Box, top: str, bottom: str, radius: float = 0) -> None:
        """Draw a rectangle filled with a gradient."""
        left, upper, right, lower = map(self.px, box)
        size = right - left, lower - upper
        self.image.paste(masks.slope(*size, top, bottom), (left, upper), masks.rounded(*size, self.px(radius)))

    def outline(self, box: Box, color: str, radius: float, thick: float, inside: str) -> None:
        """Draw a filled rectangle with a border."""
        left, top, right, bottom = box
        self.fill(box, color, radius)
        self.fill((left + thick, top + thick, right - thick, bottom - thick), inside, radius - thick)

    def shadow(self, box: Box, radius: float, strength: float, blur: float = 12, drop: float = 4) -> None:
        """Draw the soft shadow of a rectangle that floats."""
        left, top, right, bottom = map(self.px, box)
        soft = self.px(blur)
        mask = masks.shadow(right - left, bottom - top, self.px(radius), soft, round(255 * strength))
        corner = left - 2 * soft, top - 2 * soft + self.px(drop)
        self.image.paste("black", (*corner, corner[0] + mask.width, corner[1] + mask.height), mask)

    def stamp(self, image: Picture, left: float, top: float, radius: float = 0) -> None:
        """Paste a drawing in its own pixels; one without clear parts may get round corners."""
        mask = image if image.mode == "RGBA" else masks.rounded(*image.size, self.px(radius))
        self.image.paste(image, (self.px(left), self.px(top)), mask)

    def sign(self, name: str, left: float, top: float, side: float, color: str) -> None:
        """Paste a sign of that many points."""
        self.stamp(sprites.sign(name, self.px(side), color), left, top)

    def icon(self, name: str, left: float, top: float, side: float, day: int) -> None:
        """Paste the icon of an app, of that many points; `day` is the date on the calendar's."""
        self.stamp(sprites.sprite("icons", name, self.px(side)), left, top)
        if name == "Calendar":
            self.middle(left + side / 2, top + side * 0.65, str(day), round(side * 0.52), INK, True)

    def text(self, x: float, y: float, text: str, size: int, color: str, bold: bool = False) -> None:
        """Write one line from its left upper corner."""
        pixels = self.px(size)
        left, base = x * self.scale, round(y * self.scale + pixels * BASELINE)
        for by, letters in fonts.runs(text, bold):
            if by == fonts.PICTURED:
                for index, letter in enumerate(letters):
                    image = sprites.sprite("emoji", letter, round(pixels * 1.15))
                    corner = round(left + pixels * (1.3 * index + 0.07)), round(base - pixels * 0.95)
                    self.image.paste(image, corner, image)
            else:
                # There is one weight of the East Asian font, which a thin outline makes bold.
                thick = round(pixels / 40) if bold and by == "asian" else 0
                face = fonts.font(by, pixels)
                self._pen.text((round(left), base), letters, color, face, "ls", stroke_width=thick)
            left += fonts.run_width(by, letters, pixels)

    def middle(self, x: float, y: float, text: str, size: int, color: str, bold: bool = False) -> None:
        """Write one line around a point."""
        self.text(x - self.width(text, size, bold) / 2, y - size * LEADING / 2, text, size, color, bold)

    def width(self, text: str, size: int, bold: bool = False) -> float:
        """Return the width of a line in points."""
        return fonts.width(text, self.px(size), bold) / self.scale
