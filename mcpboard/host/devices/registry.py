"""`devices.json`: the devices of this host, changed by the command line and followed by a running agent."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from mcpboard.errors import ConfigError
from mcpboard.host import storage
from mcpboard.host.devices.manager import DeviceManager
from mcpboard.host.drivers.base import Driver

DEVICES_FILE = "devices.json"
KINDS = ("board", "simulated", "android", "iphone")
MOST_DEVICES = 64  # of one host; each may cost a thread and a connection
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class DeviceSpec:
    """One device as it is written down: its kind and the way to reach it."""

    id: str
    kind: str
    url: str | None = None  # of a board or a WebDriverAgent
    serial: str | None = None  # of an Android device
    interface: str | None = None  # network interface that a board is behind, when several share an address

    def written(self) -> dict[str, str]:
        """Return the members that have a value."""
        members = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in members.items() if value is not None}


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
    """Write one more device down; ConfigError for an id that is taken or a member that is wrong."""
    _check(spec)
    with storage.locked(folder / DEVICES_FILE):
        known = specs(folder)
        if any(each.id == spec.id for each in known):
            raise ConfigError(f"there is a device {spec.id} already; remove it first, or choose another id")
        if len(known) >= MOST_DEVICES:
            raise ConfigError(f"a host has {MOST_DEVICES} devices at most")
        _write(folder, [*known, spec])


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
    """Keep the manager's devices as the file has them; safe to ask from any thread, at every call."""

    def __init__(self, folder: Path, manager: DeviceManager, make: Callable[[DeviceSpec], Driver]) -> None:
        self._folder = folder
        self._manager = manager
        self._make = make
        self._lock = threading.Lock()
        self._file = storage.FollowedFile(folder / DEVICES_FILE)
        self._known: dict[str, DeviceSpec] = {}
        self._apply(specs(folder))

    def specs(self) -> list[DeviceSpec]:
        """Return the devices as they stand in the manager."""
        with self._lock:
            return list(self._known.values())

    def follow(self) -> None:
        """Add and remove what the file's last change did; a broken file leaves the devices as they are."""
        with self._lock:
            if not self._file.take_change():
                return
            with self._file.complaining("the devices stay as they were"):
                self._apply(specs(self._folder))

    def _apply(self, wanted: Sequence[DeviceSpec]) -> None:
        fresh = {each.id: each for each in wanted}
        for device_id, spec in list(self._known.items()):
            if fresh.get(device_id) != spec:
                del self._known[device_id]
                self._manager.remove(device_id)
        for device_id, spec in fresh.items():
            if device_id not in self._known:
                self._manager.add(device_id, spec.kind, self._make(spec))
                self._known[device_id] = spec
