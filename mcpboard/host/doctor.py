"""`device-host-agent doctor`: examine settings, files, the running agent, the cloud and the devices of this host.

It changes nothing and holds no device.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

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


# --- probes ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TokenFacts:
    """The file of the first start's token, and how many were given names."""

    path: Path
    named: int


@dataclass(frozen=True)
class AgentFacts:
    """The URL at which the agent should answer, the error when it did not, and whether one has this folder."""

    url: str
    error: ClientError | None = None
    runs_here: bool = True


@dataclass(frozen=True)
class DeviceFacts:
    """A device as it is written down, and as it is now."""

    spec: DeviceSpec
    probe: Probe


class HostProbes:
    """This host: each probe looks when a check needs it, and once; what is wrong with a file is a ConfigError."""

    def __init__(self, load: Callable[[], HostSettings]) -> None:
        self._load = load

    @cached_property
    def loaded(self) -> HostSettings | ConfigError:
        try:
            return self._load()
        except ConfigError as error:
            return error

    @property
    def settings(self) -> HostSettings:
        """The effective settings; to be used only when they could be read."""
        assert isinstance(self.loaded, HostSettings)
        return self.loaded

    @cached_property
    def token(self) -> TokenFacts | ConfigError:
        folder = self.settings.folder
        try:
            tokens.read_main_token(folder)
            return TokenFacts(folder / tokens.TOKEN_FILE, len(tokens.named(folder)))
        except ConfigError as error:
            return error

    @cached_property
    def agent(self) -> AgentFacts:
        """The agent that runs, asked with the token; to be looked at only when that could be read."""
        url, token = running.url(self.settings), tokens.read_main_token(self.settings.folder)
        try:
            with Client(url, token, timeout=AGENT_S) as client:
                client.ping()
        except ClientError as error:
            return AgentFacts(url, error, running.find(self.settings.folder) is not None)
        return AgentFacts(url)

    @cached_property
    def cloud(self) -> Enrollment | ConfigError | None:
        try:
            return enrollment.read(self.settings.folder)
        except ConfigError as error:
            return error

    @cached_property
    def devices(self) -> list[DeviceSpec] | ConfigError:
        try:
            return registry.specs(self.settings.folder)
        except ConfigError as error:
            return error

    def device(self, spec: DeviceSpec) -> DeviceFacts:
        driver = factory.driver(spec, factory.adb_server(self.settings))
        try:
            return DeviceFacts(spec, driver.probe())
        finally:
            driver.close()


# --- rules -------------------------------------------------------------------------------------


def settings(facts: HostSettings | ConfigError) -> CheckResult:
    """Fail when the settings cannot be read."""
    if isinstance(facts, ConfigError):
        return _failed(facts, "correct that setting")
    return ok(f"files in {facts.folder}, to be served at {facts.url}")


def token(facts: TokenFacts | ConfigError) -> CheckResult:
    """Fail when there is no token that clients could use."""
    if isinstance(facts, ConfigError):
        return _failed(facts, "device-host-agent run (generates a token where there is none)")
    return ok(f"{facts.path}, and {facts.named} named")


def agent(facts: AgentFacts) -> CheckResult:
    """Fail when no agent runs here, or one that takes another token."""
    if facts.error is None:
        return ok(f"answers at {facts.url} and takes the token")
    if not facts.runs_here:
        return failed(f"no agent runs on this folder, and {facts.url}: {facts.error}", "device-host-agent run")
    if isinstance(facts.error, PeerUnreachable):
        return failed(f"nothing answers at {facts.url}", "device-host-agent run")
    return failed(f"{facts.url}: {facts.error}", "restart the agent: it needs that when its token was replaced")


def cloud(facts: Enrollment | ConfigError | None) -> CheckResult:
    """Fail when the enrollment cannot be read; a host without one is well."""
    if isinstance(facts, ConfigError):
        return _failed(facts, "delete the file and enroll again")
    return ok("not enrolled" if facts is None else f"enrolled at {facts.url} as {facts.host_id}")


def devices(facts: list[DeviceSpec] | ConfigError) -> CheckResult:
    """Fail when there is no device, or no list of them."""
    if isinstance(facts, ConfigError):
        return _failed(facts, "correct the file, or delete it and add the devices again")
    if not facts:
        return failed("none", "device-host-agent devices add ID --kind board")
    for at, spec in enumerate(facts):
        if other := registry.first_same(spec, facts[:at]):
            why = f"{other.id} and {spec.id} are one phone, or may be, so {spec.id} is not served"
            return failed(why, f"device-host-agent devices remove {spec.id}")
    return ok(", ".join(spec.id for spec in facts))


def device(facts: DeviceFacts) -> CheckResult:
    """Fail when the device is not ready; its driver mostly knows the remedy."""
    spec, probe = facts.spec, facts.probe
    if probe.state == base.READY:
        return ok(probe.state)
    cause, *remedies = re.split(r";? cure: ", str(probe.details.get("error") or probe.state), maxsplit=1)
    if spec.kind == "board":
        remedies.append(f"mcpboard doctor {spec.url or STANDARD_URL}")
    remedies.append(f"device-host-agent devices test {spec.id}")
    return failed(one_line(cause), one_line(remedies[0]))


def _failed(error: ConfigError, remedy: str) -> CheckResult:
    """Return what a ConfigError says; its part behind the last semicolon is the remedy, else it is `remedy`."""
    cause, _, own_remedy = str(error).rpartition("; ")
    return failed(cause, own_remedy) if cause else failed(own_remedy, remedy)


CHECKS: tuple[Check[HostProbes], ...] = (
    Check("settings", "Settings", (), lambda host: host.loaded, settings),
    Check("token", "Token", ("settings",), lambda host: host.token, token),
    Check("agent", "Agent", ("token",), lambda host: host.agent, agent),
    Check("cloud", "Cloud", ("settings",), lambda host: host.cloud, cloud),
    Check("devices", "Devices", ("settings",), lambda host: host.devices, devices),
)


def examine(load: Callable[[], HostSettings]) -> Iterator[Finding]:
    """Yield the findings on this host, each as soon as it is there; `load` reads the settings or raises ConfigError.

    After the table of checks one for each device.
    """
    host = HostProbes(load)
    done: dict[str, Finding] = {}
    yield from run(CHECKS, host, done)
    if done["devices"].result.state is CheckState.OK:
        assert not isinstance(host.devices, ConfigError)
        yield from run([_device_check(spec) for spec in host.devices], host, done)


def _device_check(spec: DeviceSpec) -> Check[HostProbes]:
    """Return the check of one device; its probe is tied to that device, as the table's rows are to none."""
    return Check(f"device {spec.id}", f"Device {spec.id}", ("devices",), lambda host: host.device(spec), device)
