"""Why does it not connect? The checks of the way from this laptop to a phone, in the order in which they fail."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing

from mcpboard.checks import Check, Finding, run
from mcpboard.laptop import judges, proxies, routes
from mcpboard.laptop.visit import Visit

CHECKS: tuple[Check[Visit], ...] = (
    Check("address", "Form of the address", (), lambda visit: visit.address, judges.address),
    Check("route", "Route and interface", ("address",), lambda visit: visit.route, routes.judge),
    Check("proxy", "Proxy variables", ("address",), lambda visit: visit.caught, proxies.judge),
    Check("tcp", "TCP", ("address",), lambda visit: visit.knock, judges.tcp),
    Check("http", "HTTP", ("tcp",), lambda visit: visit.health, judges.http),
    Check("mcpboard", "Is it mcpboard", ("http",), lambda visit: visit.identity, judges.identity),
    Check("switch", "Switched on", ("mcpboard",), lambda visit: visit.identity, judges.switch),
    Check("handshake", "Token and handshake", ("switch",), lambda visit: visit.handshake, judges.handshake),
    Check("origin", "Browsers", ("switch",), lambda visit: visit.origins, judges.origins),
    Check("agent", "The Agent", ("handshake",), lambda visit: visit.phone_bridge, judges.backend),
    Check("config_web", "Config Web", ("handshake",), lambda visit: visit.device, judges.backend),
    Check("phone_bridge", "Phone bridge", ("agent",), lambda visit: visit.phone_bridge, judges.phone_bridge),
    Check("picture", "Picture", ("agent",), lambda visit: visit.screenshot, judges.picture),
    Check("clock", "Clock", ("http",), lambda visit: visit.health, judges.clock),
    Check("round_trip", "Round trip", ("handshake",), lambda visit: visit.pings, judges.round_trip),
)


def examine(url: str, token: str | None, variables: Mapping[str, str], system: str) -> Iterator[Finding]:
    """The findings on the server at `url`, each as soon as it is there.

    `variables` are the proxy variables of the environment by their names, `system` is as
    `sys.platform` has it. Nothing on the phone is changed; one picture of it is taken.
    """
    with closing(Visit(url, token, variables, system)) as visit:
        yield from run(CHECKS, visit)
