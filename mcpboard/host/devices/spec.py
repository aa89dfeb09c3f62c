"""One device as it is written down, and when two of them are one phone.

A phone that had two ids would have two owners at once. What is compared is only text: the same
phone behind two addresses that have nothing in common is not recognized.
"""

from __future__ import annotations

import ipaddress
import posixpath
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from urllib.parse import unquote, urlsplit

from mcpboard.host.drivers import board
from mcpboard.host.drivers.iphone import wda

DEFAULT_PORTS = {"http": 80, "https": 443}
# A phone that adb found by name service: its serial, six random characters, the service.
_BY_NAME_SERVICE = re.compile(r"adb-(?P<serial>.+?)-\w{6}( \(\d+\))?\._adb(-tls-connect)?\._tcp\.?")


@dataclass(frozen=True)
class DeviceSpec:
    """One device as it is written down: its kind and the way to reach it."""

    id: str
    kind: str
    url: str | None = None  # of a board or a WebDriverAgent
    serial: str | None = None  # of an Android device
    interface: str | None = None  # network interface that a board is behind, when several share an address

    def written(self) -> dict[str, str]:
        """Return the members that have a value."""
        members = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in members.items() if value is not None}


def same_phone(one: DeviceSpec, other: DeviceSpec) -> bool:
    """Return True where both lead to one phone, or may: one that names no serial or interface takes what is there."""
    if one.kind != other.kind:
        return False
    if one.kind == "board":
        same_server = _server(one.url or board.STANDARD_URL) == _server(other.url or board.STANDARD_URL)
        return same_server and (one.interface == other.interface or None in (one.interface, other.interface))
    if one.kind == "android":
        return None in (one.serial, other.serial) or _serial(one.serial or "") == _serial(other.serial or "")
    if one.kind == "iphone":
        udids = [(each.serial or "").replace("-", "").lower() for each in (one, other)]
        same_server = _server(one.url or wda.STANDARD_URL) == _server(other.url or wda.STANDARD_URL)
        return same_server or (udids[0] == udids[1] != "")
    return False  # simulated ones are a phone each


def ways(spec: DeviceSpec, serials: Mapping[str, str]) -> tuple[DeviceSpec, ...]:
    """Return the device as it is written down, and by the serial that its phone told by network, where that is known.

    `serials` is address -> serial.
    """
    serial = serials.get(spec.serial or "") if spec.kind == "android" else None
    return (spec,) if serial is None else (spec, replace(spec, serial=serial))


def _server(url: str) -> tuple[str, int | None, str]:
    """Return host, port and path of a URL, the same for every spelling; without a path `/mcp` is meant."""
    try:
        parts = urlsplit(url)
        port = parts.port or DEFAULT_PORTS.get(parts.scheme)
    except ValueError:
        return url, None, ""
    # As clients send it: `..` and `.` followed, one slash between two names.
    path = re.sub("/+", "/", posixpath.normpath(unquote(parts.path) or "/")).rstrip("/") or "/mcp"
    return _host(parts.hostname or ""), port, f"{path}?{parts.query}" if parts.query else path


def _host(name: str) -> str:
    """Return an address in its usual form, 127.0.0.1 for this machine; a name as it is, for none is looked up."""
    name = name.rstrip(".").lower().replace("%25", "%", 1)  # a zone is written behind either
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        try:
            # `127.1`, `0x7f000001`: the system connects by these.
            address = ipaddress.IPv4Address(socket.inet_aton(name))
        except (OSError, UnicodeError):
            return "127.0.0.1" if name == "localhost" else name
    address = getattr(address, "ipv4_mapped", None) or address
    # A connection to no address in particular is one to this machine.
    if address.is_unspecified or (address.version == 6 and address.is_loopback):
        return "127.0.0.1"
    return str(address)


def _serial(serial: str) -> str:
    """Return the serial of an Android phone as adb has it over USB, where its other name tells that."""
    if found := _BY_NAME_SERVICE.fullmatch(serial):
        return found["serial"]
    if found := re.fullmatch(r"emulator-(\d{1,5})", serial):  # its adb port is the next one
        return f"127.0.0.1:{int(found[1]) + 1}"
    host, colon, port = serial.rpartition(":")
    return f"{_host(host.strip('[]'))}:{port}" if colon and port.isdigit() else serial
