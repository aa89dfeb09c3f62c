"""The doctor before real servers: each thing that goes wrong for people is found, and named as the cause."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from mcpboard.cli import main
from mcpboard.doctor import CheckResult, CheckState
from mcpboard.host.access.tokens import TOKEN_FILE, read_main_token
from mcpboard.laptop import doctor
from mcpboard.laptop.doctor import probes, routing
from mcpboard.laptop.doctor.routing import NetworkRoute
from mcpboard.serving import server
from mcpboard.simulator import Simulator
from tests.functional.namespaces import Namespace, ip, namespace
from tests.host.rig import Agent, Fake, agent
from tests.laptop.test_portability import foreign
from tests.support import ROOT, rig
from tests.support.peer import Peer, serving
from tests.support.served import Board

TOKEN = "a-token-of-some-length"
NOBODY = "http://127.0.0.1:9/mcp"
CLOSED_PROXY = "http://127.0.0.1:9/"
BOARD_NAMES = [check.name for check in doctor.WAY + doctor.BOARD]
HOST_NAMES = [check.name for check in doctor.WAY + doctor.HOST_AGENT]

Results = Mapping[str, CheckResult]


def results(url: str, token: str | None = None, variables: Mapping[str, str] | None = None) -> Results:
    found = doctor.examine(url, token, variables or {}, "linux")
    return {finding.name: finding.result for finding in found}


def failing(found: Results) -> list[str]:
    return [name for name, result in found.items() if result.state is CheckState.FAILED]


def skipping(found: Results) -> list[str]:
    return [name for name, result in found.items() if result.state is CheckState.SKIPPED]


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    with Simulator() as simulator:
        yield simulator


@contextlib.contextmanager
def fronted(simulator: Simulator, **fields: object) -> Iterator[str]:
    """The MCP URL of a board in front of `simulator`, with `fields` of the settings changed."""
    backends = {"agent": simulator.agent_url, "config_web": simulator.config_web_url}
    with rig.in_front_of(**{**backends, **fields}) as client:  # type: ignore[arg-type]
        yield f"http://127.0.0.1:{client.address[1]}/mcp"


def test_a_board_that_is_well_passes_every_check(simulator: Simulator) -> None:
    before = len(simulator.calls)
    with fronted(simulator) as url:
        found = results(url)
        assert not failing(results(url.replace("127.0.0.1", "localhost"))), "a name is fine for programs"
    assert not failing(found) + skipping(found), found
    assert [name for name, _ in simulator.calls[before:]] == ["screenshot"] * 2, "nothing on the phone is touched"


# --- what else may stand there -------------------------------------------------------------------


@contextlib.contextmanager
def speaking(answer: bytes | None) -> Iterator[str]:
    """The URL of a server that says the same to everybody; with None it takes connections and says nothing."""

    def serve() -> None:
        with contextlib.suppress(OSError):
            while answer is not None:
                sock, _ = listener.accept()
                with sock, contextlib.suppress(OSError):
                    sock.recv(65536)
                    sock.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        running = threading.Thread(target=serve)
        running.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            running.join(5)


@contextlib.contextmanager
def stranger() -> Iterator[str]:
    with serving(Peer()) as peer:
        yield peer.url


PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>"
STRANGERS = [
    pytest.param(lambda _: contextlib.nullcontext("192.168.42.1:8080"), "address", "URL such as", id="no URL"),
    pytest.param(lambda _: contextlib.nullcontext(NOBODY), "tcp", "nothing listens on port 9", id="nobody"),
    pytest.param(lambda _: speaking(b"SSH-2.0-OpenSSH_9.2\r\n"), "http", "does not speak HTTP", id="no HTTP"),
    pytest.param(lambda _: speaking(None), "http", "does not answer", id="silence"),
    pytest.param(lambda _: speaking(PAGE), "mcpboard", "web page", id="a web page"),
    pytest.param(lambda _: stranger(), "mcpboard", "another MCP server answers here: peer 7", id="another MCP server"),
    pytest.param(lambda board: contextlib.nullcontext(f"{board.agent_url}/mcp"), "mcpboard", "Agent of a stock board", id="a stock Agent"),
    pytest.param(lambda board: fronted(board, mcp_enabled=False), "switch", "MCP is disabled", id="disabled"),
    pytest.param(lambda board: fronted(board, agent=rig.NOBODY), "agent", "cannot be reached", id="no Agent"),
    pytest.param(lambda board: fronted(board, config_web=rig.NOBODY), "config_web", "cannot be reached", id="no Config Web"),
]  # fmt: skip


@pytest.mark.parametrize(("there", "check", "message"), STRANGERS)
def test_the_one_cause_is_named(
    there: Callable[[Simulator], AbstractContextManager[str]],
    check: str,
    message: str,
    simulator: Simulator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(probes, "REQUEST_S", 0.5)
    with there(simulator) as url:
        found = results(url)
    assert failing(found) == [check]
    assert message in found[check].message
    dependent = [row.name for row in doctor.WAY + doctor.BOARD if check in row.needs]
    assert all(found[name].state is CheckState.SKIPPED for name in dependent)


def test_https_to_a_board(simulator: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    # The board waits for more of what it takes for a request.
    monkeypatch.setattr("mcpboard.transport.http.CONNECT_SECONDS", 0.5)
    with fronted(simulator) as url:
        found = results(url.replace("http:", "https:"))
    assert failing(found) == ["http"]
    assert "boards speak http" in found["http"].message


@pytest.mark.parametrize(("kept", "given", "fails", "message"), [
    pytest.param(TOKEN, TOKEN, [], "the token is accepted", id="the right one"),
    pytest.param(TOKEN, None, ["handshake"], "requires a token", id="none given"),
    pytest.param(TOKEN, "another-token-altogether", ["handshake"], "another token", id="a wrong one"),
    pytest.param("", TOKEN, [], "no token is required, so yours was not looked at", id="one that nobody asked for"),
])  # fmt: skip
def test_a_token(simulator: Simulator, kept: str, given: str | None, fails: list[str], message: str) -> None:
    with fronted(simulator, token=kept.encode() or None) as url:
        found = results(url, given)
    assert failing(found) == fails
    assert message in found["handshake"].message
    assert TOKEN not in str(found)


def test_a_companion_app_that_is_not_linked(simulator: Simulator) -> None:
    simulator.faults.set("bridge_down")
    try:
        with fronted(simulator) as url:
            found = results(url)
    finally:
        simulator.faults.clear()
    assert failing(found) == ["phone_bridge"]


def test_a_stranger_that_strips_the_origin_is_found() -> None:
    """The peer builds its heads without an Origin, as something in between that takes it away would."""
    with stranger() as url, contextlib.closing(probes.ServerProbes(url, None, {}, "linux")) as looking:
        assert (looking.origins.same, looking.origins.foreign) == (200, 200)


def test_only_a_board_that_answers_excuses_a_route_out_of_its_network(
    simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gateway may answer for an address that is not its own."""
    monkeypatch.setattr(routing, "probe", lambda *_: NetworkRoute("192.168.42.1", "linux", "10.1.1.9", "wlan0"))
    for there, answers in ((speaking(PAGE), False), (fronted(simulator), True)):
        with there as url, contextlib.closing(probes.ServerProbes(url, None, {}, "linux")) as looking:
            assert looking.route.answers == answers


# --- a host agent ----------------------------------------------------------------------------------


@pytest.fixture
def phone() -> Fake:
    """A device that notes what is done to it."""
    return Fake()


@pytest.fixture
def host_agent(phone: Fake, tmp_path: Path) -> Iterator[Agent]:
    with agent(tmp_path / "data", phone=phone) as running:
        yield running


def test_a_host_agent_that_is_well_passes_the_checks_for_hosts(host_agent: Agent, phone: Fake) -> None:
    found = results(host_agent.url, read_main_token(host_agent.folder))
    assert list(found) == HOST_NAMES, "nothing that only boards have is looked for"
    assert not failing(found) + skipping(found), found
    assert found["mcpboard"].message.startswith("the host agent of a computer: mcpboard-host ")
    assert "the token is accepted" in found["handshake"].message
    assert found["devices"].message == "phone ready"
    (device,) = json.loads(host_agent.caller.call("list_devices").text)
    assert (phone.done, phone.owners, device["held_by"]) == ([], 0, None), "no device is touched"


@pytest.mark.parametrize(("token", "message"), [
    pytest.param(None, "the host agent requires a token", id="none given"),
    pytest.param("another-token-altogether", "requires another token", id="a wrong one"),
])  # fmt: skip
def test_a_host_agent_is_known_before_its_token(host_agent: Agent, token: str | None, message: str) -> None:
    found = results(host_agent.url, token)
    assert list(found) == HOST_NAMES
    assert failing(found) == ["handshake"]
    assert found["mcpboard"].message == "the host agent of a computer"
    assert message in found["handshake"].message
    assert skipping(found) == ["devices", "round_trip"]
    assert read_main_token(host_agent.folder) not in str(found)


# --- the verb ------------------------------------------------------------------------------------


def test_a_proxy_variable_is_named_and_not_followed(
    simulator: Simulator, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ALL_PROXY", CLOSED_PROXY)
    with fronted(simulator) as url:
        monkeypatch.setenv("no_proxy", "localhost,127.0.0.1")
        monkeypatch.delenv("NO_PROXY", raising=False)
        assert main(["doctor", url]) == 0
        monkeypatch.delenv("no_proxy")
        capsys.readouterr()
        assert main(["doctor", url]) == 1
    said = capsys.readouterr().out
    assert "FAIL  Proxy variables       ALL_PROXY sends clients to the proxy 127.0.0.1:9" in said
    assert said.count("FAIL") == 1


def test_json_of_a_board_and_of_a_host_agent_has_the_same_shape(
    simulator: Simulator, host_agent: Agent, capsys: pytest.CaptureFixture[str]
) -> None:
    with fronted(simulator, config_web=rig.NOBODY) as url:
        for server_url, names, failed in ((url, BOARD_NAMES, "config_web"), (host_agent.url, HOST_NAMES, "handshake")):
            assert main(["doctor", server_url, "--json"]) == 1
            printed = json.loads(capsys.readouterr().out)
            assert [check["check"] for check in printed["checks"]] == names
            assert [check["check"] for check in printed["checks"] if check["state"] == "failed"] == [failed]


def test_a_token_file_is_used_also_that_of_a_host_agent(
    simulator: Simulator, host_agent: Agent, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    with fronted(simulator, token=TOKEN.encode()) as url:
        assert main(["doctor", url, "--token-file", str(file)]) == 0
    assert main(["doctor", host_agent.url, "--token-file", str(host_agent.folder / TOKEN_FILE)]) == 0
    assert "Devices               phone ready\n" in capsys.readouterr().out


@pytest.mark.parametrize("words", [[NOBODY], ["--token-file", "token"], ["--board"]], ids=" ".join)
def test_the_agent_of_this_computer_is_never_examined_instead_of_what_was_named(
    words: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["doctor", *words, "--host", "--data", str(tmp_path)]) == 2
    assert "--host finds URL and token by itself" in capsys.readouterr().err


def test_the_doctor_works_where_only_windows_is(board: Board) -> None:
    proxied = foreign("doctor", board.url)
    assert proxied.returncode == 1, proxied.stderr
    assert proxied.stdout.count(b"FAIL") == 1
    assert b"HTTP_PROXY and" in proxied.stdout


# --- over a cable --------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Cable:
    """A laptop's namespace, and the URL of the board at the other end of its cable."""

    laptop: Namespace
    url: str

    def doctor(self) -> Results:
        """What `mcpboard doctor` says on the laptop."""
        namespaced = ("ip", "netns", "exec", self.laptop.name)
        command = [*namespaced, sys.executable, "-m", "mcpboard", "doctor", self.url, "--json"]
        done = subprocess.run(command, check=False, capture_output=True, timeout=60, cwd=ROOT)
        told = json.loads(done.stdout)
        assert (done.returncode, done.stderr) == (1 if told["failed"] else 0, b"")
        return {
            each["check"]: CheckResult(CheckState(each["state"]), each["message"], each["remedy"])
            for each in told["checks"]
        }


@pytest.fixture
def cable(simulator: Simulator) -> Iterator[Cable]:
    """A board with the address that boards have, its Agent elsewhere, and a laptop with an address of the board's."""
    with namespace("board") as board, namespace("laptop") as laptop:
        ip(f"link add usb0 netns {board.name} type veth peer name usb0 netns {laptop.name}")
        board.ip("addr add 192.168.42.1/24 dev usb0", "link set usb0 up")
        laptop.ip("addr add 192.168.42.100/24 dev usb0", "link set usb0 up")
        sockets = board.run(server.listeners, [("192.168.42.1", 8080)])
        settings = rig.settings(simulator.agent_url, simulator.config_web_url)
        with rig.serving(lambda: settings, sockets):
            yield Cable(laptop, "http://192.168.42.1:8080/mcp")


@pytest.mark.tools
def test_over_a_cable_all_is_well_and_the_interface_is_named(cable: Cable) -> None:
    found = cable.doctor()
    assert not failing(found) + skipping(found), found
    assert found["route"].message == "over usb0, from 192.168.42.100"


@pytest.mark.tools
def test_a_cable_that_is_out_is_named(cable: Cable) -> None:
    cable.laptop.ip("link set usb0 down")
    found = cable.doctor()
    assert failing(found) == ["route", "tcp"]
    assert "ip -brief address" in found["route"].remedy


@pytest.mark.tools
@pytest.mark.slow
def test_a_cable_that_is_out_beside_a_network_that_is_up_is_named(cable: Cable) -> None:
    cable.laptop.ip("link set usb0 down", "link add wlan0 type veth peer name access0", "link set access0 up")
    cable.laptop.ip("addr add 10.0.0.2/24 dev wlan0", "link set wlan0 up", "route add default via 10.0.0.1")
    cable.laptop.ip("neigh add 10.0.0.1 lladdr 02:00:00:00:00:01 dev wlan0")  # a gateway that swallows everything
    found = cable.doctor()
    assert failing(found) == ["route", "tcp"]
    assert "over wlan0, from 10.0.0.2: the board's USB network is not up" in found["route"].message
