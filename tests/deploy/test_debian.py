"""The Debian package: built as `make deb` builds it, and installed, run, upgraded and removed in a real trixie."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpboard.cli import MENU
from tests.deploy import shelf, tree
from tests.deploy.rooms import Room, room, until

pytestmark = [pytest.mark.tools, pytest.mark.slow]

SETTINGS = "/etc/mcpboard/mcpboard.toml"
MODULES = "/usr/lib/python3/dist-packages/mcpboard"
WANTED = "/etc/systemd/system/multi-user.target.wants/mcpboard.service"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("deb")
    tree.tool("dpkg-deb", "dpkg")
    tree.run(tree.DEBIAN / "build", place)
    (found,) = place.iterdir()
    return found


@pytest.fixture
def trixie(package: Path, tmp_path: Path) -> Iterator[Room]:
    """A room in Debian 13 in which the package is installed."""
    below = shelf.debian("trixie", "essential", *needed(package))
    with room(tmp_path, str(below)) as inside:
        (inside.root / "mcpboard.deb").write_bytes(package.read_bytes())
        install(inside)
        yield inside


def needed(package: Path) -> list[str]:
    """The first choice of each dependency; of systemd only what makes users."""
    fields = tree.run("dpkg-deb", "--field", package, "Depends", "Pre-Depends").splitlines()
    named = [part.split()[0] for line in fields for part in line.partition(": ")[2].split(",")]
    return sorted({"systemd": "systemd-standalone-sysusers"}.get(name, name) for name in named)


def install(inside: Room) -> None:
    inside.run("dpkg", "--install", "/mcpboard.deb", environ={"DEBIAN_FRONTEND": "noninteractive"})


def owner_and_mode(inside: Room, path: str) -> str:
    return inside.run("stat", "--format", "%U:%G %a", path).strip()


def test_debians_own_checker_finds_nothing(package: Path) -> None:
    """Errors and warnings alike; root is what the tests run as."""
    found = tree.run(
        tree.tool("lintian", "lintian"), "--allow-root", "--fail-on", "warning", "--tag-display-limit", "0", package
    )
    assert found == ""


def test_the_same_tree_gives_the_same_package(package: Path, tmp_path: Path) -> None:
    tree.run(tree.DEBIAN / "build", tmp_path)
    assert (tmp_path / package.name).read_bytes() == package.read_bytes()


def test_the_manual_page_is_made_of_the_page_of_commands(package: Path, tmp_path: Path) -> None:
    """With every argument of what a board has."""
    tree.run("dpkg-deb", "--extract", package, tmp_path)
    page = gzip.decompress((tmp_path / "usr/share/man/man1/mcpboard.1.gz").read_bytes()).decode("utf-8")
    verbs = re.findall(r"^\.SS mcpboard (.*)$", page, re.MULTILINE)
    assert set(verbs) == {*MENU["on a board"], "tools", "call", "doctor"}
    pages = (tree.ROOT / "docs/cli.md").read_text("utf-8").split("\n### mcpboard ")
    rows = [re.findall(r"^\| `(.*?)`", part, re.MULTILINE) for part in pages if part.partition("\n")[0] in verbs]
    written = re.findall(r"^\.B (\\-.*|\[.*|[A-Z].*)$", page, re.MULTILINE)
    assert [each.replace("\\-", "-") for each in written] == [row.replace("\\|", "|") for part in rows for row in part]


def test_it_serves_as_its_own_user_as_the_unit_starts_it(trixie: Room) -> None:
    unit = trixie.read("/usr/lib/systemd/system/mcpboard.service")
    user, command = (tree.first(rf"^{key}=(.*)", unit) for key in ("User", "ExecStart"))
    environ = " ".join(re.findall(r"^Environment=(.*)", unit, re.MULTILINE))
    as_user = f"setpriv --reuid {user} --regid {user} --clear-groups --no-new-privs {command}"
    trixie.run("sh", "-c", f"exec env {environ} {as_user} < /dev/null > /dev/null 2> /run/log &")
    answers = ["mcpboard", "tools", "http://127.0.0.1:8080/mcp"]
    until(lambda: "screenshot" in trixie.try_(*answers).stdout, f"a list of tools: {trixie.read('/run/log')}")
    (pid,) = trixie.processes("mcpboard serve")
    status = (trixie.root / f"proc/{pid}/status").read_text("ascii")
    assert tree.first(r"^Uid:\t(\d+)", status) == trixie.run("id", "--user", "mcpboard").strip()
    trixie.end("mcpboard serve")


def test_it_is_installed_upgraded_removed_and_purged(package: Path, trixie: Room) -> None:
    """An upgrade keeps what the owner wrote, removal leaves the settings, and a purge nothing."""
    assert package.name == f"mcpboard_{tree.debian_version(tree.VERSION)}_all.deb"
    assert tree.run("dpkg-deb", "--field", package, "Version").strip() == tree.debian_version(tree.VERSION)
    assert owner_and_mode(trixie, SETTINGS) == "root:mcpboard 640"
    assert owner_and_mode(trixie, "/usr/bin/mcpboard") == "root:root 755"
    assert trixie.run("id", "--name", "--user", "mcpboard").strip() == "mcpboard"
    assert trixie.run("mcpboard", "--version") == f"{tree.VERSION}\n"
    assert list((trixie.root / MODULES.lstrip("/") / "__pycache__").glob("errors.*.pyc"))
    assert (trixie.root / WANTED.lstrip("/")).is_symlink()

    written = trixie.read(SETTINGS) + 'log_level = "debug"\n'
    (trixie.root / SETTINGS.lstrip("/")).write_text(written, "ascii")
    install(trixie)
    assert trixie.read(SETTINGS) == written
    assert owner_and_mode(trixie, SETTINGS) == "root:mcpboard 640"

    trixie.run("dpkg", "--remove", "mcpboard")
    assert trixie.exists(SETTINGS)
    assert not trixie.exists(MODULES)
    trixie.run("dpkg", "--purge", "mcpboard")
    assert not trixie.exists("/etc/mcpboard")
    assert not (trixie.root / WANTED.lstrip("/")).is_symlink()


# What a booted system does by itself, its words in files of their own; /out is outside.
_BOOTED = """
dpkg --install /out/mcpboard.deb
until mcpboard tools http://127.0.0.1:8080/mcp > /out/tools; do sleep 0.2; done
first=$(systemctl show --property MainPID --value mcpboard)
cat /proc/$first/status > /out/status
kill -KILL $first
until [ "$(systemctl show --property NRestarts --value mcpboard)" = 1 ]; do sleep 0.2; done
until mcpboard tools http://127.0.0.1:8080/mcp > /out/again; do sleep 0.2; done
systemctl stop mcpboard
systemctl is-active mcpboard > /out/stopped
journalctl --unit mcpboard --output cat --no-pager > /out/journal
"""
_TRY = "[Unit]\nAfter=multi-user.target\n[Service]\nType=oneshot\nExecStart=/bin/sh /out/try\nExecStopPost=poweroff\n"


def test_a_booted_systemd_runs_it_with_what_an_owner_adds(package: Path, tmp_path: Path) -> None:
    """The lines of deploy/systemd for more rights as they stand; killed it comes back, stopped it stays so."""
    nspawn = tree.tool("systemd-nspawn", "systemd-container")
    others = set(needed(package)) - {"systemd-standalone-sysusers"}
    below = shelf.debian("trixie", "essential", "dbus", "systemd-sysv", *sorted(others))
    added = tree.first(r"^```\n(\[Service\]\n(?:.*\n)+?)```$", (tree.UNITS / "README.md").read_text("utf-8"))
    for name, content in (
        ("try", _BOOTED),
        ("try.service", _TRY),
        ("wants.conf", "[Unit]\nWants=try.service\n"),
        ("added.conf", added.replace("=agent", "=daemon")),
    ):
        (tmp_path / name).write_text(content, "ascii")
    (tmp_path / "mcpboard.deb").write_bytes(package.read_bytes())
    units = "/etc/systemd/system"
    tree.run(
        nspawn, f"--directory={below}", "--volatile=overlay", "--boot", "--register=no", "--keep-unit", "--settings=no",
        "--private-network", f"--machine=mcpboard-{os.getpid()}", f"--bind={tmp_path}:/out",
        f"--bind-ro={tmp_path}/try.service:{units}/try.service",
        f"--bind-ro={tmp_path}/wants.conf:{units}/multi-user.target.d/try.conf",
        f"--bind-ro={tmp_path}/added.conf:{units}/mcpboard.service.d/added.conf",
    )  # fmt: skip
    found = {file.name: file.read_text("utf-8") for file in tmp_path.iterdir() if file.suffix != ".deb"}
    assert "screenshot" in found["tools"]
    assert "screenshot" in found["again"]
    groups, ambient = (tree.first(rf"^{key}:\t(.*)", found["status"]) for key in ("Groups", "CapAmb"))
    assert "1" in groups.split(), "the group daemon"
    assert int(ambient, 16) == 1 << 10, "CAP_NET_BIND_SERVICE"
    assert found["stopped"] == "inactive\n"
    assert found["journal"].count("serving http://") == 2, "once for each start"
