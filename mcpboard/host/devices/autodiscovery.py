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
    """Add each phone that adb knows and no file names, once it takes commands. The AdbDiscovery is to be closed.

    A phone that is unplugged stays, offline: the owner of its lease keeps it, and it works again
    when it is back.
    """

    def add_new(attached: Collection[AttachedDevice]) -> None:
        named = {spec.serial for spec in registered() if spec.kind == "android"}
        for phone in attached:
            device = device_id(phone.serial)
            if phone.state != adb.READY or named & {phone.serial, None} or device in manager.ids():
                continue
            try:
                manager.add(device, "android", AndroidDriver(phone.serial, server))
            except ConfigError as error:
                log.warning("%s was found and not taken: %s", phone.serial, error)
            else:
                log.info("%s is here, as device %s", phone.model or "a phone", device)

    return AdbDiscovery(server, add_new)


def device_id(serial: str) -> str:
    """Return the id of a phone that nobody has named: its serial, as far as an id may be that."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", serial).lstrip("._-")[:LONGEST_ID] or "phone"
