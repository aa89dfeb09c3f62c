"""`device-host-agent run` and `doctor`: serve MCP in front of the devices of this computer, and examine them."""

from __future__ import annotations

import argparse
import contextlib
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import replace

from mcpboard.cli import logs
from mcpboard.cli.config import Verbs
from mcpboard.cli.host import add_verb, command, settings
from mcpboard.doctor import Finding, report
from mcpboard.errors import AddressTaken, ConfigError
from mcpboard.host import running
from mcpboard.host.config import HOST_SETTINGS, HostSettings
from mcpboard.protocol.limits import HOST_STACK_BYTES


def add_to(verbs: Verbs) -> None:
    """Add the verb `run`, with a flag for each row of HOST_SETTINGS that has one, and the verb `doctor`."""
    sentence = "Serve MCP in front of this computer's devices until SIGTERM, as without any verb."
    parser = add_verb(verbs, "run", run, sentence, "run --port 8765")
    for row in HOST_SETTINGS:
        if row.flag:
            option, _, metavar = row.flag.partition(" ")
            parser.add_argument(option, dest=row.key, metavar=metavar, help=row.meaning)
    parser.add_argument(
        "--demo", action="store_true", help="with three simulated phones, a board, a cloud and a session"
    )
    sentence = "Check settings, files, port and devices, and name what fixes each; exit code 1 when a check failed."
    add_verb(verbs, "doctor", doctor, sentence).add_argument("--json", action="store_true", help="as one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT; the URL is printed as it really is, where a program can wait for it.

    The folder belongs to this process before anything in it is read, and before the port is opened.
    """
    effective = settings(arguments)
    logs.configure(effective.log, effective.log_level)
    threading.stack_size(HOST_STACK_BYTES)  # of every thread that is made from here on
    with running.exclusive(effective.folder) as note_url:
        if arguments.demo:
            return _demo(effective, note_url)

        from mcpboard import host
        from mcpboard.serving import server

        sockets = _listeners(effective)
        token_command = command(effective, "mcp-token")
        with (
            contextlib.closing(sockets[0]),
            contextlib.closing(host.build(effective, token_command=token_command)) as role,
        ):

            def announce() -> None:
                note_url(server.local_url(sockets[0]))
                logs.announce("device-host-agent", [server.url(sockets[0])], effective.log)
                if sys.stderr.isatty():
                    print(f"device-host-agent: its token: {token_command}", file=sys.stderr)

            return server.serve(role.app, sockets, announce, host.THREADS, host.CONNECTIONS)


def _demo(effective: HostSettings, note_url: Callable[[str], None]) -> int:
    try:
        from mcpboard.cli.host import host_demo
    except ModuleNotFoundError as missing:
        if missing.name != "PIL":
            raise
        raise ConfigError(str(missing)) from None  # it says what to install
    from mcpboard.serving import server

    sockets = _listeners(effective, or_any=effective.sources["port"] == "default")
    with contextlib.closing(sockets[0]):
        note_url(server.local_url(sockets[0]))
        return host_demo.demo(effective, sockets)


def _listeners(effective: HostSettings, or_any: bool = False) -> list[socket.socket]:
    """Return the one bound socket that the settings ask for, on any free port if need be and `or_any`.

    Raises ConfigError with this program's own flags in it.
    """
    from mcpboard.serving import server

    try:
        return server.listeners([(effective.bind_host, effective.port)])
    except ConfigError as error:
        if or_any and isinstance(error, AddressTaken):
            return server.listeners([(effective.bind_host, 0)])
        raise ConfigError(f"{str(error).partition(';')[0]}; choose another with --port or --bind") from None


def doctor(arguments: argparse.Namespace) -> int:
    """Run every check and print each finding; 0 when none failed, else 1."""
    from mcpboard.host.doctor import examine

    def for_this_folder(finding: Finding) -> Finding:
        """Return the finding; a verb of ours in its remedy becomes one for the folder that was examined."""
        verb, bracket, note = finding.result.remedy.partition(" (")
        program, _, words = verb.partition(" ")
        if program != "device-host-agent":
            return finding
        try:
            remedy = command(settings(arguments), *words.split())
        except ConfigError:
            return finding
        return replace(finding, result=replace(finding.result, remedy=f"{remedy}{bracket}{note}"))

    logs.configure("stderr", "warning")
    return report(map(for_this_folder, examine(lambda: settings(arguments))), arguments.json)
