"""Rows of the settings tables, the converters that they name, and how layers of values are resolved."""

# A converter turns a TOML value (or a flag's text) into its typed form, or raises ConfigError whose
# message says only what is expected; `read`, which knows where the value was written, puts file,
# key and value in front. Nothing is guessed: a quoted "false" is no boolean, `8080` no address.

from __future__ import annotations

import ipaddress
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from mcpboard.config.files import Document
from mcpboard.errors import ConfigError
from mcpboard.net import HIGHEST_PORT, host_port, in_url, is_loopback, parse_authority

OURS = "mcpboard"  # the table of our own file
MIB = 1 << 20  # bytes
LONGEST_PATH = 4096  # characters; Linux takes no more bytes

LOG_LEVELS = ("debug", "info", "warning", "error", "critical")
LOG_PLACES = ("stderr", "syslog")

_ADDRESS = re.compile(r"(?:\[(?P<v6>[^\[\]]+)\]|(?P<host>[^:\[\]]+)):(?P<port>[0-9]{1,5})")
_HOST_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?")

_ADDRESS_FORMS = "an address is HOST:PORT, [IPv6]:PORT or *:PORT, such as 127.0.0.1:8090"
_BASE_URL_FORM = "only http:// to this machine itself (127.0.0.0/8, [::1] or localhost), with a port or without"


class Address(NamedTuple):
    """Where to listen. `host` is an IP literal without brackets, a name, or `*` for every address."""

    host: str
    port: int

    def __str__(self) -> str:
        return host_port(self.host, self.port)


# --- converters --------------------------------------------------------------------------------


def boolean(value: object) -> bool:
    """Take a TOML true or false, nothing that merely looks like one: a guess could open the shell."""
    if isinstance(value, bool):
        return value
    raise ConfigError("only true or false, without quotes")


def size(value: object) -> int:
    """Take a whole number of bytes, at least one, and no more than a file can have."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 63:
        return value
    raise ConfigError("a whole number of bytes above 0 is expected, without quotes")


def file_path(value: object) -> str:
    """Return a file's absolute path; a relative one counts from the working directory."""
    # A Linux path may hold anything but NUL.
    if not isinstance(value, str) or not value or "\0" in value or len(value) > LONGEST_PATH:
        raise ConfigError("the path of a file is expected")
    try:
        return os.path.abspath(value)
    except OSError:
        raise ConfigError("an absolute path is needed, because the working directory is gone") from None


def log(value: object) -> str:
    """Take `stderr`, `syslog`, or a path, which becomes absolute."""
    if isinstance(value, str) and value.lower() in LOG_PLACES:
        return value.lower()
    return file_path(value)


def log_level(value: object) -> str:
    """Return one of the five level names, in lower case."""
    if isinstance(value, str) and value.lower() in LOG_LEVELS:
        return value.lower()
    raise ConfigError(f"one of {', '.join(LOG_LEVELS)} is expected")


def listen(value: object) -> tuple[Address, ...]:
    """Return one address or a list of them, in the order written, none of them twice."""
    written = value if isinstance(value, (list, tuple)) else [value]
    addresses = tuple(address(one) for one in written)
    if not addresses:
        raise ConfigError(f"at least one address is needed; {_ADDRESS_FORMS}")
    if len(set(addresses)) < len(addresses):
        raise ConfigError("an address is listed twice")
    return addresses


def address(value: object) -> Address:
    """Read HOST:PORT, [IPv6]:PORT or *:PORT; port 0 takes any free one."""
    found = _ADDRESS.fullmatch(value) if isinstance(value, str) else None
    if found is None or int(found["port"]) > HIGHEST_PORT:
        raise ConfigError(_ADDRESS_FORMS)
    host: str = found["v6"] or found["host"]
    try:
        if found["v6"]:
            host = str(ipaddress.IPv6Address(host))
        elif re.fullmatch(r"[0-9.]+", host):  # a name of only digits is a mistyped IPv4 literal
            host = str(ipaddress.IPv4Address(host))
        elif host != "*" and not _HOST_NAME.fullmatch(host):
            raise ConfigError(_ADDRESS_FORMS)
    except ValueError:
        raise ConfigError(f"{host} is no IP address; {_ADDRESS_FORMS}") from None
    return Address(host, int(found["port"]))


def base_url(value: object) -> str:
    """Return a backend's base URL on loopback, without the slash at the end.

    The backends trust whoever reaches them, so nothing but this machine may be named.
    """
    scheme, _, rest = value.partition("://") if isinstance(value, str) else ("", "", "")
    authority = parse_authority(rest.removesuffix("/"))
    if authority is None or scheme.lower() != "http" or not is_loopback(str(authority[0])):
        raise ConfigError(_BASE_URL_FORM)
    host, port = authority
    return f"http://{in_url(str(host))}" + (f":{port}" if port else "")


# --- rows and layers -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    """One row: the key as written in its table, its default, and what a person has to know.

    `read` turns a TOML value or a flag's text into the field of `Settings`, or raises
    ConfigError with what it expects. `flag` is written as the help shows it. A setting that
    is not `live` keeps its value until the next start.
    """

    key: str
    default: Any
    read: Callable[[object], Any]
    unit: str
    meaning: str
    flag: str | None = None
    live: bool = True
    table: str = OURS

    @property
    def option(self) -> str:
        """The flag without what follows it; empty where there is no flag."""
        return (self.flag or "").partition(" ")[0]


class Found(NamedTuple):
    """A typed value, and where it was written: "default", a flag, a variable, or a file's absolute path."""

    value: Any
    source: str


Layer = Mapping[str, Found]  # by the key of a Setting


def defaults(rows: Iterable[Setting]) -> Layer:
    """Return the layer under all others."""
    values = {row.key: None if row.default is None else read(row, row.default, "default") for row in rows}
    return {key: Found(value, "default") for key, value in values.items()}


def from_table(
    rows: Iterable[Setting], document: Document, name: str, faults: dict[str, str] | None = None
) -> dict[str, Found]:
    """Return what the table `name` of a file sets; other keys are left for the caller to judge.

    What is wrong raises ConfigError; with `faults` the complaint is kept there instead, under the key
    whose value it is, and under every key where there is no table.
    """
    layer: dict[str, Found] = {}
    for row in rows:
        try:
            table = document.table(name)
            if row.key in table:
                place = f"{document.path}: [{name}] {row.key}"
                layer[row.key] = Found(read(row, table[row.key], place), document.path)
        except ConfigError as error:
            if faults is None:
                raise
            faults[row.key] = str(error)
    return layer


def from_flags(rows: Iterable[Setting], flags: Mapping[str, object]) -> Layer:
    """Return what the command line sets; None is the same as not given."""
    given = [row for row in rows if row.flag and flags.get(row.key) is not None]
    return {row.key: Found(read(row, flags[row.key], row.option), row.option) for row in given}


def read(row: Setting, value: object, place: str) -> Any:
    """Return the typed form of `value`; ConfigError that begins with `place`, where it was written."""
    try:
        return row.read(value)
    except ConfigError as error:
        try:
            written = json.dumps(value, ensure_ascii=False, default=str)
        except ValueError:  # a whole number written with thousands of digits
            written = "a huge number"
        _, at, after = written.rpartition("@")
        shown = f"...@{after}" if at else written  # without the user info that a URL may carry
        shown = shown if len(shown) <= 80 else f"{shown[:77]}..."  # characters; the message keeps to a line
        raise ConfigError(f"{place} = {shown}: {error}") from None
