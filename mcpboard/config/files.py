"""Files on disk: settings read whole, parsed and looked at again, and new content staged for a rename.

The only reader of TOML; what the tables mean is for `config` to say. A refusal names the cure.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mcpboard.errors import ConfigError

pwd: Any
try:
    import pwd
except ImportError:  # on Windows, where a laptop's verbs run
    pwd = None

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LARGEST_FILE = 1 << 20  # bytes; the Agent reads no more of its own either
SHORTEST_TOKEN = 16  # characters; fewer can be tried out over a network


@dataclass(frozen=True)
class Document:
    """One settings file: where it is, and its tables."""

    path: str
    content: Mapping[str, Any]

    def table(self, name: str) -> Mapping[str, Any]:
        """Return the table of that dotted name, empty when it is not there; "" is the whole file."""
        table: Mapping[str, Any] = self.content
        for part in name.split(".") if name else ():
            table = table.get(part, {})
            if not isinstance(table, dict):
                raise ConfigError(f"{self.path}: {name}: a table is expected, not a value")
        return table


def look(path: str | os.PathLike[str], *, follow_links: bool = True) -> tuple[int, ...] | None:
    """Return how a file looks from outside, to tell if it has changed; None while it cannot be seen."""
    try:
        seen = os.stat(path, follow_symlinks=follow_links)
    except OSError:
        return None
    # ctime as well: a cured permission changes nothing else.
    return seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns


def staged_file(path: str | os.PathLike[str], content: bytes) -> str:
    """Write `content` to a new file beside `path`, on the disk and private to this user; return its path.

    Rename it over `path` to replace that in one step, so that a crash leaves the old file or the
    new one, each whole. Its name is `.NAME.` and random letters, by which a torn one is known.
    Raises OSError, and leaves no file then.
    """
    folder, name = os.path.split(path)
    number, staged = tempfile.mkstemp(prefix=f".{name}.", dir=folder or os.curdir)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(number)
    except BaseException:
        os.unlink(staged)
        raise
    return staged


class _Missing(ConfigError):
    """The file is not there."""


class Files:
    """Read files, and remember how each looked just before, also where there was none.

    A file in `present` had content at the last good reading, and must not be without it now.
    """

    def __init__(self, present: Iterable[str] = ()) -> None:
        self._required = frozenset(present)
        self.looks: dict[str, tuple[int, ...] | None] = {}
        self.present: set[str] = set()

    def toml(self, path: str, named_by: str | None) -> Document | None:
        """Return the file's tables, or None when it is missing and nobody named it."""
        try:
            content = self.read(path, named_by)
        except _Missing:
            if named_by or path in self._required:
                raise
            return None
        return Document(path, _parsed(path, content))

    def read(self, path: str, named_by: str | None) -> bytes:
        """Return the content, at most LARGEST_FILE bytes."""
        self.looks[path] = look(path)
        try:
            with open(path, "rb") as file:
                content = file.read(LARGEST_FILE + 1)
        except (FileNotFoundError, NotADirectoryError):
            raise _Missing(f"{path}: no such file" + (f"; {named_by} names it" if named_by else "")) from None
        except PermissionError:
            user = _user()
            raise ConfigError(
                f"{path}: user {user} may not read it; let its group read it (chmod g+r, and g+x on the directories "
                f"above) and put {user} into that group"
            ) from None
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
        if len(content) > LARGEST_FILE:
            raise ConfigError(f"{path}: larger than the {LARGEST_FILE} bytes that a settings file may have")
        if content:
            self.present.add(path)
        elif path in self._required:  # an editor that writes in place empties the file first
            raise ConfigError(f"{path}: is empty now")
        return content

    def token(self, path: str) -> bytes:
        """Return the bearer token that a token file holds, without the spaces around it; ConfigError with the cure."""
        token = self.read(path, named_by="token_file").strip()
        if not token:
            raise ConfigError(f"{path}: the token file is empty; write a token into it, or leave token_file out")
        if len(token) < SHORTEST_TOKEN:
            raise ConfigError(f"{path}: the token is shorter than {SHORTEST_TOKEN} characters; write a longer one")
        if not all(0x21 <= byte <= 0x7E for byte in token):  # what a header can carry without a space
            raise ConfigError(f"{path}: a token is one line of visible ASCII characters without spaces")
        return token


def _user() -> str:
    """Return the name of this process's user, or its number, as a service may have."""
    if pwd is None:
        return "this"
    try:
        return str(pwd.getpwuid(os.geteuid()).pw_name)
    except KeyError:
        return str(os.geteuid())


def user_home() -> str:
    """Return the home folder in this system's list of users, "" where there is none."""
    try:
        return "" if pwd is None else str(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:
        return ""


def _parsed(path: str, raw: bytes) -> dict[str, Any]:
    if raw.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        raise ConfigError(f"{path}: begins with a byte order mark (BOM); save it as UTF-8 without one")
    try:
        content: dict[str, Any] = tomllib.loads(raw.decode())
        return content
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}: line {line}: not UTF-8; save the file as UTF-8") from None
    except (ValueError, RecursionError) as error:
        last = raw.count(b"\n") + 1  # the parser does not number the end
        reason = str(error).replace("at end of document", f"at line {last}, the end of the file")
        raise ConfigError(f"{path}: not valid TOML: {reason}") from None
