"""Why does it not connect? The checks of the way from this laptop to a phone, in the order in which they fail."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing

from mcpboard.doctor import Check, Finding, run
from mcpboard.laptop.doctor import proxies, routing, rules
from mcpboard.laptop.doctor.probes import ServerProbes

CHECKS: tuple[Check[ServerProbes], ...] = (
    Check("address", "Form of the address", (), lambda visit: visit.address, rules.address),
    Check("route", "Route and interface", ("address",), lambda visit: visit.route, routing.judge),
    Check("proxy", "Proxy variables", ("address",), lambda visit: visit.caught, proxies.judge),
    Check("tcp", "TCP", ("address",), lambda visit: visit.knock, rules.tcp),
    Check("http", "HTTP", ("tcp",), lambda visit: visit.health, rules.http),
    Check("mcpboard", "Is it mcpboard", ("http",), lambda visit: visit.identity, rules.identity),
    Check("switch", "Switched on", ("mcpboard",), lambda visit: visit.identity, rules.switch),
    Check("handshake", "Token and handshake", ("switch",), lambda visit: visit.handshake, rules.handshake),
    Check("origin", "Browsers", ("switch",), lambda visit: visit.origins, rules.origins),
    Check("agent", "The Agent", ("handshake",), lambda visit: visit.phone_bridge, rules.backend),
    Check("config_web", "Config Web", ("handshake",), lambda visit: visit.device, rules.backend),
    Check("phone_bridge", "Phone bridge", ("agent",), lambda visit: visit.phone_bridge, rules.phone_bridge),
    Check("picture", "Picture", ("agent",), lambda visit: visit.screenshot, rules.picture),
    Check("clock", "Clock", ("http",), lambda visit: visit.health, rules.clock),
    Check("round_trip", "Round trip", ("handshake",), lambda visit: visit.pings, rules.round_trip),
)


def examine(url: str, token: str | None, variables: Mapping[str, str], system: str) -> Iterator[Finding]:
    """The findings on the server at `url`, each as soon as it is there.

    `variables` are the proxy variables of the environment by their names, `system` is as
    `sys.platform` has it. Nothing on the phone is changed; one picture of it is taken.
    """
    with closing(ServerProbes(url, token, variables, system)) as visit:
        yield from run(CHECKS, visit)
