"""From a device's kind to its driver; what an installation cannot drive gets one that says why."""

from __future__ import annotations

from mcpboard.errors import ConfigError
from mcpboard.host.config import HostSettings
from mcpboard.host.devices.registry import Spec
from mcpboard.host.drivers.android import Android
from mcpboard.host.drivers.android.adb import Adb
from mcpboard.host.drivers.base import Driver, NoDriver
from mcpboard.host.drivers.board import STANDARD_URL, Board
from mcpboard.host.drivers.iphone import IPhone, wda

NO_PILLOW = "simulated phones are drawn with Pillow, which is not installed; cure: pip install 'mcpboard[simulator]'"


def adb_server(settings: HostSettings) -> Adb:
    """The adb server of the settings."""
    return Adb(*settings.adb_server, start=settings.adb_start)


def driver(spec: Spec, adb: Adb | None = None) -> Driver:
    """The driver for that device, an Android phone behind `adb`; it opens nothing before it is used."""
    try:
        return _driver(spec, adb)
    except ConfigError as error:
        return NoDriver(f"device {spec.id}: {error}; remove it and add it again")


def _driver(spec: Spec, adb: Adb | None) -> Driver:
    if spec.kind == "board":
        return Board(spec.url or STANDARD_URL, spec.interface)
    if spec.kind == "android":
        return Android(spec.serial, adb)
    if spec.kind == "iphone":
        return IPhone(spec.url or wda.STANDARD_URL)
    if spec.kind == "simulated":
        return _simulated(spec)
    return NoDriver(f"this version has no driver for devices of kind {spec.kind} yet")


def check(spec: Spec) -> None:
    """Raise ConfigError where the driver could not even be made, such as for a URL that is none."""
    if spec.kind != "simulated":  # whose libraries need not be here before it is used
        _driver(spec, None).close()


def _simulated(spec: Spec) -> Driver:
    try:
        from mcpboard.host.drivers.simulated import (
            Simulated,  # the simulator is optional, and draws with Pillow
        )
    except ImportError:
        return NoDriver(NO_PILLOW)
    return Simulated(seed=sum(spec.id.encode()))
