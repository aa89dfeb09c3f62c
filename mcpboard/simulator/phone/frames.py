"""Pictures as the board sees them: the video frame, the marks of a touch, JPEG, and how two of them differ."""

from __future__ import annotations

import io

from PIL import Image, ImageChops, ImageDraw, ImageStat

SOURCE = (1920, 1080)  # the only format the board's video input offers
SOFT = 1  # columns of the frame at each side of an upright phone that belong to neither phone nor bar
QUALITY = 80  # of the Agent's JPEG
MARKED_QUALITY = 90  # of a picture with touch rings, encoded again
NOISE = 4  # of 255; smaller differences are the video path's

Picture = Image.Image


def active_area(size: tuple[int, int]) -> tuple[int, int, int, int]:
    """Return the part of the frame that shows a phone of that size, as x, y, width, height."""
    width = size[0] + 2 * SOFT if size[0] < SOURCE[0] else size[0]
    return (SOURCE[0] - width) // 2, (SOURCE[1] - size[1]) // 2, width, size[1]


def source_frame(image: Picture) -> Picture:
    """Return the whole video frame, the phone between black bars."""
    frame = Image.new("RGB", SOURCE, "black")
    frame.paste(image, ((SOURCE[0] - image.width) // 2, (SOURCE[1] - image.height) // 2))
    return frame


def marked(image: Picture, x: float, y: float) -> Picture:
    """Return the picture with the two rings, white around red, that the Agent draws where it touched."""
    radius = max(10, min(24, min(image.size) // 28))
    return _ringed(image, x, y, ("white", radius, 3), ("#e02020", radius - 4, 3))


def rippled(image: Picture, x: float, y: float, radius: float, strength: float) -> Picture:
    """Return the picture with one soft ring around a normalized place, its strength from 0 to 1."""
    return Image.blend(image, _ringed(image, x, y, ("#3a4763", radius, 5), ("white", radius - 1, 3)), strength)


def _ringed(image: Picture, x: float, y: float, *rings: tuple[str, float, int]) -> Picture:
    """Return the picture with rings around a normalized place, each a color, a radius and a width in pixels."""
    copy, across, down = image.copy(), x * (image.width - 1) / 1000, y * (image.height - 1) / 1000
    for color, radius, width in rings:
        square = across - radius, down - radius, across + radius, down + radius
        ImageDraw.Draw(copy).ellipse(square, outline=color, width=width)
    return copy


def jpeg(image: Picture, quality: int = QUALITY) -> bytes:
    """Return the bytes of a JPEG file; equal pictures give equal bytes."""
    data = io.BytesIO()
    image.save(data, "JPEG", quality=quality)
    return data.getvalue()


def difference(first: Picture, second: Picture) -> float:
    """Return the mean absolute difference over all three colors, 0 to 255; a phone that was turned differs wholly."""
    if first is second:  # `display` caches its pictures, so that a screen at rest is the same object
        return 0.0
    if first.size != second.size:
        return 255.0
    means = ImageStat.Stat(ImageChops.difference(first, second)).mean
    return round(sum(means) / len(means), 4)


def changed(first: Picture, second: Picture) -> bool:
    """Return True when more than one in a hundred of 40x80 blocks differ, the status bar left out."""
    if first is second:
        return False
    blocks = []
    for image in (first, second):
        body = image.crop((0, image.height * 8 // 100, image.width, image.height)).convert("L")
        blocks.append(body.resize((40, 80), Image.Resampling.BOX))
    histogram = ImageChops.difference(*blocks).histogram()
    return first.size != second.size or sum(histogram[NOISE:]) > 40 * 80 / 100
