"""The units of systemd and launchd: readable to those who run them, and as closed as was agreed."""

from __future__ import annotations

import configparser
import plistlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy import tree
from tests.deploy.rooms import Room, room

EXPOSURE = 1.5  # of 10, as systemd-analyze counts; a unit without a word about it has 9.2


@pytest.fixture
def inside(tmp_path: Path) -> Iterator[Room]:
    with room(tmp_path) as made:
        yield made


@pytest.mark.tools
def test_the_boards_unit_is_sound_where_the_package_is_installed(inside: Room) -> None:
    """Verification looks for the program, so it is put where the packages put it."""
    inside.write("/usr/bin/mcpboard", (tree.DEBIAN / "mcpboard").read_text("ascii"), 0o755)
    inside.write("/etc/systemd/system/mcpboard.service", (tree.UNITS / "mcpboard.service").read_text("ascii"))
    tree.tool("systemd-analyze", "systemd")
    done = inside.try_("systemd-analyze", "verify", "--man=no", "/etc/systemd/system/mcpboard.service")
    assert (done.returncode, [line for line in done.stderr.splitlines() if "mcpboard" in line]) == (0, [])


@pytest.mark.tools
def test_a_unit_without_its_program_would_be_noticed(inside: Room) -> None:
    inside.write("/etc/systemd/system/mcpboard.service", (tree.UNITS / "mcpboard.service").read_text("ascii"))
    done = inside.try_("systemd-analyze", "verify", "--man=no", "/etc/systemd/system/mcpboard.service")
    assert "/usr/bin/mcpboard is not executable" in done.stderr


@pytest.mark.tools
def test_the_boards_unit_is_closed() -> None:
    analyze = tree.tool("systemd-analyze", "systemd")
    words = tree.run(analyze, "security", "--offline=true", "--no-pager", tree.UNITS / "mcpboard.service")
    assert float(tree.first(r"Overall exposure level for mcpboard\.service: ([0-9.]+)", words)) <= EXPOSURE


@pytest.mark.tools
def test_the_hosts_unit_is_sound(inside: Room) -> None:
    inside.write("/.local/bin/device-host-agent", "#!/bin/sh\n", 0o755)
    unit = "/.config/systemd/user/device-host-agent.service"
    inside.write(unit, (tree.UNITS / "device-host-agent.service").read_text("ascii"))
    environ = {"HOME": "/", "XDG_RUNTIME_DIR": "/run"}
    done = inside.try_("systemd-analyze", "--user", "verify", "--man=no", unit, environ=environ)
    assert [line for line in done.stderr.splitlines() if "device-host-agent" in line] == []


@pytest.mark.tools
def test_sysusers_makes_the_user(inside: Room) -> None:
    inside.write("/usr/lib/sysusers.d/mcpboard.conf", (tree.UNITS / "mcpboard.sysusers").read_text("ascii"))
    inside.run("systemd-sysusers", "mcpboard.conf")
    found = r"^mcpboard:[^:]*:\d+:\d+:Model Context Protocol server:/:\S+/nologin$"
    assert re.search(found, inside.read("/etc/passwd"), re.MULTILINE)


def test_the_unit_names_no_key_twice_that_would_replace_itself() -> None:
    lines = (tree.UNITS / "mcpboard.service").read_text("ascii").splitlines()
    keys = [line.partition("=")[0] for line in lines if re.match(r"\w+=", line)]
    assert {key for key in keys if keys.count(key) > 1} == {"Environment", "SystemCallFilter"}  # lists


def test_launchd_can_read_its_list() -> None:
    agent = plistlib.loads((tree.UNITS / "device-host-agent.plist").read_bytes())
    assert agent["Label"] == "mcpboard.device-host-agent"
    assert agent["ProgramArguments"][-1].endswith('device-host-agent" run')
    assert (agent["RunAtLoad"], agent["KeepAlive"]) == (True, {"SuccessfulExit": False})


def test_both_start_the_same_program() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.read(tree.UNITS / "device-host-agent.service")
    agent = plistlib.loads((tree.UNITS / "device-host-agent.plist").read_bytes())
    plain = agent["ProgramArguments"][-1].removeprefix("exec ").replace('"', "").replace("$HOME", "%h")
    assert unit["Service"]["ExecStart"] == plain
