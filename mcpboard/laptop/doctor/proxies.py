"""Which proxy variables catch a server, as the libraries that clients are made of read them.

mcpboard itself follows none of them; most clients do, and it is the most frequent reason why one
does not connect (contracts: clients, 6.1 and NO_PROXY).
"""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from mcpboard.doctor import CheckResult, failed, ok

# Scheme of the server -> the variables that name its proxy, in lower case.
CATCHERS = {"http": ("http_proxy", "all_proxy"), "https": ("https_proxy", "all_proxy")}
EXCEPTION = "no_proxy"


@dataclass(frozen=True)
class ProxyFacts:
    """What the environment says of one host: variables that catch it, and those that except it."""

    host: str
    system: str
    catching: tuple[str, ...] = ()
    proxy: str = ""  # host and port of the first, never what stands before an @
    excepting: tuple[str, ...] = ()  # NO_PROXY variables that name the host itself, or everything
    ranged: bool = False  # a NO_PROXY variable has a range with the host in it


def caught(variables: Mapping[str, str], scheme: str, host: str, system: str) -> ProxyFacts:
    """What `variables`, proxy variables by the names they have, mean for `host`."""
    catching = [name for name, value in variables.items() if value and name.lower() in CATCHERS[scheme]]
    exceptions = {name: value for name, value in variables.items() if name.lower() == EXCEPTION}
    return ProxyFacts(
        host,
        system,
        tuple(catching),
        _shown(variables[catching[0]]) if catching else "",
        tuple(name for name, value in exceptions.items() if any(_names(entry, host) for entry in _entries(value))),
        any(_spans(entry, host) for value in exceptions.values() for entry in _entries(value)),
    )


def judge(found: ProxyFacts) -> CheckResult:
    """Failed when a client would go through the proxy, or may because it does not understand a range."""
    if not found.catching:
        return ok("no proxy variable is set")
    if found.excepting:
        return ok(f"{_listed(found.catching)} set, and {_listed(found.excepting)} excepts {found.host}")
    if found.ranged:
        return failed(
            f"{_listed(found.catching)} set, and NO_PROXY excepts {found.host} by a range, which many clients ignore",
            _cure(found),
        )
    send = "sends" if len(found.catching) == 1 else "send"
    return failed(
        f"{_listed(found.catching)} {send} clients to the proxy {found.proxy} (this program ignores it)", _cure(found)
    )


def _cure(found: ProxyFacts) -> str:
    if found.system == "win32":
        return f'setx NO_PROXY "{found.host}" (then start the client again)'
    return f'export NO_PROXY="{found.host},$NO_PROXY" no_proxy="{found.host},$no_proxy" (where the client is started)'


def _listed(names: Iterable[str]) -> str:
    return " and ".join(names)


def _shown(proxy: str) -> str:
    """Host and port of a proxy, with neither name nor password."""
    with contextlib.suppress(ValueError):
        parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        if parts.hostname:
            return f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname
    return "that it names"


# --- NO_PROXY --------------------------------------------------------------------------------


def _entries(value: str) -> list[str]:
    return value.replace(",", " ").lower().split()


def _names(entry: str, host: str) -> bool:
    """True for `*`, the host itself, with a port or without, and a domain that the host is in."""
    bare = entry.removeprefix("[").partition("]")[0] if entry.startswith("[") else entry
    if bare.count(":") == 1:
        bare = bare.partition(":")[0]
    domain = bare.removeprefix("*").removeprefix(".")
    return entry == "*" or bare == host or bool(domain) and not _is_ip(host) and f".{host}".endswith(f".{domain}")


def _spans(entry: str, host: str) -> bool:
    try:
        return "/" in entry and ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return False


def _is_ip(host: str) -> bool:
    try:
        return bool(ipaddress.ip_address(host).packed)
    except ValueError:
        return False
