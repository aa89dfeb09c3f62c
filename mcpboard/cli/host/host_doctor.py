"""What `device-host-agent doctor` looks at: files, port, devices; it changes nothing and holds nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mcpboard.client import Client
from mcpboard.errors import ClientError, ConfigError, PeerUnreachable
from mcpboard.host.access import tokens
from mcpboard.host.cloud import enrollment
from mcpboard.host.config import HostSettings
from mcpboard.host.devices import registry
from mcpboard.host.drivers import base, factory

ASK_SECONDS = 3.0  # for the agent on this machine


class HostFinding(NamedTuple):
    """One check: what was looked at, whether it is well, and what to know or do."""

    what: str
    well: bool
    words: str


def doctor(settings: HostSettings) -> int:
    """Print every finding; 0 when all is well, 1 otherwise."""
    findings = list(_findings(settings))
    for finding in findings:
        print(f"{'ok' if finding.well else 'NO':2}  {finding.what}: {finding.words}")
    return 0 if all(finding.well for finding in findings) else 1


def _findings(settings: HostSettings) -> Iterator[HostFinding]:
    yield HostFinding("settings", True, f"serves {settings.url}, files in {settings.folder}")
    found, secret = _token(settings)
    yield found
    if secret is not None:
        yield _agent(settings.url, secret)
    yield from _devices(settings)
    yield _cloud(settings)


def _token(settings: HostSettings) -> tuple[HostFinding, str | None]:
    try:
        secret = tokens.read_main_token(settings.folder)
        count = len(tokens.named(settings.folder))
    except ConfigError as error:
        return HostFinding("token", False, str(error)), None
    return HostFinding("token", True, f"{settings.folder / tokens.TOKEN_FILE}, and {count} named"), secret


def _agent(url: str, secret: str) -> HostFinding:
    try:
        with Client(url, secret, timeout=ASK_SECONDS) as client:
            client.ping()
    except PeerUnreachable:
        return HostFinding("agent", False, f"nothing answers at {url}; start it: device-host-agent run")
    except ClientError as error:
        return HostFinding("agent", False, f"{url}: {error}; a token that was rotated needs a restart of the agent")
    return HostFinding("agent", True, f"answers at {url} and takes the token")


def _devices(settings: HostSettings) -> Iterator[HostFinding]:
    try:
        specs = registry.specs(settings.folder)
    except ConfigError as error:
        yield HostFinding("devices", False, str(error))
        return
    if not specs:
        yield HostFinding("devices", False, "none; add one: device-host-agent devices add ID --kind board")
    for spec in specs:
        driver = factory.driver(spec, factory.adb_server(settings))
        try:
            probe = driver.probe()
        finally:
            driver.close()
        words = str(probe.details.get("error", "")) or probe.state
        yield HostFinding(f"device {spec.id}", probe.state == base.READY, words)


def _cloud(settings: HostSettings) -> HostFinding:
    try:
        found = enrollment.read(settings.folder)
    except ConfigError as error:
        return HostFinding("cloud", False, str(error))
    return HostFinding(
        "cloud", True, "not enrolled" if found is None else f"enrolled at {found.url} as {found.host_id}"
    )
