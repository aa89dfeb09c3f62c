"""The drawings that icons are compared with: those that come with the package, and a folder of the user's own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from mcpboard.errors import ToolFailed
from mcpboard.host.drivers.images import image_size
from mcpboard.host.vision.icons.blobs import mask_of
from mcpboard.host.vision.icons.descriptor import SIDE, descriptors, fitted
from mcpboard.host.vision.text_match import plain

Array = Any  # numpy.ndarray

BUILT_IN = Path(__file__).with_name("icons.npz")
MOST_SHAPES = 8  # reported of one icon
LEAST_LIKENESS = 0.5  # of 1; less is like everything
STEPS = 15  # of brightness in the file: four bits a pixel
LONGEST_SIDE = 1024  # pixels of a user's icon; it ends as 32
LARGEST_FILE = 16 << 20  # bytes of a drawing; before its pixels may stand much that a program wrote about it


class IconIndex:
    """Drawings (n x SIDE x SIDE, uint8) by the shape that each shows."""

    def __init__(self, shapes: list[str], drawings: Array) -> None:
        self._names, self._name_of = np.unique(np.array(shapes, dtype=object), return_inverse=True)
        self._descriptors = descriptors(drawings)

    def match(self, masks: Iterable[Array]) -> list[tuple[tuple[str, float], ...]]:
        """Return the shapes that each mask resembles, best first; none for a blank, and for what is like nothing."""
        drawings: list[Array] = [fitted(mask) for mask in masks]
        drawn = [index for index, drawing in enumerate(drawings) if drawing is not None]
        matches: list[tuple[tuple[str, float], ...]] = [()] * len(drawings)
        if not drawn:
            return matches
        scores = descriptors(np.stack([drawings[index] for index in drawn])) @ self._descriptors.T
        for index, row in zip(drawn, scores, strict=True):
            best = np.zeros(len(self._names), np.float32)
            np.maximum.at(best, self._name_of, row)
            order = [at for at in np.argsort(-best, kind="stable")[:MOST_SHAPES] if best[at] >= LEAST_LIKENESS]
            matches[index] = tuple((self._names[at], round(float(best[at]), 3)) for at in order)
        return matches


def load_built_in() -> tuple[list[str], Array]:
    """Return shapes and drawings of the package's own file, which deploy/icons/build.py makes."""
    with np.load(BUILT_IN, allow_pickle=False) as kept:
        names, index, packed = kept["names"], kept["shapes"], kept["pictures"]
    drawings = np.empty((len(packed), SIDE, SIDE), np.uint8)
    drawings[:, :, 0::2], drawings[:, :, 1::2] = packed >> 4, packed & STEPS
    drawings *= 255 // STEPS
    return [str(names[at]) for at in index], drawings


def load_index(own: Iterable[Path]) -> IconIndex:
    """Load the package's drawings and the user's, `my-app.png` for "my app"; what is no image is left out."""
    shapes, drawings = load_built_in()
    named = ((plain(path.stem.replace("-", " ").replace("_", " ")), load_drawing(path)) for path in own)
    added = [(shape, drawing) for shape, drawing in named if drawing is not None]
    return IconIndex([*shapes, *(shape for shape, _ in added)], np.stack([*drawings, *(each for _, each in added)]))


def load_drawing(path: Path) -> Array | None:
    """Return the drawing in a PNG: what is not transparent, or else what stands out from its ground."""
    try:
        with path.open("rb") as file:
            image_size(file.read(LARGEST_FILE))  # refuses one that is too large before anything is unpacked
        with Image.open(path) as image:
            image.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
            pixels = np.asarray(image.convert("RGBA"))
    except (OSError, ValueError, ToolFailed):
        return None
    alpha = pixels[:, :, 3]
    mask = alpha if alpha.min() < STEPS else mask_of(pixels[:, :, :3], (0, 0, pixels.shape[1], pixels.shape[0]))
    return None if mask is None else fitted(mask)
