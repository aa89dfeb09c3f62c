"""Verbs of `device-host-agent`, which is also `mcpboard host`. Board packages leave them out."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from mcpboard.cli import config
from mcpboard.cli.config import Verbs
from mcpboard.errors import ConfigError

if TYPE_CHECKING:
    from mcpboard.host.config import HostSettings

__all__ = ["add_action", "add_to", "add_verb", "command", "local_agent", "settings"]

NO_TOKEN = "start the host agent once, or name the folder of the one that runs with --data DIR"
USUAL_FOLDER = "default: the platform's, or tasks where that holds them"


def add_to(verbs: Verbs) -> None:
    """Add the menu's line for a command that has verbs of its own, and gets every word behind its name."""
    sentence = "Serve several devices behind one address; the same as `device-host-agent`, with verbs of its own."
    config.add_verb(verbs, "host", sentence, "mcpboard host --help")


def add_verb(
    verbs: Verbs, name: str, run: Callable[[argparse.Namespace], int], sentence: str, words: str = ""
) -> argparse.ArgumentParser:
    """Add one verb of the host, with the flags that all of them have; `words` follow it in its example."""
    return _add_flags(config.add_verb(verbs, name, sentence, f"device-host-agent {words or name}"), run)


def add_action(verbs: Verbs, name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
    """Add one action of a verb, with the same flags."""
    return _add_flags(verbs.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}."), run)


def _add_flags(parser: argparse.ArgumentParser, run: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
    parser.add_argument("--config", metavar="FILE", help="settings file; its table [host] counts")
    parser.add_argument("--data", metavar="DIR", help=f"folder of identity, token and devices; {USUAL_FOLDER}")
    parser.set_defaults(run=run)
    return parser


def settings(arguments: argparse.Namespace) -> HostSettings:
    """Return the effective settings, with what the command line said; raises ConfigError."""
    from mcpboard.host import config as host_config

    return host_config.load(vars(arguments))


def local_agent(data: str | None) -> tuple[str, str]:
    """Return URL and token file of this computer's agent, of its usual folder where `data` names none.

    ConfigError where it was never started there.
    """
    from mcpboard.host import config as host_config
    from mcpboard.host import running
    from mcpboard.host.access.tokens import TOKEN_FILE

    effective = host_config.load({"data": data})
    file = effective.folder / TOKEN_FILE
    if not file.exists():
        raise ConfigError(f"{file}: there is no token yet; {NO_TOKEN}")
    return running.url(effective), str(file)


def command(effective: HostSettings, *words: str) -> str:
    """Return the line for a shell by which the same program runs another verb on the same folder."""
    line = [*_program(), *words]
    if effective.config_file is not None:
        line += ["--config", effective.config_file]
    line += ["--data", str(effective.folder)]
    return subprocess.list2cmdline(line) if sys.platform == "win32" else shlex.join(line)


def _program() -> list[str]:
    """Return the words by which a shell starts `device-host-agent` in the way in which this process was started."""
    path = os.path.abspath(sys.argv[0])
    name, _ = os.path.splitext(os.path.basename(path))
    if name == "__main__":
        return [sys.executable, "-m", "mcpboard", "host"]
    found = shutil.which(name)
    start = [name if found is not None and os.path.realpath(found) == os.path.realpath(path) else path]
    return [*start, "host"] if name == "mcpboard" else start
