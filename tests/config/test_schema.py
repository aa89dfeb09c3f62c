"""The rows of the settings table, value by value."""

from __future__ import annotations

import os
from typing import Any

import pytest

from mcpboard.config import schema
from mcpboard.config.board import SETTINGS
from mcpboard.config.schema import Address
from mcpboard.errors import ConfigError


@pytest.mark.parametrize("row", SETTINGS, ids=lambda row: row.key)
def test_every_row_says_what_it_is_for(row: schema.Setting) -> None:
    assert row.unit and row.meaning
    assert row.default is None or row.read(row.default) is not None


LEVELS = "one of debug, info, warning, error, critical"
BASE_URL = "only http:// to this machine itself"

# Converter -> what its refusal says, and values that it refuses.
REFUSED: dict[Any, tuple[str, list[Any]]] = {
    schema.boolean: ("only true or false, without quotes", ["false", "true", "0", "yes", "", 0, 1, 0.0, [], [False], {}]),
    schema.size: ("whole number of bytes", [0, -1, True, 1.5, "32", "32 MiB", None]),
    schema.file_path: ("path of a file", ["", "a\0b", 3, True, ["x"]]),
    schema.log_level: (LEVELS, ["loud", 3]),
    schema.listen: ("address", [
        *("8080", 8080, ":8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:８０"),
        *("::1:8080", "[127.0.0.1]:80", "[]:80", "127.0.0:80", "999.0.0.1:80", " 127.0.0.1:80", "127.0.0.1:80\n"),
        *("http://127.0.0.1:80", "", None, [], ["127.0.0.1:80", 80], ["127.0.0.1:80", "127.0.0.1:80"]),
    ]),
    # What could lead to another machine, or further than to its root.
    schema.base_url: (BASE_URL, [
        *("https://127.0.0.1", "http://192.168.42.1", "http://0.0.0.0", "http://[::]", "http://[::ffff:127.0.0.1]"),
        *("http://example.com", "http://localhost.example.com", "http://127.0.0.1.example.com", "http://localhost."),
        *("http://127.1", "http://2130706433", "http://0177.0.0.1", "http://[127.0.0.1]:8081", "http://127.\t0.0.1"),
        *("http://127.0.0.1/api", "http://127.0.0.1//", "http://127.0.0.1?x", "http://127.0.0.1#x", "http://127.0.0.1\n"),
        *("http://user@127.0.0.1", "http://127.0.0.1@example.com", "http://127.0.0.1\\@example.com"),
        *("http://127.0.0.1:", "http://127.0.0.1:99999", "http://127.0.0.1:0", "http://", "127.0.0.1:8081", "", 8081),
    ]),
}  # fmt: skip


@pytest.mark.parametrize(
    ("read", "value"), [(read, value) for read, (_, values) in REFUSED.items() for value in values]
)
def test_a_value_that_is_in_doubt_is_refused(read: Any, value: object) -> None:
    with pytest.raises(ConfigError, match=REFUSED[read][0]):
        read(value)


@pytest.mark.parametrize(
    ("read", "value", "expected"),
    [
        (schema.size, 1, 1),
        (schema.file_path, "x/../y", f"{os.getcwd()}/y"),
        *((schema.log, value, read) for value, read in (("Syslog", "syslog"), ("/var/log/Mcp", "/var/log/Mcp"))),
        (schema.log_level, "WARNING", "warning"),
        (schema.base_url, "http://127.0.0.1/", "http://127.0.0.1"),
        (schema.base_url, "http://127.9.8.7:8081", "http://127.9.8.7:8081"),
        (schema.base_url, "HTTP://LocalHost:80/", "http://localhost:80"),
        (schema.base_url, "http://[::1]:8081/", "http://[::1]:8081"),
        *((schema.listen, f"{written}:80", (Address(host, 80),)) for written, host in (("*", "*"), ("localhost", "localhost"), ("[0:0::1]", "::1"), ("[fe80::1%usb0]", "fe80::1%usb0"))),
        (schema.listen, ["192.168.42.1:8080", "[::]:0"], (Address("192.168.42.1", 8080), Address("::", 0))),
    ],
)  # fmt: skip
def test_a_value_is_read(read: Any, value: object, expected: object) -> None:
    assert read(value) == expected
    if read is schema.listen:  # and it can be written as it was read
        assert read([str(address) for address in read(value)]) == expected
