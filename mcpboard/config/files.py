"""Files on disk: settings read whole, parsed and looked at again, and new content staged for a rename.

The only reader of TOML; what the tables mean is for `config` to say. A refusal names the cure.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
import tempfile
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from mcpboard.errors import ConfigError
from mcpboard.protocol.limits import CONTAINERS_LIMIT, SETTINGS_LIMIT, TOKEN_FILE_LIMIT, TOML_DEPTH_LIMIT
from mcpboard.text import bracket_levels, one_line

pwd: Any
try:
    import pwd
except ImportError:  # on Windows, where a laptop's verbs run
    pwd = None

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SHORTEST_TOKEN = 16  # characters; fewer can be tried out over a network
# Two changes within one tick of the kernel's clock, at most 10 ms, leave the same times.
UNSETTLED_NS = 50_000_000
ABANDONED_S = 3600.0  # age of a staged file that nobody will rename any more

# Wait for no writer of a FIFO, take no terminal as the controlling one, let no child inherit the file; on Windows
# read bytes as they are.
_READ_ONLY = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY", "O_BINARY"))

# A TOML text's strings and comments: in time proportional to its length, also where one is not closed.
_OPAQUE = re.compile(r'''"""[\s\S]*?(?:"{3,5}|\Z)|'{3}[\s\S]*?(?:'{3,5}|\Z)|"[^"\n]*"?|'[^'\n]*'?|#[^\n]*''')
_NO_SEPARATORS = bytes(set(range(256)) - set(b".=,[]{}\n"))
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


class Document(NamedTuple):
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


def settled(looks: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """Return what to compare the next look with, for a file that is about to be read.

    One that was changed just now is to be read again in any case: the next change might leave the same times.
    """
    if looks is None:
        return None
    # Below 0 the time is that of another clock, and no recent change.
    is_recent = 0 <= time.time_ns() - max(looks[2], looks[3]) < UNSETTLED_NS
    return () if is_recent else looks


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


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Remove what `staged_file` left beside `path` when its process was killed before the rename.

    Only files of this user, by the very form of their names, and an hour old: a younger one may be
    in somebody's hands.
    """
    folder, name = os.path.split(path)
    form = re.compile(rf"\.{re.escape(name)}\.[a-z0-9_]{{8}}")
    with contextlib.suppress(OSError):  # what cannot be listed or removed is no worse than before
        for entry in os.listdir(folder or os.curdir):
            if form.fullmatch(entry):
                leftover = os.path.join(folder, entry)
                status = os.lstat(leftover)
                ours = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
                if stat.S_ISREG(status.st_mode) and ours and time.time() - status.st_mtime > ABANDONED_S:
                    os.unlink(leftover)


class FileMissing(ConfigError):
    """The file is not there."""


def read_file(path: str, largest: int = SETTINGS_LIMIT) -> bytes:
    """Return the content of a regular file of at most `largest` bytes; ConfigError with the cure.

    Nothing else is opened: a FIFO may keep its reader waiting for ever, and some devices act on it.
    """
    content = bytearray()
    try:
        _refuse_special(path, os.stat(path))
        descriptor = os.open(path, _READ_ONLY)
        try:
            _refuse_special(path, os.fstat(descriptor))  # it may have been replaced since
            while len(content) <= largest and (more := os.read(descriptor, largest + 1 - len(content))):
                content += more
        finally:
            os.close(descriptor)
    except (FileNotFoundError, NotADirectoryError):
        raise FileMissing(f"{path}: no such file") from None
    except PermissionError:
        found = account()
        user = found.pw_name if found else os.geteuid() if pwd else "this"
        cure = f"let its group read it (chmod g+r, and g+x on the directories above) and put {user} into that group"
        raise ConfigError(f"{path}: user {user} may not read it; {cure}") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}; restore it, or name another file") from None
    if len(content) > largest:
        raise ConfigError(f"{path}: larger than the {largest} bytes that such a file may have; shorten it")
    return bytes(content)


def _refuse_special(path: str, status: os.stat_result) -> None:
    """Refuse what is no regular file, but for /dev/null, which stands for a file without settings."""
    kinds = {stat.S_IFDIR: "a directory", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket"}
    kind = stat.S_IFMT(status.st_mode)
    if kind != stat.S_IFREG and not (kind == stat.S_IFCHR and os.path.samestat(status, os.stat(os.devnull))):
        raise ConfigError(f"{path}: is {kinds.get(kind, 'a device')}; put a regular file there, or name another file")


class Files:
    """Read settings files, and remember how each looked just before, also where there was none."""

    def __init__(self) -> None:
        self.looks: dict[str, tuple[int, ...] | None] = {}

    def _content(self, path: str, named_by: str | None, largest: int) -> bytes | None:
        self.looks[path] = settled(look(path))
        try:
            return read_file(path, largest)
        except FileMissing as error:
            if named_by:
                raise FileMissing(f"{error}; {named_by} names it") from None
            return None

    def toml(self, path: str, named_by: str | None) -> Document | None:
        """Return the file's tables, or None when it is missing and nobody named it."""
        content = self._content(path, named_by, SETTINGS_LIMIT)
        # As a crash leaves it, a full disk, or an editor in the middle of its work.
        if content == b"" and path != os.devnull:
            raise ConfigError(f"{path}: is empty; restore its content, or put a comment into it")
        return None if content is None else Document(path, _parsed(path, content))

    def token(self, path: str) -> bytes:
        """Return the bearer token that a token file holds, without the spaces around it; ConfigError with the cure."""
        token = (self._content(path, "token_file", TOKEN_FILE_LIMIT) or b"").strip()
        if not token:
            raise ConfigError(f"{path}: the token file is empty; write a token into it, or leave token_file out")
        if len(token) < SHORTEST_TOKEN:
            raise ConfigError(f"{path}: the token is shorter than {SHORTEST_TOKEN} characters; write a longer one")
        if not all(0x21 <= byte <= 0x7E for byte in token):  # what a header can carry without a space
            raise ConfigError(f"{path}: a token is one line of visible ASCII characters without spaces")
        return token


def account() -> Any:
    """Return this process's entry in the system's list of users; None where there is none, or no such list."""
    try:
        return pwd.getpwuid(os.geteuid()) if pwd else None
    except KeyError:  # as for a service that runs under a number
        return None


def user_home() -> str:
    """Return the home folder in this system's list of users, "" where there is none."""
    found = account()
    return str(found.pw_dir) if found else "" if pwd else os.path.expanduser("~")


def _parsed(path: str, raw: bytes) -> dict[str, Any]:
    if raw.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        raise ConfigError(f"{path}: begins with a byte order mark (BOM); save it as UTF-8 without one")
    try:
        return parse_toml(raw.decode())
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}: line {line}: not UTF-8; save the file as UTF-8") from None
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def parse_toml(text: str) -> dict[str, Any]:
    """Return the tables in a text; ConfigError for one that is no TOML, or that it would take too much to read."""
    try:
        _refuse_costly(text)
        return dict(tomllib.loads(text))
    except (ValueError, RecursionError) as error:
        last = text.count("\n") + 1  # the parser does not number the end
        reason = one_line(str(error).replace("at end of document", f"at line {last}, the end of the file"))
        raise ConfigError(f"not valid TOML: {reason}; correct that, or restore the file") from None


def _refuse_costly(text: str) -> None:
    """Refuse with ValueError what the parser would recurse deeply for, or take hours.

    It calls itself for each level, and walks a key from its beginning again for each part of it.
    """
    if sum(map(text.count, ".[{")) <= TOML_DEPTH_LIMIT:
        return
    bare = _OPAQUE.sub("", text.replace("\\\\", "").replace('\\"', "")).encode()
    levels, containers = bracket_levels(bare.translate(None, _NO_BRACKETS))
    if containers > CONTAINERS_LIMIT:
        raise ValueError(f"more than {CONTAINERS_LIMIT} tables and lists")
    if levels > TOML_DEPTH_LIMIT:
        raise ValueError(f"nested deeper than {TOML_DEPTH_LIMIT} levels")
    dots = re.findall(rb"\.+", bare.translate(None, _NO_SEPARATORS))
    if max(map(len, dots), default=0) >= TOML_DEPTH_LIMIT:
        raise ValueError(f"a key of more than {TOML_DEPTH_LIMIT} parts")
