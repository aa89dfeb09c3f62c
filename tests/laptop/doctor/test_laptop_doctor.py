"""The doctor before real servers: each thing that goes wrong for people is found, and named as the cause."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import json
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from mcpboard.cli import main
from mcpboard.doctor import CheckResult, CheckState
from mcpboard.host.access.tokens import TOKEN_FILE, read_main_token
from mcpboard.host.drivers.base import UnavailableDriver
from mcpboard.laptop import doctor
from mcpboard.laptop.doctor import probes
from mcpboard.serving import server
from mcpboard.simulator import Simulator
from tests.functional.namespaces import Namespace, ip, namespace
from tests.host.rig import Agent, Fake, agent
from tests.laptop.test_portability import foreign
from tests.support import ROOT, rig
from tests.support.peer import Peer, serving
from tests.support.served import Board

TOKEN = "a-token-of-some-length"
CLOSED_PROXY = "http://127.0.0.1:9/"

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
    assert not failing(found) + skipping(found), found
    assert [name for name, _ in simulator.calls[before:]] == ["screenshot"], "nothing on the phone is touched"


def test_a_wrong_form_of_the_address_is_all_that_is_said() -> None:
    found = results("192.168.42.1:8080")
    assert failing(found) == ["address"]
    assert len(skipping(found)) == len(doctor.WAY + doctor.BOARD) - 1


def test_a_port_where_nobody_listens() -> None:
    found = results("http://127.0.0.1:9/mcp")
    assert failing(found) == ["tcp"]
    assert found["http"].message == "depends on: TCP"


@contextlib.contextmanager
def web_server() -> Iterator[str]:
    """A server that has an HTML page for every path and takes no POST."""

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b"<html>hello</html>"
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            return None

    with HTTPServer(("127.0.0.1", 0), Pages) as pages:
        running = threading.Thread(target=pages.serve_forever, kwargs={"poll_interval": 0.02})
        running.start()
        try:
            yield f"http://127.0.0.1:{pages.server_port}/mcp"
        finally:
            pages.shutdown()
            running.join(5)


def test_a_web_page() -> None:
    with web_server() as url:
        found = results(url)
    assert failing(found) == ["mcpboard"]
    assert "web page" in found["mcpboard"].message


def test_another_mcp_server_is_named() -> None:
    with serving(Peer()) as peer:
        found = results(peer.url)
    assert failing(found) == ["mcpboard"]
    assert "another MCP server answers here: peer 7" in found["mcpboard"].message


def test_the_agent_of_a_stock_board_is_known(simulator: Simulator) -> None:
    found = results(f"{simulator.agent_url}/mcp")
    assert failing(found) == ["mcpboard"]
    assert ":8090/mcp" in found["mcpboard"].remedy


def test_a_server_that_does_not_speak_http() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        running = threading.Thread(target=_greet, args=(listener,))
        running.start()
        found = results(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp")
        listener.shutdown(socket.SHUT_RDWR)
        running.join(5)
    assert failing(found) == ["http"]
    assert "does not speak HTTP" in found["http"].message


def _greet(listener: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            sock, _ = listener.accept()
            with sock, contextlib.suppress(OSError):
                sock.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")


def test_a_server_that_takes_connections_and_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "REQUEST_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        found = results(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp")
    assert failing(found) == ["http"]
    assert "does not answer" in found["http"].message


def test_https_to_a_board(simulator: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "mcpboard.transport.http.CONNECT_SECONDS", 0.5
    )  # the board waits for more of what it takes for a request
    with fronted(simulator) as url:
        found = results(url.replace("http:", "https:"))
    assert failing(found) == ["http"]
    assert "boards speak http" in found["http"].message
    assert "http://" in found["http"].remedy


def test_mcp_disabled(simulator: Simulator) -> None:
    with fronted(simulator, mcp_enabled=False) as url:
        found = results(url)
    assert failing(found) == ["switch"]
    assert "mcp_enabled = true" in found["switch"].remedy


@pytest.mark.parametrize(
    ("token", "message"),
    [
        pytest.param(None, "requires a token", id="none given"),
        pytest.param("another-token-altogether", "another token", id="a wrong one"),
    ],
)
def test_a_token(simulator: Simulator, token: str | None, message: str) -> None:
    with fronted(simulator, token=TOKEN.encode()) as url:
        found = results(url, token)
        assert not failing(results(url, TOKEN))
    assert failing(found) == ["handshake"]
    assert message in found["handshake"].message
    assert TOKEN not in str(found)


def test_a_token_that_nobody_asked_for(simulator: Simulator) -> None:
    with fronted(simulator) as url:
        found = results(url, TOKEN)
    assert not failing(found)
    assert "no token is required, so yours was not looked at" in found["handshake"].message


def test_a_token_that_is_looked_at_is_accepted(simulator: Simulator) -> None:
    with fronted(simulator, token=TOKEN.encode()) as url:
        assert "the token is accepted" in results(url, TOKEN)["handshake"].message


@pytest.mark.parametrize(
    ("down", "failed"),
    [
        pytest.param("agent", ["agent"], id="the Agent"),
        pytest.param("config_web", ["config_web"], id="Config Web"),
    ],
)
def test_a_backend_that_is_down(simulator: Simulator, down: str, failed: list[str]) -> None:
    with fronted(simulator, **{down: rig.NOBODY}) as url:
        found = results(url)
    assert failing(found) == failed
    assert ("picture" in skipping(found)) == (down == "agent")
    assert "cannot be reached" in found[down].message


def test_a_companion_app_that_is_not_linked(simulator: Simulator) -> None:
    simulator.faults.set("bridge_down")
    try:
        with fronted(simulator) as url:
            found = results(url)
    finally:
        simulator.faults.clear()
    assert failing(found) == ["phone_bridge"]


@pytest.mark.parametrize(
    ("pixels", "extra", "message"),
    [
        pytest.param((498, 1080), 800_000, "over 1000 kB", id="too many bytes"),
        pytest.param((2400, 1080), 0, "over 2000 px", id="too many pixels"),
    ],
)
def test_a_picture_that_clients_refuse(
    monkeypatch: pytest.MonkeyPatch, pixels: tuple[int, int], extra: int, message: str
) -> None:
    picture = b"\xff\xd8\xff\xc0" + struct.pack(">HBHH", 17, 8, pixels[1], pixels[0]) + bytes(extra)
    shown = {"format": "jpeg", "width": 1, "height": 1, "data": base64.b64encode(picture).decode()}
    with Simulator() as simulator:
        monkeypatch.setattr("mcpboard.simulator.board.camera.Camera.shot", lambda *_: shown)
        with fronted(simulator) as url:
            found = results(url)
    assert failing(found) == ["picture"]
    assert message in found["picture"].message


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
def test_a_proxy_variable_is_named_and_not_followed(
    simulator: Simulator, monkeypatch: pytest.MonkeyPatch, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for other in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, CLOSED_PROXY)
    with fronted(simulator) as url:
        assert main(["doctor", url]) == 1
    said = capsys.readouterr().out
    assert f"FAIL  Proxy variables       {name} sends clients to the proxy 127.0.0.1:9" in said
    assert said.count("FAIL") == 1


def test_an_exception_from_the_proxy_is_enough(simulator: Simulator) -> None:
    with fronted(simulator) as url:
        found = results(url, variables={"HTTP_PROXY": CLOSED_PROXY, "no_proxy": "localhost,127.0.0.1"})
    assert not failing(found)


def test_a_name_in_the_url_is_fine_for_programs(simulator: Simulator) -> None:
    with fronted(simulator) as url:
        assert not failing(results(url.replace("127.0.0.1", "localhost")))


def test_a_stranger_that_strips_the_origin_is_found() -> None:
    """The peer builds its heads without an Origin, as something in between that takes it away would."""
    with serving(Peer()) as peer:
        server_probes = probes.ServerProbes(peer.url, None, {}, "linux")
        origins = server_probes.origins
        server_probes.close()
    assert (origins.same, origins.foreign) == (200, 200)


# --- a host agent ----------------------------------------------------------------------------------


HOST_NAMES = [check.name for check in doctor.WAY + doctor.HOST_AGENT]


@pytest.fixture
def host_agent(tmp_path: Path) -> Iterator[Agent]:
    """A host agent with one device, which notes what is done to it."""
    with agent(tmp_path / "data", phone=Fake()) as running:
        yield running


def test_a_host_agent_that_is_well_passes_the_checks_for_hosts(host_agent: Agent) -> None:
    found = results(host_agent.url, read_main_token(host_agent.folder))
    assert list(found) == HOST_NAMES, "nothing that only boards have is looked for"
    assert not failing(found) + skipping(found), found
    assert found["mcpboard"].message.startswith("the host agent of a computer: mcpboard-host ")
    assert "the token is accepted" in found["handshake"].message
    assert found["devices"].message == "phone ready"


def test_the_doctor_touches_no_device_of_a_host(tmp_path: Path) -> None:
    phone = Fake()
    with agent(tmp_path / "data", phone=phone) as running:
        results(running.url, read_main_token(running.folder))
        (device,) = json.loads(running.caller.call("list_devices").text)
    assert (phone.done, phone.owners, device["held_by"]) == ([], 0, None)


@pytest.mark.parametrize(
    ("token", "message"),
    [
        pytest.param(None, "the host agent requires a token", id="none given"),
        pytest.param("another-token-altogether", "requires another token", id="a wrong one"),
    ],
)
def test_a_host_agent_is_known_before_its_token(host_agent: Agent, token: str | None, message: str) -> None:
    found = results(host_agent.url, token)
    assert list(found) == HOST_NAMES
    assert failing(found) == ["handshake"]
    assert found["mcpboard"].message == "the host agent of a computer"
    assert message in found["handshake"].message
    assert skipping(found) == ["devices", "round_trip"]
    assert read_main_token(host_agent.folder) not in str(found)


def test_a_host_agent_without_devices(tmp_path: Path) -> None:
    with agent(tmp_path / "data") as running:
        found = results(running.url, read_main_token(running.folder))
    assert failing(found) == ["devices"]
    assert "devices add" in found["devices"].remedy


def test_a_device_of_a_host_that_is_not_ready_is_named(tmp_path: Path) -> None:
    with agent(tmp_path / "data", broken=UnavailableDriver("no such thing"), phone=Fake()) as running:
        found = results(running.url, read_main_token(running.folder))
    assert failing(found) == ["devices"]
    assert found["devices"].message == "broken no driver, phone ready"


def test_another_path_of_a_host_agent(host_agent: Agent) -> None:
    found = results(f"{host_agent.url}/more", read_main_token(host_agent.folder))
    assert failing(found) == ["handshake"]
    assert "path /mcp" in found["handshake"].remedy


def test_the_file_of_a_host_agent_is_a_token_file(host_agent: Agent, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", host_agent.url, "--token-file", str(host_agent.folder / TOKEN_FILE)]) == 0
    assert "Devices               phone ready\n" in capsys.readouterr().out


def test_json_of_a_host_agent_has_the_same_shape(host_agent: Agent, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", host_agent.url, "--json"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert (printed["failed"], [check["check"] for check in printed["checks"]]) == (1, HOST_NAMES)
    assert {tuple(check) for check in printed["checks"]} == {("check", "title", "state", "message", "remedy")}


# --- the verb ------------------------------------------------------------------------------------


def test_json_says_the_same(simulator: Simulator, capsys: pytest.CaptureFixture[str]) -> None:
    with fronted(simulator, config_web=rig.NOBODY) as url:
        assert main(["doctor", url, "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["failed"] == 1
    assert [check["check"] for check in told["checks"]] == [check.name for check in doctor.WAY + doctor.BOARD]
    assert {check["check"]: check["state"] for check in told["checks"]}["config_web"] == "failed"
    assert all(bool(check["remedy"]) == (check["state"] == "failed") for check in told["checks"])


def test_a_token_file_is_used(simulator: Simulator, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    with fronted(simulator, token=TOKEN.encode()) as url:
        assert main(["doctor", url, "--token-file", str(file)]) == 0
    assert "All is well." in capsys.readouterr().out


def test_many_failures_are_one_exit_code(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """2 is for wrong usage, so the count of failed checks is in the last line and not in the exit code."""
    row = dataclasses.replace(doctor.WAY[0], needs=())
    monkeypatch.setattr(doctor, "BOARD", tuple(dataclasses.replace(row, name=f"row {n}") for n in range(149)))
    assert main(["doctor", "no URL"]) == 1
    assert "150 failed; the first one is usually the cause." in capsys.readouterr().out


@pytest.mark.parametrize("words", [["http://127.0.0.1:9/mcp"], ["--token-file", "token"], ["--board"]], ids=" ".join)
def test_the_agent_of_this_computer_is_never_examined_instead_of_what_was_named(
    words: list[str], capsys: pytest.CaptureFixture[str], host_agent: Agent
) -> None:
    assert main(["doctor", *words, "--host", "--data", str(host_agent.folder)]) == 2
    assert "--host finds URL and token by itself" in capsys.readouterr().err


def test_one_failure_is_not_told_to_be_the_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "http://127.0.0.1:9/mcp"]) == 1
    assert capsys.readouterr().out.endswith("\n1 failed.\n")


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
        command = [
            "ip",
            "netns",
            "exec",
            self.laptop.name,
            sys.executable,
            "-m",
            "mcpboard",
            "doctor",
            self.url,
            "--json",
        ]
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
