"""What is on a board: our part of the package, its dependencies as this Python has them, bytecode alone if wanted."""

from __future__ import annotations

import compileall
import importlib.metadata
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from mcpboard.board.tools import ROWS
from mcpboard.client import Client
from tests.deploy import tree
from tests.support.processes import first_line, started

START_S = 60.0  # until the URL must be printed; an emulated ARM on a busy machine needs ten

ROOTS = ("werkzeug", "waitress", "requests")


def dependencies() -> list[importlib.metadata.Distribution]:
    """The three that setup.cfg names and what they need in turn, as installed here."""
    found: dict[str, importlib.metadata.Distribution] = {}
    wanted = list(ROOTS)
    while wanted:
        name = wanted.pop()
        if name not in found:
            found[name] = importlib.metadata.distribution(name)
            plain = [line for line in found[name].requires or () if ";" not in line]
            wanted += [tree.first(r"^([A-Za-z0-9_.-]+)", line).lower().replace("_", "-") for line in plain]
    return list(found.values())


def install_dependencies(site: Path) -> None:
    """Copy the modules of all dependencies into `site`, without metadata, commands and bytecode."""
    for distribution in dependencies():
        for file in distribution.files or ():
            if file.parts[0] != ".." and ".dist-info" not in file.parts[0] and file.suffix != ".pyc":
                _copy(Path(str(file.locate())), site / file)


def install_ours(site: Path) -> None:
    """Copy the board's part of the package into `site`."""
    for path in tree.board_files():
        _copy(tree.ROOT / path, site / path)


def _copy(source: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, place)


def leave_bytecode_alone(site: Path) -> None:
    """Compile as both build systems do, and remove sources, caches and metadata."""
    assert compileall.compile_dir(site, quiet=2, legacy=True, workers=1)
    remove_sources(site)


def remove_sources(site: Path) -> None:
    """Leave only what was compiled in place of its source, and what is no Python."""
    for path in list(site.rglob("*.py")):
        path.unlink()
    for pattern in ("__pycache__", "*.dist-info", "bin"):
        for folder in list(site.rglob(pattern)):
            shutil.rmtree(folder)


def installed_bytes(site: Path) -> int:
    return sum(path.stat().st_size for path in site.rglob("*") if path.is_file())


@contextmanager
def served(command: Sequence[object], environ: Mapping[str, str], cwd: Path = tree.ROOT) -> Iterator[str]:
    """The URL of the server that `command` starts; when the block ends SIGTERM must end it with code 0, and quietly."""
    with started(*map(str, command), env={"PATH": os.defpath, **environ}, cwd=cwd) as program:
        line = first_line(program.process, START_S)
        assert " serving http://" in line, line + program.errors
        yield line.split()[-1]
        assert (program.end(), "Traceback" in program.errors) == (0, False), program.errors


# What is listed while the shell is not switched on.
TOOLS = [row.tool.name for row in ROWS if row.tool.name != "shell"]


def drive(client: Client) -> None:
    """A status, a picture and a bundle, each whole."""
    assert not client.call("phone_bridge_status", {}).is_error
    (picture,) = client.call("screenshot", {}).images
    assert picture.content
    (bundle,) = client.call("support_bundle", {}).blobs
    assert bundle.content
