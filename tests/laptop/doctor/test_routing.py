"""The way to an address: what the kernel's table says, and what a doctor makes of it."""

from __future__ import annotations

import sys

import pytest

from mcpboard.doctor import CheckState
from mcpboard.laptop.doctor import routing
from mcpboard.laptop.doctor.routing import NetworkRoute


def table(*rows: tuple[str, str, str]) -> list[str]:
    """Lines of /proc/net/route for (interface, network, mask)."""
    header = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
    return [
        header,
        *(f"{name}\t{_hex(net)}\t00000000\t0001\t0\t0\t0\t{_hex(mask)}\t0\t0\t0\n" for name, net, mask in rows),
    ]


def _hex(address: str) -> str:
    packed = bytes(map(int, address.split(".")))
    return f"{int.from_bytes(packed, sys.byteorder):08X}"


DEFAULT = ("wlan0", "0.0.0.0", "0.0.0.0")
USB = ("usb0", "192.168.42.0", "255.255.255.0")

INTERFACES = [
    pytest.param(table(DEFAULT, USB), "192.168.42.1", "usb0", id="the narrowest"),
    pytest.param(table(USB, DEFAULT), "192.168.43.1", "wlan0", id="the default"),
    pytest.param(table(USB), "10.0.0.1", "", id="none"),
    pytest.param(table(DEFAULT), "fe80::1", "", id="IPv6, which stands elsewhere"),
    pytest.param(table(DEFAULT), "board.lan", "", id="a name"),
    pytest.param([], "192.168.42.1", "", id="no table, as on other systems"),
]


@pytest.mark.parametrize(("lines", "address", "name"), INTERFACES)
def test_the_interface_is_that_of_the_narrowest_route(lines: list[str], address: str, name: str) -> None:
    assert routing.interface(lines, address) == name


ROUTES = [
    pytest.param(NetworkRoute("192.168.42.1", "linux", "192.168.42.100", "usb0"), CheckState.OK, "over usb0", id="by cable"),
    pytest.param(NetworkRoute("10.1.1.5", "linux", "10.1.1.9", "wlan0"), CheckState.OK, "from 10.1.1.9", id="by Wi-Fi"),
    pytest.param(NetworkRoute("10.1.1.5", "win32", "10.1.1.9"), CheckState.OK, "from 10.1.1.9", id="no interface known"),
    pytest.param(NetworkRoute("127.0.0.1", "linux", "127.0.0.1", "eth0"), CheckState.OK, "this machine", id="this machine"),
    pytest.param(NetworkRoute("192.168.42.1", "linux", "10.1.1.9", "wlan0"), CheckState.FAILED, "is not up", id="no USB network"),
    pytest.param(NetworkRoute("192.168.42.1", "linux", "10.1.1.9", "wlan0", answers=True), CheckState.OK, "wlan0", id="routed on purpose"),
    pytest.param(NetworkRoute("192.168.42.1", "linux", error="Network is unreachable"), CheckState.FAILED, "no way", id="no way"),
    pytest.param(NetworkRoute("no.such.name", "linux", error="unknown"), CheckState.FAILED, "unknown", id="no such name"),
]  # fmt: skip


@pytest.mark.parametrize(("route", "state", "message"), ROUTES)
def test_a_route_is_evaluated(route: NetworkRoute, state: CheckState, message: str) -> None:
    result = routing.evaluate(route)
    assert result.state is state
    assert message in result.message
    assert bool(result.remedy) == (state is CheckState.FAILED)


@pytest.mark.parametrize(("system", "step"), [("linux", "ip -brief"), ("darwin", "networksetup"), ("win32", "Wi-Fi")])
def test_each_system_has_its_own_hint_for_the_usb_link(system: str, step: str) -> None:
    assert step in routing.hint("192.168.42.1", system)
    assert "ping" in routing.hint("10.1.1.5", system)


def test_loopback_is_reached_from_this_machine() -> None:
    route = routing.probe("127.0.0.1", 8080, "linux")
    assert (route.address, route.source, route.error, route.is_astray) == ("127.0.0.1", "127.0.0.1", "", False)


def test_a_name_that_is_none_is_an_error() -> None:
    assert routing.probe("a" * 64, 8080, "linux").error
