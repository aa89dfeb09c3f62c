"""The shape of a drawing as a row of numbers that can be correlated: which way its edges run, and where.

Outlined and filled drawings of one thing share few pixels but most of their edges, so edges are what is compared:
a 32x32 drawing is smoothed, its gradients are sorted into directions, and each direction is summed over a grid.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from PIL import Image

Array = Any  # numpy.ndarray; the package is type-checked where numpy may be absent

SIDE = 32  # pixels of a drawing that is compared
MARGIN = 2  # pixels left free around the drawing, for its outer edges
DIRECTIONS = 6  # of an edge, 30 degrees apart; light to dark and dark to light are the same
CELLS = 8  # of the grid, along each side
CHUNK = 256  # drawings at a time: bounds the memory to some 20 MB
INK = 77  # of 255; fainter is the background's noise, or the shadow of a JPEG


def fitted(mask: Array) -> Array | None:
    """Return the drawing in a mask of any size (uint8, 255 is ink), scaled to SIDE x SIDE; None for a blank.

    Pillow resizes in whole numbers, so every machine gets the same drawing.
    """
    rows, columns = np.nonzero(mask > INK)
    if not len(rows):
        return None
    cut = mask[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
    height, width = cut.shape
    scale = (SIDE - 2 * MARGIN) / max(height, width)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    square = np.zeros((SIDE, SIDE), np.uint8)
    left, top = (SIDE - size[0]) // 2, (SIDE - size[1]) // 2
    small = Image.fromarray(cut).resize(size, Image.Resampling.BOX if scale < 1 else Image.Resampling.BILINEAR)
    square[top : top + size[1], left : left + size[0]] = np.asarray(small)
    return square


def descriptors(drawings: Array) -> Array:
    """Return one row of unit length for each drawing (n x SIDE x SIDE, any unit of brightness)."""
    rows = []
    for start in range(0, len(drawings), CHUNK):
        chunk = drawings[start : start + CHUNK].astype(np.float32)
        across = _SMOOTH @ chunk @ _SLOPE.T
        down = _SLOPE @ chunk @ _SMOOTH.T
        angle = np.mod(np.arctan2(down, across), np.pi) * (DIRECTIONS / np.pi)
        strength = np.hypot(across, down)
        sums = []
        for direction in range(DIRECTIONS):
            apart = np.abs(angle - direction)
            share = np.maximum(0, 1 - np.minimum(apart, DIRECTIONS - apart))
            sums.append(_POOL @ (strength * share) @ _POOL.T)
        # The root keeps one bold edge from drowning the others.
        row = np.sqrt(np.stack(sums, 1)).reshape(len(chunk), -1)
        row -= row.mean(axis=1, keepdims=True)
        rows.append(row / np.maximum(np.linalg.norm(row, axis=1, keepdims=True), 1e-6))
    return np.concatenate(rows) if rows else np.zeros((0, DIRECTIONS * CELLS**2), np.float32)


def _gaussians(centers: Array, width: float) -> Array:
    """Return a row for each center: weights along SIDE pixels that fall off with the distance, and sum to 1."""
    distance = np.arange(SIDE)[None, :] - centers[:, None]
    weights = np.exp(-((distance / width) ** 2) / 2)
    return (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)


_PIXELS = np.arange(SIDE)
_SMOOTH = _gaussians(_PIXELS, 1.0)  # pixels; steps between pixels are no edges
_SLOPE = _gaussians(_PIXELS + 1, 0.8) - _gaussians(_PIXELS - 1, 0.8)
_POOL = _gaussians((np.arange(CELLS) + 0.5) * SIDE / CELLS - 0.5, 1.6)  # cells overlap: a drawing may be a little off
