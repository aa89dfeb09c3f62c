"""Why does it not connect? The checks of the way from this laptop to a phone, in the order in which they fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any

from mcpboard.checks import Check, Finding, Verdict, run
from mcpboard.laptop import judges, proxies, routes
from mcpboard.laptop.visit import Visit


def _row(
    name: str, title: str, needs: tuple[str, ...], question: str, judge: Callable[[Any], Verdict]
) -> Check[Visit]:
    """A check that puts one question of a Visit before a judge."""
    return Check(name, title, needs, lambda visit: getattr(visit, question), judge)


CHECKS = (
    _row("address", "Form of the address", (), "address", judges.address),
    _row("route", "Route and interface", ("address",), "route", routes.judge),
    _row("proxy", "Proxy variables", ("address",), "caught", proxies.judge),
    _row("tcp", "TCP", ("address",), "knock", judges.tcp),
    _row("http", "HTTP", ("tcp",), "health", judges.http),
    _row("mcpboard", "Is it mcpboard", ("http",), "identity", judges.identity),
    _row("switch", "Switched on", ("mcpboard",), "identity", judges.switch),
    _row("handshake", "Token and handshake", ("switch",), "handshake", judges.handshake),
    _row("origin", "Browsers", ("switch",), "origins", judges.origins),
    _row("agent", "The Agent", ("handshake",), "phone_bridge", judges.backend),
    _row("config_web", "Config Web", ("handshake",), "device", judges.backend),
    _row("phone_bridge", "Phone bridge", ("agent",), "phone_bridge", judges.phone_bridge),
    _row("picture", "Picture", ("agent",), "screenshot", judges.picture),
    _row("clock", "Clock", ("http",), "health", judges.clock),
    _row("round_trip", "Round trip", ("handshake",), "pings", judges.round_trip),
)


def examine(url: str, token: str | None, variables: Mapping[str, str], system: str) -> Iterator[Finding]:
    """The findings on the server at `url`, each as soon as it is there.

    `variables` are the proxy variables of the environment by their names, `system` is as
    `sys.platform` has it. Nothing on the phone is changed; one picture of it is taken.
    """
    with closing(Visit(url, token, variables, system)) as visit:
        yield from run(CHECKS, visit)
