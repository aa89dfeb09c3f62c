"""`mcpboard connect`: what a known client needs to be told, printed, or written where it belongs."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from typing import Any

from mcpboard import client_configs, config
from mcpboard.cli.call import token_from
from mcpboard.cli.config import Verbs
from mcpboard.client_configs import CLIENT_CONFIGS, ClientConfig, Target, Token
from mcpboard.errors import ConfigError


def add_to(verbs: Verbs) -> None:
    """Add the verb `connect`."""
    parser = verbs.add_parser("connect", help="print or write the configuration of a known client")
    _add_word(parser, "client", help="one of those that --list prints")
    _add_word(parser, "url", default=client_configs.USB_URL, help="(default: %(default)s)")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--list", action="store_true", help="list the known clients")
    action.add_argument("--write", action="store_true", help="write it into the client's file, keeping a backup")
    action.add_argument("--undo", action="store_true", help="make the file what it was before the latest write")
    parser.add_argument("--name", default=client_configs.NAME, help="the server's name there (default: %(default)s)")
    parser.add_argument("--token-file", metavar="FILE", help="file with the bearer token that the server wants")
    parser.add_argument("--host", action="store_true", help="the host agent of this computer: its URL and its token")
    parser.add_argument("--data", metavar="DIR", help="with --host: where its token is (default: tasks)")
    parser.add_argument("--file", metavar="PATH", help="the client's file, where it is not in its usual place")
    parser.set_defaults(run=connect)


def _add_word(parser: argparse.ArgumentParser, name: str, **options: Any) -> None:
    """Add a word that may be left out, and may come after options.

    With nargs="?" argparse would take both words as given at the first of them.
    """
    parser.add_argument(name, metavar=f"[{name.upper()}]", **options).required = False


def connect(arguments: argparse.Namespace) -> int:
    """The form on standard output, everything else on standard error; then a handshake with the server."""
    if arguments.list:
        print(_table())
        return 0
    form = _form(arguments.client)
    if arguments.undo:
        return _undo(form, arguments)
    target = _target(arguments)
    if arguments.write:
        _write(form, target, arguments)
    else:
        print(form.text(target))
        _say(*_where(form, target, arguments))
    _say(*_token_notes(form, target), *form.notes)
    return _greet(target, _host_command("doctor", arguments) if arguments.host else f"mcpboard doctor {target.url}")


def _form(key: str | None) -> ClientConfig:
    form = client_configs.find(key or "")
    if form is None:
        known = ", ".join(form.key for form in CLIENT_CONFIGS)
        raise ConfigError(f"{f'{key} is not known' if key else 'name a client'}; there are: {known}")
    return form


def _target(arguments: argparse.Namespace) -> Target:
    from mcpboard.transport.http import HttpClient

    if arguments.host:
        _take_host(arguments)
    if not client_configs.is_name(arguments.name):
        raise ConfigError("--name: a letter, then letters, digits, hyphens and underscores, 64 in all at the most")
    token = None
    if arguments.token_file is not None:
        file = os.path.abspath(arguments.token_file)
        token = Token(file, token_from(file), _host_command("mcp-token", arguments) if arguments.host else "")
    url = HttpClient(arguments.url, None if token is None else token.value).url
    return Target(url, arguments.name, token, _program())


def _take_host(arguments: argparse.Namespace) -> None:
    """Fill in what the command line did not say from the host agent of this computer."""
    from mcpboard.host import config as host_config
    from mcpboard.host.access.tokens import TOKEN_FILE

    settings = host_config.load({"data": arguments.data})
    arguments.data = str(settings.folder)
    if arguments.url == client_configs.USB_URL:
        arguments.url = settings.url
    if arguments.name == client_configs.NAME:
        arguments.name = client_configs.HOST_NAME
    if arguments.token_file is None:
        arguments.token_file = str(settings.folder / TOKEN_FILE)
        if not os.path.exists(arguments.token_file):
            raise ConfigError(f"{arguments.token_file}: there is no token yet; start the host agent once")


def _host_command(verb: str, arguments: argparse.Namespace) -> str:
    return f"device-host-agent {verb} --data {shlex.quote(arguments.data)}"


def _program() -> tuple[str, ...]:
    """How a program that knows no PATH of ours starts mcpboard."""
    script = os.path.join(os.path.dirname(sys.executable), "mcpboard.exe" if sys.platform == "win32" else "mcpboard")
    return (script,) if os.path.exists(script) else (sys.executable, "-m", "mcpboard")


def _path(form: ClientConfig, arguments: argparse.Namespace) -> str:
    from mcpboard.laptop import connect

    if arguments.file is not None and form.format != "steps":
        return os.path.abspath(str(arguments.file))
    return connect.path_of(form, sys.platform, config.user_folders())


def _write(form: ClientConfig, target: Target, arguments: argparse.Namespace) -> None:
    from mcpboard.laptop import connect

    path = _path(form, arguments)
    try:
        written = connect.write(form, target, path)
    except ConfigError:  # it says to add the form by hand
        print(form.text(target))
        raise
    if not written.backup:
        _say(f"{written.path} says so already; nothing was changed")
        return
    before = "there was none before" if written.is_new else f"what it was is kept in {written.backup}"
    _say(f"{written.path} is written; {before}")
    if form.reload:
        _say(f"{form.title}: {form.reload}")


def _undo(form: ClientConfig, arguments: argparse.Namespace) -> int:
    from mcpboard.laptop import connect

    path = connect.undo(_path(form, arguments)).path
    _say(f"{path} is what it was before" if os.path.exists(path) else f"{path} is gone, as it was before")
    return 0


def _where(form: ClientConfig, target: Target, arguments: argparse.Namespace) -> list[str]:
    place = form.place(sys.platform)
    lines = [f"belongs into {arguments.file or place}; `{_writing(target, arguments)}` puts it there"] if place else []
    return lines + ([f"or: {form.command(target)}"] if form.command else [])


def _writing(target: Target, arguments: argparse.Namespace) -> str:
    """The command that writes what was printed: the same words, and `--write`."""
    words = ["mcpboard", "connect", arguments.client, *([] if target.url == client_configs.USB_URL else [target.url])]
    if target.name != client_configs.NAME:
        words += ["--name", target.name]
    if target.token is not None:
        words += ["--token-file", target.token.file]
    if arguments.file is not None:
        words += ["--file", arguments.file]
    return shlex.join([*words, "--write"])


def _token_notes(form: ClientConfig, target: Target) -> list[str]:
    """Where the token comes from, and whether the form holds it."""
    if target.token is None:
        return []
    notes = {
        "variable": f'set it where the client is started: export {target.variable}="$({target.token.command})"',
        "file": f"the token stays in {target.token.file}",
        "prompt": f"{form.title} asks for the token once, and keeps it",
        "value": f"the form holds the token itself, for {form.title} takes nothing else: mind who reads it",
    }
    return [notes["file" if form.format == "steps" else form.token]]


def _greet(target: Target, doctor: str) -> int:
    from mcpboard.laptop import connect

    well, words = connect.greet(target, doctor)
    _say(words)
    return 0 if well else 1


def _say(*lines: str) -> None:
    for line in lines:
        print(line, file=sys.stderr)


def _table() -> str:
    rows = [("CLIENT", "NAME", "FORM", "FILE"), *map(_row, CLIENT_CONFIGS)]
    key, title, form = (max(len(row[column]) for row in rows) for column in range(3))
    return "\n".join(f"{row[0]:{key}}  {row[1]:{title}}  {row[2]:{form}}  {row[3]}" for row in rows)


def _row(form: ClientConfig) -> tuple[str, str, str, str]:
    return form.key, form.title, form.format, form.place(sys.platform) or "by hand"
