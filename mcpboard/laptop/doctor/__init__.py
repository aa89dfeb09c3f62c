"""Why does it not connect? The checks of the way from this laptop to a phone, in the order in which they fail."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing

from mcpboard.doctor import Check, CheckState, Finding, run
from mcpboard.laptop.doctor import proxies, routing, rules
from mcpboard.laptop.doctor.probes import ServerProbes

Checks = tuple[Check[ServerProbes], ...]

WAY: Checks = (
    Check("address", "Form of the address", (), lambda server: server.address, rules.address),
    Check("route", "Route and interface", ("address",), lambda server: server.route, routing.evaluate),
    Check("proxy", "Proxy variables", ("address",), lambda server: server.proxy, proxies.evaluate),
    Check("tcp", "TCP", ("address",), lambda server: server.tcp, rules.tcp),
    Check("http", "HTTP", ("tcp",), lambda server: server.health, rules.http),
    Check("mcpboard", "Is it mcpboard", ("http",), lambda server: server.identity, rules.identity),
)
BOARD: Checks = (
    Check("switch", "Enabled", ("mcpboard",), lambda server: server.identity, rules.enabled),
    Check("handshake", "Token and handshake", ("switch",), lambda server: server.identity, rules.handshake),
    Check("origin", "Browsers", ("switch",), lambda server: server.origins, rules.origins),
    Check("agent", "The Agent", ("handshake",), lambda server: server.call("phone_bridge_status"), rules.backend),
    Check("config_web", "Config Web", ("handshake",), lambda server: server.call("device_status"), rules.backend),
    Check("phone_bridge", "Phone bridge", ("agent",), lambda server: server.call("phone_bridge_status"), rules.linked),
    Check("picture", "Screenshot", ("agent",), lambda server: server.call("screenshot"), rules.screenshot),
    Check("clock", "Clock", ("http",), lambda server: server.health, rules.clock),
    Check("round_trip", "Round trip", ("handshake",), lambda server: server.pings, rules.round_trip),
)
HOST_AGENT: Checks = (
    Check("handshake", "Token and handshake", ("mcpboard",), lambda server: server.identity, rules.handshake),
    Check("origin", "Browsers", ("mcpboard",), lambda server: server.origins, rules.origins),
    Check("devices", "Devices", ("handshake",), lambda server: server.call("list_devices"), rules.devices),
    Check("clock", "Clock", ("http",), lambda server: server.health, rules.clock),
    Check("round_trip", "Round trip", ("handshake",), lambda server: server.pings, rules.round_trip),
)


def examine(url: str, token: str | None, variables: Mapping[str, str], system: str) -> Iterator[Finding]:
    """Yield the findings on the server at `url`, each as soon as it is there.

    What nobody recognizes is examined as a board. `variables` are the proxy variables of the
    environment by their names, `system` is as `sys.platform` has it. Nothing on a phone is
    changed; one screenshot of a board's phone is taken, and none of a host's devices.
    """
    with closing(ServerProbes(url, token, variables, system)) as server:
        done: dict[str, Finding] = {}
        yield from run(WAY, server, done)
        is_host_agent = done["mcpboard"].result.state is CheckState.OK and server.identity.is_host_agent
        yield from run(HOST_AGENT if is_host_agent else BOARD, server, done)
