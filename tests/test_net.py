"""Hosts and ports as text."""

from __future__ import annotations

import pytest

from mcpboard.net import host_port, in_url, is_loopback, reachable_here

LOOPBACK = ["127.0.0.1", "127.1.2.3", "::1", "0:0:0:0:0:0:0:1", "::1%lo", "localhost", "LocalHost"]
ELSEWHERE = [
    *("192.168.42.1", "0.0.0.0", "::", "::ffff:127.0.0.1", "127.1", "0x7f000001", "0127.0.0.1", "localhost."),
    *("localhost.example", "board.local", "", "fe80::1", "[::1]", "127.0.0.1:80"),
]  # fmt: skip


@pytest.mark.parametrize("host", LOOPBACK)
def test_this_machine_itself_is_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ELSEWHERE)
def test_nothing_else_is_loopback(host: str) -> None:
    """Backends trust whoever reaches them, so a spelling in doubt is not taken for this machine."""
    assert not is_loopback(host)


@pytest.mark.parametrize(
    ("host", "written"),
    [("127.0.0.1", "127.0.0.1:80"), ("::1", "[::1]:80"), ("*", "*:80"), ("fe80::1%usb0", "[fe80::1%usb0]:80")],
)
def test_a_port_stands_behind_brackets_or_a_name(host: str, written: str) -> None:
    assert host_port(host, 80) == written
    assert written.startswith(in_url(host))


@pytest.mark.parametrize(("address", "reached"), [("0.0.0.0", "127.0.0.1"), ("::", "::1"), ("10.0.0.1", "10.0.0.1")])
def test_a_wildcard_is_reached_on_loopback(address: str, reached: str) -> None:
    assert reachable_here(address) == reached
