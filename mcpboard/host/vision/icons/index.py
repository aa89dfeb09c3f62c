"""The drawings that icons are compared with: those that come with the package, and a folder of the user's own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from mcpboard.host.vision.icons.blobs import mask_of
from mcpboard.host.vision.icons.descriptor import SIDE, marks, squared
from mcpboard.host.vision.text_match import plain

Array = Any  # numpy.ndarray

BUILT_IN = Path(__file__).with_name("icons.npz")
MOST_LIKES = 8  # shapes told of one icon
LEAST_LIKE = 0.5  # of 1; less is like everything
STEPS = 15  # of brightness in the file: four bits a pixel
LONGEST_SIDE = 1024  # pixels of a user's picture; it ends as 32


class IconIndex:
    """Drawings by the shape they show."""

    def __init__(self, shapes: list[str], pictures: Array) -> None:
        self.shapes = shapes
        self._names, self._index = np.unique(np.array(shapes, dtype=object), return_inverse=True)
        self._marks = marks(pictures)

    def likes(self, masks: Iterable[Array]) -> list[tuple[tuple[str, float], ...]]:
        """The shapes that each mask is like, best first; none for a blank, and for what is like nothing."""
        pictures: list[Array] = [squared(mask) for mask in masks]
        shown = [index for index, picture in enumerate(pictures) if picture is not None]
        told: list[tuple[tuple[str, float], ...]] = [()] * len(pictures)
        if shown and self.shapes:
            scores = marks(np.stack([pictures[index] for index in shown])) @ self._marks.T
            for index, row in zip(shown, scores, strict=True):
                told[index] = self._best(row)
        return told

    def _best(self, scores: Array) -> tuple[tuple[str, float], ...]:
        best = np.zeros(len(self._names), np.float32)
        np.maximum.at(best, self._index, scores)
        order = np.argsort(-best, kind="stable")[:MOST_LIKES]
        return tuple((self._names[at], round(float(best[at]), 3)) for at in order if best[at] >= LEAST_LIKE)


def built_in(path: Path = BUILT_IN) -> tuple[list[str], Array]:
    """Shapes and pictures of the package's own file."""
    with np.load(path, allow_pickle=False) as kept:
        names, index, packed = kept["names"], kept["shapes"], kept["pictures"]
    pictures = np.empty((len(packed), SIDE, SIDE), np.uint8)
    pictures[:, :, 0::2], pictures[:, :, 1::2] = packed >> 4, packed & STEPS
    pictures *= 255 // STEPS
    return [str(names[at]) for at in index], pictures


def pack(path: Path, shapes: list[str], pictures: Array) -> None:
    """Write such a file, the same bytes for the same drawings: nothing in it is compressed or dated."""
    steps = np.round(pictures.astype(np.float32) * (STEPS / 255)).astype(np.uint8)
    packed = steps[:, :, 0::2] << 4 | steps[:, :, 1::2]
    names = sorted(set(shapes))
    index = np.array([names.index(shape) for shape in shapes], np.uint8)
    with path.open("wb") as file:
        np.savez(file, names=np.array(names), shapes=index, pictures=packed)


def opened(own: Iterable[Path]) -> IconIndex:
    """The package's drawings and the user's, `my-app.png` for "my app"; what is no picture is left out."""
    shapes, pictures = built_in()
    found = [(plain(path.stem.replace("-", " ").replace("_", " ")), drawn(path)) for path in own]
    kept = [(shape, picture) for shape, picture in found if picture is not None]
    return IconIndex(shapes + [shape for shape, _ in kept], np.stack([*pictures, *(picture for _, picture in kept)]))


def drawn(path: Path) -> Array | None:
    """The drawing in a PNG: what is not transparent, or else what stands out from its ground."""
    try:
        with Image.open(path) as image:
            image.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
            pixels = np.asarray(image.convert("RGBA"))
    except (OSError, ValueError, Image.DecompressionBombError):
        return None
    alpha = pixels[:, :, 3]
    mask = alpha if alpha.min() < STEPS else mask_of(pixels[:, :, :3], (0, 0, pixels.shape[1], pixels.shape[0]))
    return None if mask is None else squared(mask)
