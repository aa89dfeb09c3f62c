"""`devices.json`: the devices of this host, changed by the command line and followed by a running agent."""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType

from mcpboard.errors import ConfigError
from mcpboard.host import storage
from mcpboard.host.devices.manager import DeviceManager
from mcpboard.host.devices.spec import DeviceSpec, same_phone, ways
from mcpboard.host.drivers.base import Driver

__all__ = ["DeviceSpec", "Registry", "add", "remove", "specs"]

log = logging.getLogger(__name__)

DEVICES_FILE = "devices.json"
KINDS = ("board", "simulated", "android", "iphone")
MOST_DEVICES = 64  # of one host; each may cost a thread and a connection
NO_SERIALS: Mapping[str, str] = MappingProxyType({})
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
# Other names by which adb finds a phone: a place or a property, an address without its port.
_NO_SERIAL = re.compile(r"(usb|tcp|udp|product|model|device):.*|\d+\.\d+\.\d+\.\d+", re.DOTALL)

# Member -> kinds that look at it: one written for another kind would silently do nothing.
USED_BY: Mapping[str, tuple[str, ...]] = {
    "url": ("board", "iphone"),
    "serial": ("android", "iphone"),
    "interface": ("board",),
}


def specs(folder: Path) -> list[DeviceSpec]:
    """Return the devices in the file, none where there is no file; ConfigError for what cannot be read."""
    path = folder / DEVICES_FILE
    document = storage.read(path)
    entries = [] if document is None else document.get("devices")
    if not isinstance(entries, list) or len(entries) > MOST_DEVICES:
        raise ConfigError(f"{path}: a list of at most {MOST_DEVICES} devices is expected; delete it and add them again")
    names, required = {field.name for field in fields(DeviceSpec)}, {"id", "kind"}
    known = []
    try:
        for entry in entries:
            if not isinstance(entry, dict) or not required <= set(entry) <= names:
                optional = ", ".join(sorted(names - required))
                raise ConfigError(f"a device has id, kind and, where needed, {optional}")
            if not all(isinstance(value, str) for value in entry.values()):
                raise ConfigError("every member of a device is text")
            known.append(DeviceSpec(**entry))
            _check(known[-1])
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    if len({each.id for each in known}) < len(known):
        raise ConfigError(f"{path}: two devices have the same id")
    return known


def add(folder: Path, spec: DeviceSpec) -> None:
    """Write one more device down; ConfigError for an id or a phone that is taken, or a member that is wrong."""
    _check(spec)
    if spec.kind == "android" and _NO_SERIAL.fullmatch(spec.serial or ""):
        # Nobody could tell that it is the phone of another entry.
        raise ConfigError(f"{spec.serial} is no serial; name the phone by the first word that `adb devices` prints")
    with storage.locked(folder / DEVICES_FILE):
        known = specs(folder)
        if any(each.id == spec.id for each in known):
            raise ConfigError(f"there is a device {spec.id} already; remove it first, or choose another id")
        other = first_same(spec, known)
        if other is not None:
            raise ConfigError(_same(spec, other))
        if len(known) >= MOST_DEVICES:
            raise ConfigError(f"a host has {MOST_DEVICES} devices at most")
        _write(folder, [*known, spec])


def first_same(spec: DeviceSpec, others: Iterable[DeviceSpec]) -> DeviceSpec | None:
    """Return the first of the others that is the same phone, None when none is."""
    return next((each for each in others if same_phone(spec, each)), None)


def _same(spec: DeviceSpec, other: DeviceSpec) -> str:
    """Return why a device is refused beside another one that is the same phone, or may be."""
    for name in ("serial", "interface"):
        both = (getattr(spec, name), getattr(other, name))
        if None in both and both != (None, None) and spec.kind in USED_BY[name] and spec.kind != "iphone":
            nameless = spec.id if both[0] is None else other.id
            return (
                f"{spec.id} and {other.id} may be one phone, because {nameless} names no {name}; "
                f"remove it, and add each with its --{name}"
            )
    return f"{other.id} is that phone already; use that id, or remove it first"


def remove(folder: Path, device_id: str) -> None:
    """Strike a device out; ConfigError for one that is not there."""
    with storage.locked(folder / DEVICES_FILE):
        known = specs(folder)
        kept = [each for each in known if each.id != device_id]
        if len(kept) == len(known):
            raise ConfigError(f"there is no device {device_id}; `devices list` names them")
        _write(folder, kept)


def _write(folder: Path, devices: Sequence[DeviceSpec]) -> None:
    storage.replace(folder / DEVICES_FILE, {"version": 1, "devices": [each.written() for each in devices]})


def _check(spec: DeviceSpec) -> None:
    if not _ID.fullmatch(spec.id):
        raise ConfigError("a device's id is 1 to 64 letters, digits, dots, hyphens and underscores")
    if spec.kind not in KINDS:
        raise ConfigError(f"a device's kind is one of {', '.join(KINDS)}")
    for name, kinds in USED_BY.items():
        if getattr(spec, name) is not None and spec.kind not in kinds:
            raise ConfigError(f"{name} means nothing to a device of kind {spec.kind}")


class Registry:
    """Keep the manager's devices as the file has them; safe to ask from any thread, at every call.

    A device whose phone is in use under another id is taken on once that is over. `serials` is address -> serial of
    Android phones by network, as far as they have told.
    """

    def __init__(
        self,
        folder: Path,
        manager: DeviceManager,
        make: Callable[[DeviceSpec], Driver],
        serials: Mapping[str, str] = NO_SERIALS,
    ) -> None:
        self._serials = serials
        self._folder = folder
        self._manager = manager
        self._make = make
        self._lock = threading.Lock()
        self._file = storage.FollowedFile(folder / DEVICES_FILE)
        self._known: dict[str, DeviceSpec] = {}
        self._refused: dict[str, str] = {}  # id of a device that is not served -> why
        self._wanted = specs(folder)
        self._is = os.stat(folder) if folder.exists() else None
        self._apply()

    def specs(self) -> list[DeviceSpec]:
        """Return the devices as they stand in the manager."""
        with self._lock:
            return list(self._known.values())

    def follow(self) -> None:
        """Add and remove what the file's last change did; a broken file leaves the devices as they are."""
        with self._lock:
            if self._file.take_change():
                try:
                    self._wanted = self._of_our_folder()
                except ConfigError as error:
                    log.warning("%s (until then the devices stay as they were)", error)
                    return
            elif not self._refused:
                return
            self._apply()

    def _of_our_folder(self) -> list[DeviceSpec]:
        """Return the devices in the file, none where the folder is another one than at the start.

        The lock of this agent is on the old one: another agent may run on the new one, and have its devices.
        """
        listed = specs(self._folder)
        try:
            if self._is is None or not listed or os.path.samestat(self._is, os.stat(self._folder)):
                return listed
        except FileNotFoundError:  # just now
            return []
        log.warning("%s: was replaced; this agent serves none of its devices until it is restarted", self._folder)
        return []

    def _apply(self) -> None:
        fresh = {each.id: each for each in self._wanted}
        for device_id, spec in list(self._known.items()):
            if fresh.get(device_id) != spec:
                del self._known[device_id]
                self._manager.remove(device_id)
        refused: dict[str, str] = {}
        for device_id, spec in fresh.items():
            if device_id in self._known:
                continue
            driver = self._make(spec)
            try:
                self._manager.add(device_id, spec.kind, driver, ways(spec, self._serials))
            except ConfigError as error:
                driver.close()
                refused[device_id] = str(error)
                if self._refused.get(device_id) != str(error):
                    log.warning("%s is not served: %s", device_id, error)
            else:
                self._known[device_id] = spec
        self._refused = refused
