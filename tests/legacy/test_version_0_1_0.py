"""Files and names that users have from version 0.1.0 keep working; version_0_1_0/ holds what that version wrote."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpboard import cli, config, host
from mcpboard.client import Client
from mcpboard.config import Address
from mcpboard.host import config as host_config
from mcpboard.host.cloud import enrollment
from mcpboard.host.cloud.outbox import Outbox
from tests.deploy import test_openwrt, tree
from tests.support import served

HERE = Path(__file__).parent / "version_0_1_0"
HERMES = "kLOwNQ4fes3h_7Yem1a4ZEtThZdACJebeAxF-n5xGDA"  # of which the file holds the digest only
MAIN = "YAGLZIsjthkhBSPEY3zryeZdksBQu_YW1Oe1qedpl8k"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The host's folder, private as that version left it."""
    copy = Path(shutil.copytree(HERE / "tasks", tmp_path / "tasks"))
    for path in [copy, *copy.rglob("*")]:
        path.chmod(0o700 if path.is_dir() else 0o600)
    return copy


def test_every_key_of_the_board_is_read() -> None:
    settings = config.load({"config": str(HERE / "mcpboard.toml")}, {})
    assert settings.listen == (Address("127.0.0.1", 8090), Address("::1", 8090))
    assert settings.agent_base_url == "http://127.0.0.1:8080"
    assert (settings.strict_meta, settings.log, settings.log_level, settings.freebind) == (
        True,
        "syslog",
        "warning",
        True,
    )
    assert (settings.mcp_enabled, settings.mcp_shell_enabled) == (False, True)
    assert settings.mcp_config_web_base_url == "http://localhost:8000"
    assert settings.support_bundle_max_bytes == 1 << 20


def test_every_key_of_the_host_is_read() -> None:
    settings = host_config.load({"config": str(HERE / "mcpboard.toml")}, {})
    assert (settings.bind_host, settings.port, settings.hold_scope) == ("127.0.0.2", 9000, "token")
    assert settings.adb_server == ("127.0.0.1", 5038)
    assert (settings.adb_start, settings.adb_discover) == (True, True)
    assert (settings.cloud_proxy, settings.log) == ("http://proxy.example:3128", "/var/log/agent.log")
    assert settings.folder == Path("/var/lib/agent")


def test_the_variables_count() -> None:
    assert config.load({}, {"MCPBOARD_CONFIG": str(HERE / "mcpboard.toml")}).log == "syslog"
    environ = {"HOST_AGENT_CONSOLE_BIND_HOST": "0.0.0.0", "HOST_AGENT_CONSOLE_ALLOW_NON_LOOPBACK": "true"}
    assert host_config.load({}, environ).bind_host == "0.0.0.0"


@pytest.fixture
def agent(folder: Path) -> Iterator[str]:
    """The URL of an agent on that folder, which is enrolled nowhere: its cloud is none of a test's business."""
    (folder / "host_cloud.json").unlink()
    role = host.build(host_config.load({"data": str(folder)}, {}))
    try:
        with served.thread(role.app) as url:
            yield url
    finally:
        role.close()


@pytest.mark.parametrize("token", [MAIN, HERMES], ids=["main", "named"])
def test_the_tokens_open_the_door_and_the_devices_are_there(agent: str, token: str) -> None:
    with Client(agent, token) as client:
        listed = client.call("list_devices").structured
    assert listed is not None
    assert [device["id"] for device in listed["devices"]] == ["board-1", "pixel", "iphone", "phone-1"]


def test_the_enrollment_and_the_outbox_are_taken_over(folder: Path) -> None:
    """The cloud hears of an assignment that the old version finished."""
    found = enrollment.read(folder)
    assert found is not None
    assert (found.url, found.host_id, found.lease_s) == ("https://cloud.example", "h1", 60.0)
    (entry,) = Outbox(folder, "h1").pending()
    assert (entry.assignment, entry.lease) == ("assignment-7", "lease-7")


def verbs() -> list[list[str]]:
    return [shlex.split(line) for line in (HERE / "verbs.txt").read_text("utf-8").splitlines()]


@pytest.mark.parametrize("words", verbs(), ids=" ".join)
def test_every_verb_takes_its_flags(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    program, *rest = words
    names = [word for word in rest if not word.startswith("--")]
    main: Any = cli.host_main if program == "device-host-agent" else cli.main
    with pytest.raises(SystemExit) as ended:
        main([*names, "--help"])
    assert ended.value.code == 0
    missing = set(rest) - set(names) - set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    assert not missing


@pytest.mark.tools
def test_openwrts_options_start_the_same_server(tmp_path: Path) -> None:
    """`/etc/config/mcpboard` with the profile that was called beside."""
    (options,) = test_openwrt.uci((HERE / "etc_config_mcpboard").read_text("ascii")).values()
    content = {"SECTIONS": "main", "ADDRESS_lan": "192.168.1.1", "ADDRESS_usb": "192.168.42.1"}
    content |= {f"main_{key}": " ".join(values) for key, values in options.items()}
    calls = test_openwrt.record(tmp_path, "start_service", content)
    command = " ".join(call.split(" ", 2)[2] for call in calls if " command " in call)
    assert "--listen 192.168.1.1:9000 --listen 192.168.42.1:9000 --agent-base-url http://127.0.0.1:7000" in command
    assert command.endswith("--log-level debug")


def test_buildroots_variables_reach_the_command(tmp_path: Path) -> None:
    """`/etc/default/mcpboard` sets them before the script uses them."""
    script = (tree.BUILDROOT / "package/mcpboard/S90mcpboard").read_text("ascii")
    head = script[: script.index("\nstart() {")].replace("/etc/default/$DAEMON", str(HERE / "etc_default_mcpboard"))
    told = tree.run("sh", "-c", f'{head}\necho "$MCPBOARD_USER: $MCPBOARD_ARGS"')
    assert told == "mcpboard: serve --log syslog --log-level debug\n"
    assert '--chuid "$MCPBOARD_USER"' in script
    assert "/usr/bin/mcpboard $MCPBOARD_ARGS" in script
