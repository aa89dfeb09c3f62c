"""The command as a person or an init system meets it: exit codes, streams, one line instead of a traceback."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from mcpboard import __version__, config
from mcpboard.cli import MENU, main
from tests.support import processes
from tests.support.processes import BARE, LIMIT_S, MCPBOARD, Program, started

pytestmark = pytest.mark.slow  # waits for real limits, links or processes

TOKEN = "0123456789abcdef"


def run(*words: str | bytes, **how: Any) -> subprocess.CompletedProcess[str]:
    return processes.run(*MCPBOARD, *words, **how)


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("mcpboard: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


def through_shell(redirected: str) -> subprocess.CompletedProcess[str]:
    """Run in a shell, for streams that only a shell can close."""
    command = redirected.replace("mcpboard", f"'{sys.executable}' -m mcpboard")
    return processes.run("sh", "-c", command)


def serving(*words: str, **how: Any) -> AbstractContextManager[Program]:
    """A real `serve` on a free port of loopback."""
    return started(*MCPBOARD, "serve", "--listen", "127.0.0.1:0", *words, **how)


class TestPlainVerbs:
    def test_the_version_is_plain(self) -> None:
        done = run("--version")
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{__version__}\n", "")

    def test_without_words_the_menu_is_printed(self) -> None:
        """By who uses them; each verb in one sentence, which its own help has too, with an example."""
        done = run()
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == run("--help").stdout == run("help").stdout
        for title, group in MENU.items():
            assert f"\n{title}:\n" in done.stdout
            for verb in group:
                told = run(verb, "--help").stdout if verb != "host" else ""
                sentence = done.stdout.partition(f"    {verb:10} ")[2].partition("\n")[0]
                assert re.fullmatch(r"[A-Z].*\.", sentence)
                assert not told or (sentence in told and f"\nexample: mcpboard {verb}" in told)

    @pytest.mark.parametrize("words", [("fly",), ("serve", "--no-such-flag"), ("serve", "--list", "x")])
    def test_wrong_usage_is_exit_2(self, words: tuple[str, ...]) -> None:
        done = run(*words)
        assert done.returncode == 2
        assert "usage: mcpboard" in done.stderr
        assert "Traceback" not in done.stderr

    def test_the_settings_name_their_source(self, tmp_path: Path) -> None:
        file = tmp_path / "m.toml"
        file.write_text('[mcpboard]\nlisten = ["127.0.0.1:8090", "[::1]:8090"]\n')
        done = run("config", "--config", str(file), "--log-level", "DEBUG", "--json")
        found = json.loads(done.stdout)
        assert list(found) == [row.key for row in config.SETTINGS]
        assert found["listen"] == {"value": ["127.0.0.1:8090", "[::1]:8090"], "source": str(file)}
        assert found["log_level"] == {"value": "debug", "source": "--log-level"}
        assert found["mcp_enabled"]["value"] is True

    def test_the_settings_stand_in_columns(self, tmp_path: Path) -> None:
        done = run("config", env=BARE | {"MCPBOARD_CONFIG": os.devnull})
        lines = done.stdout.splitlines()
        assert len(lines) == len(config.SETTINGS)
        assert len({line.rindex("default") for line in lines}) == 1

    def test_the_token_is_never_shown(self, tmp_path: Path) -> None:
        token = tmp_path / "token"
        token.write_text(TOKEN)
        token.chmod(0o644)
        for extra in ((), ("--json",)):
            done = run("config", "--token-file", str(token), *extra)
            assert str(token) in done.stdout
            assert TOKEN[:8] not in done.stdout + done.stderr
            assert "chmod o-r" in done.stderr

    def test_light_verbs_import_nothing_heavy(self) -> None:
        program = (
            "import sys; from mcpboard.cli import main; main(['config']);"
            "heavy = ('werkzeug', 'waitress', 'requests', 'PIL', 'http.server', 'mcpboard.cli.laptop', 'mcpboard.cli.host', 'mcpboard.cli.serve');"
            "print([name for name in heavy if name in sys.modules])"
        )
        done = processes.run(sys.executable, "-c", program)
        assert done.stdout.splitlines()[-1] == "[]"

    def test_a_flag_for_every_row_that_has_one(self) -> None:
        shown = run("serve", "--help").stdout
        assert all(row.option in shown for row in config.SETTINGS if row.flag)
        assert "--mcp-shell-enabled" not in shown


class TestRefusals:
    """What is wrong is one line on stderr and exit code 2, however often it is tried."""

    @pytest.mark.parametrize(("text", "said"), [
        pytest.param("[mcpboard\n", "not valid TOML", id="bad TOML"),
        pytest.param("[mcpboard]\nport = 1\n", "unknown key 'port'", id="an unknown key"),
        pytest.param('[mcpboard]\nlisten = "8080"\n', "an address is HOST:PORT", id="a bad address"),
        pytest.param('[conversation_settings.agent]\nmcp_enabled = "no"\n', "mcp_enabled", id="a quoted boolean"),
        pytest.param('[mcpboard]\ntoken_file = "/no/such"\n', "/no/such: no such file", id="no token file"),
        pytest.param('[mcpboard]\nlog = "/no/such/log"\n', "/no/such/log cannot be written", id="no place to log"),
    ])  # fmt: skip
    def test_serve_refuses_its_settings(self, tmp_path: Path, text: str, said: str) -> None:
        file = tmp_path / "m.toml"
        file.write_text(text)
        for _ in range(2):
            assert said in one_line(run("serve", "--config", str(file)))

    @pytest.mark.parametrize("name", ["/no/such.toml", "/no/such\nthing", b"/no/\xff"], ids=repr)
    def test_a_missing_file_that_was_named_whatever_its_name(self, name: str | bytes) -> None:
        assert "no such file; --config names it" in one_line(run("config", "--config", name))

    def test_a_port_in_use(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as other:
            address = f"127.0.0.1:{other.getsockname()[1]}"
            for _ in range(2):
                assert address in one_line(run("serve", "--listen", address))

    @pytest.mark.parametrize(
        "wrong", [["--config", "/no/such.toml"], ["--listen", "192.0.2.1:1"]], ids=["a missing file", "no such address"]
    )
    def test_the_reason_is_in_the_log_too(self, tmp_path: Path, wrong: list[str]) -> None:
        """An init script's standard error is often nobody's."""
        file = tmp_path / "log"
        said = one_line(run("serve", "--log", str(file), *wrong))
        assert said.removeprefix("mcpboard: ").strip() in file.read_text("utf-8")

    def test_a_port_that_the_agent_has(self) -> None:
        """On a stock board the two settings to write are told."""

        class Agent(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b'{"tools": []}' if self.path == "/api/tools" else b"")

            def log_message(self, *_: object) -> None:
                pass

        with HTTPServer(("127.0.0.1", 0), Agent) as agent:
            thread = threading.Thread(target=agent.serve_forever, args=(0.05,))
            thread.start()
            try:
                done = run("serve", "--listen", f"127.0.0.1:{agent.server_port}")
            finally:
                agent.shutdown()
                thread.join(LIMIT_S)
        assert done.returncode == 2
        assert done.stderr.splitlines()[1:] == [
            'listen = "0.0.0.0:8090"',
            f'agent_base_url = "http://127.0.0.1:{agent.server_port}"',
        ]


class TestStreams:
    """Init systems close streams, pipes end early, disks are full."""

    def test_nobody_reads_the_output(self) -> None:
        # The reader has gone before the first byte is written.
        reading, writing = os.pipe()
        os.close(reading)
        try:
            done = run("config", stdout=writing)
        finally:
            os.close(writing)
        assert (done.returncode, done.stderr) == (141, "")

    @pytest.mark.parametrize(("redirected", "code"), [
        pytest.param("mcpboard config <&-", 0, id="no stdin"),
        pytest.param("mcpboard config >&-", 0, id="no stdout"),
        pytest.param("mcpboard config <&- >&- 2>&-", 0, id="no stream at all"),
        pytest.param("mcpboard fly 2>&-", 2, id="a complaint that nobody hears"),
        pytest.param("mcpboard config --config /no/such 2>&-", 2, id="a refusal that nobody hears"),
    ])  # fmt: skip
    def test_closed_streams(self, redirected: str, code: int) -> None:
        done = through_shell(redirected)
        assert (done.returncode, done.stderr) == (code, "")

    def test_a_full_disk(self) -> None:
        done = through_shell("mcpboard config >/dev/full")
        assert (done.returncode, done.stderr) == (1, "mcpboard: [Errno 28] No space left on device\n")


class TestServe:
    def test_it_serves_wherever_it_says_until_sigterm(self) -> None:
        with serving("--listen", "127.0.0.2:0") as server:
            assert server.process.stdout is not None
            for line in (server.line, server.process.stdout.readline()):
                url = line.removeprefix("mcpboard: serving ").strip()
                with urllib.request.urlopen(url.replace("/mcp", "/health"), timeout=LIMIT_S) as answer:
                    assert answer.status == 200
            assert server.end() == 0

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
    def test_a_signal_right_after_the_url_is_an_orderly_end(self, number: signal.Signals) -> None:
        """An init system that changes its mind must not read of a crash."""
        for _ in range(3):
            with serving() as server:
                assert server.url
                assert server.end(number) == 0

    def test_without_stdin_and_stderr(self, tmp_path: Path) -> None:
        """The listener must not get the number of a closed stream, or stray output would reach a client."""
        log = tmp_path / "log"
        with serving("--log", str(log), preexec_fn=close_in_and_err) as server:
            with urllib.request.urlopen(server.url.replace("/mcp", "/health"), timeout=LIMIT_S) as answer:
                assert answer.status == 200
            assert os.readlink(f"/proc/{server.process.pid}/fd/0") == os.devnull
            assert os.readlink(f"/proc/{server.process.pid}/fd/2") == os.devnull


def close_in_and_err() -> None:
    os.close(0)
    os.close(2)


def test_an_interrupted_verb_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(config, "load", interrupt)
    assert main(["config"]) == 130
