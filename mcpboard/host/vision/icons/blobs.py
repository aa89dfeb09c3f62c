"""Places in an image where icons may be: small things on a plain ground that are not part of a line of text.

Edges are found, thickened by several widths so that the parts of one icon grow together (three dots, the arcs of
Wi-Fi), and what hangs together is boxed. Most boxes are no icons; what they show decides that later.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np

from mcpboard.host.vision.types import Box

Array = Any  # numpy.ndarray

EDGE = 24  # of 255 between neighbors; the noise of a JPEG stays below
REFERENCE = 540  # pixels; larger screens are halved, or more, until their shorter side is about that
REACHES = (1, 2, 3, 5, 8)  # pixels of a halved screen by which edges grow
LEAST = 6  # pixels of a halved screen that an icon has on its longer side; with fewer nobody can tell it
LARGEST = 0.25  # of the shorter side of the screen; larger things are photographs
SLIMMEST = 9  # times as long as wide: three dots
MOST = 1500  # boxes of one image: bounds the time to about a second
DARK = 16  # of 255; the bars beside a phone's screen in a video frame are darker
NARROWEST_PHONE = 0.3  # of its height
RING = 2  # pixels around a box that show its ground
FLAT = 6  # of 255; a ground that differs more from itself may fade
PLAIN = 40  # of 255; a ground that differs more from itself is a photograph
FAINTEST = 32  # of 255; what stands out less from its ground is not meant to be seen

SAME_LINE = 0.6  # of the lower height that two letters share
LETTER_GAP = 0.5  # of the lower height between letters, and between words
TALLEST_LETTER = 40  # pixels of a halved screen
LIKE_HEIGHT = 2.5  # times as tall as its neighbor may a letter be
FEWEST_LETTERS = 3  # side by side are text


def blobs(pixels: Array) -> list[tuple[Box, Array]]:
    """Return box and mask (uint8, 255 is ink) of whatever may be an icon in an image (height x width x 3, uint8)."""
    slope = _brightest(cv2.morphologyEx(pixels, cv2.MORPH_GRADIENT, np.ones((2, 2), np.uint8)))
    shorter = _shorter_side(pixels)
    factor = max(1, round(shorter / REFERENCE))
    # Each factor x factor pixels become one, which is an edge where any of them was.
    edges = cv2.dilate((slope > EDGE).astype(np.uint8), np.ones((factor, factor), np.uint8), anchor=(0, 0))
    height, width = (side // factor for side in edges.shape)
    edges = edges[: height * factor : factor, : width * factor : factor].copy()
    found: dict[Box, None] = {}
    for reach in REACHES:
        grown = cv2.dilate(edges, np.ones((2 * reach + 1, 2 * reach + 1), np.uint8))
        _, _, stats, _ = cv2.connectedComponentsWithStats(grown, connectivity=8)
        boxes = [
            (left + reach, top + reach, left + width - reach, top + height - reach)
            for left, top, width, height, _ in stats[1:].tolist()
        ]
        for left, top, right, bottom in _without_text(boxes):
            short, long = sorted((right - left, bottom - top))
            if LEAST <= long <= LARGEST * shorter / factor and long <= SLIMMEST * short:
                found[left * factor, top * factor, right * factor, bottom * factor] = None
    masks = ((box, mask_of(pixels, box)) for box in list(found)[:MOST])
    return [(box, mask) for box, mask in masks if mask is not None]


def _brightest(pixels: Array) -> Array:
    """Return the strongest of three colors at each pixel."""
    blue, green, red = cv2.split(pixels)
    return cv2.max(cv2.max(blue, green), red)


def _shorter_side(pixels: Array) -> int:
    """Return that of the phone's screen: in a video frame it stands upright between dark bars."""
    height, width = (int(side) for side in pixels.shape[:2])
    if width > height:
        lit = np.flatnonzero(_brightest(pixels).max(axis=0) > DARK)
        between = int(lit[-1] - lit[0] + 1) if len(lit) else 0
        if NARROWEST_PHONE * height <= between < height:
            return between
    return min(height, width)


def _without_text(boxes: list[Box]) -> list[Box]:
    """Return the boxes that do not stand side by side like letters and words do."""
    row = sorted(boxes)
    chain = list(range(len(row)))  # index of the first letter of the line that a box belongs to
    for right, box in enumerate(row):
        for left in range(right - 1, max(-1, right - 40), -1):
            if _side_by_side(row[left], box):
                chain[right] = chain[left]
                break
    members = np.bincount(chain, minlength=1)
    return [box for index, box in enumerate(row) if members[chain[index]] < FEWEST_LETTERS]


def _side_by_side(left: Box, right: Box) -> bool:
    heights = left[3] - left[1], right[3] - right[1]
    shared = min(left[3], right[3]) - max(left[1], right[1])
    gap = right[0] - left[2]
    return (
        0 <= gap <= LETTER_GAP * min(heights)
        and max(heights) <= TALLEST_LETTER
        and shared >= SAME_LINE * min(heights)
        and max(heights) <= LIKE_HEIGHT * max(1, min(heights))
    )


def mask_of(pixels: Array, box: Box) -> Array | None:
    """Return how far each pixel of a box is from its ground, 255 the farthest; None where there is no plain ground."""
    height, width = pixels.shape[:2]
    left, top, right, bottom = box
    cut = pixels[max(0, top - RING) : min(height, bottom + RING), max(0, left - RING) : min(width, right + RING)]
    apart = _brightest(cv2.absdiff(cut, _ground(cut)))
    if np.percentile(_ring(apart), 75) > PLAIN:
        return None
    ink = int(np.percentile(apart, 95))
    if ink < FAINTEST:  # of a thin drawing, nineteen pixels in twenty are ground
        ink = int(apart.max())
    return None if ink < FAINTEST else cv2.convertScaleAbs(apart, alpha=255 / ink)


def _ground(cut: Array) -> Array:
    """Return a cut without its drawing: of one color, or fading from side to side as its ring does."""
    ring = _ring(cut)
    middle = np.median(ring, axis=0)
    if np.percentile(np.abs(ring - middle).max(axis=1), 75) <= FLAT:
        return np.broadcast_to(middle.astype(np.uint8), cut.shape).copy()
    height, width = cut.shape[:2]
    down, across = np.mgrid[0:height, 0:width]
    places = np.stack([np.ones((height, width)), down, across], axis=-1)
    slopes = np.linalg.lstsq(_ring(places), ring.astype(np.float64), rcond=None)[0]
    return np.clip(places @ slopes, 0, 255).astype(np.uint8)


def _ring(cut: Array) -> Array:
    """Return the outermost pixels of a cut."""
    return np.concatenate([cut[0], cut[-1], cut[:, 0], cut[:, -1]])
