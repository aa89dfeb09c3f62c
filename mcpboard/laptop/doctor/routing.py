"""Find the way that packets to an address take, without sending one; and what to do when a USB link is not up."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from mcpboard.doctor import CheckResult, failed, ok

USB_NET = ipaddress.ip_network("192.168.42.0/24")  # the board has .1 there and gives out .100 to .200
TABLE = "/proc/net/route"  # Linux only; IPv4 only

# System -> the step that shows, and mostly fixes, why the board's USB network is not there.
USB_HINTS = {
    "darwin": "networksetup -listallhardwareports (the board's port must be there; then: sudo ipconfig set enX DHCP)",
    "win32": "use the board's Wi-Fi address: Windows has no driver for USB Ethernet of this kind (CDC ECM)",
    "": "ip -brief address (the board's enx... or usb... must be there; then: sudo dhclient INTERFACE)",
}
OTHER_HINT = "ping -c 3 {address} (the board must be on, and in the same network as this machine)"


@dataclass(frozen=True)
class NetworkRoute:
    """The way to `address`, an IP literal: our own address and interface on it, or the reason why there is none."""

    address: str
    system: str
    source: str = ""
    interface: str = ""
    error: str = ""
    answers: bool = False  # a board's mcpboard answered there, by whatever way

    @property
    def is_astray(self) -> bool:
        """True when the board's USB address would be looked for outside its own network."""
        return is_usb(self.address) and bool(self.source) and not is_usb(self.source)


def probe(host: str, port: int, system: str) -> NetworkRoute:
    """Return the route that this system would take now."""
    address = host
    try:
        family, _, _, _, target = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        address = str(target[0])
        with socket.socket(family, socket.SOCK_DGRAM) as sock:
            sock.connect(target)  # of a datagram socket: chooses the route and sends nothing
            source = str(sock.getsockname()[0])
    except (OSError, UnicodeError) as error:
        return NetworkRoute(address, system, error=str(getattr(error, "strerror", None) or error))
    table: list[str] = []
    with contextlib.suppress(OSError), open(TABLE, encoding="ascii") as file:
        table = file.readlines()
    return NetworkRoute(address, system, source, interface(table, address))


def evaluate(route: NetworkRoute) -> CheckResult:
    """Fail when there is no way, or when the board's USB address would be looked for elsewhere and is not there."""
    if route.error:
        return failed(f"there is no way to {route.address}: {route.error}", hint(route.address, route.system))
    if route.source == route.address:
        return ok("this machine itself")
    over = f"over {route.interface}, " if route.interface else ""
    if route.is_astray and not route.answers:
        astray = f"{route.address} would be looked for {over}from {route.source}"
        return failed(f"{astray}: the board's USB network is not up", hint(route.address, route.system))
    return ok(f"{over}from {route.source}")


def hint(address: str, system: str) -> str:
    """Return the step to take when `address` does not answer, on that system."""
    if is_usb(address):
        return USB_HINTS.get(system, USB_HINTS[""])
    return OTHER_HINT.format(address=address)


def interface(table: Sequence[str], address: str) -> str:
    """Return the interface of the narrowest route to an IPv4 address in the lines of `/proc/net/route`; "" for none."""
    try:
        target = int(ipaddress.IPv4Address(address))
    except ValueError:
        return ""
    rows = [(_host_order(row[7]), _host_order(row[1]), row[0]) for row in map(str.split, table[1:])]
    return max(((mask, name) for mask, network, name in rows if target & mask == network), default=(0, ""))[1]


def _host_order(text: str) -> int:
    """Return an address that the kernel printed: its bytes as its own machine's number."""
    return int.from_bytes(struct.pack("=I", int(text, 16)), "big")


def is_usb(address: str) -> bool:
    """Return True for an address in the network that a board makes on its cable."""
    try:
        return ipaddress.ip_address(address) in USB_NET
    except ValueError:
        return False
