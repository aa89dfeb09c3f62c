"""`device-host-agent doctor`: examine settings, files, the running agent, the cloud and the devices of this host.

It changes nothing and holds no device.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from mcpboard.client import Client
from mcpboard.doctor import Check, CheckResult, CheckState, Finding, failed, ok, run
from mcpboard.errors import ClientError, ConfigError, PeerUnreachable
from mcpboard.host import running
from mcpboard.host.access import tokens
from mcpboard.host.cloud import enrollment
from mcpboard.host.cloud.enrollment import Enrollment
from mcpboard.host.config import HostSettings
from mcpboard.host.devices import registry
from mcpboard.host.devices.registry import DeviceSpec
from mcpboard.host.drivers import base, factory
from mcpboard.host.drivers.base import Probe
from mcpboard.host.drivers.board import STANDARD_URL
from mcpboard.text import one_line

AGENT_S = 3.0  # seconds for the agent on this machine


# --- probes: what is wrong with a file is a ConfigError ----------------------------------------


@dataclass(frozen=True)
class AgentFacts:
    """The URL at which the agent should answer, the error when it did not, and whether one has this folder."""

    url: str
    error: ClientError | None = None
    runs_here: bool = True


class HostProbes:
    """This host: each probe looks when a check needs it, and only when the settings could be read."""

    def __init__(self, load: Callable[[], HostSettings]) -> None:
        self._load = load

    @cached_property
    def settings(self) -> HostSettings:
        """The effective settings."""
        return self._load()

    @cached_property
    def devices(self) -> list[DeviceSpec]:
        """The devices as they are written down."""
        return registry.specs(self.settings.folder)

    def token(self) -> str:
        """Return where the token is that clients can use, and how many were given names."""
        folder = self.settings.folder
        tokens.read_main_token(folder)
        return f"{folder / tokens.TOKEN_FILE}, and {len(tokens.named(folder))} named"

    def agent(self) -> AgentFacts:
        """Ask the agent that runs, with the token."""
        url, token = running.url(self.settings), tokens.read_main_token(self.settings.folder)
        try:
            with Client(url, token, timeout=AGENT_S) as client:
                client.ping()
        except ClientError as error:
            return AgentFacts(url, error, running.find(self.settings.folder) is not None)
        return AgentFacts(url)

    def device(self, spec: DeviceSpec) -> Probe:
        """Ask a device how it is."""
        driver = factory.driver(spec, factory.adb_server(self.settings))
        try:
            return driver.probe()
        finally:
            driver.close()


# --- rules -------------------------------------------------------------------------------------


def agent(facts: AgentFacts) -> CheckResult:
    """Fail when no agent runs here, or one that takes another token."""
    if facts.error is None:
        return ok(f"answers at {facts.url} and takes the token")
    if not facts.runs_here:
        return failed(f"no agent runs on this folder, and {facts.url}: {facts.error}", "device-host-agent run")
    if isinstance(facts.error, PeerUnreachable):
        return failed(f"nothing answers at {facts.url}", "device-host-agent run")
    return failed(f"{facts.url}: {facts.error}", "restart the agent: it needs that when its token was replaced")


def cloud(facts: Enrollment | None) -> CheckResult:
    """Say where it is enrolled; a host without an enrollment is well."""
    return ok("not enrolled" if facts is None else f"enrolled at {facts.url} as {facts.host_id}")


def devices(facts: Sequence[DeviceSpec]) -> CheckResult:
    """Fail when there is no device, or one of them twice."""
    if not facts:
        return failed("none", "device-host-agent devices add ID --kind board")
    for at, spec in enumerate(facts):
        if other := registry.first_same(spec, facts[:at]):
            why = f"{other.id} and {spec.id} are one phone, or may be, so {spec.id} is not served"
            return failed(why, f"device-host-agent devices remove {spec.id}")
    return ok(", ".join(spec.id for spec in facts))


def device(spec: DeviceSpec, probe: Probe) -> CheckResult:
    """Fail when the device is not ready; its driver mostly knows the remedy."""
    if probe.state == base.READY:
        return ok(probe.state)
    cause, *remedies = re.split(r";? cure: ", str(probe.details.get("error") or probe.state), maxsplit=1)
    if spec.kind == "board":
        remedies.append(f"mcpboard doctor {spec.url or STANDARD_URL}")
    remedies.append(f"device-host-agent devices test {spec.id}")
    return failed(one_line(cause), one_line(remedies[0]))


def _check(name: str, needs: tuple[str, ...], look: Callable[[HostProbes], Any],
           evaluate: Callable[[Any], CheckResult], remedy: str) -> Check[HostProbes]:  # fmt: skip
    """Return the check that fails where the probe raises ConfigError.

    The part of that behind its last semicolon is the remedy, else it is `remedy`.
    """

    def probe(host: HostProbes) -> Any:
        try:
            return look(host)
        except ConfigError as error:
            return error

    def judge(facts: Any) -> CheckResult:
        if not isinstance(facts, ConfigError):
            return evaluate(facts)
        cause, _, own_remedy = str(facts).rpartition("; ")
        return failed(cause, own_remedy) if cause else failed(own_remedy, remedy)

    return Check(name, name.capitalize(), needs, probe, judge)


CHECKS: tuple[Check[HostProbes], ...] = (
    _check("settings", (), lambda host: host.settings,
           lambda facts: ok(f"files in {facts.folder}, to be served at {facts.url}"), "correct that setting"),
    _check("token", ("settings",), HostProbes.token, ok,
           "device-host-agent run (generates a token where there is none)"),
    _check("agent", ("token",), HostProbes.agent, agent, "device-host-agent run"),
    _check("cloud", ("settings",), lambda host: enrollment.read(host.settings.folder), cloud,
           "delete the file and enroll again"),
    _check("devices", ("settings",), lambda host: host.devices, devices,
           "correct the file, or delete it and add the devices again"),
)  # fmt: skip


def examine(load: Callable[[], HostSettings]) -> Iterator[Finding]:
    """Yield the findings on this host, each as soon as it is there; `load` reads the settings or raises ConfigError.

    After the table of checks one for each device.
    """
    host = HostProbes(load)
    done: dict[str, Finding] = {}
    yield from run(CHECKS, host, done)
    if done["devices"].result.state is CheckState.OK:
        yield from run([_device_check(spec) for spec in host.devices], host, done)


def _device_check(spec: DeviceSpec) -> Check[HostProbes]:
    """Return the check of one device; its probe is tied to that device, as the table's rows are to none."""
    look, title = partial(HostProbes.device, spec=spec), f"Device {spec.id}"
    return Check(f"device {spec.id}", title, ("devices",), look, partial(device, spec))
