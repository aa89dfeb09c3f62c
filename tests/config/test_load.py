"""Where settings come from, which values are refused, and what the refusal says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mcpboard import config
from mcpboard.config import Address, load
from mcpboard.errors import ConfigError

AGENT_TABLE = "[conversation_settings.agent]\n"
TOKEN = "0123456789abcdef"


@pytest.fixture(autouse=True)
def ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The standard path, moved where nothing is; the Agent's default file likewise."""
    path = tmp_path / "etc" / "mcpboard.toml"
    path.parent.mkdir()
    monkeypatch.setattr(config, "STANDARD_FILE", str(path))
    return path


def settings_of(ours: Path, text: str) -> config.Settings:
    ours.write_text(text)
    return load(environ={})


def refusal(ours: Path, text: str | bytes) -> str:
    """The one line that a file with this text is refused with."""
    ours.write_bytes(text if isinstance(text, bytes) else text.encode())
    return refusal_of()


def refusal_of(flags: dict[str, object] | None = None, environ: dict[str, str] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        load(flags, environ or {})
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_without_any_file_the_defaults_count() -> None:
    settings = load(environ={})
    assert settings.listen == (Address("0.0.0.0", 8080),)
    assert settings.agent_base_url == "http://127.0.0.1:8081"
    assert settings.mcp_config_web_base_url == "http://127.0.0.1"
    assert (settings.mcp_enabled, settings.mcp_shell_enabled, settings.strict_meta) == (True, False, False)
    assert (settings.token_file, settings.token) == (None, None)
    assert settings.support_bundle_max_bytes == 33_554_432
    assert set(settings.sources.values()) == {"default"}


def test_every_row_is_a_field_and_has_a_source() -> None:
    settings = load(environ={})
    assert [row.key for row in config.SETTINGS] == list(settings.sources)
    assert all(hasattr(settings, key) for key in settings.sources)


class TestOrder:
    """Flag over file over default; --config over MCPBOARD_CONFIG over the standard path."""

    def test_the_flag_names_the_file_before_the_variable_does(self, ours: Path, tmp_path: Path) -> None:
        for name in ("flag", "variable"):
            (tmp_path / name).write_text(f'[mcpboard]\nlog = "/var/log/{name}"\n')
        ours.write_text('[mcpboard]\nlog = "/var/log/standard"\n')
        environ = {"MCPBOARD_CONFIG": str(tmp_path / "variable")}
        assert load({"config": str(tmp_path / "flag")}, environ).log == "/var/log/flag"
        assert load({}, environ).log == "/var/log/variable"
        assert load({}, {}).log == "/var/log/standard"
        assert load({"config": None}, {"MCPBOARD_CONFIG": ""}).log == "/var/log/standard"

    def test_a_flag_beats_the_file_and_is_the_source(self, ours: Path) -> None:
        ours.write_text('[mcpboard]\nlisten = "127.0.0.1:1"\nlog_level = "debug"\n')
        settings = load({"listen": ["127.0.0.1:2", "[::1]:2"], "log_level": None}, {})
        assert settings.listen == (Address("127.0.0.1", 2), Address("::1", 2))
        assert settings.sources["listen"] == "--listen"
        assert settings.sources["log_level"] == str(ours)

    def test_no_other_variable_counts(self) -> None:
        environ = {"MCP_SHELL_ENABLED": "true", "MCPBOARD_LISTEN": "*:1", "MCPBOARD_TOKEN": TOKEN, "mcp_enabled": "0"}
        assert load(environ=environ) == load(environ={})

    @pytest.mark.parametrize("missing", ["--config", "MCPBOARD_CONFIG", "agent_config", "token_file"])
    def test_a_file_that_somebody_named_must_be_there(self, ours: Path, tmp_path: Path, missing: str) -> None:
        gone = str(tmp_path / "gone")
        if missing.endswith(("_config", "_file")):
            ours.write_text(f'[mcpboard]\n{missing} = "{gone}"\n')
        flags: dict[str, object] = {"config": gone} if missing == "--config" else {}
        said = refusal_of(flags, {missing: gone} if missing.isupper() else {})
        assert said == f"{gone}: no such file; {missing} names it"


class TestTheAgentsFile:
    """agent_config is read for three keys, and when it exists our own copy of them does not count."""

    @pytest.fixture
    def agent(self, ours: Path, tmp_path: Path) -> Path:
        path = tmp_path / "agent.toml"
        ours.write_text(f'[mcpboard]\nagent_config = "{path}"\n{AGENT_TABLE}mcp_enabled = false\n')
        return path

    def test_it_beats_our_own_table_whole(self, agent: Path, ours: Path) -> None:
        agent.write_text(AGENT_TABLE + "mcp_shell_enabled = true\n")
        settings = load(environ={})
        assert (settings.mcp_enabled, settings.mcp_shell_enabled) == (True, True)
        assert settings.sources["mcp_shell_enabled"] == str(agent)
        assert settings.sources["mcp_enabled"] == "default"
        assert f"mcp_enabled in our own file: no effect while {agent} is there" in settings.warnings

    def test_without_it_our_own_table_counts(self, ours: Path) -> None:
        settings = settings_of(
            ours, AGENT_TABLE + 'mcp_enabled = false\nmcp_config_web_base_url = "http://[::1]:8000/"\n'
        )
        assert not settings.mcp_enabled
        assert settings.mcp_config_web_base_url == "http://[::1]:8000"
        assert settings.sources["mcp_enabled"] == str(ours)

    def test_everything_else_in_it_is_ignored(self, agent: Path) -> None:
        agent.write_text(
            'listen = 3\n[mcpboard]\nlisten = "nowhere"\n[basic_settings]\nx = 1\n'
            + AGENT_TABLE
            + 'max_iterations = -1\nmcp_future = "x"\nmcp_enabled = false\n'
        )
        settings = load(environ={})
        assert settings.listen == (Address("0.0.0.0", 8080),)
        assert (settings.mcp_enabled, settings.warnings[1:]) == (False, ())

    def test_a_bad_value_in_it_disables_what_it_may_have_disabled(self, agent: Path) -> None:
        agent.write_text(AGENT_TABLE + 'mcp_enabled = "false"\nmcp_config_web_base_url = "http://[::1]:8000"\n')
        settings = load(environ={})
        assert not settings.mcp_enabled
        assert settings.mcp_config_web_base_url == "http://[::1]:8000"
        fault = f'{agent}: [conversation_settings.agent] mcp_enabled = "false": only true or false, without quotes'
        assert settings.mcp_fault == fault
        assert settings.warnings[0] == f"{fault} (until then mcp_enabled stays false)"

    @pytest.mark.parametrize(
        ("text", "where"),
        [
            pytest.param("mcp_enabled = false\n", "at the top of the file", id="at the top"),
            pytest.param("[agent]\nmcp_enabled = false\n", "in [agent]", id="in a table of the old flat layout"),
            pytest.param("[conversation_settings]\nmcp_enabled = false\n", "in [conversation_settings]", id="one level too high"),
        ],
    )  # fmt: skip
    def test_a_key_in_the_wrong_place_of_it_is_pointed_out(self, agent: Path, text: str, where: str) -> None:
        agent.write_text(text)
        settings = load(environ={})
        assert not settings.mcp_enabled, "whoever wrote it meant that"
        assert f"mcp_enabled stands {where}, but belongs in [conversation_settings.agent]" in settings.warnings[0]

    def test_config_webs_flag_beats_it(self, agent: Path) -> None:
        agent.write_text(AGENT_TABLE + 'mcp_config_web_base_url = "http://127.0.0.1:1"\n')
        settings = load({"mcp_config_web_base_url": "http://localhost:2"}, {})
        assert settings.mcp_config_web_base_url == "http://localhost:2"
        assert settings.sources["mcp_config_web_base_url"] == "--config-web-base-url"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("[mcpboard]\nlissen = 1\n", "unknown key 'lissen' in [mcpboard]; did you mean listen?", id="a typo"),
        pytest.param("[mcpboard]\nx = 1\n", "unknown key 'x' in [mcpboard]; known there: listen, ", id="nothing close"),
        pytest.param("[mcpbord]\n", "did you mean mcpboard?", id="an unknown table"),
        pytest.param("surprise = 1\n", "unknown table or key 'surprise' at the top of the file", id="an unknown key"),
        pytest.param("mcp_enabled = false\n", "belongs in [conversation_settings.agent]", id="mcp_ key at the top"),
        pytest.param("[mcpboard]\nmcp_shell_enabled = true\n", "belongs in [conversation_settings.agent]", id="in ours"),
        pytest.param("[conversation_settings]\nmcp_enabled = true\n", "belongs in [conversation_settings.agent]", id="too high"),
        pytest.param(AGENT_TABLE + "mcp_enable = false\n", "did you mean mcp_enabled?", id="a typo in an mcp_ key"),
        pytest.param(AGENT_TABLE + 'listen = "*:1"\n', "belongs in [mcpboard]", id="our key in the Agent's table"),
        pytest.param('listen = "*:1"\n', "listen stands at the top of the file, but belongs in [mcpboard]", id="no table"),
        pytest.param("mcpboard = 3\n", "mcpboard: a table is expected", id="a value for a table"),
        pytest.param("[[conversation_settings]]\n", "a table is expected", id="a list of tables"),
    ],
)  # fmt: skip
def test_a_key_out_of_place_is_refused_with_its_place(ours: Path, text: str, said: str) -> None:
    message = refusal(ours, text)
    assert message.startswith(f"{ours}: ")
    assert said in message


def test_the_hosts_table_and_the_agents_other_keys_may_share_our_file(ours: Path) -> None:
    assert settings_of(ours, "[host]\nx = 1\n" + AGENT_TABLE + "max_iterations = 3\n").warnings == ()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(b"\xef\xbb\xbf[mcpboard]\n", "byte order mark (BOM)", id="a BOM of UTF-8"),
        pytest.param("[mcpboard]\n".encode("utf-16"), "byte order mark (BOM)", id="UTF-16"),
        pytest.param(b"[mcpboard]\n# \xe9\n", "line 2: not UTF-8", id="Latin-1"),
        pytest.param(b"[mcpboard]\n\nlisten = \n", "line 3", id="no value"),
        pytest.param(b'[mcpboard]\nlog = "x', "line 2, the end of the file", id="cut off"),
        pytest.param(b"[mcpboard]\nfreebind = true\nfreebind = true\n", "line 3", id="a key twice"),
        pytest.param(b"[mcpboard]\n[mcpboard]\n", "line 2", id="a table twice"),
        pytest.param(b"[mcpboard]\nstrict_meta = False\n", "line 2", id="a boolean of Python"),
        pytest.param(b"x = " + b"[" * 100_000, "not valid TOML", id="nested without end"),
        pytest.param(b"#" * (1 << 20) + b"\n", "larger than the 1048576 bytes", id="too large"),
    ],
)
def test_a_file_that_is_no_toml_is_one_line_with_file_and_place(ours: Path, content: bytes, said: str) -> None:
    message = refusal(ours, content)
    assert message.startswith(f"{ours}: ")
    assert said in message


def test_line_ends_of_windows_are_fine(ours: Path) -> None:
    assert settings_of(ours, "[mcpboard]\r\nstrict_meta = true\r\n").strict_meta


def test_a_directory_is_no_settings_file(tmp_path: Path) -> None:
    assert refusal_of({"config": str(tmp_path)}).startswith(f"{tmp_path}: is a directory; put a regular file there")


def test_a_file_that_may_not_be_read_is_named_with_the_cure(ours: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    ours.write_text("[mcpboard]\n")
    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_000_000)  # a user without a name
    assert refusal_of().startswith(f"{ours}: user 4000000000 may not read it; let its group read it (chmod g+r")


class TestToken:
    """token_file switches the bearer gate on, so it is never empty, and never shown."""

    @pytest.fixture
    def token(self, ours: Path, tmp_path: Path) -> Path:
        path = tmp_path / "token"
        ours.write_text(f'[mcpboard]\ntoken_file = "{path}"\n')
        path.touch(0o600)
        return path

    def test_the_blanks_around_it_do_not_count(self, token: Path) -> None:
        token.write_text(f"  {TOKEN}\r\n\n")
        settings = load(environ={})
        assert settings.token == TOKEN.encode()
        assert TOKEN not in repr(settings)
        assert settings.warnings == ()

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            pytest.param("", "is empty", id="empty"),
            pytest.param(" \n\n", "is empty", id="blanks alone"),
            pytest.param("short", "shorter than 16 characters", id="five characters"),
            pytest.param(f"{TOKEN}\n{TOKEN}\n", "one line of visible ASCII", id="two lines"),
            pytest.param(TOKEN + "é", "one line of visible ASCII", id="not ASCII"),
        ],
    )
    def test_a_token_that_cannot_protect_is_refused(self, token: Path, content: str, said: str) -> None:
        token.write_text(content)
        message = refusal_of()
        assert message.startswith(f"{token}: ")
        assert said in message
        assert TOKEN not in message

    def test_one_that_everybody_may_read_is_warned_about(self, token: Path) -> None:
        token.write_text(TOKEN)
        token.chmod(0o644)
        assert load(environ={}).warnings == (
            f"{token}: everyone on this machine may read the token; cure: chmod o-r {token}",
        )
