"""Phones that are plugged in become devices by themselves, for as long as the agent runs."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Callable, Collection, Iterable

from mcpboard.errors import ConfigError, ToolFailed
from mcpboard.host.devices.manager import DeviceManager, PhoneTaken
from mcpboard.host.devices.spec import DeviceSpec, same_phone, ways
from mcpboard.host.drivers.android import AndroidDriver, adb
from mcpboard.host.drivers.android.adb import AdbClient, AttachedDevice
from mcpboard.host.drivers.android.discovery import AdbDiscovery

log = logging.getLogger(__name__)

SERIAL_SECONDS = 2.0  # for a phone by network to tell its serial
MOST_SERIALS = 256  # remembered; a host has far fewer phones in its life
# The beginnings of serials that phones report which have none of their own.
SHARED_SERIALS = ("unknown", "0123456789ABCDEF", "EMULATOR")
LONGEST_ID = 64  # characters, as of an id that is written down


def discover(
    manager: DeviceManager,
    registered: Callable[[], Iterable[DeviceSpec]],
    server: AdbClient,
    serials: dict[str, str] | None = None,
) -> AdbDiscovery:
    """Add each phone that adb knows and no file names, once it takes commands. The AdbDiscovery is to be closed.

    A phone that is unplugged stays, offline: the owner of its lease keeps it, and it works again
    when it is back. One that is there by cable and by network is one device: `serials` gets the serial
    that each phone by network tells, by its address.
    """
    hardware = {} if serials is None else serials

    def add_new(attached: Collection[AttachedDevice]) -> None:
        ready = [phone for phone in attached if phone.state == adb.READY]
        for phone in ready:
            if phone.serial not in hardware and adb.is_address(phone.serial):
                with contextlib.suppress(ToolFailed):  # it may be gone again
                    told = server.shell(phone.serial, "getprop ro.serialno", SERIAL_SECONDS).text.strip()
                    if told and not told.startswith(SHARED_SERIALS) and len(hardware) < MOST_SERIALS:
                        hardware[phone.serial] = told
        named = [way for spec in registered() if spec.kind == "android" for way in ways(spec, hardware)]
        for phone in ready:
            device = device_id(phone.serial)
            known = ways(DeviceSpec(device, "android", serial=phone.serial), hardware)
            if any(same_phone(one, two) for one in known for two in named):
                manager.withdraw_found(device)  # it was here before it had another name
                continue
            if device in manager.ids():
                continue
            try:
                manager.add(device, "android", AndroidDriver(phone.serial, server), known, found=True)
            except PhoneTaken:
                log.info("%s is a device already", phone.serial)
            except ConfigError as error:
                log.warning("%s was found and not taken: %s", phone.serial, error)
            else:
                log.info("%s is here, as device %s", phone.model or "a phone", device)

    return AdbDiscovery(server, add_new)


def device_id(serial: str) -> str:
    """Return the id of a phone that nobody has named: its serial, as far as an id may be that."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", serial).lstrip("._-")[:LONGEST_ID] or "phone"
