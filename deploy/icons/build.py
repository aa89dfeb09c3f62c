"""Build mcpboard/host/vision/icons/icons.npz from the drawings of open icon families.

    python -m venv /tmp/icons && /tmp/icons/bin/pip install numpy Pillow opencv-python-headless resvg-py==0.5.0
    PYTHONPATH=. /tmp/icons/bin/python deploy/icons/build.py        # needs npm; writes the file and says its size

The versions are exact and nothing in the file is dated or compressed, so the same bytes come out every time. With
`--node-modules FOLDER` the families are taken from there instead of being installed.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import resvg_py
from PIL import Image

from mcpboard.host.vision.icons.descriptor import fitted
from mcpboard.host.vision.icons.index import BUILT_IN, STEPS

Array = Any  # numpy.ndarray

HERE = Path(__file__).parent
NPM = ("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error")
INSTALL_S = 300  # seconds for npm; twenty are usual
PIXELS = 64  # the side that a drawing is rasterized at: twice what is kept


@dataclass(frozen=True)
class Family:
    """One family of icons on npm; `drawings` are its variants' files, with {} for the name of an icon."""

    package: str
    version: str
    license: str
    drawings: tuple[str, ...]


FAMILIES: Mapping[str, Family] = {
    "lucide": Family("lucide-static", "1.62.0", "ISC", ("icons/{}.svg",)),
    "tabler": Family("@tabler/icons", "3.52.0", "MIT", ("icons/outline/{}.svg", "icons/filled/{}.svg")),
    "bootstrap": Family("bootstrap-icons", "1.13.2", "MIT", ("icons/{}.svg", "icons/{}-fill.svg")),
    "ionicons": Family(
        "ionicons", "8.1.0", "MIT", ("dist/svg/{}-outline.svg", "dist/svg/{}.svg", "dist/svg/{}-sharp.svg")
    ),
    "mdi": Family("@mdi/svg", "7.4.47", "Apache-2.0", ("svg/{}.svg", "svg/{}-outline.svg")),
    "phosphor": Family(
        "@phosphor-icons/core", "2.1.1", "MIT",
        ("assets/regular/{}.svg", "assets/fill/{}-fill.svg", "assets/bold/{}-bold.svg"),
    ),
}  # fmt: skip

# Kept out of the file, so that tests can ask for icons that were never seen.
UNSEEN: Mapping[str, Family] = {
    "iconoir": Family("iconoir", "7.12.1", "MIT", ("icons/regular/{}.svg", "icons/solid/{}.svg")),
    "eva": Family("eva-icons", "1.1.3", "MIT", ("outline/svg/{}-outline.svg", "fill/svg/{}.svg")),
}


def shapes(path: Path = HERE / "shapes.txt") -> dict[str, list[str]]:
    """Return the names of the drawings of each shape, as the file has them."""
    lines = [line for line in path.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    rows = (line.split(": ") for line in lines)
    return {shape: names.split() for shape, names in rows}


def drawings(family: str, names: list[str], node_modules: Path) -> Iterator[Path]:
    """Yield the files of a family that show a shape."""
    made = {**FAMILIES, **UNSEEN}[family]
    for name in names:
        owner, _, own = name.rpartition("/")
        if owner not in ("", family) or f"-{family}/{own}" in names:
            continue
        for drawing in made.drawings:
            path = node_modules / made.package / drawing.format(own)
            if path.exists():
                yield path


def rasterized(path: Path, pixels: int) -> Array:
    """Return the ink of a drawing, pixels x pixels, 255 where it covers a pixel whole."""
    png = bytes(resvg_py.svg_to_bytes(svg_string=path.read_text("utf-8"), width=pixels, height=pixels))
    with Image.open(io.BytesIO(png)) as image:
        return np.asarray(image.convert("RGBA"))[:, :, 3]


def build(out: Path, node_modules: Path) -> int:
    """Write the file; return how many drawings are in it."""
    found = {}
    for shape, names in shapes().items():
        for family in FAMILIES:
            for path in drawings(family, names, node_modules):
                drawing = fitted(rasterized(path, PIXELS))
                if drawing is not None:
                    found[shape, drawing.tobytes()] = drawing  # families share some drawings
    save(out, [shape for shape, _ in found], np.stack(list(found.values())))
    return len(found)


def save(path: Path, shapes: list[str], drawings: Array) -> None:
    """Write the file, the same bytes for the same drawings: nothing in it is compressed or dated."""
    steps = np.round(drawings.astype(np.float32) * (STEPS / 255)).astype(np.uint8)
    packed = steps[:, :, 0::2] << 4 | steps[:, :, 1::2]
    names = sorted(set(shapes))
    index = np.array([names.index(shape) for shape in shapes], np.uint8)
    with path.open("wb") as file:
        np.savez(file, names=np.array(names), shapes=index, pictures=packed)


def install(prefix: Path) -> Path:
    """Install the families' packages by npm, without running any script of theirs."""
    wanted = [f"{family.package}@{family.version}" for family in FAMILIES.values()]
    subprocess.run([*NPM, "--prefix", prefix, *wanted], check=True, timeout=INSTALL_S)
    return prefix / "node_modules"


def main() -> None:
    options = argparse.ArgumentParser(description="Build the file of icon drawings.")
    options.add_argument("--out", type=Path, default=BUILT_IN)
    options.add_argument("--node-modules", type=Path)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as prefix:
        count = build(given.out, given.node_modules or install(Path(prefix)))
    sys.stdout.write(f"{given.out}: {count} drawings of {len(shapes())} shapes, {given.out.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
