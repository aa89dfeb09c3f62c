"""Where settings come from, which values are refused, and what the refusal says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mcpboard import config
from mcpboard.config import Address, load
from mcpboard.errors import ConfigError
from tests.config.conftest import OFF, TABLE, TOKEN, Board, switches


def refusal(flags: dict[str, object] | None = None, environ: dict[str, str] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        load(flags, environ or {})
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_without_any_file_the_defaults_count(bare: Board) -> None:
    settings = bare.load()
    assert settings.listen == (Address("0.0.0.0", 8080),)
    assert (settings.agent_base_url, settings.mcp_config_web_base_url) == ("http://127.0.0.1:8081", "http://127.0.0.1")
    assert (*switches(settings), settings.strict_meta) == (True, False, False)
    assert (settings.token_file, settings.token) == (None, None)
    assert settings.support_bundle_max_bytes == 33_554_432
    assert settings.sources == {row.key: "default" for row in config.SETTINGS}


# --- flag over file over default; --config over MCPBOARD_CONFIG over the standard path ---


def test_the_flag_names_the_file_before_the_variable_does(bare: Board, tmp_path: Path) -> None:
    for name in ("flag", "variable", "mcpboard.toml"):
        (tmp_path / name).write_text(f'[mcpboard]\nlog = "/var/log/{name}"\n')
    environ = {"MCPBOARD_CONFIG": str(tmp_path / "variable")}
    assert load({"config": str(tmp_path / "flag")}, environ).log == "/var/log/flag"
    assert load({}, environ).log == "/var/log/variable"
    assert load({"config": None}, {"MCPBOARD_CONFIG": ""}).log == load({}, {}).log == "/var/log/mcpboard.toml"


def test_a_flag_beats_the_file_and_is_the_source(bare: Board) -> None:
    text = '[mcpboard]\nlisten = "127.0.0.1:1"\nlog_level = "debug"\n'
    settings = bare.load(text, listen=["127.0.0.1:2", "[::1]:2"], log_level=None)
    assert settings.listen == (Address("127.0.0.1", 2), Address("::1", 2))
    assert (settings.sources["listen"], settings.sources["log_level"]) == ("--listen", str(bare.ours))


def test_no_other_variable_counts(bare: Board) -> None:
    environ = {"MCP_SHELL_ENABLED": "true", "MCPBOARD_LISTEN": "*:1", "MCPBOARD_TOKEN": TOKEN, "mcp_enabled": "0"}
    assert load(environ=environ) == load(environ={})


@pytest.mark.parametrize("missing", ["--config", "--agent-config", "MCPBOARD_CONFIG", "agent_config", "token_file"])
def test_a_file_that_somebody_named_must_be_there(bare: Board, tmp_path: Path, missing: str) -> None:
    gone = str(tmp_path / "gone")
    if missing.islower() and not missing.startswith("--"):
        bare.ours.write_text(f'[mcpboard]\n{missing} = "{gone}"\n')
    flags: dict[str, object] = {missing[2:].replace("-", "_"): gone} if missing.startswith("--") else {}
    assert refusal(flags, {missing: gone} if missing.isupper() else {}) == f"{gone}: no such file; {missing} names it"


# --- agent_config is read for three keys; where it exists our own copy of them does not count ---


def test_the_agents_file_beats_our_own_table_whole(board: Board) -> None:
    board.write_ours(OFF)
    board.agent.write_text(TABLE + "mcp_shell_enabled = true\n")
    settings = board.load()
    assert switches(settings) == (True, True)
    assert settings.sources["mcp_shell_enabled"] == str(board.agent)
    assert settings.sources["mcp_enabled"] == "default"
    assert f"mcp_enabled in our own file: no effect while {board.agent} is there" in settings.warnings


def test_without_it_our_own_table_counts(bare: Board) -> None:
    settings = bare.load(OFF + 'mcp_config_web_base_url = "http://[::1]:8000/"\n')
    assert (settings.mcp_enabled, settings.mcp_config_web_base_url) == (False, "http://[::1]:8000")
    assert settings.sources["mcp_enabled"] == str(bare.ours)


def test_everything_else_in_it_is_ignored(board: Board) -> None:
    other = 'listen = 3\n[mcpboard]\nlisten = "nowhere"\n[basic_settings]\nx = 1\n'
    board.agent.write_text(f'{other}{OFF}max_iterations = -1\nmcp_future = "x"\nother_mcp_enabled = false\n')
    settings = board.load()
    assert settings.listen == (Address("0.0.0.0", 8080),)
    assert (settings.mcp_enabled, settings.warnings[1:]) == (False, ())
    board.agent.write_text(TABLE + "other_mcp_enabled = false\nmcp_future = false\n")
    assert board.load().mcp_enabled, "none of ours is disabled"


def test_config_webs_flag_beats_it(board: Board) -> None:
    board.agent.write_text(TABLE + 'mcp_config_web_base_url = "http://127.0.0.1:1"\n')
    settings = board.load(mcp_config_web_base_url="http://localhost:2")
    assert settings.mcp_config_web_base_url == "http://localhost:2"
    assert settings.sources["mcp_config_web_base_url"] == "--config-web-base-url"


# --- what our own file may hold ---

# Content of our file -> a part of its refusal.
REFUSED: dict[str, tuple[str | bytes, str]] = {
    "a typo": ("[mcpboard]\nlissen = 1\n", "unknown key 'lissen' in [mcpboard]; did you mean listen?"),
    "nothing close": ("[mcpboard]\nx = 1\n", "unknown key 'x' in [mcpboard]; known there: listen, "),
    "an unknown table": ("[mcpbord]\n", "did you mean mcpboard?"),
    "an unknown key": ("surprise = 1\n", "unknown table or key 'surprise' at the top of the file"),
    "an mcp_ key at the top": ("mcp_enabled = false\n", "belongs in [conversation_settings.agent]"),
    "an mcp_ key in ours": ("[mcpboard]\nmcp_shell_enabled = true\n", "belongs in [conversation_settings.agent]"),
    "too high": ("[conversation_settings]\nmcp_enabled = true\n", "belongs in [conversation_settings.agent]"),
    "a typo in an mcp_ key": (TABLE + "mcp_enable = false\n", "did you mean mcp_enabled?"),
    "our key in the Agent's table": (TABLE + 'listen = "*:1"\n', "belongs in [mcpboard]"),
    "no table": ('listen = "*:1"\n', "listen stands at the top of the file, but belongs in [mcpboard]"),
    "a value for a table": ("mcpboard = 3\n", "mcpboard: a table is expected"),
    "a list of tables": ("[[conversation_settings]]\n", "a table is expected"),
    "a BOM of UTF-8": (b"\xef\xbb\xbf[mcpboard]\n", "byte order mark (BOM)"),
    "UTF-16": ("[mcpboard]\n".encode("utf-16"), "byte order mark (BOM)"),
    "Latin-1": (b"[mcpboard]\n# \xe9\n", "line 2: not UTF-8"),
    "no value": ("[mcpboard]\n\nlisten = \n", "line 3"),
    "cut off": ('[mcpboard]\nlog = "x', "line 2, the end of the file"),
    "a key twice": ("[mcpboard]\nfreebind = true\nfreebind = true\n", "line 3"),
    "a table twice": ("[mcpboard]\n[mcpboard]\n", "line 2"),
    "a boolean of Python": ("[mcpboard]\nstrict_meta = False\n", "line 2"),
    "empty": ("", "is empty"),
    "4,000 levels": ("x = " + "[" * 4_000 + "]" * 4_000, "not valid TOML: nested deeper than 16 levels"),
    "300,000 lists": ("x = [" + "[]," * 300_000 + "]\n", "more than 10000 tables"),
    "a key of 20,000 parts": ("a." * 20_000 + "b = 1\n", "more than 16 parts"),
    "too large": (b"#" * (1 << 20) + b"\n", "larger than the 1048576 bytes"),
    "a password": ('[mcpboard]\nagent_base_url = "http://me:secret@127.0.0.1"\n', "[mcpboard] agent_base_url = ...@127.0.0.1"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "said"), REFUSED.values(), ids=REFUSED)
def test_our_file_is_refused_in_one_line_with_its_place(bare: Board, content: str | bytes, said: str) -> None:
    bare.ours.write_bytes(content if isinstance(content, bytes) else content.encode())
    message = refusal()
    assert message.startswith(f"{bare.ours}: ")
    assert said in message
    assert "secret" not in message


def test_the_hosts_table_and_the_agents_other_keys_may_share_our_file(bare: Board) -> None:
    assert bare.load("[host]\nx = 1\n" + TABLE + "max_iterations = 3\n").warnings == ()


def test_the_null_device_stands_for_no_settings() -> None:
    assert load({"config": os.devnull}, {}).sources["listen"] == "default"


def test_dots_and_brackets_in_strings_are_no_levels(board: Board) -> None:
    text = '"""' + "a.[" * 40 + '""""'
    board.agent.write_text(f"prompt = {text}\nother = '{'[{.' * 40}' # {'[' * 40}\n" + OFF)
    settings = board.load()
    assert (settings.mcp_enabled, settings.mcp_fault) == (False, None)
    tables = "".join(f"[t{n}]\nx = [1]\n" for n in range(99))
    board.agent.write_text("numbers = [" + "1.5, " * 200 + "]\n" + tables)
    assert board.load().mcp_enabled
    # Four quotes end a text of three: what follows on the line counts again.
    board.agent.write_text('x = [ """a"""", ' + "[" * 40 + "]" * 40 + " ]\n")
    assert "deeper than 16 levels" in str(board.load().mcp_fault)


def test_a_file_that_may_not_be_read_is_named_with_the_cure(bare: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    bare.ours.write_text("[mcpboard]\n")
    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_000_000)  # a user without a name
    assert refusal().startswith(f"{bare.ours}: user 4000000000 may not read it; let its group read it (chmod g+r")


# --- token_file makes a token required, so it is never empty, and never shown ---


def test_the_spaces_around_a_token_do_not_count(board: Board) -> None:
    board.token.write_text(f"  {TOKEN}\r\n\n")
    settings = board.load()
    assert (settings.token, settings.warnings) == (TOKEN.encode(), ())
    assert TOKEN not in repr(settings)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        *((content, "is empty") for content in ("", " \n\n")),
        ("short", "shorter than 16 characters"),
        *((content, "one line of visible ASCII") for content in (f"{TOKEN}\n{TOKEN}\n", TOKEN + "é")),
        ("x" * 5_000, "larger than the 4096 bytes"),
    ],
    ids=["empty", "spaces", "five characters", "two lines", "not ASCII", "5 kB"],
)
def test_a_token_that_cannot_protect_is_refused(board: Board, content: str, said: str) -> None:
    board.token.write_text(content)
    message = refusal()
    assert message.startswith(f"{board.token}: ")
    assert said in message
    assert TOKEN not in message


def test_a_token_that_everybody_may_read_is_warned_about(board: Board) -> None:
    board.token.chmod(0o644)
    cure = f"{board.token}: everyone on this machine may read the token; cure: chmod o-r {board.token}"
    assert board.load().warnings == (cure,)
