"""`mcpboard connect`: the config entry of a known client, printed, or written where it belongs."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Mapping
from typing import Any

from mcpboard import client_configs, config
from mcpboard.cli.call import token_from
from mcpboard.cli.config import Verbs, add_verb, print_columns
from mcpboard.client_configs import CLIENT_CONFIGS, ClientConfig, Target, Token
from mcpboard.errors import ConfigError
from mcpboard.laptop import connect as laptop
from mcpboard.transport.http import HttpClient

# How a config entry comes by the token -> what the person has to do or know.
TOKEN_NOTES: Mapping[str, str] = {
    "variable": 'set it where the client is started: export {variable}="$({command})"',
    "file": "the token stays in {file}",
    "prompt": "{client} asks for the token once, and keeps it",
    "value": "the config entry holds the token itself, for {client} takes nothing else: mind who reads it",
}


def add_to(verbs: Verbs) -> None:
    """Add the verb `connect`."""
    sentence = "Print the entry for a client's configuration, or write it into the client's file."
    parser = add_verb(verbs, "connect", sentence, "mcpboard connect cursor --write", connect)
    _add_word(parser, "client", help="one of those that --list prints")
    _add_word(parser, "url", default=client_configs.USB_URL, help="the server (default: %(default)s)")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--list", action="store_true", help="list the known clients")
    action.add_argument("--write", action="store_true", help="write it into the client's file, keeping a backup")
    action.add_argument("--undo", action="store_true", help="make the file what it was before the latest write")
    parser.add_argument("--name", default=client_configs.NAME, help="the server's name there (default: %(default)s)")
    parser.add_argument("--token-file", metavar="FILE", help="file with the bearer token that the server requires")
    parser.add_argument("--host", action="store_true", help="the host agent of this computer: its URL and its token")
    parser.add_argument("--data", metavar="DIR", help="with --host: where its files are, if not in their usual place")
    parser.add_argument("--force", action="store_true", help="with --write: change a file that is read-only, too")
    parser.add_argument("--file", metavar="PATH", help="the client's file, where it is not in its usual place")


def _add_word(parser: argparse.ArgumentParser, name: str, **options: Any) -> None:
    """Add a word that may be left out, and may come after options.

    With nargs="?" argparse would take both words as given at the first of them.
    """
    parser.add_argument(name, metavar=f"[{name.upper()}]", **options).required = False


def connect(arguments: argparse.Namespace) -> int:
    """Print the config entry, or write it, with all remarks on standard error; then a handshake with the server."""
    if arguments.list:
        rows = [("CLIENT", "NAME", "FORMAT", "FILE")]
        folders = config.user_folders()
        rows += [
            (each.key, each.title, each.format, laptop.place_of(each, sys.platform, folders)[0] or "by hand")
            for each in CLIENT_CONFIGS
        ]
        print_columns(rows)
        return 0
    client = next((each for each in CLIENT_CONFIGS if each.key == arguments.client), None)
    if client is None:
        known = ", ".join(each.key for each in CLIENT_CONFIGS)
        wrong = f"{arguments.client} is not known" if arguments.client else "name a client"
        raise ConfigError(f"{wrong}; there are: {known}")
    if arguments.undo:
        path = laptop.undo(_path(client, arguments))
        _say(f"{path} is what it was before" if os.path.exists(path) else f"{path} is gone, as it was before")
        return 0
    target = _target(arguments)
    if arguments.write:
        _write(client, target, arguments)
    else:
        _print(client, target, arguments)
    if target.token is not None:
        note = TOKEN_NOTES["file" if client.format == "steps" else client.token]
        token = target.token
        _say(note.format(variable=target.variable, command=token.command, file=token.file, client=client.title))
        if token.shown_by:  # the main token, which all clients get that are not given one of their own
            from mcpboard.host.access.owners import SHARED_TOKEN

            _say(SHARED_TOKEN)
    _say(*client.notes)
    doctor = _host_command("doctor", arguments) if arguments.host else f"mcpboard doctor {target.url}"
    connected, message = laptop.handshake(target, doctor)
    _say(message)
    return 0 if connected else 1


def _target(arguments: argparse.Namespace) -> Target:
    """Return the server as the client's configuration will name it.

    With --host, what the command line did not say is filled in from the host agent of this computer.
    """
    shown_by = ""
    if arguments.host:
        from mcpboard.cli.host import local_agent

        url, token_file = local_agent(arguments.data)
        if arguments.url == client_configs.USB_URL:
            arguments.url = url
        if arguments.name == client_configs.NAME:
            arguments.name = client_configs.HOST_NAME
        if arguments.token_file is None:
            arguments.token_file, shown_by = token_file, _host_command("mcp-token", arguments)
    if not client_configs.is_name(arguments.name):
        raise ConfigError("--name: a letter, then letters, digits, hyphens and underscores, 64 in all at the most")
    token = None
    if arguments.token_file is not None:
        file = os.path.abspath(arguments.token_file)
        token = Token(file, token_from(file), shown_by)
    url = HttpClient(arguments.url, None if token is None else token.value).url
    return Target(url, arguments.name, token, program())


def _host_command(verb: str, arguments: argparse.Namespace) -> str:
    from mcpboard.cli.host import command
    from mcpboard.host import config as host_config

    return command(host_config.load({"data": arguments.data}), verb)


def program() -> tuple[str, ...]:
    """Return the command by which a program that knows no PATH of ours starts mcpboard."""
    script = os.path.join(os.path.dirname(sys.executable), "mcpboard.exe" if sys.platform == "win32" else "mcpboard")
    return (script,) if os.path.exists(script) else (sys.executable, "-m", "mcpboard")


def _path(client: ClientConfig, arguments: argparse.Namespace) -> str:
    if arguments.file is not None and client.format != "steps":
        return os.path.abspath(str(arguments.file))
    return laptop.path_of(client, sys.platform, config.user_folders())


def _write(client: ClientConfig, target: Target, arguments: argparse.Namespace) -> None:
    path = _path(client, arguments)
    try:
        written = laptop.write(client, target, path, force=arguments.force)
    except ConfigError:  # it says to add the config entry by hand
        print(client.text(target))
        raise
    if written.is_restricted:
        _say(f"{written.path} and its backups are for you alone from now on (mode 600): the token stands in it")
    _say(*written.notes)
    if not written.backup:
        _say(f"{written.path} is already configured; nothing was changed")
        return
    before = "there was none before" if written.is_new else f"what it was is kept in {written.backup}"
    _say(f"{written.path} is written; {before}")
    if client.reload:
        _say(f"{client.title}: {client.reload}")


def _print(client: ClientConfig, target: Target, arguments: argparse.Namespace) -> None:
    """Print the config entry, and where it belongs with the command that puts it there: the same words, and --write."""
    print(client.text(target))
    if place := laptop.place_of(client, sys.platform, config.user_folders())[0]:
        words = ["mcpboard", "connect", client.key, *([] if target.url == client_configs.USB_URL else [target.url])]
        if target.name != client_configs.NAME:
            words += ["--name", target.name]
        if target.token is not None:
            words += ["--token-file", target.token.file]
        if arguments.file is not None:
            words += ["--file", arguments.file]
        _say(f"belongs into {arguments.file or place}; `{shlex.join([*words, '--write'])}` puts it there")
    if client.command:
        _say(f"or: {client.shell_command(target)}")


def _say(*lines: str) -> None:
    for line in lines:
        print(line, file=sys.stderr)
