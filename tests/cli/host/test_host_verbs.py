"""`device-host-agent` as a person meets it: processes, streams, exit codes, one agent on a folder, and what a kill leaves."""

from __future__ import annotations

import html
import json
import os
import re
import shlex
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from mcpboard.host import running as running_agent
from mcpboard.host.access.owners import SHARED_TOKEN
from mcpboard.host.access.tokens import TOKEN_FILE, read_main_token
from mcpboard.host.running import RUNNING_FILE, RunningAgent
from mcpboard.simulator import Simulator
from tests.deploy.rooms import until
from tests.host.rig import threads
from tests.support import ROOT, served
from tests.support.http import Caller
from tests.support.processes import BARE, HOST, LIMIT_S, MCPBOARD, host, host_agent, run, started

pytestmark = pytest.mark.slow  # waits for real limits, links or processes

PROGRAM = shlex.join(HOST)  # as it names itself where a person is to type it
BIND = "HOST_AGENT_CONSOLE_BIND_HOST"
ELSEWHERE: dict[str, Any] = {BIND: "127.0.0.2"}


def connect(form: str, *words: str, cwd: Path = ROOT, **variables: str) -> subprocess.CompletedProcess[str]:
    return run(*MCPBOARD, "connect", form, *words, "--host", cwd=cwd, env=BARE | variables)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def data(folder: Path) -> tuple[str, str]:
    return "--data", str(folder)


def test_run_is_the_verb_when_none_is_given_and_ends_well(folder: Path, data: tuple[str, str]) -> None:
    """The first time it starts it generates a token; `mcp-token` prints it, and the address, whatever the port."""
    with host_agent(*data) as (child, url):
        token = read_main_token(folder)
        assert Caller(url, token).call("list_devices").text == "[]"
        note = json.loads((folder / RUNNING_FILE).read_text("utf-8"))
        assert (note["pid"], note["url"], token in str(note)) == (child.process.pid, url, False)
        assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        alone = host("mcp-token", *data)
        assert (alone.returncode, alone.stdout, alone.stderr) == (0, f"{token}\n", "")
        found = json.loads(host("mcp-token", "--json", *data, **ELSEWHERE).stdout)
        assert child.end() == 0
    later = json.loads(host("mcp-token", "--json", *data, **ELSEWHERE).stdout)
    headers = {"Authorization": f"Bearer {token}"}
    assert found == {"url": url, "headers": headers}
    assert later == {"url": "http://127.0.0.2:8765/mcp", "headers": headers}, "the one that it would get here"
    assert {each.name for each in folder.iterdir()} == {"host_identity.json", TOKEN_FILE, f"{RUNNING_FILE}.lock"}


@pytest.mark.parametrize(("host", "bound"), [("localhost", "127.0.0.1"), ("::1", "[::1]"), ("127.0.0.2", "127.0.0.2")])
def test_an_address_of_loopback_is_bound_as_it_was_asked_for(data: tuple[str, str], host: str, bound: str) -> None:
    """Never wider than asked for, never another address."""
    with host_agent(*data, "--bind", host) as (_, url):
        assert url.startswith(f"http://{bound}:")
        assert Caller(url).call("list_devices").status == 401


def test_hints_go_to_a_terminal_alone(folder: Path, data: tuple[str, str]) -> None:
    with host_agent(*data):
        secret = read_main_token(folder)
    near, far = os.openpty()
    try:
        done = run(*HOST, "mcp-token", *data, stdout=far)
        assert os.read(near, 4096).decode().strip() == secret
    finally:
        os.close(near)
        os.close(far)
    assert f"header: Authorization: Bearer {secret}" in done.stderr
    assert str(folder / TOKEN_FILE) in done.stderr


# --- refusals ----------------------------------------------------------------------------------

MISSING = [
    ("mcpboard.host", ("run",), " is not here: this installation has the board's role only"),
    ("PIL", ("run", "--demo"), "pip install 'mcpboard[simulator]'"),
]


@pytest.mark.parametrize(("module", "words", "complaint"), MISSING)
def test_what_is_not_installed_is_told_in_one_line(
    data: tuple[str, str], module: str, words: tuple[str, ...], complaint: str
) -> None:
    program = f"import sys; sys.modules[{module!r}] = None; from mcpboard.cli import host_main; sys.exit(host_main())"
    done = run(sys.executable, "-c", program, *words, "--port", "0", *data)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert complaint in done.stderr


# Variables, words, and what is said of them.
REFUSALS: list[tuple[dict[str, Any], str, str]] = [
    ({BIND: "::"}, "run", "ALLOW_NON_LOOPBACK=true as well"),
    ({BIND: ""}, "run", "an IP address"),
    ({}, "run --bind nowhere.example", "an IP address"),
    ({}, "run --port x", "a port is"),
    ({}, "run --config /missing.toml", "no such file"),
    ({}, "devices add p1 --kind toaster", "kind is one of"),
    ({}, "devices add p1 --kind board --url x", "a URL such as"),
    ({}, "devices test p1", "there is no device p1"),
    ({}, "token add main", "not main"),
]


@pytest.mark.parametrize(("more", "words", "complaint"), REFUSALS, ids=[f"{row[1]}: {row[2]}" for row in REFUSALS])
def test_a_mistake_is_one_line_and_exit_code_2(
    folder: Path, data: tuple[str, str], more: dict[str, Any], words: str, complaint: str
) -> None:
    done = host(*words.split(), *data, **more)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("device-host-agent: ")
    assert complaint in done.stderr
    assert not folder.exists()


def test_a_port_that_is_taken_is_told_with_the_flag_that_cures_it(folder: Path, data: tuple[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        done = host("run", *data, "--port", port)
    cure = "another program has it; choose another with --port or --bind"
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"device-host-agent: cannot listen on 127.0.0.1:{port}: {cure}\n"
    assert not (folder / TOKEN_FILE).exists(), "the port comes first: no token is made for nothing"


def test_files_that_cannot_be_used_are_told_with_path_and_cure(tmp_path: Path) -> None:
    (tmp_path / TOKEN_FILE).write_text("{}")
    (tmp_path / "home").write_text("no folder", "utf-8")
    for words, home, cure in (
        (("--data", str(tmp_path)), "/nowhere", f"{tmp_path / TOKEN_FILE}: holds no usable token; delete it"),
        ((), str(tmp_path / "home"), "cannot be used: Not a directory; name another folder with --data DIR"),
    ):
        done = host("run", "--port", "0", *words, cwd=tmp_path, HOME=home)
        assert (done.returncode, done.stdout) == (2, "")
        assert (cure in done.stderr, "Traceback" in done.stderr) == (True, False), done.stderr


def test_a_missing_token_is_not_made_up(folder: Path, data: tuple[str, str]) -> None:
    for words in (("mcp-token",), ("mcp-token", "--json")):
        done = host(*words, *data)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
        assert f"{folder}/{TOKEN_FILE}: no token yet; start the host agent once" in done.stderr
    done = connect("hermes", *data)
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no token yet; start the host agent once" in done.stderr
    assert not folder.exists()


# --- devices, tokens and the doctor ------------------------------------------------------------


def test_devices_and_tokens_change_under_a_running_agent(folder: Path, data: tuple[str, str]) -> None:
    with host_agent(*data) as (_, url):
        caller = Caller(url, read_main_token(folder))
        added = host("devices", "add", "p1", "--kind", "simulated", *data)
        assert added.stdout == f"p1 is added; how it is: {PROGRAM} devices test p1 --data {folder}\n"
        assert caller.call("tap", x=1, y=1).text == "tapped 1,1 on p1"
        assert host("devices", "list", *data).stdout == "p1  kind=simulated\n"
        tested = host("devices", "test", "p1", *data)
        assert (tested.returncode, json.loads(tested.stdout)["state"]) == (0, "ready")
        other = Caller(url, host("token", "add", "hermes", *data).stdout.strip())
        assert other.call("list_devices").text
        assert host("token", "list", *data).stdout.startswith("hermes  2")
        assert host("token", "remove", "hermes", *data).returncode == 0
        assert other.call("list_devices").status == 401
        assert host("devices", "remove", "p1", *data).stdout == "p1 is removed\n"
        assert caller.call("list_devices").text == "[]"
    listed = host("devices", "list", *data)
    assert (listed.returncode, listed.stdout) == (0, "")
    assert "no devices; add one: device-host-agent devices add ID --kind KIND" in listed.stderr


def test_the_doctor_names_what_is_wrong_and_what_to_do(folder: Path, data: tuple[str, str]) -> None:
    wrong = host("doctor", "--json", *data, HOST_AGENT_CONSOLE_BIND_HOST="nowhere.example")
    settings, *others = json.loads(wrong.stdout)["checks"]
    assert (wrong.returncode, settings["state"], {each["state"] for each in others}) == (1, "failed", {"skipped"})
    assert set(settings) == {"check", "title", "state", "message", "remedy"}
    sick = host("doctor", *data)
    assert sick.returncode == 1
    assert "start the host agent once" in sick.stdout
    assert f"fix: {PROGRAM} devices add ID --kind board --data {folder}" in sick.stdout
    host("devices", "add", "p1", "--kind", "simulated", *data)
    printed = json.loads(host("doctor", "--json", *data).stdout)
    states = {each["check"]: each["state"] for each in printed["checks"]}
    found = {"settings": "ok", "token": "failed", "agent": "skipped", "cloud": "ok", "devices": "ok", "device p1": "ok"}
    assert (states, printed["failed"]) == (found, 1), "nothing but the token of the first start is missing"
    with host_agent(*data) as (_, url):
        well = host("doctor", *data)
    assert url in well.stdout, "its port is found, though nobody has said it"
    assert (well.returncode, well.stdout.endswith("All is well.\n")) == (0, True), well.stdout


# --- what ends it ------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_an_end_during_a_tap_taps_nothing_again(
    tmp_path: Path, folder: Path, data: tuple[str, str], number: int
) -> None:
    """While the board has the tap: it keeps no agent from ending, and after the restart there is no lease left."""
    with Simulator() as simulator, served.process(served.settings_file(tmp_path, simulator)) as board_url:
        host("devices", "add", "b1", "--kind", "board", "--url", board_url, *data)
        with host_agent(*data) as (child, url), threads() as pool, simulator.hold("touch_gesture") as held:
            tapping = pool.submit(Caller(url, read_main_token(folder)).open().call, "tap", x=1, y=1)
            simulator.wait_for_call("touch_gesture")
            assert child.end(number) == (0 if number == signal.SIGTERM else -number)
            with pytest.raises(OSError):
                tapping.result(LIMIT_S)
            held.release()
            simulator.wait_for_finish("touch_gesture")
        with host_agent(*data) as (_, url):
            caller = Caller(url, read_main_token(folder)).open()
            (device,) = json.loads(caller.call("list_devices").text)
            assert (device["state"], device["held_by"]) == ("ready", None)
            assert caller.call("take_screenshot").result["content"]
        assert [name for name, _ in simulator.calls].count("touch_gesture") == 1


def test_the_token_is_in_no_log_and_no_process_list(tmp_path: Path, folder: Path, data: tuple[str, str]) -> None:
    """Not even with the agent's own log at DEBUG."""
    log = tmp_path / "log"
    with host_agent(*data, "--log-level", "debug", "--log", str(log)) as (child, url):
        secret = read_main_token(folder)
        caller = Caller(url, secret).open()
        caller.call("tap", x=1, y=1, device_id="nothing")
        Caller(url, secret[:-1]).post("ping")
        command_line = (
            Path(f"/proc/{child.process.pid}/cmdline").read_bytes()
            + Path(f"/proc/{child.process.pid}/environ").read_bytes()
        )
    content = log.read_text()
    assert "tap: UnknownDevice" in content
    for hidden in (secret, str(caller.session)[8:]):
        slices = [hidden[at : at + 8] for at in range(len(hidden) - 7)]
        assert not [each for each in slices if each in content or each.encode() in command_line]


def test_what_a_crash_left_of_a_token_is_removed_at_the_start(folder: Path, data: tuple[str, str]) -> None:
    folder.mkdir(0o700)
    torn = [f".{TOKEN_FILE}.ab12cd34", ".devices.json.zz_99999", ".mcpboard-ab12cd34"]
    for name in (*torn, ".notes"):
        (folder / name).write_text('{"token": "x', "utf-8")
    with host_agent(*data):
        left = {path.name for path in folder.iterdir()}
    assert not left & set(torn)
    assert ".notes" in left, "the user's own"


# --- clients find it ---------------------------------------------------------------------------


def test_clients_are_configured_for_the_agent_that_runs(folder: Path, data: tuple[str, str]) -> None:
    """It is found by its folder. A client that takes a variable is told how to fill it, others read its token's file."""
    with host_agent(*data) as (_, url):
        secret, file = read_main_token(folder), str(folder / TOKEN_FILE)
        hermes, claude, desktop = (connect(form, *data) for form in ("hermes", "claude-code", "claude-desktop"))
        called = run(*MCPBOARD, "call", url, "list_devices", "--token-file", file)
        named = folder.parent / "bob"
        named.write_text(host("token", "add", "bob", *data).stdout)
        bob = connect("claude-code", "--token-file", str(named), *data)
    lines = [line.strip() for line in hermes.stdout.splitlines()]
    headers = ["headers:", f'Authorization: "Bearer {secret}"']
    assert (hermes.returncode, lines[:5]) == (0, ["mcp_servers:", "apex_device:", f'url: "{url}"', *headers])
    assert f'export APEX_DEVICE_TOKEN="$({PROGRAM} mcp-token --data {folder})"' in claude.stderr
    assert secret not in claude.stdout + claude.stderr
    assert f'export APEX_DEVICE_TOKEN="$(cat {named})"' in bob.stderr
    assert (SHARED_TOKEN in claude.stderr, SHARED_TOKEN in bob.stderr) == (True, False)
    assert file in desktop.stdout
    assert called.stdout == "[]\n"
    assert 'url: "http://127.0.0.1:8765/mcp"' in connect("hermes", *data).stdout, "it has ended"
    told = connect("cursor", "http://127.0.0.1:9/mcp", *data)
    assert told.returncode == 1
    assert f"{PROGRAM} doctor --data {folder}   names the cause" in told.stderr
    assert "mcpboard doctor" not in told.stderr


def test_the_token_and_the_port_are_found_from_any_folder(tmp_path: Path) -> None:
    """The agent has the platform's own folder, and its port is one that nobody repeats."""
    how: dict[str, Any] = {"cwd": tmp_path / "elsewhere", "HOME": str(tmp_path / "home")}
    for name in ("home", "elsewhere"):
        (tmp_path / name).mkdir()
    with host_agent(cwd=tmp_path, HOME=how["HOME"]) as (_, url):
        token = read_main_token(tmp_path / "home/.local/share/device-host-agent")
        assert host("mcp-token", **how).stdout == f"{token}\n"
        assert json.loads(host("mcp-token", "--json", **how).stdout)["url"] == url
        assert f"answers at {url}" in host("doctor", **how).stdout
        assert f'url: "{url}"' in connect("hermes", **how).stdout
        told = run(*MCPBOARD, "doctor", "--host", cwd=how["cwd"], env=BARE | {"HOME": how["HOME"]})
        assert (url.removesuffix("/mcp") in told.stdout, bool(re.search(r"\b401\b", told.stdout))) == (True, False)


def test_the_command_of_the_login_page_works_as_it_stands(tmp_path: Path) -> None:
    """In a shell, from another folder, with a folder whose name has to be quoted."""
    folder = tmp_path / "my phones; $HOME"
    with host_agent("--data", str(folder)) as (_, url):
        page = Caller(url).get("/login").body.decode()
        shown = re.search(r"<code>([^<]*mcp-token[^<]*)</code>", page)
        assert shown
        done = run("sh", "-c", html.unescape(shown[1]), cwd=tmp_path, env=BARE | {"HOME": "/nowhere"})
    assert (done.returncode, done.stdout) == (0, f"{read_main_token(folder)}\n"), done


# --- one agent on a folder ---------------------------------------------------------------------


def by_link(folder: Path) -> tuple[list[str], Path]:
    link = folder.parent / "link"
    link.symlink_to(folder)
    return ["--data", str(link)], ROOT


def by_relative_path(folder: Path) -> tuple[list[str], Path]:
    return ["--demo", "--data", f"../{folder.parent.name}/./{folder.name}"], folder.parent


def by_identity_path(folder: Path) -> tuple[list[str], Path]:
    config = folder.parent / "host.toml"
    config.write_text(f'[host]\nidentity_path = "{folder}/other_identity.json"\n', "utf-8")
    return ["--config", str(config)], ROOT


@pytest.mark.parametrize("name_folder", [by_link, by_relative_path, by_identity_path])
def test_a_second_agent_on_the_folder_is_refused(
    folder: Path, data: tuple[str, str], name_folder: Callable[[Path], tuple[list[str], Path]]
) -> None:
    """Also the demonstration: it reads nothing, opens no port, and says whom it met and what to do."""
    with host_agent(*data) as (child, url):
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        words, cwd = name_folder(folder)
        done = host("run", "--port", "0", *words, cwd=cwd)
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
        assert Caller(url, read_main_token(folder)).call("list_devices").text == "[]"
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert f"another agent runs on this folder (process {child.process.pid}, {url})" in done.stderr
    assert "stop it first, or give this one a folder of its own with --data DIR" in done.stderr


def test_of_agents_that_start_at_the_same_instant_one_serves(data: tuple[str, str]) -> None:
    with ExitStack() as stack:
        agents = [stack.enter_context(started(*HOST, *data, "--port", "0")) for _ in range(4)]
        (serving,) = [each for each in agents if each.line]
        for refused in (each for each in agents if each is not serving):
            assert refused.process.wait(LIMIT_S) == 2
            assert f"another agent runs on this folder (process {serving.process.pid}, " in refused.errors


def test_a_killed_agent_keeps_nobody_out(tmp_path: Path, folder: Path, data: tuple[str, str]) -> None:
    """Not by its files, and not by a daemon that it started, as adb does."""
    tools = tmp_path / "bin"
    tools.mkdir()
    adb, daemon = tools / "adb", tmp_path / "daemon"
    adb.write_text(f"#!/bin/sh\nsleep 60 > /dev/null 2>&1 &\necho $! > {daemon}\n", "utf-8")
    adb.chmod(0o755)
    config = tmp_path / "host.toml"
    config.write_text('[host]\nadb_start = true\nadb_discover = true\nadb_server = "127.0.0.1:9"\n', "utf-8")
    with host_agent(*data, "--config", str(config), PATH=f"{tools}:{os.defpath}") as (agent, _):
        until(lambda: daemon.exists() and daemon.read_text("ascii").endswith("\n"), "the daemon")
        agent.end(signal.SIGKILL)
    try:
        assert (folder / RUNNING_FILE).exists(), "it could not clean up"
        assert running_agent.find(folder) is None
        with host_agent(*data) as (again, url):
            assert running_agent.find(folder) == RunningAgent(again.process.pid, url)
    finally:
        os.kill(int(daemon.read_text("ascii")), signal.SIGKILL)


# --- the demonstration -------------------------------------------------------------------------


def test_the_demonstration_shows_two_clients_and_a_cloud_and_keeps_serving(data: tuple[str, str]) -> None:
    with started(*HOST, "run", "--demo", *data, "--port", "0") as demo:
        told = demo.told_until("Stop with Ctrl-C")
        configuration: Any = json.loads(told[told.index("\n{\n") : told.index("\n}\n") + 2])
        (server,) = configuration["mcpServers"].values()
        caller = Caller(server["url"], server["headers"]["Authorization"].removeprefix("Bearer "))
        listed = json.loads(caller.call("list_devices").text)
        assert demo.end(signal.SIGINT) == 0
    names = ("phone-1", "phone-2", "phone-3", "board-1")
    assert [(each["id"], each["state"], each["held_by"]) for each in listed] == [
        (name, "ready", None) for name in names
    ]
    assert "the second wants it, too (tap): refused, device phone-1 is busy" in told
    assert "now the second has it (tap): tapped" in told
    assert "a cloud wants phone-2, too: failed, device held by an active MCP session" in told
    assert "so it takes phone-3 (launch_app, take_screenshot): succeeded" in told
