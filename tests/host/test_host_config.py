"""The host's settings: where each comes from, and the rule about addresses that other machines reach."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpboard.errors import ConfigError
from mcpboard.host import config as host_config
from mcpboard.host.config import ALLOW_VARIABLE, BIND_VARIABLE, HostSettings

LOOPBACK = [("localhost", "127.0.0.1"), ("LOCALHOST", "127.0.0.1"), ("::1", "::1"), ("127.0.0.2", "127.0.0.2")]
OPEN = ["0.0.0.0", "::", "192.168.1.5", "fe80::1", "::ffff:192.168.1.5"]
NONE = ["", " 127.0.0.1", "127.0.0.1 ", "*", "127.1", "0x7f000001", "host.example", "127.0.0.1:8765", "fe80::1%eth0"]
YES = ["true", "True", "TRUE", "1", "yes", "Yes"]
NO = [None, "", "false", "0", "no", "on", "truely"]


def load(host: str | None = None, allow: str | None = None, **flags: object) -> HostSettings:
    said = {BIND_VARIABLE: host, ALLOW_VARIABLE: allow}
    return host_config.load(flags, {name: value for name, value in said.items() if value is not None})


@pytest.mark.parametrize("allow", [*NO, *YES])
def test_what_is_served_is_never_wider_than_allowed_and_never_guessed(allow: str | None) -> None:
    """To expose it on a different interface both are required: the address and the permission."""
    for host, bound in LOOPBACK:
        assert load(host, allow).bind_host == bound
    for host in OPEN:
        if allow in YES:
            assert load(host, allow).bind_host in (host, "::ffff:c0a8:105")
            continue
        with pytest.raises(ConfigError, match=f"{ALLOW_VARIABLE}=true as well") as refused:
            load(host, allow)
        assert "\n" not in str(refused.value)
    for host in NONE:
        with pytest.raises(ConfigError, match=r"an IP address such as 127.0.0.1 is expected"):
            load(host, allow)
    found = load(None, allow)  # the switch alone changes nothing
    assert (found.bind_host, found.port, found.url) == ("127.0.0.1", 8765, "http://127.0.0.1:8765/mcp")


def test_the_command_line_needs_the_switch_as_well() -> None:
    with pytest.raises(ConfigError, match=r"bind_host = 0\.0\.0\.0 \(--bind\): other machines reach that address"):
        load(bind_host="0.0.0.0")
    assert load(None, "true", bind_host="0.0.0.0").bind_host == "0.0.0.0"


def written(tmp_path: Path, *lines: str) -> str:
    file = tmp_path / "mcpboard.toml"
    file.write_text("\n".join(["[mcpboard]", 'listen = "127.0.0.1:0"', "[host]", *lines]) + "\n", "utf-8")
    return str(file)


URLS = {
    "::1": "http://[::1]:8765/mcp",
    "0.0.0.0": "http://127.0.0.1:8765/mcp",
    "::": "http://[::1]:8765/mcp",
    "192.168.1.5": "http://192.168.1.5:8765/mcp",
}


@pytest.mark.parametrize("host", URLS)
def test_the_url_is_one_that_a_client_on_this_machine_can_use(host: str) -> None:
    assert load(host, "true").url == URLS[host]


def test_a_flag_goes_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    config = written(tmp_path, 'bind_host = "127.0.0.3"', "port = 9000", 'hold_scope = "token"')
    assert load(config=config).bind_host == "127.0.0.3"
    assert load("127.0.0.2", config=config).bind_host == "127.0.0.2"
    found = load("127.0.0.2", config=config, bind_host="::1", port="0")
    assert (found.bind_host, found.port, found.hold_scope) == ("::1", 0, "token")
    assert found.sources["bind_host"] == "--bind"
    assert found.sources["hold_scope"] == config


def test_the_data_folder_is_where_the_identity_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load(data="elsewhere").identity_path == str(tmp_path / "elsewhere" / "host_identity.json")
    assert load(config=written(tmp_path, 'identity_path = "/var/lib/agent/me.json"')).folder == Path("/var/lib/agent")


def test_a_folder_of_the_first_version_is_still_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    environ = {"XDG_DATA_HOME": str(tmp_path / "share")}
    assert host_config.load({}, environ).folder == tmp_path / "share" / "device-host-agent"
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "host_identity.json").write_text("{}", "utf-8")
    assert host_config.load({}, environ).folder == tmp_path / "tasks"


def test_a_folder_that_is_named_needs_no_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert load(data=str(tmp_path / "data")).folder == tmp_path / "data"


MISTAKES = [
    ('bind_hots = "127.0.0.1"', "did you mean bind_host"),
    ("port = 70000", "a port is 0 to 65535"),
    ('port = "x"', "a port is 0 to 65535"),
    ("port = true", "a port is 0 to 65535"),
    ('hold_scope = "client"', "session or token is expected"),
    ('allow_non_loopback = "true"', "only true or false"),
    ('log_level = "loud"', "one of debug"),
    *(
        (f'adb_server = "127.0.0.1:{port}"', "a loopback address with a port")
        for port in ("9" * 5000, "x", "", "0", "65536")
    ),
]


@pytest.mark.parametrize(("line", "complaint"), MISTAKES)
def test_a_mistake_in_the_file_is_told_with_its_place(tmp_path: Path, line: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint) as refused:
        load(config=written(tmp_path, line))
    assert str(refused.value).startswith(f"{tmp_path}/mcpboard.toml: ")


def test_a_file_without_the_table_and_no_file_are_told_apart(tmp_path: Path) -> None:
    empty = tmp_path / "empty.toml"
    empty.write_text("[mcpboard]\n", "utf-8")
    assert load(config=str(empty)).port == 8765
    with pytest.raises(ConfigError, match="no such file; --config names it"):
        load(config=str(tmp_path / "missing.toml"))
