"""`device-host-agent`, which is also `mcpboard host`: MCP in front of the devices of this computer."""

from __future__ import annotations

import argparse
import contextlib
import functools
import getpass
import json
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from mcpboard.cli import logs
from mcpboard.cli.config import Verbs
from mcpboard.errors import AddressTaken, ConfigError
from mcpboard.host import config as host_config
from mcpboard.host.config import HOST_SETTINGS, HostSettings

if TYPE_CHECKING:
    from mcpboard.host.devices.registry import DeviceSpec
    from mcpboard.host.drivers.base import Probe

Verb = Callable[[argparse.Namespace], int]


def add_to(verbs: Verbs) -> None:
    """Add the host's verbs."""
    _add_run(verbs)
    token = _verb(verbs, "mcp-token", mcp_token, "print the bearer token that clients need")
    token.add_argument("--json", action="store_true", help="as the URL and the header of a client's configuration")
    _add_tokens(verbs)
    _add_devices(verbs)
    cloud = _verb(verbs, "enrol", enrol, "join a cloud that gives out assignments; its token is read from stdin")
    cloud.add_argument("url", metavar="URL", help="https, or http to this machine itself")
    _verb(verbs, "doctor", doctor, "check settings, files, port and devices, and say what to do about each")


def _verb(verbs: Verbs, name: str, run: Verb, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(name, help=text)
    parser.add_argument("--config", metavar="FILE", help="settings file; its table [host] counts")
    parser.add_argument("--data", metavar="DIR", help="folder of identity, token and devices (default: tasks)")
    parser.set_defaults(run=run)
    return parser


def _add_run(verbs: Verbs) -> None:
    parser = _verb(verbs, "run", run, "serve until SIGTERM; what is done when no verb is given")
    for row in HOST_SETTINGS:
        if row.flag:
            option, _, metavar = row.flag.partition(" ")
            parser.add_argument(option, dest=row.key, metavar=metavar, help=row.meaning)
    parser.add_argument("--demo", action="store_true", help="with three pretend phones, a board, a cloud and a session")


def _add_tokens(verbs: Verbs) -> None:
    group = verbs.add_parser("token", help="tokens for clients that should exclude each other")
    kinds = group.add_subparsers(metavar="ACTION", required=True)
    for name, action, text in (
        ("add", token_add, "make a token and show it, once"),
        ("remove", token_remove, "let a token go; it is refused from the next request on"),
    ):
        _verb(kinds, name, action, text).add_argument("name", metavar="NAME")
    _verb(kinds, "list", token_list, "name every token")


def _add_devices(verbs: Verbs) -> None:
    group = verbs.add_parser("devices", help="which devices there are; a running agent follows")
    kinds = group.add_subparsers(metavar="ACTION", required=True)
    add = _verb(kinds, "add", devices_add, "add a device")
    add.add_argument("id", metavar="ID")
    add.add_argument("--kind", metavar="KIND", required=True, help="board, simulated, android or iphone")
    add.add_argument("--url", metavar="URL", help="of a board (default: its address on the cable) or WebDriverAgent")
    add.add_argument("--serial", metavar="S", help="of an Android device, as adb names it")
    add.add_argument("--interface", metavar="IF", help="network interface that a board is behind, such as usb0")
    _verb(kinds, "remove", devices_remove, "remove a device").add_argument("id", metavar="ID")
    _verb(kinds, "test", devices_test, "ask a device how it is").add_argument("id", metavar="ID")
    _verb(kinds, "list", devices_list, "name every device")
    _verb(kinds, "scan", devices_scan, "name every Android phone that adb knows, for --serial")


def settings(arguments: argparse.Namespace) -> HostSettings:
    """The settings in force, with what the command line said."""
    flags = {key: getattr(arguments, key, None) for key in ("config", "data", *(row.key for row in HOST_SETTINGS))}
    return host_config.load(flags)


# --- run ---------------------------------------------------------------------------------------


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT; the URL is printed as it really is, where a program can wait for it."""
    in_force = settings(arguments)
    logs.configure(in_force.log, in_force.log_level)
    if arguments.demo:
        return _demo(in_force)

    from mcpboard import host
    from mcpboard.serving import server

    sockets = listeners(in_force)
    with contextlib.closing(sockets[0]), contextlib.closing(host.build(in_force)) as role:
        announce = functools.partial(print, f"device-host-agent: serving {server.url(sockets[0])}", flush=True)
        return server.serve(role.app, sockets, announce, host.THREADS, host.CONNECTIONS)


def _demo(in_force: HostSettings) -> int:
    try:
        from mcpboard.cli.host import host_demo
    except ModuleNotFoundError as missing:
        if missing.name != "PIL":
            raise
        raise ConfigError(str(missing)) from None  # it says what to install
    return host_demo.demo(in_force)


def listeners(in_force: HostSettings) -> list[socket.socket]:
    """The one bound socket that the settings ask for; ConfigError with this program's own flags in it."""
    from mcpboard.serving import server

    try:
        return server.listeners([(in_force.bind_host, in_force.port)])
    except ConfigError as error:
        problem = f"{str(error).partition(';')[0]}; choose another with --port or --bind"
        if isinstance(error, AddressTaken):
            raise AddressTaken(problem, error.port) from None
        raise ConfigError(problem) from None


# --- tokens ------------------------------------------------------------------------------------


def mcp_token(arguments: argparse.Namespace) -> int:
    """Print the token alone; hints go to a terminal's standard error."""
    from mcpboard.host.access import tokens

    in_force = settings(arguments)
    file = in_force.folder / tokens.TOKEN_FILE
    if not file.exists() and not file.is_symlink():
        print(f"device-host-agent: {file}: no token yet; start the host agent once", file=sys.stderr)
        return 1
    found = tokens.read_main_token(in_force.folder)
    if arguments.json:
        print(json.dumps({"url": in_force.url, "headers": {"Authorization": f"Bearer {found}"}}, indent=2))
        return 0
    print(found)
    if sys.stdout.isatty():
        print(f"URL:    {in_force.url}\nheader: Authorization: Bearer {found}\nfile:   {file}", file=sys.stderr)
    return 0


def token_add(arguments: argparse.Namespace) -> int:
    """Print a new token; only its digest is kept."""
    from mcpboard.host.access import tokens

    print(tokens.add_named(settings(arguments).folder, arguments.name))
    print("device-host-agent: keep it now, it cannot be shown again", file=sys.stderr)
    return 0


def token_remove(arguments: argparse.Namespace) -> int:
    """Let the token of that name go."""
    from mcpboard.host.access import tokens

    tokens.remove_named(settings(arguments).folder, arguments.name)
    return 0


def token_list(arguments: argparse.Namespace) -> int:
    """Print name and date of every named token, never the token."""
    from mcpboard.host.access import tokens

    for each in tokens.named(settings(arguments).folder):
        print(f"{each.name}  {each.created_at}")
    return 0


# --- devices -----------------------------------------------------------------------------------


def devices_add(arguments: argparse.Namespace) -> int:
    """Write a device down; its address is checked, the device itself need not be there."""
    from mcpboard.host.devices import registry
    from mcpboard.host.drivers import factory

    spec = registry.DeviceSpec(arguments.id, arguments.kind, arguments.url, arguments.serial, arguments.interface)
    factory.check(spec)
    registry.add(settings(arguments).folder, spec)
    return 0


def devices_remove(arguments: argparse.Namespace) -> int:
    """Strike a device out."""
    from mcpboard.host.devices import registry

    registry.remove(settings(arguments).folder, arguments.id)
    return 0


def devices_list(arguments: argparse.Namespace) -> int:
    """Print every device as it is written down; where there is none, a hint goes to standard error."""
    from mcpboard.host.devices import registry

    found = registry.specs(settings(arguments).folder)
    if not found:
        print("device-host-agent: no devices; add one: device-host-agent devices add ID --kind KIND", file=sys.stderr)
    for spec in found:
        print("  ".join(f"{value}" if name == "id" else f"{name}={value}" for name, value in spec.written().items()))
    return 0


def devices_scan(arguments: argparse.Namespace) -> int:
    """Print every phone that adb knows, with what to do about one that is not ready; 0 when there is one."""
    from mcpboard.errors import ToolFailed
    from mcpboard.host.drivers import factory

    try:
        found = factory.adb_server(settings(arguments)).devices()
    except ToolFailed as error:
        print(f"device-host-agent: {error}", file=sys.stderr)
        return 1
    for phone in found:
        print("  ".join(word for word in (phone.serial, phone.state, phone.model, phone.cure) if word))
    return 0 if found else 1


def devices_test(arguments: argparse.Namespace) -> int:
    """Ask the device how it is; 0 when it is ready. Nothing on it is touched."""
    from mcpboard.host.devices import registry
    from mcpboard.host.drivers import base

    in_force = settings(arguments)
    spec = next((each for each in registry.specs(in_force.folder) if each.id == arguments.id), None)
    if spec is None:
        raise ConfigError(f"there is no device {arguments.id}; `devices list` names them")
    probe = _probe(spec, in_force)
    print(json.dumps({"id": spec.id, "kind": spec.kind, "state": probe.state, **probe.details}))
    return 0 if probe.state == base.READY else 1


def _probe(spec: DeviceSpec, in_force: HostSettings) -> Probe:
    from mcpboard.host.drivers import factory

    driver = factory.driver(spec, factory.adb_server(in_force))
    try:
        return driver.probe()
    finally:
        driver.close()


# --- the cloud ---------------------------------------------------------------------------------


def enrol(arguments: argparse.Namespace) -> int:
    """Join the cloud at the URL; from a terminal the token is read without being shown."""
    from mcpboard.host import cloud
    from mcpboard.host.cloud.enrollment import LONGEST_TOKEN

    in_force = settings(arguments)
    longest = LONGEST_TOKEN + 2  # with its end of line, and one that is too long shows
    token = getpass.getpass("enrolment token: ") if sys.stdin.isatty() else sys.stdin.readline(longest)
    found = cloud.enrol(arguments.url, token, Path(in_force.identity_path), in_force.cloud_proxy)
    print(f"device-host-agent: enrolled at {found.url} as {found.host_id}; it counts from the next start on")
    return 0


# --- doctor ------------------------------------------------------------------------------------


def doctor(arguments: argparse.Namespace) -> int:
    """Print a line for each check, `ok` or what to do; 0 when all is well."""
    logs.configure("stderr", "warning")
    from mcpboard.cli.host import host_doctor

    return host_doctor.doctor(settings(arguments))
