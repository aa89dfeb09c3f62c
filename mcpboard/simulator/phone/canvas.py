"""A canvas in layout points: smooth shapes, soft shadows, letters from several fonts."""

from __future__ import annotations

import functools

from PIL import Image, ImageDraw

from mcpboard.simulator.phone import drawings, fonts, masks
from mcpboard.simulator.phone.frames import Picture
from mcpboard.simulator.phone.view import Box

LEADING = 1.25  # height of a line of text, in sizes
BASELINE = 0.98  # where letters stand in it, in sizes from its top


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

    def stamp(self, image: Picture, left: float, top: float) -> None:
        """Paste a small drawing, in its own pixels."""
        self.image.paste(image, (self.px(left), self.px(top)), image if image.mode == "RGBA" else None)

    def sign(self, name: str, left: float, top: float, side: float, color: str) -> None:
        """Paste a sign of that many points."""
        self.stamp(drawings.sign(name, self.px(side), color), left, top)

    def icon(self, name: str, left: float, top: float, side: float, day: int) -> None:
        """Paste the icon of an app, of that many points."""
        self.stamp(drawings.icon(name, self.px(side), day), left, top)

    def stamp_round(self, image: Picture, left: float, top: float, radius: float) -> None:
        """Paste a picture with round corners."""
        self.image.paste(image, (self.px(left), self.px(top)), masks.rounded(*image.size, self.px(radius)))

    def text(self, x: float, y: float, text: str, size: int, color: str, bold: bool = False) -> None:
        """Write one line from its left upper corner; what has no glyph is boxed with its code point."""
        pixels = self.px(size)
        left, base = x * self.scale, round(y * self.scale + pixels * BASELINE)
        for by, letters in fonts.runs(text, bold):
            if by == fonts.BOXED:
                for index, letter in enumerate(letters):
                    self._box(left + pixels * 1.3 * index, base - pixels * BASELINE, letter, pixels, color)
            elif by == fonts.PICTURED:
                for index, letter in enumerate(letters):
                    image = _emoji(letter, round(pixels * 1.15))
                    corner = round(left + pixels * (1.3 * index + 0.07)), round(base - pixels * 0.95)
                    self.image.paste(image, corner, image)
            else:
                face = fonts.font("" if by == "own" else by, pixels)
                outline = hasattr(face, "getmetrics")  # the bitmap font knows no baseline
                place = (round(left), base if outline else base - 11)
                self._pen.text(place, letters, color, face, "ls" if outline else None)
            left += fonts.run_width(by, letters, pixels)

    def middle(self, x: float, y: float, text: str, size: int, color: str, bold: bool = False) -> None:
        """Write one line around a point."""
        self.text(x - self.width(text, size, bold) / 2, y - size * LEADING / 2, text, size, color, bold)

    def width(self, text: str, size: int, bold: bool = False) -> float:
        """Return the width of a line in points."""
        return fonts.width(text, self.px(size), bold) / self.scale

    def _box(self, x: float, y: float, letter: str, size: int, color: str) -> None:
        """Draw the code point in two short lines inside a box, so that foreign text can still be told apart."""
        small = fonts.font((fonts.chain(False) or ("",))[0], max(6, size * 9 // 20))
        code = f"{ord(letter):04X}"
        half = (len(code) + 1) // 2
        corners = (x + size * 0.05, y + size * 0.02, x + size * 1.2, y + size * 1.2)
        self._pen.rounded_rectangle(corners, size * 0.2, outline=color)
        for row, part in enumerate((code[:half], code[half:])):
            self._pen.text((x + size * 0.22, y + size * (0.08 + 0.53 * row)), part, color, small)


@functools.lru_cache(maxsize=256)
def _emoji(letter: str, size: int) -> Picture:
    """Draw a colored character, which its font has in one size only."""
    full = Image.new("RGBA", (136, 128))  # pixels of a glyph of that font
    face = fonts.font(fonts.EMOJI, fonts.EMOJI_SIZE)
    ImageDraw.Draw(full).text((0, 0), letter, font=face, embedded_color=True)
    return full.resize((size, round(size * 128 / 136)), Image.Resampling.LANCZOS)
