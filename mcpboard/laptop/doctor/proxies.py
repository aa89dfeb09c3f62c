"""Find the proxy variables that catch a server, read as the libraries that clients are made of read them.

mcpboard itself follows none of them; most clients do, and it is the most frequent reason why one
does not connect. NO_PROXY has no standard: ranges, in particular, mean nothing to many clients.
"""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from mcpboard.doctor import CheckResult, failed, ok

# Scheme of the server -> the variables that name its proxy, in lower case.
CATCHERS = {"http": ("http_proxy", "all_proxy"), "https": ("https_proxy", "all_proxy")}
EXCEPTION = "no_proxy"


@dataclass(frozen=True)
class ProxyFacts:
    """The environment as to one host: variables that catch it, and those that except it."""

    host: str
    system: str
    catching: tuple[str, ...] = ()
    proxy: str = ""  # host and port of the first, never what stands before an @
    excepting: tuple[str, ...] = ()  # NO_PROXY variables that name the host itself, or everything
    ranged: bool = False  # a NO_PROXY variable has a range with the host in it


def probe(variables: Mapping[str, str], scheme: str, host: str, system: str) -> ProxyFacts:
    """Return what `variables`, proxy variables by the names they have, mean for `host`."""
    catching = [name for name, value in variables.items() if value and name.lower() in CATCHERS[scheme]]
    entries = {
        name: value.replace(",", " ").lower().split() for name, value in variables.items() if name.lower() == EXCEPTION
    }
    proxy = _without_password(variables[catching[0]]) if catching else ""
    excepting = [name for name, listed in entries.items() if any(_names(entry, host) for entry in listed)]
    ranged = any(_spans(entry, host) for listed in entries.values() for entry in listed)
    return ProxyFacts(host, system, tuple(catching), proxy, tuple(excepting), ranged)


def evaluate(facts: ProxyFacts) -> CheckResult:
    """Fail when a client would go through the proxy, or may because it does not understand a range."""
    if not facts.catching:
        return ok("no proxy variable is set")
    host, catching = facts.host, " and ".join(facts.catching)
    if facts.excepting:
        return ok(f"{catching} set, and {' and '.join(facts.excepting)} excepts {host}")
    remedy = f'export NO_PROXY="{host},$NO_PROXY" no_proxy="{host},$no_proxy" (where the client is started)'
    if facts.system == "win32":
        remedy = f'setx NO_PROXY "{host}" (then start the client again)'
    if facts.ranged:
        return failed(f"{catching} set, and NO_PROXY excepts {host} by a range, which many clients ignore", remedy)
    send = "sends" if len(facts.catching) == 1 else "send"
    return failed(f"{catching} {send} clients to the proxy {facts.proxy} (this program ignores it)", remedy)


def _without_password(proxy: str) -> str:
    """Return host and port of a proxy, with neither name nor password."""
    with contextlib.suppress(ValueError):
        parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        if parts.hostname:
            return f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname
    return "that it names"


def _names(entry: str, host: str) -> bool:
    """Return True for `*`, the host itself, with a port or without, and a domain that the host is in."""
    bare = entry.removeprefix("[").partition("]")[0] if entry.startswith("[") else entry
    if bare.count(":") == 1:
        bare = bare.partition(":")[0]
    domain = bare.removeprefix("*").removeprefix(".")
    is_inside = bool(domain) and _ip(host) is None and f".{host}".endswith(f".{domain}")
    return entry == "*" or bare == host or is_inside


def _spans(entry: str, host: str) -> bool:
    """Return True for a range with the host in it."""
    address = _ip(host)
    try:
        return "/" in entry and address is not None and address in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return False


def _ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
