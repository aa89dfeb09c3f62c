"""The units of systemd: readable to systemd itself, and as closed as was agreed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy import tree
from tests.deploy.rooms import Room, room

pytestmark = pytest.mark.tools

EXPOSURE = 1.5  # of 10, as systemd-analyze counts; a unit without a word about it has 9.2


@pytest.fixture
def inside(tmp_path: Path) -> Iterator[Room]:
    with room(tmp_path) as made:
        yield made


BOARD, HOST = "/etc/systemd/system/mcpboard.service", "/.config/systemd/user/device-host-agent.service"
NOT_THERE = r"/usr/bin/mcpboard is not executable"


@pytest.mark.parametrize(
    ("unit", "program", "flags", "told"),
    [
        pytest.param(BOARD, "/usr/bin/mcpboard", (), None, id="the board's, its program where packages put it"),
        pytest.param(BOARD, "", (), NOT_THERE, id="the board's without its program, which is noticed"),
        pytest.param(HOST, "/.local/bin/device-host-agent", ("--user",), None, id="the host's"),
    ],
)
def test_a_unit_is_sound(inside: Room, unit: str, program: str, flags: tuple[str, ...], told: str | None) -> None:
    if program:
        inside.write(program, "#!/bin/sh\n", 0o755)
    inside.write(unit, (tree.UNITS / Path(unit).name).read_text("ascii"))
    tree.tool("systemd-analyze", "systemd")
    environ = {"HOME": "/", "XDG_RUNTIME_DIR": "/run"}
    done = inside.try_("systemd-analyze", *flags, "verify", "--man=no", unit, environ=environ)
    about = "\n".join(line for line in done.stderr.splitlines() if Path(unit).stem in line)
    assert re.search(told, about) if told else (done.returncode, about) == (0, "")


# Lines of a unit, in files of their own or between the fences of a page.
PAGES = [*sorted((tree.ROOT / "docs").rglob("*.md")), *sorted(tree.DEPLOY.rglob("*.md"))]
BLOCKS = [
    block
    for page in PAGES
    for block in re.findall(r"^```\w*\n(\[Service\]\n.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
]
FILES = [path for folder in ("deploy", "mcpboard") for path in sorted((tree.ROOT / folder).rglob("*.service"))]


@pytest.mark.parametrize("lines", [*BLOCKS, *(path.read_text("utf-8") for path in FILES)], ids=[*("page" for _ in BLOCKS), *(path.name for path in FILES)])  # fmt: skip
def test_nothing_stands_behind_a_value_since_systemd_takes_it_for_a_part_of_it(lines: str) -> None:
    """A comment there became the name of a group, and the service did not start."""
    assert re.findall(r"^\w+=.*[ \t][#;].*$", lines, re.MULTILINE) == []


def test_the_boards_unit_is_closed() -> None:
    analyze = tree.tool("systemd-analyze", "systemd")
    words = tree.run(analyze, "security", "--offline=true", "--no-pager", tree.UNITS / "mcpboard.service")
    assert float(tree.first(r"Overall exposure level for mcpboard\.service: ([0-9.]+)", words)) <= EXPOSURE


def test_sysusers_makes_the_user(inside: Room) -> None:
    inside.write("/usr/lib/sysusers.d/mcpboard.conf", (tree.UNITS / "mcpboard.sysusers").read_text("ascii"))
    inside.run("systemd-sysusers", "mcpboard.conf")
    found = r"^mcpboard:[^:]*:\d+:\d+:Model Context Protocol server:/:\S+/nologin$"
    assert re.search(found, inside.read("/etc/passwd"), re.MULTILINE)
