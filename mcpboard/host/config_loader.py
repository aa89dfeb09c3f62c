"""Where the host's settings come from: flag > environment > [host] of `--config FILE` > default."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from mcpboard import config
from mcpboard.config.schema import file_path
from mcpboard.errors import ConfigError
from mcpboard.host.config import HOST, HOST_SETTINGS, IDENTITY_FILE, HostSettings, truth
from mcpboard.text import did_you_mean

BIND_VARIABLE = "HOST_AGENT_CONSOLE_BIND_HOST"
ALLOW_VARIABLE = "HOST_AGENT_CONSOLE_ALLOW_NON_LOOPBACK"

__all__ = ["ALLOW_VARIABLE", "BIND_VARIABLE", "load"]


def load(flags: Mapping[str, object] | None = None, environ: Mapping[str, str] = os.environ) -> HostSettings:
    """The host's settings in force now.

    `flags` maps keys of HOST_SETTINGS, `config` for the file and `data` for the folder of the
    identity to what the command line said; None is the same as not said. Raises ConfigError, one
    line with the cure.
    """
    said = {name: value for name, value in (flags or {}).items() if value is not None}
    written = _from_file(said.get("config")) | _from_environment(environ) | _from_flags(said)
    found = {row.key: written.get(row.key, (row.default, "default")) for row in HOST_SETTINGS}
    values = {row.key: config.valid(row, *found[row.key]) for row in HOST_SETTINGS}
    return HostSettings.checked(values, {key: source for key, (_, source) in found.items()})


Written = dict[str, "tuple[Any, str]"]  # key -> the value as written, and where


def _from_file(named: object) -> Written:
    if named is None:
        return {}
    path = file_path(named)
    table = config.table(path, HOST, "--config")
    known = [row.key for row in HOST_SETTINGS]
    for key in table:
        if key not in known:
            raise ConfigError(f"{path}: unknown key {key!r} in [{HOST}]; {did_you_mean(key, known)}")
    return {key: (value, f"{path}: [{HOST}] {key}") for key, value in table.items()}


def _from_environment(environ: Mapping[str, str]) -> Written:
    written: Written = {}
    if BIND_VARIABLE in environ:  # an empty one is a mistake, and no wish for the default
        written["bind_host"] = (environ[BIND_VARIABLE], BIND_VARIABLE)
    if ALLOW_VARIABLE in environ:
        written["allow_non_loopback"] = (truth(environ[ALLOW_VARIABLE]), ALLOW_VARIABLE)
    return written


def _from_flags(said: Mapping[str, object]) -> Written:
    written: Written = {row.key: (said[row.key], row.option) for row in HOST_SETTINGS if row.flag and row.key in said}
    if "data" in said:
        written["identity_path"] = (os.path.join(file_path(said["data"]), IDENTITY_FILE), "--data")
    return written
