"""Phones that are plugged in become devices by themselves, for as long as the agent runs."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable

from mcpboard.errors import ConfigError
from mcpboard.host.devices.manager import DeviceManager
from mcpboard.host.devices.registry import DeviceSpec
from mcpboard.host.drivers.android import AndroidDriver, adb
from mcpboard.host.drivers.android.adb import AdbClient, AttachedDevice
from mcpboard.host.drivers.android.discovery import AdbDiscovery

log = logging.getLogger(__name__)

LONGEST_ID = 64  # characters, as of an id that is written down


def discover(manager: DeviceManager, registered: Callable[[], Iterable[DeviceSpec]], server: AdbClient) -> AdbDiscovery:
    """Add each phone that adb knows and no file names, once it takes commands. The Discovery is to be closed.

    A phone that is unplugged stays, offline: whoever holds it keeps it, and it works again when it
    is back.
    """

    def take(found: Collection[AttachedDevice]) -> None:
        named = {spec.serial for spec in registered() if spec.kind == "android"}
        for phone in found:
            if phone.state == adb.READY and not named & {phone.serial, None}:
                _add(manager, phone, server)

    return AdbDiscovery(server, take)


def _add(manager: DeviceManager, phone: AttachedDevice, server: AdbClient) -> None:
    device = device_id(phone.serial)
    if device in manager.ids():
        return
    try:
        manager.add(device, "android", AndroidDriver(phone.serial, server))
    except ConfigError as error:
        log.warning("%s was found and not taken: %s", phone.serial, error)
    else:
        log.info("%s is here, as device %s", phone.model or "a phone", device)


def device_id(serial: str) -> str:
    """The id of a phone that nobody has named: its serial, as far as an id may be that."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", serial).lstrip("._-")[:LONGEST_ID] or "phone"
