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
from mcpboard.laptop import doctor
from mcpboard.laptop.doctor import probes as visits
from mcpboard.serving import server
from mcpboard.simulator import Simulator
from tests.functional import rig
from tests.functional.namespaces import Namespace, ip, namespace
from tests.functional.peer import Peer, serving
from tests.laptop.test_portability import foreign
from tests.support import ROOT
from tests.support.served import Board

TOKEN = "a-token-of-some-length"
CLOSED_PROXY = "http://127.0.0.1:9/"

Verdicts = Mapping[str, CheckResult]


def verdicts(url: str, token: str | None = None, variables: Mapping[str, str] | None = None) -> Verdicts:
    found = doctor.examine(url, token, variables or {}, "linux")
    return {finding.name: finding.verdict for finding in found}


def failing(found: Verdicts) -> list[str]:
    return [name for name, verdict in found.items() if verdict.state is CheckState.FAILED]


def skipping(found: Verdicts) -> list[str]:
    return [name for name, verdict in found.items() if verdict.state is CheckState.SKIPPED]


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    with Simulator() as pretend:
        yield pretend


@contextlib.contextmanager
def fronted(simulator: Simulator, **fields: object) -> Iterator[str]:
    """The MCP URL of a board in front of `simulator`, with `fields` of the settings changed."""
    backends = {"agent": simulator.agent_url, "config_web": simulator.config_web_url}
    with rig.in_front_of(**{**backends, **fields}) as client:  # type: ignore[arg-type]
        yield f"http://127.0.0.1:{client.address[1]}/mcp"


def test_a_board_that_is_well_passes_every_check(simulator: Simulator) -> None:
    before = len(simulator.calls)
    with fronted(simulator) as url:
        found = verdicts(url)
    assert not failing(found) + skipping(found), found
    assert [name for name, _ in simulator.calls[before:]] == ["screenshot"], "nothing on the phone is touched"


def test_a_wrong_form_of_the_address_is_all_that_is_said() -> None:
    found = verdicts("192.168.42.1:8080")
    assert failing(found) == ["address"]
    assert len(skipping(found)) == len(doctor.CHECKS) - 1


def test_a_port_where_nobody_listens() -> None:
    found = verdicts("http://127.0.0.1:9/mcp")
    assert failing(found) == ["tcp"]
    assert found["http"].words == "depends on: TCP"


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
        found = verdicts(url)
    assert failing(found) == ["mcpboard"]
    assert "web page" in found["mcpboard"].words


def test_another_mcp_server_is_named() -> None:
    with serving(Peer()) as peer:
        found = verdicts(peer.url)
    assert failing(found) == ["mcpboard"]
    assert "another MCP server answers here: peer 7" in found["mcpboard"].words


def test_the_agent_of_a_stock_board_is_known(simulator: Simulator) -> None:
    found = verdicts(f"{simulator.agent_url}/mcp")
    assert failing(found) == ["mcpboard"]
    assert ":8090/mcp" in found["mcpboard"].cure


def test_a_server_that_does_not_speak_http() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        running = threading.Thread(target=_greet, args=(listener,))
        running.start()
        found = verdicts(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp")
        listener.shutdown(socket.SHUT_RDWR)
        running.join(5)
    assert failing(found) == ["http"]
    assert "does not speak HTTP" in found["http"].words


def _greet(listener: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            sock, _ = listener.accept()
            with sock, contextlib.suppress(OSError):
                sock.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")


def test_a_server_that_takes_connections_and_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visits, "LOOK_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        found = verdicts(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp")
    assert failing(found) == ["http"]
    assert "does not answer" in found["http"].words


def test_https_to_a_board(simulator: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "mcpboard.transport.http.CONNECT_SECONDS", 0.5
    )  # the board waits for more of what it takes for a request
    with fronted(simulator) as url:
        found = verdicts(url.replace("http:", "https:"))
    assert failing(found) == ["http"]
    assert "boards speak http" in found["http"].words
    assert "http://" in found["http"].cure


def test_mcp_switched_off(simulator: Simulator) -> None:
    with fronted(simulator, mcp_enabled=False) as url:
        found = verdicts(url)
    assert failing(found) == ["switch"]
    assert "mcp_enabled = true" in found["switch"].cure


@pytest.mark.parametrize(
    ("token", "words"),
    [
        pytest.param(None, "wants a token", id="none given"),
        pytest.param("another-token-altogether", "another token", id="a wrong one"),
    ],
)
def test_a_token(simulator: Simulator, token: str | None, words: str) -> None:
    with fronted(simulator, token=TOKEN.encode()) as url:
        found = verdicts(url, token)
        assert not failing(verdicts(url, TOKEN))
    assert failing(found) == ["handshake"]
    assert words in found["handshake"].words
    assert TOKEN not in str(found)


def test_a_token_that_nobody_asked_for(simulator: Simulator) -> None:
    with fronted(simulator) as url:
        found = verdicts(url, TOKEN)
    assert not failing(found)
    assert "no token is wanted, so yours was not looked at" in found["handshake"].words


def test_a_token_that_is_looked_at_is_accepted(simulator: Simulator) -> None:
    with fronted(simulator, token=TOKEN.encode()) as url:
        assert "the token is accepted" in verdicts(url, TOKEN)["handshake"].words


@pytest.mark.parametrize(
    ("down", "failed"),
    [
        pytest.param("agent", ["agent"], id="the Agent"),
        pytest.param("config_web", ["config_web"], id="Config Web"),
    ],
)
def test_a_backend_that_is_down(simulator: Simulator, down: str, failed: list[str]) -> None:
    with fronted(simulator, **{down: rig.NOBODY}) as url:
        found = verdicts(url)
    assert failing(found) == failed
    assert ("picture" in skipping(found)) == (down == "agent")
    assert "cannot be reached" in found[down].words


def test_a_companion_app_that_is_not_linked(simulator: Simulator) -> None:
    simulator.faults.set("bridge_down")
    try:
        with fronted(simulator) as url:
            found = verdicts(url)
    finally:
        simulator.faults.clear()
    assert failing(found) == ["phone_bridge"]


@pytest.mark.parametrize(
    ("pixels", "extra", "words"),
    [
        pytest.param((498, 1080), 800_000, "over 1000 kB", id="too many bytes"),
        pytest.param((2400, 1080), 0, "over 2000 px", id="too many pixels"),
    ],
)
def test_a_picture_that_clients_refuse(
    monkeypatch: pytest.MonkeyPatch, pixels: tuple[int, int], extra: int, words: str
) -> None:
    picture = b"\xff\xd8\xff\xc0" + struct.pack(">HBHH", 17, 8, pixels[1], pixels[0]) + bytes(extra)
    shown = {"format": "jpeg", "width": 1, "height": 1, "data": base64.b64encode(picture).decode()}
    with Simulator() as pretend:
        monkeypatch.setattr("mcpboard.simulator.board.camera.Camera.shot", lambda *_: shown)
        with fronted(pretend) as url:
            found = verdicts(url)
    assert failing(found) == ["picture"]
    assert words in found["picture"].words


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
        found = verdicts(url, variables={"HTTP_PROXY": CLOSED_PROXY, "no_proxy": "localhost,127.0.0.1"})
    assert not failing(found)


def test_a_name_in_the_url_is_fine_for_programs(simulator: Simulator) -> None:
    with fronted(simulator) as url:
        assert not failing(verdicts(url.replace("127.0.0.1", "localhost")))


def test_a_stranger_that_strips_the_origin_is_found() -> None:
    """The peer builds its heads without an Origin, as something in between that takes it away would."""
    with serving(Peer()) as peer:
        visit = visits.ServerProbes(peer.url, None, {}, "linux")
        origins = visit.origins
        visit.close()
    assert (origins.same, origins.foreign) == (200, 200)


# --- the verb ------------------------------------------------------------------------------------


def test_json_says_the_same(simulator: Simulator, capsys: pytest.CaptureFixture[str]) -> None:
    with fronted(simulator, config_web=rig.NOBODY) as url:
        assert main(["doctor", url, "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["failed"] == 1
    assert [check["check"] for check in told["checks"]] == [check.name for check in doctor.CHECKS]
    assert {check["check"]: check["state"] for check in told["checks"]}["config_web"] == "failed"
    assert all(bool(check["cure"]) == (check["state"] == "failed") for check in told["checks"])


def test_a_token_file_is_used(simulator: Simulator, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    with fronted(simulator, token=TOKEN.encode()) as url:
        assert main(["doctor", url, "--token-file", str(file)]) == 0
    assert "All is well." in capsys.readouterr().out


def test_the_exit_code_counts_and_is_capped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = dataclasses.replace(doctor.CHECKS[0], needs=())
    monkeypatch.setattr(doctor, "CHECKS", tuple(dataclasses.replace(row, name=f"row {n}") for n in range(150)))
    assert main(["doctor", "no URL"]) == 100
    assert "150 failed; the first one is usually the cause." in capsys.readouterr().out


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

    def doctor(self) -> Verdicts:
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
        assert (done.returncode, done.stderr) == (told["failed"], b"")
        return {
            each["check"]: CheckResult(CheckState(each["state"]), each["words"], each["cure"])
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
    assert found["route"].words == "over usb0, from 192.168.42.100"


@pytest.mark.tools
def test_a_cable_that_is_out_is_named(cable: Cable) -> None:
    cable.laptop.ip("link set usb0 down")
    found = cable.doctor()
    assert failing(found) == ["route", "tcp"]
    assert "ip -brief address" in found["route"].cure


@pytest.mark.tools
@pytest.mark.slow
def test_a_cable_that_is_out_beside_a_network_that_is_up_is_named(cable: Cable) -> None:
    cable.laptop.ip("link set usb0 down", "link add wlan0 type veth peer name access0", "link set access0 up")
    cable.laptop.ip("addr add 10.0.0.2/24 dev wlan0", "link set wlan0 up", "route add default via 10.0.0.1")
    cable.laptop.ip("neigh add 10.0.0.1 lladdr 02:00:00:00:00:01 dev wlan0")  # a gateway that swallows everything
    found = cable.doctor()
    assert failing(found) == ["route", "tcp"]
    assert "over wlan0, from 10.0.0.2: the board's USB network is not up" in found["route"].words
