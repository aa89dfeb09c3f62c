"""The shipped settings of OpenWrt, and its scripts under a recorder: what procd is told, and the first boot."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from mcpboard.cli import main
from tests.bench.programs import MALLOC
from tests.deploy import tree

FILES = tree.OPENWRT / "mcpboard/files"

# --- the shipped settings --------------------------------------------------------------------


def uci(text: str) -> dict[str, dict[str, list[str]]]:
    """Section name -> option or list -> its values, of a file in /etc/config."""
    sections: dict[str, dict[str, list[str]]] = {}
    for line in filter(None, (line.strip() for line in text.split("\n") if not line.lstrip().startswith("#"))):
        found = re.fullmatch(r"(config|option|list) (\w+) '([^']*)'", line)
        assert found, f"UCI would not read: {line}"
        kind, key, value = found.groups()
        if kind == "config":
            current = sections.setdefault(value, {})
        else:
            current.setdefault(key, []).append(value)
    return sections


def test_it_comes_switched_off_standalone_and_on_the_lan_and_its_examples_can_be_taken_in() -> None:
    shipped = (FILES / "mcpboard.config").read_text("ascii")
    assert uci(shipped) == {"main": {"enabled": ["0"], "profile": ["standalone"], "interface": ["lan"]}}
    options = {"port", "agent_base_url", "config_web_base_url", "agent_config", "token_file", "log_level"}
    assert options < set(uci(re.sub(r"#(?=option)", "", shipped))["main"])


def test_the_page_for_packagers_sets_what_there_is() -> None:
    """Its lines for the USB link are UCI's, by section, and those of ours name options that are read."""
    page = (tree.ROOT / "docs/packages.md").read_text("utf-8")
    _, _, rest = page.partition("uci batch <<'EOF'\n")
    lines = rest.partition("EOF\n")[0].splitlines()
    made = {"mcpboard.main"}
    for line in lines[:-1]:
        found = re.fullmatch(r"(set|add_list|delete) (\w+\.\w+)(?:\.(\w+))?(?:='?([^']*)'?)?", line)
        assert found, line
        _, section, option, _ = found.groups()
        made |= set() if option else {section}
        assert section in made, line
        assert not section.startswith("mcpboard.") or option in {"interface", "enabled"}
    assert lines[-1] == "commit"


# --- the procd script under a recorder -------------------------------------------------------

COMMAND = "procd_set_param command /usr/bin/mcpboard serve --config /etc/mcpboard/mcpboard.toml --log syslog"

# What every instance ends with.
TAIL = [
    f"procd_set_param {words}" for words in (
        "env " + " ".join(f"{name}={value}" for name, value in MALLOC.items()),
        "file /etc/mcpboard/mcpboard.toml", "user mcpboard", "stderr 1", "respawn 3600 5 0", "term_timeout 10",
    )
]  # fmt: skip


def ash(folder: Path, name: str, replaced: Mapping[str, str], then: str, content: Mapping[str, str]) -> list[str]:
    """The lines that one of our scripts says, and then `then`, under the recorder with that UCI content."""
    script = (FILES / name).read_text("ascii")
    for of_the_board, here in replaced.items():
        assert of_the_board in script
        script = script.replace(of_the_board, here)
    # The user is not here.
    owner = f"chown() {{ echo \"$@\" >> '{folder}/chown'; }}"
    recorder = (tree.STUBS / "openwrt/recorder.sh").read_text("ascii")
    words = (tree.tool("busybox", "busybox-static"), "ash", "-c", "\n".join((recorder, owner, script, then)))
    return tree.run(*words, environ={"PATH": os.defpath, **content}).splitlines()


def record(folder: Path, function: str, content: Mapping[str, str]) -> list[str]:
    """The calls that `function` of the script makes with that UCI content; addresses are kept in `folder`."""
    addresses = {"ADDRESSES=/var/run/mcpboard": f"ADDRESSES={folder}/addresses"}
    return ash(folder, "mcpboard.init", {**addresses, "\t. /lib/functions/network.sh\n": ""}, function, content)


ON = {"SECTIONS": "main", "main_enabled": "1", "main_interface": "lan", "ADDRESS_lan": "192.168.1.1"}


def instance(*command: str, name: str = "main") -> list[str]:
    return [f"procd_open_instance {name}", *command, *TAIL, "procd_close_instance"]


def agent(url: str) -> str:
    return f"procd_append_param command --agent-base-url {url}"


PLAIN = [f"{COMMAND} --listen 192.168.1.1:8080", agent("http://127.0.0.1:8081")]


ALONGSIDE = instance(f"{COMMAND} --listen 192.168.1.1:8090", agent("http://127.0.0.1:8080"))
WAIT = "logged: interface {} has no address yet; it is served as soon as it has one"
UNKNOWN = "logged: profile elsewhere is neither standalone nor alongside; correct it in /etc/config/mcpboard"
EVERY = {
    "main_config_web_base_url": "http://127.0.0.1:8000", "main_agent_config": "/opt/my agent.toml",
    "main_token_file": "/etc/mcpboard/token", "main_log_level": "debug",
}  # fmt: skip
FLAGS = ("config-web-base-url", "agent-config", "token-file", "log-level")


@pytest.mark.tools
@pytest.mark.parametrize(
    ("content", "calls"),
    [
        pytest.param({"SECTIONS": ""}, [], id="no section at all"),
        pytest.param({"SECTIONS": "main"}, [], id="a section without options is off"),
        pytest.param({**ON, "main_enabled": "0"}, [], id="disabled"),
        pytest.param(ON, instance(*PLAIN), id="enabled, standalone by default"),
        pytest.param({**ON, "main_profile": "alone"}, instance(*PLAIN), id="standalone as 0.1 called it"),
        pytest.param({**ON, "main_profile": "alongside"}, ALONGSIDE, id="alongside a stock Agent"),
        pytest.param({**ON, "main_profile": "beside"}, ALONGSIDE, id="alongside as 0.1 called it"),
        pytest.param(
            {**ON, "main_profile": "alongside", "main_port": "9000", "main_agent_base_url": "http://127.0.0.1:7000"},
            instance(f"{COMMAND} --listen 192.168.1.1:9000", agent("http://127.0.0.1:7000")),
            id="options win over the profile",
        ),
        pytest.param({**ON, "main_profile": "elsewhere"}, [UNKNOWN], id="an unknown profile starts nothing and says so"),
        pytest.param(
            {**ON, "main_interface": "lan usb", "ADDRESS_usb": "192.168.42.1"},
            instance(f"{COMMAND} --listen 192.168.1.1:8080 --listen 192.168.42.1:8080", PLAIN[1]),
            id="two interfaces",
        ),
        pytest.param({**ON, "main_interface": "lan usb"}, [WAIT.format("usb"), *instance(*PLAIN)], id="one interface of two without an address"),
        pytest.param({**ON, "ADDRESS_lan": ""}, [WAIT.format("lan")], id="no address is a wait"),
        pytest.param(
            {**ON, **EVERY}, instance(*PLAIN, *(f"procd_append_param command --{flag} {value}" for flag, value in zip(FLAGS, EVERY.values(), strict=True))),
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
def test_a_link_that_is_down_for_a_moment_changes_nothing_and_another_address_does(tmp_path: Path) -> None:
    """procd restarts an instance when its command changed, and ends it when it is no longer told of it."""
    before = record(tmp_path, "start_service", ON)
    assert record(tmp_path, "start_service", {**ON, "ADDRESS_lan": ""}) == before
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


@pytest.mark.tools
def test_the_first_boot_protects_the_settings_and_makes_the_token_that_is_named(tmp_path: Path) -> None:
    settings = tmp_path / "mcpboard.toml"
    here = {". /lib/functions.sh\n": "", "SETTINGS=/etc/mcpboard/mcpboard.toml": f"SETTINGS={settings}"}

    def first_boot(**content: str) -> None:
        ash(tmp_path, "mcpboard.defaults", here, "", {"SECTIONS": "main", **content})

    first_boot()
    assert list(tmp_path.iterdir()) == []
    settings.write_text("")
    settings.chmod(0o644)
    first_boot()
    assert settings.stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "chown").read_text("ascii") == f"root:mcpboard {settings}\n"
    settings.unlink()
    (tmp_path / "chown").unlink()

    token = tmp_path / "deep/token"
    first_boot(main_token_file=str(token))
    made = token.read_text("ascii")
    assert re.fullmatch(r"[A-Za-z0-9]{43}", made)
    assert token.stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "chown").read_text("ascii") == f"root:mcpboard {token}.new\n"

    first_boot(main_token_file=str(token))
    assert token.read_text("ascii") == made
