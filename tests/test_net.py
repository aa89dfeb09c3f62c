"""Hosts and ports as text."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest

from mcpboard.net import host_port, is_loopback, parse_authority, reachable_here

LOOPBACK = ["127.0.0.1", "127.1.2.3", "::1", "0:0:0:0:0:0:0:1", "::1%lo", "localhost", "LocalHost"]
# Backends trust whoever reaches them, so a spelling in doubt is not taken for this machine.
ELSEWHERE = [
    *("192.168.42.1", "0.0.0.0", "::", "::ffff:127.0.0.1", "127.1", "0x7f000001", "0127.0.0.1", "localhost."),
    *("localhost.example", "board.local", "", "fe80::1", "[::1]", "127.0.0.1:80"),
]  # fmt: skip


@pytest.mark.parametrize("host", LOOPBACK + ELSEWHERE)
def test_this_machine_itself_and_nothing_else_is_loopback(host: str) -> None:
    assert is_loopback(host) is (host in LOOPBACK)


# What no authority is: tests/protocol/test_access.py.
READABLE = {
    "127.0.0.1": (IPv4Address("127.0.0.1"), None),
    "0.0.0.0:8080": (IPv4Address("0.0.0.0"), 8080),
    "127.0.0.1:1": (IPv4Address("127.0.0.1"), 1),
    "127.0.0.1:65535": (IPv4Address("127.0.0.1"), 65535),
    "LocalHost:80": ("localhost", 80),
    "[::1]": (IPv6Address("::1"), None),
    "[0:0:0:0:0:0:0:1]:8080": (IPv6Address("::1"), 8080),
    "[FE80::ABcd]": (IPv6Address("fe80::abcd"), None),
    "[::ffff:192.168.42.1]:8080": (IPv6Address("::ffff:c0a8:2a01"), 8080),
}


@pytest.mark.parametrize(("text", "meaning"), READABLE.items(), ids=READABLE)
def test_an_address_or_localhost_is_read(text: str, meaning: object) -> None:
    assert parse_authority(text) == meaning


def test_hosts_are_written_for_urls_and_wildcards_are_reached_on_loopback() -> None:
    assert [host_port(host, 80) for host in ("127.0.0.1", "*", "fe80::1%usb0")] == ["127.0.0.1:80", "*:80", "[fe80::1%usb0]:80"]  # fmt: skip
    assert [reachable_here(each) for each in ("0.0.0.0", "::", "10.0.0.1")] == ["127.0.0.1", "::1", "10.0.0.1"]
