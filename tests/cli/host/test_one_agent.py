"""One agent on a folder: real processes that are refused, killed and started at the same instant."""

from __future__ import annotations

import html
import json
import os
import re
import signal
import stat
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mcpboard.host import running as running_agent
from mcpboard.host.access.tokens import TOKEN_FILE, read_main_token
from mcpboard.host.running import RUNNING_FILE, RunningAgent
from tests.deploy.rooms import until
from tests.support import ROOT
from tests.support.http import Caller
from tests.support.processes import first_line

pytestmark = pytest.mark.slow  # waits for real limits, links or processes

COMMAND = [sys.executable, "-m", "mcpboard", "host"]
LIMIT_S = 30.0


def environment(**more: str) -> dict[str, str]:
    return {"PATH": os.defpath, "LC_ALL": "C", "PYTHONWARNINGS": "error", "PYTHONPATH": str(ROOT), **more}


def start(*words: str, cwd: Path = ROOT, **more: str) -> subprocess.Popen[str]:
    command = [*COMMAND, "run", "--port", "0", *words]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=cwd, env=environment(**more), text=True, **streams)  # type: ignore[call-overload,no-any-return]


def run(*words: str, cwd: Path = ROOT, **more: str) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, *words]
    return subprocess.run(
        command, cwd=cwd, env=environment(**more), text=True, timeout=LIMIT_S, capture_output=True, check=False
    )


@contextmanager
def running(*words: str, cwd: Path = ROOT, **more: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A real agent, and the URL that it prints."""
    with start(*words, cwd=cwd, **more) as child:
        try:
            line = first_line(child, LIMIT_S)
            assert line.startswith("device-host-agent: serving http://"), line
            yield child, line.split()[-1]
        finally:
            child.terminate()
            child.communicate(timeout=LIMIT_S)


# --- a second one ------------------------------------------------------------------------------


def by_name(folder: Path) -> tuple[list[str], Path]:
    return ["--data", str(folder)], ROOT


def by_link(folder: Path) -> tuple[list[str], Path]:
    link = folder.parent / "link"
    link.symlink_to(folder)
    return ["--data", str(link)], ROOT


def by_relative_path(folder: Path) -> tuple[list[str], Path]:
    return ["--data", f"../{folder.parent.name}/./{folder.name}"], folder.parent


def by_identity_path(folder: Path) -> tuple[list[str], Path]:
    config = folder.parent / "host.toml"
    config.write_text(f'[host]\nidentity_path = "{folder}/other_identity.json"\n', "utf-8")
    return ["--config", str(config)], ROOT


@pytest.mark.parametrize("name_folder", [by_name, by_link, by_relative_path, by_identity_path])
def test_a_second_agent_on_the_folder_is_refused(tmp_path: Path, name_folder: object) -> None:
    """It reads nothing, opens no port, and says whom it met and what to do."""
    assert callable(name_folder)
    folder = tmp_path / "data"
    with running("--data", str(folder)) as (child, url):
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        words, cwd = name_folder(folder)
        done = run("run", "--port", "0", *words, cwd=cwd)
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
        assert Caller(url, read_main_token(folder)).call("list_devices").text == "[]"
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert f"another agent runs on this folder (process {child.pid}, {url})" in done.stderr
    assert "stop it first, or give this one a folder of its own with --data DIR" in done.stderr


def test_the_demonstration_is_an_agent_too(tmp_path: Path) -> None:
    with running("--data", str(tmp_path / "data")) as (child, _):
        done = run("run", "--demo", "--port", "0", "--data", str(tmp_path / "data"))
    assert (done.returncode, done.stdout) == (2, "")
    assert f"process {child.pid}" in done.stderr


def test_of_agents_that_start_at_the_same_instant_one_serves(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    children = [start("--data", str(folder)) for _ in range(4)]
    try:
        with_lines = [(child, first_line(child, LIMIT_S)) for child in children]
        serving = [child for child, line in with_lines if line]
        assert len(serving) == 1
        for child, line in with_lines:
            if not line:
                _, complaint = child.communicate(timeout=LIMIT_S)
                assert child.returncode == 2
                assert f"another agent runs on this folder (process {serving[0].pid}, " in complaint
    finally:
        for child in children:
            child.kill()
            child.communicate(timeout=LIMIT_S)


def test_a_killed_agent_keeps_nobody_out(tmp_path: Path) -> None:
    """Not by its files, and not by a daemon that it started, as adb does."""
    tools = tmp_path / "bin"
    tools.mkdir()
    adb, daemon = tools / "adb", tmp_path / "daemon"
    adb.write_text(f"#!/bin/sh\nsleep 60 > /dev/null 2>&1 &\necho $! > {daemon}\n", "utf-8")
    adb.chmod(0o755)
    config = tmp_path / "host.toml"
    config.write_text('[host]\nadb_start = true\nadb_discover = true\nadb_server = "127.0.0.1:9"\n', "utf-8")
    words = ("--data", str(tmp_path / "data"), "--config", str(config))
    with start(*words, PATH=f"{tools}:{os.defpath}") as child:
        assert first_line(child, LIMIT_S)
        until(lambda: daemon.exists() and daemon.read_text("ascii").endswith("\n"), "the daemon")
        child.send_signal(signal.SIGKILL)
        child.communicate(timeout=LIMIT_S)
    try:
        assert (tmp_path / "data" / RUNNING_FILE).exists(), "it could not clean up"
        assert running_agent.find(tmp_path / "data") is None
        with running("--data", str(tmp_path / "data")) as (again, url):
            assert running_agent.find(tmp_path / "data") == RunningAgent(again.pid, url)
    finally:
        os.kill(int(daemon.read_text("ascii")), signal.SIGKILL)


def test_verbs_that_write_go_on_under_a_running_agent(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "data"))
    with running(*data) as (_, url):
        assert run("devices", "add", "p1", "--kind", "simulated", *data).returncode == 0
        assert run("token", "add", "hermes", *data).returncode == 0
        assert Caller(url, read_main_token(tmp_path / "data")).call("tap", x=1, y=1).text == "tapped 1,1 on p1"


# --- where it answers --------------------------------------------------------------------------


def test_the_running_agent_is_written_down_privately_and_forgotten_at_the_end(tmp_path: Path) -> None:
    file = tmp_path / "data" / RUNNING_FILE
    with running("--data", str(tmp_path / "data")) as (child, url):
        written = json.loads(file.read_text("utf-8"))
        assert (written["pid"], written["url"]) == (child.pid, url)
        assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "data").iterdir()} == {0o600}
        assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
        assert read_main_token(tmp_path / "data") not in file.read_text("utf-8")
    assert not file.exists()


def test_the_token_and_the_port_are_found_from_any_folder(tmp_path: Path) -> None:
    """The agent has the platform's own folder, and its port is one that nobody repeats."""
    home = {"HOME": str(tmp_path / "home")}
    (tmp_path / "home").mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with running(cwd=tmp_path, **home) as (_, url):
        folder = tmp_path / "home" / ".local" / "share" / "device-host-agent"
        token = read_main_token(folder)
        assert run("mcp-token", cwd=elsewhere, **home).stdout == f"{token}\n"
        assert json.loads(run("mcp-token", "--json", cwd=elsewhere, **home).stdout)["url"] == url
        assert f"answers at {url}" in run("doctor", cwd=elsewhere, **home).stdout
        words = [sys.executable, "-m", "mcpboard"]
        env = environment(**home)
        shown = subprocess.run(
            [*words, "connect", "hermes", "--host"],
            cwd=elsewhere,
            env=env,
            text=True,
            timeout=LIMIT_S,
            capture_output=True,
        )
        assert (shown.returncode, f'url: "{url}"' in shown.stdout) == (0, True), shown.stderr
        told = subprocess.run(
            [*words, "doctor", "--host"], cwd=elsewhere, env=env, text=True, timeout=LIMIT_S, capture_output=True
        )
        assert url.removesuffix("/mcp") in told.stdout
        assert "401" not in told.stdout


def test_a_folder_of_the_first_version_is_still_used(tmp_path: Path) -> None:
    old = tmp_path / "tasks"
    old.mkdir(0o700)
    identity = old / "host_identity.json"
    identity.write_text('{"version": 1, "id": "h", "name": "n", "created_at": "2026-01-01T00:00:00Z"}\n', "utf-8")
    identity.chmod(0o600)
    with running(cwd=tmp_path, HOME=str(tmp_path)):
        assert (old / TOKEN_FILE).exists()
    assert not (tmp_path / ".local").exists()


def test_a_home_that_takes_no_files_is_told_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("no folder", "utf-8")
    done = run("run", "--port", "0", cwd=tmp_path, HOME=str(tmp_path / "home"))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "cannot be used" in done.stderr
    assert "--data DIR" in done.stderr


def test_the_command_of_the_login_page_works_as_it_stands(tmp_path: Path) -> None:
    """In a shell, from another folder, with a folder whose name has to be quoted."""
    folder = tmp_path / "my phones; $HOME"
    with running("--data", str(folder)) as (_, url):
        with urllib.request.urlopen(url.removesuffix("/mcp") + "/login", timeout=LIMIT_S) as response:
            page = response.read().decode()
        shown = re.search(r"<code>([^<]*mcp-token[^<]*)</code>", page)
        assert shown
        line = html.unescape(shown[1])
        done = subprocess.run(
            line,
            shell=True,
            cwd=tmp_path,
            env=environment(HOME="/nowhere"),
            text=True,
            timeout=LIMIT_S,
            capture_output=True,
        )
    assert (done.returncode, done.stdout) == (0, f"{read_main_token(folder)}\n"), (line, done.stderr)


def test_what_a_crash_left_of_a_token_is_removed_at_the_start(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir(0o700)
    torn = [f".{TOKEN_FILE}.ab12cd34", ".devices.json.zz_99999", ".mcpboard-ab12cd34"]
    for name in torn:
        (folder / name).write_text('{"token": "x', "utf-8")
    kept = folder / ".notes"
    kept.write_text("the user's own", "utf-8")
    with running("--data", str(folder)):
        left = {path.name for path in folder.iterdir()}
    assert not left & set(torn)
    assert kept.exists()
