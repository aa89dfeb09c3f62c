"""From a device's entry to its driver; what an installation cannot drive gets one that says why."""

from __future__ import annotations

from mcpboard.errors import ConfigError
from mcpboard.host.config import HostSettings
from mcpboard.host.devices.registry import DeviceSpec
from mcpboard.host.drivers.android import AndroidDriver
from mcpboard.host.drivers.android.adb import AdbClient
from mcpboard.host.drivers.base import Driver, UnavailableDriver
from mcpboard.host.drivers.board import STANDARD_URL, BoardDriver
from mcpboard.host.drivers.iphone import IPhoneDriver, wda

NO_PILLOW = "simulated phones are drawn with Pillow, which is not installed; cure: pip install 'mcpboard[simulator]'"


def adb_server(settings: HostSettings) -> AdbClient:
    """Return a client of the adb server that the settings name."""
    return AdbClient(*settings.adb_server, start=settings.adb_start)


def driver(spec: DeviceSpec, adb: AdbClient | None = None) -> Driver:
    """Return the driver of a device, an Android phone behind `adb`; it opens nothing before it is used."""
    try:
        return _create(spec, adb)
    except ConfigError as error:
        return UnavailableDriver(f"device {spec.id}: {error}; remove it and add it again")


def check(spec: DeviceSpec) -> None:
    """Raise ConfigError where the driver could not even be made, such as for a URL that is none."""
    if spec.kind != "simulated":  # whose libraries need not be here before it is used
        _create(spec, None).close()


def _create(spec: DeviceSpec, adb: AdbClient | None) -> Driver:
    if spec.kind == "board":
        return BoardDriver(spec.url or STANDARD_URL, spec.interface)
    if spec.kind == "android":
        return AndroidDriver(spec.serial, adb)
    if spec.kind == "iphone":
        return IPhoneDriver(spec.url or wda.STANDARD_URL)
    if spec.kind != "simulated":
        return UnavailableDriver(f"this version has no driver for devices of kind {spec.kind} yet")
    try:
        from mcpboard.host.drivers.simulated import SimulatedDriver
    except ImportError:
        return UnavailableDriver(NO_PILLOW)
    return SimulatedDriver(seed=sum(spec.id.encode()))
