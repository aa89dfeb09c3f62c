"""The rows of the settings table, value by value."""

from __future__ import annotations

import os

import pytest

from mcpboard.config import schema
from mcpboard.config.board import SETTINGS
from mcpboard.config.schema import Address
from mcpboard.errors import ConfigError


def row(key: str) -> schema.Setting:
    return next(row for row in SETTINGS if row.key == key)


@pytest.mark.parametrize("key", [row.key for row in SETTINGS if row.read is schema.boolean])
@pytest.mark.parametrize("value", ["false", "true", "0", "yes", "", 0, 1, 0.0, [], [False], {}])
def test_only_real_booleans_count(key: str, value: object) -> None:
    with pytest.raises(ConfigError, match="only true or false, without quotes"):
        row(key).read(value)
    assert row(key).read(False) is False


def test_five_switches_are_booleans() -> None:
    booleans = {row.key for row in SETTINGS if row.read is schema.boolean}
    assert booleans == {"strict_meta", "freebind", "mcp_enabled", "mcp_shell_enabled"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("127.0.0.1:8090", ["127.0.0.1:8090"], id="IPv4"),
        pytest.param("[::1]:8090", ["[::1]:8090"], id="IPv6"),
        pytest.param("[0:0::1]:8090", ["[::1]:8090"], id="IPv6 at length"),
        pytest.param("[fe80::1%usb0]:1", ["[fe80::1%usb0]:1"], id="link-local with its zone"),
        pytest.param("*:8080", ["*:8080"], id="every address"),
        pytest.param("localhost:0", ["localhost:0"], id="a name and any port"),
        pytest.param(["192.168.42.1:8080", "[::]:8080"], ["192.168.42.1:8080", "[::]:8080"], id="a list, in order"),
    ],
)
def test_an_address_is_read_and_written_the_same_way(value: object, expected: list[str]) -> None:
    assert [str(address) for address in schema.listen(value)] == expected


def test_an_ipv6_host_has_no_brackets() -> None:
    assert schema.listen("[::1]:80") == (Address("::1", 80),)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("8080", id="a bare port"),
        pytest.param(8080, id="a number"),
        pytest.param(":8080", id="no host"),
        pytest.param("127.0.0.1", id="no port"),
        pytest.param("127.0.0.1:", id="an empty port"),
        pytest.param("127.0.0.1:65536", id="a port too high"),
        pytest.param("127.0.0.1:-1", id="a port below zero"),
        pytest.param("127.0.0.1:８０", id="digits of another script"),
        pytest.param("::1:8080", id="IPv6 without brackets"),
        pytest.param("[127.0.0.1]:80", id="IPv4 in brackets"),
        pytest.param("[]:80", id="empty brackets"),
        pytest.param("127.0.0:80", id="half an IPv4 literal"),
        pytest.param("999.0.0.1:80", id="no IPv4 literal"),
        pytest.param(" 127.0.0.1:80", id="a blank in front"),
        pytest.param("127.0.0.1:80\n", id="a line end behind"),
        pytest.param("http://127.0.0.1:80", id="a URL"),
        pytest.param("", id="empty"),
        pytest.param([], id="an empty list"),
        pytest.param(["127.0.0.1:80", 80], id="a number in the list"),
        pytest.param(["127.0.0.1:80", "127.0.0.1:80"], id="one address twice"),
        pytest.param(None, id="nothing"),
    ],
)
def test_what_is_no_address_is_refused(value: object) -> None:
    with pytest.raises(ConfigError, match=r"address"):
        schema.listen(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("http://127.0.0.1", "http://127.0.0.1", id="the plain one"),
        pytest.param("http://127.0.0.1/", "http://127.0.0.1", id="with a slash"),
        pytest.param("http://127.9.8.7:8081", "http://127.9.8.7:8081", id="anywhere in 127/8"),
        pytest.param("HTTP://LocalHost:80/", "http://localhost:80", id="upper case"),
        pytest.param("http://[::1]:8081/", "http://[::1]:8081", id="IPv6"),
    ],
)
def test_a_base_url_on_loopback_is_normalised(value: str, expected: str) -> None:
    assert schema.base_url(value) == expected


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("https://127.0.0.1", id="https"),
        pytest.param("http://192.168.42.1", id="another machine"),
        pytest.param("http://0.0.0.0", id="the wildcard"),
        pytest.param("http://[::]", id="the IPv6 wildcard"),
        pytest.param("http://[::ffff:127.0.0.1]", id="IPv4 inside IPv6"),
        pytest.param("http://example.com", id="a name"),
        pytest.param("http://localhost.example.com", id="a name that begins well"),
        pytest.param("http://127.0.0.1.example.com", id="a name that begins like an address"),
        pytest.param("http://localhost.", id="a trailing dot"),
        pytest.param("http://127.1", id="a short form"),
        pytest.param("http://2130706433", id="a number"),
        pytest.param("http://0177.0.0.1", id="octal"),
        pytest.param("http://127.0.0.1/api", id="a path"),
        pytest.param("http://127.0.0.1//", id="two slashes"),
        pytest.param("http://127.0.0.1?x", id="a query"),
        pytest.param("http://127.0.0.1#x", id="a fragment"),
        pytest.param("http://user@127.0.0.1", id="a user"),
        pytest.param("http://127.0.0.1@example.com", id="a user that looks like a host"),
        pytest.param("http://127.0.0.1:", id="an empty port"),
        pytest.param("http://127.0.0.1:99999", id="a port too high"),
        pytest.param("http://127.0.0.1:0", id="port zero"),
        pytest.param("http://127.0.0.1\\@example.com", id="a backslash"),
        pytest.param("http://127.0.0.1\n", id="a line end"),
        pytest.param("http://127.\t0.0.1", id="a tab inside"),
        pytest.param("http://[127.0.0.1]:8081", id="IPv4 in brackets"),
        pytest.param("http://", id="no host"),
        pytest.param("127.0.0.1:8081", id="no scheme"),
        pytest.param("", id="empty"),
        pytest.param(8081, id="a number instead of text"),
    ],
)
def test_a_base_url_that_could_lead_elsewhere_is_refused(value: object) -> None:
    with pytest.raises(ConfigError, match=r"only http:// to this machine itself|a port is 1 to 65535"):
        schema.base_url(value)


@pytest.mark.parametrize("value", [0, -1, True, 1.5, "32", "32 MiB", None])
def test_a_size_is_a_whole_number_above_zero(value: object) -> None:
    with pytest.raises(ConfigError, match="whole number of bytes"):
        schema.size(value)
    assert schema.size(1) == 1


@pytest.mark.parametrize("value", ["", "a\0b", 3, True, ["x"]])
def test_a_path_is_text_that_a_file_can_have(value: object) -> None:
    with pytest.raises(ConfigError, match="path of a file"):
        schema.file_path(value)


def test_a_relative_path_counts_from_the_working_directory() -> None:
    assert schema.file_path("x/../y") == f"{os.getcwd()}/y"


@pytest.mark.parametrize(
    ("value", "expected"), [("stderr", "stderr"), ("Syslog", "syslog"), ("/var/log/mcp", "/var/log/mcp")]
)
def test_the_log_goes_to_a_known_place_or_a_file(value: str, expected: str) -> None:
    assert schema.log(value) == expected


def test_levels_are_five_words_in_any_case() -> None:
    assert schema.log_level("WARNING") == "warning"
    with pytest.raises(ConfigError, match="one of debug, info, warning, error, critical"):
        schema.log_level("loud")


def test_every_row_says_what_it_is_for() -> None:
    for each in SETTINGS:
        assert each.unit and each.meaning
        assert each.default is None or each.read(each.default) is not None


def test_a_refused_value_is_shown_without_its_password(tmp_path: os.PathLike[str]) -> None:
    from mcpboard import config

    file = os.path.join(tmp_path, "mcpboard.toml")
    with open(file, "w") as written:
        written.write('[mcpboard]\nagent_base_url = "http://me:secret@127.0.0.1"\n')
    with pytest.raises(ConfigError) as caught:
        config.load({"config": file}, {})
    assert "secret" not in str(caught.value)
    assert "[mcpboard] agent_base_url = ...@127.0.0.1" in str(caught.value)
