"""`device-host-agent mcp-token` and `token`: the token that clients need, and further ones with names."""

from __future__ import annotations

import argparse
import json
import sys

from mcpboard.cli import config
from mcpboard.cli.config import Verbs
from mcpboard.cli.host import NO_TOKEN, add_action, add_verb, settings
from mcpboard.host import running
from mcpboard.host.access import tokens


def add_to(verbs: Verbs) -> None:
    """Add the verbs `mcp-token` and `token`."""
    main = add_verb(verbs, "mcp-token", mcp_token, "Print the token that clients need.")
    main.add_argument("--json", action="store_true", help="as the URL and the header of a client's configuration")
    sentence = "Add, remove and list tokens with names, for clients that exclude each other."
    group = config.add_verb(verbs, "token", sentence, "device-host-agent token add hermes")
    actions = group.add_subparsers(metavar="ACTION", required=True)
    add_action(actions, "add", add, "make a token and show it, once").add_argument("name", metavar="NAME")
    remove_text = "let a token go; it is refused from the next request on"
    add_action(actions, "remove", remove, remove_text).add_argument("name", metavar="NAME")
    add_action(actions, "list", list_named, "name every token")


def mcp_token(arguments: argparse.Namespace) -> int:
    """Print the token only; hints go to a terminal's standard error. The URL is the running agent's, if one runs."""
    effective = settings(arguments)
    file = effective.folder / tokens.TOKEN_FILE
    if not file.exists() and not file.is_symlink():
        print(f"device-host-agent: {file}: no token yet; {NO_TOKEN}", file=sys.stderr)
        return 1
    token = tokens.read_main_token(effective.folder)
    url = running.url(effective)
    if arguments.json:
        print(json.dumps({"url": url, "headers": {"Authorization": f"Bearer {token}"}}, indent=2))
        return 0
    print(token)
    if sys.stdout.isatty():
        print(f"URL:    {url}\nheader: Authorization: Bearer {token}\nfile:   {file}", file=sys.stderr)
    return 0


def add(arguments: argparse.Namespace) -> int:
    """Print a new token; only its digest is kept."""
    print(tokens.add_named(settings(arguments).folder, arguments.name))
    print("device-host-agent: keep it now, it cannot be shown again", file=sys.stderr)
    return 0


def remove(arguments: argparse.Namespace) -> int:
    """Let the token of that name go."""
    tokens.remove_named(settings(arguments).folder, arguments.name)
    return 0


def list_named(arguments: argparse.Namespace) -> int:
    """Print name and date of every named token, never the token."""
    for token in tokens.named(settings(arguments).folder):
        print(f"{token.name}  {token.created_at}")
    return 0
