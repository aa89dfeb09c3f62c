"""`device-host-agent` as a person meets it: processes, streams, exit codes, and what a kill leaves behind."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from mcpboard.host.access.tokens import TOKEN_FILE, read_main_token
from mcpboard.host.running import RUNNING_FILE
from mcpboard.simulator import Simulator
from tests.host.rig import threads
from tests.support import ROOT, served
from tests.support.http import Caller

pytestmark = pytest.mark.slow  # waits for real limits, links or processes

COMMAND = [sys.executable, "-m", "mcpboard", "host"]
PROGRAM = shlex.join(COMMAND)  # as it names itself where a person is to type it
LIMIT_S = 30.0


def environment(**more: str) -> dict[str, str]:
    return {"PATH": os.defpath, "LC_ALL": "C", "PYTHONWARNINGS": "error", **more}


def run(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
    how: Any = {"cwd": ROOT, "env": environment(**more), "text": True, "timeout": LIMIT_S}
    return subprocess.run([*COMMAND, *words], capture_output=True, check=False, **how)


@contextmanager
def running(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A real agent on a free port, and its URL."""
    command = [*COMMAND, "--port", "0", "--data", str(folder), *words]
    with subprocess.Popen(command, cwd=ROOT, env=environment(), text=True, stdout=subprocess.PIPE) as child:
        guard = threading.Timer(LIMIT_S, child.kill)
        guard.start()
        try:
            assert child.stdout is not None
            line = child.stdout.readline()
            assert line.startswith("device-host-agent: serving http://"), line
            yield child, line.split()[-1]
        finally:
            child.terminate()
            child.wait(LIMIT_S)
            guard.cancel()
            guard.join()


def test_run_is_the_verb_when_none_is_given_and_ends_well(tmp_path: Path) -> None:
    """The first time it starts it generates a token; MCP is served at /mcp of its port."""
    with running(tmp_path / "data") as (child, url):
        assert url.endswith("/mcp")
        caller = Caller(url, read_main_token(tmp_path / "data"))
        assert caller.call("list_devices").text == "[]"
        child.terminate()
        assert child.wait(LIMIT_S) == 0
    names = {each.name for each in (tmp_path / "data").iterdir()}
    assert names == {"host_identity.json", TOKEN_FILE, f"{RUNNING_FILE}.lock"}


LOOPBACK = {"localhost": "127.0.0.1", "::1": "[::1]", "127.0.0.2": "127.0.0.2"}


@pytest.mark.parametrize("host", LOOPBACK)
def test_an_address_of_loopback_is_bound_as_it_was_asked_for(tmp_path: Path, host: str) -> None:
    """Never wider than asked for, never another address."""
    with running(tmp_path / "data", "--bind", host) as (_, url):
        assert url.startswith(f"http://{LOOPBACK[host]}:")
        assert Caller(url, read_main_token(tmp_path / "data")).call("list_devices").text == "[]"


# --- mcp-token ---------------------------------------------------------------------------------


def test_the_token_alone_is_printed(tmp_path: Path) -> None:
    """`device-host-agent mcp-token` prints the token for copy and paste."""
    with running(tmp_path / "data"):
        done = run("mcp-token", "--data", str(tmp_path / "data"))
    assert (done.returncode, done.stdout, done.stderr) == (0, read_main_token(tmp_path / "data") + "\n", "")


def test_a_missing_token_is_not_made_up(tmp_path: Path) -> None:
    for words in (("mcp-token",), ("mcp-token", "--json")):
        done = run(*words, "--data", str(tmp_path / "data"))
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.count("\n") == 1
        assert f"{tmp_path}/data/{TOKEN_FILE}: no token yet; start the host agent once" in done.stderr
    assert not (tmp_path / "data").exists()


def test_the_token_is_printed_as_a_clients_configuration(tmp_path: Path) -> None:
    """With the address of the agent that runs, whatever its port; else with the one that it would get here."""
    words = ("mcp-token", "--json", "--data", str(tmp_path / "data"))
    with running(tmp_path / "data") as (_, url):
        done = run(*words, HOST_AGENT_CONSOLE_BIND_HOST="127.0.0.2")
    later = run(*words, HOST_AGENT_CONSOLE_BIND_HOST="127.0.0.2")
    headers = {"Authorization": f"Bearer {read_main_token(tmp_path / 'data')}"}
    assert json.loads(done.stdout) == {"url": url, "headers": headers}
    assert json.loads(later.stdout) == {"url": "http://127.0.0.2:8765/mcp", "headers": headers}


def test_hints_go_to_a_terminal_alone(tmp_path: Path) -> None:
    with running(tmp_path / "data"):
        secret = read_main_token(tmp_path / "data")
    near, far = os.openpty()
    try:
        command = [*COMMAND, "mcp-token", "--data", str(tmp_path / "data")]
        done = subprocess.run(
            command, cwd=ROOT, env=environment(), stdout=far, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S
        )
        printed = os.read(near, 4096).decode()
    finally:
        os.close(near)
        os.close(far)
    assert printed.strip() == secret
    assert f"header: Authorization: Bearer {secret}" in done.stderr
    assert str(tmp_path / "data" / TOKEN_FILE) in done.stderr


MISSING = [
    pytest.param("mcpboard.host", ("run",), " is not here: this installation has the board's role only", id="on a board"),
    pytest.param("PIL", ("run", "--demo"), "pip install 'mcpboard[simulator]'", id="a demonstration without Pillow"),
]  # fmt: skip


@pytest.mark.parametrize(("module", "words", "complaint"), MISSING)
def test_what_is_missing_is_told_in_one_line(
    tmp_path: Path, module: str, words: tuple[str, ...], complaint: str
) -> None:
    program = (
        "import sys; sys.modules[sys.argv[1]] = None; from mcpboard.cli import host_main; "
        "sys.exit(host_main(sys.argv[2:]))"
    )
    command = [sys.executable, "-c", program, module, *words, "--port", "0", "--data", str(tmp_path / "data")]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(), text=True, timeout=LIMIT_S, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert complaint in done.stderr


# --- refusing to start -------------------------------------------------------------------------

REFUSALS = [
    pytest.param({"HOST_AGENT_CONSOLE_BIND_HOST": "::"}, (), "ALLOW_NON_LOOPBACK=true as well", id="an open address"),
    pytest.param({"HOST_AGENT_CONSOLE_BIND_HOST": ""}, (), "an IP address", id="an empty address"),
    pytest.param({}, ("--bind", "nowhere.example"), "an IP address", id="a name"),
    pytest.param({}, ("--port", "x"), "a port is", id="no port"),
    pytest.param({}, ("--config", "/missing.toml"), "no such file", id="a file that is missing"),
]


@pytest.mark.parametrize(("more", "words", "complaint"), REFUSALS)
def test_what_cannot_be_served_refuses_to_start_with_one_line(
    tmp_path: Path, more: dict[str, str], words: tuple[str, ...], complaint: str
) -> None:
    done = run("run", "--data", str(tmp_path / "data"), *words, **more)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("device-host-agent: ")
    assert complaint in done.stderr
    assert not (tmp_path / "data").exists()


def test_a_port_that_is_taken_is_told_with_the_flag_that_cures_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = run("run", "--data", str(tmp_path / "data"), "--port", str(port))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"device-host-agent: cannot listen on 127.0.0.1:{port}: another program has it; "
        "choose another with --port or --bind\n"
    )
    assert not (tmp_path / "data" / TOKEN_FILE).exists(), "the port comes first: no token is made for nothing"


def test_an_unusable_token_file_refuses_to_start_with_path_and_cure(tmp_path: Path) -> None:
    (tmp_path / TOKEN_FILE).write_text("{}")
    done = run("run", "--port", "0", "--data", str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{tmp_path / TOKEN_FILE}: holds no usable token; delete it" in done.stderr
    assert "Traceback" not in done.stderr


# --- devices and tokens ------------------------------------------------------------------------


def test_devices_and_tokens_change_under_a_running_agent(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "data"))
    with running(tmp_path / "data") as (_, url):
        caller = Caller(url, read_main_token(tmp_path / "data"))
        assert run("devices", "add", "p1", "--kind", "simulated", *data).returncode == 0
        assert caller.call("tap", x=1, y=1).text == "tapped 1,1 on p1"
        assert run("devices", "list", *data).stdout == "p1  kind=simulated\n"
        tested = run("devices", "test", "p1", *data)
        assert (tested.returncode, json.loads(tested.stdout)["state"]) == (0, "ready")
        named = run("token", "add", "hermes", *data)
        other = Caller(url, named.stdout.strip())
        assert other.call("list_devices").text
        assert run("token", "list", *data).stdout.startswith("hermes  2")
        assert run("token", "remove", "hermes", *data).returncode == 0
        assert other.call("list_devices").status == 401
        assert run("devices", "remove", "p1", *data).returncode == 0
        assert caller.call("list_devices").text == "[]"


def test_an_empty_list_of_devices_says_how_to_add_one(tmp_path: Path) -> None:
    listed = run("devices", "list", "--data", str(tmp_path / "data"))
    assert (listed.returncode, listed.stdout) == (0, "")
    assert "no devices; add one: device-host-agent devices add ID --kind KIND" in listed.stderr


MISTAKES = [
    pytest.param(("devices", "add", "p1", "--kind", "toaster"), "kind is one of", id="an unknown kind"),
    pytest.param(("devices", "add", "p1", "--kind", "board", "--url", "x"), "a URL such as", id="no URL"),
    pytest.param(("devices", "remove", "p1"), "there is no device p1", id="a device that is not there"),
    pytest.param(("devices", "test", "p1"), "there is no device p1", id="nothing to test"),
    pytest.param(("token", "add", "main"), "not main", id="a name that is taken"),
    pytest.param(("token", "remove", "x"), "there is no token x", id="a token that is not there"),
]


@pytest.mark.parametrize(("words", "complaint"), MISTAKES)
def test_a_mistake_is_one_line_and_exit_code_2(tmp_path: Path, words: tuple[str, ...], complaint: str) -> None:
    done = run(*words, "--data", str(tmp_path / "data"))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert complaint in done.stderr


def test_the_doctor_names_what_is_wrong_and_what_to_do(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "data"))
    sick = run("doctor", *data)
    assert sick.returncode == 1
    assert "start the host agent once" in sick.stdout
    assert f"fix: {PROGRAM} devices add ID --kind board --data {tmp_path}/data" in sick.stdout
    run("devices", "add", "p1", "--kind", "simulated", *data)
    with running(tmp_path / "data") as (_, url):
        well = run("doctor", *data)
    assert url in well.stdout, "its port is found, though nobody has said it"
    assert (well.returncode, "FAIL" in well.stdout) == (0, False), well.stdout
    assert well.stdout.endswith("All is well.\n")


def test_the_doctor_says_the_same_to_programs(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "data"))
    run("devices", "add", "p1", "--kind", "simulated", *data)
    done = run("doctor", "--json", *data)
    printed = json.loads(done.stdout)
    assert (done.returncode, printed["failed"]) == (1, 1), "nothing but the token of the first start is missing"
    assert [(each["check"], each["state"]) for each in printed["checks"]] == [
        ("settings", "ok"),
        ("token", "failed"),
        ("agent", "skipped"),
        ("cloud", "ok"),
        ("devices", "ok"),
        ("device p1", "ok"),
    ]
    assert {tuple(each) for each in printed["checks"]} == {("check", "title", "state", "message", "remedy")}


def test_the_doctor_examines_settings_that_no_agent_would_start_with(tmp_path: Path) -> None:
    done = run("doctor", "--json", "--data", str(tmp_path / "data"), HOST_AGENT_CONSOLE_BIND_HOST="nowhere.example")
    settings, *others = json.loads(done.stdout)["checks"]
    assert (done.returncode, settings["state"], {each["state"] for each in others}) == (1, "failed", {"skipped"})
    assert "an IP address" in settings["message"]


# --- what a kill leaves behind -----------------------------------------------------------------


def test_a_kill_during_a_tap_taps_nothing_again(tmp_path: Path) -> None:
    """kill -9 while the board has the tap: after the restart nothing is asked of it, and no hold is left."""
    data = ("--data", str(tmp_path / "data"))
    with Simulator() as simulator, served.process(served.settings_file(tmp_path, simulator)) as board_url:
        run("devices", "add", "b1", "--kind", "board", "--url", board_url, *data)
        with running(tmp_path / "data") as (child, url), threads() as pool, simulator.hold("touch_gesture") as held:
            caller = Caller(url, read_main_token(tmp_path / "data"))
            tapping = pool.submit(caller.open().call, "tap", x=1, y=1)
            simulator.wait_for_call("touch_gesture")
            child.send_signal(signal.SIGKILL)
            with pytest.raises(OSError):
                tapping.result(LIMIT_S)
            held.release()
            simulator.wait_for_finish("touch_gesture")
        with running(tmp_path / "data") as (_, url):
            caller = Caller(url, read_main_token(tmp_path / "data")).open()
            (device,) = json.loads(caller.call("list_devices").text)
            assert (device["state"], device["held_by"]) == ("ready", None)
            assert caller.call("take_screenshot").result["content"]
        assert [name for name, _ in simulator.calls].count("touch_gesture") == 1


def test_a_call_that_hangs_does_not_keep_the_agent_from_ending(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "data"))
    with Simulator() as simulator, served.process(served.settings_file(tmp_path, simulator)) as board_url:
        run("devices", "add", "b1", "--kind", "board", "--url", board_url, *data)
        with running(tmp_path / "data") as (child, url), threads() as pool, simulator.hold("touch_gesture") as held:
            caller = Caller(url, read_main_token(tmp_path / "data"))
            tapping = pool.submit(caller.call, "tap", x=1, y=1)
            simulator.wait_for_call("touch_gesture")
            child.terminate()
            assert child.wait(10) == 0
            with pytest.raises(OSError):
                tapping.result(LIMIT_S)
            held.release()


def test_the_token_is_in_no_log_and_no_process_list(tmp_path: Path) -> None:
    """Not even with the agent's own log at DEBUG."""
    log = tmp_path / "log"
    with running(tmp_path / "data", "--log-level", "debug", "--log", str(log)) as (child, url):
        secret = read_main_token(tmp_path / "data")
        caller = Caller(url, secret).open()
        caller.call("tap", x=1, y=1, device_id="nothing")
        Caller(url, secret[:-1]).post("ping")
        command_line = Path(f"/proc/{child.pid}/cmdline").read_bytes() + Path(f"/proc/{child.pid}/environ").read_bytes()
    content = log.read_text()
    assert "tap: UnknownDevice" in content
    for hidden in (secret, str(caller.session)[8:]):
        slices = [hidden[at : at + 8] for at in range(len(hidden) - 7)]
        assert not [each for each in slices if each in content or each.encode() in command_line]


# --- clients' configurations -------------------------------------------------------------------


def connect(form: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mcpboard", "connect", form, *words, "--host"]
    return subprocess.run(
        command, cwd=ROOT, env=environment(), text=True, timeout=LIMIT_S, capture_output=True, check=False
    )


def test_hermes_is_configured_as_the_mission_writes_it(tmp_path: Path) -> None:
    """Hermes Agent is configured by mcp_servers, apex_device, url and the Authorization header."""
    data = str(tmp_path / "data")
    with running(tmp_path / "data") as (_, url):
        printed = connect("hermes", url, "--data", data)
        secret = read_main_token(tmp_path / "data")
        usual = connect("hermes", "--data", data)
    assert (printed.returncode, printed.stderr.count("Traceback")) == (0, 0), printed.stderr
    lines = [line.strip() for line in printed.stdout.splitlines()]
    assert lines[:4] == ["mcp_servers:", "apex_device:", f'url: "{url}"', "headers:"]
    assert lines[4] == f'Authorization: "Bearer {secret}"'
    assert f'url: "{url}"' in usual.stdout, "the agent that runs is found by its folder"
    stopped = connect("hermes", "--data", data)
    assert 'url: "http://127.0.0.1:8765/mcp"' in stopped.stdout


def test_a_client_that_takes_a_variable_is_told_how_to_fill_it(tmp_path: Path) -> None:
    with running(tmp_path / "data") as (_, url):
        printed = connect("claude-code", url, "--data", str(tmp_path / "data"))
    secret = read_main_token(tmp_path / "data")
    assert f'export APEX_DEVICE_TOKEN="$({PROGRAM} mcp-token --data {tmp_path}/data)"' in printed.stderr
    assert secret not in printed.stdout + printed.stderr


def test_a_client_that_starts_programs_reads_the_agents_own_file(tmp_path: Path) -> None:
    with running(tmp_path / "data") as (_, url):
        file = str(tmp_path / "data" / TOKEN_FILE)
        printed = connect("claude-desktop", url, "--data", str(tmp_path / "data"))
        assert file in printed.stdout
        command = [sys.executable, "-m", "mcpboard", "call", url, "list_devices", "--token-file", file]
        done = subprocess.run(command, cwd=ROOT, env=environment(), text=True, timeout=LIMIT_S, stdout=subprocess.PIPE)
    assert done.stdout == "[]\n"


def test_an_agent_that_does_not_answer_is_for_its_own_doctor(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with running(folder):
        pass  # its token stays
    told = connect("cursor", "http://127.0.0.1:9/mcp", "--data", str(folder))
    assert told.returncode == 1
    assert f"{PROGRAM} doctor --data {folder}   names the cause" in told.stderr
    assert "mcpboard doctor" not in told.stderr


def test_there_is_nothing_to_connect_to_before_the_first_start(tmp_path: Path) -> None:
    done = connect("hermes", "--data", str(tmp_path / "data"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no token yet; start the host agent once" in done.stderr


# --- the demonstration -------------------------------------------------------------------------


def test_the_demonstration_shows_two_clients_and_a_cloud_and_keeps_serving(tmp_path: Path) -> None:
    command = [*COMMAND, "run", "--demo", "--port", "0", "--data", str(tmp_path / "data")]
    with subprocess.Popen(command, cwd=ROOT, env=environment(), text=True, stdout=subprocess.PIPE) as child:
        guard = threading.Timer(2 * LIMIT_S, child.kill)
        guard.start()
        try:
            assert child.stdout is not None
            told = "".join(takewhile(lambda line: line != "Stop with Ctrl-C.\n", child.stdout))
            configuration: Any = json.loads(told[told.index("\n{\n") : told.index("\n}\n") + 2])
            (server,) = configuration["mcpServers"].values()
            caller = Caller(server["url"], server["headers"]["Authorization"].removeprefix("Bearer "))
            listed = json.loads(caller.call("list_devices").text)
        finally:
            child.send_signal(signal.SIGINT)
            code = child.wait(LIMIT_S)
            guard.cancel()
            guard.join()
    assert [(each["id"], each["state"], each["held_by"]) for each in listed] == [
        (name, "ready", None) for name in ("phone-1", "phone-2", "phone-3", "board-1")
    ]
    assert "the second wants it, too (tap): refused, device phone-1 is busy" in told
    assert "now the second has it (tap): tapped" in told
    assert "a cloud wants phone-2, too: failed, device held by an active MCP session" in told
    assert "so it takes phone-3 (launch_app, take_screenshot): succeeded" in told
    assert code == 0
