"""The recipes for OpenWrt: read and run under our own macros, the procd script under a recorder."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from mcpboard.cli import main
from tests.deploy import shelf, tree

FILES = tree.OPENWRT / "mcpboard/files"

# --- the recipes -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recipe() -> Mapping[str, str]:
    return tree.described(tree.openwrt("mcpboard", "describe"))


def test_the_package_is_for_every_processor_and_brings_its_user(recipe: Mapping[str, str]) -> None:
    assert recipe["mcpboard_PKGARCH"] == "all"
    assert re.fullmatch(r"mcpboard=(\d+):mcpboard=\1", recipe["mcpboard_USERID"])
    assert recipe["mcpboard_FILE_MODES"] == "/etc/mcpboard/mcpboard.toml:root:mcpboard:0640"


def test_settings_are_kept_over_upgrades(recipe: Mapping[str, str]) -> None:
    assert recipe["mcpboard_conffiles"].split() == [
        "/etc/config/mcpboard", "/etc/mcpboard/mcpboard.toml", "/etc/mcpboard/",
    ]  # fmt: skip


def test_the_sources_are_a_package_of_their_own(recipe: Mapping[str, str]) -> None:
    assert recipe["PACKAGES"].split() == ["mcpboard", "mcpboard-src"]


def test_the_recipe_installs_the_boards_part_with_its_files(tmp_path: Path) -> None:
    umask = os.umask(0o022)
    try:
        tree.openwrt("mcpboard", "install", BUILD_DIR=tmp_path / "build", ROOT=tmp_path / "root")
    finally:
        os.umask(umask)
    found = tree.files(tmp_path / "root")
    ours = {path.removeprefix(tree.SITE + "/") for path in found if path.startswith(f"{tree.SITE}/mcpboard/")}
    assert {path for path in ours if "/__pycache__/" not in path} == tree.board_files()
    assert {path: mode for path, mode in found.items() if not path.startswith(tree.SITE)} == {
        "/etc/config/mcpboard": 0o600,
        "/etc/init.d/mcpboard": 0o755,
        "/etc/mcpboard/mcpboard.toml": 0o644,  # FILE_MODES makes it 0640 once the user exists
        "/etc/uci-defaults/90-mcpboard": 0o755,
        "/usr/bin/mcpboard": 0o755,
    }


@pytest.mark.tools
def test_the_waitress_recipe_builds_the_source_whose_hash_it_names(tmp_path: Path) -> None:
    described = tree.described(tree.openwrt("python-waitress", "describe"))
    sdist = shelf.sdist(described["PYPI_NAME"], described["PKG_VERSION"])
    assert hashlib.sha256(sdist.read_bytes()).hexdigest() == described["PKG_HASH"]
    tree.openwrt("python-waitress", "install", BUILD_DIR=tmp_path / "build", ROOT=tmp_path / "root", SDIST=sdist)
    found = tree.files(tmp_path / "root")
    assert f"{tree.SITE}/waitress/server.py" in found
    assert found["/usr/bin/waitress-serve"] == 0o755
    (prepared,) = (tmp_path / "build").iterdir()
    assert (prepared / described["PKG_LICENSE_FILES"]).exists()


# --- the shipped settings --------------------------------------------------------------------


def uci(text: str) -> dict[str, dict[str, list[str]]]:
    """Section name -> option or list -> its values, of a file in /etc/config."""
    sections: dict[str, dict[str, list[str]]] = {}
    for line in filter(None, (line.strip() for line in text.split("\n"))):
        if line.startswith("#"):
            continue
        found = re.fullmatch(r"(?P<kind>config|option|list) (?P<key>\w+) '(?P<value>[^']*)'", line)
        assert found, f"UCI would not read: {line}"
        if found["kind"] == "config":
            current = sections.setdefault(found["value"], {})
        else:
            current.setdefault(found["key"], []).append(found["value"])
    return sections


def test_it_comes_switched_off_alone_and_on_the_lan() -> None:
    shipped = uci((FILES / "mcpboard.config").read_text("ascii"))
    assert shipped == {"main": {"enabled": ["0"], "profile": ["standalone"], "interface": ["lan"]}}


def test_what_is_commented_out_can_be_taken_in() -> None:
    text = re.sub(r"#(?=option)", "", (FILES / "mcpboard.config").read_text("ascii"))
    options = {"port", "agent_base_url", "config_web_base_url", "agent_config", "token_file", "log_level"}
    assert options < set(uci(text)["main"])


# --- the procd script under a recorder -------------------------------------------------------

MALLOC = "procd_set_param env MALLOC_ARENA_MAX=1 MALLOC_TRIM_THRESHOLD_=2097152 MALLOC_MMAP_THRESHOLD_=1048576"
COMMAND = "procd_set_param command /usr/bin/mcpboard serve --config /etc/mcpboard/mcpboard.toml --log syslog"

# What every instance ends with.
TAIL = (
    MALLOC,
    "procd_set_param file /etc/mcpboard/mcpboard.toml",
    "procd_set_param user mcpboard",
    "procd_set_param stdout 1",
    "procd_set_param stderr 1",
    "procd_set_param respawn 3600 5 0",
    "procd_set_param term_timeout 10",
    "procd_close_instance",
)


def record(folder: Path, function: str, content: Mapping[str, str]) -> list[str]:
    """The calls that `function` of the script makes with that UCI content; addresses are kept in `folder`."""
    script = (FILES / "mcpboard.init").read_text("ascii")
    for of_the_board, here in (
        ("ADDRESSES=/var/run/mcpboard", f"ADDRESSES={folder}/addresses"),
        ("\t. /lib/functions/network.sh\n", ""),
    ):
        assert of_the_board in script
        script = script.replace(of_the_board, here)
    recorder = (tree.STUBS / "openwrt/recorder.sh").read_text("ascii")
    shell = tree.tool("busybox", "busybox-static")
    calls = tree.run(shell, "ash", "-c", f"{recorder}\n{script}\n{function}", environ={"PATH": os.defpath, **content})
    return calls.splitlines()


ON = {"SECTIONS": "main", "main_enabled": "1", "main_interface": "lan", "ADDRESS_lan": "192.168.1.1"}


def instance(*command: str, name: str = "main") -> list[str]:
    return [f"procd_open_instance {name}", *command, *TAIL]


def agent(url: str) -> str:
    return f"procd_append_param command --agent-base-url {url}"


PLAIN = [f"{COMMAND} --listen 192.168.1.1:8080", agent("http://127.0.0.1:8081")]


@pytest.mark.tools
@pytest.mark.parametrize(
    ("content", "calls"),
    [
        pytest.param({"SECTIONS": ""}, [], id="no section at all"),
        pytest.param({"SECTIONS": "main"}, [], id="a section without options is off"),
        pytest.param({**ON, "main_enabled": "0"}, [], id="disabled"),
        pytest.param(ON, instance(*PLAIN), id="enabled, standalone by default"),
        pytest.param({**ON, "main_profile": "alone"}, instance(*PLAIN), id="standalone as 0.1 called it"),
        pytest.param({**ON, "main_profile": "alongside"}, instance(f"{COMMAND} --listen 192.168.1.1:8090", agent("http://127.0.0.1:8080")), id="alongside a stock Agent"),
        pytest.param({**ON, "main_profile": "beside"}, instance(f"{COMMAND} --listen 192.168.1.1:8090", agent("http://127.0.0.1:8080")), id="alongside as 0.1 called it"),
        pytest.param(
            {**ON, "main_profile": "alongside", "main_port": "9000", "main_agent_base_url": "http://127.0.0.1:7000"},
            instance(f"{COMMAND} --listen 192.168.1.1:9000", agent("http://127.0.0.1:7000")),
            id="options win over the profile",
        ),
        pytest.param(
            {**ON, "main_profile": "elsewhere"},
            ["logged: profile elsewhere is neither standalone nor alongside; correct it in /etc/config/mcpboard"],
            id="an unknown profile starts nothing and says so",
        ),
        pytest.param(
            {**ON, "main_interface": "lan usb", "ADDRESS_usb": "192.168.42.1"},
            instance(f"{COMMAND} --listen 192.168.1.1:8080 --listen 192.168.42.1:8080", PLAIN[1]),
            id="two interfaces",
        ),
        pytest.param(
            {**ON, "main_interface": "lan usb"},
            ["logged: interface usb has no address yet; it is served as soon as it has one", *instance(*PLAIN)],
            id="one interface of two without an address",
        ),
        pytest.param({**ON, "ADDRESS_lan": ""}, ["logged: interface lan has no address yet; it is served as soon as it has one"], id="no address is a wait"),
        pytest.param(
            {
                **ON, "main_config_web_base_url": "http://127.0.0.1:8000", "main_agent_config": "/opt/my agent.toml",
                "main_token_file": "/etc/mcpboard/token", "main_log_level": "debug",
            },
            instance(
                *PLAIN,
                "procd_append_param command --config-web-base-url http://127.0.0.1:8000",
                "procd_append_param command --agent-config /opt/my agent.toml",
                "procd_append_param command --token-file /etc/mcpboard/token",
                "procd_append_param command --log-level debug",
            ),
            id="every option",
        ),
        pytest.param(
            {**ON, "SECTIONS": "main second", "second_enabled": "1", "second_interface": "lan", "second_port": "8099"},
            [*instance(*PLAIN), *instance(f"{COMMAND} --listen 192.168.1.1:8099", PLAIN[1], name="second")],
            id="two instances",
        ),
    ],
)  # fmt: skip
def test_what_procd_is_told(tmp_path: Path, content: Mapping[str, str], calls: Sequence[str]) -> None:
    assert record(tmp_path, "start_service", content) == calls


@pytest.mark.tools
def test_a_link_that_is_down_for_a_moment_changes_nothing(tmp_path: Path) -> None:
    """procd restarts an instance when its command changed, and ends it when it is no longer told of it."""
    before = record(tmp_path, "start_service", ON)
    assert record(tmp_path, "start_service", {**ON, "ADDRESS_lan": ""}) == before


@pytest.mark.tools
def test_another_address_is_another_command(tmp_path: Path) -> None:
    before = record(tmp_path, "start_service", ON)
    after = record(tmp_path, "start_service", {**ON, "ADDRESS_lan": "192.168.2.1"})
    assert after == [line.replace("192.168.1.1", "192.168.2.1") for line in before]
    assert record(tmp_path, "start_service", {**ON, "ADDRESS_lan": ""}) == after


@pytest.mark.tools
def test_a_reload_follows_the_settings_and_each_interface(tmp_path: Path) -> None:
    assert record(tmp_path, "service_triggers", {**ON, "main_interface": "lan usb"}) == [
        "procd_add_reload_trigger mcpboard",
        "procd_add_reload_interface_trigger lan",
        "procd_add_reload_interface_trigger usb",
    ]


def test_the_program_knows_every_flag_that_the_script_gives(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    flags = set(re.findall(r"--[a-z-]+", (FILES / "mcpboard.init").read_text("ascii")))
    assert flags <= set(re.findall(r"--[a-z-]+", capsys.readouterr().out))


# --- the first boot --------------------------------------------------------------------------


def first_boot(folder: Path, content: Mapping[str, str]) -> None:
    script = (FILES / "mcpboard.defaults").read_text("ascii").replace(". /lib/functions.sh\n", "")
    recorder = (tree.STUBS / "openwrt/recorder.sh").read_text("ascii")
    # The user is not here.
    owner = f"chown() {{ echo \"$@\" >> '{folder}/chown'; }}"
    shell = tree.tool("busybox", "busybox-static")
    tree.run(shell, "ash", "-c", f"{recorder}\n{owner}\n{script}", environ={"PATH": os.defpath, **content})


@pytest.mark.tools
def test_a_token_is_made_where_a_file_for_it_is_named(tmp_path: Path) -> None:
    token = tmp_path / "deep/token"
    first_boot(tmp_path, {"SECTIONS": "main", "main_token_file": str(token)})
    assert re.fullmatch(r"[A-Za-z0-9]{43}", token.read_text("ascii"))
    assert token.stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "chown").read_text("ascii") == f"root:mcpboard {token}.new\n"


@pytest.mark.tools
def test_no_token_is_made_where_none_is_asked_for(tmp_path: Path) -> None:
    first_boot(tmp_path, {"SECTIONS": "main"})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.tools
def test_a_token_that_is_there_stays(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("made before", "ascii")
    first_boot(tmp_path, {"SECTIONS": "main", "main_token_file": str(token)})
    assert token.read_text("ascii") == "made before"
