"""Bearer tokens: the one of the first start, those that were given names, and the principal of each."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

from mcpboard.config.files import look
from mcpboard.errors import ConfigError
from mcpboard.host import storage
from mcpboard.host.access.identity import now
from mcpboard.protocol import access

TOKEN_FILE, NAMED_FILE = "host_mcp_token.json", "host_tokens.json"
TOKEN_BYTES = 32  # 256 bits, 43 characters when written url-safe
SHORTEST_TOKEN = 32  # characters; fewer could be tried out, and an empty one must never match
MAIN = "main"  # how the first start's token is called among the named ones
_VISIBLE = re.compile(r"[!-~]+")  # what a header can carry
_DAMAGED = "holds an entry that is no token; delete it and add the tokens again"
_DIGEST = re.compile(r"[0-9a-f]{64}")  # as we write it; one that was written by hand may be in capitals
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class NamedToken:
    """A token that was given a name; only its digest is kept."""

    name: str
    id: str
    digest: str = field(repr=False)  # 64 hex digits
    created_at: str = ""


# --- the token of the first start --------------------------------------------------------------


def main_token(folder: Path) -> str:
    """Return the token in the file, generated where there is no file; never overwritten."""
    path = folder / TOKEN_FILE
    storage.private_folder(folder)
    if look(path, follow_links=False) is None:
        storage.create(path, {"version": 1, "token": secrets.token_urlsafe(TOKEN_BYTES), "created_at": now()})
    return read_main_token(folder)


def read_main_token(folder: Path) -> str:
    """Return the token in the file; ConfigError where there is none that could be used."""
    path = folder / TOKEN_FILE
    document = storage.read(path)
    if document is None:
        raise ConfigError(f"{path}: there is no token yet; start the host agent once")
    token = document.get("token")
    if not isinstance(token, str) or len(token) < SHORTEST_TOKEN or not _VISIBLE.fullmatch(token):
        raise ConfigError(f"{path}: holds no usable token; delete it and start the host agent to get a new one")
    return token


# --- named tokens ------------------------------------------------------------------------------


def add_named(folder: Path, name: str) -> str:
    """Generate a token for `name`, keep its digest, return the token: it cannot be shown again."""
    if not _NAME.fullmatch(name) or name == MAIN:
        raise ConfigError("a token's name is 1 to 64 letters, digits, dots, hyphens and underscores, and not main")
    token = secrets.token_urlsafe(TOKEN_BYTES)
    entry = NamedToken(name, secrets.token_hex(16), _digest(token.encode()), now())
    with storage.locked(folder / NAMED_FILE):
        known = named(folder)
        if any(each.name == name for each in known):
            raise ConfigError(f"there is a token {name} already; remove it first, or choose another name")
        _write_named(folder, [*known, entry])
    return token


def remove_named(folder: Path, name: str) -> None:
    """Forget the token of that name; a running agent refuses it from the next request on."""
    with storage.locked(folder / NAMED_FILE):
        known = named(folder)
        kept = [each for each in known if each.name != name]
        if len(kept) == len(known):
            raise ConfigError(f"there is no token {name}; `token list` names them")
        _write_named(folder, kept)


def named(folder: Path) -> list[NamedToken]:
    """Return every token that was given a name; ConfigError where one of them cannot be read."""
    known, damaged = _read_named(folder)
    if damaged:
        raise ConfigError(f"{folder / NAMED_FILE}: {_DAMAGED}")
    return known


def _read_named(folder: Path) -> tuple[list[NamedToken], list[dict[str, object]]]:
    """Return the tokens in the file, and those entries of it that are none; ConfigError where there is no list."""
    path = folder / NAMED_FILE
    document = storage.read(path)
    entries = [] if document is None else document.get("tokens")
    if not isinstance(entries, list):
        raise ConfigError(f"{path}: holds no list of tokens; delete it and add the tokens again")
    tokens, damaged = [], []
    for entry in entries:
        try:
            token = NamedToken(**{each.name: str(entry[each.name]) for each in fields(NamedToken)})
            token = replace(token, digest=token.digest.strip().lower())
            if not _DIGEST.fullmatch(token.digest):  # an empty one would match what it must not
                raise ValueError
            tokens.append(token)
        except (KeyError, TypeError, ValueError):
            damaged.append(entry if isinstance(entry, dict) else {})
    return tokens, damaged


def _write_named(folder: Path, tokens: Sequence[NamedToken]) -> None:
    storage.replace(folder / NAMED_FILE, {"version": 1, "tokens": [asdict(each) for each in tokens]})


def _digest(token: bytes) -> str:
    return hashlib.sha256(token).hexdigest()


# --- the principal of a request -----------------------------------------------------------------------------


class Tokens:
    """Every token that is accepted now, as the files say; of a damaged file, as it said last.

    `on_removed` is called with the id of each principal whose token has gone. Safe to share between threads.
    """

    def __init__(self, folder: Path, on_removed: Callable[[str], None] = lambda _: None) -> None:
        self._main = _main_entry(main_token(folder))
        self._folder = folder
        self._on_removed = on_removed
        self._lock = threading.Lock()
        self._main_file = storage.FollowedFile(folder / TOKEN_FILE)
        self._named_file = storage.FollowedFile(folder / NAMED_FILE)
        self._named: list[NamedToken] = []
        self.follow()

    def authorize(self, authorization: str | None) -> str | None:
        """Return the id of the principal whose token the header carries, None to refuse."""
        self.follow()
        token = access.bearer(authorization)
        if not token:
            return None
        with self._lock:
            candidates = [self._main, *self._named]
        digest, principal = _digest(token), None
        for each in candidates:  # without stopping early
            if hmac.compare_digest(digest, each.digest):
                principal = each.id
        return principal

    def is_main(self, token: str) -> bool:
        """Return True for the token of the first start, which opens the console, as no named one does."""
        self.follow()
        return hmac.compare_digest(_digest(token.encode()), self._main.digest)

    def main_principal(self) -> str:
        """Return the id of the principal that the main token is now."""
        self.follow()
        return self._main.id

    def follow(self) -> None:
        """Reread the files that have changed; a damaged one leaves its last good tokens, and nothing else."""
        with self._lock:
            before = self._principals()
            if self._main_file.take_change():
                with self._main_file.complaining("its token stays as it was"):
                    self._main = _main_entry(read_main_token(self._folder))
            if self._named_file.take_change():
                with self._named_file.complaining("the tokens stay as they were"):
                    self._take_named()
            removed = before - self._principals()
        for principal_id in removed:
            self._on_removed(principal_id)

    def _principals(self) -> set[str]:
        return {each.id for each in (self._main, *self._named)}

    def _take_named(self) -> None:
        tokens, damaged = _read_named(self._folder)
        last, self._named = self._named, tokens
        if damaged:
            listed = {each.id for each in tokens}
            # A damaged entry stays what it was; one that tells neither name nor id may be any that is missing.
            tells = [{each.id for each in last if each.name == entry.get("name") or each.id == entry.get("id")}
                     for entry in damaged]  # fmt: skip
            kept = set().union(*tells) if all(tells) else {each.id for each in last}
            self._named += [each for each in last if each.id in kept - listed]
            raise ConfigError(f"{self._folder / NAMED_FILE}: {_DAMAGED}")


def _main_entry(token: str) -> NamedToken:
    """Return the main token as one of the named ones; what others may know of it tells nothing about it."""
    return NamedToken(MAIN, _digest(b"principal:" + token.encode()), _digest(token.encode()))
