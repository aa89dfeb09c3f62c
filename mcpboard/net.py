"""Hosts, ports and addresses as text: one way to write, read and judge them."""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address

HIGHEST_PORT = 65535  # 16 bits in TCP

Host = str | IPv4Address | IPv6Address
Authority = tuple[Host, int | None]

_LOOPBACK_V4 = IPv4Network("127.0.0.0/8")
_LOOPBACK_V6 = IPv6Address("::1")
# Listening on all addresses includes loopback.
_WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}

# ASCII only, so that no digit of another script passes; a bare colon is no port.
_AUTHORITY = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[0-9A-Za-z.-]+))(?::(?P<port>[0-9]{1,5}))?", re.ASCII)


def in_url(host: str) -> str:
    """Write a host as URLs do: an IPv6 literal in brackets, everything else as it is."""
    return f"[{host}]" if ":" in host else host


def host_port(host: str, port: int) -> str:
    """Write a host and a port as `127.0.0.1:8080` or `[::1]:8080`."""
    return f"{in_url(host)}:{port}"


def is_loopback(host: str) -> bool:
    """Tell if `host`, a name or an IP literal without brackets, is this machine itself: 127.0.0.0/8, ::1 or localhost.

    No name is looked up, so no other name passes, and no IPv4 address written as IPv6.
    """
    try:
        if ":" in host:
            return IPv6Address(host.partition("%")[0]) == _LOOPBACK_V6  # whatever the zone
        return IPv4Address(host) in _LOOPBACK_V4
    except AddressValueError:
        return host.lower() == "localhost"


def reachable_here(address: str) -> str:
    """Return the address at which this machine reaches a socket that listens on `address`."""
    return _WILDCARDS.get(address, address)


def parse_authority(text: str) -> Authority | None:
    """Return (`localhost` or an address, port or None); None for any other host and any other spelling.

    Numeric tricks (`127.1`, `0x7f000001`, leading zeros), zone ids, user info, a trailing dot and
    ports outside 1-65535 are all "other": browsers rewrite or never send them.
    """
    match = _AUTHORITY.fullmatch(text)
    if not match:
        return None
    port = int(match["port"]) if match["port"] else None
    if port is not None and not 1 <= port <= HIGHEST_PORT:
        return None
    try:
        if match["v6"]:
            return IPv6Address(match["v6"]), port
        return ("localhost" if match["name"].lower() == "localhost" else IPv4Address(match["name"])), port
    except AddressValueError:
        return None
