"""No damage of any file ever enables what was disabled, or keeps a token alive that was replaced.

Damage is generated from stated seeds; a failure names the seed.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from mcpboard.config import Settings, SettingsWatcher, load
from mcpboard.errors import ConfigError
from mcpboard.host.access import tokens
from mcpboard.host.access.tokens import NAMED_FILE, TOKEN_FILE, Tokens
from tests.config.conftest import Board
from tests.config.test_settings_page import ANY_FILE, FORBIDDEN

AGENT = """\
[basic_settings]
name = "a \\"phone\\" board" # with a comment
numbers = [1, 2.5, 3]
text = '''
[mcpboard]
a line of text... [[[ {{{{
'''

[conversation_settings.agent]
max_iterations = -1
mcp_enabled = {mcp_enabled}
mcp_shell_enabled = {mcp_shell_enabled}
custom_instruction = "none"

[voice_settings]
mode = "ptt"
"""
OURS = """\
[mcpboard]
token_file = "{token_file}"
agent_config = "{agent_config}"
strict_meta = true
"""
SWITCHES = ("mcp_enabled", "mcp_shell_enabled")

Random = random.Random


def seeds(few: int, many: int) -> list[object]:
    """A few for every run, many for the slow one."""
    return [*range(few), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(few, many))]


# --- damage ------------------------------------------------------------------------------------


def flip(content: bytearray, dice: Random) -> None:
    for _ in range(dice.choice((1, 1, 1, 2, 5)) if content else 0):
        content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)


def cut(content: bytearray, dice: Random) -> None:
    del content[dice.randrange(len(content) + 1) :]


def overwrite(content: bytearray, dice: Random) -> None:
    at = dice.randrange(len(content) + 1)
    content[at : at + dice.randrange(9)] = dice.randbytes(dice.randrange(1, 9))


def _by_line(change: Callable[[list[bytes], Random], None]) -> Callable[[bytearray, Random], None]:
    def damage(content: bytearray, dice: Random) -> None:
        lines = bytes(content).splitlines(keepends=True) or [b"x = 1\n"]
        change(lines, dice)
        content[:] = b"".join(lines)

    return damage


def _retype(lines: list[bytes], dice: Random) -> None:
    """Give one key a value of another type."""
    if keys := [number for number, line in enumerate(lines) if b" = " in line]:
        number = dice.choice(keys)
        value = dice.choice([b'"true"', b"1", b"[true]", b"{}", b"1.5", b"2026-01-01", b"'yes'"])
        lines[number] = lines[number].partition(b" = ")[0] + b" = " + value + b"\n"


def _swap(lines: list[bytes], dice: Random) -> None:
    one, other = dice.choices(range(len(lines)), k=2)
    lines[one], lines[other] = lines[other], lines[one]


drop = _by_line(lambda lines, dice: lines.remove(dice.choice(lines)))
double = _by_line(lambda lines, dice: lines.append(dice.choice(lines)))
retype, swap = _by_line(_retype), _by_line(_swap)
IN_PLACE = [cut, flip, flip, overwrite, swap, drop, double, retype]
WHOLE = [damage for name, damage in ANY_FILE.items() if name != FORBIDDEN]


def damaged(content: bytes, damages: Sequence[Callable[[bytearray, Random], None]], dice: Random) -> bytes:
    spoilt = bytearray(content)
    dice.choice(damages)(spoilt, dice)
    return bytes(spoilt)


def spoil(path: Path, dice: Random) -> None:
    """Damage the file, which may be damaged already."""
    content = b""
    if path.is_file() and path.resolve() == path:  # no FIFO, which waits, nor a device
        with path.open("rb") as file:
            content = file.read(4096)
    if dice.random() < 0.3:
        whole(path, content or b"x = 1\n")
        dice.choice(WHOLE)(path)
    elif dice.random() < 0.5 or not path.is_file() or path.is_symlink():  # a file of its own, renamed over
        whole(path, damaged(content, IN_PLACE, dice))
    else:
        path.write_bytes(damaged(content, IN_PLACE, dice))


def whole(path: Path, content: bytes) -> None:
    fresh = path.with_name("fresh")
    fresh.touch(0o600)
    fresh.write_bytes(content)
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    fresh.replace(path)


# --- the board ---------------------------------------------------------------------------------


class Spoilt(Board):
    """A board, what was last written into each file on purpose, and the tokens that were replaced."""

    def __init__(self, folder: Path, dice: Random) -> None:
        super().__init__(folder)
        self.dice = dice
        self.retired: set[bytes] = set()
        self.now = b""
        self.disabled = {key: dice.random() < 0.7 for key in SWITCHES}
        self.damaged: set[Path] = set()
        for path in (self.ours, self.agent, self.token):
            self.repair(path)
        self.replace_token()

    def repair(self, path: Path) -> None:
        """Write what was last written on purpose."""
        values = {key: json.dumps(not off) for key, off in self.disabled.items()}
        ours = OURS.format(token_file=self.token, agent_config=self.agent)
        text = {self.ours: ours, self.agent: AGENT.format(**values), self.token: self.now.decode()}[path]
        whole(path, text.encode())
        self.damaged.discard(path)

    def replace_token(self) -> None:
        self.retired.add(self.now)
        self.now = b"token-%016x" % self.dice.getrandbits(64)
        self.repair(self.token)

    def step(self) -> None:
        """Damage, repair or change something."""
        path = self.dice.choice((self.ours, self.agent, self.token))
        what = self.dice.random()
        if what < 0.6:
            spoil(path, self.dice)
            self.damaged.add(path)
        elif what < 0.8:
            self.repair(path)
        elif what < 0.9:
            self.replace_token()
        else:
            if self.agent_config != str(self.agent):
                self.repair(self.ours)  # a line that has gone without a trace is a wish, as far as anybody knows
            self.disabled[self.dice.choice(SWITCHES)] ^= True
            self.repair(self.agent)

    def check(self, settings: Settings) -> None:
        self.agent_config = settings.agent_config
        for key in SWITCHES:
            if self.disabled[key]:
                assert not getattr(settings, key), f"{key} was disabled"
            elif not self.damaged:
                assert getattr(settings, key), f"{key} was enabled, and all is well"
        assert settings.token not in self.retired
        assert settings.token is not None or self.ours in self.damaged
        if self.token not in self.damaged and settings.token_file == str(self.token):
            assert settings.token == self.now


@pytest.mark.parametrize("seed", seeds(10, 150))
def test_while_running_no_damage_enables_and_no_old_token_lives(
    tmp_path: Path, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    dice = Random(seed)
    board = Spoilt(tmp_path, dice)
    watched = SettingsWatcher({"config": str(board.ours)}, {})
    board.check(watched.current())
    for _ in range(25):
        board.step()
        board.check(watched.current())
        said = len(caplog.records)
        board.check(watched.current())
        assert len(caplog.records) == said, "once, and not with every request"
    for path in (board.ours, board.agent, board.token):
        board.repair(path)
    board.check(watched.current())
    assert not any(token.decode() in caplog.text for token in board.retired - {b""})
    assert board.now.decode() not in caplog.text


TABLE = AGENT.format(mcp_enabled="false", mcp_shell_enabled="false").encode()
LINE = TABLE.index(b"mcp_enabled = false")
BEGIN, END = TABLE.index(b"[conversation_settings"), TABLE.index(b"mcp_shell_enabled")


def flips() -> Iterator[bytes]:
    for at in range(BEGIN, END):
        for bit in range(8):
            yield TABLE[:at] + bytes([TABLE[at] ^ 1 << bit]) + TABLE[at + 1 :]


def cuts() -> Iterator[bytes]:
    """Within or behind the line; a file that ends before it does not have it, and may be whole."""
    return (TABLE[:at] for at in range(LINE + 1, len(TABLE)))


def swaps() -> Iterator[bytes]:
    # Without the text of several lines: what is swapped into that has gone without a trace.
    lines = TABLE[BEGIN:].splitlines(keepends=True)
    for one in range(len(lines)):
        for other in range(one):
            swapped = list(lines)
            swapped[one], swapped[other] = swapped[other], swapped[one]
            yield b"".join(swapped)


@pytest.mark.parametrize("contents", [flips, cuts, swaps])
def test_at_start_no_damage_of_the_line_or_around_it_enables(
    tmp_path: Path, contents: Callable[[], Iterator[bytes]]
) -> None:
    """Every single bit, every length, every pair of lines."""
    agent = tmp_path / "agent.toml"
    flags: dict[str, object] = {"config": os.devnull, "agent_config": str(agent)}
    count = 0
    for content in contents():
        agent.write_bytes(content)
        settings = load(flags, {})
        assert not settings.mcp_enabled, content
        assert not settings.mcp_shell_enabled, content
        count += 1
    assert count > 20


@pytest.mark.parametrize("seed", seeds(30, 300))
def test_at_start_a_damaged_file_of_ours_or_token_serves_nobody_without_one(tmp_path: Path, seed: int) -> None:
    """It refuses to start, or requires a token that was not replaced."""
    dice = Random(seed)
    board = Spoilt(tmp_path, dice)
    board.replace_token()
    for path in (board.token, board.ours):
        # A line that has gone without a trace is the one damage that nothing can know.
        content = damaged(path.read_bytes(), (flip, retype, double, cut), dice)
        if path == board.ours and b"\ntoken_file" not in content:
            continue
        path.write_bytes(content)
        try:
            settings = load({"config": str(board.ours)}, {})
        except ConfigError:
            board.repair(path)
            continue
        assert settings.token is not None
        assert settings.token not in board.retired


# --- the host agent ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", seeds(6, 60))
def test_the_host_keeps_no_removed_token_whatever_is_damaged(
    tmp_path: Path, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    dice = Random(seed)
    os.chmod(tmp_path, 0o700)
    book = Tokens(tmp_path)
    main, named = tmp_path / TOKEN_FILE, tmp_path / NAMED_FILE
    alive = {"main": json.loads(main.read_text())["token"]}
    good = {main: main.read_bytes(), named: b'{"version": 1, "tokens": []}\n'}
    spoilt: set[Path] = set()
    gone: set[str] = set()
    for number in range(20):
        path, what = dice.choice((main, named)), dice.random()
        if what < 0.5:
            spoil(path, dice)
            spoilt.add(path)
        else:
            # As the commands do: over a file that is whole.
            whole(path, good[path])
            spoilt.discard(path)
            if path == main:
                gone.add(alive["main"])
                alive["main"] = f"main-{dice.getrandbits(256):064x}"
                whole(main, json.dumps({"version": 1, "token": alive["main"]}).encode())
            elif len(alive) > 2 and what < 0.75:
                name = dice.choice([each for each in alive if each != "main"])
                gone.add(alive.pop(name))
                tokens.remove_named(tmp_path, name)
            else:
                alive[f"t{number}"] = tokens.add_named(tmp_path, f"t{number}")
            good[path] = path.read_bytes()
        assert not [token for token in gone if book.authorize(f"Bearer {token}")]
        if not spoilt:
            assert all(book.authorize(f"Bearer {token}") for token in alive.values())
    assert not any(token in caplog.text for token in {*gone, *alive.values()})
