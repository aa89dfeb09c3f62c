"""`device-host-agent devices`: which devices there are, which could be added, and how one is."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys

from mcpboard.cli import config
from mcpboard.cli.config import Verbs
from mcpboard.cli.host import add_action, command, settings
from mcpboard.errors import ConfigError, ToolFailed
from mcpboard.host.devices import registry
from mcpboard.host.drivers import base, factory
from mcpboard.text import printable, well_formed_json


def add_to(verbs: Verbs) -> None:
    """Add the verb `devices` with its actions."""
    sentence = "Add, remove, test and list the devices; a running agent follows."
    group = config.add_verb(verbs, "devices", sentence, "device-host-agent devices add left --kind board")
    actions = group.add_subparsers(metavar="ACTION", required=True)
    new = add_action(actions, "add", add, "add a device")
    new.add_argument("id", metavar="ID")
    new.add_argument("--kind", metavar="KIND", required=True, help="board, simulated, android or iphone")
    new.add_argument("--url", metavar="URL", help="of a board (default: its address on the cable) or WebDriverAgent")
    new.add_argument("--serial", metavar="S", help="of an Android device, as adb names it")
    new.add_argument("--interface", metavar="IF", help="network interface that a board is behind, such as usb0")
    add_action(actions, "remove", remove, "remove a device").add_argument("id", metavar="ID")
    add_action(actions, "test", test, "ask a device how it is").add_argument("id", metavar="ID")
    add_action(actions, "list", list_devices, "name every device")
    add_action(actions, "scan", scan, "name every Android phone that adb knows, for --serial")


def add(arguments: argparse.Namespace) -> int:
    """Write a device down; its address is checked, the device itself need not be there."""
    spec = registry.DeviceSpec(arguments.id, arguments.kind, arguments.url, arguments.serial, arguments.interface)
    factory.check(spec)
    effective = settings(arguments)
    registry.add(effective.folder, spec)
    print(f"{spec.id} is added; how it is: {command(effective, 'devices', 'test', spec.id)}")
    return 0


def remove(arguments: argparse.Namespace) -> int:
    """Strike a device out."""
    registry.remove(settings(arguments).folder, arguments.id)
    print(f"{arguments.id} is removed")
    return 0


def list_devices(arguments: argparse.Namespace) -> int:
    """Print every device as it is written down; where there is none, a hint goes to standard error."""
    specs = registry.specs(settings(arguments).folder)
    if not specs:
        print("device-host-agent: no devices; add one: device-host-agent devices add ID --kind KIND", file=sys.stderr)
    for spec in specs:
        words = (f"{value}" if name == "id" else f"{name}={value}" for name, value in spec.written().items())
        print(printable("  ".join(words)))
    return 0


def scan(arguments: argparse.Namespace) -> int:
    """Print every phone that adb knows, with what to do about one that is not ready; 0 when there is one."""
    try:
        phones = factory.adb_server(settings(arguments)).devices()
    except ToolFailed as error:
        print(f"device-host-agent: {error}", file=sys.stderr)
        return 1
    for phone in phones:
        print(printable("  ".join(word for word in (phone.serial, phone.state, phone.model, phone.remedy) if word)))
    return 0 if phones else 1


def test(arguments: argparse.Namespace) -> int:
    """Ask the device how it is; 0 when it is ready. Nothing on it is touched."""
    effective = settings(arguments)
    spec = next((each for each in registry.specs(effective.folder) if each.id == arguments.id), None)
    if spec is None:
        raise ConfigError(f"there is no device {arguments.id}; `devices list` names them")
    with contextlib.closing(factory.driver(spec, factory.adb_server(effective))) as driver:
        probe = driver.probe()
    written = json.dumps({"id": spec.id, "kind": spec.kind, "state": probe.state, **probe.details})
    print(well_formed_json(written.encode("ascii")).decode("ascii"))
    return 0 if probe.state == base.READY else 1
